//! Which volumes and snapshots of a home EC2 has records of, while no endpoint is served.

use std::collections::BTreeSet;
use std::path::Path;

use super::db::{Db, FILE};
use super::links;
use super::options::DEVICE_LINKS;
use crate::RecordsError;

/// The ids of a home's records, while no [`Ec2`](super::Ec2) is open that could change them.
#[derive(Debug, Default)]
pub(super) struct OwnedIds(BTreeSet<String>);

impl OwnedIds {
    /// Reads them; none where the home never had an AWS endpoint.
    ///
    /// # Errors
    /// Records that cannot be read.
    pub(super) fn read(home: &Path) -> Result<Self, RecordsError> {
        if !home.join(FILE).exists() {
            return Ok(Self::default());
        }
        Ok(Self(Db::open(home)?.storage_ids()?.into_iter().collect()))
    }

    /// Whether a volume or snapshot of this name is one of them.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}

/// Removes the links to devices that a killed endpoint of a home left in [`DEVICE_LINKS`]. The kernel gives the devices'
/// names to others, so it is called before the devices are let go, and while nobody serves the home. What refuses is in
/// the log.
///
/// # Errors
/// Records that cannot be read, where there are links of volumes.
pub fn remove_device_links(home: &Path) -> Result<(), RecordsError> {
    remove_links(home, Path::new(DEVICE_LINKS))
}

fn remove_links(home: &Path, dir: &Path) -> Result<(), RecordsError> {
    if links::linked(dir).is_empty() {
        return Ok(());
    }
    let owned = OwnedIds::read(home)?;
    links::clear(dir, |volume| owned.has(volume));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::db::SCHEMA;
    use super::*;
    use crate::records::{RecordFile, RowChange};

    const OURS: &str = "vol-0bd9ec8feb777e27d";
    const SNAPSHOT: &str = "snap-0bd9ec8feb777e27d";

    fn home_with_a_volume() -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        let mut records = RecordFile::open(home.path(), &SCHEMA).unwrap();
        records
            .commit([RowChange::put("volumes", OURS, &()), RowChange::put("snapshots", SNAPSHOT, &())])
            .unwrap();
        home
    }

    #[test]
    fn the_ids_of_records_are_owned_and_a_home_without_records_stays_without() {
        let home = home_with_a_volume();
        let owned = OwnedIds::read(home.path()).unwrap();
        assert!(owned.has(OURS) && owned.has(SNAPSHOT));
        assert!(!owned.has("vol-0bd9ec8feb777e27e"));
        let other = tempfile::tempdir().unwrap();
        assert!(!OwnedIds::read(other.path()).unwrap().has(OURS));
        assert!(!other.path().join(FILE).exists());
    }

    #[test]
    fn links_to_volumes_of_the_home_go_and_those_of_others_stay() {
        let (home, dir) = (home_with_a_volume(), tempfile::tempdir().unwrap());
        let link = |volume: &str| dir.path().join(links::name(volume));
        let (ours, others) = (link(OURS), link("vol-00000000000000001"));
        let foreign = dir.path().join("nvme-Samsung_SSD_1");
        for link in [&ours, &others, &foreign] {
            std::os::unix::fs::symlink("/dev/loop0", link).unwrap();
        }
        remove_links(home.path(), dir.path()).unwrap();
        assert!(!ours.is_symlink());
        assert!(others.is_symlink() && foreign.is_symlink());
    }
}
