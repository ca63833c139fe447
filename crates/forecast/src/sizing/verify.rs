//! Choices for a server's profile, checked with the model of the server.

use ebbtide_advisor::sizing::{Candidate, Choice, Sizing, Space, place_of_answer};
use ebbtide_catalog::{InstanceType, Resolved};
use ebbtide_twin::accuracy::Figure;
use ebbtide_volume::Nanos;

use super::modelled::{JudgedRate, open_loop, run};
use super::plan::SizingPlan;
use crate::server::ModelledServer;

/// Virtual time of a check of a choice.
const CHECK_SPAN: Nanos = Nanos::from_secs(120);
/// Multiples of the planned load that choices are looked for with.
const FACTORS: [f64; 5] = [1.0, 1.25, 1.6, 2.0, 3.0];
/// Share of the transactions that a choice has to finish in time. A few may be late for a moment at the end of a run.
const MET: f64 = 0.999;
/// Single volumes, and arrays, that are checked at most.
const MOST_CHECKS: usize = 16;

/// What the model says of a choice.
#[derive(Debug, Clone, PartialEq)]
pub struct Verified {
    /// Transactions a second that it carries at the planned rate: at most that rate, since no more arrive.
    pub tps: f64,
    /// The least of them to expect (docs/accuracy.md): what it carries at [`super::JudgedRate::tps`], times the low end of the interval
    /// of a throughput. At most the planned rate too.
    pub tps_low: f64,
    /// 99 of 100 transactions take at most this.
    pub p99: Option<Nanos>,
    /// The most of it to expect.
    pub p99_high: Option<Nanos>,
    /// What limits most of the time.
    pub limiter: &'static str,
    /// Whether the low tps are those that were asked for, and the high p99 is within the one that was.
    pub meets: bool,
}

/// Checks choices with the model, by cost, and puts the cheapest single volume that passes first, or else the cheapest array. Beside those of the planned load, choices
/// for more than it are tried: the model has bursts and latencies that the even load of a span does not have. Choices that do
/// not pass stay behind those that do; where none passes, none is left.
pub(super) fn verify(
    plan: &SizingPlan<'_>,
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
    plan: &SizingPlan<'_>,
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
    // Arrivals are drawn: what a run finishes is the rate times their luck. What it did not come to is not.
    let tps_low = tps * most.share_carried();
    let quick = plan.transaction_p99.is_none_or(|most| p99_high.is_some_and(|p99| p99 <= most));
    let meets = most.share_carried() >= MET && quick;
    let limiter = most.limiter().0.words();
    Verified { tps: tps * outcome.share_carried(), tps_low, p99, p99_high, limiter, meets }
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
