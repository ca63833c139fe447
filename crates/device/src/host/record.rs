//! Runtime records: what an attachment is about to make, written down before it is made.
//!
//! A process that is killed between the record and the thing leaves a record of nothing, which is
//! removed later; the other order would leave a thing without a record.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::block;
use super::home::Home;
use ebbtide_dir::{Access, Dir};

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

    /// Writes the record, whole or not at all, and onto the host's disk: an attachment that is made must not
    /// be one that nobody knows of.
    pub(super) fn save(&self, home: &Home) -> io::Result<()> {
        let dir = home.records()?;
        let new = format!("{}.{NEW}", self.volume);
        let mut file = dir.file(&new, Access::Empty)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        file.sync_all()?;
        dir.rename(&new, name_of(&self.volume))?;
        dir.sync()
    }

    /// Removes the record of a volume, once nothing of it is left.
    pub(super) fn remove(home: &Home, volume: &str) -> io::Result<()> {
        home.records()?.remove(name_of(volume))
    }

    /// What a volume has by its name alone, for a record that cannot be read.
    fn by_name(home: &Home, volume: &str) -> Self {
        let (fuse_dir, backing_file) = block::paths(home, volume);
        Self { fuse_dir: Some(fuse_dir), backing_file: Some(backing_file), ..Self::nothing(volume) }
    }
}

/// A record that was found in a home.
#[derive(Debug)]
pub(super) struct Found {
    /// Its content; where it is damaged, what its name has.
    pub(super) record: Record,
    /// What is wrong with it.
    pub(super) damage: Option<String>,
    dir: Dir,
    name: String,
}

impl Found {
    /// Every record in a home.
    ///
    /// # Errors
    /// Where the host does not let them be read. Damage is no error.
    pub(super) fn all(home: &Home) -> io::Result<Vec<Self>> {
        let mut all = Vec::new();
        for (dir, name) in files(home)? {
            let Some(volume) = name.strip_suffix(RECORD) else { continue };
            let (record, damage) = match read(&dir, &name) {
                Ok(record) => (record, None),
                Err(error) if is_damage(&error) => (Record::by_name(home, volume), Some(error.to_string())),
                Err(error) => return Err(error),
            };
            all.push(Self { record, damage, dir, name });
        }
        Ok(all)
    }

    /// Removes it, once nothing of what it names is left; a damaged one is kept under another name, which
    /// is the answer.
    pub(super) fn forget(&self) -> io::Result<Option<PathBuf>> {
        if self.damage.is_none() {
            return self.dir.remove(&self.name).map(|()| None);
        }
        let aside = format!("{}.{DAMAGED}", self.name);
        self.dir.rename(&self.name, &aside)?;
        Ok(Some(self.dir.path().join(aside)))
    }
}

/// Removes the records that were being written when their server was killed: nothing had been made by then.
pub(super) fn remove_unfinished(home: &Home) -> io::Result<()> {
    for (dir, name) in files(home)? {
        if Path::new(&name).extension().is_some_and(|extension| extension == NEW) {
            dir.remove(&name)?;
        }
    }
    Ok(())
}

/// The end of the name of a record; a volume's name may end so too, which makes no difference.
const RECORD: &str = ".json";
/// The extension of one that is being written.
const NEW: &str = "new";
/// The extension of one that could not be read.
const DAMAGED: &str = "damaged";

fn name_of(volume: &str) -> String {
    format!("{volume}{RECORD}")
}

/// The files where records are now, and where they were before they had a directory of their own: among the
/// FUSE directories, which have the names of volumes.
fn files(home: &Home) -> io::Result<Vec<(Dir, String)>> {
    let mut files = Vec::new();
    for dir in [home.records(), home.run()] {
        let dir = match dir {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            dir => dir?,
        };
        let names = dir.files()?.into_iter().filter_map(|name| name.into_string().ok());
        files.extend(names.map(|name| (dir.clone(), name)));
    }
    Ok(files)
}

fn read(dir: &Dir, name: &str) -> io::Result<Record> {
    Ok(serde_json::from_slice(&dir.read(name)?)?)
}

/// Whether the host gave the bytes, and they are no record.
fn is_damage(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volumes(home: &Home) -> Vec<(String, bool)> {
        let mut all: Vec<_> = Found::all(home)
            .unwrap()
            .into_iter()
            .map(|found| (found.record.volume, found.damage.is_some()))
            .collect();
        all.sort();
        all
    }

    #[test]
    fn a_record_reads_back_and_a_half_written_one_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let lock = Home::open(dir.path()).unwrap().lock().unwrap();
        let home = lock.home();
        let record = Record {
            fuse_dir: Some("/run/x".into()),
            backing_file: Some("/run/x/volume".into()),
            nbd_socket: Some("/tmp/s".into()),
            ..Record::nothing("db")
        };
        record.save(home).unwrap();
        for half in ["records/other.new", "run/other.new"] {
            std::fs::write(home.root().join(half), "{").unwrap();
        }
        assert_eq!(Found::all(home).unwrap()[0].record, record);
        remove_unfinished(home).unwrap();
        assert_eq!(files(home).unwrap().len(), 1);
        Record::remove(home, "db").unwrap();
        assert_eq!(volumes(home), []);
    }

    #[test]
    fn no_name_of_a_volume_is_the_name_of_another_ones_record() {
        let dir = tempfile::tempdir().unwrap();
        let lock = Home::open(dir.path()).unwrap().lock().unwrap();
        let home = lock.home();
        let names = ["a", "a.damaged", "a.json", "a.json.damaged", "a.json.json", "a.json.new", "a.new"];
        for name in names {
            std::fs::create_dir(home.run_dir().join(name)).unwrap();
            Record::nothing(name).save(home).unwrap();
        }
        assert_eq!(volumes(home), names.map(|name| (name.to_owned(), false)));
        remove_unfinished(home).unwrap();
        for name in names {
            Record::remove(home, name).unwrap();
        }
        assert_eq!(volumes(home), []);
    }

    #[test]
    fn the_records_of_an_older_home_are_found_next_to_the_fuse_directories() {
        let dir = tempfile::tempdir().unwrap();
        let lock = Home::open(dir.path()).unwrap().lock().unwrap();
        let home = lock.home();
        let run = home.run_dir();
        for name in ["db", "a.json", "b.new"] {
            std::fs::create_dir(run.join(name)).unwrap();
            std::fs::write(run.join(format!("{name}.json")), format!(r#"{{"volume":"{name}"}}"#)).unwrap();
        }
        std::fs::write(run.join("empty.json"), "").unwrap();
        let expected = [("a.json", false), ("b.new", false), ("db", false), ("empty", true)];
        assert_eq!(volumes(home), expected.map(|(name, damaged)| (name.to_owned(), damaged)));
        remove_unfinished(home).unwrap();
        let aside = Found::all(home).unwrap().iter().filter_map(|found| found.forget().unwrap()).count();
        assert_eq!((aside, volumes(home)), (1, vec![]));
        assert!(run.join("empty.json.damaged").exists());
    }
}
