//! When a volume may be modified, into what, and how long it takes (Elastic Volumes).

use ebbtide_volume::{GIB, TIB, format_size};
use jiff::Timestamp;

use crate::{
    Catalog, CatalogError, ModifyRejection, Raid0, Resolved, Spec, VolumeSpec,
    data::{Class, IopsRule, ThroughputRule},
    numbers::whole,
};

const DAY_S: i64 = 24 * 3600;
const HOUR_S: i64 = 3600;

/// A modification that was started earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ModificationRecord {
    /// When it was requested, in seconds since 1970.
    pub started_unix_s: i64,
    /// When `optimizing` begins (or began), in seconds since 1970.
    pub optimizing_unix_s: i64,
    /// When it completes (or completed), in seconds since 1970.
    pub completes_unix_s: i64,
}

/// An allowed modification.
#[derive(Debug, Clone, PartialEq)]
pub struct ModifyPlan {
    /// The target with everything filled in; `target.spec` is what the volume becomes.
    pub target: Resolved,
    /// Seconds from the request until the new size is there and `optimizing` begins.
    pub optimizing_after_s: u64,
    /// Seconds from the request until it is completed.
    pub completes_after_s: u64,
}

impl ModifyPlan {
    /// The record to keep of this modification, started at `now_unix_s`.
    #[must_use]
    pub fn record(&self, now_unix_s: i64) -> ModificationRecord {
        ModificationRecord {
            started_unix_s: now_unix_s,
            optimizing_unix_s: now_unix_s.saturating_add_unsigned(self.optimizing_after_s),
            completes_unix_s: now_unix_s.saturating_add_unsigned(self.completes_after_s),
        }
    }
}

/// How often a volume may be modified, and how long that takes, as of today.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModificationRate {
    /// Modifications that may be started in a rolling 24 hours, each once the one before is completed.
    pub per_day: usize,
    /// Hours that a volume of 1 TiB is `optimizing` at most.
    pub optimizing_h_per_tib: f64,
}

impl Catalog {
    /// How often a volume may be modified today (EBS user guide, `ebs-modify-volume`).
    #[must_use]
    pub fn modification_rate(&self) -> ModificationRate {
        ModificationRate {
            per_day: self.modification.per_day,
            optimizing_h_per_tib: self.modification.optimizing_h_per_tib,
        }
    }
}

/// Decides on a modification as AWS does.
///
/// `to` may leave out what stays as it is; for an array it may name the members' new volume alone.
/// `past` are the volume's earlier modifications in any order; `now_unix_s` is the wall clock in
/// seconds since 1970. The parameters are judged before the rate, as AWS does.
///
/// # Errors
/// What AWS would refuse, in its words.
pub fn check_modify(
    catalog: &Catalog,
    from: &Spec,
    to: &Spec,
    past: &[ModificationRecord],
    now_unix_s: i64,
) -> Result<ModifyPlan, CatalogError> {
    let source = catalog.resolve(from)?;
    let target = catalog.resolve(&merged(catalog, &source, to)?)?;
    let (old, new) = (size(&source.spec.volume), size(&target.spec.volume));
    if new < old {
        return Err(ModifyRejection::Shrinks { from_gib: old / GIB, to_gib: new / GIB }.into());
    }
    if source.spec.volume
        == (VolumeSpec { credits: source.spec.volume.credits, ..target.spec.volume.clone() })
    {
        return Err(ModifyRejection::NothingToDo.into());
    }
    check_rate(catalog, past, now_unix_s)?;
    let rules = &catalog.modification;
    let optimizing = whole(rules.optimizing_h_per_tib * 3600.0 * new as f64 / TIB as f64);
    Ok(ModifyPlan {
        target,
        optimizing_after_s: rules.modifying_s,
        completes_after_s: rules.modifying_s + optimizing.max(rules.optimizing_min_s),
    })
}

fn size(volume: &VolumeSpec) -> u64 {
    volume.size_bytes.expect("a resolved spec has its size")
}

/// The target spec: what `to` gives, and for the rest what AWS keeps or takes by default.
fn merged(catalog: &Catalog, source: &Resolved, to: &Spec) -> Result<Spec, CatalogError> {
    let from = &source.spec;
    let raid0 = match (from.raid0, to.raid0) {
        (from, None) => from,
        (Some(old), Some(new))
            if old.members == new.members && new.chunk_bytes.is_none_or(|c| Some(c) == old.chunk_bytes) =>
        {
            Some(old)
        }
        (old, Some(new)) => {
            let text = |raid0: Option<Raid0>| match raid0 {
                None => "1 volume".to_owned(),
                Some(Raid0 { members, chunk_bytes }) => match chunk_bytes {
                    Some(chunk) => format!("{members} volumes, chunk {}", format_size(chunk)),
                    None => format!("{members} volumes"),
                },
            };
            return Err(ModifyRejection::Restripe { from: text(old), to: text(Some(new)) }.into());
        }
    };
    if to.volume.credits.is_some() {
        return Err(ModifyRejection::CreationOnly("credits").into());
    }
    let same_type = from.volume.kind == to.volume.kind;
    let volume = VolumeSpec {
        as_of: to.volume.as_of.or(from.volume.as_of.filter(|_| same_type)),
        size_bytes: to.volume.size_bytes.or(from.volume.size_bytes),
        twp: to.volume.twp.or(chosen_twp(catalog, &from.volume)?),
        ..to.volume.clone()
    };
    let (old, _) = catalog.find(&from.volume)?;
    let (new, _) = catalog.find(&volume)?;
    if old.class != Class::Ebs || new.class != Class::Ebs {
        let (from, to) = (old.name.clone(), new.name.clone());
        return Err(ModifyRejection::TypeChange { from, to }.into());
    }
    let volume = if same_type {
        VolumeSpec {
            iops: volume.iops.or(from.volume.iops),
            throughput_mib_s: volume.throughput_mib_s.or(from.volume.throughput_mib_s),
            ..volume
        }
    } else {
        with_type_defaults(catalog, source, volume)?
    };
    Ok(Spec { volume, raid0 })
}

/// Torn-write prevention where the volume has it otherwise than by default.
fn chosen_twp(catalog: &Catalog, volume: &VolumeSpec) -> Result<Option<bool>, CatalogError> {
    let default =
        catalog.resolve(&Spec { volume: VolumeSpec { twp: None, ..volume.clone() }, raid0: None })?;
    Ok(if default.spec.volume.twp == volume.twp { None } else { volume.twp })
}

/// IOPS and throughput that a change of the type leaves out: from gp2 to gp3 what the gp2 had and
/// at least gp3's own; otherwise the API's defaults.
fn with_type_defaults(
    catalog: &Catalog,
    source: &Resolved,
    volume: VolumeSpec,
) -> Result<VolumeSpec, CatalogError> {
    let (_, period) = catalog.find(&volume)?;
    let keeps = &catalog.modification.keeps_performance;
    let keeps = source.spec.volume.kind == keeps.from && volume.kind == keeps.to;
    let figures = &source.figures;
    let iops = match period.iops {
        Some(IopsRule::Provisioned { default, .. }) => {
            let default = default.unwrap_or(catalog.modification.iops_on_type_change);
            let equivalent = figures.iops.filter(|_| keeps).unwrap_or(0);
            volume.iops.or(Some(default.max(equivalent)))
        }
        _ => volume.iops,
    };
    let throughput_mib_s = match period.throughput {
        Some(ThroughputRule::Provisioned { default, .. }) => {
            let equivalent = figures.throughput_mib_s.filter(|_| keeps).map_or(0, whole);
            volume.throughput_mib_s.or(Some(default.max(equivalent)))
        }
        _ => volume.throughput_mib_s,
    };
    Ok(VolumeSpec { iops, throughput_mib_s, ..volume })
}

/// Whether the volume's earlier modifications allow another one now.
fn check_rate(catalog: &Catalog, past: &[ModificationRecord], now: i64) -> Result<(), ModifyRejection> {
    let rules = &catalog.modification;
    if let Some(open) = past.iter().find(|record| record.completes_unix_s > now) {
        let state = if now < open.optimizing_unix_s { "MODIFYING" } else { "OPTIMIZING" };
        return Err(ModifyRejection::InProgress { state, completes: iso(open.completes_unix_s) });
    }
    let mut starts: Vec<i64> = past.iter().map(|record| record.started_unix_s).collect();
    starts.sort_unstable_by(|a, b| b.cmp(a));
    if now < new_rule_from(rules.since) {
        let wait = rules.wait_before_h * HOUR_S;
        return match starts.first() {
            Some(last) if last + wait > now => Err(ModifyRejection::TooSoon { next: iso(last + wait) }),
            _ => Ok(()),
        };
    }
    match starts.get(rules.per_day - 1) {
        Some(fourth) if fourth + DAY_S > now => {
            Err(ModifyRejection::RateExceeded { limit: rules.per_day, next: iso(fourth + DAY_S) })
        }
        _ => Ok(()),
    }
}

fn new_rule_from(day: jiff::civil::Date) -> i64 {
    let zoned = day.to_zoned(jiff::tz::TimeZone::UTC);
    zoned.map_or(0, |midnight| midnight.timestamp().as_second())
}

fn iso(unix_s: i64) -> String {
    Timestamp::from_second(unix_s).map_or_else(|_| format!("{unix_s} s after 1970"), |time| time.to_string())
}
