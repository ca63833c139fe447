//! Who uses a device or a mounted directory, so that a refusal can name them.

use std::fmt;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

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

/// The links of each process are read as text, which never touches the file systems they name:
/// those may be stalled. Processes of others, and those that end meanwhile, are skipped.
fn find(uses: impl Fn(&Path) -> bool) -> Vec<Holder> {
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let mut holders: Vec<Holder> = processes
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let pid = path.file_name()?.to_str()?.parse().ok()?;
            (pid != std::process::id() && links(&path).iter().any(|link| uses(link))).then(|| {
                let name = std::fs::read_to_string(path.join("comm")).unwrap_or_default();
                Holder { pid, name: name.trim().to_owned() }
            })
        })
        .collect();
    holders.sort_by_key(|holder| holder.pid);
    holders
}

fn links(process: &Path) -> Vec<PathBuf> {
    let single = ["cwd", "root"].map(|name| process.join(name));
    let open = std::fs::read_dir(process.join("fd")).into_iter().flatten();
    let open = open.filter_map(|entry| Some(entry.ok()?.path()));
    single.into_iter().chain(open).filter_map(|link| std::fs::read_link(link).ok()).collect()
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
