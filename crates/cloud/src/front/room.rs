//! How much the files of a home may take before calls that store something are refused.
//!
//! It bounds what callers store by calls. What their databases write to attached volumes is bounded by the sizes of those.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::service::ApiError;

/// How long what was counted is taken for the present, in milliseconds.
const COUNTED_MS: u64 = 1_000;
/// The folders of a home that calls make grow. In others, volumes are mounted.
const FOLDERS: [&str; 2] = ["aws", "store"];
/// The unit of `st_blocks`, bytes.
const BLOCK_BYTES: u64 = 512;
/// How the actions begin that store something.
const STORING: [&str; 10] =
    ["Copy", "Create", "Enable", "Lock", "Modify", "Put", "Restore", "Rotate", "RunInstances", "Tag"];

/// A bound of a home's files.
#[derive(Debug)]
pub struct Room {
    home: PathBuf,
    most_bytes: u64,
    counted: Mutex<Counted>,
}

#[derive(Debug, Default)]
struct Counted {
    /// None: not yet.
    at_ms: Option<u64>,
    bytes: u64,
}

impl Room {
    /// The files of `home` take at most `most_bytes`, on the disk.
    #[must_use]
    pub fn new(home: &Path, most_bytes: u64) -> Self {
        Self { home: home.to_owned(), most_bytes, counted: Mutex::default() }
    }

    /// Refuses an action that stores something while the home has no room.
    pub(super) fn check(&self, service: &str, action: &str, now_ms: u64) -> Result<(), ApiError> {
        let stores = action == "StartSnapshot" || STORING.iter().any(|verb| action.starts_with(verb));
        if !stores {
            return Ok(());
        }
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        if counted.at_ms.is_none_or(|at_ms| now_ms.abs_diff(at_ms) >= COUNTED_MS) {
            *counted = Counted { at_ms: Some(now_ms), bytes: bytes_of(&self.home) };
        }
        if counted.bytes < self.most_bytes {
            return Ok(());
        }
        let (code, status) = match service {
            "ec2" => ("ResourceLimitExceeded", 400),
            "ebs" | "rbin" => ("ServiceQuotaExceededException", 402),
            "kms" => ("LimitExceededException", 400),
            _ => ("LimitExceeded", 400),
        };
        let message = format!(
            "The files of the server's home take {} bytes; it was started with a bound of {}. Delete snapshots or volumes, or \
             start it with a higher one.",
            counted.bytes, self.most_bytes
        );
        Err(ApiError { status, ..ApiError::client(code, message) })
    }
}

/// What the records, the block store and the files of the endpoint take on the disk.
fn bytes_of(home: &Path) -> u64 {
    let of_folders: u64 = FOLDERS.iter().map(|folder| all_bytes_in(&home.join(folder))).sum();
    of_folders
        + entries(home).filter_map(|(_, data)| data.is_file().then(|| data.blocks())).sum::<u64>()
            * BLOCK_BYTES
}

fn all_bytes_in(folder: &Path) -> u64 {
    let own = entries(folder)
        .map(|(path, data)| if data.is_dir() { all_bytes_in(&path) } else { data.blocks() * BLOCK_BYTES });
    own.sum()
}

/// The entries of a folder, links not followed. What goes away meanwhile takes nothing.
fn entries(folder: &Path) -> impl Iterator<Item = (PathBuf, fs::Metadata)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.path(), fs::symlink_metadata(entry.path()).ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_without_room_stores_nothing_more_until_something_is_deleted() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join("store/deep")).unwrap();
        fs::write(home.path().join("aws.db"), vec![1; 100_000]).unwrap();
        let blocks = home.path().join("store/deep/blocks");
        fs::write(&blocks, vec![1; 300_000]).unwrap();
        // What is mounted elsewhere does not count, nor does what a link leads to.
        fs::create_dir(home.path().join("mounts")).unwrap();
        fs::write(home.path().join("mounts/volume"), vec![1; 1_000_000]).unwrap();
        std::os::unix::fs::symlink(home.path().join("mounts"), home.path().join("store/link")).unwrap();
        let room = Room::new(home.path(), 350_000);
        for (service, action, code) in [
            ("ec2", "CreateVolume", "ResourceLimitExceeded"),
            ("ebs", "StartSnapshot", "ServiceQuotaExceededException"),
            ("ebs", "PutSnapshotBlock", "ServiceQuotaExceededException"),
            ("kms", "CreateKey", "LimitExceededException"),
            ("monitoring", "PutMetricData", "LimitExceeded"),
        ] {
            assert_eq!(room.check(service, action, 0).unwrap_err().code, code, "{action}");
        }
        for action in ["DeleteSnapshot", "DescribeVolumes", "StartInstances", "GetSnapshotBlock", "Decrypt"] {
            room.check("ec2", action, 0).unwrap();
        }
        fs::remove_file(blocks).unwrap();
        room.check("ec2", "CreateVolume", COUNTED_MS - 1).unwrap_err();
        room.check("ec2", "CreateVolume", COUNTED_MS).unwrap();
    }
}
