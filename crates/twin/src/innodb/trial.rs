//! What was measured of a server at one load, and runs of the model at such a point.

use ebbtide_observe::Volumes;
use ebbtide_volume::{Array, Instance, Nanos};

use super::cleaner::{sleeps, whole};
use super::cpu::Machine;
use super::flavour::Settings;
use super::meter::ModelOutcome;
use super::model::{Costs, ModelLoad, ModelSetup, run};
use super::redo::RedoLimits;
use super::shape::Shape;

/// What was measured of a server at one load, on volumes that are a `V`: those of the model, or the text that names them.
#[derive(Debug, Clone)]
pub struct Point<V> {
    /// The volumes, as they were when the measurement began.
    pub volumes: V,
    /// The instance's limits; None without them.
    pub instance: Option<Instance>,
    /// The settings that it had.
    pub settings: Settings,
    /// Its workload: that of the profile, with the point's size of data.
    pub shape: Shape,
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
    /// Whether the buffer pool was empty when the measurement began; else dirty pages were in balance.
    pub cold: bool,
    /// How long was measured; None where nobody says.
    pub time: Option<Nanos>,
}

/// A point that the model can run.
pub type MeasuredPoint = Point<Volumes<Array>>;

impl<V> Point<V> {
    /// The point on these volumes.
    #[must_use]
    pub fn on(self, volumes: Volumes<Array>, instance: Option<Instance>) -> MeasuredPoint {
        let Self { settings, shape, load, tps, reads, writes, cpu_pct, cold, time, .. } = self;
        Point { volumes, instance, settings, shape, load, tps, reads, writes, cpu_pct, cold, time }
    }
}

/// What all runs of a calibration have alike.
#[derive(Debug, Clone, Copy)]
pub struct Trials {
    /// The machine.
    pub machine: Machine,
    /// Decides every draw.
    pub seed: u64,
    /// What is left out at the start of each run; nothing of one that begins cold.
    pub settle: Nanos,
    /// How long the predictions are that are calibrated for; None where none is asked for.
    pub asked: Option<Nanos>,
}

/// Transactions of a trial: its throughput is then within about a hundredth of that of a long run.
const TRANSACTIONS: f64 = 6_000.0;
/// Virtual time of a trial, s.
const SHORTEST_S: f64 = 30.0;
const LONGEST_S: f64 = 600.0;
/// Connections of a trial at the measured throughput.
const OPEN_CLIENTS: u32 = 256;

impl Trials {
    /// How long a trial measures: as long as the point was measured, or what gives enough transactions. MariaDB's page cleaner
    /// writes in waves, as the redo log turns over: two of them are looked at.
    fn span(&self, point: &MeasuredPoint) -> Nanos {
        if let Some(time) = point.time {
            return time;
        }
        let wave_s =
            RedoLimits::of(&point.settings).asynchronous / (point.tps * point.shape.redo_bytes()).max(1.0);
        let waves_s = if sleeps(&point.settings) { (2.0 * wave_s).min(LONGEST_S) } else { 0.0 };
        let seconds = (TRANSACTIONS / point.tps).clamp(SHORTEST_S, LONGEST_S).max(waves_s);
        Nanos(whole(seconds * 1e9))
    }

    /// A run at the point, for as long as a trial is.
    pub(crate) fn trial(&self, point: &MeasuredPoint, costs: Costs) -> ModelOutcome {
        self.run(point, costs, point.load, self.span(point))
    }

    /// A run at the point for as long as predictions are asked for, and of a cold one for as long as it was measured. The time
    /// that was measured too.
    pub(crate) fn asked(&self, point: &MeasuredPoint, costs: Costs) -> ModelOutcome {
        let span = self.asked.filter(|_| !point.cold).unwrap_or_else(|| self.span(point));
        self.run(point, costs, point.load, span)
    }

    /// A run in which the measured throughput arrives.
    pub(crate) fn at_rate(&self, point: &MeasuredPoint, costs: Costs) -> ModelOutcome {
        let rate = Some(point.load.rate.unwrap_or(point.tps));
        let load = ModelLoad { clients: point.load.clients.max(OPEN_CLIENTS), rate };
        self.run(point, costs, load, self.span(point))
    }

    fn run(&self, point: &MeasuredPoint, costs: Costs, load: ModelLoad, span: Nanos) -> ModelOutcome {
        let settle = if point.cold { Nanos::ZERO } else { self.settle };
        run(ModelSetup {
            settings: point.settings.clone(),
            shape: point.shape.clone(),
            machine: self.machine,
            costs,
            load,
            volumes: point.volumes.clone(),
            instance: point.instance.clone(),
            seed: self.seed,
            duration: span + settle,
            settle,
            cold: point.cold,
        })
    }
}
