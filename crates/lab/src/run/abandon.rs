//! Giving a volume up when the user ends the run.
//!
//! Who waits for a volume's I/O, be it a server that shuts down or a file system that is unmounted, waits
//! for as long as that takes. Nobody needs it any more then, so after a moment it fails.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ebbtide_device::engine::LiveVolume;
use ebbtide_load::Cancel;

/// How long everything may take to end in order: the kernel complains of I/O that fails.
const IN_ORDER: Duration = Duration::from_millis(700);
/// How often it is looked whether the run was ended.
const LOOK: Duration = Duration::from_millis(50);

/// Watches over a volume until this is dropped, and ends it a moment after the run was ended.
#[derive(Debug)]
pub(super) struct Watchman {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watchman {
    pub(super) fn start(live: &Arc<LiveVolume>, cancel: &Cancel) -> io::Result<Self> {
        let over = Arc::new(AtomicBool::new(false));
        // A volume is detached only when nobody holds it.
        let live = Arc::downgrade(live);
        let watch = {
            let (over, cancel) = (Arc::clone(&over), cancel.clone());
            move || {
                let mut ended: Option<Instant> = None;
                while !over.load(Ordering::Acquire) {
                    if cancel.is_cancelled() && ended.get_or_insert_with(Instant::now).elapsed() > IN_ORDER {
                        if let Some(Err(error)) = live.upgrade().map(|live| live.stop()) {
                            tracing::warn!(%error, "a volume that is given up");
                        }
                        return;
                    }
                    std::thread::park_timeout(LOOK);
                }
            }
        };
        let thread = std::thread::Builder::new().name("watchman".into()).spawn(watch)?;
        Ok(Self { over, thread: Some(thread) })
    }
}

impl Drop for Watchman {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}
