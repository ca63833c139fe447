//! What the machine did while a stint's throughput was measured: the checks of a trial of the lab, over the whole
//! measurement at once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use ebbtide_lab::experiment::{PlannedArm, Role};
use ebbtide_lab::record::{HostSecond, Outcome, Second};
use ebbtide_lab::run::proc::{self, MachineTime};
use ebbtide_lab::run::sampler::volume_second;
use ebbtide_lab::run::verdict::{self, Evidence, VolumeEnd};
use ebbtide_lab::run::volume::IopsLimit;
use ebbtide_load::{Generator, Latency};
use ebbtide_mysql::Server;
use ebbtide_volume::Stats;

use super::mounted_arm::MountedArm;

/// Share of the measurement that a thread of the load may be ready without a processor. The generator of the lab is
/// disqualified from the same share of the response time on.
const LOAD_WAITS: f64 = 0.25;

/// The threads of this process at this moment: those that are there before a load starts are not the load's.
pub(super) fn threads() -> BTreeSet<u32> {
    proc::thread_times_s().into_keys().collect()
}

/// Everything that is looked at, at one moment.
struct MachineReading {
    at: Instant,
    machine: MachineTime,
    /// Processor time of the servers so far, s.
    servers_s: f64,
    /// Processor time of each thread of this process so far, s.
    ran: BTreeMap<u32, f64>,
    /// How long each of them waited for a processor so far, s.
    waited: BTreeMap<u32, f64>,
    volumes: BTreeMap<Role, Stats>,
    /// What the volumes' devices have taken so far, s.
    devices_s: BTreeMap<Role, f64>,
}

/// A measurement that is watched.
pub(super) struct MachineWatch<'a> {
    mounted: &'a MountedArm<'a>,
    servers: Vec<&'a Server>,
    /// Threads of this process that were there before the load.
    others: BTreeSet<u32>,
    before: MachineReading,
}

/// What the machine did, and what that means for the measurement.
pub(super) struct MachineVerdict {
    /// Why the throughput must not be believed; none where it may.
    pub(super) disqualified: Option<String>,
    /// What should be known about it.
    pub(super) notes: Vec<String>,
}

impl<'a> MachineWatch<'a> {
    /// Begins to watch: a source is a server too.
    pub(super) fn begin(
        mounted: &'a MountedArm<'a>,
        servers: Vec<&'a Server>,
        others: BTreeSet<u32>,
    ) -> Self {
        mounted.volumes.values().for_each(|volume| volume.live().reset_pacing());
        let before = MachineReading::at(mounted, &servers);
        Self { mounted, servers, others, before }
    }

    /// Judges what was seen since.
    pub(super) fn end(self, planned: &PlannedArm) -> MachineVerdict {
        let now = MachineReading::at(self.mounted, &self.servers);
        let span_s = now.at.duration_since(self.before.at).as_secs_f64().max(1e-6);
        let second = self.before.second(&now, &self.others, span_s);
        let own = gained(&self.before.ran, &now.ran, |_| true) / span_s;
        let foreign_cpus = (second.host.busy_cpus - second.host.server_cpus - own).max(0.0);
        let (waited, threads) = self.load_waits(&now);
        let generator =
            Generator { loops: threads, lag: Latency::default(), disqualified: late(waited / span_s) };
        let instance = planned.instance.as_ref().map(|instance| &instance.limits);
        let volumes: Vec<VolumeEnd> = self
            .mounted
            .volumes
            .iter()
            .map(|(role, volume)| VolumeEnd {
                role: *role,
                pacing: volume.live().pacing(),
                host_errors: volume.live().host_errors(),
                limit: IopsLimit::of(&planned.volumes[role], instance),
                device_queue: now.queue(&self.before, *role, span_s),
            })
            .collect();
        let seconds = [second];
        let evidence = Evidence {
            generator: &generator,
            inconsistency: None,
            unusable: None,
            seconds: &seconds,
            volumes: &volumes,
            over_limit: false,
            cpus: proc::cpus(),
            foreign_cpus,
        };
        let judged = verdict::judge(&evidence);
        let disqualified = match judged.outcome {
            Outcome::Disqualified { why } => Some(why),
            _ => None,
        };
        MachineVerdict { disqualified, notes: judged.notes }
    }

    /// The longest that a thread of the load waited for a processor, s, and how many threads it has. Its event loops
    /// alone work: a mean would hide them behind threads that sleep.
    fn load_waits(&self, now: &MachineReading) -> (f64, u32) {
        let load: Vec<u32> =
            now.waited.keys().copied().filter(|thread| !self.others.contains(thread)).collect();
        let waited = |thread: &u32| gained(&self.before.waited, &now.waited, |other| other == thread);
        (load.iter().map(waited).fold(0.0, f64::max), u32::try_from(load.len()).unwrap_or(u32::MAX))
    }
}

/// Why a load with a thread that waited for so large a share of the time measures nothing of the server.
fn late(share: f64) -> Option<String> {
    (share > LOAD_WAITS).then(|| {
        format!(
            "a thread of the load waited for a processor {:.0}% of the time, more than {:.0}%: this machine limits the \
             load, not the server",
            100.0 * share,
            100.0 * LOAD_WAITS
        )
    })
}

/// What threads gained between two readings, s; a thread that is new counts from zero.
fn gained(before: &BTreeMap<u32, f64>, now: &BTreeMap<u32, f64>, counts: impl Fn(&u32) -> bool) -> f64 {
    let since = |thread: &u32, time: &f64| (time - before.get(thread).unwrap_or(&0.0)).max(0.0);
    now.iter().filter(|(thread, _)| counts(thread)).map(|(thread, time)| since(thread, time)).sum()
}

impl MachineReading {
    fn at(mounted: &MountedArm<'_>, servers: &[&Server]) -> Self {
        let volumes = || mounted.volumes.iter();
        Self {
            at: Instant::now(),
            machine: proc::machine_time().unwrap_or_default(),
            servers_s: servers.iter().map(|server| server.cpu_time().as_secs_f64()).sum(),
            ran: proc::thread_times_s(),
            waited: proc::thread_waits_s(),
            volumes: volumes().map(|(role, volume)| (*role, volume.live().stats())).collect(),
            devices_s: volumes()
                .filter_map(|(role, volume)| Some((*role, volume.device_time_s()?)))
                .collect(),
        }
    }

    /// The whole measurement as one second of the record.
    fn second(&self, now: &Self, others: &BTreeSet<u32>, span_s: f64) -> Second {
        let host = HostSecond {
            server_cpus: (now.servers_s - self.servers_s).max(0.0) / span_s,
            load_cpus: gained(&self.ran, &now.ran, |thread| !others.contains(thread)) / span_s,
            busy_cpus: (now.machine.busy_s - self.machine.busy_s) / span_s,
            steal_cpus: (now.machine.steal_s - self.machine.steal_s) / span_s,
            ..HostSecond::default()
        };
        let pairs =
            now.volumes.iter().filter_map(|(role, after)| Some((*role, self.volumes.get(role)?, after)));
        let volumes = pairs.map(|(role, before, after)| (role, volume_second(before, after))).collect();
        Second { t_s: span_s, volumes, host, ..Second::default() }
    }

    /// Reads and writes that were under way at a volume's device, mean.
    fn queue(&self, before: &Self, role: Role, span_s: f64) -> Option<f64> {
        Some((self.devices_s.get(&role)? - before.devices_s.get(&role)?).max(0.0) / span_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_that_waits_for_a_processor_more_than_a_quarter_of_the_time_is_disqualified() {
        assert_eq!(late(0.25), None);
        assert!(late(0.3).unwrap().contains("30% of the time"), "{:?}", late(0.3));
    }

    #[test]
    fn threads_gain_what_is_new_and_only_those_that_count() {
        let before = BTreeMap::from([(1, 5.0), (2, 1.0)]);
        let now = BTreeMap::from([(1, 6.0), (2, 1.5), (3, 0.25)]);
        assert!((gained(&before, &now, |_| true) - 1.75).abs() < 1e-9);
        assert!((gained(&before, &now, |thread| *thread != 1) - 0.75).abs() < 1e-9);
    }
}
