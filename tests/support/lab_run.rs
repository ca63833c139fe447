//! A run of the lab, as its results have it.

use std::collections::BTreeMap;

use ebbtide_lab::experiment::Role;
use ebbtide_lab::record::{LabRun, Trial};
use ebbtide_lab::summary::fixture;

/// An arm of a run: its IOPS, and pages read and written by a transaction.
pub(crate) struct Measured {
    pub(crate) name: &'static str,
    pub(crate) volume: &'static str,
    pub(crate) options: &'static [&'static str],
    pub(crate) tps: f64,
    pub(crate) reads: f64,
    pub(crate) writes: f64,
}

const OPTIONS: &[&str] = &[
    "innodb_buffer_pool_size=268435456",
    "innodb_log_file_size=268435456",
    "innodb_io_capacity=200",
    "innodb_flush_method=O_DIRECT",
    "skip_log_bin",
];

/// A run of sysbench's read-write transactions on an eighth of each volume, with a table that is three times the pool.
pub(crate) fn run(arms: &[Measured]) -> LabRun {
    let names: Vec<&str> = arms.iter().map(|arm| arm.name).collect();
    let mut run = fixture::run(&names);
    run.server.version = "mariadbd  Ver 10.11.19-MariaDB for Linux on x86_64".into();
    run.host.threads_per_core = Some(1);
    run.experiment.data.rows = 4_000_000;
    for (arm, measured) in run.experiment.arms.iter_mut().zip(arms) {
        arm.volumes = BTreeMap::from([(Role::Data, measured.volume.to_owned())]);
        arm.instance.divided_by = 8;
        let options = measured.options.iter().map(|line| (*line).to_owned()).collect();
        run.server.options.insert(measured.name.to_owned(), options);
    }
    run.trials = arms.iter().map(trial).collect();
    run
}

fn trial(arm: &Measured) -> Trial {
    let mut trial = fixture::trial(arm.name, 0, &[arm.tps; 10]);
    for second in &mut trial.seconds {
        let server = second.server.as_mut().unwrap();
        server.page_reads = Some(arm.reads * arm.tps);
        server.page_writes = Some(arm.writes * arm.tps);
        server.redo_bytes = Some(3_000.0 * arm.tps);
        // 2 ms of a processor for each transaction, on two of them.
        second.host.server_cpus = 0.002 * arm.tps;
        second.host.load_cpus = 0.0;
    }
    trial
}

/// One that writes five pages a transaction.
pub(crate) fn arm(name: &'static str, volume: &'static str, tps: f64, reads: f64) -> Measured {
    Measured { name, volume, options: OPTIONS, tps, reads, writes: 5.0 }
}
