//! Sizing for the server of a profile: its load by the model of InnoDB, and the choices checked by it.

use ebbtide_advisor::sizing::{Candidate, Choice, Sizing, Space, place_of_answer};
use ebbtide_catalog::{Catalog, InstanceType, Resolved, Spec};
use ebbtide_observe::{LoadInterval, VolumeLoad};
use ebbtide_twin::accuracy::Figure;
use ebbtide_twin::innodb::{FileKind, ModelLoad, ModelOutcome};
use ebbtide_volume::{Nanos, format_size};

use super::plan::Plan;
use super::source::Source;
use crate::exit::{Exit, Refusal};
use crate::predict::server::{ModelledServer, SETTLE, Setting};

/// Virtual time of the load that is sized for.
const LOAD_SPAN: Nanos = Nanos::from_secs(600);
/// Virtual time of a first look at whether the server carries it.
const TRIAL_SPAN: Nanos = Nanos::from_secs(30);
/// Virtual time of a check of a choice.
const CHECK_SPAN: Nanos = Nanos::from_secs(120);
/// Connections that an open loop may use.
const OPEN_CLIENTS: u32 = 256;
/// Share of the transactions that counts as all of them.
const CARRIED: f64 = 0.97;
/// Multiples of the planned load that choices are looked for with.
const FACTORS: [f64; 5] = [1.0, 1.25, 1.6, 2.0, 3.0];
/// Single volumes, and arrays, that are checked at most.
const MOST_CHECKS: usize = 16;

/// What the model says of a choice.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Verified {
    /// Transactions a second that it finishes at the planned rate.
    pub(super) tps: f64,
    /// The least of the transactions a second that it could finish (docs/accuracy.md): the model's at [`JudgedRate::tps`],
    /// times the low end of their interval.
    pub(super) tps_low: f64,
    /// 99 of 100 transactions take at most this.
    pub(super) p99: Option<Nanos>,
    /// The most of it to expect.
    pub(super) p99_high: Option<Nanos>,
    /// What limits most of the time.
    pub(super) limiter: &'static str,
    /// Whether the low tps are those that were asked for, and the high p99 is within the one that was.
    pub(super) meets: bool,
}

/// The rate that choices are judged at. Transactions that arrive are finished or are not, so the interval of a throughput is
/// one of what a server *could* finish: to be sure of a rate, a choice has to carry the rate by the low end of its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct JudgedRate {
    /// Transactions a second that choices have to carry in the model.
    pub(super) tps: f64,
    /// The least to expect of a throughput, times the model's; 1 where the server itself carries no more than what was asked
    /// for, so that no storage can make it sure.
    pub(super) low: f64,
}

/// Puts the load of the profile's server into `source`: what it asks of a volume that answers at once, at so many transactions
/// a second.
///
/// # Errors
/// The server itself does not carry them: exit code 1.
pub(super) fn load(
    source: &mut Source,
    catalog: &Catalog,
    size_bytes: u64,
    tps: f64,
    instance: Option<&InstanceType>,
    seed: u64,
) -> anyhow::Result<JudgedRate> {
    let asked = JudgedRate { tps, low: 1.0 };
    let Some(server) = &mut source.server else { return Ok(asked) };
    if let Some(instance) = instance {
        server.planned.machine.vcpus = instance.vcpus;
    }
    let spec = Spec::parse(&format!("ideal:size={}", format_size(size_bytes)))?;
    let ideal = catalog.resolve(&spec)?;
    // A server that is overloaded shows it soon, and takes long to model.
    let mut outcome = run(server, tps, &ideal, None, TRIAL_SPAN, seed);
    if outcome.tps() >= tps * CARRIED {
        outcome = run(server, tps, &ideal, None, LOAD_SPAN, seed);
    }
    if outcome.tps() < tps * CARRIED {
        let (limiter, share) = outcome.limiter();
        let message = format!(
            "no storage lets this server carry {} transactions a second: on a volume without limits it finishes {}, held back by {} in {} \
             of the time",
            ebbtide_text::figure(tps),
            ebbtide_text::figure(outcome.tps()),
            limiter.words(),
            ebbtide_text::percent(share)
        );
        let refusal = Refusal { exit: Exit::Finding, ..Refusal::usage(message) };
        return Err(refusal
            .hint("give a larger --instance, other settings in the profile, or fewer --tps")
            .into());
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

const fn open_loop(tps: f64) -> ModelLoad {
    ModelLoad { clients: OPEN_CLIENTS, rate: Some(tps) }
}

fn run(
    server: &ModelledServer,
    tps: f64,
    volume: &Resolved,
    instance: Option<&InstanceType>,
    span: Nanos,
    seed: u64,
) -> ModelOutcome {
    server.run(&Setting { load: open_loop(tps), volumes: volume.into(), instance, span, seed })
}

/// The spans of a run as a load; reads are divided from writes as those of the whole run are.
fn demand(outcome: &ModelOutcome) -> VolumeLoad {
    let sum = |of: fn(&ModelOutcome, FileKind) -> u64, kinds: &[FileKind]| {
        kinds.iter().map(|kind| of(outcome, *kind)).sum::<u64>() as f64
    };
    let operations = |outcome: &ModelOutcome, kind| outcome.file(kind).operations;
    let bytes = |outcome: &ModelOutcome, kind| outcome.file(kind).bytes;
    let share = |of: fn(&ModelOutcome, FileKind) -> u64| {
        sum(of, &[FileKind::DataRead]) / sum(of, &FileKind::ALL).max(1.0)
    };
    let (reads, read_bytes) = (share(operations), share(bytes));
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
            writes: ios * (1.0 - reads),
            read_bytes: all_bytes * read_bytes,
            written_bytes: all_bytes * (1.0 - read_bytes),
            ..LoadInterval::default()
        });
    }
    VolumeLoad { intervals }
}

/// Checks choices with the model, by cost, and puts the cheapest single volume that passes first, or else the cheapest array. Beside those of the planned load, choices
/// for more than it are tried: the model has bursts and latencies that the even load of a span does not have. Choices that do
/// not pass stay behind those that do; where none passes, none is left.
pub(super) fn verify(
    plan: &Plan<'_>,
    server: &ModelledServer,
    space: &Space<'_>,
    sizing: &mut Sizing<'_>,
) -> Vec<Verified> {
    let Some(judged) = plan.judged else { return Vec::new() };
    let mut tried: Vec<(Choice, Verified)> = Vec::new();
    let is_array = |choice: &Choice| choice.volumes.spec.members() > 1;
    for candidate in candidates(space) {
        let array = candidate.resolved.spec.members() > 1;
        let passing = || tried.iter().filter(|(_, check)| check.meets).map(|(choice, _)| choice);
        let alike = tried.iter().filter(|(choice, _)| is_array(choice) == array).count();
        let passed = passing().any(|choice| is_array(choice) == array);
        let kind = &candidate.resolved.spec.volume.kind;
        let family_passed =
            passing().any(|choice| is_array(choice) == array && choice.volumes.spec.volume.kind == *kind);
        // Behind the answer, the cheapest of each other type is enough; and an array has to cost less.
        let enough = passed && (family_passed || alike >= MOST_CHECKS / 2);
        let dear = array
            && passing().any(|choice| choice.storage.as_ref().is_some_and(|cost| cost.usd <= candidate.usd));
        if enough || dear || alike >= MOST_CHECKS {
            continue;
        }
        let check = check(plan, server, judged, &candidate.resolved, space.instance);
        tried.push((space.choice(&candidate.resolved), check));
    }
    tried.sort_by_key(|(choice, check)| (!check.meets, choice.usd().unwrap_or_default()));
    let met = tried.iter().take_while(|(_, check)| check.meets).count();
    if met == 0 {
        tried.clear();
    } else {
        let answer = place_of_answer(tried[..met].iter().map(|(choice, _)| choice), plan.arrays_asked);
        tried[..=answer].rotate_right(1);
    }
    let (choices, checks) = tried.into_iter().unzip();
    sizing.choices = choices;
    checks
}

/// What the model says of a choice: at the rate that was asked for, and at the one that makes it sure.
fn check(
    plan: &Plan<'_>,
    server: &ModelledServer,
    judged: JudgedRate,
    volume: &Resolved,
    instance: Option<&InstanceType>,
) -> Verified {
    let tps = judged.tps * judged.low;
    let at = |rate| run(server, rate, volume, instance, CHECK_SPAN, plan.seed);
    let outcome = at(tps);
    let p99 = outcome.latency_at(0.99);
    let high = server.uncertainty(open_loop(tps)).of(Figure::P99).high;
    let p99_high = p99.map(|p99| times(p99, high));
    let sure = (judged.low < 1.0).then(|| at(judged.tps));
    let most = sure.as_ref().unwrap_or(&outcome);
    let tps_low = most.tps() * judged.low;
    let quick = plan.transaction_p99.is_none_or(|most| p99_high.is_some_and(|p99| p99 <= most));
    let meets = tps_low >= tps * CARRIED && quick;
    let limiter = most.limiter().0.words();
    Verified { tps: outcome.tps(), tps_low, p99, p99_high, limiter, meets }
}

/// A time, so many times.
fn times(time: Nanos, factor: f64) -> Nanos {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "float casts saturate")]
    let ns = (time.0 as f64 * factor).round() as u64;
    Nanos(ns)
}

/// The cheapest of each type for the planned load and for more than it, by cost: single volumes, then arrays.
fn candidates(space: &Space<'_>) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = Vec::new();
    for factor in FACTORS {
        let demand = space.demand.times(factor);
        for candidate in (Space { demand: &demand, ..*space }).cheapest_of_each() {
            if !all.iter().any(|known| known.resolved.spec == candidate.resolved.spec) {
                all.push(candidate);
            }
        }
    }
    all.sort_by_key(|candidate| (candidate.resolved.spec.members() > 1, candidate.usd));
    all
}
