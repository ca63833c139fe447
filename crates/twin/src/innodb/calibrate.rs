//! Calibration: what a transaction costs, from what was measured of the server.
//!
//! Each cost has one measured figure that it follows from. Where points lack those figures, one factor on all pages, or
//! else the processor time, is searched until the model's throughput is the measured one.

use ebbtide_volume::{Array, Nanos};

use super::file_kind::FileKind;
use super::meter::ModelOutcome;
use super::model::Costs;
use super::pages::{PageKind, Pool, pages_per_transaction};
use super::search::falling_root;
use super::trial::{MeasuredPoint, Trials};

/// What a calibration found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Calibration {
    /// The costs.
    pub costs: Costs,
    /// Of each point, the model's transactions a second divided by the measured ones, in a run as long as is asked for.
    pub residuals: Vec<f64>,
    /// How long the run of each was, without what settles.
    pub spans: Vec<PointSpan>,
    /// What was searched or taken as given, for people.
    pub notes: Vec<String>,
}

/// How long the run was that a point is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PointSpan {
    /// The time, without what settles.
    pub time: Nanos,
    /// Why it is not that of the predictions; None where it is.
    pub shorter: Option<Shorter>,
}

/// Why a point is compared over the time of its measurement, and not over that of the predictions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shorter {
    /// It was measured with an empty buffer pool, which fills.
    Cold,
    /// Burst credits end in the time of the predictions, so long after the start of the run: it was measured while they lasted.
    CreditsEnd(Nanos),
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
    /// No factor gives a point its throughput.
    #[error(
        "point {point}: tps = {tps} is out of range: with {factor:.2} times the {what} of the workload the model gives {}. \
         Check tps (transactions a second, not statements), then clients, volume, buffer pool, size of the data, round_trip_us and \
         think_ms of the point",
        reached_words(*.reached, *.tps)
    )]
    Unreached {
        /// Place of the point, from 1.
        point: usize,
        /// Its transactions a second.
        tps: f64,
        /// Those of the model that are nearest.
        reached: f64,
        /// What was searched.
        what: &'static str,
        /// With which factor.
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

/// The throughput that is nearest to a point's.
fn reached_words(reached: f64, tps: f64) -> String {
    let side = if reached < tps { "at most" } else { "at least" };
    format!("{side} {} transactions a second", ebbtide_text::figure(reached))
}

/// Factors beyond these mean that the profile describes another workload.
const BOUNDS: std::ops::RangeInclusive<f64> = 0.2..=5.0;
/// Points whose factors, or throughputs of the same server, volume and load, differ by more than this contradict each other.
const MOST_APART: f64 = 2.5;
/// From fewer measured pages of a transaction no factor follows: they cost nothing that matters, or the page cleaner had
/// nothing to do yet.
const FEW_PAGES: f64 = 0.05;
/// Logarithm of the change of the throughput from which on twice or half the pages determine them: a measured throughput is
/// known within 5%, and the factor then within a quarter.
const DETERMINES: f64 = 0.15;
/// A throughput this close needs no search.
const CLOSE: f64 = 0.01;
/// A throughput that is farther off than this in a longer run is so for a reason that no factor has.
const FAR: f64 = 0.1;
/// Costs that change by less than this share from one run to the next are found.
const FOUND: f64 = 0.005;
/// Runs in which processor time and pages written are found, and searches with it, at most.
const ROUNDS: u32 = 4;
/// By how much a search doubles or halves a factor to see what follows.
const TWICE: f64 = 2.0;

/// What a calibration goes by, besides its points.
#[derive(Debug, Clone, Copy)]
pub struct Calibrating {
    /// What its runs have alike.
    pub trials: Trials,
    /// What the profile states of the costs; its `cpu_us` is used where no point has `cpu_pct`.
    pub given: Costs,
    /// Whether the profile states `cpu_us`.
    pub cpu_given: bool,
    /// The interval of a predicted throughput, relative to it: a point whose throughput a factor of 2 or 0.5 on its pages moves
    /// by less does not determine them.
    pub interval: (f64, f64),
}

/// Fits the costs to the points.
///
/// # Errors
/// See [`CalibrateError`].
pub fn calibrate(points: &[MeasuredPoint], calibrating: &Calibrating) -> Result<Calibration, CalibrateError> {
    throughputs(points)?;
    let mut fit = Fit {
        points,
        calibrating,
        costs: calibrating.given,
        notes: Vec::new(),
        searched: None,
        is_last: false,
    };
    let figures = fit.first_costs()?;
    if !calibrating.cpu_given && !points.iter().any(|point| point.cpu_pct.is_some()) {
        return Err(CalibrateError::NoProcessorTime);
    }
    fit.refine(&figures)?;
    let counted = points.iter().any(|point| point.reads.is_some() || point.writes.is_some());
    if !counted && !points.is_empty() {
        fit.search(&figures)?;
        fit.correct();
    }
    fit.say(&figures);
    let Fit { costs, notes, .. } = fit;
    let (residuals, spans) = points.iter().map(|point| residual(point, &calibrating.trials, costs)).unzip();
    Ok(Calibration { costs, residuals, spans, notes })
}

/// The model's transactions a second at a point divided by the measured ones, and over which time. Where burst credits end in the
/// time that is asked for, and do not in that of a trial, the point was measured while they lasted.
fn residual(point: &MeasuredPoint, trials: &Trials, costs: Costs) -> (f64, PointSpan) {
    let asked = trials.asked(point, costs);
    let end = asked.credits_end().filter(|end| *end > Nanos::SECOND);
    let (outcome, shorter) = match end {
        Some(end) => (trials.trial(point, costs), Some(Shorter::CreditsEnd(end))),
        None => (asked, point.cold.then_some(Shorter::Cold)),
    };
    (outcome.tps() / point.tps, PointSpan { time: outcome.measured, shorter })
}

/// A calibration under way.
struct Fit<'a> {
    points: &'a [MeasuredPoint],
    calibrating: &'a Calibrating,
    costs: Costs,
    notes: Vec<String>,
    /// What was searched, with the factor that was found.
    searched: Option<(Searched, f64)>,
    /// Whether nothing else can be searched.
    is_last: bool,
}

/// A figure of the points, with the number of each that has it.
type Found = (Figure, Vec<usize>);

impl Fit<'_> {
    /// The costs that single figures say; returns the figures, and the points that have them.
    fn first_costs(&mut self) -> Result<Vec<Found>, CalibrateError> {
        let mut figures = Vec::new();
        for figure in Figure::ALL {
            let found = factors(self.points, |point| figure.of(point, &self.calibrating.trials, self.costs));
            contradiction(figure.words(), &found)?;
            let Some(mean) = mean(&found) else { continue };
            figure.check(mean)?;
            figure.set(&mut self.costs, mean);
            figures.push((figure, found.into_iter().map(|(number, _)| number).collect()));
        }
        Ok(figures)
    }

    /// Brings processor time and pages written to where runs at the points report the measured ones: how threads of a core
    /// slow each other down, and how many pages the page cleaner writes, follows from the run.
    fn refine(&mut self, figures: &[Found]) -> Result<(), CalibrateError> {
        for _ in 0..ROUNDS {
            let mut most = 0.0_f64;
            let outcomes: Vec<_> = self
                .points
                .iter()
                .map(|point| self.is_refined(point).then(|| self.calibrating.trials.trial(point, self.costs)))
                .collect();
            for (figure, numbers) in figures {
                let of_point = |number: &usize| {
                    let outcome = outcomes[number - 1].as_ref()?;
                    Some((
                        *number,
                        figure.by_run(&self.points[number - 1], &self.calibrating.trials, outcome)?,
                    ))
                };
                let ratios: Vec<_> = numbers.iter().filter_map(of_point).collect();
                let Some(ratio) = mean(&ratios) else { continue };
                let cost = figure.cost(&self.costs) * ratio;
                figure.check(cost)?;
                figure.set(&mut self.costs, cost);
                most = most.max(ratio.ln().abs());
            }
            if most < FOUND {
                break;
            }
        }
        Ok(())
    }

    /// Whether a run says more of a point than its figures do.
    fn is_refined(&self, point: &MeasuredPoint) -> bool {
        let shares_cores = self.calibrating.trials.machine.threads_per_core > 1 && point.cpu_pct.is_some();
        shares_cores || (point.writes.is_some() && !is_observed(point))
    }

    /// Corrects a factor that was searched in short runs by one run that is as long as predictions are: a short one has chance in
    /// its figures. Throughput falls no faster than the factor rises, so that the correction does not swing.
    fn correct(&mut self) {
        let Some((what, factor)) = self.searched else { return };
        let (off, _) = residual(&self.points[0], &self.calibrating.trials, self.costs);
        if off.ln().abs() > CLOSE && off.ln().abs() < FAR {
            self.costs = what.with(self.costs, off);
            self.searched = Some((what, factor * off));
        }
    }

    /// What the costs were found from.
    fn say(&mut self, figures: &[Found]) {
        let said = figures
            .iter()
            .map(|(figure, numbers)| figure.note(figure.cost(&self.costs), &points_of(numbers)));
        self.notes.splice(0..0, said.collect::<Vec<_>>());
        if let Some((what, factor)) = self.searched {
            let words = what.words();
            self.notes.push(format!("{words}: {factor:.2} times, searched for the throughput of point 1"));
        }
    }

    /// One factor on all pages, or the processor time, by the throughput of the first point, where that determines it.
    fn search(&mut self, figures: &[Found]) -> Result<(), CalibrateError> {
        let timed = figures.iter().any(|(figure, _)| *figure == Figure::Time);
        let searched: &[Searched] =
            if timed { &[Searched::Pages] } else { &[Searched::Pages, Searched::Time] };
        let before = self.costs;
        for what in searched {
            self.is_last = searched.last() == Some(what);
            let Some(mut factor) = self.searched(*what, before, 1.0)? else { continue };
            self.costs = what.with(before, factor);
            // Other pages leave processors more or less busy, and those decide how long processor time takes.
            for _ in 1..ROUNDS {
                let cpu_us = self.costs.cpu_us;
                self.refine(figures)?;
                if (self.costs.cpu_us / cpu_us).ln().abs() < FOUND {
                    break;
                }
                let base = what.with(self.costs, 1.0 / factor);
                factor = self.searched(*what, base, factor)?.unwrap_or(factor);
                self.costs = what.with(base, factor);
            }
            self.searched = Some((*what, factor));
            return Ok(());
        }
        Ok(())
    }

    /// The factor at which the first point has its throughput, begun at one; None where one is close enough, or where the
    /// throughput does not determine it.
    fn searched(&mut self, what: Searched, base: Costs, begin: f64) -> Result<Option<f64>, CalibrateError> {
        let point = &self.points[0];
        let reached = |factor: f64| {
            (self.calibrating.trials.trial(point, what.with(base, factor)).tps() / point.tps).max(1e-9).ln()
        };
        let now = reached(begin);
        if now.abs() < CLOSE {
            return Ok((begin != 1.0).then_some(begin));
        }
        // More work of a transaction means fewer of them.
        let (low, high) = self.calibrating.interval;
        let (from, to) = (*BOUNDS.start(), *BOUNDS.end());
        let other = if now > 0.0 { begin * TWICE } else { begin / TWICE }.clamp(from, to);
        let moved = reached(other);
        let least = if now > 0.0 { -low.ln() } else { high.ln() }.min(DETERMINES);
        if (moved - now).abs() <= least {
            // What the profile states makes it slower than it was, and nothing is left that could make it faster.
            if self.is_last && now < -MOST_APART.ln() {
                return Err(unreached(point, what, begin, now));
            }
            // Later rounds keep what the first one found.
            if begin == 1.0 {
                self.notes.push(what.kept(other / begin, (moved - now).exp_m1(), now.exp_m1()));
            }
            return Ok(None);
        }
        let (factor, value) = falling_root(from, to, &[(begin, now), (other, moved)], reached);
        if value.exp_m1().abs() > 0.25 {
            return Err(unreached(point, what, factor, value));
        }
        Ok(Some(factor))
    }
}

/// That no factor gives the first point its throughput; `value` is the logarithm of what is nearest by it.
fn unreached(point: &MeasuredPoint, what: Searched, factor: f64, value: f64) -> CalibrateError {
    let (tps, reached) = (point.tps, point.tps * value.exp());
    CalibrateError::Unreached { point: 1, tps, reached, what: what.words(), factor }
}

/// A cost that is searched for a throughput.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Searched {
    Pages,
    Time,
}

impl Searched {
    const fn words(self) -> &'static str {
        match self {
            Self::Pages => "pages read and written",
            Self::Time => "processor time",
        }
    }

    fn with(self, costs: Costs, factor: f64) -> Costs {
        match self {
            Self::Pages => Costs { reads: costs.reads * factor, writes: costs.writes * factor, ..costs },
            Self::Time => Costs { cpu_us: costs.cpu_us * factor, ..costs },
        }
    }

    /// That the cost stays as it is, and why.
    fn kept(self, times: f64, change: f64, off: f64) -> String {
        format!(
            "{}: 1.00 times, since point 1 does not determine more of it: {times} times as much changes its throughput by \
             {:+.0}% ({:+.1}% are missing)",
            self.words(),
            change * 100.0,
            -off * 100.0
        )
    }
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
    fn of(self, point: &MeasuredPoint, trials: &Trials, costs: Costs) -> Option<f64> {
        match self {
            Self::Time => cpu_us(point, trials),
            Self::Reads => factor(point.reads?, evicting(point).0),
            Self::Writes if is_observed(point) => factor(point.writes?, evicting(point).1),
            Self::Writes => {
                let measured = point.writes.filter(|pages| *pages >= FEW_PAGES)?;
                factor(measured, written(&trials.at_rate(point, Costs { writes: 1.0, ..costs })))
            }
        }
    }

    /// The measured figure divided by that of a run at the point. None for figures that no run is needed for.
    fn by_run(self, point: &MeasuredPoint, trials: &Trials, outcome: &ModelOutcome) -> Option<f64> {
        match self {
            Self::Time if trials.machine.threads_per_core > 1 => {
                let busy = outcome.processors_busy / outcome.tps().max(1e-9);
                Some(point.cpu_pct? / 100.0 / point.tps / busy.max(1e-12))
            }
            Self::Writes if !is_observed(point) => factor(point.writes?, written(outcome)),
            _ => None,
        }
    }

    fn cost(self, costs: &Costs) -> f64 {
        match self {
            Self::Time => costs.cpu_us,
            Self::Reads => costs.reads,
            Self::Writes => costs.writes,
        }
    }

    const fn set(self, costs: &mut Costs, cost: f64) {
        match self {
            Self::Time => costs.cpu_us = cost,
            Self::Reads => costs.reads = cost,
            Self::Writes => costs.writes = cost,
        }
    }

    fn check(self, cost: f64) -> Result<(), CalibrateError> {
        if self == Self::Time || BOUNDS.contains(&cost) {
            return Ok(());
        }
        Err(CalibrateError::OutOfBounds { what: self.words(), factor: cost })
    }
}

/// Measured pages divided by the model's.
fn factor(measured: f64, model: f64) -> Option<f64> {
    (measured >= FEW_PAGES).then(|| measured / model.max(1e-3))
}

/// Whether the pages of its transactions were observed: then as many are written as were.
fn is_observed(point: &MeasuredPoint) -> bool {
    point.shape.classes.iter().any(|class| matches!(class.kind, PageKind::Observed(_)))
}

/// Pages that a transaction of a run writes. Redo log, dirty share and page cleaner decide with the pool, so that a run counts them.
fn written(outcome: &ModelOutcome) -> f64 {
    outcome.file(FileKind::DataWrite).ios as f64 / (outcome.transactions as f64).max(1.0)
}

/// Pages that a transaction reads, and writes where pages are written when they are evicted.
fn evicting(point: &MeasuredPoint) -> (f64, f64) {
    let classes = &point.shape.classes;
    pages_per_transaction(classes, &Pool::of(&point.settings, classes))
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
pub fn contradicting(points: &[MeasuredPoint], trials: &Trials, given: Costs) -> Vec<Contradicting> {
    let mut gone = unlike_their_equals(points);
    for what in Figure::ALL {
        let found = factors(points, |point| what.of(point, trials, given));
        let kept = |gone: &[Contradicting]| -> Vec<(usize, f64)> {
            let is_gone = |place: usize| gone.iter().any(|left_out| left_out.point == place);
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
fn equal(point: &MeasuredPoint, other: &MeasuredPoint) -> bool {
    let of_array = |array: &Array| {
        let limits: Vec<_> = array.members().iter().map(|volume| volume.limits().clone()).collect();
        (limits, array.credit_share(Nanos::ZERO))
    };
    point.load == other.load
        && point.settings == other.settings
        && point.shape == other.shape
        && point.volumes.map(of_array) == other.volumes.map(of_array)
}

fn far_apart(rate: f64, other: f64) -> bool {
    rate.max(other) > rate.min(other) * MOST_APART
}

/// Refuses points of the same server, volume and load whose throughputs are far apart.
fn throughputs(points: &[MeasuredPoint]) -> Result<(), CalibrateError> {
    for (n, point) in points.iter().enumerate() {
        let before =
            points[..n].iter().position(|earlier| equal(earlier, point) && far_apart(earlier.tps, point.tps));
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
        let mut equals: Vec<f64> =
            points.iter().filter(|other| equal(other, point)).map(|other| other.tps).collect();
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
fn points_of(numbers: &[usize]) -> String {
    if numbers.len() == 1 { format!("point {}", numbers[0]) } else { format!("{} points", numbers.len()) }
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

/// The processor time of a transaction on a core of its own, from the share of the processors that was busy: a first estimate, where
/// threads share cores, since their number varies.
fn cpu_us(point: &MeasuredPoint, trials: &Trials) -> Option<f64> {
    let busy = point.cpu_pct? / 100.0 * f64::from(trials.machine.vcpus);
    Some(busy / point.tps / trials.machine.slowdown(busy) * 1e6)
}
