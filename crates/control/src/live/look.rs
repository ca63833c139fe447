//! What is known of volumes.

use ebbtide_catalog::{Catalog, Prices};
use ebbtide_device::host::{Attachment, Status};
use ebbtide_device::store::{BLOCK_BYTES, VolumeInfo};
use ebbtide_volume::ModificationPhase;

use super::{LiveControl, occupancy};
use crate::record::{VolumeRecord, unix_s};
use crate::state::VolumeState;
use crate::{
    AttachmentKind, AttachmentView, ControlError, LiveView, ModificationView, Phase, UnixTime,
    VolumeCounters, VolumeDetail, VolumeView,
};

/// What views are made with: the home's catalogue and the prices of a region. Both are none where the
/// catalogue cannot be read, which must not hide the home's volumes.
struct Known<'a> {
    catalog: Option<&'a Catalog>,
    prices: Option<Prices<'a>>,
}

impl<'a> Known<'a> {
    fn of(catalog: Option<&'a Catalog>, region: Option<&str>) -> Result<Self, ControlError> {
        let prices = catalog.map(|catalog| catalog.prices(region)).transpose()?;
        Ok(Self { catalog, prices })
    }
}

impl LiveControl {
    /// All volumes, at the prices of a region, or of the default one.
    pub(super) fn list(&self, region: Option<&str>) -> Result<Vec<VolumeView>, ControlError> {
        let catalog = self.catalog().ok();
        let known = Known::of(catalog.as_ref(), region)?;
        let volumes = self.host.store().volumes();
        Ok(volumes.iter().map(|info| self.view(info, &self.host.status(&info.name), &known)).collect())
    }

    /// All that is known of a volume, at the prices of a region, or of the default one.
    pub(super) fn detail(&self, name: &str, region: Option<&str>) -> Result<VolumeDetail, ControlError> {
        let catalog = self.catalog().ok();
        let known = Known::of(catalog.as_ref(), region)?;
        let info = self.host.store().volume(name)?;
        let status = self.host.status(name);
        let live = match &status {
            Status::Attached(attachment) => Some(self.live_view(attachment)),
            Status::Free | Status::Busy(_) => None,
        };
        Ok(VolumeDetail { volume: self.view(&info, &status, &known), live })
    }

    /// The counters of all attached volumes.
    pub(super) fn counters_of_all(&self) -> Vec<VolumeCounters> {
        let of_one = |name: String| match self.host.status(&name) {
            Status::Attached(attachment) => {
                let (since, stats) = (attachment.info().since, attachment.live().stats());
                Some(VolumeCounters { name, since, stats })
            }
            Status::Free | Status::Busy(_) => None,
        };
        self.host.store().names().volumes.into_iter().filter_map(of_one).collect()
    }

    fn live_view(&self, attachment: &Attachment) -> LiveView {
        let live = attachment.live();
        let (span, minute) = attachment.minute();
        let followed = self.followed(&attachment.info().volume);
        LiveView {
            stats: live.stats(),
            minute_seconds: span.as_secs_f64(),
            minute,
            pacing: live.pacing(),
            faults: live.faults(),
            power_lost: !live.is_live(),
            host_errors: live.host_errors(),
            host_failures: live.host_failures(),
            shadows: followed.as_ref().and_then(|followed| followed.shadows(live.now())),
            recording: followed.and_then(|followed| followed.recording()),
        }
    }

    fn view(&self, info: &VolumeInfo, status: &Status, known: &Known<'_>) -> VolumeView {
        let now = self.host.now();
        let state = VolumeState::of(info, occupancy(status));
        let record = state.record.as_ref().ok();
        let resolved = record.zip(known.catalog).and_then(|(record, catalog)| {
            let spec = ebbtide_catalog::Spec::parse(&record.spec).ok()?;
            catalog.resolve(&spec).ok()
        });
        let attachment = match status {
            Status::Attached(attachment) => Some(attachment),
            Status::Free | Status::Busy(_) => None,
        };
        let credits = match attachment {
            Some(attachment) => attachment.live().credit_share(),
            None => record.zip(known.catalog).and_then(|(record, catalog)| {
                let saved = state.credits?;
                record.model(Some(saved), catalog, now).ok()?.credit_share(now)
            }),
        };
        let host_match = attachment.map(|attachment| attachment.host_match()).unwrap_or_default();
        VolumeView {
            name: info.name.clone(),
            spec: record.map(|record| record.spec.clone()).unwrap_or_default(),
            description: resolved.as_ref().map(|known| known.description.clone()).unwrap_or_default(),
            state: state.state(),
            size_bytes: info.size_bytes,
            data_bytes: info.data_blocks * BLOCK_BYTES,
            allocated_bytes: info.allocated_bytes,
            shared_bytes: info.shared_bytes,
            block_size: record.map_or(512, |record| record.block_size),
            seed: record.map_or(0, |record| record.seed),
            created: UnixTime::of_seconds(info.created_unix_s),
            from_snapshot: info.from_snapshot.clone(),
            from_volume: info.from_volume.clone(),
            credit_pct: credits.map(|share| share * 100.0),
            monthly_cost: known
                .prices
                .zip(resolved.as_ref())
                .and_then(|(prices, known)| prices.monthly_cost(known)),
            figures: resolved.map(|known| known.figures),
            modification: record.and_then(|record| modification_view(record, unix_s(now))),
            attachment: attachment.map(|attachment| attachment_view(attachment)),
            host_too_slow: host_match.too_slow,
            not_calibrated: host_match.not_calibrated,
            damage: info.damage.as_ref().map(ToString::to_string),
        }
    }
}

fn attachment_view(attachment: &Attachment) -> AttachmentView {
    let info = attachment.info();
    let path = |path: &std::path::PathBuf| path.display().to_string();
    AttachmentView {
        kind: if info.device.is_some() { AttachmentKind::Block } else { AttachmentKind::Nbd },
        device: info.device.as_ref().map(path),
        uri: info.uri.clone(),
        mount: info.mount.as_ref().map(path),
        fs: info.fs.map(|fs| fs.to_string()),
        made_fs: info.made_fs,
        instance: info.instance.clone(),
        since: UnixTime::of(info.since),
        power_lost: !attachment.live().is_live(),
    }
}

fn modification_view(record: &VolumeRecord, now_unix_s: i64) -> Option<ModificationView> {
    let latest = record.modifications.last()?;
    let (state, progress_pct) = match record.phase(now_unix_s)? {
        ModificationPhase::Modifying => (Phase::Modifying, 0),
        ModificationPhase::Optimizing { percent } => (Phase::Optimizing, percent),
        ModificationPhase::Completed => (Phase::Completed, 100),
    };
    Some(ModificationView {
        state,
        progress_pct,
        source: record.modified_from.clone()?,
        target: record.spec.clone(),
        started: UnixTime(latest.started_unix_s),
        completes: UnixTime(latest.completes_unix_s),
    })
}
