//! A volume of Ebbtide's own, as its control plane reports it.

use ebbtide_control::ObservedVolume;
use ebbtide_volume::Stats;

use crate::reading::{InstanceReading, LatencyFloor, Throttling, VolumeLimits, VolumeReading};

/// An attached volume of Ebbtide's own.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnVolume {
    /// Its name.
    pub name: String,
    /// What it is, such as `gp3:size=500GiB`; its type alone where no more is known.
    pub spec: String,
    /// Its block device without `/dev/`, such as `loop3`; empty where it has none.
    pub device: String,
    /// Where it is mounted.
    pub mount: Option<String>,
    /// Which attachment the counters belong to, such as its start.
    pub epoch: String,
    /// Its counters.
    pub stats: Stats,
    /// What it may do.
    pub limits: VolumeLimits,
    /// The instance that it is attached to, with its credits; None without one, and where these are not reported.
    pub instance: Option<InstanceReading>,
    /// Seconds until its credits are full without load; None where it has none.
    pub credits_full_s: Option<f64>,
}

impl OwnVolume {
    /// A volume as a program that serves it observes it; None while it is not attached. `floor` is that of its model, where that is
    /// known.
    #[must_use]
    pub fn of_observed(volume: &ObservedVolume, floor: Option<LatencyFloor>) -> Option<Self> {
        let attachment = volume.attachment.as_ref()?;
        let reading = &attachment.reading;
        Some(Self {
            name: volume.name.clone(),
            spec: volume.kind.clone(),
            device: attachment.device.trim_start_matches("/dev/").to_owned(),
            mount: attachment.mount.clone(),
            epoch: attachment.since.0.to_string(),
            stats: reading.totals.stats,
            limits: VolumeLimits { iops: reading.iops_limit, throughput: reading.throughput_limit, floor },
            instance: InstanceReading::of_observed(volume),
            credits_full_s: attachment.credits.as_ref().and_then(|credits| credits.full_in_s),
        })
    }

    /// The volume as the alarms take it.
    pub(super) fn reading(&self) -> VolumeReading {
        VolumeReading {
            name: self.name.clone(),
            epoch: self.epoch.clone(),
            stats: self.stats,
            throttling: Throttling::Counted,
            limits: self.limits,
        }
    }
}
