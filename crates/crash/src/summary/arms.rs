//! An arm's cuts, counted.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_analysis::stats::series::{mean, median, variance};
use ebbtide_analysis::stats::{Prior, Sample, Share, mean_interval};
use ebbtide_lab::experiment::{Arm, End, Moment, ServerRole};
use ebbtide_lab::summary::Measured;

use super::model::{
    ArmSummary, BinlogSummary, InFlightSummary, LossSummary, MomentSummary, Pace, Quantiles, RecoverySummary,
    ResumedSummary, ThroughputSummary, TornSummary,
};
use super::{Standing, has};
use crate::binlog::has_binlog;
use crate::record::{
    Corruption, CrashRun, Cut, CutCpu, FileKind, Loss, PageFound, Recovery, Stint, Throughput, Took, Verdict,
    VerdictKind,
};

/// The kinds of verdict of something that is wrong.
pub(crate) const BAD: [VerdictKind; 5] = [
    VerdictKind::Corrupt,
    VerdictKind::Partial,
    VerdictKind::LostCommits,
    VerdictKind::BinlogDisagrees,
    VerdictKind::ReplicationBroken,
];

/// Whether a kind of verdict is looked for: clients get no answers from a replica, a primary follows no server, and a
/// binary log that is not written disagrees with nothing.
fn is_asked(kind: VerdictKind, role: ServerRole, has_binlog: bool) -> bool {
    match kind {
        VerdictKind::LostCommits => role == ServerRole::Primary,
        VerdictKind::ReplicationBroken => role == ServerRole::Replica,
        VerdictKind::BinlogDisagrees => has_binlog,
        _ => true,
    }
}

pub(super) fn arm(run: &CrashRun, index: usize, arm: &Arm) -> ArmSummary {
    let cuts: Vec<&Cut> = run.cuts.iter().filter(|cut| cut.arm == arm.name).collect();
    let stints: Vec<&Stint> = run.stints.iter().filter(|stint| stint.arm == arm.name).collect();
    let standing = |wanted| count(&cuts, |cut| Standing::of(cut) == wanted);
    let (clean, bad) = (standing(Standing::Clean), standing(Standing::Bad));
    let role = arm.crash.as_ref().map_or(ServerRole::default(), |crash| crash.role);
    let is_mariadb = run.server.flavour == "mariadb";
    let options = run.server.options.get(&arm.name);
    let has_binlog = options.is_some_and(|options| has_binlog(arm, options, is_mariadb));
    ArmSummary {
        name: arm.name.clone(),
        index,
        role,
        end: arm.crash.as_ref().map_or(End::PowerCut, |crash| crash.end),
        planned: arm.crash.as_ref().map_or(0, |crash| crash.cuts),
        cuts: number(cuts.len()),
        clean,
        bad: Share::new(bad, bad + clean),
        unverified: standing(Standing::Unverified),
        bad_in_part: count(&cuts, |cut| {
            Standing::of(cut) == Standing::Bad && has(cut, VerdictKind::Unverified)
        }),
        verdicts: BAD
            .into_iter()
            .filter(|kind| is_asked(*kind, role, has_binlog))
            .map(|kind| (kind, share(&cuts, kind)))
            .collect(),
        corruption: corruption(&cuts),
        loss: loss(&cuts),
        recovery: recovery(&cuts),
        resumed: resumed(&cuts),
        torn: torn(arm, &cuts),
        binlog: binlog(&cuts),
        moments: moments(arm, has_binlog, &cuts),
        in_flight: in_flight(&cuts),
        throughput: throughput(&stints),
        disqualified: number(stints.iter().filter(|stint| is_disqualified(stint)).count()),
        gain: None,
        gain_over: None,
        pace: pace(&cuts, &stints),
    }
}

fn number(length: usize) -> u64 {
    u64::try_from(length).expect("what is in memory can be counted")
}

fn count(cuts: &[&Cut], which: impl Fn(&Cut) -> bool) -> u64 {
    number(cuts.iter().filter(|cut| which(cut)).count())
}

/// Cuts with a kind of verdict, of those in which it could be looked for.
fn share(cuts: &[&Cut], kind: VerdictKind) -> Share {
    let looked_for = |cut: &Cut| match Standing::of(cut) {
        Standing::Clean => true,
        Standing::Unverified => false,
        // Where the server does not start, and where something could not be looked at, nobody knows.
        // A replica with damaged tables is not asked to go on.
        Standing::Bad if kind == VerdictKind::ReplicationBroken => {
            has(cut, kind) || (cut.resumed.is_some() && !has(cut, VerdictKind::Unverified))
        }
        Standing::Bad => has(cut, kind) || (cut.recovery.is_some() && !has(cut, VerdictKind::Unverified)),
    };
    Share::new(count(cuts, |cut| has(cut, kind)), count(cuts, looked_for))
}

fn corruption(cuts: &[&Cut]) -> BTreeMap<Corruption, u64> {
    let mut ways = BTreeMap::new();
    for cut in cuts {
        let how = cut.verdicts.iter().find_map(|verdict| match verdict {
            Verdict::Corrupt { how, .. } => Some(*how),
            _ => None,
        });
        how.into_iter().for_each(|how| *ways.entry(how).or_default() += 1);
    }
    ways
}

/// None without values.
pub(super) fn quantiles(values: impl Iterator<Item = f64>) -> Option<Quantiles> {
    let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    let (first, last) = (*values.first()?, *values.last()?);
    // The smallest value that this percentage of all does not exceed.
    let at = |percent: usize| values[(values.len() * percent).div_ceil(100).max(1) - 1];
    let [p5, p50, p95] = [5, 50, 95].map(at);
    Some(Quantiles { count: number(values.len()), min: first, p5, p50, p95, max: last })
}

fn loss(cuts: &[&Cut]) -> Option<LossSummary> {
    let lost =
        || cuts.iter().filter(|cut| has(cut, VerdictKind::LostCommits)).filter_map(|cut| cut.loss.as_ref());
    let of = |figure: fn(&Loss) -> f64| quantiles(lost().map(figure));
    Some(LossSummary {
        transactions: of(|loss| loss.transactions as f64)?,
        seconds: of(|loss| loss.seconds)?,
    })
}

fn recovery(cuts: &[&Cut]) -> Option<RecoverySummary> {
    let recovered = || cuts.iter().filter_map(|cut| cut.recovery.as_ref());
    let of = |figure: fn(&Recovery) -> f64| quantiles(recovered().map(figure));
    Some(RecoverySummary {
        seconds: of(|one| one.seconds)?,
        reads: of(|one| one.reads as f64)?,
        read_bytes: of(|one| one.read_bytes as f64)?,
        writes: of(|one| one.writes as f64)?,
        written_bytes: of(|one| one.written_bytes as f64)?,
        rolled_back: recovered().map(|one| one.rolled_back).sum(),
    })
}

fn resumed(cuts: &[&Cut]) -> Option<ResumedSummary> {
    let resumed = || cuts.iter().filter_map(|cut| cut.resumed.as_ref());
    Some(ResumedSummary {
        to_fetch_again: quantiles(resumed().map(|one| one.to_fetch_again as f64))?,
        caught_up_s: quantiles(resumed().filter_map(|one| one.caught_up_s)),
    })
}

/// Whether a server writes to its doublewrite buffer, which it does unless it is configured not to.
fn has_doublewrite(arm: &Arm) -> bool {
    let doublewrite = arm.settings.get("doublewrite").map(str::to_ascii_lowercase);
    !matches!(doublewrite.as_deref(), Some("off" | "0" | "false"))
}

/// Whether a moment can come with an arm at all.
pub(crate) fn can_come(moment: Moment, arm: &Arm, has_binlog: bool) -> bool {
    match moment {
        Moment::Doublewrite => has_doublewrite(arm),
        Moment::BinlogRotation => has_binlog,
        _ => true,
    }
}

fn torn(arm: &Arm, cuts: &[&Cut]) -> TornSummary {
    // What is in a buffer that is not in use was left there when the data were made.
    let in_use = has_doublewrite(arm);
    let torn = |cut: &Cut| !cut.torn_before.is_empty();
    TornSummary {
        writes: cuts.iter().map(|cut| number(cut.in_flight.iter().filter(|one| one.is_torn()).count())).sum(),
        images: count(cuts, torn),
        pages: cuts.iter().map(|cut| number(cut.torn_before.len())).sum(),
        given_back: cuts
            .iter()
            .filter_map(|cut| cut.recovery.as_ref())
            .map(|one| one.doublewrite_pages)
            .sum(),
        not_restored: count(cuts, |cut| in_use && stayed(cut).any(|page| page.copy.is_some())),
        mended: count(cuts, |cut| torn(cut) && Standing::of(cut) == Standing::Clean),
    }
}

/// The pages that were invalid before recovery and still are after it.
fn stayed(cut: &Cut) -> impl Iterator<Item = &PageFound> {
    let after = || {
        cut.verdicts.iter().flat_map(|verdict| match verdict {
            Verdict::Corrupt { pages, .. } => pages.as_slice(),
            _ => &[],
        })
    };
    let is_same = |one: &PageFound, other: &PageFound| (&one.file, one.page) == (&other.file, other.page);
    cut.torn_before.iter().filter(move |page| after().any(|later| is_same(page, later)))
}

fn binlog(cuts: &[&Cut]) -> Option<BinlogSummary> {
    let apart = cuts.iter().flat_map(|cut| &cut.verdicts).filter_map(|verdict| match verdict {
        Verdict::BinlogDisagrees { missing_in_binlog, missing_in_tables, .. } => Some(BinlogSummary {
            missing_in_binlog: *missing_in_binlog,
            missing_in_tables: *missing_in_tables,
        }),
        _ => None,
    });
    apart.reduce(|a, b| BinlogSummary {
        missing_in_binlog: a.missing_in_binlog.max(b.missing_in_binlog),
        missing_in_tables: a.missing_in_tables.max(b.missing_in_tables),
    })
}

fn moments(arm: &Arm, has_binlog: bool, cuts: &[&Cut]) -> Vec<MomentSummary> {
    let planned = arm.crash.iter().flat_map(|crash| &crash.moments);
    let mut moments = Vec::new();
    for moment in planned.copied().chain(cuts.iter().map(|cut| cut.moment)) {
        if !moments.contains(&moment) {
            moments.push(moment);
        }
    }
    let summed_up = moments.into_iter().map(|moment| {
        let cuts: Vec<&Cut> = cuts.iter().copied().filter(|cut| cut.moment == moment).collect();
        MomentSummary {
            moment,
            cuts: number(cuts.len()),
            possible: if can_come(moment, arm, has_binlog) { number(cuts.len()) } else { 0 },
            met: count(&cuts, |cut| cut.met),
            clean: count(&cuts, |cut| Standing::of(cut) == Standing::Clean),
            unverified: count(&cuts, |cut| Standing::of(cut) == Standing::Unverified),
            verdicts: BAD.iter().map(|kind| (*kind, count(&cuts, |cut| has(cut, *kind)))).collect(),
        }
    });
    summed_up.collect()
}

fn in_flight(cuts: &[&Cut]) -> Vec<InFlightSummary> {
    let writes = || cuts.iter().flat_map(|cut| &cut.in_flight);
    let kinds: BTreeSet<FileKind> = writes().map(|write| write.kind).collect();
    let summed_up = kinds.into_iter().map(|kind| InFlightSummary {
        kind,
        cuts: count(cuts, |cut| cut.in_flight.iter().any(|write| write.kind == kind)),
        writes: number(writes().filter(|write| write.kind == kind).count()),
        torn: number(writes().filter(|write| write.kind == kind && write.is_torn()).count()),
    });
    summed_up.collect()
}

/// Whether a stint's throughput was measured and does not count.
fn is_disqualified(stint: &Stint) -> bool {
    stint.throughput.is_some() && stint.counted().is_none()
}

/// One for each stint whose throughput counts.
pub(super) fn samples(run: &CrashRun, arm: &str) -> Vec<Sample> {
    let stints = run.stints.iter().filter(|stint| stint.arm == arm);
    stints.filter_map(|stint| Sample::new(stint.counted()?.tps, &[])).collect()
}

fn throughput(stints: &[&Stint]) -> Option<ThroughputSummary> {
    let measured: Vec<&Throughput> = stints.iter().filter_map(|stint| stint.counted()).collect();
    let of = |figure: fn(&Throughput) -> f64| measured.iter().map(|one| figure(one)).collect::<Vec<_>>();
    let tps = of(|one| one.tps);
    let p95: Vec<f64> = measured.iter().filter_map(|one| one.p95_us).collect();
    let (least, most) = (tps.iter().copied().reduce(f64::min)?, tps.iter().copied().reduce(f64::max)?);
    Some(ThroughputSummary {
        stints: number(tps.len()),
        tps: Measured {
            mean: mean(&tps),
            interval: None,
            spread: (tps.len() > 1 && mean(&tps) > 0.0).then(|| variance(&tps).sqrt() / mean(&tps)),
            min: least,
            max: most,
        },
        p95_us: (!p95.is_empty()).then(|| median(&p95)),
        write_iops: mean(&of(|one| one.write_iops)),
        write_bytes_s: mean(&of(|one| one.write_bytes_s)),
    })
}

/// Gives throughputs their intervals, now that it is known how far all arms spread.
pub(super) fn with_intervals(arms: &mut [ArmSummary], samples: &[Vec<Sample>], prior: &Prior) {
    for (arm, samples) in arms.iter_mut().zip(samples) {
        let Some(throughput) = &mut arm.throughput else { continue };
        throughput.tps.interval = mean_interval(samples, prior);
        if let Some(interval) = throughput.tps.interval {
            throughput.tps.mean = interval.mid;
        }
    }
}

/// The mean of those that were awaited by somebody.
fn mean_awaited(cuts: &[&Cut]) -> Option<f64> {
    let known: Vec<f64> = cuts.iter().filter_map(|cut| cut.took.awaited).collect();
    (!known.is_empty()).then(|| mean(&known))
}

/// The means of those that have any.
fn mean_cpu(cuts: &[&Cut]) -> Option<CutCpu> {
    let known: Vec<CutCpu> = cuts.iter().filter_map(|cut| cut.took.cpu).collect();
    let mean_of = |figure: fn(&CutCpu) -> f64| mean(&known.iter().map(figure).collect::<Vec<_>>());
    (!known.is_empty()).then(|| CutCpu {
        start: mean_of(|cpu| cpu.start),
        ask: mean_of(|cpu| cpu.ask),
        checker: mean_of(|cpu| cpu.checker),
    })
}

pub(super) fn pace(cuts: &[&Cut], stints: &[&Stint]) -> Pace {
    let cutting_s: f64 = stints.iter().map(|stint| stint.cutting_s).sum();
    let verified: u32 = stints.iter().map(|stint| stint.verified).sum();
    let mean_of = |figure: fn(&Cut) -> f64| mean(&cuts.iter().map(|cut| figure(cut)).collect::<Vec<_>>());
    let took = Took {
        image: mean_of(|cut| cut.took.image),
        attach: mean_of(|cut| cut.took.attach),
        file_system: mean_of(|cut| cut.took.file_system),
        pages: mean_of(|cut| cut.took.pages),
        start: mean_of(|cut| cut.took.start),
        ask: mean_of(|cut| cut.took.ask),
        resume: mean_of(|cut| cut.took.resume),
        clear: mean_of(|cut| cut.took.clear),
        total: mean_of(|cut| cut.took.total),
        awaited: mean_awaited(cuts),
        cpu: mean_cpu(cuts),
    };
    let measured = verified > 0 && cutting_s > 0.0;
    Pace {
        cuts: number(cuts.len()),
        cutting_s,
        cuts_a_minute: measured.then(|| f64::from(verified) * 60.0 / cutting_s),
        took,
        paused_us: mean_of(|cut| cut.paused_us),
    }
}
