//! The load of the server of a profile, by the model of InnoDB.

use ebbtide_advisor::sizing::SSD_UNIT;
use ebbtide_catalog::{Catalog, InstanceType, Resolved, Spec};
use ebbtide_observe::{LoadInterval, VolumeLoad};
use ebbtide_twin::accuracy::Figure;
use ebbtide_twin::innodb::{FileKind, ModelLoad, ModelOutcome};
use ebbtide_volume::{Nanos, format_size};

use super::error::SizingError;
use super::source::Source;
use crate::server::{ModelledServer, SETTLE, Setting, move_to};
use crate::volumes::VolumesError;

/// Virtual time of the load that is sized for.
const LOAD_SPAN: Nanos = Nanos::from_secs(600);
/// Virtual time of a first look at whether the server carries it.
const TRIAL_SPAN: Nanos = Nanos::from_secs(30);
/// Connections that an open loop may use.
const OPEN_CLIENTS: u32 = 256;
/// Share of the transactions that counts as all of them.
const CARRIED: f64 = 0.97;

/// The rate that choices are judged at. Transactions that arrive are finished or are not, so the interval of a throughput is
/// one of what a server *could* finish: to be sure of a rate, a choice has to carry the rate by the low end of its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JudgedRate {
    /// Transactions a second that choices have to carry in the model.
    pub tps: f64,
    /// The least to expect of a throughput, times the model's; 1 where the server itself carries no more than what was asked
    /// for, so that no storage can make it sure.
    pub low: f64,
}

/// Puts the load of the profile's server into `source`: what it asks of a volume that answers at once, at so many transactions
/// a second.
///
/// # Errors
/// The server itself does not carry them.
pub(super) fn load(
    source: &mut Source,
    catalog: &Catalog,
    size_bytes: u64,
    tps: f64,
    instance: Option<&InstanceType>,
    seed: u64,
) -> Result<JudgedRate, SizingError> {
    let asked = JudgedRate { tps, low: 1.0 };
    let Some(server) = &mut source.server else { return Ok(asked) };
    if let Some(instance) = instance {
        move_to(&mut server.planned.machine, instance, 1);
    }
    let ideal = ideal(catalog, size_bytes).map_err(SizingError::Ideal)?;
    // A server that is overloaded shows it soon, and takes long to model.
    let mut outcome = run(server, tps, &ideal, None, TRIAL_SPAN, seed);
    if outcome.tps() >= tps * CARRIED {
        outcome = run(server, tps, &ideal, None, LOAD_SPAN, seed);
    }
    if outcome.tps() < tps * CARRIED {
        let (limiter, share) = outcome.limiter();
        return Err(SizingError::ServerOverloaded {
            tps,
            finished: outcome.tps(),
            limiter: limiter.words(),
            share,
        });
    }
    source.load = demand(&outcome);
    source.log_bytes = Some(outcome.file(FileKind::Redo).bytes as f64 / outcome.measured.as_secs_f64());
    source.notes.push(format!(
        "the model's load at {} transactions a second on a volume that answers at once; accuracy: docs/accuracy.md",
        ebbtide_text::figure(tps)
    ));
    let judged = judged(server, tps, &ideal, seed);
    let interval = server.uncertainty(open_loop(tps));
    source.notes.push(words(judged, tps, interval.of(Figure::Tps).low));
    if !interval.outside().is_empty() {
        source.notes.push(format!("the interval is wide, since {}", interval.outside().join(", and ")));
    }
    Ok(judged)
}

/// A volume that answers at once.
fn ideal(catalog: &Catalog, size_bytes: u64) -> Result<Resolved, VolumesError> {
    let spec = Spec::parse(&format!("ideal:size={}", format_size(size_bytes)))?;
    Ok(catalog.resolve(&spec)?)
}

/// What choices are judged at, for people; `low` is the least to expect of a throughput, times the model's.
fn words(judged: JudgedRate, tps: f64, low: f64) -> String {
    let figure = ebbtide_text::figure;
    let low_words = ebbtide_text::fixed(low, 2);
    if judged.low < 1.0 {
        return format!(
            "choices carry {} transactions a second in the model: throughput was down to {low_words} times what was predicted",
            figure(judged.tps)
        );
    }
    format!(
        "throughput was down to {low_words} times what was predicted, and on a volume without limits this server does not carry {} \
         transactions a second: choices are judged at {}, and no storage makes it sure",
        figure(tps / low),
        figure(tps)
    )
}

/// The rate to judge choices at: as much more than the rate as predictions of throughput were too high, where the server itself
/// carries that.
fn judged(server: &ModelledServer, tps: f64, ideal: &Resolved, seed: u64) -> JudgedRate {
    let low = server.uncertainty(open_loop(tps)).of(Figure::Tps).low.clamp(0.01, 1.0);
    let sure = tps / low;
    let outcome = run(server, sure, ideal, None, TRIAL_SPAN, seed);
    if outcome.tps() >= sure * CARRIED { JudgedRate { tps: sure, low } } else { JudgedRate { tps, low: 1.0 } }
}

/// So many transactions a second, whoever waits.
pub(super) const fn open_loop(tps: f64) -> ModelLoad {
    ModelLoad { clients: OPEN_CLIENTS, rate: Some(tps) }
}

/// A run of the server on a volume, with so many transactions a second.
pub(super) fn run(
    server: &ModelledServer,
    tps: f64,
    volume: &Resolved,
    instance: Option<&InstanceType>,
    span: Nanos,
    seed: u64,
) -> ModelOutcome {
    server.run(&Setting { load: open_loop(tps), volumes: volume.into(), instance, span, seed })
}

/// The spans of a run as a load. Reads are divided from writes as those of the whole run are. Each kind of file is counted by
/// its own mean size, in units of EBS: the volume that answered at once has a larger one.
fn demand(outcome: &ModelOutcome) -> VolumeLoad {
    let counted = |kind: FileKind| {
        let file = outcome.file(kind);
        let mean = file.bytes.div_ceil(file.ios.max(1));
        (file.ios * mean.div_ceil(SSD_UNIT).max(1)) as f64
    };
    let bytes = |kind: FileKind| outcome.file(kind).bytes as f64;
    let of_reads = |kind: &FileKind| *kind == FileKind::DataRead;
    let sum = |of: &dyn Fn(FileKind) -> f64, reads: bool| -> f64 {
        FileKind::ALL.into_iter().filter(|kind| of_reads(kind) == reads).map(of).sum()
    };
    let operations: u64 = FileKind::ALL.into_iter().map(|kind| outcome.file(kind).operations).sum();
    let of_operations = |counted: f64| counted / (operations.max(1) as f64);
    let (reads, writes) = (of_operations(sum(&counted, true)), of_operations(sum(&counted, false)));
    let (read_bytes, written_bytes) = (sum(&bytes, true), sum(&bytes, false));
    let read_bytes = read_bytes / (read_bytes + written_bytes).max(1.0);
    let mut end = Nanos::ZERO;
    let mut intervals = Vec::new();
    for span in &outcome.spans {
        let begun = std::mem::replace(&mut end, span.end);
        if begun < SETTLE {
            continue;
        }
        let seconds = span.end.since(begun).as_secs_f64();
        let (ios, all_bytes) = (span.operations as f64 / seconds, span.bytes as f64 / seconds);
        intervals.push(LoadInterval {
            start_s: begun.as_secs_f64(),
            seconds,
            reads: ios * reads,
            writes: ios * writes,
            read_bytes: all_bytes * read_bytes,
            written_bytes: all_bytes * (1.0 - read_bytes),
            ..LoadInterval::default()
        });
    }
    VolumeLoad { intervals }
}
