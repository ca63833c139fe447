//! Where the processors' time goes while a stint is cutting.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use ebbtide_lab::run::proc::{self, MachineTime};
use ebbtide_mysql::Server;

use super::record::CuttingCpu;

/// All times so far, s.
struct CpuReading {
    at: Instant,
    machine: MachineTime,
    servers_s: f64,
    /// Of this process.
    own_s: f64,
    /// Of its threads, by number.
    threads: BTreeMap<u32, f64>,
}

impl CpuReading {
    fn now(servers: &[&Server]) -> Self {
        Self {
            at: Instant::now(),
            machine: proc::machine_time().unwrap_or_default(),
            servers_s: servers.iter().map(|server| server.cpu_time().as_secs_f64()).sum(),
            own_s: proc::own_time_s().unwrap_or(0.0),
            threads: proc::thread_times_s(),
        }
    }

    /// What was used since, where these threads are the load's.
    fn until(&self, now: &Self, load: &BTreeSet<u32>) -> CuttingCpu {
        let gained = |before: f64, now: f64| (now - before).max(0.0);
        let of_thread = |thread: &u32| Some(gained(*self.threads.get(thread)?, *now.threads.get(thread)?));
        let load_s: f64 = load.iter().filter_map(of_thread).sum();
        CuttingCpu {
            seconds: now.at.duration_since(self.at).as_secs_f64(),
            cpus: proc::cpus(),
            busy_s: gained(self.machine.busy_s, now.machine.busy_s),
            steal_s: gained(self.machine.steal_s, now.machine.steal_s),
            servers_s: gained(self.servers_s, now.servers_s),
            load_s,
            tester_s: gained(load_s, gained(self.own_s, now.own_s)),
        }
    }
}

/// A stint that is watched while it cuts.
pub(super) struct CuttingWatch<'a> {
    servers: Vec<&'a Server>,
    /// The load's threads.
    load: BTreeSet<u32>,
    before: CpuReading,
}

impl<'a> CuttingWatch<'a> {
    /// Begins to watch: a source is a server too, and `others` are the threads that were there before the load.
    pub(super) fn begin(servers: Vec<&'a Server>, others: &BTreeSet<u32>) -> Self {
        let before = CpuReading::now(&servers);
        let load = before.threads.keys().copied().filter(|thread| !others.contains(thread)).collect();
        Self { servers, load, before }
    }

    /// What was used since.
    pub(super) fn end(&self) -> CuttingCpu {
        self.before.until(&CpuReading::now(&self.servers), &self.load)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_the_process_is_that_of_the_load_and_of_the_tester() {
        let reading = |busy_s: f64, own_s: f64, threads: &[(u32, f64)]| CpuReading {
            at: Instant::now(),
            machine: MachineTime { busy_s, ..MachineTime::default() },
            servers_s: 2.0 * own_s,
            own_s,
            threads: threads.iter().copied().collect(),
        };
        let before = reading(100.0, 1.0, &[(1, 0.5), (2, 0.25), (3, 0.125)]);
        let now = reading(110.0, 5.0, &[(1, 2.0), (2, 1.25), (4, 1.0)]);
        // The third has ended, and the fourth is a checker's.
        let used = before.until(&now, &BTreeSet::from([2, 3]));
        assert_eq!((used.busy_s, used.servers_s, used.load_s, used.tester_s), (10.0, 8.0, 1.0, 3.0));
        let twice = used.plus(&used);
        assert_eq!((twice.busy_s, twice.tester_s, twice.cpus), (20.0, 6.0, used.cpus));
    }
}
