//! The volume and the instance: limits, burst credits, types.

use ebbtide_catalog::Resolved;
use ebbtide_observe::VolumeFiles;

use super::carried::{
    Load, as_gp3, each, free_iops, instead, is_kind, limit_shares, load, no_device_io, subject, whole_number,
};
use super::limits::{instance, is_throttled, limit};
use super::sources::{EBS_GP, EBS_INSTANCE, EBS_TYPES, PERCONA_RESULTS, says};
use super::{EVERY, figure, percent, size, time};
use crate::check::Check;
use crate::finding::{Confidence, FINE, Found, Gap, Judged, Severity};
use crate::fix::Fix;
use crate::view::{View, does_not_apply};

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "E01",
        title: "The volume is of a current type",
        condition: "the data, the redo log or the binary log are on gp2",
        reason: "gp3 has about the same latency and no burst credits, and 100 GiB of it cost {gp3.month} a month in place of {gp2.month}",
        servers: EVERY,
        severity: Severity::Low,
        gain: "a lower price, and a rate that holds for ever",
        risk: "during the modification latency is a little higher; {modifications}",
        cost: "see the evidence",
        sources: &[says(
            EBS_GP,
            "gp3 volumes cost less a GiB than gp2, and their performance does not depend on their size",
        )],
        judge: |v| each(v, Severity::Low, gp2),
    },
    Check {
        code: "E02",
        title: "Burst credits last",
        condition: "the server does more I/O than the volume's baseline, and full credits end within 24 hours (high within one); or the credits have ended (high): it does 90% to 110% of the baseline and an operation takes over 2 ms, or 110% to 150% and over 5 ms, with 0.9 or more operations in the queue on average; or the metrics of CloudWatch have a BurstBalance under 20% (high)",
        reason: "without credits (full ones are {gp2.credits}) the volume falls to its baseline: published runs went from 1 to 2 ms to over 100 ms",
        servers: EVERY,
        severity: Severity::Medium,
        gain: "no cliff when credits end",
        risk: "as of E01",
        cost: "IOPS of gp3 beyond {gp3.iops}, or size",
        sources: &[
            says(EBS_GP, "credits are earned by size and spent beyond the baseline"),
            says(PERCONA_RESULTS, "gp2 under sysbench: the cliff at the end of the credits"),
        ],
        judge: |v| each(v, Severity::Medium, credits),
    },
    Check {
        code: "E03",
        title: "The volume is not at its limit",
        condition: "over 90% of the IOPS or throughput of a volume of the server in the interval, or the volume's own statistics (EBS over NVMe) have it over a limit for more than 1% of the time",
        reason: "beyond it I/O queues, and latency is that of the queue, not of the device",
        servers: EVERY,
        severity: Severity::High,
        gain: "latency of the device in place of the queue",
        risk: "none that is known",
        cost: "IOPS or throughput of the volume; raise the one that is reached alone",
        sources: &[
            says(EBS_TYPES, "the limits of each type"),
            says(EBS_INSTANCE, "the instance has limits of its own (E04)"),
        ],
        judge: |v| each(v, Severity::High, limit),
    },
    Check {
        code: "E04",
        title: "The instance carries its volumes",
        condition: "the volumes' sustained IOPS or throughput together are over the instance's baseline; or a volume's own statistics (EBS over NVMe) have the instance over a limit for more than 1% of the time (high)",
        reason: "what the instance does not carry is paid for and never reached",
        servers: EVERY,
        severity: Severity::Medium,
        gain: "money, or the rate that was paid for",
        risk: "a change of the instance type needs a stop",
        cost: "a larger instance, or smaller volumes",
        sources: &[says(
            EBS_INSTANCE,
            "baseline and maximum for each instance type, and how long smaller ones hold the maximum",
        )],
        judge: instance,
    },
    Check {
        code: "E05",
        title: "The volume's latency is that of its type",
        condition: "an operation takes over 5 ms on the device of a volume of SSD, at under 70% of the volume's IOPS and throughput, and 50 operations a second or more, in an interval of 5 s or more; not where credits have ended (E02)",
        reason: "below its limits a gp3 answers a read in {gp3.read} at the median: more IOPS do not make such a volume faster, another type does",
        servers: EVERY,
        severity: Severity::Medium,
        gain: "shorter reads and commits",
        risk: "as of E01",
        cost: "a volume of another type (io2)",
        sources: &[says(EBS_TYPES, "the latency of each type; io2 has under 1 ms")],
        judge: |v| each(v, Severity::Medium, latency),
    },
    Check {
        code: "E08",
        title: "Provisioned IOPS are of the current type",
        condition: "the data, the redo log or the binary log are on io1",
        reason: "of io1 a share of {io1.failures} of the volumes fail in a year, of io2 {io2.failures}",
        servers: EVERY,
        severity: Severity::Low,
        gain: "fewer volumes that fail",
        risk: "as of E01",
        cost: "none",
        sources: &[says(EBS_TYPES, "the durability of each type")],
        judge: |v| each(v, Severity::Low, io1),
    },
    Check {
        code: "E09",
        title: "The volume's blocks are loaded",
        condition: "reads take over 10 ms and over five times as long as writes on an EBS volume of SSD, at under 70% of its IOPS and throughput, with 20 reads and 10 writes a second or more",
        reason: "a block of a volume that was made from a snapshot comes from S3 when it is touched first. A server writes few blocks that it has not read before, so slow reads beside quick writes are its mark",
        servers: EVERY,
        severity: Severity::Low,
        gain: "reads at the volume's own latency",
        risk: "reading every block takes IOPS and throughput while it lasts",
        cost: "hours for a large volume; or the price of a faster way (fast snapshot restore, an initialisation rate)",
        sources: &[says(
            "https://docs.aws.amazon.com/ebs/latest/userguide/initalize-volume.html",
            "blocks of a restored volume are fetched at their first access, with a higher latency; read all of them before use",
        )],
        judge: |v| each(v, Severity::Low, first_touch),
    },
    Check {
        code: "E10",
        title: "The data outlive the instance",
        condition: "the data directory is on an instance store (low on a replica and on a node of a Galera cluster)",
        reason: "it is empty after a stop, and after a failure of the machine below",
        servers: EVERY,
        severity: Severity::High,
        gain: "data that survive a stop",
        risk: "an EBS volume is slower than a local disk",
        cost: "a volume",
        sources: &[says(
            "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instance-store-lifetime.html",
            "data on an instance store persist only as long as the instance runs",
        )],
        judge: instance_store,
    },
    Check {
        code: "E11",
        title: "The IOPS that were bought can be used",
        condition: "over {gp3.iops} IOPS were bought, and at the present size of an operation the throughput allows under 80% of them, at 100 operations a second or more",
        reason: "a volume has two limits: with large operations the throughput ends first",
        servers: EVERY,
        severity: Severity::Low,
        gain: "money, or the rate that was paid for",
        risk: "as of E01",
        cost: "throughput, or none",
        sources: &[says(
            EBS_GP,
            "IOPS and throughput are bought apart; the size of operations decides which ends first",
        )],
        judge: |v| each(v, Severity::Low, unusable_iops),
    },
    Check {
        code: "E12",
        title: "The limits that the checks know are current",
        condition: "the limits of the volume's type were read more than 180 days before",
        reason: "AWS raises limits and changes prices at times; what follows from old ones may be wrong",
        servers: EVERY,
        severity: Severity::Low,
        gain: "findings that fit the volumes of today",
        risk: "none",
        cost: "none",
        sources: &[says(EBS_TYPES, "the limits of each type")],
        judge: old_limits,
    },
];

/// The same within a sentence.
fn lower(files: VolumeFiles) -> String {
    subject(files).replacen("The", "the", 1)
}

/// Files as the subject of a sentence, with the verb.
fn are_on(files: VolumeFiles) -> String {
    match files {
        VolumeFiles::Data => "The data are".to_owned(),
        VolumeFiles::Logs => format!("The {} are", files.name()),
        VolumeFiles::Redo | VolumeFiles::Binlog => format!("The {} is", files.name()),
    }
}

/// An operation that takes longer is slow for any EBS volume of SSD, s.
const SLOW_S: f64 = 0.005;

fn latency(v: &View<'_>, files: VolumeFiles) -> Judged {
    let volume = v.volume(files)?;
    if volume.members[0].accounting.whole_units {
        return does_not_apply("the volume is one of disks, which take that long");
    }
    let Some(io) = v.device_of(files)?.io else { return Err(no_device_io()) };
    let load = load(v, &volume, files)?;
    if v.observation().span.is_some_and(|span| span.seconds < 5.0) {
        return Err(Gap::Undecided(
            "An interval under 5 s does not tell a slow device from a slow moment.".into(),
        ));
    }
    if load.ios < 50.0 {
        return FINE;
    }
    // Little's law: operations in flight over operations a second.
    let seconds = v.noted("latency_s", io.queue / load.ios, "mean time of an operation on the device, s");
    let is_held_back = is_throttled(v, files) || is_without_credits(v, &volume, files, &load);
    if seconds <= SLOW_S || share_of_limit(&volume, &load) >= 0.7 || is_held_back {
        return FINE;
    }
    Found::because(format!(
        "An operation takes {:.1} ms, and {} is at {} of its limit.",
        seconds * 1e3,
        lower(files),
        percent(share_of_limit(&volume, &load))
    ))
    .fix(Fix::by_hand("Take a type with lower latency (io2), or ask why this one is slow: initialisation after a snapshot, the instance's limit (E04)."))
    .answer()
}

fn first_touch(v: &View<'_>, files: VolumeFiles) -> Judged {
    let volume = v.volume(files)?;
    if !["gp2", "gp3", "io1", "io2"].iter().any(|kind| is_kind(&volume, kind)) {
        return does_not_apply("the volume is no EBS volume of SSD");
    }
    let Some(io) = v.device_of(files)?.io else { return Err(no_device_io()) };
    let load = load(v, &volume, files)?;
    v.noted("reads", io.reads, "reads a second on the device");
    let Some(read_s) = io.read_s.filter(|_| io.reads >= 20.0) else { return FINE };
    v.noted("read_s", read_s, "mean time of a read on the device, s");
    if read_s <= 0.01 || share_of_limit(&volume, &load) >= 0.7 || is_throttled(v, files) {
        return FINE;
    }
    let Some(write_s) = io.write_s.filter(|_| io.writes >= 10.0) else {
        return Err(Gap::Undecided(
            "Reads are slow, and without writes beside them blocks that are not loaded yet cannot be told from a slow volume (E05)."
                .into(),
        ));
    };
    v.noted("write_s", write_s, "mean time of a write on the device, s");
    if read_s <= 5.0 * write_s {
        return FINE;
    }
    Found::because(format!(
        "A read takes {:.1} ms and a write {:.1} ms, with {} at {} of its limit.",
        read_s * 1e3,
        write_s * 1e3,
        lower(files),
        percent(share_of_limit(&volume, &load))
    ))
    .confidence(Confidence::Low)
    .fix(Fix::by_hand("If the volume was made from a snapshot, read every block once (fio --rw=read --bs=1M on the device), or use fast snapshot restore for the next one. If it was not, see E05."))
    .answer()
}

/// The larger of the two.
fn share_of_limit(volume: &Resolved, load: &Load) -> f64 {
    let (of_iops, of_bytes) = limit_shares(volume, load);
    of_iops.max(of_bytes)
}

fn unusable_iops(v: &View<'_>, files: VolumeFiles) -> Judged {
    let volume = v.volume(files)?;
    let (Some(bought), Some(throughput)) = (volume.spec.volume.iops, volume.members[0].throughput) else {
        return does_not_apply("no IOPS were bought, or the volume has no limit of throughput");
    };
    let load = load(v, &volume, files)?;
    if load.ios < 100.0 {
        return FINE;
    }
    let mean = v.noted("mean_io_bytes", load.bytes / load.ios, "bytes of an operation");
    let usable = v.noted(
        "usable_iops",
        throughput.ceiling as f64 / mean,
        "operations of this size a second that the throughput allows",
    );
    if bought <= free_iops(v) || usable >= 0.8 * bought as f64 {
        return FINE;
    }
    Found::because(format!(
        "With operations of {} the throughput of {} is used up at {} of the {bought} IOPS.",
        size(mean),
        lower(files),
        figure(usable)
    ))
    .fix(Fix::by_hand(if volume.spec.volume.throughput_mib_s.is_some() {
        "Raise the throughput, or buy fewer IOPS: size a volume by both."
    } else {
        "Buy fewer IOPS: the throughput of this type is not for sale."
    }))
    .answer()
}

/// Days of a date such as `2026-10-06` since 1970 (proleptic Gregorian calendar).
pub(super) fn days(date: &str) -> Option<i64> {
    let mut parts = date.split('-').map(str::parse::<i64>);
    let (year, month, day) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * month + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

fn old_limits(v: &View<'_>) -> Judged {
    let volume = v.volume(VolumeFiles::Data)?;
    let now = v
        .observation()
        .span
        .and_then(|span| span.began_unix_s)
        .ok_or_else(|| Gap::Undecided("When the server was looked at is not known.".into()))?;
    let kind = &volume.spec.volume.kind;
    let Some(info) = v.catalog().types().iter().find(|info| info.name.eq_ignore_ascii_case(kind)) else {
        return does_not_apply("the type is not in the catalogue");
    };
    let date = &info.provenance.date;
    v.word("catalogue_date", date, "when the limits of the type were read");
    let Some(read) = days(date) else { return Err(Gap::Undecided(format!("{date} is no date."))) };
    let age = i64::try_from(now / 86_400).unwrap_or(i64::MAX).saturating_sub(read);
    if age <= 180 {
        return FINE;
    }
    Found::because(format!(
        "The limits of {kind} were read {age} days ago; AWS has raised limits since then at times."
    ))
    .fix(Fix::by_hand("Take a newer ebbtide, or give the limits of today: docs/catalog.md."))
    .answer()
}

fn gp2(v: &View<'_>, files: VolumeFiles) -> Judged {
    let volume = v.volume(files)?;
    if !is_kind(&volume, "gp2") {
        return FINE;
    }
    let baseline = volume.members[0].iops.map_or(0, |rate| rate.rate);
    let mib_s = volume.members[0].throughput.map_or(0, |rate| rate.rate >> 20);
    let other = as_gp3(v, &volume, baseline, mib_s)?;
    Found::because(format!("{} on gp2.", are_on(files)))
        .fix(
            Fix::by_hand(format!("{}: modify it while it is in use to {other}.", subject(files)))
                .of_volume(files, &other.spec),
        )
        .answer()
}

/// A balance below this share is about to end.
const LEAST_BALANCE: f64 = 0.2;

/// A gp3 that carries a load with a third of room; as much as the burst without one, and what it costs.
fn enough(v: &View<'_>, volume: &Resolved, files: VolumeFiles, load: Option<&Load>) -> Fix {
    let members = volume.members.len() as f64;
    let burst = volume.members[0].iops.map_or(0, |rate| rate.ceiling);
    let iops = load.map_or(burst, |load| whole_number((load.ios / members / 0.75 / 100.0).ceil() * 100.0));
    let mib_s = volume.members[0].throughput.map_or(0, |rate| rate.ceiling >> 20);
    match as_gp3(v, volume, iops, mib_s) {
        Ok(other) => Fix::by_hand(format!("Modify the volume while it is in use to {other}. Or enlarge it."))
            .of_volume(files, &other.spec),
        // AWS makes no gp3 of this size with so many.
        Err(_) => {
            Fix::by_hand("Modify the volume to gp3 with as many IOPS as it needs (E01), or enlarge it.")
        }
    }
}

/// An operation of gp2 takes about 1 ms while nothing holds it back, s.
const HELD_BACK_S: f64 = 0.002;

/// Whether the volume is held at the baseline of a volume whose credits have ended: it does as many operations as that, one
/// always waits, and they take longer than the device needs.
fn is_without_credits(v: &View<'_>, volume: &Resolved, files: VolumeFiles, load: &Load) -> bool {
    let Some(iops) = volume.members[0].iops.filter(|rate| rate.credits > 0 && rate.ceiling > rate.rate)
    else {
        return false;
    };
    let Some(io) = v.device_of(files).ok().and_then(|device| device.io) else { return false };
    if volume.credit_share.is_some_and(|left| left > 0.01) || io.queue < 0.9 {
        return false;
    }
    let baseline = iops.rate as f64 * volume.members.len() as f64;
    // The kernel counts more than the volume, which merges writes in order: 352 to 374 for 300 under sysbench on MariaDB.
    let longest = match load.ios / baseline {
        0.9..=1.1 => HELD_BACK_S,
        1.1..=1.5 => SLOW_S,
        _ => return false,
    };
    io.queue / load.ios > longest
}

fn credits(v: &View<'_>, files: VolumeFiles) -> Judged {
    let volume = v.volume(files)?;
    let Some(iops) = volume.members[0].iops.filter(|rate| rate.credits > 0 && rate.ceiling > rate.rate)
    else {
        return does_not_apply("the volume has no burst credits");
    };
    let members = volume.members.len() as f64;
    let peaks = v.observation().peaks.filter(|_| files == VolumeFiles::Data);
    if let Some(left) = peaks.and_then(|peaks| peaks.burst_balance) {
        let left = v.noted(
            "burst_balance",
            left,
            "least share of the burst credits that was left, as CloudWatch has it",
        );
        if left < LEAST_BALANCE {
            return Found::because(format!(
                "The credits were down to {}: without them the volume has {} operations a second.",
                percent(left),
                figure(iops.rate as f64 * members)
            ))
            .severity(Severity::High)
            .fix(enough(v, &volume, files, None))
            .answer();
        }
    }
    let load = load(v, &volume, files)?;
    let of = if files == VolumeFiles::Data { String::new() } else { format!(" of the {}", files.name()) };
    let baseline = iops.rate as f64 * members;
    if is_without_credits(v, &volume, files, &load) {
        return Found::because(format!(
            "The credits{of} have ended: {} operations a second, at a baseline of {}, and each waits.",
            figure(load.ios),
            figure(baseline)
        ))
        .severity(Severity::High)
        // What is left is known of a volume of Ebbtide's own, or where the user says so.
        .confidence(if volume.credit_share.is_some() { Confidence::High } else { Confidence::Medium })
        .fix(enough(v, &volume, files, None))
        .answer();
    }
    let over = load.ios.min(iops.ceiling as f64 * members) - baseline;
    if over <= 0.0 {
        return FINE;
    }
    let share = volume.credit_share.unwrap_or(1.0);
    let lasts = v.noted(
        "credits_last_s",
        iops.credits as f64 * members * share / over,
        "seconds until the credits end at the present rate",
    );
    if lasts > 86_400.0 {
        return FINE;
    }
    let severity = if lasts < 3_600.0 { Severity::High } else { Severity::Medium };
    let had = if volume.credit_share.is_some() { "The credits" } else { "Full credits" };
    let why = format!(
        "{had}{of} end {} from now: {} operations a second, and {} from then on.",
        time(lasts),
        figure(load.ios),
        figure(baseline)
    );
    Found::because(why).severity(severity).fix(enough(v, &volume, files, Some(&load))).answer()
}

fn io1(v: &View<'_>, files: VolumeFiles) -> Judged {
    let volume = v.volume(files)?;
    if !is_kind(&volume, "io1") {
        return FINE;
    }
    let other = instead(v, &volume, "io2", volume.spec.volume.iops, None)?;
    Found::because(format!("{} on io1.", are_on(files)))
        .fix(
            Fix::by_hand(format!("{}: modify it while it is in use to {other}.", subject(files)))
                .of_volume(files, &other.spec),
        )
        .answer()
}

fn instance_store(v: &View<'_>) -> Judged {
    if let Ok(volume) = v.volume(VolumeFiles::Data) {
        if volume.spec.volume.kind.starts_with("instance-store") {
            return on_store(v);
        }
        return FINE;
    }
    if v.device_of(VolumeFiles::Data)?.is_instance_store() { on_store(v) } else { FINE }
}

fn on_store(v: &View<'_>) -> Judged {
    Found::because("The data are on an instance store: a stop of the instance deletes them.")
        .severity(if v.is_copy() { Severity::Low } else { Severity::High })
        .fix(Fix::by_hand(
            "Keep it only on replicas that can be made again. Else move the data to an EBS volume.",
        ))
        .answer()
}
