//! What is to be simulated, and how long that takes.

use ebbtide_catalog::{Initialization, InstanceType, MonthlyCost, Resolved};
use ebbtide_twin::{Job, Workload};
use ebbtide_volume::{Array, Loader, Nanos, Op};

use super::trace::TracePlan;

/// Intervals that one run keeps at most: the limit of what a page or a JSON reader takes well.
pub const MOST_INTERVALS: u64 = 1_000_000;
/// Intervals that a run without `--interval` aims to stay below: a day of seconds.
const DEFAULT_INTERVALS: u64 = 86_400;
/// Longest run without a runtime: as long as a runtime can be, 3650 days.
const LONGEST_RUN: Nanos = Nanos::from_secs(3_650 * 86_400);
/// Lengths of intervals and of table rows, in seconds, that people count in.
pub(super) const STEPS_S: [u64; 19] = [
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 21_600, 43_200, 86_400, 604_800,
];

/// What will be run.
#[derive(Debug)]
pub struct SimulationPlan {
    /// The volumes, each with its own run.
    pub volumes: Vec<SimulatedVolume>,
    /// The jobs; none with a trace.
    pub workload: Workload,
    /// What is replayed instead of jobs.
    pub trace: Option<TracePlan>,
    /// The jobs as they were given; with a trace, none.
    pub job: String,
    /// Job files among them, with their texts.
    pub job_files: Vec<(String, String)>,
    /// The instance type that they are attached to; none without one.
    pub instance: Option<InstanceType>,
    /// How the volumes get their blocks.
    pub initialization: Initialization,
    /// The same for the model; none where all blocks are there.
    pub loader: Option<Loader>,
    /// Whether all volumes share one instance.
    pub together: bool,
    /// Decides every draw.
    pub seed: u64,
    /// Length of an interval.
    pub interval: Nanos,
    /// Whether the user named the interval, and wants to see every one.
    pub interval_given: bool,
    /// When the run ends at the latest, where runtimes limit it.
    pub ends: Option<Nanos>,
    /// The command line that makes this run again.
    pub command: String,
}

/// One volume.
#[derive(Debug)]
pub struct SimulatedVolume {
    /// Its spec as it was given.
    pub spec: String,
    /// What the catalogue makes of it.
    pub resolved: Resolved,
    /// What it costs a month; none where its type has no price in the region.
    pub cost: Option<MonthlyCost>,
}

impl SimulatedVolume {
    /// Its cost in a line; `-` where it has none.
    pub(super) fn cost_line(&self) -> String {
        self.cost.as_ref().map_or_else(|| "-".to_owned(), MonthlyCost::line)
    }

    /// Its cost in a cell; `-` where it has none.
    pub(super) fn cost_cell(&self) -> String {
        self.cost.as_ref().map_or_else(|| "-".to_owned(), MonthlyCost::short)
    }
}

impl SimulationPlan {
    /// The volumes at the beginning of the run.
    pub(super) fn arrays(&self) -> Vec<Array> {
        let begin = |volume: &SimulatedVolume| {
            let mut array = volume.resolved.array(Nanos::ZERO);
            if let Some(loader) = &self.loader {
                let whole = 0..array.size_bytes();
                let states = array.new_load_states(&[whole], Nanos::ZERO);
                array.begin_loading(loader, states).expect("an array has a state for each of its members");
            }
            array
        };
        self.volumes.iter().map(begin).collect()
    }

    /// The shortest interval that a run may have: it keeps at most [`MOST_INTERVALS`], of 1 ms or more.
    #[must_use]
    pub fn shortest_interval(&self) -> Nanos {
        let ends = self.ends.unwrap_or_else(|| self.least_end());
        Nanos((ends.0 / MOST_INTERVALS).max(1_000_000))
    }

    /// A second, or more where the run would have more than a day of them.
    #[must_use]
    pub fn default_interval(&self) -> Nanos {
        let seconds = self.ends.unwrap_or_else(|| self.estimated_end()).0 / 1_000_000_000;
        let fits = |step: &&u64| seconds / **step <= DEFAULT_INTERVALS;
        Nanos::from_secs(STEPS_S.iter().find(fits).copied().unwrap_or(STEPS_S[STEPS_S.len() - 1]))
    }

    /// Days of virtual time that the run takes at least, where jobs end by their amount alone and that is beyond any use.
    #[must_use]
    pub fn endless_days(&self) -> Option<u64> {
        let least = self.least_end();
        (self.ends.is_none() && least > LONGEST_RUN).then(|| least.0 / Nanos::from_secs(86_400).0)
    }

    /// A time before which the run cannot end.
    fn least_end(&self) -> Nanos {
        let phases = self.workload.jobs.iter().map(|job| job.phase).max().unwrap_or(0);
        let on_volume = |volume: &SimulatedVolume| {
            let size = volume.resolved.size_bytes();
            let of_phase = |phase| {
                let jobs = self.workload.jobs.iter().filter(|job| job.phase == phase);
                jobs.map(|job| job.least_time(size).0).max().unwrap_or(0)
            };
            let paced = (0..=phases).map(of_phase).fold(0, u64::saturating_add);
            paced.max(self.least_transfer(volume).0)
        };
        Nanos(self.volumes.iter().map(on_volume).max().unwrap_or(0))
    }

    /// How long a volume takes for the bytes of all jobs when its burst never ends; zero where a
    /// runtime may end a job before.
    fn least_transfer(&self, volume: &SimulatedVolume) -> Nanos {
        let ceilings = volume.resolved.members.iter().map(|limits| Some(limits.throughput?.ceiling));
        let Some(ceilings) = ceilings.collect::<Option<Vec<_>>>() else { return Nanos::ZERO };
        let rate = ceilings.into_iter().fold(0, u64::saturating_add).max(1);
        if self.workload.jobs.iter().any(|job| job.runtime.is_some() || job.max_ios.is_some()) {
            return Nanos::ZERO;
        }
        Nanos((self.bytes_on(volume) / rate).saturating_mul(Nanos::SECOND.0))
    }

    /// How long jobs that end by their amount take at the slowest volume's sustained limits. Only
    /// the length of intervals hangs on it.
    fn estimated_end(&self) -> Nanos {
        let bytes = self.volumes.iter().map(|volume| self.bytes_on(volume)).max().unwrap_or(0);
        let block = self.workload.jobs.iter().map(|job| job.block_sizes[0].smallest()).min().unwrap_or(4096);
        let members = self.volumes.iter().flat_map(|volume| &volume.resolved.members);
        let seconds = members.map(|limits| {
            let by_iops = limits.iops.map_or(0, |limit| bytes / u64::from(block) / limit.rate);
            let by_bytes = limits.throughput.map_or(0, |limit| bytes / limit.rate);
            by_iops.max(by_bytes)
        });
        let limited = Nanos(seconds.max().unwrap_or(0).saturating_mul(Nanos::SECOND.0));
        limited.max(self.least_end())
    }

    fn bytes_on(&self, volume: &SimulatedVolume) -> u64 {
        let size = volume.resolved.size_bytes();
        let of_job = |job: &Job| {
            let once = job.size.map_or(size, |extent| extent.bytes_of(size)).saturating_mul(job.loops);
            job.amount.unwrap_or(once).saturating_mul(u64::from(job.clones))
        };
        self.workload.jobs.iter().map(of_job).fold(0, u64::saturating_add)
    }

    /// Whether any job reads, and whether any writes. Of a trace this is not known before.
    pub(super) fn does(&self, op: Op) -> bool {
        self.workload.jobs.iter().any(|job| job.does(op))
    }

    /// What the volumes get, for people: the jobs, or the trace.
    pub(super) fn load(&self) -> String {
        self.trace.as_ref().map_or_else(|| self.job.clone(), |trace| trace.path.display().to_string())
    }
}

/// The end of the last phase, where every job has a runtime.
#[must_use]
pub fn latest_end(jobs: &[Job]) -> Option<Nanos> {
    let phases = jobs.iter().map(|job| job.phase).max().unwrap_or(0);
    let mut ends = Nanos::ZERO;
    for phase in 0..=phases {
        let in_phase = jobs.iter().filter(|job| job.phase == phase);
        let spans = in_phase.map(|job| job.runtime.map(|runtime| job.start_delay + runtime));
        ends += spans.collect::<Option<Vec<_>>>()?.into_iter().max().unwrap_or(Nanos::ZERO);
    }
    Some(ends)
}

#[cfg(test)]
mod tests {
    use ebbtide_twin::fio;

    use super::*;

    #[test]
    fn the_end_is_known_only_where_every_job_has_a_runtime() {
        let jobs = |text: &str| fio::parse_file(text, "", &fio::Nothing).unwrap().jobs;
        let ends =
            latest_end(&jobs("[a]\nruntime=60\nstartdelay=5\n[b]\nruntime=30\n[c]\nstonewall\nruntime=10\n"));
        assert_eq!(ends, Some(Nanos::from_secs(75)));
        assert_eq!(latest_end(&jobs("[a]\nruntime=60\n[b]\nsize=1g\n")), None);
    }
}
