//! Whether the host can carry a volume.

use ebbtide_device::host::{Calibration, HostError, HostMatch, InstanceRequest, Progress};
use ebbtide_volume::Array;
use parking_lot::MutexGuard;

use super::LiveControl;
use crate::ControlError;

/// What is asked of the host for a volume.
#[derive(Debug)]
pub(super) struct Demand<'a> {
    /// The volume's name.
    pub(super) volume: &'a str,
    /// What it may do.
    pub(super) array: &'a Array,
    /// The instance whose limits hold too.
    pub(super) instance: Option<&'a InstanceRequest>,
    /// Whether it is exported through NBD instead of as a block device.
    pub(super) through_nbd: bool,
    /// Whether it is accepted, with a mark, where the host is too slow for it.
    pub(super) over_limit: bool,
    /// Whether a modification asks, not an attachment.
    pub(super) modify: bool,
}

fn failed(error: HostError) -> HostMatch {
    let error = with_causes(&error);
    tracing::warn!(error, "this host could not be calibrated");
    HostMatch { too_slow: Vec::new(), not_calibrated: Some(error) }
}

/// An error and what caused it, in one text.
fn with_causes(error: &HostError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

impl LiveControl {
    /// How a volume compares with this host, for its mark.
    ///
    /// # Errors
    /// A volume that exceeds what the host can carry, without `over_limit`.
    pub(super) fn require_of_host(
        &self,
        demand: &Demand<'_>,
        progress: Progress<'_>,
    ) -> Result<HostMatch, ControlError> {
        let found = self.compare_with_host(demand, progress);
        if found.too_slow.is_empty() || demand.over_limit {
            return Ok(found);
        }
        let (volume, modify) = (demand.volume.to_owned(), demand.modify);
        Err(ControlError::FasterThanHost { volume, figures: found.too_slow, modify })
    }

    /// In which figures a volume exceeds what this host can carry. A host that was never calibrated
    /// is calibrated first, briefly; where that fails, the volume can still be used, but nobody
    /// knows whether the host carries it.
    fn compare_with_host(&self, demand: &Demand<'_>, progress: Progress<'_>) -> HostMatch {
        let exceeded = |calibration: &Calibration| {
            let instance = demand.instance.map(|instance| &instance.limits);
            calibration.exceeded_by(demand.array, instance, demand.through_nbd)
        };
        let calibration = self.known_or_measured(demand, progress).and_then(|known| {
            let is_enough = exceeded(&known).is_empty() || !known.quick;
            if is_enough { Ok(known) } else { self.measured_at_length(demand, progress) }
        });
        match calibration {
            Ok(calibration) => HostMatch { too_slow: exceeded(&calibration), not_calibrated: None },
            Err(error) => failed(error),
        }
    }

    /// The figures of this host that its home has.
    fn known(&self, demand: &Demand<'_>) -> Option<Calibration> {
        Calibration::load(&self.host.home().calibration_file())
            // Measured where no block device could be made, for example by another user.
            .filter(|known| demand.through_nbd || known.block.is_some())
    }

    /// The figures of this host, after a short measurement where there are none. One that is under way is waited for.
    fn known_or_measured(
        &self,
        demand: &Demand<'_>,
        progress: Progress<'_>,
    ) -> Result<Calibration, HostError> {
        if let Some(known) = self.known(demand) {
            return Ok(known);
        }
        let _alone = self.turn(progress);
        if let Some(known) = self.known(demand) {
            return Ok(known);
        }
        tracing::info!("this host was never calibrated: measuring it for about 3 seconds");
        progress("this host was never calibrated: measuring it for about 3 seconds");
        self.host.calibrate(true, progress)
    }

    /// The figures of a long measurement: a moment in which the machine was busy must not refuse a volume.
    fn measured_at_length(
        &self,
        demand: &Demand<'_>,
        progress: Progress<'_>,
    ) -> Result<Calibration, HostError> {
        let _alone = self.turn(progress);
        if let Some(known) = self.known(demand).filter(|known| !known.quick) {
            return Ok(known);
        }
        tracing::info!("a short calibration is no reason to refuse: measuring for about 20 seconds");
        progress("a short calibration is no reason to refuse: measuring for about 20 seconds");
        self.host.calibrate(false, progress)
    }

    /// Waits until no other request measures this host.
    fn turn(&self, progress: Progress<'_>) -> MutexGuard<'_, ()> {
        self.calibrating.try_lock().unwrap_or_else(|| {
            progress("waiting for a calibration that is under way");
            self.calibrating.lock()
        })
    }
}
