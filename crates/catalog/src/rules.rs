//! The formulas of each type's limits, and the requests that AWS refuses.

use ebbtide_volume::{GIB, KIB, MIB, RateLimit, TIB, format_size};

use crate::{
    CatalogError, Rejection, VolumeSpec,
    data::{Class, IopsRule, Period, ThroughputRule, TypeEntry},
    numbers::whole,
    resolved::gib,
};

/// A request that AWS would accept, with its defaults filled in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    pub(crate) size_bytes: u64,
    /// Provisioned IOPS; none where the type has none to set.
    pub(crate) iops: Option<u64>,
    /// Provisioned MiB/s; none where the type has none to set.
    pub(crate) throughput_mib_s: Option<u64>,
}

impl Request {
    /// Validates in the order in which AWS does: which parameters there may be, then the size,
    /// then the IOPS, then the throughput.
    pub(crate) fn of(spec: &VolumeSpec, entry: &TypeEntry, period: &Period) -> Result<Self, CatalogError> {
        check_parameters(spec, entry, period)?;
        let size_bytes = size(spec, entry, period)?;
        let iops = iops(spec, period, gib(size_bytes)).map_err(|cause| together(period, cause))?;
        let throughput_mib_s = throughput(spec, period, iops)?;
        Ok(Self { size_bytes, iops, throughput_mib_s })
    }
}

fn check_parameters(spec: &VolumeSpec, entry: &TypeEntry, period: &Period) -> Result<(), CatalogError> {
    let kind = || entry.name.clone();
    let device = entry.class != Class::Ebs;
    let own = |key| CatalogError::NoSuchSetting {
        kind: kind(),
        key,
        why: "a device's performance is its own; copy the type in the overrides file to change it".into(),
    };
    match (period.iops, spec.iops) {
        (Some(IopsRule::Provisioned { default: None, min, max, .. }), None) => {
            return Err(Rejection::IopsMissing { kind: kind(), min, max }.into());
        }
        (Some(IopsRule::Provisioned { .. }), _) | (_, None) => {}
        (_, Some(_)) if device => return Err(own("iops")),
        (_, Some(_)) => return Err(Rejection::IopsNotSupported { kind: kind() }.into()),
    }
    match (period.throughput, spec.throughput_mib_s) {
        (Some(ThroughputRule::Provisioned { .. }), _) | (_, None) => Ok(()),
        (_, Some(_)) if device => Err(own("throughput")),
        (_, Some(_)) => Err(Rejection::ThroughputNotSupported { kind: kind() }.into()),
    }
}

fn size(spec: &VolumeSpec, entry: &TypeEntry, period: &Period) -> Result<u64, CatalogError> {
    let default = period.default_size_bytes.or(period.default_size_gib.map(|gib| gib * GIB));
    let bytes = spec.size_bytes.or(default).ok_or(Rejection::NoSize)?;
    if let (Class::InstanceStore, Some(disks)) = (entry.class, period.default_size_bytes)
        && bytes > disks
    {
        return Err(CatalogError::DisksTooSmall {
            kind: entry.name.clone(),
            size: format_size(bytes),
            max: format_size(disks),
        });
    }
    let Some([min, max]) = period.size_gib else { return Ok(bytes) };
    let kind = || entry.name.clone();
    if !bytes.is_multiple_of(GIB) {
        return Err(Rejection::NotWholeGib { size: format_size(bytes) }.into());
    }
    match gib(bytes) {
        gib if gib < min => Err(Rejection::TooSmall { kind: kind(), gib, min }.into()),
        gib if gib > max => Err(together(period, Rejection::TooLarge { kind: kind(), gib, max }).into()),
        _ => Ok(bytes),
    }
}

fn iops(spec: &VolumeSpec, period: &Period, gib: u64) -> Result<Option<u64>, Rejection> {
    let Some(IopsRule::Provisioned { min, max, default, per_gib, any_size, .. }) = period.iops else {
        return Ok(None);
    };
    let iops = spec.iops.or(default).expect("a missing value without a default was refused before");
    if iops < min {
        return Err(Rejection::IopsTooLow { iops, min });
    }
    if iops > max {
        return Err(Rejection::IopsTooHigh { iops, max });
    }
    if iops > any_size && iops > gib * per_gib {
        return Err(Rejection::IopsPerGib { iops, gib, max: per_gib });
    }
    Ok(Some(iops))
}

fn throughput(spec: &VolumeSpec, period: &Period, iops: Option<u64>) -> Result<Option<u64>, Rejection> {
    let Some(ThroughputRule::Provisioned { min, max, default, per_iops, .. }) = period.throughput else {
        return Ok(None);
    };
    let mib_s = spec.throughput_mib_s.unwrap_or(default);
    if mib_s < min {
        return Err(Rejection::ThroughputTooLow { mib_s, min });
    }
    if mib_s > max {
        return Err(Rejection::ThroughputTooHigh { mib_s, max });
    }
    match iops {
        Some(iops) if mib_s as f64 > iops as f64 * per_iops => {
            Err(Rejection::ThroughputPerIops { mib_s, iops, max: per_iops })
        }
        _ => Ok(Some(mib_s)),
    }
}

/// AWS's one sentence for all of a type's upper limits, where it has one.
fn together(period: &Period, cause: Rejection) -> Rejection {
    let upper = matches!(
        cause,
        Rejection::TooLarge { .. } | Rejection::IopsTooHigh { .. } | Rejection::IopsPerGib { .. }
    );
    match &period.together {
        Some(sentence) if upper => Rejection::Together { sentence: sentence.clone(), cause: Box::new(cause) },
        _ => cause,
    }
}

/// The limits of an accepted request: IOPS and bytes a second.
///
/// For gp2 between 170 and 334 GiB, AWS grants the upper throughput only while credits remain. No
/// rule is needed for that: without credits the baseline IOPS at 256 KiB each are below it.
pub(crate) fn rates(request: &Request, period: &Period) -> (Option<RateLimit>, Option<RateLimit>) {
    let gib = gib(request.size_bytes);
    let iops = period.iops.map(|rule| iops_rate(rule, gib, request.iops));
    let throughput = period.throughput.map(|rule| throughput_rate(rule, request));
    (iops, throughput)
}

fn iops_rate(rule: IopsRule, gib: u64, provisioned: Option<u64>) -> RateLimit {
    match rule {
        IopsRule::BySize { per_gib, min, max, burst, credits } => {
            let rate = (gib * per_gib).clamp(min, max);
            if rate < burst {
                RateLimit { rate, ceiling: burst, allowance: 0, credits }
            } else {
                RateLimit::flat(rate)
            }
        }
        IopsRule::Provisioned { min, allowance_s, .. } => {
            let rate = provisioned.unwrap_or(min);
            RateLimit { allowance: whole(rate as f64 * allowance_s), ..RateLimit::flat(rate) }
        }
        IopsRule::Fixed { iops } => RateLimit::flat(iops),
    }
}

fn throughput_rate(rule: ThroughputRule, request: &Request) -> RateLimit {
    let gib = gib(request.size_bytes);
    match rule {
        ThroughputRule::BySize { mib_s, rising_mib_s_per_gib, max_mib_s } => {
            let rising = whole(gib as f64 * rising_mib_s_per_gib * MIB as f64);
            RateLimit::flat(rising.clamp(mib_s * MIB, max_mib_s * MIB))
        }
        ThroughputRule::Step { small_gib, small_mib_s, large_mib_s } => {
            RateLimit::flat(if gib <= small_gib { small_mib_s } else { large_mib_s } * MIB)
        }
        ThroughputRule::Provisioned { min, allowance_s, .. } => {
            let rate = request.throughput_mib_s.unwrap_or(min) * MIB;
            RateLimit { allowance: whole(rate as f64 * allowance_s), ..RateLimit::flat(rate) }
        }
        ThroughputRule::PerIops { .. } => RateLimit::flat(per_iops(rule, request.iops.unwrap_or(0))),
        ThroughputRule::PerTib { base_mib_s, base_max_mib_s, burst_mib_s, burst_max_mib_s } => {
            let share = |mib_s: u64, max: u64| (gib * mib_s * (MIB / 1024)).min(max * MIB);
            let rate = share(base_mib_s, base_max_mib_s);
            let ceiling = share(burst_mib_s, burst_max_mib_s);
            // 1 TiB of credits per TiB of volume is the volume's own size.
            let credits = if ceiling > rate { gib * (TIB / 1024) } else { 0 };
            RateLimit { rate, ceiling, allowance: 0, credits }
        }
        ThroughputRule::Fixed { mib_s } => RateLimit::flat(mib_s * MIB),
    }
}

/// io1 and io2: bytes a second for provisioned IOPS.
fn per_iops(rule: ThroughputRule, iops: u64) -> u64 {
    let ThroughputRule::PerIops { kib_per_iops, max_mib_s, above_iops, above_kib_per_iops, above_max_mib_s } =
        rule
    else {
        return 0;
    };
    let share = |kib: f64, max: u64| whole(iops as f64 * kib * KIB as f64).min(max * MIB);
    match (above_iops, above_kib_per_iops, above_max_mib_s) {
        (Some(above), Some(kib), Some(max)) if iops > above => share(kib, max),
        _ => share(kib_per_iops, max_mib_s),
    }
}
