//! The engine of a live volume: it takes requests, charges them to the physics, holds them until the
//! model's completion time, applies them to the block store and answers.
//!
//! In flight means not yet durable; answered means durable. Writes therefore stay in memory until
//! their completion time, so that a power cut can decide about each of them. Reads are taken from
//! the store when they arrive and wait with their data, so that a slow disk of the host does not make
//! their answer late.

mod core;
mod cut;
mod failures;
mod images;
mod model;
mod observed;
mod overlay;
mod pacer;
mod pending;
mod reading;
#[cfg(test)]
mod tests;
mod write_callback;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

use ebbtide_volume::{Array, Instance, Limits, LimitsError, Nanos, Stats};
use parking_lot::Mutex;

use self::core::Core;
use crate::{
    clock::{Clock, MonotonicClock},
    faults::Faults,
    request::{Buffer, IoError, Reply, Request},
    store::{OpenVolume, StoreError},
};

pub use crate::lateness::{LatenessTotals, PacingReport};
pub use cut::{PowerCutReport, snapshots_at_once};
pub use failures::HostFailure;
pub use images::{CACHED_LOST_NAMED, CrashReport, CutWrite, GroupCut, ImageRequest, Keep, crash_images};
pub use observed::{OBSERVED_MOST, ObservedIo};
pub use reading::{VolumeReading, VolumeTotals};
pub use write_callback::SubmittedWrite;

/// Largest read or write, in bytes. Longer ones are [`IoError::OutOfRange`].
pub const MAX_DATA_BYTES: u32 = 32 << 20;
/// Bytes of answered writes that the fault `answer_early` keeps in volatile memory at most.
pub const EARLY_BYTES: u64 = 4 << 20;
/// Bytes of request data that a volume holds at most: a full queue of a loop device (128 requests of
/// 256 KiB) and a little for other clients. Whoever submits beyond it waits.
pub const BUFFER_BYTES: usize = 34 << 20;

/// A volume that could not be started, or an operation on it that did not happen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// A block size that no disk has.
    #[error("the logical block size is {0} bytes; it must be 512 or 4096")]
    BlockBytes(u32),
    /// The model is larger than what is behind it.
    #[error("the volume has {volume} bytes and its store {store}; grow the store first")]
    StoreTooSmall {
        /// Bytes of the model.
        volume: u64,
        /// Bytes of the store.
        store: u64,
    },
    /// The model that is to take over is one of another volume.
    #[error("the model of {volume} cannot be replaced: {why}")]
    OtherVolume {
        /// The volume.
        volume: String,
        /// In what the two differ.
        why: String,
    },
    /// The host refused a thread.
    #[error("cannot start the pacer's threads")]
    Threads(#[source] std::io::Error),
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Reading or writing the store failed.
    #[error("cannot {action}")]
    Io {
        /// What was being done.
        action: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
}

/// What a live volume is made of.
#[derive(Debug)]
pub struct LiveOptions {
    /// Its name in the store.
    pub name: String,
    /// The physics.
    pub array: Array,
    /// Decides service times and injected errors: the same seed gives the same draws.
    pub seed: u64,
    /// Where the data are.
    pub store: Arc<OpenVolume>,
    /// The instance that the volume is attached to, shared with its other volumes.
    pub instance: Option<Arc<Mutex<Instance>>>,
    /// Logical block size in bytes, 512 or 4096.
    pub block_bytes: u32,
    /// The time. Threads pace the volume where they can sleep on it; otherwise its owner calls
    /// [`LiveVolume::run_due`].
    pub clock: Arc<dyn Clock>,
}

impl LiveOptions {
    /// A volume on no particular instance, with blocks of 512 bytes, in real time.
    #[must_use]
    pub fn new(name: &str, array: Array, store: Arc<OpenVolume>, seed: u64) -> Self {
        Self {
            name: name.to_owned(),
            array,
            seed,
            store,
            instance: None,
            block_bytes: 512,
            clock: Arc::new(MonotonicClock::new()),
        }
    }
}

/// A volume in use.
///
/// Every method may be called from any thread. Dropping the last handle stops the volume.
#[derive(Debug)]
pub struct LiveVolume {
    core: Arc<Core>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    stopped: AtomicBool,
}

impl LiveVolume {
    /// Brings a volume to life.
    ///
    /// # Errors
    /// A block size other than 512 and 4096, a model larger than its store, or no threads.
    pub fn start(options: LiveOptions) -> Result<Arc<Self>, EngineError> {
        if ![512, 4096].contains(&options.block_bytes) {
            return Err(EngineError::BlockBytes(options.block_bytes));
        }
        let (volume, store) = (options.array.size_bytes(), options.store.size_bytes());
        if volume > store {
            return Err(EngineError::StoreTooSmall { volume, store });
        }
        let sleeps = options.clock.to_monotonic(Nanos::ZERO).is_some();
        let core = Arc::new(Core::new(options));
        let threads = if sleeps { pacer::spawn(&core).map_err(EngineError::Threads)? } else { Vec::new() };
        Ok(Arc::new(Self { core, threads: Mutex::new(threads), stopped: AtomicBool::new(false) }))
    }

    /// Takes a request; the answer comes through its reply, possibly before this returns.
    ///
    /// Waits only for memory: see [`LiveVolume::buffer`].
    pub fn submit(&self, request: Request) {
        self.core.submit(request);
    }

    /// Takes a write whose data the caller keeps; they are copied only if the write has to wait.
    pub(crate) fn submit_write(&self, offset: u64, data: &[u8], reply: Reply) {
        self.core.submit_write(offset, data, reply);
    }

    /// Takes a read whose answer leaves at once where the model lets it pass, without a buffer of the volume's pool.
    pub(crate) fn submit_read(&self, offset: u64, len: u32, reply: Reply) {
        self.core.submit_read(offset, len, reply);
    }

    /// A buffer for the data of a request, `len` bytes of arbitrary content. Waits while requests
    /// in flight hold [`BUFFER_BYTES`].
    #[must_use]
    pub fn buffer(&self, len: u32) -> Buffer {
        self.core.pool.take(usize::try_from(len).expect("a request fits in memory"))
    }

    /// Name in the store.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// Usable size in bytes: the model's, or the store's where that has not grown yet.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.core.size_bytes()
    }

    /// Logical block size in bytes.
    #[must_use]
    pub fn block_bytes(&self) -> u32 {
        self.core.block_bytes
    }

    /// The store behind it. Writing to it directly is neither charged nor paced.
    #[must_use]
    pub fn store(&self) -> &Arc<OpenVolume> {
        &self.core.store
    }

    /// The present time of the volume's clock.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.core.clock.now()
    }

    /// The model's counters now. While I/O is stalled they show everything submitted as queued.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.core.stats()
    }

    /// Shares of the burst credits that the instance has left, 0 to 1: of operations and of bytes. None without an
    /// instance; a share is none where the instance sustains its maximum.
    #[must_use]
    pub fn instance_balances(&self) -> Option<(Option<f64>, Option<f64>)> {
        self.core.state.lock().model.instance_balances(self.core.clock.now())
    }

    /// Looks at the model, with the present time. The volume does nothing meanwhile: be quick.
    pub fn inspect<T>(&self, look: impl FnOnce(&Array, Nanos) -> T) -> T {
        let state = self.core.state.lock();
        look(&state.model.array, self.core.clock.now())
    }

    /// How late the answers were, since the start or the last [`LiveVolume::reset_pacing`].
    #[must_use]
    pub fn pacing(&self) -> PacingReport {
        self.core.lateness.report()
    }

    /// Answers that were later than `limit` (to 1%), since the start or the last [`LiveVolume::reset_pacing`].
    #[must_use]
    pub fn answers_later_than(&self, limit: Nanos) -> u64 {
        self.core.lateness.later_than(limit)
    }

    /// Forgets the lateness recorded so far.
    pub fn reset_pacing(&self) {
        self.core.lateness.reset();
    }

    /// Requests that failed because the host failed (its disk is full, or broken), so far.
    #[must_use]
    pub fn host_errors(&self) -> u64 {
        self.core.failures.total()
    }

    /// The requests of [`Self::host_errors`] by operation and errno, in the order in which they were first seen.
    #[must_use]
    pub fn host_failures(&self) -> Vec<HostFailure> {
        self.core.failures.kinds()
    }

    /// Logs how many of these requests the log has not named yet, at most once in 10 seconds.
    pub(crate) fn log_host_failures(&self) {
        self.core.failures.log_rest(&self.core.name, self.core.clock.now());
    }

    /// Writes that were refused because the volume had ended, by a power cut or a stop, so far.
    #[must_use]
    pub fn refused_writes(&self) -> u64 {
        self.core.refused_writes.load(Ordering::Relaxed)
    }

    /// Switches faults on and off. What waited for a stall to end is then due at once.
    ///
    /// # Errors
    /// Lifting `answer_early` writes what it kept in memory to the store, which can fail.
    pub fn set_faults(&self, faults: Faults) -> Result<(), EngineError> {
        self.core.set_faults(faults)
    }

    /// The faults in force.
    #[must_use]
    pub fn faults(&self) -> Faults {
        self.core.state.lock().faults.clone()
    }

    /// Share of the burst credits left, 0 to 1; none for types without credits.
    #[must_use]
    pub fn credit_share(&self) -> Option<f64> {
        self.inspect(Array::credit_share)
    }

    /// Sets the burst credits to a share, 0 to 1, of their capacity.
    pub fn set_credit_share(&self, share: f64) {
        let mut state = self.core.state.lock();
        let now = self.core.clock.now();
        state.model.array.set_credit_share(share, now);
    }

    /// Begins a modification now; `target` holds for each member of an array. The size follows as
    /// soon as the store has been grown.
    ///
    /// # Errors
    /// Where the target contradicts itself; nothing has changed then.
    pub fn modify(&self, target: &Limits, optimizing: Nanos, completes: Nanos) -> Result<(), LimitsError> {
        let mut state = self.core.state.lock();
        let now = self.core.clock.now();
        state.model.array.modify(target, now, optimizing, completes)?;
        self.core.array_bytes.store(state.model.array.size_bytes(), Ordering::Relaxed);
        Ok(())
    }

    /// Charges every request from now on to another model and another instance, such as from one
    /// without limits to a real one once the guest is in its working state. What is in flight
    /// completes as the old model decided. The credits are the new model's; the counters go on from
    /// where they are, and their gauges are the new model's.
    ///
    /// # Errors
    /// [`EngineError::OtherVolume`] where size or durability would change: the guest has relied on them.
    pub fn replace_model(
        &self,
        array: Array,
        instance: Option<Arc<Mutex<Instance>>>,
    ) -> Result<(), EngineError> {
        let mut state = self.core.state.lock();
        let old = &state.model.array;
        let why = if old.size_bytes() != array.size_bytes() {
            Some(format!("it has {} bytes, the new one {}", old.size_bytes(), array.size_bytes()))
        } else if old.durability() != array.durability() {
            Some(format!("it promises {:?}, the new one {:?}", old.durability(), array.durability()))
        } else {
            None
        };
        if let Some(why) = why {
            return Err(EngineError::OtherVolume { volume: self.core.name.clone(), why });
        }
        let now = self.core.clock.now();
        state.model.replace(array, instance, now);
        Ok(())
    }

    /// Completes what is due by the clock's present time. The pacer's threads do this by themselves;
    /// it is for clocks that they cannot sleep on.
    pub fn run_due(&self) {
        self.core.run_due();
    }

    /// When the next request in flight is due, if any is.
    #[must_use]
    pub fn next_due(&self) -> Option<Nanos> {
        self.core.state.lock().next_due()
    }

    /// Requests that are not answered yet.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.core.state.lock().in_flight()
    }

    /// Whether the volume takes requests: neither stopped nor without power.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.core.is_live()
    }

    /// Waits until nothing is in flight, at most `patience` of real time; returns whether it came to
    /// that. The exports should be closed before, so that nothing new arrives.
    #[must_use]
    pub fn drain(&self, patience: std::time::Duration) -> bool {
        let end = std::time::Instant::now() + patience;
        while self.in_flight() > 0 {
            if std::time::Instant::now() >= end {
                return false;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        self.core.settle();
        true
    }

    /// Ends the volume in order: what is in flight is answered with an error and has not happened,
    /// a volatile cache is written out, and the store is synced. A volume without power stays as
    /// the cut left it.
    ///
    /// # Errors
    /// Where the host could not write what was answered.
    pub fn stop(&self) -> Result<(), EngineError> {
        if self.stopped.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let stopped = self.core.stop();
        self.core.failures.log_last(&self.core.name);
        let this_thread = std::thread::current().id();
        for thread in self.threads.lock().drain(..) {
            // The last handle may be dropped by an answer, on a pacer's own thread.
            if thread.thread().id() != this_thread && thread.join().is_err() {
                tracing::error!(volume = %self.core.name, "a pacer thread had panicked");
            }
        }
        stopped
    }
}

impl Drop for LiveVolume {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            tracing::error!(volume = %self.core.name, %error, "the volume did not stop cleanly");
        }
    }
}

/// The outcome of a request's work, without its data.
type Done = Result<(), IoError>;
