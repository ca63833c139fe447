//! Runtime records: what an attachment is about to make, written down before it is made.
//!
//! A process that is killed between the record and the thing leaves a record of nothing, which is
//! harmless; the other order would leave a thing that nobody knows of.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::home::Home;

/// What one attachment makes outside of the block store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The volume.
    pub(super) volume: String,
    /// Directory on which the FUSE file system is mounted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) fuse_dir: Option<PathBuf>,
    /// The file in it that backs the loop device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) backing_file: Option<PathBuf>,
    /// Where the user's file system is mounted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) mount_dir: Option<PathBuf>,
    /// Whether the mount directory was made for this attachment.
    #[serde(default)]
    pub(super) made_mount_dir: bool,
    /// Unix socket of an NBD export.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) nbd_socket: Option<PathBuf>,
}

impl Record {
    /// A record of nothing yet.
    pub(super) fn nothing(volume: &str) -> Self {
        Self {
            volume: volume.to_owned(),
            fuse_dir: None,
            backing_file: None,
            mount_dir: None,
            made_mount_dir: false,
            nbd_socket: None,
        }
    }

    fn path(home: &Home, volume: &str) -> PathBuf {
        home.run_dir().join(format!("{volume}.json"))
    }

    /// Writes the record, whole or not at all.
    pub(super) fn save(&self, home: &Home) -> std::io::Result<()> {
        let path = Self::path(home, &self.volume);
        let new = path.with_extension("new");
        let mut file = std::fs::File::create(&new)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        std::fs::rename(&new, &path)
    }

    /// Removes the record of a volume, once nothing of it is left.
    pub(super) fn remove(home: &Home, volume: &str) -> std::io::Result<()> {
        std::fs::remove_file(Self::path(home, volume))
    }

    /// Every record in a home. A record that cannot be read is an error: guessing what it said
    /// could leave something behind for ever.
    pub(super) fn load_all(home: &Home) -> std::io::Result<Vec<Self>> {
        let mut records = Vec::new();
        for entry in std::fs::read_dir(home.run_dir())? {
            let path = entry?.path();
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("json") => records.push(read(&path)?),
                Some("new") => std::fs::remove_file(&path)?,
                _ => {}
            }
        }
        Ok(records)
    }
}

fn read(path: &Path) -> std::io::Result<Record> {
    serde_json::from_slice(&std::fs::read(path)?).map_err(|error| {
        std::io::Error::new(std::io::ErrorKind::InvalidData, format!("{}: {error}", path.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_back_and_a_half_written_one_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(dir.path()).unwrap();
        let record = Record {
            fuse_dir: Some("/run/x".into()),
            backing_file: Some("/run/x/volume".into()),
            nbd_socket: Some("/tmp/s".into()),
            ..Record::nothing("db")
        };
        record.save(&home).unwrap();
        std::fs::write(home.run_dir().join("other.new"), "{").unwrap();
        assert_eq!(Record::load_all(&home).unwrap(), [record]);
        Record::remove(&home, "db").unwrap();
        assert_eq!(Record::load_all(&home).unwrap(), []);
    }
}
