//! Whether the host can carry a volume, and measuring it.

use ebbtide_device::host::{Calibration, Export, HostError, InstanceRequest};
use ebbtide_volume::Array;
use serde_json::Value;

use super::service::{Service, refuse_host};
use crate::control::Progress;

/// How a volume compares with the host.
#[derive(Debug)]
pub(super) struct Comparison {
    /// In which figures it exceeds what the host carries; empty where it does not.
    pub(super) exceeded: Vec<String>,
    /// Why the host could not be measured, where that is so.
    pub(super) not_calibrated: Option<String>,
}

impl Comparison {
    fn failed(error: HostError) -> Self {
        let error = format!("{:#}", anyhow::Error::new(error));
        tracing::warn!(error, "this host could not be calibrated");
        Self { exceeded: Vec::new(), not_calibrated: Some(error) }
    }
}

impl Service {
    /// In which figures a volume exceeds what this host can carry. A host that was never calibrated
    /// is calibrated first, briefly; where that fails, the volume can still be used, but nobody
    /// knows whether the host carries it.
    pub(super) fn compare_with_host(
        &self,
        array: &Array,
        instance: Option<&InstanceRequest>,
        export: &Export,
        progress: Progress<'_>,
    ) -> Comparison {
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
                match self.host.calibrate(true, progress) {
                    Ok(calibration) => calibration,
                    Err(error) => return Comparison::failed(error),
                }
            }
        };
        let exceeded = calibration.exceeded_by(array, instance, through_nbd);
        if exceeded.is_empty() || !calibration.quick {
            return Comparison { exceeded, not_calibrated: None };
        }
        // A moment in which the machine was busy must not refuse a volume.
        tracing::info!("a short calibration is no reason to refuse: measuring for about 20 seconds");
        progress("a short calibration is no reason to refuse: measuring for about 20 seconds");
        match self.host.calibrate(false, progress) {
            Ok(calibration) => {
                let exceeded = calibration.exceeded_by(array, instance, through_nbd);
                Comparison { exceeded, not_calibrated: None }
            }
            Err(error) => Comparison::failed(error),
        }
    }

    /// `volume calibrate`
    pub(super) fn calibrate(&self, quick: bool, progress: Progress<'_>) -> anyhow::Result<Value> {
        let calibration = self.host.calibrate(quick, progress).map_err(refuse_host)?;
        Ok(serde_json::to_value(calibration)?)
    }
}
