//! What `--json` prints of volumes and snapshots. docs/json/ documents these shapes.

use ebbtide_catalog::{Figures, MonthlyCost};
use ebbtide_device::engine::{CrashReport, PacingReport, PowerCutReport};
use ebbtide_device::faults::Faults;
use ebbtide_volume::{MinuteMetrics, Stats};
use serde::{Deserialize, Serialize};

/// A volume, as `volume list` prints it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct VolumeView {
    /// Name.
    pub(crate) name: String,
    /// What it is, as text with every default written out.
    pub(crate) spec: String,
    /// One line for people; empty where the catalogue no longer knows the type.
    pub(crate) description: String,
    /// Where it stands.
    pub(crate) state: State,
    /// Size in bytes.
    pub(crate) size_bytes: u64,
    /// Bytes that hold data, in blocks of 4 KiB.
    pub(crate) data_bytes: u64,
    /// Host space that it alone needs, in bytes.
    pub(crate) allocated_bytes: u64,
    /// Host space that it shares with snapshots and other volumes, in bytes.
    pub(crate) shared_bytes: u64,
    /// Logical block size in bytes.
    pub(crate) block_size: u32,
    /// Seed of its draws.
    pub(crate) seed: u64,
    /// When it was created, RFC 3339.
    pub(crate) created: String,
    /// Snapshot that it began as.
    pub(crate) from_snapshot: Option<String>,
    /// Volume that it is a crash image of.
    pub(crate) from_volume: Option<String>,
    /// Percent of its burst credits left; null where the type has none.
    pub(crate) credit_pct: Option<f64>,
    /// What it may do; null where the catalogue no longer knows the type.
    pub(crate) figures: Option<Figures>,
    /// What it costs a month; null where its type has no price in the region.
    pub(crate) monthly_cost: Option<MonthlyCost>,
    /// The latest modification.
    pub(crate) modification: Option<ModificationView>,
    /// Where it is attached.
    pub(crate) attachment: Option<AttachmentView>,
    /// In which figures the volume exceeds what the host can carry; empty where it does not.
    pub(crate) host_too_slow: Vec<String>,
    /// Why it is not known whether the host can carry it; null where it is known, or detached.
    pub(crate) not_calibrated: Option<String>,
    /// What is damaged in the store.
    pub(crate) damage: Option<String>,
}

/// Where a volume stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum State {
    /// Detached.
    Available,
    /// Being attached or detached.
    Busy,
    /// Attached.
    InUse,
    /// Cannot be opened.
    Damaged,
}

impl State {
    /// As it is printed.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Available => "available",
            Self::Busy => "busy",
            Self::InUse => "in-use",
            Self::Damaged => "damaged",
        }
    }
}

/// A modification.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ModificationView {
    /// `modifying`, `optimizing` or `completed`.
    pub(crate) state: String,
    /// 0 to 100.
    pub(crate) progress_pct: u8,
    /// What the volume was.
    pub(crate) source: String,
    /// What it becomes.
    pub(crate) target: String,
    /// When it was requested, RFC 3339.
    pub(crate) started: String,
    /// When it completes, RFC 3339.
    pub(crate) completes: String,
}

/// An attachment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AttachmentView {
    /// `block` or `nbd`.
    pub(crate) kind: String,
    /// The block device; null for NBD.
    pub(crate) device: Option<String>,
    /// The NBD URI; null for a block device.
    pub(crate) uri: Option<String>,
    /// Where it is mounted.
    pub(crate) mount: Option<String>,
    /// The file system that is mounted there.
    pub(crate) fs: Option<String>,
    /// Whether the file system was made by this attachment.
    pub(crate) made_fs: bool,
    /// The instance whose limits hold too.
    pub(crate) instance: Option<String>,
    /// Since when, RFC 3339.
    pub(crate) since: String,
    /// Whether a power cut has ended it: it answers nothing until it is detached and attached.
    pub(crate) power_lost: bool,
}

/// A volume, as `volume show` prints it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct VolumeDetail {
    /// What `volume list` prints of it.
    #[serde(flatten)]
    pub(crate) volume: VolumeView,
    /// What only an attached volume has.
    pub(crate) live: Option<LiveView>,
}

/// An attached volume's inner life.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LiveView {
    /// Counters since the attachment began; times in nanoseconds.
    pub(crate) stats: Stats,
    /// Seconds that `minute` covers: 60, or less while the attachment is younger.
    pub(crate) minute_seconds: f64,
    /// The last minute, as CloudWatch would publish it.
    pub(crate) minute: MinuteMetrics,
    /// How late answers were given.
    pub(crate) pacing: PacingReport,
    /// The faults in force.
    pub(crate) faults: Faults,
    /// Whether the volume has lost its power.
    pub(crate) power_lost: bool,
    /// Requests that failed because the host failed: its disk is full, or broken.
    pub(crate) host_errors: u64,
}

/// A volume that was detached, as `volume detach` prints it.
#[derive(Debug, Serialize)]
pub(crate) struct DetachView {
    /// What `volume show` prints of it.
    #[serde(flatten)]
    pub(crate) volume: VolumeDetail,
    /// What could not be written back, as texts; empty where everything is on the volume.
    pub(crate) lost: Vec<String>,
    /// Requests that failed during the attachment because the host failed: its disk is full, or broken.
    pub(crate) host_errors: u64,
    /// Whether a power cut had ended the volume, so that nothing could be written any more.
    pub(crate) power_cut: bool,
}

/// What `volume fault` prints.
#[derive(Debug, Serialize)]
pub(crate) struct FaultView<'a> {
    /// Name of the volume.
    pub(crate) volume: &'a str,
    /// The faults in force.
    pub(crate) faults: Faults,
    /// Whether the volume has lost its power.
    pub(crate) power_lost: bool,
    /// The power cut that was asked for; null where none was.
    pub(crate) power_cut: Option<PowerCutReport>,
}

/// What `volume crash-image` prints.
#[derive(Debug, Serialize)]
pub(crate) struct CrashImageView<'a> {
    /// Name of the volume.
    pub(crate) volume: &'a str,
    /// Name of the new volume.
    pub(crate) image: &'a str,
    /// Seed that decided what was written.
    pub(crate) seed: u64,
    /// What the image has.
    pub(crate) report: CrashReport,
}

/// A snapshot.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SnapshotView {
    /// Name.
    pub(crate) name: String,
    /// Volume that it was taken from.
    pub(crate) from_volume: String,
    /// What that volume was.
    pub(crate) spec: String,
    /// Size in bytes.
    pub(crate) size_bytes: u64,
    /// Bytes that hold data, in blocks of 4 KiB.
    pub(crate) data_bytes: u64,
    /// Host space that it needs, in bytes.
    pub(crate) allocated_bytes: u64,
    /// When it was taken, RFC 3339.
    pub(crate) created: String,
    /// What is damaged in the store.
    pub(crate) damage: Option<String>,
}
