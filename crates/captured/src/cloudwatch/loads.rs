//! The loads of volumes: the values of their metrics as intervals.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_observe::{Limited, LoadInterval, VolumeLoad};

use super::metric::{CORE, Quantity};
use super::periods::{Periods, is_of_rds, least_apart};
use super::values::{ByTime, OfVolume, Value, shown, values};
use super::{Figures, Series, pages};
use crate::record_error::{MissingFigures, WrongMetrics};

/// Why figures give no loads.
#[derive(Debug)]
pub(crate) enum NoLoads {
    /// They lack something.
    Lacks(MissingFigures),
    /// They are not those that are needed.
    Wrong(WrongMetrics),
}

/// The loads, and what has to be known of them, for people.
pub(crate) type Loads = (BTreeMap<String, VolumeLoad>, Vec<String>);

/// Figures of which one is there in a period, and the other is not.
const PAIRS: [[Quantity; 2]; 4] = [
    [Quantity::Reads, Quantity::ReadBytes],
    [Quantity::Writes, Quantity::WrittenBytes],
    [Quantity::ReadRate, Quantity::ReadByteRate],
    [Quantity::WriteRate, Quantity::WrittenByteRate],
];

/// The loads of the volumes that the figures of all files tell of, by volume. `period_s` is the length of an interval where
/// neither words nor times of the files tell it: of a single one.
pub(crate) fn loads(files: &[&Figures], period_s: Option<f64>) -> Result<Loads, NoLoads> {
    let series: Vec<&Series> = files.iter().flat_map(|file| &file.series).collect();
    let pages: Vec<pages::Page> = files.iter().flat_map(|file| file.pages.iter().cloned()).collect();
    let mut notes: Vec<String> = files.iter().flat_map(|file| file.notes.iter().cloned()).collect();
    notes.extend(pages::missing(&pages));
    let volumes = named(values(&series).map_err(NoLoads::Wrong)?);
    if volumes.is_empty() {
        return Err(NoLoads::Lacks(MissingFigures::Metrics(CORE[0].map(Quantity::name).to_vec())));
    }
    #[expect(clippy::cast_possible_truncation, reason = "float casts saturate")]
    let otherwise = least_apart(&series).or(period_s.map(|seconds| seconds.round() as i64));
    let mut loads = BTreeMap::new();
    let several = volumes.len() > 1;
    for (name, own) in &volumes {
        refuse_lacks(name, own, several)?;
        let of_volume = |one: &&&Series| {
            let volume = &one.label.volume;
            volume == name || (volume.is_empty() && own.contains_key(&one.label.metric.quantity))
        };
        let own_series: Vec<&Series> = series.iter().filter(of_volume).copied().collect();
        let periods = Periods::of(&own_series, otherwise).map_err(NoLoads::Wrong)?;
        let (load, left_out) = load(own, &periods).map_err(NoLoads::Wrong)?;
        notes.extend(left_out.map(|words| if several { format!("{name}: {words}") } else { words }));
        loads.insert(name.clone(), load);
    }
    Ok((loads, notes))
}

/// The volumes, with what names none given to those that it belongs to: an instance's checks to all of them, and what the only
/// volume lacks to that.
fn named(mut volumes: BTreeMap<String, OfVolume>) -> BTreeMap<String, OfVolume> {
    if volumes.len() < 2 {
        return volumes;
    }
    let Some(unnamed) = volumes.remove("") else { return volumes };
    let is_only = volumes.len() == 1;
    let mut core = unnamed.keys().filter(|quantity| quantity.is_core());
    // What names no volume is one of its own where a volume that is named has the same.
    let is_volume = core.any(|quantity| !is_only || volumes.values().any(|own| own.contains_key(quantity)));
    for own in volumes.values_mut() {
        for (quantity, by_time) in &unnamed {
            if !is_volume || !quantity.is_core() {
                own.entry(*quantity).or_insert_with(|| by_time.clone());
            }
        }
    }
    if is_volume {
        volumes.insert(String::new(), unnamed);
    }
    volumes
}

fn refuse_lacks(volume: &str, own: &OfVolume, several: bool) -> Result<(), NoLoads> {
    let core = CORE[usize::from(is_of_rds(own.keys().copied()))];
    let lacks: Vec<&'static str> =
        core.into_iter().filter(|quantity| !own.contains_key(quantity)).map(Quantity::name).collect();
    if lacks.is_empty() {
        return Ok(());
    }
    Err(NoLoads::Lacks(if several {
        let volume =
            if volume.is_empty() { "the volume without a name".to_owned() } else { volume.to_owned() };
        MissingFigures::VolumeMetrics { volume, metrics: lacks }
    } else {
        MissingFigures::Metrics(lacks)
    }))
}

/// The load of a volume, and for people what was left out of it.
fn load(own: &OfVolume, periods: &Periods<'_>) -> Result<(VolumeLoad, Option<String>), WrongMetrics> {
    let core = own.iter().filter(|(quantity, _)| quantity.is_core());
    let times: BTreeSet<i64> = core.flat_map(|(_, by_time)| by_time.keys().copied()).collect();
    let times: Vec<i64> = times.into_iter().collect();
    let mut intervals = Vec::new();
    let mut left_out = Vec::new();
    for (place, time) in times.iter().enumerate() {
        let get =
            |quantity: Quantity| own.get(&quantity).and_then(|by_time: &ByTime| by_time.get(time)).copied();
        if let Some(pair) = PAIRS.iter().find(|pair| is_torn(pair.map(get))) {
            left_out.push((*time, if get(pair[0]).is_some() { *pair } else { [pair[1], pair[0]] }));
            continue;
        }
        let next = times.get(place + 1).copied();
        let seconds = match said_period(own, *time)? {
            Some((metric, period_s)) => {
                match next.map(|next| next - time).filter(|apart| *apart < period_s) {
                    Some(apart_s) => return Err(WrongMetrics::Spacing { metric, period_s, apart_s }),
                    None => period_s,
                }
            }
            None => periods.at(*time, next).ok_or_else(|| not_together(own, *time))?,
        };
        intervals.push(interval(*time, seconds as f64, |quantity| get(quantity).map(|value| value.value)));
    }
    let words = left_out.first().map(|(time, [there, missing])| {
        format!(
            "{} of {} left out: at {} there is {}, and no {}",
            left_out.len(),
            if times.len() == 1 {
                "1 interval was".to_owned()
            } else {
                format!("{} intervals were", times.len())
            },
            shown(*time),
            there.name(),
            missing.name()
        )
    });
    match left_out.first() {
        Some((time, [there, missing])) if intervals.is_empty() => {
            Err(WrongMetrics::Torn { time: shown(*time), there: there.name(), missing: missing.name() })
        }
        _ => Ok((VolumeLoad { intervals }, words)),
    }
}

/// Whether operations have no bytes beside them, or bytes no operations.
fn is_torn(pair: [Option<Value>; 2]) -> bool {
    match pair {
        [Some(value), None] | [None, Some(value)] => value.value != 0.0,
        _ => false,
    }
}

/// That the values of a time are not of the same periods as those of the next time.
fn not_together(own: &OfVolume, time: i64) -> WrongMetrics {
    let core = CORE[usize::from(is_of_rds(own.keys().copied()))];
    let is_there = |quantity: &Quantity| own.get(quantity).is_some_and(|by_time| by_time.contains_key(&time));
    let (there, missing): (Vec<Quantity>, Vec<Quantity>) = core.into_iter().partition(is_there);
    let name = |quantities: &[Quantity]| quantities.first().copied().unwrap_or(core[0]).name();
    WrongMetrics::Torn { time: shown(time), there: name(&there), missing: name(&missing) }
}

/// The period that the files say of the values of a time, with the metric of which they say it.
fn said_period(own: &OfVolume, time: i64) -> Result<Option<(&'static str, i64)>, WrongMetrics> {
    let said =
        own.iter().filter_map(|(quantity, by_time)| Some((quantity.name(), by_time.get(&time)?.period?)));
    let said: Vec<(&'static str, i64)> = said.collect();
    let Some((name, period)) = said.first().copied() else { return Ok(None) };
    match said.iter().find(|(_, other)| *other != period) {
        Some((other, other_s)) => {
            Err(WrongMetrics::TwoPeriods { metrics: [name, other], periods_s: [period, *other_s] })
        }
        None => Ok(Some((name, period))),
    }
}

fn interval(time: i64, seconds: f64, get: impl Fn(Quantity) -> Option<f64>) -> LoadInterval {
    // The metrics of EBS count, those of RDS are rates.
    let rate = |counted: Quantity, rate: Quantity| {
        let of_count = get(counted).map(|value| value / seconds);
        of_count.or_else(|| get(rate)).unwrap_or(0.0)
    };
    let (reads, writes) =
        (rate(Quantity::Reads, Quantity::ReadRate), rate(Quantity::Writes, Quantity::WriteRate));
    let mean = |time: Quantity, number: Quantity, ios: f64, mean_ms: Quantity| {
        let of_sums = get(time)
            .zip(get(number))
            .filter(|(_, number)| *number > 0.0)
            .map(|(time, number)| time / number);
        of_sums.or_else(|| get(mean_ms).filter(|_| ios > 0.0).map(|ms| ms / 1e3))
    };
    let check = |quantity: Quantity| get(quantity).map(|value| value > 0.0);
    let checks = [
        Quantity::VolumeIops,
        Quantity::VolumeThroughput,
        Quantity::InstanceIops,
        Quantity::InstanceThroughput,
    ]
    .map(check);
    let limited = Limited {
        volume_iops: checks[0] == Some(true),
        volume_throughput: checks[1] == Some(true),
        instance_iops: checks[2] == Some(true),
        instance_throughput: checks[3] == Some(true),
    };
    LoadInterval {
        start_s: time as f64,
        seconds,
        reads,
        writes,
        read_bytes: rate(Quantity::ReadBytes, Quantity::ReadByteRate),
        written_bytes: rate(Quantity::WrittenBytes, Quantity::WrittenByteRate),
        queue: get(Quantity::Queue),
        read_s: mean(Quantity::ReadTime, Quantity::Reads, reads, Quantity::ReadLatency),
        write_s: mean(Quantity::WriteTime, Quantity::Writes, writes, Quantity::WriteLatency),
        credits: get(Quantity::Credits).map(|percent| percent / 100.0),
        limited: checks.iter().any(Option::is_some).then_some(limited),
    }
}
