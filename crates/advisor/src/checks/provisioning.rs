//! What was bought of a volume: more than is used, or as much as its size allows.

use ebbtide_catalog::{Resolved, Spec};
use ebbtide_observe::{NotSeen, Role};

use super::carried::{
    cost_of, each, free_iops, instead, iops_for, limit_shares, load, subject, whole_number,
};
use super::sources::{EBS_GP, EBS_TYPES, says};
use super::{EVERY, percent};
use crate::check::Check;
use crate::finding::{FINE, Found, Gap, Judged, Severity};
use crate::fix::Fix;
use crate::view::{View, does_not_apply};

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "E06",
        title: "The IOPS that were bought are used",
        condition: "of 1,000 minutes over two weeks, 999 need under half of the IOPS that were bought",
        reason: "two weeks have the peaks of nights and of weeks; twice the peak leaves room, more is paid for and never used",
        servers: EVERY,
        severity: Severity::Low,
        gain: "money",
        risk: "a peak that two weeks do not show (the end of a quarter, a restore) takes longer; IOPS can be raised while the volume is in use: {modifications}",
        cost: "see the fix",
        sources: &[
            says(EBS_GP, "how many IOPS gp3 has for nothing; those beyond are charged, used or not"),
            says(
                "https://docs.aws.amazon.com/ebs/latest/userguide/using_cloudwatch_ebs.html",
                "VolumeReadOps and VolumeWriteOps are the operations of each minute",
            ),
        ],
        judge: |v| each(v, Severity::Low, unused),
    },
    Check {
        code: "E07",
        title: "The volume can be raised where it ends",
        condition: "the volume is over 90% of its IOPS or throughput (E03), and AWS refuses a quarter more of it at this size",
        reason: "gp3 has at most {gp3.iops_per_gib} IOPS a GiB and {gp3.mib_s_per_iops} MiB/s for each of its IOPS, io2 {io2.iops_per_gib} IOPS a GiB. The order to raise it fails when it is needed",
        servers: EVERY,
        severity: Severity::Medium,
        gain: "a volume that can grow with its load",
        risk: "a volume that was enlarged cannot be made smaller",
        cost: "see the fix",
        sources: &[says(EBS_TYPES, "the largest ratios of IOPS to size, and of throughput to IOPS")],
        judge: |v| each(v, Severity::Medium, cannot_be_raised),
    },
];

/// Two weeks without the hour by which the ends of the metrics may be apart.
const TWO_WEEKS_S: f64 = 14.0 * 86_400.0 - 3_600.0;

fn unused(v: &View<'_>, files: Role) -> Judged {
    let volume = v.volume(files)?;
    let Some(bought) = volume.spec.volume.iops.filter(|iops| *iops > 0) else {
        return does_not_apply("no IOPS are bought for this type");
    };
    let is_gp3 = volume.spec.volume.kind.eq_ignore_ascii_case("gp3");
    if is_gp3 && bought <= free_iops(v) {
        return does_not_apply("the volume has the IOPS that cost nothing");
    }
    // The metrics are those of one volume.
    let Some(peaks) = v.observation().peaks.filter(|_| files == Role::Data) else {
        let what = match files {
            Role::Data => "what the volume carried over two weeks".to_owned(),
            _ => format!("what the volume of the {} carried over two weeks", files.holds()),
        };
        return Err(Gap::Missing(NotSeen {
            what,
            why: "give the output of aws cloudwatch get-metric-data to --from (docs/doctor.md)".into(),
        }));
    };
    let days = v.noted("metrics_days", peaks.seconds / 86_400.0, "days that the volume's metrics cover");
    let peak = v.noted("peak_iops", peaks.ios, "operations a second that one in 1,000 minutes is above");
    if peaks.seconds < TWO_WEEKS_S {
        return Err(Gap::Undecided(format!(
            "The volume's metrics cover {days:.1} days, and two weeks are needed."
        )));
    }
    if peak >= 0.5 * bought as f64 {
        return FINE;
    }
    // A third of room above the peak, and as much as the throughput needs.
    let room = (peak / 0.75 / 100.0).ceil() * 100.0;
    let mib_s = volume.spec.volume.throughput_mib_s;
    let least = if is_gp3 { free_iops(v).max(iops_for(v, mib_s.unwrap_or(0))) } else { 100 };
    let wanted = whole_number(room).max(least);
    if wanted >= bought {
        return FINE;
    }
    let other = instead(v, &volume, &volume.spec.volume.kind, Some(wanted), mib_s)?;
    Found::because(format!(
        "{} of the {bought} IOPS are used at the peak of {days:.0} days.",
        percent(peak / bought as f64)
    ))
    .fix(
        Fix::by_hand(format!("{}: modify it while it is in use to {other}.", subject(files)))
            .of_volume(files, &other.spec),
    )
    .answer()
}

fn cannot_be_raised(v: &View<'_>, files: Role) -> Judged {
    let volume = v.volume(files)?;
    if volume.spec.volume.iops.is_none() {
        return does_not_apply("nothing is bought for this type but its size");
    }
    let load = load(v, &volume, files)?;
    let (of_iops, of_bytes) = limit_shares(&volume, &load);
    if of_iops.max(of_bytes) <= 0.9 {
        return FINE;
    }
    let raise_iops = of_iops >= of_bytes;
    let mut more = volume.spec.clone();
    let what = if raise_iops { "IOPS" } else { "MiB/s" };
    let bought = if raise_iops { &mut more.volume.iops } else { &mut more.volume.throughput_mib_s };
    let Some(now) = *bought else { return does_not_apply("the limit that is reached is not for sale") };
    let wanted = (now * 5).div_ceil(4);
    *bought = Some(wanted);
    let Err(refused) = v.catalog().resolve(&more) else { return FINE };
    let found = Found::because(format!(
        "{} is at {} of its {what}, and AWS refuses {wanted} in place of {now}: {refused}.",
        subject(files),
        percent(of_iops.max(of_bytes)),
    ));
    let fix = match larger(v, &more) {
        Some(other) => {
            Fix::by_hand(format!("Modify the volume while it is in use to {}.", priced(v, &volume, &other)))
                .of_volume(files, &other)
        }
        None => Fix::by_hand("Stripe several volumes (RAID 0), or take a type with a higher limit (io2)."),
    };
    found.fix(fix).answer()
}

/// The smallest volume with this performance that AWS makes: with more IOPS for the throughput, then of twice the size
/// and so on; None where no size has it.
fn larger(v: &View<'_>, wanted: &Spec) -> Option<Spec> {
    let size = wanted.volume.size_bytes?;
    let for_throughput =
        wanted.volume.throughput_mib_s.map(|mib_s| iops_for(v, mib_s)).max(wanted.volume.iops);
    let try_of = |factor: u64, iops: Option<u64>| {
        let mut spec = wanted.clone();
        spec.volume.size_bytes = Some(size.checked_mul(factor)?);
        spec.volume.iops = iops;
        v.catalog().resolve(&spec).is_ok().then_some(spec)
    };
    let factors = || std::iter::successors(Some(1_u64), |factor| factor.checked_mul(2)).take(12);
    factors().find_map(|factor| try_of(factor, wanted.volume.iops).or_else(|| try_of(factor, for_throughput)))
}

/// A volume with what it costs, and what the present one does.
fn priced(v: &View<'_>, volume: &Resolved, other: &Spec) -> String {
    match cost_of(v, &volume.spec).zip(cost_of(v, other)) {
        Some((now, then)) => format!("{other}: {then} a month in place of {now}"),
        None => other.to_string(),
    }
}
