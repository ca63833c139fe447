//! Limits that are reached: of a volume (E03), and of the instance for all its volumes (E04).

use ebbtide_catalog::{InstanceType, Resolved};
use ebbtide_observe::{Exceeded, NotSeen, Role};
use ebbtide_volume::RateLimit;

use super::carried::{Replacement, as_gp3, instead, iops_for, is_kind, load, subject};
use super::{figure, percent, size};
use crate::finding::{Benefit, FINE, Found, Gap, Judged, Severity};
use crate::fix::Fix;
use crate::view::View;

/// A share of the interval over a limit that is none to speak of.
const SELDOM: f64 = 0.01;

/// The larger share of the interval in which a limit was exceeded, with the name of the limit; None where EBS was not
/// asked.
fn exceeded(v: &View<'_>, files: Role, of: fn(Exceeded) -> (f64, f64)) -> Option<(f64, &'static str)> {
    let (iops, throughput) = of(v.device_of(files).ok()?.exceeded?);
    // The confidence of an interval.
    let _ = v.metric("page_writes");
    Some(if iops >= throughput { (iops, "IOPS") } else { (throughput, "throughput") })
}

fn by_volume(v: &View<'_>, files: Role) -> Option<(f64, &'static str)> {
    let found = exceeded(v, files, |all| (all.volume_iops, all.volume_throughput));
    found.map(|(share, what)| {
        (v.noted("volume_exceeded_share", share, "share of the interval in which the volume was asked for more than it gives, as EBS counted it"), what)
    })
}

fn by_instance(v: &View<'_>, files: Role) -> Option<(f64, &'static str)> {
    let found = exceeded(v, files, |all| (all.instance_iops, all.instance_throughput));
    found.map(|(share, what)| {
        (v.noted("instance_exceeded_share", share, "share of the interval in which the instance was asked for more than it gives its volumes, as EBS counted it"), what)
    })
}

/// Whether EBS itself held I/O back, so that latency is that of a limit.
pub(super) fn is_throttled(v: &View<'_>, files: Role) -> bool {
    [by_volume(v, files), by_instance(v, files)].into_iter().flatten().any(|(share, _)| share > SELDOM)
}

pub(super) fn limit(v: &View<'_>, files: Role) -> Judged {
    if let Some((share, what)) = by_volume(v, files).filter(|(share, _)| *share > SELDOM) {
        let (fix, gain) = raise(v, files, what == "IOPS");
        return Found::because(format!(
            "{} was asked for more {what} than it has for {} of the time, as EBS counted it.",
            subject(files),
            percent(share)
        ))
        .at_most(gain)
        .fix(fix)
        .answer();
    }
    let peaks = v.observation().peaks.filter(|_| files == Role::Data);
    if let Some(over) = peaks.and_then(|peaks| peaks.exceeded) {
        let share = v.noted(
            "exceeded_minutes",
            over.volume_iops.max(over.volume_throughput),
            "share of the minutes over a limit of the volume, as CloudWatch has it",
        );
        if share > SELDOM {
            let what = if over.volume_iops >= over.volume_throughput { "IOPS" } else { "throughput" };
            return Found::because(format!(
                "The volume was over its {what} in {} of the minutes.",
                percent(share)
            ))
            .fix(raise(v, files, what == "IOPS").0)
            .answer();
        }
    }
    let volume = v.volume(files)?;
    let load = load(v, &volume, files)?;
    let members = volume.members.len() as f64;
    let most = |rate: Option<RateLimit>| rate.map_or(f64::INFINITY, |rate| rate.ceiling as f64 * members);
    let (iops, bytes) = (most(volume.members[0].iops), most(volume.members[0].throughput));
    let (of_iops, of_bytes) = (load.ios / iops, load.bytes / bytes);
    if of_iops.max(of_bytes) <= 0.9 {
        return FINE;
    }
    let by_iops = of_iops >= of_bytes;
    let why = if by_iops {
        format!("{} of {} operations a second, {}.", figure(load.ios), figure(iops), percent(of_iops))
    } else {
        format!("{}/s of {}/s, {}.", size(load.bytes), size(bytes), percent(of_bytes))
    };
    let (fix, gain) = raise(v, files, by_iops);
    Found::because(format!("{} is at its limit: {why}", subject(files))).at_most(gain).fix(fix).answer()
}

/// Shares of what is there that are tried, the largest first.
const MORE_BY: [(u64, u64); 3] = [(3, 2), (5, 4), (9, 8)];

/// So much more of the I/O that the volume carries.
fn more(share: (u64, u64)) -> Benefit {
    Benefit { at_most: share.0 as f64 / share.1 as f64, of: "the I/O that the volume carries" }
}

/// Half as much again of the limit that is reached, with its price where the catalogue has one, and the gain; less where AWS has
/// less. No gain is known where AWS has no more of this type.
fn raise(v: &View<'_>, files: Role, iops: bool) -> (Fix, Option<Benefit>) {
    let what = if iops { "IOPS" } else { "throughput" };
    let Ok(volume) = v.volume(files) else {
        let text = format!("Raise the volume's {what}, or let the server do less I/O (B02, R01, F02 first).");
        return (Fix::by_hand(text), Some(more(MORE_BY[0])));
    };
    let larger = MORE_BY.iter().find_map(|share| Some((raised(v, &volume, iops, *share)?, *share)));
    if let Some((other, share)) = larger {
        let text =
            format!("Let the server do less I/O (B02, R01, F02 first), or modify the volume to {other}.");
        return (Fix::by_hand(text).of_volume(files, &other.spec), Some(more(share)));
    }
    let (stripe, other) = if is_kind(&volume, "io2") {
        (" or stripe several (RAID 0)", "")
    } else {
        (" stripe several (RAID 0),", " or take a type with a higher limit (io2)")
    };
    let text = format!(
        "Let the server do less I/O (B02, R01, F02 first). There is no more {what} for this type and size: enlarge the volume,\
         {stripe}{other}."
    );
    (Fix::by_hand(text), None)
}

/// The volume with a larger limit, and what it costs; None where that cannot be bought of its type.
fn raised(v: &View<'_>, volume: &Resolved, iops: bool, share: (u64, u64)) -> Option<Replacement> {
    let own = &volume.spec.volume;
    let more = |now: u64| now.saturating_mul(share.0) / share.1;
    if !is_kind(volume, "gp2") {
        let (wanted_iops, wanted_mib_s) = match own.throughput_mib_s {
            // More throughput of gp3 may need more IOPS.
            Some(mib_s) if !iops => {
                (own.iops.map(|iops| iops.max(iops_for(v, more(mib_s)))), Some(more(mib_s)))
            }
            // The throughput of other types follows from their IOPS.
            mib_s => (own.iops.map(more), mib_s),
        };
        let bought = (wanted_iops, wanted_mib_s) != (own.iops, own.throughput_mib_s);
        return if bought { instead(v, volume, &own.kind, wanted_iops, wanted_mib_s).ok() } else { None };
    }
    // A type whose performance follows from its size has neither for sale.
    let ceiling = volume.members[0].iops.map_or(0, |rate| rate.ceiling);
    let mib_s = volume.members[0].throughput.map_or(0, |rate| rate.ceiling >> 20);
    let (wanted_iops, wanted_mib_s) = if iops { (more(ceiling), mib_s) } else { (ceiling, more(mib_s)) };
    let other = as_gp3(v, volume, wanted_iops, wanted_mib_s).ok()?;
    // Only where gp3 has that much.
    let own = &other.spec.volume;
    (own.iops >= Some(wanted_iops) && own.throughput_mib_s >= Some(wanted_mib_s)).then_some(other)
}

pub(super) fn instance(v: &View<'_>) -> Judged {
    for files in v.volumes() {
        let own = v.of_files(files);
        let over = by_instance(&own, files).filter(|(share, _)| *share > SELDOM);
        if let Some((share, what)) = over {
            v.take(own);
            return Found::because(format!(
                "The instance was asked for more {what} than it gives its volumes for {} of the time, as EBS counted it.",
                percent(share)
            ))
            .severity(Severity::High)
            .fix(Fix::by_hand("Take a larger instance: a larger volume changes nothing."))
            .answer();
        }
    }
    let Some(name) = &v.observation().instance else {
        return Err(Gap::Missing(NotSeen {
            what: "the instance type".into(),
            why: "name it with --instance TYPE".into(),
        }));
    };
    v.word("instance", name, "instance type as --instance says");
    let instance = v.catalog().instance(name).map_err(|error| Gap::Undecided(format!("{error}.")))?;
    demand_limits(&instance)?;
    let (mut volumes, mut gap) = (Vec::new(), None);
    for files in v.volumes() {
        let own = v.of_files(files);
        match own.volume(files) {
            Ok(volume) => volumes.push(volume),
            Err(one) => gap = gap.or(Some(one)),
        }
        v.take(own);
    }
    // Those that are known may be too much already.
    if volumes.is_empty()
        && let Some(gap) = gap
    {
        return Err(gap);
    }
    let all = |rate: fn(&Resolved) -> Option<u64>| -> f64 {
        volumes.iter().map(|volume| rate(volume).unwrap_or(0) as f64 * volume.members.len() as f64).sum()
    };
    let iops = v.noted(
        "volumes_iops",
        all(|volume| volume.members[0].iops.map(|rate| rate.rate)),
        "sustained IOPS of all volumes",
    );
    let bytes = v.noted(
        "volumes_bytes",
        all(|volume| volume.members[0].throughput.map(|rate| rate.rate)),
        "sustained bytes a second of all volumes",
    );
    let (own_iops, own_bytes) = (instance.baseline_iops as f64, instance.baseline_mbps as f64 * 125_000.0);
    let mut over = Vec::new();
    if iops > own_iops {
        over.push(format!("{} IOPS for a baseline of {}", figure(iops), figure(own_iops)));
    }
    if bytes > own_bytes {
        over.push(format!("{}/s for a baseline of {}/s", size(bytes), size(own_bytes)));
    }
    if over.is_empty() {
        return gap.map_or(FINE, Err);
    }
    Found::because(format!("{name} does not carry its volumes for ever: {}.", over.join(", ")))
        .fix(Fix::by_hand(carrying(v, &instance, iops, bytes)))
        .answer()
}

/// Refuses to judge an instance type without published limits.
fn demand_limits(instance: &InstanceType) -> Result<(), Gap> {
    if instance.has_limits() {
        return Ok(());
    }
    Err(Gap::Undecided(format!(
        "AWS publishes no EBS limits of {}: it is not EBS-optimized, its volumes share the network.",
        instance.name
    )))
}

/// The cheapest instance type that carries rates for ever, is no smaller and has the same kind of processor, with what it
/// costs; a sentence without a price where none is known.
fn carrying(v: &View<'_>, now: &InstanceType, iops: f64, bytes: f64) -> String {
    let carries = |info: &&InstanceType| {
        info.baseline_iops as f64 >= iops
            && info.baseline_mbps as f64 * 125_000.0 >= bytes
            && info.vcpus >= now.vcpus
            && info.memory_gib >= now.memory_gib
            && info.has_processors_of(now)
            && info.is_ebs_optimized()
    };
    let cheapest = v.catalog().prices(None).ok().and_then(|prices| {
        let priced = |info: &InstanceType| Some((prices.instance(&info.name)?.month(), info.name.clone()));
        v.catalog().instances().iter().filter(carries).filter_map(priced).min()
    });
    match cheapest {
        Some((usd, name)) => {
            format!(
                "Take a larger instance ({name} is the cheapest that carries them: {usd} a month), or provision less."
            )
        }
        None => "Take a larger instance, or provision less.".to_owned(),
    }
}
