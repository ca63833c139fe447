//! The families of volumes: where each value comes from.

use ebbtide_control::{
    CreditsView, ObservedAttachment, ObservedVolume, Stats, VolumeReading, VolumeStatus, VolumeTotals,
};
use ebbtide_volume::{CreditUnit, Credits, LOAD_BLOCK_BYTES, LoadProgress, RateLimit};

use crate::exposition::{Distribution, Exposition, Label, Number, is_distribution};
use crate::family::Family;
use crate::names as n;

/// The labels beside the volume, and a value.
type Labelled<'a> = (Vec<Label<'a>>, Number);

/// How the values of a family are read from a volume. A volume that has no value has no line.
#[derive(Clone, Copy)]
enum Values {
    /// One, with no label but the volume.
    Single(fn(&ObservedVolume) -> Option<Number>),
    /// One for each value of the other labels.
    Several(fn(&ObservedVolume) -> Vec<Labelled<'_>>),
    /// A histogram.
    Latencies(fn(&VolumeTotals) -> Distribution),
}

/// The families of volumes with their values, in the order of the table of names.
const ROWS: [(Family, Values); 37] = [
    (n::VOLUME_INFO, Values::Several(info)),
    (n::VOLUME_STATE, Values::Several(states)),
    (n::VOLUME_SIZE, Values::Single(|volume| Some(Number::Whole(volume.size_bytes)))),
    (n::VOLUME_ATTACHED, Values::Single(|volume| Some(Number::Time(volume.attachment.as_ref()?.since)))),
    (n::VOLUME_LIMIT_IOPS, Values::Several(limits_of_operations)),
    (n::VOLUME_LIMIT_BYTES, Values::Several(limits_of_bytes)),
    (n::VOLUME_READS, Values::Single(|volume| Some(Number::Whole(stats(volume)?.read.ops)))),
    (n::VOLUME_WRITES, Values::Single(|volume| Some(Number::Whole(stats(volume)?.write.ops)))),
    (n::VOLUME_FLUSHES, Values::Single(|volume| Some(Number::Whole(stats(volume)?.flush_ops)))),
    (n::VOLUME_DISCARDS, Values::Single(|volume| Some(Number::Whole(stats(volume)?.discard_ops)))),
    (n::VOLUME_CONSUMED, Values::Single(|volume| Some(Number::Whole(stats(volume)?.consumed_ops)))),
    (n::VOLUME_READ_BYTES, Values::Single(|volume| Some(Number::Whole(stats(volume)?.read.bytes)))),
    (n::VOLUME_WRITTEN_BYTES, Values::Single(|volume| Some(Number::Whole(stats(volume)?.write.bytes)))),
    (n::VOLUME_READ_TIME, Values::Single(|volume| Some(Number::Time(stats(volume)?.read.time)))),
    (n::VOLUME_WRITE_TIME, Values::Single(|volume| Some(Number::Time(stats(volume)?.write.time)))),
    (n::VOLUME_IDLE_TIME, Values::Single(|volume| Some(Number::Time(stats(volume)?.idle_time)))),
    (n::VOLUME_QUEUE, Values::Single(|volume| Some(Number::Whole(reading(volume)?.totals.stats.queue)))),
    (n::VOLUME_QUEUE_TIME, Values::Single(|volume| Some(Number::Time(stats(volume)?.queue_time)))),
    (n::VOLUME_THROTTLED, Values::Several(throttled)),
    (
        n::VOLUME_CREDIT_RATIO,
        Values::Single(|volume| reading(volume)?.totals.stats.credit_share.map(Number::Real)),
    ),
    (n::VOLUME_CREDIT_OPERATIONS, Values::Single(|volume| credits_left(volume, CreditUnit::Operations))),
    (n::VOLUME_CREDIT_CAPACITY_OPERATIONS, Values::Single(|volume| capacity(volume, CreditUnit::Operations))),
    (n::VOLUME_CREDIT_BYTES, Values::Single(|volume| credits_left(volume, CreditUnit::Bytes))),
    (n::VOLUME_CREDIT_CAPACITY_BYTES, Values::Single(|volume| capacity(volume, CreditUnit::Bytes))),
    (n::VOLUME_CREDITS_END, Values::Single(|volume| credits_as_time(volume)?.ends_in_s.map(Number::Real))),
    (n::VOLUME_CREDITS_FULL, Values::Single(|volume| credits_as_time(volume)?.full_in_s.map(Number::Real))),
    (n::VOLUME_INSTANCE_CREDIT_RATIO, Values::Several(instance_credits)),
    (n::VOLUME_READ_LATENCY, Values::Latencies(read_latency)),
    (n::VOLUME_WRITE_LATENCY, Values::Latencies(write_latency)),
    (n::VOLUME_LATENESS, Values::Latencies(lateness)),
    (n::VOLUME_FAULT, Values::Several(faults)),
    (n::VOLUME_INJECTED, Values::Several(injected)),
    (n::VOLUME_POWER_LOST, Values::Single(|volume| Some(Number::flag(reading(volume)?.has_ended)))),
    (n::VOLUME_HOST_ERRORS, Values::Single(|volume| Some(Number::Whole(volume.totals?.host_errors)))),
    (
        n::VOLUME_HOST_TOO_SLOW,
        Values::Single(|volume| Some(Number::flag(volume.attachment.as_ref()?.is_host_too_slow))),
    ),
    (n::VOLUME_SNAPSHOT_BYTES, Values::Single(|volume| loaded_bytes(volume, LoadProgress::blocks))),
    (
        n::VOLUME_SNAPSHOT_LOADED,
        Values::Single(|volume| loaded_bytes(volume, |progress| progress.counts.total())),
    ),
];

/// Adds the families of all volumes.
pub(crate) fn add(text: &mut Exposition, volumes: &[ObservedVolume]) {
    for (family, values) in &ROWS {
        for volume in volumes {
            let name = [("volume", volume.name.as_str())];
            match values {
                Values::Single(read) => {
                    if let Some(number) = read(volume) {
                        text.add(family, &name, number);
                    }
                }
                Values::Several(read) => {
                    for (labels, number) in read(volume) {
                        text.add(family, &[&name[..], &labels[..]].concat(), number);
                    }
                }
                Values::Latencies(read) => {
                    debug_assert!(is_distribution(family), "{} is no histogram", family.name);
                    if let Some(totals) = &volume.totals {
                        text.add_distribution(family, &name, &read(totals));
                    }
                }
            }
        }
    }
}

fn stats(volume: &ObservedVolume) -> Option<&Stats> {
    volume.totals.as_ref().map(|totals| &totals.stats)
}

fn reading(volume: &ObservedVolume) -> Option<&VolumeReading> {
    volume.attachment.as_ref().map(|attachment| &attachment.reading)
}

fn info(volume: &ObservedVolume) -> Vec<Labelled<'_>> {
    let attachment = volume.attachment.as_ref();
    let text = |read: fn(&ObservedAttachment) -> Option<&str>| attachment.and_then(read).unwrap_or_default();
    let labels = vec![
        ("type", volume.kind.as_str()),
        ("transport", text(|attachment| Some(attachment.kind.name()))),
        ("device", text(|attachment| Some(attachment.device.as_str()))),
        ("mount", text(|attachment| attachment.mount.as_deref())),
        ("fs", text(|attachment| attachment.fs.as_deref())),
        ("instance", text(|attachment| attachment.instance.as_deref())),
    ];
    vec![(labels, Number::Whole(1))]
}

fn states(volume: &ObservedVolume) -> Vec<Labelled<'_>> {
    let all = [VolumeStatus::Available, VolumeStatus::Busy, VolumeStatus::InUse, VolumeStatus::Damaged];
    let state = |state: VolumeStatus| (vec![("state", state.name())], Number::flag(volume.status == state));
    all.map(state).into()
}

fn limits_of_operations(volume: &ObservedVolume) -> Vec<Labelled<'_>> {
    let Some(reading) = reading(volume) else { return Vec::new() };
    limits(reading.iops_limit, reading.instance_limits.map(|limits| limits.iops))
}

fn limits_of_bytes(volume: &ObservedVolume) -> Vec<Labelled<'_>> {
    let Some(reading) = reading(volume) else { return Vec::new() };
    limits(reading.throughput_limit, reading.instance_limits.map(|limits| limits.throughput))
}

/// A limit of the volume and one of its instance, each with the higher one that holds while credits last.
fn limits(volume: Option<RateLimit>, instance: Option<RateLimit>) -> Vec<Labelled<'static>> {
    let scopes = [("volume", volume), ("instance", instance)].into_iter();
    let limited = scopes.filter_map(|(scope, limit)| Some((scope, limit?)));
    let levels = limited.flat_map(|(scope, limit)| {
        let burst = limit.has_credits().then_some(("burst", limit.ceiling));
        let levels = [("sustained", limit.rate)].into_iter().chain(burst);
        levels.map(move |(level, rate)| (vec![("scope", scope), ("level", level)], Number::Whole(rate)))
    });
    levels.collect()
}

fn throttled(volume: &ObservedVolume) -> Vec<Labelled<'_>> {
    let Some(stats) = stats(volume) else { return Vec::new() };
    let causes = [
        ("volume-iops", stats.volume_iops_exceeded),
        ("volume-throughput", stats.volume_throughput_exceeded),
        ("instance-iops", stats.instance_iops_exceeded),
        ("instance-throughput", stats.instance_throughput_exceeded),
    ];
    causes.map(|(cause, time)| (vec![("cause", cause)], Number::Time(time))).into()
}

fn credits(volume: &ObservedVolume, unit: CreditUnit) -> Option<Credits> {
    reading(volume)?.credits.filter(|credits| credits.unit == unit)
}

fn credits_left(volume: &ObservedVolume, unit: CreditUnit) -> Option<Number> {
    credits(volume, unit).map(|credits| Number::Real(credits.left))
}

fn capacity(volume: &ObservedVolume, unit: CreditUnit) -> Option<Number> {
    credits(volume, unit).map(|credits| Number::Whole(credits.capacity))
}

fn credits_as_time(volume: &ObservedVolume) -> Option<&CreditsView> {
    volume.attachment.as_ref()?.credits.as_ref()
}

fn instance_credits(volume: &ObservedVolume) -> Vec<Labelled<'_>> {
    let Some((io, bytes)) = reading(volume).and_then(|reading| reading.instance_balances) else {
        return Vec::new();
    };
    let shares = [("operations", io), ("bytes", bytes)].into_iter();
    shares.filter_map(|(kind, share)| Some((vec![("credits", kind)], Number::Real(share?)))).collect()
}

fn read_latency(totals: &VolumeTotals) -> Distribution {
    Distribution { bins: totals.stats.read_latency, sum: totals.stats.read.time }
}

fn write_latency(totals: &VolumeTotals) -> Distribution {
    Distribution { bins: totals.stats.write_latency, sum: totals.stats.write.time }
}

fn lateness(totals: &VolumeTotals) -> Distribution {
    Distribution { bins: totals.lateness.histogram, sum: totals.lateness.sum }
}

fn faults(volume: &ObservedVolume) -> Vec<Labelled<'_>> {
    let Some(faults) = reading(volume).map(|reading| reading.faults) else { return Vec::new() };
    let kinds = [
        ("latency", faults.latency),
        ("errors", faults.errors),
        ("stall", faults.stalled),
        ("answer-early", faults.answer_early),
        ("ignore-flush", faults.ignore_flush),
    ];
    kinds.map(|(fault, is_active)| (vec![("fault", fault)], Number::flag(is_active))).into()
}

fn injected(volume: &ObservedVolume) -> Vec<Labelled<'_>> {
    let Some(injected) = volume.totals.map(|totals| totals.injected) else { return Vec::new() };
    let kinds = [("latency", injected.delayed), ("errors", injected.failed)];
    kinds.map(|(fault, count)| (vec![("fault", fault)], Number::Whole(count))).into()
}

fn loaded_bytes(volume: &ObservedVolume, blocks: impl Fn(&LoadProgress) -> u64) -> Option<Number> {
    let progress = reading(volume)?.loading.as_ref()?;
    Some(Number::Whole(blocks(progress) * LOAD_BLOCK_BYTES))
}
