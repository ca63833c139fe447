//! What CloudWatch needs to know of the volumes.

use super::Ec2;
use super::records::AttachStage;
use crate::monitoring::{Attached, Inventory};

impl Inventory for Ec2 {
    fn tick(&self, now_ms: u64) {
        self.look_for_initialized(now_ms);
        self.empty_bin(now_ms);
        self.publish_due(now_ms);
    }

    fn attached(&self, now_ms: u64) -> Vec<Attached> {
        let state = self.state.lock();
        let volumes = state.volumes().values().filter_map(|volume| {
            let attachment = volume.attachment.as_ref()?;
            if matches!(attachment.stage, AttachStage::Gone { .. }) {
                return None;
            }
            Some(Attached {
                volume: volume.id.clone(),
                owner: volume.owner.clone(),
                region: volume.region.clone(),
                instance: attachment.instance.clone(),
                kind: volume.shape_at(now_ms).kind.clone(),
            })
        });
        volumes.collect()
    }
}
