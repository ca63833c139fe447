//! Sizing against the simulator: what the answer is said to carry, the twin has to serve without a wait, and a tenth less makes
//! the same load wait. A throttled past is made by the twin, with a load that is known.

use std::ops::ControlFlow;

use ebbtide_catalog::{Catalog, Resolved};
use ebbtide_observe::{LoadInterval, VolumeLoad};
use ebbtide_twin::{Interval, Observer, Percentiles, Setup, Totals, fio, simulate};
use ebbtide_volume::{Array, GIB, Nanos, RateLimit};
use proptest::prelude::*;

use super::{of_sides, volume};
use crate::sizing::change::short;
use crate::sizing::{Demand, LoadOrigin, Objective, Space, examine};

const KIB: u64 = 1_024;
const SEED: u64 = 7;

#[derive(Default)]
struct Kept(Vec<Interval>);

impl Observer for Kept {
    fn interval(&mut self, _: usize, interval: &Interval, _: &Percentiles) -> ControlFlow<()> {
        self.0.push(*interval);
        ControlFlow::Continue(())
    }
}

/// Runs jobs of fio on volumes that have a share of their burst credits.
fn run(volumes: &Resolved, jobs: &str, credits: f64, interval: Nanos) -> (Totals, Vec<Interval>) {
    let workload = fio::parse_file(jobs, "", &fio::Nothing).unwrap();
    let mut array = Array::striped(volumes.members.clone(), volumes.chunk_bytes, Nanos::ZERO).unwrap();
    array.set_credit_share(credits, Nanos::ZERO);
    let mut kept = Kept::default();
    let setup = Setup { volumes: vec![array], instance: None, workload: &workload, seed: SEED, interval };
    let outcome = simulate(setup, &mut kept).unwrap();
    (outcome.volumes[0].totals(), kept.0)
}

/// Requests of two directions: a number a second and KiB of one, zero for none.
#[derive(Debug, Clone, Copy)]
struct Sides {
    reads: (u64, u64),
    writes: (u64, u64),
}

impl Sides {
    fn load(self) -> VolumeLoad {
        let side = |(rate, kib): (u64, u64)| (rate as f64, (kib * KIB) as f64);
        of_sides(side(self.reads), side(self.writes), 60.0)
    }

    fn jobs(self, seconds: u64) -> String {
        let mut jobs = format!("[global]\nruntime={seconds}\ntime_based\n");
        for (name, word, (rate, kib)) in [("r", "randread", self.reads), ("w", "randwrite", self.writes)] {
            if rate > 0 {
                jobs += &format!("[{name}]\nrw={word}\nbs={kib}k\nrate_iops={rate}\n");
            }
        }
        jobs
    }

    /// Units that a read and a write cost together.
    fn units(self, unit_kib: u64) -> u64 {
        self.reads.1.div_ceil(unit_kib) + self.writes.1.div_ceil(unit_kib)
    }
}

/// The mean time that a request waits for a limit, s.
fn mean_wait(volumes: &Resolved, sides: Sides, seconds: u64) -> f64 {
    let (totals, _) = run(volumes, &sides.jobs(seconds), 0.0, Nanos::SECOND);
    let all = totals.all();
    assert!(all.ios > 0, "{sides:?}: something is served");
    all.throttled_ns as f64 / 1e9 / all.ios as f64
}

/// The cheapest of a type that carries the load as it is.
fn cheapest(kind: &str, members: u16, sides: Sides) -> Option<Resolved> {
    let catalog = Catalog::builtin();
    let demand = Demand::of(&sides.load(), 1.0);
    let space = Space {
        catalog: &catalog,
        prices: catalog.prices(None).unwrap(),
        demand: &demand,
        objective: Objective { size_bytes: 500 * GIB, carried: 1.0, p99: None },
        most_members: members,
        instance: None,
        counts_allowance: false,
        too_little: None,
    };
    Some(space.cheapest_of(kind, members, None)?.resolved)
}

/// The same volumes with a tenth less of one of their figures: those that there are.
fn a_tenth_less(volumes: &Resolved) -> Vec<Resolved> {
    let spec = &volumes.spec;
    let less = |value: u64| value * 9 / 10;
    let mut all = Vec::new();
    if let Some(iops) = spec.volume.iops {
        let mut spec = spec.clone();
        spec.volume.iops = Some(less(iops));
        all.push(spec);
    }
    if let Some(mib_s) = spec.volume.throughput_mib_s {
        let mut spec = spec.clone();
        spec.volume.throughput_mib_s = Some(less(mib_s));
        all.push(spec);
    }
    if spec.volume.iops.is_none() {
        let mut spec = spec.clone();
        spec.volume.size_bytes = spec.volume.size_bytes.map(|bytes| less(bytes / GIB) * GIB);
        all.push(spec);
    }
    let catalog = Catalog::builtin();
    all.iter().filter_map(|spec| catalog.resolve(spec).ok()).collect()
}

fn any_side() -> impl Strategy<Value = (u64, u64)> {
    let small = prop_oneof![Just(4_u64), Just(8), Just(16), 1_u64..64];
    let sizes = prop_oneof![3 => small, 2 => 65_u64..2_048, 1 => Just(256_u64), 1 => Just(1_024)];
    // No more than 400 MiB/s in a direction.
    (0_u64..4_000, sizes).prop_map(|(rate, kib)| (rate.min(400 * KIB / kib), kib))
}

fn any_sides() -> impl Strategy<Value = Sides> {
    (any_side(), any_side(), 0_u8..6).prop_map(|(reads, writes, alone)| match alone {
        0 => Sides { reads: (0, reads.1), writes },
        1 => Sides { reads, writes: (0, writes.1) },
        _ => Sides { reads, writes },
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn the_answer_carries_the_load_in_the_simulator_and_a_tenth_less_does_not(sides in any_sides()) {
        prop_assume!(sides.reads.0 + sides.writes.0 > 0);
        let answer = cheapest("gp3", 1, sides).expect("gp3 has 80,000 IOPS and 2,000 MiB/s");
        let wait = mean_wait(&answer, sides, 30);
        prop_assert!(wait < 0.001, "{}: {wait} s for {sides:?}", answer.spec);
        // What is the least that is sold may be more than is needed.
        let needs = |less: &Resolved| !Demand::of(&sides.load(), 0.97)
            .carried_by(&crate::sizing::search::setup(less, None)).overloaded;
        for less in a_tenth_less(&answer).into_iter().filter(|less| !needs(less)) {
            let wait = mean_wait(&less, sides, 60);
            prop_assert!(wait > 0.001, "{}: {wait} s for {sides:?}, of {}", less.spec, answer.spec);
        }
    }

    #[test]
    fn volumes_of_each_type_carry_what_they_are_said_to(
        sides in any_sides(), kind in prop_oneof![Just("gp2"), Just("io1"), Just("io2"), Just("st1"), Just("sc1")],
    ) {
        prop_assume!(sides.reads.0 + sides.writes.0 > 0);
        let Some(volumes) = cheapest(kind, 1, sides) else { return Ok(()) };
        let wait = mean_wait(&volumes, sides, 30);
        prop_assert!(wait < 0.001 + paid(&volumes, sides), "{}: {wait} s for {sides:?}", volumes.spec);
    }

    #[test]
    fn arrays_carry_what_they_are_said_to(sides in any_sides(), members in 2_u16..5) {
        prop_assume!(sides.reads.0 + sides.writes.0 > 0);
        // Random places load the members by turns, by chance: what an idle gp3 gives beyond its rate evens that out.
        let volumes = cheapest("gp3", members, sides).expect("gp3 has 80,000 IOPS and 2,000 MiB/s");
        let wait = mean_wait(&volumes, sides, 20);
        prop_assert!(wait < 0.001, "{}: {wait} s for {sides:?}", volumes.spec);
    }
}

/// The longest time until a volume without an allowance has paid for one request of each direction that come at once, s.
fn paid(volumes: &Resolved, sides: Sides) -> f64 {
    let limits = &volumes.members[0];
    let unit = u64::from(limits.accounting.unit_bytes);
    let units = sides.units(unit / KIB);
    let bytes =
        if limits.accounting.whole_units { units * unit } else { (sides.reads.1 + sides.writes.1) * KIB };
    let time =
        |limit: Option<RateLimit>, amount: u64| limit.map_or(0.0, |limit| amount as f64 / limit.rate as f64);
    time(limits.iops, units).max(time(limits.throughput, bytes))
}

#[test]
fn small_reads_beside_large_writes_need_their_units() {
    let sides = Sides { reads: (3_600, 4), writes: (400, 1_024) };
    let answer = cheapest("gp3", 1, sides).unwrap();
    assert_eq!(short(&answer.spec).to_string(), "gp3:size=500GiB,iops=5200,throughput=415");
    let wait = mean_wait(&answer, sides, 60);
    assert!(wait < 0.001, "{wait}");
    let wait = mean_wait(&volume("gp3:size=500GiB,iops=4800,throughput=500"), sides, 60);
    assert!(wait > 0.1, "{wait}");
}

/// Clients of a load in phases, each with a queue of 4,096 requests at most.
const CLIENTS: u64 = 50;

/// A load in phases of (operations a second of a client, minutes), all reads of 16 KiB.
fn phases(phases: &[(u64, u64)]) -> String {
    let mut jobs = format!("[global]\nrw=randread\nbs=16k\nnumjobs={CLIENTS}\n");
    let mut start = 0;
    for (number, (rate, minutes)) in phases.iter().enumerate() {
        jobs += &format!(
            "[phase{number}]\nstartdelay={}\nruntime={}\nrate_iops={rate}\n",
            start * 60,
            minutes * 60
        );
        start += minutes;
    }
    jobs
}

/// What CloudWatch would have of a run, without its latencies.
fn recorded(intervals: &[Interval]) -> VolumeLoad {
    let interval = |one: &Interval| {
        let seconds = one.span().as_secs_f64();
        let a_second = |number: u64| number as f64 / seconds;
        LoadInterval {
            start_s: one.start.as_secs_f64(),
            seconds,
            reads: a_second(one.reads),
            writes: a_second(one.writes),
            read_bytes: a_second(one.read_bytes),
            written_bytes: a_second(one.write_bytes),
            queue: Some(one.queue),
            credits: one.credit_share,
            ..LoadInterval::default()
        }
    };
    VolumeLoad { intervals: intervals.iter().map(interval).collect() }
}

/// The bound of a throttled past is at most so many times the highest load that there was.
const LOOSE: f64 = 1.6;

/// Runs a load on a gp2 of 100 GiB, which has 300 IOPS for ever, and holds the bound of its record against the load.
fn bounded(load: &[(u64, u64)], credits: f64, step_s: u64) -> Result<(), TestCaseError> {
    let today = volume("gp2:size=100GiB");
    let (_, intervals) = run(&today, &phases(load), credits, Nanos::from_secs(step_s));
    let record = recorded(&intervals);
    let throttled = examine(&record, LoadOrigin::EbsMetrics, Some(&today), None).unwrap().throttled;
    let throttled = throttled.expect("the load is above the baseline until the credits have ended");
    // The true load of an interval, by the parts of the phases that are in it.
    let truth = |interval: &LoadInterval| {
        let (mut from, mut came) = (0.0, 0.0);
        for (rate, minutes) in load {
            let to = from + *minutes as f64 * 60.0;
            let rate = (rate * CLIENTS) as f64;
            came += rate * (to.min(interval.end_s()) - from.max(interval.start_s)).max(0.0);
            from = to;
        }
        came / interval.seconds
    };
    let dry = |interval: &&LoadInterval| interval.credits.is_some_and(|credits| credits <= 0.01);
    let needed = record.intervals.iter().filter(dry).map(truth).fold(0.0, f64::max);
    let highest = load.iter().map(|(rate, _)| (rate * CLIENTS) as f64).fold(0.0, f64::max);
    let bound = throttled.implied_iops.unwrap_or(throttled.seen_iops);
    prop_assert!(bound >= 0.98 * needed, "{bound} for {needed}: {load:?} {throttled:?}");
    prop_assert!(bound <= LOOSE * highest, "{bound} for {highest}: {load:?} {throttled:?}");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn the_bound_of_a_burst_that_ends_its_credits_has_the_true_load_in_it(
        quiet in (1_u64..5, 3_u64..12), burst in 10_u64..56, lasts in 2.2_f64..6.0, goes_on in 5_u64..15,
        after in (1_u64..10, 3_u64..10), step_s in prop_oneof![Just(60_u64), Just(300)],
    ) {
        // Credits for `lasts` intervals of the burst, less what is earned before it.
        let spent = (burst * CLIENTS - 300) as f64 * lasts * step_s as f64;
        let earned = (300 - quiet.0 * CLIENTS) as f64 * quiet.1 as f64 * 60.0;
        let credits = (spent - earned).max(60_000.0) / 5_400_000.0;
        let minutes = crate::sizing::demand::whole((lasts * step_s as f64 / 60.0).ceil()) + goes_on + 5;
        bounded(&[quiet, (burst, minutes), (after.0.min(burst), after.1)], credits, step_s)?;
    }

    #[test]
    fn the_bound_of_a_queue_that_grows_has_the_true_load_in_it(
        rates in proptest::collection::vec((7_u64..13, 1_u64..4), 1..4), step_s in prop_oneof![Just(10_u64), Just(30)],
    ) {
        // There were no credits from the beginning, and all that comes is in the queue.
        bounded(&rates, 0.0, step_s)?;
    }
}

#[test]
fn clients_that_wait_are_bounded_by_what_they_had_before_the_credits_ended() {
    // A batch of 32 clients: 3,000 IOPS while the credits last, and 300 then. Little's law would have tens of thousands.
    let today = volume("gp2:size=100GiB");
    let jobs = "[batch]\nrw=randrw\nbs=16k\niodepth=32\nruntime=3600\n";
    let (_, intervals) = run(&today, jobs, 0.5, Nanos::from_secs(60));
    let record = recorded(&intervals);
    let throttled = examine(&record, LoadOrigin::EbsMetrics, Some(&today), None).unwrap().throttled.unwrap();
    let bound = throttled.implied_iops.unwrap();
    assert!((2_990.0..3_020.0).contains(&bound), "{throttled:?}");
    assert!(throttled.credits_ended_pct > 60.0, "{throttled:?}");
}
