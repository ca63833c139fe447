//! What may be asked of the control plane, as plain data.

use std::time::Duration;

use ebbtide_catalog::{Initialization, Spec};
use ebbtide_device::host::Export;
use ebbtide_device::store::WrappedKey;
use serde::{Deserialize, Serialize};

use crate::{FaultSetting, OwnerRequest};

/// A new volume.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateVolume {
    /// Its name: a-z, 0-9, '.', '_' and '-', at most 63, the first a letter or digit. One of the form of an id is the id, too.
    pub name: String,
    /// What it is; what is left out takes the catalogue's default.
    pub spec: Spec,
    /// Snapshot whose content it begins with; none for an empty volume.
    pub snapshot: Option<String>,
    /// How the snapshot's blocks come to the volume; with a snapshot alone. Where it is none, an EBS volume is lazy, as
    /// on AWS, and another device has all blocks at once.
    pub initialization: Option<Initialization>,
    /// Logical block size in bytes: 512 or 4096.
    pub block_size: u32,
    /// Seed of its service times, errors and power cuts; drawn where it is none.
    pub seed: Option<u64>,
    /// AWS region whose prices the answer has; none for the default one.
    pub region: Option<String>,
    /// Makes a repeated request harmless: 1 to 64 characters that the caller chose. A request with the token
    /// of an earlier one and the same parameters answers with the earlier one's volume, whatever name it
    /// asks for.
    pub token: Option<String>,
    /// Data key of its own; none: it is plain, or has that of its snapshot. With a snapshot, all of its content is
    /// encrypted anew before the answer.
    pub key: Option<WrappedKey>,
    /// Whose it is; none: the server's default owner's.
    pub owner: Option<OwnerRequest>,
}

/// A volume to attach.
#[derive(Debug, Clone)]
pub struct AttachVolume {
    /// The volume.
    pub name: String,
    /// How the outside sees it.
    pub export: Export,
    /// EC2 instance whose own limits hold too, as `TYPE` or `TYPE/ID`; volumes with the same text share them.
    pub instance: Option<String>,
    /// Whether it is attached, with a mark, although it is faster than this host can carry.
    pub over_limit: bool,
    /// Volumes that follow its requests, to see what they would have done. One without a size has the volume's.
    pub shadows: Vec<Spec>,
}

/// A volume to detach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DetachVolume {
    /// The volume.
    pub name: String,
    /// Whether it is detached although a process uses it or its I/O is stalled. What was written before is
    /// flushed to the volume, I/O after that fails.
    pub force: bool,
}

/// A recording of a volume's requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordVolume {
    /// The attached volume.
    pub name: String,
    /// Where the recording is written, for people.
    pub path: String,
}

/// What a volume is to become.
#[derive(Debug, Clone, PartialEq)]
pub struct ModifyVolume {
    /// The volume.
    pub name: String,
    /// What it becomes; a setting that is left out keeps its value.
    pub spec: Spec,
    /// How long it performs between old and new.
    pub optimizing: Optimizing,
    /// Whether an attached volume is modified, with a mark, although it is then faster than this host can
    /// carry.
    pub over_limit: bool,
}

/// How long a modification takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Optimizing {
    /// As long as on AWS.
    Aws,
    /// This long, in whole seconds; the new size is there at once.
    For(Duration),
    /// The caller has asked AWS's rule of when a volume may be modified, and names the phases. Only what the volume
    /// becomes is judged. Whole seconds.
    Decided {
        /// From now until the new size is there.
        modifying: Duration,
        /// From now until it is completed.
        completes: Duration,
    },
}

/// Faults to set and to end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetFaults {
    /// The attached volume.
    pub name: String,
    /// What to break or mend, in this order; none asks for the faults in force.
    pub settings: Vec<FaultSetting>,
}

/// A volume with what a power cut of another one would leave now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakeCrashImage {
    /// The attached volume.
    pub name: String,
    /// Name of the new volume.
    pub image: String,
    /// Decides which writes in flight survive; drawn where it is none.
    pub seed: Option<u64>,
}

/// A snapshot that is to be put together from blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BeginSnapshot {
    /// Its name, in the form of a volume's.
    pub name: String,
    /// Size of the disk that it shows, bytes.
    pub size_bytes: u64,
    /// The snapshot whose content it begins with; none for an empty disk. It may be deleted meanwhile.
    pub parent: Option<String>,
    /// Data key of an empty disk; none: it is plain. With a parent, the parent's counts.
    pub key: Option<WrappedKey>,
}

/// A new snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateSnapshot {
    /// Its name, in the form of a volume's.
    pub name: String,
    /// The volume to copy, attached or not.
    pub volume: String,
}
