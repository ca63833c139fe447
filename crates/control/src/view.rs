//! What is known of volumes and snapshots, as plain data. `--json` prints them: docs/json documents these shapes.

use ebbtide_catalog::{Initialization, MonthlyCost, VolumeFigures};
use ebbtide_device::engine::{CrashReport, HostFailure, PacingReport, PowerCutReport};
use ebbtide_device::faults::Faults;
use ebbtide_volume::{MinuteMetrics, Nanos, Stats};
use serde::{Deserialize, Serialize};

use crate::{ControlErrorKind, Owner, UnixTime};

/// A volume, as `volume list` prints it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct VolumeView {
    /// Name.
    pub name: String,
    /// Id, under which the AWS endpoint has it, and which commands take in place of the name; null of a volume that another program
    /// made.
    pub id: Option<String>,
    /// Account and availability zone that it belongs to, as `ACCOUNT/ZONE`; null of a volume that another program made, and of one of
    /// an earlier version's AWS endpoint until the endpoint is served.
    pub owner: Option<Owner>,
    /// What it is, as text with every default written out.
    pub spec: String,
    /// One line for people; empty where the catalogue no longer knows the type.
    pub description: String,
    /// Its state.
    pub state: VolumeStatus,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Bytes that hold data, in blocks of 4 KiB.
    pub data_bytes: u64,
    /// Host space that it alone needs, in bytes.
    pub allocated_bytes: u64,
    /// Host space that it shares with snapshots and other volumes, in bytes.
    pub shared_bytes: u64,
    /// Logical block size in bytes.
    pub block_size: u32,
    /// Seed of its draws.
    pub seed: u64,
    /// Name of the key that its data key is wrapped with; none: it is not encrypted.
    pub key_id: Option<String>,
    /// When it was created, RFC 3339.
    pub created: UnixTime,
    /// Snapshot that it began as.
    pub from_snapshot: Option<String>,
    /// Volume that it is a crash image of.
    pub from_volume: Option<String>,
    /// Percent of its burst credits left; null where the type has none.
    pub credit_pct: Option<f64>,
    /// Its burst credits as time; null where the type has none.
    pub credits: Option<CreditsView>,
    /// Its I/O by second; null where it is not attached.
    pub last_minute: Option<LastMinuteView>,
    /// What it may do; null where the catalogue no longer knows the type.
    pub figures: Option<VolumeFigures>,
    /// What it costs a month; null where its type has no price in the region.
    pub monthly_cost: Option<MonthlyCost>,
    /// The latest modification.
    pub modification: Option<ModificationView>,
    /// The loading of its snapshot's blocks; null where all were there from the beginning, or where the catalogue cannot be
    /// read.
    pub initialization: Option<InitializationView>,
    /// Where it is attached.
    pub attachment: Option<AttachmentView>,
    /// In which figures the volume exceeds what the host can carry; empty where it does not.
    pub host_too_slow: Vec<String>,
    /// Why it is not known whether the host can carry it; null where it is known, or detached.
    pub not_calibrated: Option<String>,
    /// What is damaged in the store.
    pub damage: Option<String>,
}

/// Burst credits as time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreditsView {
    /// Percent left.
    pub left_pct: f64,
    /// Percent that they changed in `over_s`, below 0 where more were spent than came back; null where it is not attached.
    pub change_pct: Option<f64>,
    /// Seconds in which that was seen: 60, or less while the attachment is younger; null where it is not attached.
    pub over_s: Option<f64>,
    /// Seconds until none are left, if they go on to be spent as in `over_s`; null where they are not spent.
    pub ends_in_s: Option<f64>,
    /// Seconds until they are full, if the volume is idle; null where its type is not known.
    pub full_in_s: Option<f64>,
}

impl CreditsView {
    /// Credits of `left` (share, 0 to 1), which were `before` a span of seconds ago, and come back from nothing in
    /// `refill_s` seconds.
    #[must_use]
    pub fn new(left: f64, before: Option<(f64, f64)>, refill_s: Option<f64>) -> Self {
        // Within a moment nothing can be told of a rate.
        let before = before.filter(|(_, seconds)| *seconds >= 1.0);
        let change = before.map(|(before, _)| left - before);
        let ends_in_s = before
            .map(|(before, seconds)| (before - left) / seconds)
            .filter(|rate| *rate > 0.0 && left > 0.0)
            .map(|rate| left / rate);
        Self {
            left_pct: left * 100.0,
            change_pct: change.map(|change| change * 100.0),
            over_s: before.map(|(_, seconds)| seconds),
            ends_in_s,
            full_in_s: refill_s.map(|seconds| seconds * (1.0 - left)),
        }
    }
}

/// What an attached volume did in the last minute, second by second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LastMinuteView {
    /// Reads and writes completed a second, oldest first: 60 values, or fewer while the attachment is younger.
    pub iops: Vec<f64>,
    /// MiB read and written a second, oldest first.
    pub mib_s: Vec<f64>,
}

/// What a volume is doing: detached, attached, between the two, or damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VolumeStatus {
    /// Detached.
    Available,
    /// Being attached or detached.
    Busy,
    /// Attached.
    InUse,
    /// Cannot be opened.
    Damaged,
}

impl VolumeStatus {
    /// As it is printed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Available => "available",
            Self::Busy => "busy",
            Self::InUse => "in-use",
            Self::Damaged => "damaged",
        }
    }
}

/// Phase of a modification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Phase {
    /// Being prepared; nothing has changed yet.
    Modifying,
    /// The size has changed; the performance moves from the source's to the target's.
    Optimizing,
    /// Done.
    Completed,
}

impl Phase {
    const ALL: [Self; 3] = [Self::Modifying, Self::Optimizing, Self::Completed];

    /// As it is printed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Modifying => "modifying",
            Self::Optimizing => "optimizing",
            Self::Completed => "completed",
        }
    }
}

/// How far the loading of a snapshot's blocks is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum InitializationState {
    /// Some blocks are not there yet.
    Initializing,
    /// All are there.
    Completed,
}

impl InitializationState {
    const ALL: [Self; 2] = [Self::Initializing, Self::Completed];

    /// As it is printed, and as EC2 names it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Initializing => "initializing",
            Self::Completed => "completed",
        }
    }
}

/// How the outside sees an attached volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum AttachmentKind {
    /// As a block device.
    Block,
    /// Through NBD.
    Nbd,
}

impl AttachmentKind {
    const ALL: [Self; 2] = [Self::Block, Self::Nbd];

    /// As it is printed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Nbd => "nbd",
        }
    }
}

/// A word that means nothing here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not one of the words that are allowed here")]
pub struct UnknownWord(String);

macro_rules! printed_by_name {
    ($($kind:ty),*) => {$(
        impl From<$kind> for String {
            fn from(value: $kind) -> Self {
                value.name().to_owned()
            }
        }

        impl TryFrom<String> for $kind {
            type Error = UnknownWord;

            fn try_from(word: String) -> Result<Self, UnknownWord> {
                let found = Self::ALL.into_iter().find(|one| one.name() == word);
                found.ok_or(UnknownWord(word))
            }
        }
    )*};
}

printed_by_name!(Phase, InitializationState, AttachmentKind);

/// A modification.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ModificationView {
    /// `modifying`, `optimizing` or `completed`.
    pub state: Phase,
    /// 0 to 100.
    pub progress_pct: u8,
    /// What the volume was.
    pub source: String,
    /// What it becomes.
    pub target: String,
    /// When it was requested, RFC 3339.
    pub started: UnixTime,
    /// When it completes, RFC 3339.
    pub completes: UnixTime,
}

/// The loading of a volume's blocks from its snapshot.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct InitializationView {
    /// `lazy`, or a rate such as `rate=200MiB/s`.
    pub mode: Initialization,
    /// `initializing` or `completed`.
    pub state: InitializationState,
    /// 0 to 100.
    pub progress_pct: u8,
    /// Bytes of the blocks that the snapshot has, in blocks of 512 KiB.
    pub total_bytes: u64,
    /// Bytes of those that are there: loaded, or overwritten or discarded before.
    pub loaded_bytes: u64,
    /// Since when, RFC 3339.
    pub since: UnixTime,
    /// When the rest will have been loaded at the rate, RFC 3339; null where nothing is left, or without a rate.
    pub completes: Option<UnixTime>,
}

/// An attachment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AttachmentView {
    /// `block` or `nbd`.
    pub kind: AttachmentKind,
    /// The block device; null for NBD.
    pub device: Option<String>,
    /// The NBD URI; null for a block device.
    pub uri: Option<String>,
    /// Where it is mounted.
    pub mount: Option<String>,
    /// The file system that is mounted there.
    pub fs: Option<String>,
    /// Whether the file system was made by this attachment.
    pub made_fs: bool,
    /// The instance whose limits hold too.
    pub instance: Option<String>,
    /// Since when, RFC 3339.
    pub since: UnixTime,
    /// Whether a power cut has ended it: it answers nothing until it is detached and attached.
    pub power_lost: bool,
}

/// A volume, as `volume show` prints it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct VolumeDetail {
    /// What `volume list` prints of it.
    #[serde(flatten)]
    pub volume: VolumeView,
    /// What only an attached volume has.
    pub live: Option<LiveView>,
}

/// An attached volume's inner life.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LiveView {
    /// Counters since the attachment began; times in nanoseconds.
    pub stats: Stats,
    /// Seconds that `minute` covers: 60, or less while the attachment is younger.
    pub minute_seconds: f64,
    /// The last minute, as CloudWatch would publish it.
    pub minute: MinuteMetrics,
    /// How late answers were given.
    pub pacing: PacingReport,
    /// The faults in force.
    pub faults: Faults,
    /// Whether the volume has lost its power.
    pub power_lost: bool,
    /// Requests that failed because the host failed: its disk is full, or broken.
    pub host_errors: u64,
    /// These requests by operation and errno, in the order in which they were first seen.
    pub host_failures: Vec<HostFailure>,
    /// What other volumes would have done with its requests; null without shadows.
    pub shadows: Option<ShadowsView>,
    /// The recording of its requests; null where there is none.
    pub recording: Option<RecordingView>,
}

/// Volumes that follow the requests of an attached one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ShadowsView {
    /// Since when they follow, in seconds.
    pub seconds: f64,
    /// Requests that they got.
    pub requests: u64,
    /// Requests that they did not get, since this machine was too slow.
    pub lost: u64,
    /// Reads of the volume itself: by its model, without what the host added.
    pub live_read: LatencyView,
    /// Writes of the volume itself.
    pub live_write: LatencyView,
    /// The shadows, in the order in which they were named.
    pub shadows: Vec<ShadowView>,
}

/// A volume in the place of an attached one. Requests arrive when they arrived there, however long it takes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ShadowView {
    /// What it is, as text with every default written out.
    pub spec: String,
    /// One line for people.
    pub description: String,
    /// What it costs a month; null where its type has no price.
    pub monthly_cost: Option<MonthlyCost>,
    /// Reads.
    pub read: LatencyView,
    /// Writes.
    pub write: LatencyView,
    /// Percent of the time in which its IOPS limit held requests back.
    pub over_volume_iops_pct: f64,
    /// Percent of the time in which its throughput limit held requests back.
    pub over_volume_throughput_pct: f64,
    /// Percent of the time in which the instance's IOPS limit held requests back.
    pub over_instance_iops_pct: f64,
    /// Percent of the time in which the instance's throughput limit held requests back.
    pub over_instance_throughput_pct: f64,
    /// Percent of its burst credits left; null where the type has none.
    pub credit_pct: Option<f64>,
}

/// Latencies of one direction, exact to 0.1%.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LatencyView {
    /// I/Os.
    pub ops: u64,
    /// Median, us; null without I/O.
    pub p50_us: Option<f64>,
    /// 95th percentile, us; null without I/O.
    pub p95_us: Option<f64>,
    /// 99th percentile, us; null without I/O.
    pub p99_us: Option<f64>,
    /// Largest, us; null without I/O.
    pub max_us: Option<f64>,
}

/// A recording of a volume's requests, as `volume record` prints it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RecordingView {
    /// The file.
    pub path: String,
    /// Since when, RFC 3339.
    pub since: UnixTime,
    /// Requests in it.
    pub requests: u64,
    /// Its bytes, before packing.
    pub bytes: u64,
    /// Requests that are not in it, since this machine was too slow.
    pub lost: u64,
    /// Why it ended early; null where it did not.
    pub failed: Option<String>,
}

/// A volume that was detached, as `volume detach` prints it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DetachView {
    /// What `volume show` prints of it.
    #[serde(flatten)]
    pub volume: VolumeDetail,
    /// What could not be written back, as texts; empty where everything is on the volume.
    pub lost: Vec<String>,
    /// Requests that failed during the attachment because the host failed: its disk is full, or broken.
    pub host_errors: u64,
    /// Whether a power cut had ended the volume, so that nothing could be written any more.
    pub power_cut: bool,
    /// What other volumes would have done during the attachment; null without shadows.
    pub shadows: Option<ShadowsView>,
    /// The recording that ended with the attachment; null where there was none.
    pub recording: Option<RecordingView>,
}

impl DetachView {
    /// Whether everything that the guest wrote is on the volume, as far as the host knows.
    #[must_use]
    pub const fn is_lossless(&self) -> bool {
        self.lost.is_empty() && self.host_errors == 0
    }
}

/// What `volume fault` prints.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FaultView {
    /// Name of the volume.
    pub volume: String,
    /// The faults in force.
    pub faults: Faults,
    /// Whether the volume has lost its power.
    pub power_lost: bool,
    /// The power cut that was asked for; null where none was.
    pub power_cut: Option<PowerCutReport>,
}

/// What `volume crash-image` prints.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CrashImageView {
    /// Name of the volume.
    pub volume: String,
    /// Name of the new volume.
    pub image: String,
    /// Seed that decided what was written.
    pub seed: u64,
    /// What the image has.
    pub report: CrashReport,
}

/// A snapshot.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SnapshotView {
    /// Name.
    pub name: String,
    /// Volume that it was taken from.
    pub from_volume: String,
    /// What that volume was.
    pub spec: String,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Bytes that hold data, in blocks of 4 KiB.
    pub data_bytes: u64,
    /// Host space that it needs, in bytes.
    pub allocated_bytes: u64,
    /// Name of the key that its data key is wrapped with; none: it is not encrypted.
    pub key_id: Option<String>,
    /// When it was taken, RFC 3339.
    pub created: UnixTime,
    /// What is damaged in the store.
    pub damage: Option<String>,
}

/// What a control plane was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestsView {
    /// Since when it counts, RFC 3339.
    pub since: UnixTime,
    /// All operations, also those that nobody has asked for.
    pub operations: Vec<OperationView>,
}

/// The counters of one operation: take the difference of two answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationView {
    /// Its name, as the log has it.
    pub operation: String,
    /// Requests, those that failed and those that run included.
    pub requests: u64,
    /// Requests that have not ended.
    pub running: u64,
    /// Requests that failed or were refused, by kind; kinds that were not seen are left out.
    pub failures: Vec<FailureCount>,
    /// How long all that have ended took together, us.
    pub total_us: u64,
    /// How long the longest of them took, us.
    pub max_us: u64,
}

/// Requests that failed in one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureCount {
    /// Of which kind the failure is.
    pub kind: ControlErrorKind,
    /// How many.
    pub count: u64,
}

/// What an attached volume has counted.
#[derive(Debug, Clone, PartialEq)]
pub struct VolumeCounters {
    /// Name.
    pub name: String,
    /// Id; none of a volume that has none.
    pub id: Option<String>,
    /// When the attachment began, by the clock of its volume. The counters began at zero then.
    pub since: Nanos,
    /// The counters now.
    pub stats: Stats,
    /// What the instance has left; none without one.
    pub instance: Option<InstanceBalances>,
}

/// Shares of the burst credits that an instance has left, 0 to 1; none where it sustains its maximum.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct InstanceBalances {
    /// Of operations (CloudWatch `EBSIOBalance%`).
    pub io: Option<f64>,
    /// Of bytes (CloudWatch `EBSByteBalance%`).
    pub bytes: Option<f64>,
}

/// The names in a home, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// Of its volumes.
    pub volumes: Vec<String>,
    /// Of its snapshots.
    pub snapshots: Vec<String>,
    /// Of the snapshots that are being put together from blocks.
    pub pending: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::CreditsView;

    #[test]
    fn credits_last_as_long_as_the_last_minute_would_spend_them_and_come_back_when_it_is_idle() {
        // 20% a minute: 10% are left for 30 s. Nine tenths of two hours until they are full.
        let spent = CreditsView::new(0.1, Some((0.3, 60.0)), Some(7_200.0));
        assert!((spent.ends_in_s.unwrap() - 30.0).abs() < 1e-9, "{spent:?}");
        assert!((spent.full_in_s.unwrap() - 6_480.0).abs() < 1e-9, "{spent:?}");
        assert!((spent.change_pct.unwrap() + 20.0).abs() < 1e-9, "{spent:?}");
        for (left, before) in [(0.3, Some((0.1, 60.0))), (0.0, Some((0.0, 60.0))), (1.0, None)] {
            assert_eq!(CreditsView::new(left, before, None).ends_in_s, None, "{left} {before:?}");
        }
        // The attachment began a moment ago.
        let young = CreditsView::new(0.5, Some((0.6, 0.2)), Some(7_200.0));
        assert_eq!((young.over_s, young.ends_in_s), (None, None));
    }
}
