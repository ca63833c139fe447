//! What the store reports about its volumes and snapshots.

use super::Damage;

/// How a store is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoreOptions {
    /// Whether flushes of a volume reach the host's disk (`fdatasync`), and a restart of the host leaves each block as
    /// flushed or as written since. Without it the store survives the death of its process at any moment, but not the
    /// host's.
    pub host_sync: bool,
}

/// A volume, as [`VolumeStore::volume`](super::VolumeStore::volume) reports it.
#[derive(Debug, Clone, PartialEq)]
pub struct VolumeInfo {
    /// Name.
    pub name: String,
    /// Size that a guest sees, bytes.
    pub size_bytes: u64,
    /// What the owner keeps with it.
    pub meta: serde_json::Value,
    /// Creation, seconds since 1970-01-01 UTC.
    pub created_unix_s: u64,
    /// Snapshot it was made from. That snapshot may be deleted by now.
    pub from_snapshot: Option<String>,
    /// Volume it was cloned from. That volume may be deleted by now.
    pub from_volume: Option<String>,
    /// Host space of the layers that only this volume needs, bytes.
    pub allocated_bytes: u64,
    /// Host space of the layers it shares with snapshots and clones, bytes.
    pub shared_bytes: u64,
    /// 4 KiB blocks that hold data, as a guest sees them.
    pub data_blocks: u64,
    /// Layers in its chain, its writable one included.
    pub layers: usize,
    /// Name of the key that its data key is wrapped with; none: it is not encrypted.
    pub key_id: Option<String>,
    /// Whether it is open.
    pub open: bool,
    /// Why it cannot be opened, if so.
    pub damage: Option<Damage>,
}

/// A volume, as far as it is known without a look at its layers: [`VolumeStore::summary`](super::VolumeStore::summary) and
/// [`VolumeStore::summaries`](super::VolumeStore::summaries).
#[derive(Debug, Clone, PartialEq)]
pub struct VolumeSummary {
    /// Name.
    pub name: String,
    /// Size that a guest sees, bytes.
    pub size_bytes: u64,
    /// What the owner keeps with it.
    pub meta: serde_json::Value,
    /// Creation, seconds since 1970-01-01 UTC.
    pub created_unix_s: u64,
    /// Snapshot it was made from. That snapshot may be deleted by now.
    pub from_snapshot: Option<String>,
    /// Name of the key that its data key is wrapped with; none: it is not encrypted.
    pub key_id: Option<String>,
    /// Whether it cannot be opened.
    pub is_damaged: bool,
}

/// A snapshot, as [`VolumeStore::snapshots`](super::VolumeStore::snapshots) reports it.
#[derive(Debug, Clone, PartialEq)]
pub struct SnapshotInfo {
    /// Name.
    pub name: String,
    /// Size of the volume when it was taken, bytes.
    pub size_bytes: u64,
    /// What the owner keeps with it.
    pub meta: serde_json::Value,
    /// When it was taken, seconds since 1970-01-01 UTC.
    pub created_unix_s: u64,
    /// Volume it was taken from. That volume may be deleted by now.
    pub from_volume: String,
    /// Host space of its own layers, those below it that a snapshot names excepted, bytes.
    pub allocated_bytes: u64,
    /// 4 KiB blocks that hold data.
    pub data_blocks: u64,
    /// Layers in its chain.
    pub layers: usize,
    /// Name of the key that its data key is wrapped with; none: it is not encrypted.
    pub key_id: Option<String>,
    /// Why it cannot be used, if so.
    pub damage: Option<Damage>,
}

/// What a range of a volume is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtentKind {
    /// Written (or, of [`dirty_since`](super::OpenVolume::dirty_since), changed).
    Data,
    /// Reads as zeroes (or, of `dirty_since`, is as it was).
    Hole,
}

/// A range of a volume that is of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Offset in the volume, bytes.
    pub offset: u64,
    /// Length, bytes; never 0.
    pub len: u64,
    /// What it is.
    pub kind: ExtentKind,
}

/// What [`check`](super::check) found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Volumes looked at.
    pub volumes: usize,
    /// Snapshots looked at.
    pub snapshots: usize,
    /// Layers looked at.
    pub layers: usize,
    /// Journal records read.
    pub records: u64,
    /// Those of them that are not sealed: that others followed them and were cut off would not be noticed.
    pub unsealed: u64,
    /// Blocks the layers hold, 4 KiB each.
    pub blocks: u64,
    /// Every damage found, by file and offset.
    pub damages: Vec<Damage>,
    /// What is no damage, but worth knowing: a torn tail that the next open cuts off, a leftover file.
    pub notes: Vec<String>,
}

impl CheckReport {
    /// Whether nothing is damaged.
    pub fn is_clean(&self) -> bool {
        self.damages.is_empty()
    }
}
