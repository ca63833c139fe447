//! A thread that samples the counters of attachments every second and saves burst credits and
//! how far volumes are loaded.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::Shared;

/// How often counters are sampled, for the metrics of the last minute.
const SAMPLE: Duration = Duration::from_secs(1);
/// Credits and loading are saved every so many samples: a kill loses at most five seconds of their course.
const SAMPLES_PER_SAVE: u64 = 5;

/// The running thread; dropping it ends it.
#[derive(Debug)]
pub(super) struct AttachmentSampler {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl AttachmentSampler {
    /// Starts the thread.
    pub(super) fn start(shared: Arc<Shared>) -> std::io::Result<Self> {
        let (stop, stopped) = mpsc::channel::<()>();
        let thread = std::thread::Builder::new().name("sampler".into()).spawn(move || {
            let mut samples = 0_u64;
            while stopped.recv_timeout(SAMPLE) == Err(RecvTimeoutError::Timeout) {
                samples += 1;
                for attachment in shared.attachments() {
                    attachment.sample();
                    if samples.is_multiple_of(SAMPLES_PER_SAVE) {
                        shared.save_state(&attachment);
                    }
                }
            }
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for AttachmentSampler {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the sampler thread had panicked");
        }
    }
}
