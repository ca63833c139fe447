//! One trial: clones of the data, a server on them, its load, and all of it taken down again.

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ebbtide_load::{Cancel, Ended, RunReport, Sample, Session, Target};
use ebbtide_mysql::status::Sampler;
use ebbtide_mysql::{Binary, Server, ServerError, ServerPlan};

use super::arm_server::{self, Volumes};
use super::batch::{self, Beat};
use super::error::StageError;
use super::event::{Event, EventSink, Phase, Progress, Tick};
use super::home::{Lab, TRIAL_PREFIX};
use super::prepared::fs_type;
use super::verdict::{self, Evidence, VolumeEnd};
use super::volume::{Begin, IopsLimit, LabVolume, Wanted, role_name, without_limits};
use super::watch::{Answers, Asked, Watch};
use super::{proc, warm};
use crate::experiment::{Experiment, PlannedArm, Role};
use crate::record::{BatchUse, Outcome, Second, Trial};

/// How long transactions that are in flight at the end are waited for. The server is killed then.
const GRACE: Duration = Duration::from_secs(2);
/// How long a server that has closed a connection may take to end.
const DYING: Duration = Duration::from_secs(2);
/// The client's own error code for it.
const CONNECTION_LOST: u16 = 2013;
/// How much of a server's log a failed trial keeps.
const LOG_LINES: usize = 40;
/// A file system with less room than this is full: InnoDB extends its files by up to this much.
const FULL_BYTES: u64 = 8 << 20;

/// Everything that a trial needs.
pub(super) struct TrialContext<'a> {
    pub(super) lab: &'a Lab,
    pub(super) experiment: &'a Experiment,
    pub(super) binary: &'a Binary,
    pub(super) planned: &'a PlannedArm,
    /// The snapshot of its data.
    pub(super) snapshot: &'a str,
    pub(super) repeat: u32,
    pub(super) cancel: &'a Cancel,
    pub(super) events: EventSink<'a>,
    /// Which trial it is, and how far the run.
    pub(super) progress: &'a (dyn Fn() -> Progress + Sync),
}

/// A trial that came to its end: what there is to say of it.
#[derive(Debug)]
struct Measured {
    report: RunReport,
    seconds: Vec<Second>,
    batch: Option<BatchUse>,
    volumes: Vec<VolumeEnd>,
    foreign_cpus: f64,
    notes: Vec<String>,
}

/// A trial that did not, and the server's last words.
#[derive(Debug)]
struct Failure {
    error: Box<StageError>,
    log: Vec<String>,
}

impl<E: Into<StageError>> From<E> for Failure {
    fn from(error: E) -> Self {
        let error = error.into();
        let log = error.log().to_vec();
        Self { error: Box::new(error), log }
    }
}

impl TrialContext<'_> {
    /// Runs the trial; none where the user ended it.
    pub(super) fn run(&self) -> Option<Trial> {
        let began = Instant::now();
        let started_ns = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        self.events.send(Event::TrialStarted((self.progress)()));
        let done = self.measure();
        let trouble = self.lab.take_trouble();
        if self.cancel.is_cancelled() {
            return None;
        }
        let trial = Trial {
            arm: self.planned.arm.name.clone(),
            repeat: self.repeat,
            started_ns: u64::try_from(started_ns).unwrap_or(u64::MAX),
            took_s: began.elapsed().as_secs_f64(),
            outcome: Outcome::Measured,
            load: None,
            seconds: Vec::new(),
            batch: None,
            notes: trouble,
        };
        Some(match done {
            Ok(measured) => self.judged(trial, measured),
            Err(Failure { error, log }) => {
                Trial { outcome: Outcome::Failed { why: error.chain(), log }, ..trial }
            }
        })
    }

    fn judged(&self, trial: Trial, measured: Measured) -> Trial {
        let Measured { mut report, seconds, batch, volumes, foreign_cpus, mut notes } = measured;
        report.samples = Vec::new();
        let evidence = Evidence {
            generator: &report.generator,
            seconds: &seconds,
            volumes: &volumes,
            cpus: proc::cpus(),
            foreign_cpus,
        };
        let looked = verdict::judge(&evidence);
        notes.extend(looked.notes);
        notes.extend(trial.notes);
        Trial { outcome: looked.outcome, load: Some(report), seconds, batch, notes, ..trial }
    }

    /// From the clones to the end of the load. Whatever goes wrong, the server is gone before its
    /// volumes are.
    fn measure(&self) -> Result<Measured, Failure> {
        self.phase(Phase::Staging);
        let stage = Stage::set(self)?;
        self.proceed()?;
        self.phase(Phase::Starting);
        let server = Server::start(&stage.plan(self), &|text| self.waiting(text));
        let server = server.map_err(|error| stage.explain(error.into()))?;
        let server = self.warm(server, &stage)?;
        let measured = Load::new(self, &stage).run(server);
        self.phase(Phase::Clearing);
        measured
    }

    fn warm(&self, server: Server, stage: &Stage<'_>) -> Result<Server, Failure> {
        if !self.planned.arm.warmup.read_tables {
            return Ok(server);
        }
        self.phase(Phase::Reading);
        let target = server.target();
        let mut running = Some(server);
        let end = || drop(running.take());
        let read = warm::answer_all(
            &target,
            &self.planned.arm.tables(self.experiment.data).warm_up(),
            self.cancel,
            end,
        );
        match (read, running) {
            (Ok(()), Some(server)) => Ok(server),
            (Err(error), Some(server)) => Err(stage.explain(LastWords::of(&server).failure(error))),
            (_, None) => Err(StageError::Cancelled.into()),
        }
    }

    fn phase(&self, phase: Phase) {
        self.events.send(Event::Phase { trial: (self.progress)(), phase });
    }

    fn waiting(&self, why: &str) {
        self.events.send(Event::Waiting { trial: Some((self.progress)()), why: why.to_owned() });
    }

    fn proceed(&self) -> Result<(), StageError> {
        if self.cancel.is_cancelled() { Err(StageError::Cancelled) } else { Ok(()) }
    }
}

/// What a server has to say before it is killed.
#[derive(Debug)]
struct LastWords {
    died: Option<ServerError>,
    log: Vec<String>,
    notes: Vec<String>,
}

impl LastWords {
    fn of(server: &Server) -> Self {
        Self { died: server.died(), log: server.log_tail(LOG_LINES), notes: server.notes().to_vec() }
    }

    /// Of a server that has closed a connection: one that dies does so before its process has ended.
    fn of_dying(server: &Server) -> Self {
        let give_up = Instant::now() + DYING;
        while server.died().is_none() && Instant::now() < give_up {
            std::thread::sleep(Duration::from_millis(10));
        }
        Self::of(server)
    }

    /// A failure as it looks with them: a server that died explains everything else.
    fn failure(self, error: StageError) -> Failure {
        match (self.died, error) {
            (_, StageError::Cancelled) => StageError::Cancelled.into(),
            (Some(died), _) => died.into(),
            (None, error) => Failure { error: Box::new(error), log: self.log },
        }
    }
}

/// Whether the load lost its connection to the server.
fn was_cut_off(loaded: &Result<RunReport, StageError>) -> bool {
    match loaded {
        Ok(report) => matches!(report.ended, Ended::Failed { code: CONNECTION_LOST, .. }),
        Err(_) => true,
    }
}

/// The volumes of a trial, attached and mounted.
#[derive(Debug)]
struct Stage<'a> {
    lab: &'a Lab,
    volumes: Volumes<'a>,
}

impl<'a> Stage<'a> {
    fn set(context: &TrialContext<'a>) -> Result<Self, StageError> {
        let mut stage = Self { lab: context.lab, volumes: BTreeMap::new() };
        for (role, real) in &context.planned.volumes {
            let begin = match role {
                Role::Data => Begin::Snapshot(context.snapshot),
                _ => Begin::Blank,
            };
            let wanted = Wanted {
                name: format!("{TRIAL_PREFIX}{}-{}", (context.progress)().number, role_name(*role)),
                begin,
                unlimited: without_limits(real, context.lab.host.now()),
                fs: fs_type(&context.planned.arm.instance.fs),
                rotational: context.planned.arm.instance.rotational,
                seed: context.seed(),
                cancel: context.cancel,
            };
            context.proceed()?;
            let progress = |text: &str| context.waiting(text);
            stage.volumes.insert(*role, LabVolume::make(context.lab, wanted, &progress)?);
        }
        Ok(stage)
    }

    fn plan(&self, context: &TrialContext<'_>) -> ServerPlan {
        let work_dir = self.lab.work_dir("trial");
        arm_server::server_plan(&self.volumes, &context.planned.arm, context.binary, work_dir, context.cancel)
    }

    /// Switches the limits of all volumes on, multiplied.
    fn lead_in(&self, context: &TrialContext<'_>) -> Result<(), StageError> {
        let speed = context.planned.arm.warmup.lead_in_speed;
        self.volumes
            .iter()
            .try_for_each(|(role, volume)| volume.lead_in(&context.planned.volumes[role], speed))
    }

    /// Switches the limits of all volumes on, and those of their instance.
    fn limit(&self, context: &TrialContext<'_>) -> Result<(), StageError> {
        arm_server::limit(&self.volumes, context.planned)
    }

    /// How the volumes stand, when they were measured since `begun`.
    fn ends(&self, planned: &PlannedArm, begun: Option<&Begun>) -> Vec<VolumeEnd> {
        let instance = planned.instance.as_ref().map(|instance| &instance.limits);
        let end = |(role, volume): (&Role, &LabVolume<'_>)| VolumeEnd {
            role: *role,
            pacing: volume.live().pacing(),
            host_errors: volume.live().host_errors(),
            limit: IopsLimit::of(&planned.volumes[role], instance),
            device_queue: begun.and_then(|begun| begun.mean_queue(*role, volume)),
        };
        self.volumes.iter().map(end).collect()
    }

    /// Switches all limits off.
    fn release(&self) {
        self.volumes.values().for_each(LabVolume::release);
    }

    /// What stands behind a failure, where the volumes tell.
    fn explain(&self, failure: Failure) -> Failure {
        if matches!(*failure.error, StageError::Cancelled) {
            return failure;
        }
        let errors: u64 = self.volumes.values().map(|volume| volume.live().host_errors()).sum();
        if errors > 0 {
            let free = self.lab.host.home().free_bytes().unwrap_or(0);
            let why = format!(
                "the host failed {errors} requests of the volumes: its disk is full or broken ({} MiB are free \
                 on the disk that holds the lab): {}",
                free >> 20,
                failure.error.chain()
            );
            return Failure { error: Box::new(StageError::HostFailed(why)), ..failure };
        }
        let full = self.full();
        let full = full.or_else(|| self.fullest().filter(|_| says_full(&failure.log)).map(|(_, full)| full));
        match full {
            Some(error) => Failure { error: Box::new(error), ..failure },
            None => failure,
        }
    }

    /// The volume whose file system has no room left, as an error.
    fn full(&self) -> Option<StageError> {
        let (free, fullest) = self.fullest()?;
        (free < FULL_BYTES).then_some(fullest)
    }

    /// The volume with the least room left, bytes, and the error of its being full.
    fn fullest(&self) -> Option<(u64, StageError)> {
        let room = |(role, volume): (&Role, &LabVolume<'_>)| {
            let free = ebbtide_device::host::free_bytes(volume.dir()).ok()?;
            let size = volume.live().size_bytes();
            Some((free, StageError::VolumeFull { role: role_name(*role), size, free }))
        };
        self.volumes.iter().filter_map(room).min_by_key(|(free, _)| *free)
    }
}

/// Whether a server's log says that a file could not grow. Servers ask for tens of MiB at a time, so
/// that some room may be left then.
fn says_full(log: &[String]) -> bool {
    // ENOSPC, as MariaDB and MySQL put it.
    let words = ["error 28", "errno: 28", "error number 28", "No space left on device", "is full"];
    log.iter().any(|line| words.iter().any(|word| line.contains(word)))
}

impl TrialContext<'_> {
    /// Seed of what is drawn in this trial: the same for every arm of a round.
    fn seed(&self) -> u64 {
        self.experiment.seed ^ (u64::from(self.repeat) << 32)
    }

    fn load_options(&self) -> ebbtide_load::RunOptions {
        let (plan, warmup) = (&self.planned.arm.load, &self.planned.arm.warmup);
        ebbtide_load::RunOptions {
            schema: self.experiment.data.schema(),
            mix: plan.mix.clone(),
            distribution: plan.distribution,
            seed: self.seed(),
            connections: plan.connections,
            arrival: plan.arrival,
            duration: Some(Duration::from_secs(self.planned.arm.measure_s.into())),
            warmup_s: warmup.lead_in_s + warmup.settle_s,
            grace: Some(GRACE),
            ..ebbtide_load::RunOptions::new(plan.workload)
        }
    }
}

/// The moment at which a measurement began.
#[derive(Debug)]
struct Begun {
    at: Instant,
    /// What the devices had taken by then, s.
    device_s: BTreeMap<Role, f64>,
}

impl Begun {
    fn of(stage: &Stage<'_>) -> Self {
        let times = stage.volumes.iter().filter_map(|(role, volume)| Some((*role, volume.device_time_s()?)));
        Self { device_s: times.collect(), at: Instant::now() }
    }

    /// Reads and writes that were under way at a volume's device since then, mean.
    fn mean_queue(&self, role: Role, volume: &LabVolume<'_>) -> Option<f64> {
        let span_s = self.at.elapsed().as_secs_f64().max(1e-6);
        Some((volume.device_time_s()? - self.device_s.get(&role)?).max(0.0) / span_s)
    }
}

/// The load of a trial while it runs.
struct Load<'a> {
    context: &'a TrialContext<'a>,
    stage: &'a Stage<'a>,
    /// Whether the limits are on.
    limited: bool,
    /// Why they could not be switched on.
    broken: Option<StageError>,
    measured: Option<Begun>,
    /// Processors that others kept busy meanwhile.
    foreign_cpus: f64,
    /// The measured seconds, by the sampler's tick.
    seconds: Vec<(usize, Second)>,
}

impl<'a> Load<'a> {
    fn new(context: &'a TrialContext<'a>, stage: &'a Stage<'a>) -> Self {
        Self {
            context,
            stage,
            limited: false,
            broken: None,
            measured: None,
            foreign_cpus: 0.0,
            seconds: Vec::new(),
        }
    }

    /// Runs the load to its end, and ends the server. The limits are switched on, and the batch job
    /// joins, on the way.
    fn run(mut self, server: Server) -> Result<Measured, Failure> {
        let (context, stage) = (self.context, self.stage);
        let target = server.target();
        let (beat, asked) = (Beat::default(), Asked::default());
        let sampler = open_sampler(&target, context.binary)?;
        let (ask, ticks) = mpsc::channel();
        self.begin()?;
        std::thread::scope(|scope| {
            let asked = &asked;
            let asking = scope.spawn(move || asked.run(sampler, &ticks));
            let tables = context.planned.arm.tables(context.experiment.data);
            let batch = context.planned.arm.batch.as_ref();
            let job = batch.map(|batch| batch::start(scope, batch, &tables, &target, &beat)).transpose();
            let loaded = match &job {
                Ok(_) => self.load(&target, &server, asked, ask, &beat),
                Err(_) => {
                    // Whoever answers waits for questions as long as someone can ask.
                    drop(ask);
                    Err(StageError::Cancelled)
                }
            };
            // The server's end is that of everything that still waits for it.
            let words =
                if was_cut_off(&loaded) { LastWords::of_dying(&server) } else { LastWords::of(&server) };
            let (volumes, full) = (stage.ends(context.planned, self.measured.as_ref()), stage.full());
            beat.end();
            asked.end();
            // The server's end takes as long as what it has asked its volumes for.
            stage.release();
            if let Err(error) = server.kill() {
                tracing::error!(%error, "a server did not end");
            }
            let answers = asking.join().unwrap_or_default();
            let measured_s = f64::from(context.planned.arm.measure_s);
            let batch = match job {
                Ok(job) => {
                    let from = self.measured.as_ref().map(|begun| begun.at);
                    job.zip(batch).map(|(job, batch)| job.join(from, batch, measured_s))
                }
                Err(error) => return Err(stage.explain(words.failure(error.into()))),
            };
            let sound = loaded.and_then(|report| self.sound(report, full));
            match (sound, words) {
                (Ok(report), LastWords { died: None, notes, .. }) => {
                    Ok(self.finished(report, batch, &answers, volumes, notes))
                }
                (Ok(_), LastWords { died: Some(died), .. }) => Err(stage.explain(died.into())),
                (Err(error), words) => Err(stage.explain(words.failure(error))),
            }
        })
    }

    /// With no time before the limits, they are on from the first transaction.
    fn begin(&mut self) -> Result<(), StageError> {
        let warmup = self.context.planned.arm.warmup;
        if warmup.lead_in_s > 0 {
            self.context.phase(Phase::LeadIn);
            return self.stage.lead_in(self.context);
        }
        self.stage.limit(self.context)?;
        self.limited = true;
        if warmup.settle_s > 0 {
            self.context.phase(Phase::Settling);
        } else {
            self.measure_from_now();
        }
        Ok(())
    }

    fn load(
        &mut self,
        target: &Target,
        server: &Server,
        asked: &Asked,
        ask: mpsc::Sender<usize>,
        beat: &Beat,
    ) -> Result<RunReport, StageError> {
        let volumes = self.stage.volumes.iter().map(|(role, volume)| (*role, volume.live())).collect();
        let mut watch = Watch::new(volumes, server, asked, ask);
        let context = self.context;
        let measure_s = f64::from(context.planned.arm.measure_s);
        let mut on_sample = |sample: &Sample| {
            let tick = watch.ticks();
            let second = watch.second(sample);
            self.turn(sample, beat);
            self.tell(&second, sample);
            // What follows the last second is the end of transactions that began before it.
            if !sample.warmup && sample.t_s < measure_s + 0.05 {
                self.seconds.push((tick, second));
            }
        };
        let report = ebbtide_load::run(target, &context.load_options(), context.cancel, &mut on_sample)?;
        self.foreign_cpus = watch.foreign_cpus();
        Ok(report)
    }

    /// What begins with the second that follows this one.
    fn turn(&mut self, sample: &Sample, beat: &Beat) {
        let settle_s = f64::from(self.context.planned.arm.warmup.settle_s);
        // The end of a second is told as a sum of floating point numbers.
        if !self.limited && sample.t_s > -settle_s - 0.5 {
            self.limited = true;
            self.broken = self.stage.limit(self.context).err();
            if settle_s > 0.0 {
                self.context.phase(Phase::Settling);
            }
        }
        if sample.t_s > -0.5 {
            if self.measured.is_none() {
                self.measure_from_now();
            }
            beat.reach(sample.t_s.max(0.0));
        }
    }

    fn measure_from_now(&mut self) {
        self.measured = Some(Begun::of(self.stage));
        self.stage.volumes.values().for_each(|volume| volume.live().reset_pacing());
        self.context.phase(Phase::Measuring);
    }

    fn tell(&self, second: &Second, sample: &Sample) {
        let warmup = &self.context.planned.arm.warmup;
        let phase = match sample.warmup {
            false => Phase::Measuring,
            true if sample.t_s <= -f64::from(warmup.settle_s) + 0.5 && warmup.lead_in_s > 0 => Phase::LeadIn,
            true => Phase::Settling,
        };
        let volumes = || second.volumes.values();
        let tick = Tick {
            phase,
            t_s: sample.t_s,
            measure_s: self.context.planned.arm.measure_s,
            tps: second.load.tps,
            p95_us: second.load.p95_us,
            credits: volumes().filter_map(|volume| volume.credits).reduce(f64::min),
            volume_iops: volumes().map(|volume| volume.consumed_iops).sum(),
        };
        self.context.events.send(Event::Tick { trial: (self.context.progress)(), tick });
    }

    /// A report that says something about the arm.
    fn sound(&mut self, report: RunReport, full: Option<StageError>) -> Result<RunReport, StageError> {
        self.context.proceed()?;
        if let Some(broken) = self.broken.take() {
            return Err(broken);
        }
        if let Some(full) = full {
            return Err(full);
        }
        match report.ended {
            Ended::Failed { code, message, statement } => {
                Err(StageError::LoadFailed { code, message, statement })
            }
            Ended::Time | Ended::Events | Ended::Cancelled => Ok(report),
        }
    }

    fn finished(
        self,
        report: RunReport,
        batch: Option<BatchUse>,
        answers: &Answers,
        volumes: Vec<VolumeEnd>,
        mut notes: Vec<String>,
    ) -> Measured {
        let rates = answers.rates();
        let server = |(tick, second): (usize, Second)| Second { server: rates.get(&tick).copied(), ..second };
        let foreign_cpus = self.foreign_cpus;
        let mut seconds: Vec<Second> = self.seconds.into_iter().map(server).collect();
        add_rest_of_load(&mut seconds, report.client.cpu_s);
        if let Some(why) = &answers.lost {
            notes.push(format!("the server was not asked for its status to the end: {why}"));
        }
        Measured { report, seconds, batch, volumes, foreign_cpus, notes }
    }
}

/// The load's threads end with its last second, before anyone can look at them: what they took in it is
/// what is missing from their own count.
fn add_rest_of_load(seconds: &mut [Second], cpu_s: f64) {
    let Some((last, others)) = seconds.split_last_mut() else { return };
    let seen: f64 = others.iter().map(|second| second.host.load_cpus).sum();
    last.host.load_cpus = last.host.load_cpus.max(cpu_s - seen).max(0.0);
}

fn open_sampler(target: &Target, binary: &Binary) -> Result<Sampler, StageError> {
    let session = Session::open(target, &target.endpoints[0])?;
    Ok(Sampler::open(session, binary)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_says_that_a_file_could_not_grow() {
        let log = |line: &str| [line.to_owned()];
        assert!(says_full(&log(
            "[ERROR] InnoDB: preallocating 79691776 bytes for file ./ibdata1 failed with error 28"
        )));
        assert!(says_full(&log("[ERROR] [MY-012639] [InnoDB] Write to file ./x.ibd failed, errno: 28")));
        assert!(!says_full(&log("2026-11-20 11:28:28 0 [Note] mariadbd: ready for connections.")));
    }
}
