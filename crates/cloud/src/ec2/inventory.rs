//! What CloudWatch needs to know of the volumes and instances.

use std::collections::BTreeMap;
use std::ops::Range;

use super::Ec2;
use super::records::{Power, Stage, Volume};
use crate::monitoring::{Attached, Gauge, Inventory, Recorded, Running, SHARED};

impl Inventory for Ec2 {
    fn tick(&self, now_ms: u64) {
        self.follow(now_ms);
        self.look_for_initialized(now_ms);
        self.empty_bin(now_ms);
        self.publish_due(now_ms);
    }

    fn attached(&self, now_ms: u64) -> Vec<Attached> {
        let state = self.state.lock();
        let volumes = state.volumes().values().filter_map(|volume| {
            let attachment = volume.attachments.iter().find(|at| at.holds() && !at.without_device)?;
            let (kind, is_shared) = (&volume.shape_at(now_ms).kind, volume.shape.multi_attach);
            Some(Attached {
                volume: volume.id.clone(),
                owner: volume.owner.clone(),
                region: volume.region.clone(),
                instance: if is_shared { String::new() } else { attachment.instance.clone() },
                kind: if is_shared { format!("{kind}/{SHARED}") } else { kind.clone() },
            })
        });
        volumes.collect()
    }

    fn recorded(&self, volume: &str, now_ms: u64) -> Option<Recorded> {
        let state = self.state.lock();
        state.volumes().get(volume).and_then(|volume| recorded(volume, now_ms))
    }

    fn all_recorded(&self, (owner, region): (&str, &str), now_ms: u64) -> Vec<Recorded> {
        let state = self.state.lock();
        let own = state.volumes().values().filter(|volume| volume.owner == owner && volume.region == region);
        own.filter_map(|volume| recorded(volume, now_ms)).collect()
    }

    fn running(&self, now_ms: u64) -> Vec<Running> {
        let state = self.state.lock();
        let running = state.instances().values().filter(|instance| instance.power(now_ms) == Power::Running);
        let of_one = running.map(|instance| Running {
            owner: instance.owner.clone(),
            region: instance.region.clone(),
            instance: instance.id.clone(),
        });
        of_one.collect()
    }

    fn gauges(&self, minute_ms: Range<u64>) -> Vec<Gauge> {
        let now = minute_ms.end - 1;
        let mut gauges = Vec::new();
        let mut moved: BTreeMap<(&str, &str, &str), u64> = BTreeMap::new();
        let state = self.state.lock();
        for snapshot in state.snapshots().values() {
            if let Some(transfer) = &snapshot.transfer {
                let bytes = snapshot.transferred(minute_ms.end) - snapshot.transferred(minute_ms.start);
                if bytes > 0 {
                    let key = (snapshot.owner.as_str(), snapshot.region.as_str(), transfer.region.as_str());
                    *moved.entry(key).or_default() += bytes;
                }
            }
            for restore in &snapshot.fast_restores {
                let Some((size, balance)) = restore.credits(snapshot.size_gib, now) else { continue };
                let gauge = |metric, value| Gauge {
                    owner: restore.account.clone(),
                    region: snapshot.region.clone(),
                    metric,
                    dimensions: vec![
                        ("AvailabilityZone", restore.zone.clone()),
                        ("SnapshotId", snapshot.id.clone()),
                    ],
                    value,
                };
                gauges.push(gauge("FastSnapshotRestoreCreditsBalance", balance));
                gauges.push(gauge("FastSnapshotRestoreCreditsBucketSize", size));
            }
        }
        gauges.extend(moved.into_iter().map(|((owner, region, source), bytes)| Gauge {
            owner: owner.to_owned(),
            region: region.to_owned(),
            metric: "SnapshotCopyBytesTransferred",
            dimensions: vec![("sourceRegion", source.to_owned())],
            value: bytes as f64,
        }));
        gauges
    }
}

/// Under which name the minutes of a volume are recorded while a command has it attached.
fn recorded(volume: &Volume, now_ms: u64) -> Option<Recorded> {
    (volume.stage == Stage::Ready).then(|| Recorded {
        volume: volume.id.clone(),
        name: volume.control_name().to_owned(),
        owner: volume.owner.clone(),
        region: volume.region.clone(),
        kind: volume.shape_at(now_ms).kind.clone(),
        since_ms: volume.created_ms,
    })
}
