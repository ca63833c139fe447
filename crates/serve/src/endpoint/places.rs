//! The files to which the events of the AWS endpoint are appended: one of the home, or one that the user names.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use ebbtide_cloud::monitoring::EventPlace;
use ebbtide_device::host::HomeFolder;
use rustix::fs::OFlags;

/// The file in the home's folder of AWS.
const FILE: &str = "events.jsonl";

/// The file of the home, in its folder of AWS.
#[derive(Debug)]
pub(crate) struct HomeEvents(pub(crate) HomeFolder);

impl EventPlace for HomeEvents {
    fn path(&self) -> PathBuf {
        self.0.path().join(FILE)
    }

    fn open(&self) -> io::Result<File> {
        self.0.append(FILE).map_err(io::Error::other)
    }

    fn put_aside(&self) -> io::Result<()> {
        self.0.rename(FILE, &format!("{FILE}.1")).map_err(io::Error::other)
    }
}

/// A file that the user names. It must not be a symbolic link.
#[derive(Debug)]
pub(crate) struct EventPath(pub(crate) PathBuf);

impl EventPath {
    /// Whether events can be appended; a file that is not there is made, empty.
    ///
    /// # Errors
    /// Why they cannot: no directory, no permission, a directory or a symbolic link in its place, a pipe that nobody reads.
    pub(crate) fn check(&self) -> io::Result<()> {
        // A pipe that nobody reads must not hold the start up.
        self.open_with(OFlags::NONBLOCK).map(drop)
    }

    fn open_with(&self, flags: OFlags) -> io::Result<File> {
        let flags = (OFlags::NOFOLLOW | flags).bits().cast_signed();
        let opened =
            OpenOptions::new().create(true).append(true).mode(0o600).custom_flags(flags).open(&self.0);
        opened.map_err(|error| {
            if self.0.is_symlink() {
                io::Error::other("it is a symbolic link, which is not followed; name the file itself")
            } else {
                error
            }
        })
    }
}

impl EventPlace for EventPath {
    fn path(&self) -> PathBuf {
        self.0.clone()
    }

    fn open(&self) -> io::Result<File> {
        self.open_with(OFlags::empty())
    }

    fn put_aside(&self) -> io::Result<()> {
        let mut old = self.0.clone().into_os_string();
        old.push(".1");
        fs::rename(&self.0, old)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use ebbtide_cloud::monitoring::{EventFile, EventSink as _};
    use ebbtide_device::host::Home;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_file_of_events_that_is_a_link_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (link, victim) = (EventPath(dir.path().join("e.jsonl")), dir.path().join("victim"));
        fs::write(&victim, "mine").unwrap();
        std::os::unix::fs::symlink(&victim, &link.0).unwrap();
        let refused = link.open().unwrap_err();
        assert!(refused.to_string().contains("symbolic link"), "{refused}");
        assert_eq!(fs::read(&victim).unwrap(), b"mine");
        fs::remove_file(&link.0).unwrap();
        link.open().unwrap().write_all(b"1\n").unwrap();
        link.put_aside().unwrap();
        assert_eq!(fs::read(dir.path().join("e.jsonl.1")).unwrap(), b"1\n");
    }

    #[test]
    fn the_events_of_a_home_that_was_replaced_do_not_reach_the_new_one() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("home");
        let events = |lock: &ebbtide_device::host::HomeLock, most_bytes| {
            EventFile::new(Box::new(HomeEvents(lock.home().make_aws().unwrap())), most_bytes)
        };
        let old = Home::open(&root).unwrap().lock().unwrap();
        let old_events = events(&old, 4);
        old_events.publish(&json!("a"));
        fs::remove_dir_all(&root).unwrap();
        let new = Home::open(&root).unwrap().lock().unwrap();
        events(&new, 4).publish(&json!("new"));
        // It would put the new server's file aside, and write one of its own.
        old_events.publish(&json!("old"));
        let names: Vec<_> = fs::read_dir(root.join("aws")).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, [FILE]);
        assert_eq!(fs::read(root.join("aws").join(FILE)).unwrap(), b"\"new\"\n");
    }
}
