//! Whether the host can carry a volume, and measuring it.

use ebbtide_device::host::{Calibration, Export, InstanceRequest};
use ebbtide_volume::Array;
use serde_json::Value;

use super::service::{Service, refuse_host};
use crate::control::Progress;

impl Service {
    /// In which figures a volume exceeds what this host can carry. A host that was never calibrated
    /// is calibrated first, briefly.
    pub(super) fn compare_with_host(
        &self,
        array: &Array,
        instance: Option<&InstanceRequest>,
        export: &Export,
        progress: Progress<'_>,
    ) -> anyhow::Result<Vec<String>> {
        let through_nbd = matches!(export, Export::Nbd(_));
        let instance = instance.map(|instance| &instance.limits);
        let known = Calibration::load(&self.host.home().calibration_file())
            // Measured where no block device could be made, for example by another user.
            .filter(|known| through_nbd || known.block.is_some());
        let calibration = match known {
            Some(known) => known,
            None => {
                tracing::info!("this host was never calibrated: measuring it for about 3 seconds");
                progress("this host was never calibrated: measuring it for about 3 seconds");
                self.host.calibrate(true, progress).map_err(refuse_host)?
            }
        };
        let exceeded = calibration.exceeded_by(array, instance, through_nbd);
        if exceeded.is_empty() || !calibration.quick {
            return Ok(exceeded);
        }
        // A moment in which the machine was busy must not refuse a volume.
        tracing::info!("a short calibration is no reason to refuse: measuring for about 20 seconds");
        progress("a short calibration is no reason to refuse: measuring for about 20 seconds");
        let calibration = self.host.calibrate(false, progress).map_err(refuse_host)?;
        Ok(calibration.exceeded_by(array, instance, through_nbd))
    }

    /// `volume calibrate`
    pub(super) fn calibrate(&self, quick: bool, progress: Progress<'_>) -> anyhow::Result<Value> {
        let calibration = self.host.calibrate(quick, progress).map_err(refuse_host)?;
        Ok(serde_json::to_value(calibration)?)
    }
}
