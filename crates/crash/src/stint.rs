//! A stint: an arm's server under load, its throughput, and then cut after cut.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use ebbtide_device::engine::Keep;
use ebbtide_lab::experiment::{CrashPlan, End, Experiment, Moment};
use ebbtide_lab::run::error::StepError;
use ebbtide_lab::run::{proc, unix_ns};
use ebbtide_load::invariant::Expected;
use ebbtide_load::{Cancel, Session};
use ebbtide_mysql::Server;
use rand_core::SeedableRng as _;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::binlog::has_binlog;
use super::checker::Checker;
use super::cutter::{self, CutState, PendingCut};
use super::cutting_watch::CuttingWatch;
use super::error::StintError;
use super::kept_images::ImageRetention;
use super::machine_watch;
use super::moments::Moments;
use super::mounted_arm::{ArmContext, MountedArm};
use super::record::{Cut, Failure, Stint, Throughput, Took, VerdictKind};
use super::recovery_gate::RecoveryGate;
use super::replica::Source;
use super::replication_part;
use super::stint_load::{StintLoad, sum};
use super::stint_workload::StintWorkload;
use super::summary;

/// How often it is looked whether the user has ended the run.
const LOOK: Duration = Duration::from_millis(50);
/// Cuts that wait for a checker at most: their images take room, and grow old.
const MOST_WAITING: usize = 4;

/// Cuts that wait for so many checkers at most. A moment comes at once, or after seconds: with one for each, checkers seldom
/// wait for it.
pub(super) const fn waiting_for(checkers: usize) -> usize {
    if checkers < MOST_WAITING { checkers } else { MOST_WAITING }
}

/// The snapshots that the servers of a stint start from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Data<'a> {
    /// Of the server whose power is cut.
    pub(super) own: &'a str,
    /// Of its source; the same where one program serves both.
    pub(super) source: &'a str,
}

/// Everything that a stint needs.
pub(super) struct StintContext<'a> {
    pub(super) context: ArmContext<'a>,
    pub(super) experiment: &'a Experiment,
    pub(super) data: Data<'a>,
    pub(super) work: StintWorkload,
    pub(super) repeat: u32,
    /// The numbers of its cuts.
    pub(super) numbers: &'a [u32],
    /// Checkers side by side.
    pub(super) checkers: usize,
    pub(super) recoveries: &'a RecoveryGate,
    pub(super) cancel: &'a Cancel,
    /// Where images of bad cuts go.
    pub(super) retention: &'a ImageRetention<'a>,
    pub(super) doing: &'a (dyn Fn(&str) + Sync),
    /// Is given every cut once it is judged; an error of it ends the stint.
    pub(super) judged: &'a (dyn Fn(Cut) -> Result<(), StintError> + Sync),
}

impl StintContext<'_> {
    fn plan(&self) -> &CrashPlan {
        self.context.planned.arm.crash.as_ref().expect("every arm of a crash experiment has its plan")
    }

    /// Runs the stint; none where the user ended it.
    pub(super) fn run(&self) -> Option<Stint> {
        let began = Instant::now();
        let started_ns = unix_ns();
        let mut stint = Stint {
            arm: self.context.planned.arm.name.clone(),
            repeat: self.repeat,
            started_ns,
            took_s: 0.0,
            cutting_s: 0.0,
            verified: 0,
            cutting_cpu: None,
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
        stint.notes.extend(self.context.lab.take_trouble());
        stint.took_s = began.elapsed().as_secs_f64();
        Some(stint)
    }

    fn go(&self, stint: &mut Stint) -> Result<(), StintError> {
        (self.doing)("attaching volumes");
        let mounted = MountedArm::mount(self.context, self.data.own, "arm", self.doing)?;
        (self.doing)("starting the server");
        let server = mounted.start(self.context, "trial", self.doing)?;
        stint.notes.extend(server.notes().iter().cloned());
        let source = self.source(&mounted, &server)?;
        mounted.limit(self.context)?;
        (self.doing)("settling");
        let settling = self.load(&server, source.as_ref())?;
        self.wait(&server, &settling, Duration::from_secs(self.context.planned.arm.warmup.settle_s.into()))?;
        drop(settling);
        (self.doing)("measuring its throughput");
        let others = machine_watch::threads();
        let load = self.load(&server, source.as_ref())?;
        let counts = load.throttle_counts();
        let watch =
            machine_watch::MachineWatch::begin(&mounted, servers(&server, source.as_ref()), others.clone());
        let measured = self.measure(&mounted, &server, &load)?;
        let verdict = watch.end(self.context.planned);
        stint.throughput = Some(Throughput { disqualified: verdict.disqualified, ..measured });
        stint
            .notes
            .extend(verdict.notes.iter().map(|note| format!("while its throughput was measured, {note}")));
        if load.throttle_counts().zip(counts).is_some_and(|(now, before)| now.kept_up_since(before)) {
            let note = "the replica kept up with its source while it was measured: it carries its throughput at least";
            stint.notes.push(note.to_owned());
        }
        mounted.plant(self.plan().fault)?;
        (self.doing)("cutting");
        let cutting = Instant::now();
        let done = match self.plan().end {
            End::PowerCut => {
                let watch = CuttingWatch::begin(servers(&server, source.as_ref()), &others);
                let cut = self.cut_power(&mounted, &server, &load);
                stint.cutting_cpu = Some(watch.end());
                let left = load.running.report().ended;
                stint.notes.extend(
                    left.iter()
                        .map(|end| format!("client {} of the load ended early: {}", end.client, end.error)),
                );
                cut
            }
            End::Kill => self.kill_servers(&mounted, server, load),
        };
        stint.cutting_s = cutting.elapsed().as_secs_f64();
        done
    }

    /// The source of a replica; none for a primary.
    fn source(&self, mounted: &MountedArm<'_>, server: &Server) -> Result<Option<Source<'_>>, StintError> {
        if !replication_part::is_replica(Some(self.plan())) {
            return Ok(None);
        }
        (self.doing)("starting its source");
        let source = Source::start(
            self.context.of_source(),
            self.data.source,
            (mounted, server),
            self.plan(),
            self.doing,
        )?;
        Ok(Some(source))
    }

    /// Starts the load, on the source where there is one: each client goes on after its mark.
    fn load(&self, server: &Server, source: Option<&Source<'_>>) -> Result<StintLoad, StintError> {
        let target = source.map_or(server, |source| &source.server).target();
        let running = self.work.start(target.clone(), &self.context.planned.arm, self.context.seed)?;
        match source {
            None => Ok(StintLoad::alone(running)),
            Some(_) => Ok(StintLoad::followed(running, &target, &server.target())?),
        }
    }

    /// Lets the load go on for a while.
    fn wait(&self, server: &Server, load: &StintLoad, span: Duration) -> Result<(), StintError> {
        let end = Instant::now() + span;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            std::thread::sleep(left.min(LOOK));
            self.proceed(server, load)?;
        }
        Ok(())
    }

    /// Whether there is still something to cut.
    fn proceed(&self, server: &Server, load: &StintLoad) -> Result<(), StintError> {
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

    fn measure(
        &self,
        mounted: &MountedArm<'_>,
        server: &Server,
        load: &StintLoad,
    ) -> Result<Throughput, StintError> {
        let before = mounted.io();
        let (began, applied) = (Instant::now(), load.applied());
        self.wait(server, load, Duration::from_secs(self.context.planned.arm.measure_s.into()))?;
        let report = load.running.report();
        let io = mounted.io().since(&before);
        let by_replica = applied.zip(load.applied()).map(|(before, after)| sum(&after) - sum(&before));
        let seconds = if by_replica.is_some() { began.elapsed().as_secs_f64() } else { report.elapsed_s };
        let latency = |us: f64| by_replica.is_none().then_some(us);
        Ok(Throughput {
            seconds,
            tps: by_replica.map_or_else(|| report.tps(), |applied| applied as f64 / seconds),
            p50_us: latency(report.latency.p50_us),
            p95_us: latency(report.latency.p95_us),
            p99_us: latency(report.latency.p99_us),
            write_iops: io.write.ops as f64 / seconds,
            write_bytes_s: io.write.bytes as f64 / seconds,
            disqualified: None,
        })
    }

    fn new_cut(&self, number: u32, moment: Moment, load: &StintLoad) -> Cut {
        Cut {
            arm: self.context.planned.arm.name.clone(),
            repeat: self.repeat,
            number,
            seed: cutter::seed_of(self.experiment.seed, &self.context.planned.arm.name, number),
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

    fn has_binlog(&self) -> bool {
        let ArmContext { planned, binary, .. } = self.context;
        has_binlog(&planned.arm, &planned.options, binary.is_mariadb())
    }

    fn checker(&self, number: usize) -> Checker<'_> {
        Checker {
            context: self.context,
            work: &self.work,
            has_binlog: self.has_binlog(),
            retention: self.retention,
            recoveries: self.recoveries,
            number,
            log: None,
        }
    }

    /// Cuts the power again and again. The load goes on, and checkers judge the images meanwhile.
    fn cut_power(
        &self,
        mounted: &MountedArm<'_>,
        server: &Server,
        load: &StintLoad,
    ) -> Result<(), StintError> {
        let (give, take) = mpsc::sync_channel::<PendingCut>(self.waiting());
        let take = Mutex::new(take);
        let enough = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let checkers: Vec<_> = (0..self.checkers)
                .map(|number| {
                    let (take, enough) = (&take, &enough);
                    scope.spawn(move || self.check(number, take, enough))
                })
                .collect();
            let mut cut = self.take_cuts(mounted, server, load, &give, &enough);
            drop(give);
            for checker in checkers {
                let checked = checker.join().expect("a checker does not panic");
                cut = cut.and(checked);
            }
            cut
        })
    }

    /// Cuts that wait for a checker at most. What the source of a replica does meanwhile, the replica has to catch up.
    fn waiting(&self) -> usize {
        if replication_part::is_replica(Some(self.plan())) { 1 } else { waiting_for(self.checkers) }
    }

    /// Judges cuts until there are no more.
    fn check(
        &self,
        number: usize,
        take: &Mutex<mpsc::Receiver<PendingCut>>,
        enough: &AtomicBool,
    ) -> Result<(), StintError> {
        let checker = self.checker(number);
        let mut ended = Ok(());
        loop {
            let waiting = Instant::now();
            let next = take.lock().unwrap_or_else(PoisonError::into_inner).recv();
            // Whoever cuts waits for someone to take the image, so that it is taken whatever has happened.
            let Ok(mut pending) = next else { return ended };
            pending.cut.took.awaited = Some(waiting.elapsed().as_secs_f64());
            if self.cancel.is_cancelled() || enough.load(Ordering::Relaxed) {
                checker.throw_away(&pending);
                continue;
            }
            let Some(cut) = checker.judge(pending) else { continue };
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
        mounted: &MountedArm<'_>,
        server: &Server,
        load: &StintLoad,
        give: &mpsc::SyncSender<PendingCut>,
        enough: &AtomicBool,
    ) -> Result<(), StintError> {
        let target = server.target();
        let session = Session::open(&target, &target.endpoints[0])?;
        let has_binlog = self.has_binlog();
        let arm = &self.context.planned.arm;
        let mut moments = Moments::new(mounted, arm, session, &self.plan().moments, has_binlog)?;
        for &number in self.numbers {
            self.proceed(server, load)?;
            if enough.load(Ordering::Relaxed) {
                break;
            }
            let mut cut = self.new_cut(number, self.moment(number), load);
            let maps = mounted.map(self.context.binary)?;
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(cut.seed);
            let imaging = || {
                let (began, applied) = (Instant::now(), load.applied());
                let taken = cutter::take(self.context.lab, mounted, cut.seed, Keep::Torn);
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
                    cutter::delete(self.context.lab, &taken.images);
                    return Err(error.into());
                }
            };
            let expected = if applied.is_some() { unacknowledged(expected) } else { expected };
            let state = CutState { expected, applied, journal: Some(journal), at: taken.at };
            let pending = PendingCut { cut, images: taken.images, state };
            if let Err(mpsc::SendError(pending)) = give.send(pending) {
                cutter::delete(self.context.lab, &pending.images);
                break;
            }
        }
        Ok(())
    }

    /// Kills the server again and again; each time it recovers on its own volumes, is judged, and goes on.
    fn kill_servers(
        &self,
        mounted: &MountedArm<'_>,
        mut server: Server,
        mut load: StintLoad,
    ) -> Result<(), StintError> {
        let checker = self.checker(0);
        for &number in self.numbers {
            self.proceed(&server, &load)?;
            let mut cut = self.new_cut(number, self.moment(number), &load);
            let maps = mounted.map(self.context.binary)?;
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(cut.seed);
            let target = server.target();
            let session = Session::open(&target, &target.endpoints[0])?;
            let mut moments = Moments::new(mounted, &self.context.planned.arm, session, &[], false)?;
            let (killed, met) = moments.at(cut.moment, &maps, &mut rng, || server.kill())?;
            killed?;
            cut.met = met;
            let journal = load.running.journal().clone();
            drop(load.running.stop());
            let at = Instant::now();
            let expected = journal.at(at)?;
            let state = CutState { expected, applied: None, journal: Some(journal), at };
            let began = Instant::now();
            mounted.sync()?;
            let images = cutter::copy(self.context.lab, mounted, cut.seed)?;
            let cpu_s = proc::thread_time_s();
            if let Err(error) = checker.examine(mounted, "trial", &mut cut, &state) {
                cut.verdicts.push(super::checker::unverified(&error));
            }
            super::checker::doubt(&mut cut, mounted.host_failures());
            super::checker::note_cpu(&mut cut, cpu_s);
            if self.cancel.is_cancelled() {
                cutter::delete(self.context.lab, &images);
                return Err(StepError::Cancelled.into());
            }
            cut.kept = self.retention.keep_or_delete(&images, &cut, &state.expected);
            cut.took.total = began.elapsed().as_secs_f64();
            let damaged =
                [VerdictKind::Corrupt, VerdictKind::Partial].iter().any(|kind| cut.kinds().contains(kind));
            (self.judged)(cut)?;
            if damaged {
                // What comes after damage would be judged twice.
                return Err(StintError::Damaged);
            }
            mounted.limit(self.context)?;
            server = mounted.start(self.context, "trial", self.doing)?;
            load = self.load(&server, None)?;
        }
        Ok(())
    }
}

/// The servers of a stint: a source is one too.
fn servers<'a>(server: &'a Server, source: Option<&'a Source<'_>>) -> Vec<&'a Server> {
    std::iter::once(server).chain(source.map(|source| &source.server)).collect()
}

/// What clients know of a replica: it has acknowledged nothing to them.
fn unacknowledged(expected: Vec<Expected>) -> Vec<Expected> {
    let unacknowledged = |one| Expected { acknowledged: 0, acknowledged_at: None, ..one };
    expected.into_iter().map(unacknowledged).collect()
}
