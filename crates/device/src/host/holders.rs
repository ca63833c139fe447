//! Who uses a device or a mounted directory, so that a refusal can name them.

use std::fmt;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use ebbtide_proc::process;

/// A process that uses something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Its number.
    pub pid: u32,
    /// Its name, as the kernel keeps it (15 characters).
    pub name: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {})", self.name, self.pid)
    }
}

/// The processes, this one excepted, that have the block device open.
pub(super) fn of_device(device: &Path) -> Vec<Holder> {
    find(|link| link == device)
}

/// The processes, this one excepted, that work in a directory or have a file below it open.
pub(super) fn of_directory(dir: &Path) -> Vec<Holder> {
    find(|link| link.starts_with(dir))
}

fn find(uses: impl Fn(&Path) -> bool) -> Vec<Holder> {
    process::users(uses).into_iter().map(|(pid, name)| Holder { pid, name }).collect()
}

/// Names up to three holders.
pub(super) fn name(holders: &[Holder]) -> String {
    match holders {
        [] => "someone".to_owned(),
        [first, second, third, rest @ ..] if !rest.is_empty() => {
            format!("{first}, {second}, {third} and {} more", rest.len())
        }
        few => few.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// Whether a path is a socket.
pub(super) fn is_socket(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.file_type().is_socket())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_works_in_a_directory_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap();
        assert_eq!(of_directory(&path), []);
        let mut child = std::process::Command::new("sleep").arg("60").current_dir(&path).spawn().unwrap();
        let holders = of_directory(&path);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(holders.len(), 1, "{holders:?}");
        assert_eq!(holders[0].pid, child.id());
        assert!(name(&holders).contains(&child.id().to_string()));
    }
}
