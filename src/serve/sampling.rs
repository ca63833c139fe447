//! The thread that samples the volumes of the AWS endpoint for CloudWatch, once a second.

use std::io;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ebbtide_cloud::front::Clock;
use ebbtide_cloud::monitoring::{Monitoring, TickError};
use ebbtide_control::ControlError;

/// Between samples, in milliseconds. Each is taken at the beginning of a second, so that one begins each minute.
const EVERY_MS: u64 = 1_000;

/// A running sampler.
#[derive(Debug)]
pub(super) struct Sampling {
    thread: Option<JoinHandle<()>>,
    stop: Option<mpsc::Sender<()>>,
}

impl Sampling {
    /// Starts it.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub(super) fn start(monitoring: Arc<Monitoring>, clock: Arc<dyn Clock>) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("cloudwatch".to_owned())
            .spawn(move || sample(&monitoring, &*clock, &stopped))?;
        Ok(Self { thread: Some(thread), stop: Some(stop) })
    }

    /// Takes the last sample, and ends.
    pub(super) fn stop(&mut self) {
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

fn sample(monitoring: &Monitoring, clock: &dyn Clock, stopped: &mpsc::Receiver<()>) {
    let mut is_failing = false;
    loop {
        match monitoring.tick(clock.now_ms()) {
            Ok(()) => is_failing = false,
            Err(TickError::Control(ControlError::Stopping)) => break,
            // A full disk fails every second: one line is enough.
            Err(_) if is_failing => {}
            Err(error) => {
                is_failing = true;
                tracing::error!("metrics are lost: {:#}", anyhow::Error::new(error));
            }
        }
        let wait = EVERY_MS - clock.now_ms() % EVERY_MS;
        match stopped.recv_timeout(Duration::from_millis(wait)) {
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
    }
    if let Err(error) = monitoring.close(clock.now_ms()) {
        tracing::warn!("the metrics of the last minute are lost: {:#}", anyhow::Error::new(error));
    }
}
