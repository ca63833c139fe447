//! What is known of volumes.

use ebbtide_catalog::{Catalog, Prices};
use ebbtide_device::host::{Attachment, Status};
use ebbtide_device::store::{BLOCK_BYTES, VolumeInfo};
use ebbtide_volume::{
    Array, LOAD_BLOCK_BYTES, LoadProgress, MIB, ModificationPhase, Nanos, Stats, VolumeInterval,
};

use super::{LiveControl, occupancy};
use crate::record::{VolumeRecord, unix_s};
use crate::state::VolumeState;
use crate::{
    AttachmentKind, AttachmentView, ControlError, CreditsView, InitializationState, InitializationView,
    InstanceBalances, LastMinuteView, LiveView, ModificationView, Phase, UnixTime, VolumeCounters,
    VolumeDetail, VolumeView,
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

    /// How far volumes are loaded.
    pub(super) fn loading(&self, names: &[&str]) -> Result<Vec<Option<InitializationView>>, ControlError> {
        let catalog = self.catalog()?;
        let of = |name: &&str| {
            let name = &*self.name_of(name);
            let info = self.host.store().volume(name).ok()?;
            let status = self.host.status(name);
            let state = VolumeState::of(&info, occupancy(&status));
            state.record.as_ref().ok()?.initialization?;
            initialization_view(&state, model_look(&state, &status, Some(&catalog), self.host.now()).1)
        };
        Ok(names.iter().map(of).collect())
    }

    /// The counters of all attached volumes.
    pub(super) fn counters_of_all(&self) -> Vec<VolumeCounters> {
        let of_one = |name: String| match self.host.status(&name) {
            Status::Attached(attachment) => {
                let (since, stats) = (attachment.info().since, attachment.live().stats());
                let instance = attachment.live().instance_balances();
                let instance = instance.map(|(io, bytes)| InstanceBalances { io, bytes });
                let id = self.index.id(&name);
                Some(VolumeCounters { name, id, since, stats, instance })
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
        let samples = attachment.map(|attachment| attachment.samples());
        let (credits, loading) = model_look(&state, status, known.catalog, now);
        let refill_s = resolved.as_ref().and_then(|known| known.figures.refill_seconds);
        let credits_view =
            credits.map(|left| CreditsView::new(left, samples.as_deref().and_then(credits_before), refill_s));
        // A volume that was never attached by a program that saves credits has none saved.
        let credits = credits.filter(|_| attachment.is_some() || state.credits.is_some());
        let host_match = attachment.map(|attachment| attachment.host_match()).unwrap_or_default();
        VolumeView {
            name: info.name.clone(),
            id: record.and_then(|record| record.id.clone()),
            owner: record.and_then(|record| self.owner_of(&info.name, record)),
            spec: record.map(|record| record.spec.clone()).unwrap_or_default(),
            description: resolved.as_ref().map(|known| known.description.clone()).unwrap_or_default(),
            state: state.state(),
            size_bytes: info.size_bytes,
            data_bytes: info.data_blocks * BLOCK_BYTES,
            allocated_bytes: info.allocated_bytes,
            shared_bytes: info.shared_bytes,
            block_size: record.map_or(512, |record| record.block_size),
            seed: record.map_or(0, |record| record.seed),
            key_id: info.key_id.clone(),
            created: UnixTime::of_seconds(info.created_unix_s),
            from_snapshot: info.from_snapshot.clone(),
            from_volume: info.from_volume.clone(),
            credit_pct: credits.map(|share| share * 100.0),
            credits: credits_view,
            last_minute: samples.as_deref().map(by_second),
            monthly_cost: known
                .prices
                .zip(resolved.as_ref())
                .and_then(|(prices, known)| prices.monthly_cost(known)),
            figures: resolved.map(|known| known.figures),
            modification: record.and_then(|record| modification_view(record, unix_s(now))),
            initialization: initialization_view(&state, loading),
            attachment: attachment.map(|attachment| attachment_view(attachment)),
            host_too_slow: host_match.too_slow,
            not_calibrated: host_match.not_calibrated,
            damage: info.damage.as_ref().map(ToString::to_string),
        }
    }
}

/// The share of credits at the first of the samples, and how many seconds ago that was.
fn credits_before(samples: &[Stats]) -> Option<(f64, f64)> {
    let (first, last) = (samples.first()?, samples.last()?);
    Some((first.credit_share?, last.at.since(first.at).as_secs_f64()))
}

/// The I/O between each sample and the next.
fn by_second(samples: &[Stats]) -> LastMinuteView {
    // The last sample is the present, which may be a moment after the one before.
    let spans = samples.windows(2).map(|pair| pair[1].since(&pair[0]));
    let whole: Vec<VolumeInterval> = spans.filter(|span| span.seconds() >= 0.5).collect();
    LastMinuteView {
        iops: whole.iter().map(|span| span.per_second(span.ios())).collect(),
        mib_s: whole.iter().map(|span| span.bytes() as f64 / MIB as f64 / span.seconds()).collect(),
    }
}

/// Credits and loading of a volume's model now: of the live one, or of the one that would be attached. None where the volume
/// has none, or where its model cannot be made.
fn model_look(
    state: &VolumeState,
    status: &Status,
    catalog: Option<&Catalog>,
    now: Nanos,
) -> (Option<f64>, Option<LoadProgress>) {
    let look = |array: &Array, now| (array.credit_share(now), array.load_progress(now));
    if let Status::Attached(attachment) = status {
        return attachment.live().inspect(look);
    }
    let model = state.record.as_ref().ok().zip(catalog);
    let model = model.and_then(|(record, catalog)| state.model(record, catalog, now).ok());
    model.map(|model| look(&model, now)).unwrap_or_default()
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

fn initialization_view(state: &VolumeState, loading: Option<LoadProgress>) -> Option<InitializationView> {
    let (mode, loading) = state.record.as_ref().ok()?.initialization.zip(loading)?;
    let (blocks, loaded) = (loading.blocks(), loading.counts.total());
    let percent = (loaded * 100).checked_div(blocks).unwrap_or(100);
    Some(InitializationView {
        mode,
        state: match loading.missing {
            0 => InitializationState::Completed,
            _ => InitializationState::Initializing,
        },
        progress_pct: u8::try_from(percent).unwrap_or(100),
        total_bytes: blocks * LOAD_BLOCK_BYTES,
        loaded_bytes: loaded * LOAD_BLOCK_BYTES,
        since: UnixTime::of(loading.since),
        completes: loading.completes.map(UnixTime::of),
    })
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
