//! One trial: clones of the data, a server on them, its load, and all of it taken down again.

mod copy;
mod load;
mod mounted_trial;

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use ebbtide_load::{Cancel, Ended, Sample, Session, Target};
use ebbtide_mysql::status::StatusSampler;
use ebbtide_mysql::{Binary, Server, ServerError, ServerPlan};

use super::backup;
use super::batch::{self, Beat};
use super::error::StepError;
use super::event::{Event, EventSink, Phase, Progress, Tick};
use super::home::Lab;
use super::lag::LagWatch;
use super::sampler::{Answers, SecondSampler, ServerPoll};
use super::verdict::{self, Evidence, VolumeEnd};
use super::volume::LabVolume;
use super::{proc, promotion, statements, topology, unix_ns};
use crate::experiment::{BackedUp, Experiment, PlannedArm, Role};
use crate::record::{BackupUse, BatchUse, LoadReport, Outcome, Promotion, Second, Trial};

use mounted_trial::MountedTrial;

/// How long a server that has closed a connection may take to end.
const DYING: Duration = Duration::from_secs(2);
/// The client's own error code for it.
const CONNECTION_LOST: u16 = 2013;
/// How much of a server's log a failed trial keeps.
const LOG_LINES: usize = 40;

/// Everything that a trial needs.
pub(super) struct TrialContext<'a> {
    pub(super) lab: &'a Lab,
    pub(super) experiment: &'a Experiment,
    pub(super) planned: &'a PlannedArm,
    /// The snapshots of prepared data, by their keys.
    pub(super) snapshots: &'a BTreeMap<String, String>,
    pub(super) repeat: u32,
    pub(super) cancel: &'a Cancel,
    pub(super) events: EventSink<'a>,
    /// Which trial it is, and how far the run.
    pub(super) progress: &'a (dyn Fn() -> Progress + Sync),
}

/// A trial that came to its end: what was found of it.
#[derive(Debug)]
struct TrialMeasurement {
    report: LoadReport,
    seconds: Vec<Second>,
    batch: Option<BatchUse>,
    promotion: Option<Promotion>,
    backup: Option<BackupUse>,
    volumes: Vec<VolumeEnd>,
    foreign_cpus: f64,
    notes: Vec<String>,
}

/// A trial that did not, and the server's last words.
#[derive(Debug)]
struct Failure {
    error: Box<StepError>,
    log: Vec<String>,
}

impl<E: Into<StepError>> From<E> for Failure {
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
        let started_ns = unix_ns();
        self.events.send(Event::TrialStarted((self.progress)()));
        let done = self.measure();
        let trouble = self.lab.take_trouble();
        if self.cancel.is_cancelled() {
            return None;
        }
        let trial = Trial {
            arm: self.planned.arm.name.clone(),
            repeat: self.repeat,
            started_ns,
            took_s: began.elapsed().as_secs_f64(),
            outcome: Outcome::Measured,
            load: None,
            seconds: Vec::new(),
            batch: None,
            promotion: None,
            backup: None,
            notes: trouble,
        };
        Some(match done {
            Ok(measured) => self.judged(trial, measured),
            Err(Failure { error, log }) => {
                Trial { outcome: Outcome::Failed { why: error.chain(), log }, ..trial }
            }
        })
    }

    fn judged(&self, trial: Trial, measured: TrialMeasurement) -> Trial {
        let TrialMeasurement {
            mut report,
            seconds,
            batch,
            promotion,
            backup,
            volumes,
            foreign_cpus,
            mut notes,
        } = measured;
        report.drop_samples();
        let evidence = Evidence {
            generator: report.generator(),
            inconsistency: report.inconsistency(),
            unusable: backup.as_ref().and_then(|backup| backup.restored.failed.clone()),
            seconds: &seconds,
            volumes: &volumes,
            over_limit: self.experiment.over_limit,
            cpus: proc::cpus(),
            foreign_cpus,
        };
        let judged = verdict::judge(&evidence);
        notes.extend(judged.notes);
        notes.extend(trial.notes);
        let load = Some(report);
        Trial { outcome: judged.outcome, load, seconds, batch, promotion, backup, notes, ..trial }
    }

    /// The server that a backup is made of.
    fn backed_up(&self, of: BackedUp) -> &PlannedArm {
        match of {
            BackedUp::Source => self.planned,
            BackedUp::Replica => {
                self.planned.replica.as_deref().expect("a checked arm has the replica of its backup")
            }
        }
    }

    /// From the clones to the end of the load. Whatever goes wrong, the server is gone before its
    /// volumes are.
    fn measure(&self) -> Result<TrialMeasurement, Failure> {
        if let Some(plan) = &self.planned.arm.backup {
            backup::check_tools(plan, &self.backed_up(plan.of).server)?;
        }
        self.phase(Phase::Cloning);
        let mounted = MountedTrial::mount(self)?;
        self.proceed()?;
        self.phase(Phase::Starting);
        let server = self.start(&mounted, mounted.plan(self))?;
        let replicas = self.replicas(&mounted, &server)?;
        let measured = TrialLoad::new(self, &mounted, &replicas).run(server);
        drop(replicas);
        self.phase(Phase::Clearing);
        measured
    }

    /// Starts a server and reads its tables.
    fn start(&self, mounted: &MountedTrial<'_>, plan: ServerPlan) -> Result<Server, Failure> {
        let server = Server::start(&plan, &|text| self.waiting(text));
        self.warm(server.map_err(|error| mounted.explain(error.into()))?, mounted)
    }

    /// Starts the replicas, and has them follow the server of the load.
    fn replicas(&self, mounted: &MountedTrial<'_>, source: &Server) -> Result<Vec<Server>, Failure> {
        let mut replicas = Vec::new();
        for plan in mounted.replica_plans(self) {
            self.proceed()?;
            self.phase(Phase::Starting);
            replicas.push(self.start(mounted, plan)?);
        }
        if replicas.is_empty() {
            return Ok(replicas);
        }
        let connected = topology::connect(source, &replicas, self.planned.arm.topology.by, self.cancel);
        connected.map_err(|error| mounted.explain(LastWords::of(source).failure(error)))?;
        Ok(replicas)
    }

    fn warm(&self, server: Server, mounted: &MountedTrial<'_>) -> Result<Server, Failure> {
        if !self.planned.arm.warmup.read_tables {
            return Ok(server);
        }
        self.phase(Phase::Reading);
        let target = server.target();
        let mut running = Some(server);
        let end = || drop(running.take());
        let read = statements::answer_all(
            &target,
            &self.planned.arm.tables(self.experiment.data).warm_up(),
            self.cancel,
            end,
        );
        match (read, running) {
            (Ok(()), Some(server)) => Ok(server),
            (Err(error), Some(server)) => Err(mounted.explain(LastWords::of(&server).failure(error))),
            (_, None) => Err(StepError::Cancelled.into()),
        }
    }

    fn phase(&self, phase: Phase) {
        self.events.send(Event::Phase { trial: (self.progress)(), phase });
    }

    fn waiting(&self, why: &str) {
        self.events.send(Event::Waiting { trial: Some((self.progress)()), why: why.to_owned() });
    }

    fn proceed(&self) -> Result<(), StepError> {
        if self.cancel.is_cancelled() { Err(StepError::Cancelled) } else { Ok(()) }
    }
}

/// What is read of a server before it is killed.
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
    fn failure(self, error: StepError) -> Failure {
        match (self.died, error) {
            (_, StepError::Cancelled) => StepError::Cancelled.into(),
            (Some(died), _) => died.into(),
            (None, error) => Failure { error: Box::new(error), log: self.log },
        }
    }
}

/// Whether the load lost its connection to the server.
fn was_cut_off(loaded: &Result<(LoadReport, Option<Promotion>), StepError>) -> bool {
    match loaded {
        Ok((report, _)) => matches!(report.ended(), Ended::Failed { code: CONNECTION_LOST, .. }),
        Err(_) => true,
    }
}

impl TrialContext<'_> {
    /// Seed of what is drawn in this trial: the same for every arm of a round.
    fn seed(&self) -> u64 {
        self.experiment.seed ^ (u64::from(self.repeat) << 32)
    }
}

/// The moment at which a measurement began.
#[derive(Debug)]
struct MeasurementStart {
    at: Instant,
    /// What the devices had taken by then, s.
    device_s: BTreeMap<Role, f64>,
}

impl MeasurementStart {
    fn of(mounted: &MountedTrial<'_>) -> Self {
        let times =
            mounted.volumes.iter().filter_map(|(role, volume)| Some((*role, volume.device_time_s()?)));
        Self { device_s: times.collect(), at: Instant::now() }
    }

    /// Reads and writes that were under way at a volume's device since then, mean.
    fn mean_queue(&self, role: Role, volume: &LabVolume<'_>) -> Option<f64> {
        let span_s = self.at.elapsed().as_secs_f64().max(1e-6);
        Some((volume.device_time_s()? - self.device_s.get(&role)?).max(0.0) / span_s)
    }
}

/// The load of a trial while it runs.
struct TrialLoad<'a> {
    context: &'a TrialContext<'a>,
    mounted: &'a MountedTrial<'a>,
    /// The servers that follow the one of the load.
    replicas: &'a [Server],
    /// Whether the limits are on.
    limited: bool,
    /// Why they could not be switched on.
    broken: Option<StepError>,
    measured: Option<MeasurementStart>,
    /// When the server of the load was killed, where a replica takes over from it.
    killed: Option<Instant>,
    /// Processors that others kept busy meanwhile.
    foreign_cpus: f64,
    /// The measured seconds, by the sampler's tick.
    seconds: Vec<(usize, Second)>,
}

impl<'a> TrialLoad<'a> {
    fn new(context: &'a TrialContext<'a>, mounted: &'a MountedTrial<'a>, replicas: &'a [Server]) -> Self {
        Self {
            context,
            mounted,
            replicas,
            limited: false,
            broken: None,
            measured: None,
            killed: None,
            foreign_cpus: 0.0,
            seconds: Vec::new(),
        }
    }

    /// Runs the load to its end, and ends the server. The limits are switched on, and the batch job
    /// joins, on the way.
    fn run(mut self, server: Server) -> Result<TrialMeasurement, Failure> {
        let (context, mounted) = (self.context, self.mounted);
        let target = server.target();
        let (beat, asked, lag) = (Beat::default(), ServerPoll::default(), LagWatch::default());
        let sampler = open_sampler(&target, &context.planned.server)?;
        let (ask, ticks) = mpsc::channel();
        self.begin()?;
        std::thread::scope(|scope| {
            if !self.replicas.is_empty() {
                lag.start(scope, &server, self.replicas)?;
            }
            let copy = self.start_backup(scope, &server, &beat).inspect_err(|_| lag.end())?;
            let asked = &asked;
            let asking = scope.spawn(move || asked.run(sampler, &ticks));
            let tables = context.planned.arm.tables(context.experiment.data);
            let batch = context.planned.arm.batch.as_ref();
            let job = batch.map(|batch| batch::start(scope, batch, &tables, &target, &beat)).transpose();
            let loaded = match &job {
                Ok(_) => self.load(&server, &lag, asked, ask, &beat),
                Err(_) => {
                    // Whoever answers waits for questions as long as someone can ask.
                    drop(ask);
                    Err(StepError::Cancelled)
                }
            };
            let loaded = self.while_followed(&lag, loaded);
            let promoted = self.promote(loaded.is_ok());
            let volumes = mounted.ends(context.planned, self.measured.as_ref());
            beat.end();
            // It goes on under the limits when the load is over.
            let copied = copy.map(|copy| self.end_backup(copy, loaded.is_ok())).transpose();
            let full = mounted.full();
            asked.end();
            lag.end();
            // The server's end takes as long as what it has asked its volumes for.
            mounted.release();
            let loaded = loaded
                .and_then(|report| self.checked(report, full))
                .and_then(|report| promoted.map(|promotion| (report, promotion)))
                .and_then(|(report, promotion)| {
                    Ok((context.with_consistency(report, &self.in_charge(&server))?, promotion))
                });
            let (loaded, copied) = copy::with_backup(loaded, copied);
            // The server's end is that of everything that still waits for it.
            let words = self.last_words(&server, was_cut_off(&loaded));
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
                Err(error) => return Err(mounted.explain(words.failure(error.into()))),
            };
            match (loaded, words) {
                (Ok((report, promotion)), LastWords { died: None, mut notes, .. }) => {
                    notes.extend(lag.note());
                    let backup = copied.map(|made| self.restored(made)).transpose()?;
                    let measured = self.finished(report, batch, &answers, volumes, notes);
                    Ok(TrialMeasurement { promotion, backup, ..measured })
                }
                (Ok(_), LastWords { died: Some(died), .. }) => Err(mounted.explain(died.into())),
                (Err(error), words) => Err(mounted.explain(words.failure(error))),
            }
        })
    }

    /// A load through which every replica has followed.
    fn while_followed(
        &self,
        lag: &LagWatch,
        loaded: Result<LoadReport, StepError>,
    ) -> Result<LoadReport, StepError> {
        match lag.take_broken_replica() {
            Some(broken) => Err(broken),
            None => loaded.and_then(|report| topology::check(self.replicas).map(|()| report)),
        }
    }

    /// The server that has the tables at the end: the promoted replica, where the source was killed for one.
    fn in_charge(&self, source: &Server) -> Target {
        let promoted = self.killed.and_then(|_| self.replicas.first());
        promoted.unwrap_or(source).target()
    }

    /// What is read of the server before it is killed; one that was killed on purpose has not died.
    fn last_words(&self, server: &Server, cut_off: bool) -> LastWords {
        match self.killed {
            Some(_) => LastWords { died: None, ..LastWords::of(server) },
            None if cut_off => LastWords::of_dying(server),
            None => LastWords::of(server),
        }
    }

    /// With no time before the limits, they are on from the first transaction.
    fn begin(&mut self) -> Result<(), StepError> {
        let warmup = self.context.planned.arm.warmup;
        if warmup.lead_in_s > 0 {
            self.context.phase(Phase::LeadIn);
            return self.mounted.lead_in(self.context);
        }
        self.mounted.limit(self.context)?;
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
        server: &Server,
        lag: &LagWatch,
        asked: &ServerPoll,
        ask: mpsc::Sender<usize>,
        beat: &Beat,
    ) -> Result<LoadReport, StepError> {
        let mut watch = SecondSampler::new(self.mounted.watched(), server, (self.replicas, lag), asked, ask);
        let context = self.context;
        let measure_s = f64::from(context.planned.arm.measure_s);
        let mut on_sample = |sample: &Sample| {
            let tick = watch.ticks();
            let second = watch.second(sample);
            self.turn(sample, beat);
            self.report_second(&second, sample);
            // Nothing that a source does without its replica is a measurement of both.
            let is_over = context.planned.arm.topology.promote && sample.t_s > measure_s + 0.5;
            if is_over || lag.has_broken_replica() {
                self.kill(server, asked, lag);
            }
            // What follows the last second is the end of transactions that began before it.
            if !sample.warmup && sample.t_s < measure_s + 0.05 {
                self.seconds.push((tick, second));
            }
        };
        let report = context.run_load(&server.target(), &mut on_sample)?;
        self.foreign_cpus = watch.foreign_cpus();
        Ok(report)
    }

    /// Ends the server of the load under its clients. Nobody else may ask it any more.
    fn kill(&mut self, server: &Server, asked: &ServerPoll, lag: &LagWatch) {
        if self.killed.is_some() {
            return;
        }
        asked.end();
        lag.end();
        self.killed = Some(Instant::now());
        if let Err(error) = server.kill_now() {
            self.broken.get_or_insert(error.into());
        }
    }

    /// Promotes the first replica where the server of the load was killed for it.
    fn promote(&self, loaded: bool) -> Result<Option<Promotion>, StepError> {
        let (Some(killed), Some(replica)) = (self.killed.filter(|_| loaded), self.replicas.first()) else {
            return Ok(None);
        };
        self.context.phase(Phase::Promoting);
        promotion::promote(replica, killed, &self.context.ledger()?, self.context.cancel).map(Some)
    }

    /// What begins with the second that follows this one.
    fn turn(&mut self, sample: &Sample, beat: &Beat) {
        let settle_s = f64::from(self.context.planned.arm.warmup.settle_s);
        // The end of a second is given as a sum of floating point numbers.
        if !self.limited && sample.t_s > -settle_s - 0.5 {
            self.limited = true;
            self.broken = self.mounted.limit(self.context).err();
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
        self.measured = Some(MeasurementStart::of(self.mounted));
        self.mounted.all_volumes().for_each(|volume| volume.live().reset_pacing());
        self.context.phase(Phase::Measuring);
    }

    fn report_second(&self, second: &Second, sample: &Sample) {
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

    /// A report that is evidence about the arm.
    fn checked(&mut self, report: LoadReport, full: Option<StepError>) -> Result<LoadReport, StepError> {
        self.context.proceed()?;
        if let Some(broken) = self.broken.take() {
            return Err(broken);
        }
        if let Some(full) = full {
            return Err(full);
        }
        match report.ended() {
            Ended::Failed { code: CONNECTION_LOST, .. } if self.killed.is_some() => Ok(report),
            Ended::Failed { code, message, statement } => {
                let (message, statement) = (message.clone(), statement.clone());
                Err(StepError::LoadFailed { code: *code, message, statement })
            }
            Ended::Time | Ended::Events | Ended::Cancelled => Ok(report),
        }
    }

    fn finished(
        self,
        report: LoadReport,
        batch: Option<BatchUse>,
        answers: &Answers,
        volumes: Vec<VolumeEnd>,
        mut notes: Vec<String>,
    ) -> TrialMeasurement {
        let rates = answers.rates();
        let server = |(tick, second): (usize, Second)| Second { server: rates.get(&tick).copied(), ..second };
        let foreign_cpus = self.foreign_cpus;
        let mut seconds: Vec<Second> = self.seconds.into_iter().map(server).collect();
        add_rest_of_load(&mut seconds, report.client().cpu_s);
        let of_replicas = self.replicas.iter().flat_map(Server::notes);
        notes.extend(of_replicas.map(|note| format!("replica: {note}")));
        if let Some(why) = &answers.lost {
            notes.push(format!("the server was not asked for its status to the end: {why}"));
        }
        TrialMeasurement {
            report,
            seconds,
            batch,
            promotion: None,
            backup: None,
            volumes,
            foreign_cpus,
            notes,
        }
    }
}

/// The load's threads end with its last second, before anyone can look at them: what they took in it is
/// what is missing from their own count.
fn add_rest_of_load(seconds: &mut [Second], cpu_s: f64) {
    let Some((last, others)) = seconds.split_last_mut() else { return };
    let seen: f64 = others.iter().map(|second| second.host.load_cpus).sum();
    last.host.load_cpus = last.host.load_cpus.max(cpu_s - seen).max(0.0);
}

fn open_sampler(target: &Target, binary: &Binary) -> Result<StatusSampler, StepError> {
    let session = Session::open(target, &target.endpoints[0])?;
    Ok(StatusSampler::open(session, binary)?)
}
