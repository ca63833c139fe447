//! Servers that a seed decides, as their profiles have them, and the points that the model makes of them. The bench `validate` uses
//! them too.

use ebbtide_catalog::{Catalog, Spec};
use ebbtide_twin::innodb::{
    Calibrating, Calibration, Costs, FileKind, MeasuredPoint, ModelLoad, ModelOutcome, ModelSetup, Trials,
    calibrate, run,
};
use ebbtide_twin::profile::{MachineFacts, Planned, Profile};
use ebbtide_volume::{Array, Nanos};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// What a run leaves out at its start, as `ebbtide predict` does.
pub(crate) const SETTLE: Nanos = Nanos::from_secs(40);

/// A server with a load on a volume.
pub(crate) struct Generated {
    pub(crate) text: String,
    pub(crate) planned: Planned,
    pub(crate) volume: Array,
    pub(crate) load: ModelLoad,
}

impl Generated {
    /// The server of a seed.
    pub(crate) fn of(seed: u64) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut pick = |all: &[&'static str]| {
            let place = rng.next_u64() % u64::try_from(all.len()).expect("a usize is a u64");
            all[usize::try_from(place).expect("less than the length")]
        };
        let flavour = pick(&["mysql-5.7", "mysql-8.0", "mysql-8.4"]);
        let pool = pick(&["1GiB", "2GiB", "4GiB", "16GiB", "32GiB"]);
        let redo = pick(&["128MiB", "1GiB", "8GiB"]);
        let capacity = pick(&[
            "",
            "io_capacity = 1000\nio_capacity_max = 2000",
            "io_capacity = 2000\nio_capacity_max = 4000",
        ]);
        let machine = pick(&["vcpus = 2", "vcpus = 4", "vcpus = 8", "vcpus = 4\nthreads_per_core = 1"]);
        let workload = pick(&[
            "kind = \"oltp_read_write\"\ntables = 8\ntable_size = 20000000",
            "kind = \"oltp_write_only\"\ntables = 8\ntable_size = 20000000",
            "kind = \"oltp_update_non_index\"\ntables = 8\ntable_size = 20000000",
            "kind = \"oltp_update_index\"\ntables = 8\ntable_size = 5000000",
            "kind = \"tpcc\"\nwarehouses = 300",
            "kind = \"tpcc\"\nwarehouses = 3000",
        ]);
        let keys = if workload.contains("tpcc") {
            ""
        } else {
            pick(&["rand_type = \"uniform\"", "rand_type = \"special\""])
        };
        let cpu_us = pick(&["800", "2000", "4000"]);
        let spec = pick(&["gp3:size=500GiB", "gp2:size=600GiB,credits=0%", "io1:size=500GiB,iops=2000"]);
        let clients = pick(&["8", "16", "64"]);
        let text = format!(
            "[server]\nflavour = \"{flavour}\"\nbuffer_pool_size = \"{pool}\"\nredo_log_capacity = \"{redo}\"\n\
             flush_method = \"O_DIRECT\"\nflush_neighbors = 0\n{capacity}\n[machine]\n{machine}\n[workload]\n{workload}\n{keys}\n\
             cpu_us = {cpu_us}\n"
        );
        let clients = clients.parse().expect("a number");
        Self::read(text, spec, ModelLoad { clients, rate: None })
    }

    /// The server of a profile, with a load on a volume.
    pub(crate) fn read(text: String, spec: &str, load: ModelLoad) -> Self {
        let profile = Profile::parse(&text).expect("the text is a profile");
        let planned = profile.plan(MachineFacts::default(), 1).expect("the profile can be planned");
        let spec = Spec::parse(spec).expect("the text is a spec");
        let volume = Catalog::builtin().resolve(&spec).expect("there is such a volume").array(Nanos::ZERO);
        Self { text, planned, volume, load }
    }

    /// What the model makes of it in a time.
    pub(crate) fn run(&self, costs: Costs, span: Nanos) -> ModelOutcome {
        run(ModelSetup {
            settings: self.planned.settings.clone(),
            shape: self.planned.shape.clone(),
            machine: self.planned.machine,
            costs,
            load: self.load,
            volumes: self.volume.clone().into(),
            instance: None,
            seed: 1,
            duration: span + SETTLE,
            settle: SETTLE,
            cold: false,
        })
    }

    /// The point that a run is, with its throughput alone.
    pub(crate) fn point(&self, tps: f64) -> MeasuredPoint {
        MeasuredPoint {
            settings: self.planned.settings.clone(),
            shape: self.planned.shape.clone(),
            volumes: self.volume.clone().into(),
            instance: None,
            load: self.load,
            tps,
            reads: None,
            writes: None,
            cpu_pct: None,
            cold: false,
            time: None,
        }
    }

    /// The point with its pages and processors too.
    pub(crate) fn counted(&self, outcome: &ModelOutcome) -> MeasuredPoint {
        let each = |kind| Some(outcome.file(kind).ios as f64 / (outcome.transactions as f64).max(1.0));
        MeasuredPoint {
            reads: each(FileKind::DataRead),
            writes: each(FileKind::DataWrite),
            cpu_pct: Some(outcome.processors_busy * 100.0),
            ..self.point(outcome.tps())
        }
    }

    /// What a calibration finds of points.
    pub(crate) fn calibrated(&self, points: &[MeasuredPoint], asked: Option<Nanos>) -> Calibration {
        let trials = Trials { machine: self.planned.machine, seed: 1, settle: SETTLE, asked };
        let by = Calibrating { trials, given: self.planned.costs, cpu_given: true, interval: (0.72, 1.44) };
        calibrate(points, &by).unwrap_or_else(|error| panic!("{error}\n{}", self.text))
    }
}
