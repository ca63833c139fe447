//! The thread that samples the volumes of a server for the history, once a second.

use std::error::Error;
use std::io;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ebbtide_cloud::front::Clock;
use ebbtide_cloud::monitoring::{Monitoring, TickError};
use ebbtide_control::{ControlError, LiveControl, VolumeCounters};
use ebbtide_device::host::{Home, HomeError};
use ebbtide_history::{History, HistoryError, Options, Reading};

use crate::error::chain;

/// Between samples, in milliseconds. Each is taken at the beginning of a second, so that one begins each minute.
const EVERY_MS: u64 = 1_000;

/// A sample that is not taken or not stored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SampleError {
    #[error(transparent)]
    Control(#[from] ControlError),
    #[error(transparent)]
    Home(#[from] HomeError),
    #[error(transparent)]
    History(#[from] HistoryError),
    #[error(transparent)]
    Tick(#[from] TickError),
}

impl SampleError {
    /// Whether the control plane stops, after which no sample is taken.
    fn is_stopping(&self) -> bool {
        let error: &(dyn Error + 'static) = match self {
            Self::Control(error) => error,
            Self::Home(error) => error,
            Self::History(error) => error,
            Self::Tick(error) => error,
        };
        std::iter::successors(Some(error), |&cause| cause.source())
            .any(|cause| matches!(cause.downcast_ref(), Some(ControlError::Stopping)))
    }
}

/// What is sampled. Once the control plane stops, an attempt fails with [`ControlError::Stopping`].
pub(crate) trait Sampled: Send {
    /// Takes a sample at a time, in milliseconds since 1970.
    fn tick(&mut self, now_ms: u64) -> Result<(), SampleError>;

    /// Takes the last sample, and stores what the present minute has.
    fn close(&mut self, now_ms: u64) -> Result<(), SampleError>;
}

/// The volumes of the AWS endpoint and all others, for CloudWatch.
impl Sampled for Arc<Monitoring> {
    fn tick(&mut self, now_ms: u64) -> Result<(), SampleError> {
        Ok(Monitoring::tick(self, now_ms)?)
    }

    fn close(&mut self, now_ms: u64) -> Result<(), SampleError> {
        Ok(Monitoring::close(self, now_ms)?)
    }
}

/// All volumes of a server without the AWS endpoint. The history is opened with the first volume that is attached, so that a
/// server that only creates and deletes has no file of it.
#[derive(Debug)]
pub(crate) struct Volumes {
    control: Arc<LiveControl>,
    home: Home,
    began_ms: u64,
    history: Option<History>,
}

impl Volumes {
    /// Those of a control plane, with their history in a home from a time on, in milliseconds since 1970.
    pub(crate) fn new(control: Arc<LiveControl>, home: Home, began_ms: u64) -> Self {
        Self { control, home, began_ms, history: None }
    }

    fn record(&mut self, now_ms: u64) -> Result<(), SampleError> {
        let counters = self.control.sample()?;
        if self.history.is_none() && !counters.is_empty() {
            self.home.make_history()?;
            self.history = Some(History::open(
                self.home.root(),
                Options { began_ms: self.began_ms, ..Options::default() },
            )?);
        }
        let Some(history) = &self.history else { return Ok(()) };
        let reading = |VolumeCounters { name, since, stats, .. }| Reading::of_volume(name, since, stats);
        history.record(now_ms, counters.into_iter().map(reading).collect())?;
        Ok(history.keep_up(now_ms)?)
    }
}

impl Sampled for Volumes {
    fn tick(&mut self, now_ms: u64) -> Result<(), SampleError> {
        self.record(now_ms)
    }

    fn close(&mut self, now_ms: u64) -> Result<(), SampleError> {
        match self.record(now_ms) {
            // The latest tick was the last sample then.
            Err(error) if error.is_stopping() => {}
            other => other?,
        }
        Ok(self.history.as_ref().map_or(Ok(()), History::publish)?)
    }
}

/// A running sampler.
#[derive(Debug)]
pub(crate) struct Sampling {
    thread: Option<JoinHandle<()>>,
    stop: Option<mpsc::Sender<()>>,
}

impl Sampling {
    /// Starts it.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub(crate) fn start(mut sampled: impl Sampled + 'static, clock: Arc<dyn Clock>) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("history".to_owned())
            .spawn(move || sample(&mut sampled, &*clock, &stopped))?;
        Ok(Self { thread: Some(thread), stop: Some(stop) })
    }

    /// Takes the last sample, and ends.
    pub(crate) fn stop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A panic of its own has been reported already.
            let _ = thread.join();
        }
    }
}

impl Drop for Sampling {
    fn drop(&mut self) {
        self.stop();
    }
}

fn sample(sampled: &mut dyn Sampled, clock: &dyn Clock, stopped: &mpsc::Receiver<()>) {
    let mut is_failing = false;
    loop {
        match sampled.tick(clock.now_ms()) {
            Ok(()) => is_failing = false,
            Err(error) if error.is_stopping() => break,
            // A full disk fails every second: one line is enough.
            Err(_) if is_failing => {}
            Err(error) => {
                is_failing = true;
                tracing::error!("metrics are lost: {}", chain(&error));
            }
        }
        let wait = EVERY_MS - clock.now_ms() % EVERY_MS;
        match stopped.recv_timeout(Duration::from_millis(wait)) {
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
    }
    if let Err(error) = sampled.close(clock.now_ms()) {
        tracing::warn!("the metrics of the last minute are lost: {}", chain(&error));
    }
}
