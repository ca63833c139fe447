//! The block store of live volumes: sparse, layered, copy-on-write in blocks of 4 KiB.
//!
//! A volume is a chain of *layers*. Only the topmost is written; those below are frozen and shared by snapshots and
//! clones. A layer is a sparse data file, where a block is at its own offset, and a journal of which blocks the
//! layer decides. Taking a snapshot puts an empty layer on top, whatever the volume holds. Layers of an encrypted volume hold
//! ciphertext; [`OpenVolume`] encrypts above them. `docs/store-format.md` has the
//! files, `docs/decisions/block-store.md` the reasons.

mod blocks;
mod boot;
mod change;
mod change_log;
mod check;
mod cipher;
mod clones;
mod contents;
mod copy_plan;
mod encryption;
mod entries;
mod error;
mod few;
mod files;
mod header;
mod home;
mod info;
mod journal;
mod key;
mod layer;
mod listing;
mod manifest;
mod manifest_file;
mod maps;
mod meta;
mod pending;
mod reclaim;
mod registry;
mod rewrite;
mod shared;
mod snapshots;
mod summaries;
mod synced;
mod usage;
mod uses;
mod volume;
mod volume_core;

#[cfg(test)]
mod change_tests;
#[cfg(test)]
mod host_crash;

pub use blocks::ChangedBlock;
pub use check::check;
pub use copy_plan::{CloneRequest, SnapshotRequest};
pub use error::{Damage, StoreError};
pub use info::{CheckReport, Extent, ExtentKind, SnapshotInfo, StoreOptions, VolumeInfo, VolumeSummary};
pub use key::{DATA_KEY_BYTES, DataKey, KeyUnavailable, KeyUnwrapper, WrappedKey};
pub use listing::list_snapshots;
pub use pending::PendingSnapshot;
pub use registry::VolumeStore;
pub use snapshots::StoreNames;
pub use volume::OpenVolume;

use entries::LayerId;

/// Size of a block, the unit of copy-on-write, bytes.
pub const BLOCK_BYTES: u64 = 4096;

/// Size of a block of a snapshot, as snapshots are listed, compared and put together, bytes.
pub const SNAPSHOT_BLOCK_BYTES: u64 = 512 << 10;

/// Largest volume, bytes: 64 TiB, the largest that EBS offers.
pub const MAX_VOLUME_BYTES: u64 = 64 << 40;
