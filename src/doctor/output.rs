//! Files that the doctor writes. They are looked at before the server is, so that a wrong name costs no look.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

use rustix::fs::Access;

use crate::exit::Refusal;

/// Refuses a file that cannot be written. Nothing is changed, and no pipe is opened: its reader would see its end.
///
/// # Errors
/// No such directory, no permission, a file system that is read-only: exit code 3.
pub(super) fn check(file: &Path) -> anyhow::Result<()> {
    let checked = match fs::metadata(file) {
        Ok(about) if about.is_dir() => Err(io::Error::from(io::ErrorKind::IsADirectory)),
        Ok(about) if about.is_file() => OpenOptions::new().append(true).open(file).map(|_| ()),
        Ok(_) => Ok(()),
        Err(_) => {
            let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
            let access = Access::WRITE_OK | Access::EXEC_OK;
            rustix::fs::access(parent.unwrap_or(Path::new(".")), access).map_err(io::Error::from)
        }
    };
    checked.map_err(|error| refuse(file, error))
}

/// Writes a file.
///
/// # Errors
/// It cannot be written, or the disk is full: exit code 3.
pub(super) fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(file, text).map_err(|error| refuse(file, error))
}

fn refuse(file: &Path, error: io::Error) -> anyhow::Error {
    let refusal = Refusal::environment(format!("cannot write {}", file.display()))
        .hint("name a file in a directory that is there and that you may write");
    anyhow::Error::new(error).context(refusal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_written_is_refused_and_one_that_can_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (dir.path().join("old"), dir.path().join("new"));
        fs::write(&old, "before").unwrap();
        check(&old).unwrap();
        check(&new).unwrap();
        assert_eq!((fs::read_to_string(&old).unwrap().as_str(), new.exists()), ("before", false));
        for wrong in [dir.path().join("none/new"), dir.path().to_owned(), old.join("new")] {
            let error = check(&wrong).unwrap_err().to_string();
            assert!(error.contains(&format!("cannot write {}", wrong.display())), "{error}");
        }
        check(Path::new("/dev/full")).unwrap();
        assert!(write(Path::new("/dev/full"), "x").is_err());
    }
}
