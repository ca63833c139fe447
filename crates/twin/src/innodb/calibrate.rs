//! Calibration: what a transaction costs, from what was measured of the server.
//!
//! Each cost has one measured figure that it follows from. Where points lack those figures, one factor on all pages, or
//! else the processor time, is searched until the model's throughput is the measured one.

use ebbtide_volume::{Array, Instance, Nanos};

use super::cpu::Machine;
use super::flavour::Settings;
use super::model::{Costs, ModelLoad, ModelSetup, run};
use super::pages::pages_per_transaction;
use super::shape::Shape;

/// What was measured of the server at one load.
#[derive(Debug, Clone)]
pub struct MeasuredPoint {
    /// The settings that it had.
    pub settings: Settings,
    /// Its workload: that of the profile, with the point's size of data.
    pub shape: Shape,
    /// The volume.
    pub volume: Array,
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
    /// Nothing says what a transaction costs.
    #[error(
        "nothing says what processor time a transaction takes: give workload.cpu_us, or cpu_pct in a [[point]] \
         (us + sy of vmstat, or %user + %system of sar, during the measurement)"
    )]
    NoProcessorTime,
}

/// Factors beyond these mean that the profile describes another workload.
const BOUNDS: std::ops::RangeInclusive<f64> = 0.2..=5.0;
/// Points whose factors differ by more than this contradict each other.
const MOST_APART: f64 = 2.5;
/// Virtual time of a trial of the search, and what of it settles.
const TRIAL: Nanos = Nanos::from_secs(40);
const SETTLE: Nanos = Nanos::from_secs(10);
/// Trials of a search: each halves the logarithm of the range.
const TRIALS: u32 = 9;
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
    let model =
        |point: &MeasuredPoint| pages_per_transaction(&point.shape.classes, point.settings.pool_pages());
    let reads = factors(points, |point| Some(point.reads? / model(point).0.max(1e-3)));
    let writes = factors(points, |point| Some(point.writes? / model(point).1.max(1e-3)));
    if let Some(factor) = agree("pages read", &reads)? {
        costs.reads = factor;
        notes.push(format!("pages read: {factor:.2} times the workload's, from {}", points_of(&reads)));
    }
    if let Some(factor) = agree("pages written", &writes)? {
        costs.writes = factor;
        notes.push(format!("pages written: {factor:.2} times the workload's, from {}", points_of(&writes)));
    }
    let times = factors(points, |point| cpu_us(point, machine));
    if times.is_empty() && !cpu_given {
        return Err(CalibrateError::NoProcessorTime);
    }
    if let Some(time) = mean(&times) {
        contradiction("processor times", &times)?;
        costs.cpu_us = time;
        notes.push(format!("processor time: {time:.0} us of a transaction, from {}", points_of(&times)));
    }
    if reads.is_empty() && writes.is_empty() && !points.is_empty() {
        search(points, machine, &mut costs, seed, &mut notes)?;
    }
    let residuals = points.iter().map(|point| trial(point, machine, costs, seed) / point.tps).collect();
    Ok(Calibration { costs, residuals, notes })
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

fn agree(what: &'static str, factors: &[(usize, f64)]) -> Result<Option<f64>, CalibrateError> {
    contradiction(what, factors)?;
    match mean(factors) {
        Some(factor) if !BOUNDS.contains(&factor) => Err(CalibrateError::OutOfBounds { what, factor }),
        mean => Ok(mean),
    }
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
    run(ModelSetup {
        settings: point.settings.clone(),
        shape: point.shape.clone(),
        machine,
        costs,
        load: point.load,
        volume: point.volume.clone(),
        instance: point.instance.clone(),
        seed,
        duration: TRIAL,
        settle: SETTLE,
        cold: false,
    })
    .tps()
}
