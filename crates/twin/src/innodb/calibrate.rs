//! Calibration: what a transaction costs, from what was measured of the server.
//!
//! Each cost has one measured figure that it follows from. Where points lack those figures, one factor on all pages, or
//! else the processor time, is searched until the model's throughput is the measured one.

use ebbtide_volume::{Array, Instance, Nanos};

use super::cleaner::{sleeps, whole};
use super::cpu::Machine;
use super::flavour::Settings;
use super::model::{Costs, ModelLoad, ModelSetup, run};
use super::pages::{Pool, pages_per_transaction};
use super::redo::RedoLimits;
use super::shape::Shape;
use super::volumes::{FileKind, Volumes};

/// What was measured of the server at one load.
#[derive(Debug, Clone)]
pub struct MeasuredPoint {
    /// The settings that it had.
    pub settings: Settings,
    /// Its workload: that of the profile, with the point's size of data.
    pub shape: Shape,
    /// The volumes.
    pub volumes: Volumes<Array>,
    /// The instance's limits.
    pub instance: Option<Instance>,
    /// The load.
    pub load: ModelLoad,
    /// Transactions a second.
    pub tps: f64,
    /// Pages read by a transaction.
    pub reads: Option<f64>,
    /// Pages written by a transaction, without doublewrite.
    pub writes: Option<f64>,
    /// Processors busy, percent of all.
    pub cpu_pct: Option<f64>,
}

/// What a calibration found.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    /// The costs.
    pub costs: Costs,
    /// Of each point, the model's transactions a second divided by the measured ones.
    pub residuals: Vec<f64>,
    /// What was searched or taken as given, for people.
    pub notes: Vec<String>,
}

/// Points that no costs explain together.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CalibrateError {
    /// A factor is out of its bounds.
    #[error(
        "the {what} of the points are {factor:.2} times what the workload does; expected 0.2 to 5 times: check the \
         size of the data, the buffer pool and the unit (pages of a transaction)"
    )]
    OutOfBounds {
        /// Which figure.
        what: &'static str,
        /// The factor.
        factor: f64,
    },
    /// Two points need costs that are far apart.
    #[error(
        "points {first} and {second} contradict each other: their {what} need factors of {a:.2} and {b:.2}; check \
         that both are of one server and one workload"
    )]
    Contradiction {
        /// Which figure.
        what: &'static str,
        /// Place of one, from 1.
        first: usize,
        /// Place of the other.
        second: usize,
        /// The factor of one.
        a: f64,
        /// The factor of the other.
        b: f64,
    },
    /// Two points of the same server, volume and load have throughputs that are far apart.
    #[error(
        "points {first} and {second} contradict each other: with the same server, data, volume and load they finish {a} \
         and {b} transactions a second; remove the one that is wrong, or give each its own volume and load"
    )]
    Throughputs {
        /// Place of one, from 1.
        first: usize,
        /// Place of the other.
        second: usize,
        /// Transactions a second of one.
        a: f64,
        /// Those of the other.
        b: f64,
    },
    /// Nothing says what a transaction costs.
    #[error(
        "nothing says what processor time a transaction takes: give workload.cpu_us, or cpu_pct in a [[point]] \
         (us + sy of vmstat, or %user + %system of sar, during the measurement)"
    )]
    NoProcessorTime,
}

/// Factors beyond these mean that the profile describes another workload.
const BOUNDS: std::ops::RangeInclusive<f64> = 0.2..=5.0;
/// Points whose factors, or throughputs of the same server, volume and load, differ by more than this contradict each other.
const MOST_APART: f64 = 2.5;
/// Virtual time of a trial of the search, and what of it settles.
const TRIAL: Nanos = Nanos::from_secs(40);
const SETTLE: Nanos = Nanos::from_secs(10);
/// The same where page cleaner and redo log must come to their balance.
const LONG_TRIAL: Nanos = Nanos::from_secs(150);
const LONG_SETTLE: Nanos = Nanos::from_secs(90);
/// MariaDB writes pages in waves, as the redo log turns over: two of them are looked at, each of so many seconds at most.
const LONGEST_WAVE_S: f64 = 300.0;
/// Eviction explains what a run writes where the two differ by no more than this share.
const EXPLAINED: f64 = 0.2;
/// Trials of a search: each halves the logarithm of the range.
const TRIALS: u32 = 9;
/// From fewer measured pages of a transaction no factor follows: they cost nothing that matters, or the page cleaner had
/// nothing to do yet.
const FEW_PAGES: f64 = 0.05;
/// Connections of a trial at the measured throughput.
const OPEN_CLIENTS: u32 = 256;
/// A throughput this close needs no search.
const CLOSE: f64 = 0.03;

/// Fits the costs to the points. `given` has what the profile states; `cpu_us` there is used where no point has it.
///
/// # Errors
/// See [`CalibrateError`].
pub fn calibrate(
    points: &[MeasuredPoint],
    machine: Machine,
    given: Costs,
    cpu_given: bool,
    seed: u64,
) -> Result<Calibration, CalibrateError> {
    let mut costs = given;
    let mut notes = Vec::new();
    throughputs(points)?;
    let counted = points.iter().any(|point| point.reads.is_some() || point.writes.is_some());
    for figure in Figure::ALL {
        let found = factors(points, |point| figure.of(point, machine, costs, seed));
        contradiction(figure.words(), &found)?;
        let Some(mean) = mean(&found) else { continue };
        match figure {
            Figure::Time => costs.cpu_us = mean,
            _ if !BOUNDS.contains(&mean) => {
                return Err(CalibrateError::OutOfBounds { what: figure.words(), factor: mean });
            }
            Figure::Reads => costs.reads = mean,
            Figure::Writes => costs.writes = mean,
        }
        notes.push(figure.note(mean, &points_of(&found)));
    }
    if !cpu_given && !points.iter().any(|point| point.cpu_pct.is_some()) {
        return Err(CalibrateError::NoProcessorTime);
    }
    if !counted && !points.is_empty() {
        search(points, machine, &mut costs, seed, &mut notes)?;
    }
    let residuals = points.iter().map(|point| trial(point, machine, costs, seed) / point.tps).collect();
    Ok(Calibration { costs, residuals, notes })
}

/// A figure of a point that a cost follows from, in the order in which costs are found: later ones need the earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Figure {
    Time,
    Reads,
    Writes,
}

impl Figure {
    const ALL: [Self; 3] = [Self::Time, Self::Reads, Self::Writes];

    const fn words(self) -> &'static str {
        match self {
            Self::Time => "processor times",
            Self::Reads => "pages read",
            Self::Writes => "pages written",
        }
    }

    fn note(self, found: f64, points: &str) -> String {
        match self {
            Self::Time => format!("processor time: {found:.0} us of a transaction, from {points}"),
            _ => format!("{}: {found:.2} times the workload's, from {points}", self.words()),
        }
    }

    /// What a point says of the cost: the processor time of a transaction, us; or the measured pages divided by the
    /// model's. None where the point lacks the figure, and where there are too few pages to say anything.
    fn of(self, point: &MeasuredPoint, machine: Machine, costs: Costs, seed: u64) -> Option<f64> {
        let factor = |measured: f64, model: f64| (measured >= FEW_PAGES).then(|| measured / model.max(1e-3));
        match self {
            Self::Time => cpu_us(point, machine),
            Self::Reads => factor(point.reads?, evicting(point).0),
            Self::Writes => factor(point.writes?, written(point, machine, costs, seed)),
        }
    }
}

/// Pages that a transaction reads, and writes where pages are written when they are evicted.
fn evicting(point: &MeasuredPoint) -> (f64, f64) {
    let classes = &point.shape.classes;
    pages_per_transaction(classes, &Pool::of(&point.settings, classes))
}

/// Pages that a transaction writes in the model, at the throughput that was measured. Redo log, dirty share and page
/// cleaner decide with the pool, so that a run counts them. Where eviction alone explains that count, its figure is
/// taken, which has no noise.
fn written(point: &MeasuredPoint, machine: Machine, costs: Costs, seed: u64) -> f64 {
    let rate = point.load.rate.unwrap_or(point.tps);
    let load = ModelLoad { clients: point.load.clients.max(OPEN_CLIENTS), rate: Some(rate) };
    let costs = Costs { writes: 1.0, ..costs };
    let redo_per_s = rate * point.shape.redo_bytes();
    let wave = RedoLimits::of(&point.settings).asynchronous / redo_per_s.max(1.0);
    let waves = if sleeps(&point.settings) { 2.0 * wave.min(LONGEST_WAVE_S) } else { 0.0 };
    let outcome = run(ModelSetup {
        load,
        duration: (LONG_SETTLE + Nanos(whole(waves * 1e9))).max(LONG_TRIAL),
        settle: LONG_SETTLE,
        ..setup(point, machine, costs, seed)
    });
    let counted = outcome.file(FileKind::DataWrite).ios as f64 / (outcome.transactions as f64).max(1.0);
    let (_, evicted) = evicting(point);
    if (counted - evicted).abs() <= EXPLAINED * evicted { evicted } else { counted }
}

/// A point that is far from the others.
#[derive(Debug, Clone, PartialEq)]
pub struct Contradicting {
    /// Its place, from 0.
    pub point: usize,
    /// Which figure.
    pub what: &'static str,
    /// What the point says of the cost, divided by what the median of the others says.
    pub times: f64,
}

/// The points that must go for the others to agree, the farthest first. Of two that disagree the second goes.
#[must_use]
pub fn contradicting(
    points: &[MeasuredPoint],
    machine: Machine,
    given: Costs,
    seed: u64,
) -> Vec<Contradicting> {
    let mut gone = unlike_their_equals(points);
    for what in Figure::ALL {
        let found = factors(points, |point| what.of(point, machine, given, seed));
        let kept = |gone: &[Contradicting]| -> Vec<(usize, f64)> {
            let is_gone = |place: usize| gone.iter().any(|one| one.point == place);
            found.iter().map(|(n, factor)| (n - 1, *factor)).filter(|(n, _)| !is_gone(*n)).collect()
        };
        loop {
            let left = kept(&gone);
            let mut rising: Vec<f64> = left.iter().map(|(_, factor)| factor.max(1e-9).ln()).collect();
            rising.sort_by(f64::total_cmp);
            let (Some(least), Some(most)) = (rising.first(), rising.last()) else { break };
            if most - least <= MOST_APART.ln() {
                break;
            }
            // With two points, that of the first.
            let median = if rising.len() == 2 { left[0].1.max(1e-9).ln() } else { rising[rising.len() / 2] };
            let far = |factor: f64| (factor.max(1e-9).ln() - median).abs();
            let Some((point, factor)) = left.into_iter().max_by(|a, b| far(a.1).total_cmp(&far(b.1))) else {
                break;
            };
            gone.push(Contradicting { point, what: what.words(), times: factor / median.exp() });
        }
    }
    gone
}

/// Whether two points are of the same server, data, volume and load: one throughput is to be expected of both.
fn equal(one: &MeasuredPoint, other: &MeasuredPoint) -> bool {
    let of_array = |array: &Array| {
        let limits: Vec<_> = array.members().iter().map(|volume| volume.limits().clone()).collect();
        (limits, array.credit_share(Nanos::ZERO))
    };
    one.load == other.load
        && one.settings == other.settings
        && one.shape == other.shape
        && one.volumes.map(of_array) == other.volumes.map(of_array)
}

fn far_apart(one: f64, other: f64) -> bool {
    one.max(other) > one.min(other) * MOST_APART
}

/// Refuses points of the same server, volume and load whose throughputs are far apart.
fn throughputs(points: &[MeasuredPoint]) -> Result<(), CalibrateError> {
    for (n, point) in points.iter().enumerate() {
        let before = points[..n].iter().position(|one| equal(one, point) && far_apart(one.tps, point.tps));
        if let Some(first) = before {
            let (a, b) = (points[first].tps, point.tps);
            return Err(CalibrateError::Throughputs { first: first + 1, second: n + 1, a, b });
        }
    }
    Ok(())
}

/// The points whose throughput is far from that of others of the same server, volume and load. Of two the second.
fn unlike_their_equals(points: &[MeasuredPoint]) -> Vec<Contradicting> {
    let judged = |(n, point): (usize, &MeasuredPoint)| {
        let mut equals: Vec<f64> = points.iter().filter(|one| equal(one, point)).map(|one| one.tps).collect();
        let first = equals[0];
        equals.sort_by(f64::total_cmp);
        let median = if equals.len() == 2 { first } else { equals[equals.len() / 2] };
        far_apart(point.tps, median).then(|| Contradicting {
            point: n,
            what: "transactions a second",
            times: point.tps / median,
        })
    };
    points.iter().enumerate().filter_map(judged).collect()
}

/// The number of each point that has a figure, with the figure.
fn factors(points: &[MeasuredPoint], of: impl Fn(&MeasuredPoint) -> Option<f64>) -> Vec<(usize, f64)> {
    points.iter().enumerate().filter_map(|(n, point)| Some((n + 1, of(point)?))).collect()
}

/// How many points, for people.
fn points_of(factors: &[(usize, f64)]) -> String {
    if factors.len() == 1 { format!("point {}", factors[0].0) } else { format!("{} points", factors.len()) }
}

fn mean(factors: &[(usize, f64)]) -> Option<f64> {
    let sum: f64 = factors.iter().map(|(_, factor)| factor.max(1e-9).ln()).sum();
    (!factors.is_empty()).then(|| (sum / factors.len() as f64).exp())
}

fn contradiction(what: &'static str, factors: &[(usize, f64)]) -> Result<(), CalibrateError> {
    let least = factors.iter().min_by(|a, b| a.1.total_cmp(&b.1));
    let most = factors.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    match (least, most) {
        (Some(&(first, a)), Some(&(second, b))) if b > a * MOST_APART => {
            Err(CalibrateError::Contradiction { what, first, second, a, b })
        }
        _ => Ok(()),
    }
}

/// The processor time of a transaction on a core of its own, from the share of the processors that was busy.
fn cpu_us(point: &MeasuredPoint, machine: Machine) -> Option<f64> {
    let busy = point.cpu_pct? / 100.0 * f64::from(machine.vcpus);
    Some(busy / point.tps / machine.slowdown(busy) * 1e6)
}

/// One factor on all pages, or the processor time, by the throughput of the first point.
fn search(
    points: &[MeasuredPoint],
    machine: Machine,
    costs: &mut Costs,
    seed: u64,
    notes: &mut Vec<String>,
) -> Result<(), CalibrateError> {
    let point = &points[0];
    let with_pages = |factor: f64| Costs { reads: factor, writes: factor, ..*costs };
    let with_time = |factor: f64| Costs { cpu_us: costs.cpu_us * factor, ..*costs };
    let reached = |costs: Costs| trial(point, machine, costs, seed) / point.tps;
    if (reached(*costs) - 1.0).abs() < CLOSE {
        return Ok(());
    }
    let moves = |with: &dyn Fn(f64) -> Costs| reached(with(0.5)) / reached(with(2.0)) > 1.2;
    let (what, with): (_, &dyn Fn(f64) -> Costs) = if moves(&with_pages) {
        ("pages read and written", &with_pages)
    } else {
        ("processor time", &with_time)
    };
    let (mut low, mut high) = (*BOUNDS.start(), *BOUNDS.end());
    for _ in 0..TRIALS {
        let middle = (low * high).sqrt();
        // More work of a transaction means fewer of them.
        if reached(with(middle)) > 1.0 { low = middle } else { high = middle }
    }
    let factor = (low * high).sqrt();
    let found = with(factor);
    if (reached(found) - 1.0).abs() > 0.25 {
        return Err(CalibrateError::OutOfBounds { what, factor });
    }
    notes.push(format!("{what}: {factor:.2} times, searched for the throughput of point 1"));
    *costs = found;
    Ok(())
}

/// The model's transactions a second at a point.
fn trial(point: &MeasuredPoint, machine: Machine, costs: Costs, seed: u64) -> f64 {
    run(setup(point, machine, costs, seed)).tps()
}

fn setup(point: &MeasuredPoint, machine: Machine, costs: Costs, seed: u64) -> ModelSetup {
    ModelSetup {
        settings: point.settings.clone(),
        shape: point.shape.clone(),
        machine,
        costs,
        load: point.load,
        volumes: point.volumes.clone(),
        instance: point.instance.clone(),
        seed,
        duration: TRIAL,
        settle: SETTLE,
        cold: false,
    }
}
