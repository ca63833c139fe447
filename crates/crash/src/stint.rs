//! A stint: an arm's server under load, its throughput, and then cut after cut.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use ebbtide_device::engine::Keep;
use ebbtide_lab::experiment::{CrashPlan, End, Experiment, Moment};
use ebbtide_lab::run::error::StepError;
use ebbtide_lab::run::unix_ns;
use ebbtide_load::invariant::Expected;
use ebbtide_load::{Cancel, Session};
use ebbtide_mysql::Server;
use rand_core::SeedableRng as _;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::binlog::has_binlog;
use super::checker::Checker;
use super::cutter::{self, Job, Known};
use super::error::StintError;
use super::host;
use super::kept_images::ImageRetention;
use super::load::{Load, sum};
use super::moments::Moments;
use super::parts;
use super::record::{Cut, Failure, Stint, Throughput, Took, VerdictKind};
use super::replica::Source;
use super::stage::{Props, Stage};
use super::stint_workload::StintWorkload;
use super::summary;

/// How often it is looked whether the user has ended the run.
const LOOK: Duration = Duration::from_millis(50);
/// Cuts that wait for a checker at most: their images take room, and grow old.
const WAITING: usize = 1;

/// Everything that a stint needs.
pub(super) struct StintContext<'a> {
    pub(super) props: Props<'a>,
    pub(super) experiment: &'a Experiment,
    /// The snapshot of its data.
    pub(super) snapshot: &'a str,
    pub(super) work: StintWorkload,
    pub(super) repeat: u32,
    /// The numbers of its cuts.
    pub(super) numbers: &'a [u32],
    /// Checkers side by side.
    pub(super) checkers: usize,
    pub(super) cancel: &'a Cancel,
    /// Where images of bad cuts go.
    pub(super) retention: &'a ImageRetention<'a>,
    pub(super) doing: &'a (dyn Fn(&str) + Sync),
    /// Is given every cut once it is judged; an error of it ends the stint.
    pub(super) judged: &'a (dyn Fn(Cut) -> Result<(), StintError> + Sync),
}

impl StintContext<'_> {
    fn plan(&self) -> &CrashPlan {
        self.props.planned.arm.crash.as_ref().expect("every arm of a crash experiment has its plan")
    }

    /// Runs the stint; none where the user ended it.
    pub(super) fn run(&self) -> Option<Stint> {
        let began = Instant::now();
        let started_ns = unix_ns();
        let mut stint = Stint {
            arm: self.props.planned.arm.name.clone(),
            repeat: self.repeat,
            started_ns,
            took_s: 0.0,
            cutting_s: 0.0,
            verified: 0,
            throughput: None,
            failed: None,
            notes: Vec::new(),
        };
        let ended = self.go(&mut stint);
        if self.cancel.is_cancelled() {
            return None;
        }
        if let Err(error) = ended {
            stint.failed = Some(Failure { why: error.chain(), log: error.log().to_vec() });
        }
        stint.notes.extend(self.props.lab.take_trouble());
        stint.took_s = began.elapsed().as_secs_f64();
        Some(stint)
    }

    fn go(&self, stint: &mut Stint) -> Result<(), StintError> {
        (self.doing)("attaching volumes");
        let stage = Stage::set(self.props, self.snapshot, "stage", self.doing)?;
        (self.doing)("starting the server");
        let server = stage.start(self.props, "trial", self.doing)?;
        stint.notes.extend(server.notes().iter().cloned());
        let source = self.source(&stage, &server)?;
        stage.limit(self.props)?;
        (self.doing)("settling");
        let settling = self.load(&server, source.as_ref())?;
        self.wait(&server, &settling, Duration::from_secs(self.props.planned.arm.warmup.settle_s.into()))?;
        drop(settling);
        (self.doing)("measuring its throughput");
        let others = host::threads();
        let load = self.load(&server, source.as_ref())?;
        let looks = load.looks();
        let servers = [&server].into_iter().chain(source.as_ref().map(|source| &source.server)).collect();
        let watch = host::Watch::begin(&stage, servers, others);
        let measured = self.measure(&stage, &server, &load)?;
        let seen = watch.end(self.props.planned);
        stint.throughput = Some(Throughput { disqualified: seen.disqualified, ..measured });
        stint
            .notes
            .extend(seen.notes.iter().map(|note| format!("while its throughput was measured, {note}")));
        if load.looks().zip(looks).is_some_and(|(now, before)| now.kept_up_since(before)) {
            let note = "the replica kept up with its source while it was measured: it carries its throughput at least";
            stint.notes.push(note.to_owned());
        }
        stage.plant(self.plan().fault)?;
        (self.doing)("cutting");
        let cutting = Instant::now();
        let done = match self.plan().end {
            End::PowerCut => {
                let cut = self.cut_power(&stage, &server, &load);
                let left = load.running.report().ended;
                stint.notes.extend(
                    left.iter()
                        .map(|end| format!("client {} of the load ended early: {}", end.client, end.error)),
                );
                cut
            }
            End::Kill => self.kill_servers(&stage, server, load),
        };
        stint.cutting_s = cutting.elapsed().as_secs_f64();
        done
    }

    /// The source of a replica; none for a primary.
    fn source(&self, stage: &Stage<'_>, server: &Server) -> Result<Option<Source<'_>>, StintError> {
        if !parts::is_replica(Some(self.plan())) {
            return Ok(None);
        }
        (self.doing)("starting its source");
        let source = Source::start(self.props, self.snapshot, (stage, server), self.plan(), self.doing)?;
        Ok(Some(source))
    }

    /// Starts the load, on the source where there is one: each client goes on after its mark.
    fn load(&self, server: &Server, source: Option<&Source<'_>>) -> Result<Load, StintError> {
        let target = source.map_or(server, |source| &source.server).target();
        let running = self.work.start(target.clone(), &self.props.planned.arm, self.props.seed)?;
        match source {
            None => Ok(Load::alone(running)),
            Some(_) => Ok(Load::followed(running, &target, &server.target())?),
        }
    }

    /// Lets the load go on for a while.
    fn wait(&self, server: &Server, load: &Load, span: Duration) -> Result<(), StintError> {
        let end = Instant::now() + span;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            std::thread::sleep(left.min(LOOK));
            self.proceed(server, load)?;
        }
        Ok(())
    }

    /// Whether there is still something to cut.
    fn proceed(&self, server: &Server, load: &Load) -> Result<(), StintError> {
        if self.cancel.is_cancelled() {
            return Err(StepError::Cancelled.into());
        }
        if let Some(died) = server.died() {
            return Err(died.into());
        }
        if let Some(why) = load.lost() {
            return Err(why.into());
        }
        if load.running.alive() == 0 {
            let report = load.running.report();
            let why = report.ended.first().map(|end| end.error.clone()).unwrap_or_default();
            return Err(StintError::ClientsEnded { why });
        }
        Ok(())
    }

    fn measure(&self, stage: &Stage<'_>, server: &Server, load: &Load) -> Result<Throughput, StintError> {
        let before = stage.io();
        let (began, applied) = (Instant::now(), load.applied());
        self.wait(server, load, Duration::from_secs(self.props.planned.arm.measure_s.into()))?;
        let report = load.running.report();
        let io = stage.io().since(before);
        let by_replica = applied.zip(load.applied()).map(|(before, after)| sum(&after) - sum(&before));
        let seconds = if by_replica.is_some() { began.elapsed().as_secs_f64() } else { report.elapsed_s };
        let latency = |us: f64| by_replica.is_none().then_some(us);
        Ok(Throughput {
            seconds,
            tps: by_replica.map_or_else(|| report.tps(), |applied| applied as f64 / seconds),
            p50_us: latency(report.latency.p50_us),
            p95_us: latency(report.latency.p95_us),
            p99_us: latency(report.latency.p99_us),
            write_iops: io.writes as f64 / seconds,
            write_bytes_s: io.written_bytes as f64 / seconds,
            disqualified: None,
        })
    }

    fn new_cut(&self, number: u32, moment: Moment, load: &Load) -> Cut {
        Cut {
            arm: self.props.planned.arm.name.clone(),
            repeat: self.repeat,
            number,
            seed: cutter::seed_of(self.experiment.seed, &self.props.planned.arm.name, number),
            moment,
            met: false,
            at_s: load.running.journal().start().elapsed().as_secs_f64(),
            paused_us: 0.0,
            in_flight: Vec::new(),
            writes_in_flight: 0,
            cached_units_lost: 0,
            torn_before: Vec::new(),
            torn_writes: Vec::new(),
            verdicts: Vec::new(),
            loss: None,
            recovery: None,
            resumed: None,
            took: Took::default(),
            kept: false,
        }
    }

    fn moment(&self, number: u32) -> Moment {
        let moments = &self.plan().moments;
        moments[usize::try_from(number).expect("a number of a cut fits") % moments.len()]
    }

    fn checker(&self, number: usize) -> Checker<'_> {
        Checker {
            props: self.props,
            work: &self.work,
            has_binlog: has_binlog(&self.props.planned.arm, &self.props.planned.options),
            retention: self.retention,
            number,
        }
    }

    /// Cuts the power again and again. The load goes on, and checkers judge the images meanwhile.
    fn cut_power(&self, stage: &Stage<'_>, server: &Server, load: &Load) -> Result<(), StintError> {
        let (give, take) = mpsc::sync_channel::<Job>(WAITING);
        let take = Mutex::new(take);
        let enough = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let checkers: Vec<_> = (0..self.checkers)
                .map(|number| {
                    let (take, enough) = (&take, &enough);
                    scope.spawn(move || self.check(number, take, enough))
                })
                .collect();
            let mut cut = self.take_cuts(stage, server, load, &give, &enough);
            drop(give);
            for checker in checkers {
                let checked = checker.join().expect("a checker does not panic");
                cut = cut.and(checked);
            }
            cut
        })
    }

    /// Judges cuts until there are no more.
    fn check(
        &self,
        number: usize,
        take: &Mutex<mpsc::Receiver<Job>>,
        enough: &AtomicBool,
    ) -> Result<(), StintError> {
        let checker = self.checker(number);
        let mut ended = Ok(());
        loop {
            let next = take.lock().unwrap_or_else(PoisonError::into_inner).recv();
            // Whoever cuts waits for someone to take the image, so that it is taken whatever has happened.
            let Ok(job) = next else { return ended };
            if self.cancel.is_cancelled() || enough.load(Ordering::Relaxed) {
                checker.throw_away(&job);
                continue;
            }
            let Some(cut) = checker.judge(job) else { continue };
            if self.plan().canary.is_some_and(|canary| summary::catches(canary, &cut)) {
                enough.store(true, Ordering::Relaxed);
            }
            let kept = (self.judged)(cut);
            if kept.is_err() {
                enough.store(true, Ordering::Relaxed);
                ended = ended.and(kept);
            }
        }
    }

    fn take_cuts(
        &self,
        stage: &Stage<'_>,
        server: &Server,
        load: &Load,
        give: &mpsc::SyncSender<Job>,
        enough: &AtomicBool,
    ) -> Result<(), StintError> {
        let target = server.target();
        let session = Session::open(&target, &target.endpoints[0])?;
        let has_binlog = has_binlog(&self.props.planned.arm, &self.props.planned.options);
        let mut moments = Moments::new(stage, session, &self.plan().moments, has_binlog)?;
        for &number in self.numbers {
            self.proceed(server, load)?;
            if enough.load(Ordering::Relaxed) {
                break;
            }
            let mut cut = self.new_cut(number, self.moment(number), load);
            let maps = stage.map(self.props.binary)?;
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(cut.seed);
            let imaging = || {
                let (began, applied) = (Instant::now(), load.applied());
                let taken = cutter::take(self.props.lab, stage, cut.seed, Keep::Torn);
                (taken, applied, began.elapsed())
            };
            let ((taken, applied, took), met) = moments.at(cut.moment, &maps, &mut rng, imaging)?;
            let taken = taken?;
            cut.met = met;
            cut.took.image = took.as_secs_f64();
            cutter::describe(&mut cut, &maps, &taken);
            let journal = load.running.journal().clone();
            let expected = match journal.at(taken.at) {
                Ok(expected) => expected,
                Err(error) => {
                    cutter::delete(self.props.lab, &taken.images);
                    return Err(error.into());
                }
            };
            let expected = if applied.is_some() { unacknowledged(expected) } else { expected };
            let known = Known { expected, applied, journal: Some(journal), at: taken.at };
            let job = Job { cut, images: taken.images, known };
            if let Err(mpsc::SendError(job)) = give.send(job) {
                cutter::delete(self.props.lab, &job.images);
                break;
            }
        }
        Ok(())
    }

    /// Kills the server again and again; each time it recovers on its own volumes, is judged, and goes on.
    fn kill_servers(&self, stage: &Stage<'_>, mut server: Server, mut load: Load) -> Result<(), StintError> {
        let checker = self.checker(0);
        for &number in self.numbers {
            self.proceed(&server, &load)?;
            let mut cut = self.new_cut(number, self.moment(number), &load);
            let maps = stage.map(self.props.binary)?;
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(cut.seed);
            let target = server.target();
            let session = Session::open(&target, &target.endpoints[0])?;
            let mut moments = Moments::new(stage, session, &[], false)?;
            let (killed, met) = moments.at(cut.moment, &maps, &mut rng, || server.kill())?;
            killed?;
            cut.met = met;
            let journal = load.running.journal().clone();
            drop(load.running.stop());
            let at = Instant::now();
            let expected = journal.at(at)?;
            let known = Known { expected, applied: None, journal: Some(journal), at };
            let began = Instant::now();
            stage.sync()?;
            let images = cutter::copy(self.props.lab, stage, cut.seed)?;
            if let Err(error) = checker.examine(stage, "trial", &mut cut, &known) {
                cut.verdicts.push(super::checker::unverified(&error));
            }
            super::checker::doubt(&mut cut, stage.host_failures());
            if self.cancel.is_cancelled() {
                cutter::delete(self.props.lab, &images);
                return Err(StepError::Cancelled.into());
            }
            cut.kept = self.retention.keep_or_delete(&images, &cut, &known.expected);
            cut.took.total = began.elapsed().as_secs_f64();
            let damaged =
                [VerdictKind::Corrupt, VerdictKind::Partial].iter().any(|kind| cut.kinds().contains(kind));
            (self.judged)(cut)?;
            if damaged {
                // What comes after damage would be judged twice.
                return Err(StintError::Damaged);
            }
            stage.limit(self.props)?;
            server = stage.start(self.props, "trial", self.doing)?;
            load = self.load(&server, None)?;
        }
        Ok(())
    }
}

/// What clients know of a replica: it has acknowledged nothing to them.
fn unacknowledged(expected: Vec<Expected>) -> Vec<Expected> {
    let unacknowledged = |one| Expected { acknowledged: 0, acknowledged_at: None, ..one };
    expected.into_iter().map(unacknowledged).collect()
}
