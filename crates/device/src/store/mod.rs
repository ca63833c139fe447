//! The block store of live volumes: sparse, layered, copy-on-write in blocks of 4 KiB.
//!
//! A volume is a chain of *layers*. Only the topmost is written; those below are frozen and shared by snapshots and
//! clones. A layer is a sparse data file, where a block lies at its own offset, and a journal that says which blocks the
//! layer decides. Taking a snapshot puts an empty layer on top, whatever the volume holds. `docs/store-format.md` has the
//! files, `docs/decisions/block-store.md` the reasons.

mod error;
mod info;
mod registry;
mod volume;

use std::path::Path;

pub use error::{Damage, StoreError};
pub use info::{CheckReport, Extent, ExtentKind, SnapshotInfo, StoreOptions, VolumeInfo};
pub use registry::Store;
pub use volume::BlockStore;

/// Size of a block, the unit of copy-on-write, bytes.
pub const BLOCK_BYTES: u64 = 4096;

/// Largest volume, bytes: 64 TiB, the largest that EBS offers.
pub const MAX_VOLUME_BYTES: u64 = 64 << 40;

/// Reads all metadata of a store that no process has open, changes nothing, and lists every damage.
///
/// With `volume`, only what that volume needs is looked at.
///
/// # Errors
///
/// [`StoreError::Locked`] while the store is open, [`StoreError::NotFound`] for an unknown volume, [`StoreError::Io`]
/// where the host does not let it read. Damage is no error here; it is in the report.
pub fn check(dir: &Path, volume: Option<&str>) -> Result<CheckReport, StoreError> {
    let _ = (dir, volume);
    unimplemented!("arrives with the store's files")
}
