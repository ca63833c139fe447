//! One calibration: an ideal volume on a store of its own, loaded through each path.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use ebbtide_volume::{Array, Limits, MIB, RateLimit};

use super::super::block;
use super::super::home::Home;
use super::super::info::AttachmentInfo;
use super::super::parts::{Export, Parts};
use super::super::{HostError, LOOKING, Progress};
use super::load::{Direction, Job, Measured};
use super::{HostFigures, cpus, nbd, ring};
use crate::clock::{Clock as _, MonotonicClock};
use crate::engine::{LiveOptions, LiveVolume, PacingReport};
use crate::nbd::NbdAddress;
use crate::request::{Command, Reply, Request};
use crate::store::{OpenVolume, StoreOptions, VolumeStore};
use crate::sys::{Role, enter_data_path};

/// Name of what a calibration attaches. No volume can have it, since it begins with a dot.
pub(super) const NAME: &str = ".calibration";
/// Name of its volume in its own store.
const VOLUME: &str = "calibration";
/// Size of its volume: it stays in the host's page cache, since the path is measured, not the disk.
const SIZE: u64 = 64 * MIB;
/// Host space that a calibration needs: its volume, what its writes take until the space of those
/// before them is free again, and the store's own files.
const SPACE: u64 = SIZE + SIZE / 4;
/// InnoDB's page.
const PAGE: u32 = 16 << 10;
/// The largest I/O that EBS counts as one.
const LARGE: u32 = 256 << 10;
/// A common volume's limit, at which pacing is measured.
const PACED_IOPS: u64 = 3_000;

/// Figures of the block device, of NBD, and pacing without and with load.
type Outcome = (Option<HostFigures>, HostFigures, PacingReport, PacingReport);

/// A calibration that is under way.
pub(super) struct Bench<'a> {
    home: Home,
    store: VolumeStore,
    data: Arc<OpenVolume>,
    /// How long each load runs.
    span: Duration,
    /// Whether to give up.
    ended: &'a (dyn Fn() -> bool + Sync),
}

/// Removes the calibration's own store.
pub(super) fn remove_scratch(home: &Home) -> Result<(), HostError> {
    match std::fs::remove_dir_all(home.scratch_dir()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(HostError::io("remove the calibration's store")(error))
        }
        _ => Ok(()),
    }
}

/// Checks that the host's disk has room for a calibration. Where it does not report that, it is tried.
fn require_space(home: &Home) -> Result<(), HostError> {
    match rustix::fs::statvfs(home.root()) {
        Ok(disk) if disk.f_bavail.saturating_mul(disk.f_frsize) < SPACE => Err(HostError::NoSpace {
            dir: home.root().to_owned(),
            free: disk.f_bavail.saturating_mul(disk.f_frsize),
            needed: SPACE,
        }),
        _ => Ok(()),
    }
}

impl<'a> Bench<'a> {
    pub(super) fn new(
        home: &Home,
        quick: bool,
        ended: &'a (dyn Fn() -> bool + Sync),
    ) -> Result<Self, HostError> {
        remove_scratch(home)?;
        require_space(home)?;
        let store = VolumeStore::open(&home.scratch_dir(), StoreOptions::default())?;
        store.create_volume(VOLUME, SIZE, serde_json::Value::Null)?;
        let data = store.open_volume(VOLUME)?;
        let piece = vec![0x5a_u8; 1 << 20];
        for offset in (0..SIZE).step_by(1 << 20) {
            data.write_at(&piece, offset).map_err(HostError::io("fill the calibration's volume"))?;
        }
        let span = Duration::from_millis(if quick { 190 } else { 1_250 });
        Ok(Self { home: home.clone(), store, data, span, ended })
    }

    /// Closes the store, once every thread that had the volume is done with it.
    pub(super) fn close(self) {
        drop(self.data);
        self.store.wait_until_closed(VOLUME, LOOKING);
    }

    pub(super) fn run(&self, progress: Progress<'_>) -> Result<Outcome, HostError> {
        let block = match block::require() {
            Ok(()) => Some(self.path(&Export::Block { mount: None }, progress)?),
            Err(_) => None,
        };
        let socket = self.home.run_dir().join(format!("{NAME}.sock"));
        let nbd = self.path(&Export::Nbd(NbdAddress::Unix(socket)), progress)?;
        progress("calibrating: pacing on an idle machine");
        let idle = self.pacing()?;
        progress("calibrating: pacing on a busy machine");
        let loaded = while_busy(|| self.pacing())?;
        Ok((block, nbd, idle, loaded))
    }

    fn live(&self, iops: Option<RateLimit>) -> Result<Arc<LiveVolume>, HostError> {
        let now = MonotonicClock::new().now();
        let array = Array::single(limits(iops), now).expect("the limits of a calibration are constants");
        Ok(LiveVolume::start(LiveOptions::new(NAME, array, self.data.clone(), 1))?)
    }

    /// What one path carries.
    fn path(&self, export: &Export, progress: Progress<'_>) -> Result<HostFigures, HostError> {
        let live = self.live(None)?;
        let mut info = AttachmentInfo::nowhere(NAME, live.now());
        let mut parts = Parts::new(self.home.clone(), NAME);
        let made = parts.make(export, &live, &self.store, &mut info, progress);
        let measured = made.and_then(|()| {
            let load = |job: &Job| match (export, &info.device) {
                (Export::Nbd(NbdAddress::Unix(socket)), _) => nbd::load(socket, job),
                (_, Some(device)) => ring::load(device, job),
                _ => Err(io::Error::other("the calibration has nothing to load")),
            };
            self.figures(&load, progress).map_err(HostError::io("load the calibration's volume"))
        });
        let taken = parts.take_apart(&live, true, &|_| ());
        let figures = measured?;
        taken?;
        Ok(figures)
    }

    fn figures(
        &self,
        load: &dyn Fn(&Job) -> io::Result<Measured>,
        progress: Progress<'_>,
    ) -> io::Result<HostFigures> {
        let run = |way: Direction, bytes: u32, depth: u32| {
            let kib = bytes >> 10;
            self.go_on()?;
            progress(&format!("calibrating: {way:?} of {kib} KiB, {depth} at a time"));
            load(&Job { way, bytes, depth, span: self.span, device_bytes: SIZE })
        };
        let mib_s = |measured: Measured| measured.iops * f64::from(LARGE) / MIB as f64;
        let (read, write) = (run(Direction::Read, PAGE, 1)?, run(Direction::Write, PAGE, 1)?);
        Ok(HostFigures {
            read_iops_depth_1: read.iops,
            write_iops_depth_1: write.iops,
            read_latency_us: read.median_us,
            write_latency_us: write.median_us,
            read_iops_depth_32: run(Direction::Read, PAGE, 32)?.iops,
            write_iops_depth_32: run(Direction::Write, PAGE, 32)?.iops,
            read_mib_s: mib_s(run(Direction::Read, LARGE, 8)?),
            write_mib_s: mib_s(run(Direction::Write, LARGE, 8)?),
        })
    }

    fn go_on(&self) -> io::Result<()> {
        let given_up = || io::Error::new(io::ErrorKind::Interrupted, "it was given up");
        if (self.ended)() { Err(given_up()) } else { Ok(()) }
    }

    /// How late a throttled volume answers, 32 requests deep. The thread that submits is one of the
    /// data path, as those of the exports are.
    fn pacing(&self) -> Result<PacingReport, HostError> {
        let submit = || {
            enter_data_path(Role::Export);
            self.paced()
        };
        let paced = std::thread::scope(|scope| scope.spawn(submit).join());
        paced.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn paced(&self) -> Result<PacingReport, HostError> {
        let live = self.live(Some(RateLimit::flat(PACED_IOPS)))?;
        let (answered, answers) = mpsc::channel();
        let submit = |page: u64| {
            let answered = answered.clone();
            live.submit(Request {
                command: Command::Read,
                offset: page * u64::from(PAGE) % SIZE,
                len: PAGE,
                fua: false,
                data: None,
                // Nobody listens any more once the span is over.
                reply: Reply::callback(move |_| answered.send(()).unwrap_or_default()),
            });
        };
        (0..32).for_each(submit);
        let end = Instant::now() + self.span * 2;
        let mut page = 32;
        while Instant::now() < end && !(self.ended)() && answers.recv_timeout(self.span).is_ok() {
            submit(page);
            page += 1;
        }
        let report = live.pacing();
        live.stop()?;
        self.go_on().map_err(HostError::io("measure the pacing"))?;
        Ok(report)
    }
}

/// An ideal volume, or one with a flat limit.
fn limits(iops: Option<RateLimit>) -> Limits {
    Limits { iops, ..Limits::unlimited(SIZE) }
}

/// Keeps every processor busy meanwhile.
fn while_busy<T>(work: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..cpus() {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let outcome = work();
        done.store(true, Ordering::Relaxed);
        outcome
    })
}
