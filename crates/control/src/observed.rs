//! Volumes as metrics have them: plain data, read often.

use ebbtide_device::engine::{VolumeReading, VolumeTotals};
use ebbtide_volume::Nanos;

use crate::{AttachmentKind, ControlError, CreditsView, VolumeStatus};

/// Who can read all volumes at once, for metrics.
pub trait VolumeObserver: std::fmt::Debug + Send + Sync {
    /// All volumes by name. No volume's I/O waits for it longer than a copy of its counters takes. It is not counted as a
    /// request.
    ///
    /// # Errors
    /// [`ControlError::Stopping`].
    fn observe(&self) -> Result<Vec<ObservedVolume>, ControlError>;
}

/// A volume, attached or not.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedVolume {
    /// Name.
    pub name: String,
    /// Its type, such as `gp3` or `raid0(2x gp3)`; empty where its record cannot be read.
    pub kind: String,
    /// What it is doing.
    pub status: VolumeStatus,
    /// Size that a guest sees, bytes.
    pub size_bytes: u64,
    /// What it has counted over all attachments by this server. None where it was never attached, and while it is being attached,
    /// detached or modified.
    pub totals: Option<VolumeTotals>,
    /// Where it is attached, and what it reports there.
    pub attachment: Option<ObservedAttachment>,
}

/// An attachment, and the volume in it.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedAttachment {
    /// When it began, nanoseconds since 1970.
    pub since: Nanos,
    /// How the outside sees the volume.
    pub kind: AttachmentKind,
    /// The block device, or the NBD URI.
    pub device: String,
    /// Where it is mounted.
    pub mount: Option<String>,
    /// The file system that is mounted there.
    pub fs: Option<String>,
    /// The instance whose limits hold too.
    pub instance: Option<String>,
    /// Limits, credits, faults and the rest, at this moment.
    pub reading: VolumeReading,
    /// Its burst credits as time; none where the type has none.
    pub credits: Option<CreditsView>,
    /// Whether it is faster than this host can carry.
    pub is_host_too_slow: bool,
}
