//! The server's part of `ebbtide volume list`, `show` and `fault`.

use ebbtide_catalog::{Catalog, Prices};
use ebbtide_device::faults::{AddedLatency, Affected, Errors, Faults};
use ebbtide_device::host::{Attachment, SavedCredits, Status};
use ebbtide_device::store::{BLOCK_BYTES, VolumeInfo};
use ebbtide_volume::{Nanos, Op, format_size};
use serde_json::Value;

use super::meta::Meta;
use super::service::{Service, refuse_catalog, refuse_host, refuse_store, unix_now_s};
use super::volumes::fresh_seed;
use crate::exit::Refusal;
use crate::text;
use crate::volume::args::FaultArgs;
use crate::volume::fault::FaultSetting;
use crate::volume::view::{
    AttachmentView, FaultView, LiveView, ModificationView, State, VolumeDetail, VolumeView,
};

impl Service {
    /// `volume list`, at the prices of a region, or of the default one.
    pub(super) fn list(&self, region: Option<&str>) -> anyhow::Result<Value> {
        let catalog = self.catalog().ok();
        let prices = prices(catalog.as_ref(), region)?;
        let all: Vec<_> = self.host.store().volumes().iter().map(|info| self.view(info, prices)).collect();
        Ok(serde_json::to_value(all)?)
    }

    /// `volume show`, at the prices of a region, or of the default one.
    pub(super) fn show(&self, name: &str, region: Option<&str>) -> anyhow::Result<Value> {
        Ok(serde_json::to_value(self.detail(name, region)?)?)
    }

    /// All that is known of a volume, at the prices of a region, or of the default one.
    pub(super) fn detail(&self, name: &str, region: Option<&str>) -> anyhow::Result<VolumeDetail> {
        let catalog = self.catalog().ok();
        let prices = prices(catalog.as_ref(), region)?;
        let info = self.host.store().volume(name).map_err(refuse_store)?;
        let live = match self.host.status(name) {
            Status::Attached(attachment) => Some(live_view(&attachment)),
            Status::Free | Status::Busy(_) => None,
        };
        Ok(VolumeDetail { volume: self.view(&info, prices), live })
    }

    fn view(&self, info: &VolumeInfo, prices: Option<Prices<'_>>) -> VolumeView {
        let status = self.host.status(&info.name);
        let meta = Meta::read(&info.meta).ok();
        let resolved = meta.as_ref().and_then(|meta| self.resolve(&meta.spec).ok());
        let attachment = match &status {
            Status::Attached(attachment) => Some(attachment),
            Status::Free | Status::Busy(_) => None,
        };
        let credits = match attachment {
            Some(attachment) => attachment.live().credit_share(),
            None => meta.as_ref().and_then(|meta| {
                SavedCredits::read(&info.meta)?;
                self.array_of(info, meta).ok()?.credit_share(self.host.now())
            }),
        };
        let state = match (&info.damage, &status) {
            (Some(_), _) => State::Damaged,
            (None, Status::Free) => State::Available,
            (None, Status::Busy(_)) => State::Busy,
            (None, Status::Attached(_)) => State::InUse,
        };
        let host_match = attachment.map(|attachment| attachment.host_match()).unwrap_or_default();
        VolumeView {
            name: info.name.clone(),
            spec: meta.as_ref().map(|meta| meta.spec.clone()).unwrap_or_default(),
            description: resolved.as_ref().map(|known| known.description.clone()).unwrap_or_default(),
            state,
            size_bytes: info.size_bytes,
            data_bytes: info.data_blocks * BLOCK_BYTES,
            allocated_bytes: info.allocated_bytes,
            shared_bytes: info.shared_bytes,
            block_size: meta.as_ref().map_or(512, |meta| meta.block_size),
            seed: meta.as_ref().map_or(0, |meta| meta.seed),
            created: text::timestamp(i64::try_from(info.created_unix_s).unwrap_or(i64::MAX)),
            from_snapshot: info.from_snapshot.clone(),
            from_volume: info.from_volume.clone(),
            credit_pct: credits.map(|share| share * 100.0),
            monthly_cost: prices
                .zip(resolved.as_ref())
                .and_then(|(prices, known)| prices.monthly_cost(known)),
            figures: resolved.map(|known| known.figures),
            modification: meta.as_ref().and_then(modification_view),
            attachment: attachment.map(|attachment| attachment_view(attachment)),
            host_too_slow: host_match.too_slow,
            not_calibrated: host_match.not_calibrated,
            damage: info.damage.as_ref().map(ToString::to_string),
        }
    }

    /// `volume fault`
    pub(super) fn fault(&self, args: &FaultArgs) -> anyhow::Result<Value> {
        let attachment = self.host.attached(&args.name).map_err(refuse_host)?;
        let live = attachment.live();
        let size = self.host.store().volume(&args.name).map_err(refuse_store)?.size_bytes;
        let mut faults = live.faults();
        let mut cut = None;
        for setting in &args.settings {
            match setting {
                FaultSetting::PowerCut(seed) => cut = Some(seed.unwrap_or_else(fresh_seed)),
                FaultSetting::ErrorRange(Some((offset, len))) if offset + len > size => {
                    return Err(beyond(&args.name, setting, size));
                }
                other => apply(&mut faults, other),
            }
        }
        if !args.settings.is_empty() {
            live.set_faults(faults).map_err(|error| refuse_host(error.into()))?;
            let settings: Vec<_> = args.settings.iter().map(ToString::to_string).collect();
            tracing::info!(volume = args.name, "faults: {}", settings.join(" "));
        }
        let report = match cut {
            Some(seed) => Some(live.power_cut(seed).map_err(|error| refuse_host(error.into()))?),
            None => None,
        };
        let (faults, power_lost) = (live.faults(), !live.is_live());
        let view = FaultView { volume: &args.name, faults, power_lost, power_cut: report };
        Ok(serde_json::to_value(view)?)
    }
}

/// The prices of a region; none where the home's catalogue cannot be read, which must not hide its volumes.
fn prices<'a>(catalog: Option<&'a Catalog>, region: Option<&str>) -> anyhow::Result<Option<Prices<'a>>> {
    catalog.map(|catalog| catalog.prices(region)).transpose().map_err(refuse_catalog)
}

/// Refuses a range that the volume has not, or not whole.
fn beyond(name: &str, setting: &FaultSetting, size: u64) -> anyhow::Error {
    let size = format_size(size);
    Refusal::usage(format!("'{setting}' ends beyond volume '{name}', which has {size}"))
        .hint(format!("give OFFSET+LENGTH up to {size} together"))
        .into()
}

/// Changes the faults in force as one word says.
fn apply(faults: &mut Faults, setting: &FaultSetting) {
    match setting {
        FaultSetting::Latency { op, added } => {
            let affected = match op {
                Some(Op::Read) => Affected::Reads,
                Some(Op::Write) => Affected::Writes,
                _ => Affected::All,
            };
            // `latency=` without a kind replaces whatever was added to one kind.
            faults.latency.retain(|old| affected != Affected::All && old.affected != affected);
            let us = u32::try_from(added.as_micros()).unwrap_or(u32::MAX);
            if us > 0 {
                faults.latency.push(AddedLatency { affected, us });
            }
        }
        FaultSetting::Errors { ppm } => {
            faults.errors.retain(|old| old.range.is_some());
            if *ppm > 0 {
                faults.errors.push(Errors { affected: Affected::All, per_million: *ppm, range: None });
            }
        }
        FaultSetting::ErrorRange(range) => {
            faults.errors.retain(|old| old.range.is_none());
            if let Some((offset, len)) = *range {
                let range = Some(offset..offset + len);
                faults.errors.push(Errors { affected: Affected::All, per_million: 1_000_000, range });
            }
        }
        FaultSetting::Stall(on) => faults.stalled = *on,
        FaultSetting::AnswerEarly(on) => faults.answer_early = *on,
        FaultSetting::IgnoreFlush(on) => faults.ignore_flush = *on,
        FaultSetting::Clear => *faults = Faults::default(),
        FaultSetting::PowerCut(_) => {}
    }
}

fn live_view(attachment: &Attachment) -> LiveView {
    let live = attachment.live();
    let (span, minute) = attachment.minute();
    LiveView {
        stats: live.stats(),
        minute_seconds: span.as_secs_f64(),
        minute,
        pacing: live.pacing(),
        faults: live.faults(),
        power_lost: !live.is_live(),
        host_errors: live.host_errors(),
    }
}

fn attachment_view(attachment: &Attachment) -> AttachmentView {
    let info = attachment.info();
    let path = |path: &std::path::PathBuf| path.display().to_string();
    AttachmentView {
        kind: if info.device.is_some() { "block" } else { "nbd" }.to_owned(),
        device: info.device.as_ref().map(path),
        uri: info.uri.clone(),
        mount: info.mount.as_ref().map(path),
        fs: info.fs.map(|fs| fs.to_string()),
        made_fs: info.made_fs,
        instance: info.instance.clone(),
        since: text::timestamp(unix_s(info.since)),
        power_lost: !attachment.live().is_live(),
    }
}

fn modification_view(meta: &Meta) -> Option<ModificationView> {
    let record = meta.modifications.last()?;
    let now = unix_now_s();
    let (state, progress_pct) = if now >= record.completes_unix_s {
        ("completed", 100)
    } else if now < record.optimizing_unix_s {
        ("modifying", 0)
    } else {
        let span = (record.completes_unix_s - record.optimizing_unix_s).max(1);
        let percent = (now - record.optimizing_unix_s).saturating_mul(100) / span;
        ("optimizing", u8::try_from(percent.clamp(0, 99)).unwrap_or(99))
    };
    Some(ModificationView {
        state: state.to_owned(),
        progress_pct,
        source: meta.modified_from.clone()?,
        target: meta.spec.clone(),
        started: text::timestamp(record.started_unix_s),
        completes: text::timestamp(record.completes_unix_s),
    })
}

fn unix_s(at: Nanos) -> i64 {
    i64::try_from(at.0 / Nanos::SECOND.0).unwrap_or(i64::MAX)
}
