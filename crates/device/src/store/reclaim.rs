//! Background work: giving back the layers that nothing names any more.
//!
//! A frozen layer that no snapshot names and that has only one layer above is merged with that one. The child's blocks are
//! written into the parent, never the other way round: until the manifest is replaced the child hides every one of
//! them, so neither a reader nor a crash at any moment can see a merge that is half done.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use super::entries::{Change, LayerId};
use super::home::release_spare;
use super::layer::{Chain, Frozen, Top};
use super::maps::{BlockKind, Maps};
use super::shared::{Doomed, Job, StoreShared, StoreState};
use super::volume_core::VolumeCore;
use super::{BLOCK_BYTES, StoreError};
use crate::sys::own_writes_may_wait_for_us;

/// Blocks copied in one step: the most that is held in memory, 1 MiB.
const STEP_BLOCKS: u64 = 256;
const STEP_BYTES: usize = 1 << 20;
const _: () = assert!(STEP_BLOCKS * BLOCK_BYTES == 1 << 20);

/// Decided blocks of a writable layer that are merged while its writes wait: under a millisecond of copying. One with
/// more is frozen first and merged while the load goes on.
const ABSORB_BLOCKS: u64 = 256;

/// Layers that the background work freezes before it leaves a volume alone: under a load that outruns the merges, one
/// layer stays until the volume is closed or a snapshot is deleted.
const MAX_ROUNDS: u32 = 8;

/// Records since the last rewrite above which the journal of an open volume is rewritten: 5 MiB of them.
const REWRITE_RECORDS: u64 = 1 << 18;

/// Bytes of a merge that takes the spare room: half of it, so that the journal and the log have room, too.
const MOST_OF_SPARE: u64 = 128 << 10;

/// How often an idle worker looks at the journals of open volumes, and seals them.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Longest pause between two steps of a merge. Pauses are as long as the steps: half of the time is the load's.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Ends the background work with the last handle.
#[derive(Debug)]
pub(super) struct BackgroundWorker {
    shared: Arc<StoreShared>,
    thread: Option<JoinHandle<()>>,
}

impl BackgroundWorker {
    /// Starts the background work of a store.
    pub(super) fn start(shared: StoreShared) -> Result<Self, StoreError> {
        let shared = Arc::new(shared);
        let for_thread = Arc::clone(&shared);
        let thread = Builder::new()
            .name("store-reclaim".to_owned())
            .spawn(move || for_thread.work())
            .map_err(StoreError::io("start a thread for", shared.dir.path()))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    pub(super) fn shared(&self) -> &StoreShared {
        &self.shared
    }
}

impl Drop for BackgroundWorker {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        drop(self.shared.state.lock()); // the worker either waits by now or sees the flag
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

impl StoreShared {
    /// The worker's life.
    fn work(&self) {
        // It stops a volume's writes for moments, and some of them may be the kernel's, for memory.
        own_writes_may_wait_for_us();
        let mut state = self.state.lock();
        while !self.stop.load(Ordering::SeqCst) {
            let Some(job) = self.next_job(&state) else {
                state.forget_settled();
                self.changed.notify_all();
                if self.changed.wait_for(&mut state, LOOK_EVERY).timed_out() {
                    self.seal_open_volumes(&state);
                }
                continue;
            };
            state.working = true;
            state.synced_last = job == Job::SyncLog;
            let sealed = if let Job::Seal(id) = job { Some(id) } else { None };
            let changes = state.changes;
            drop(state);
            let done = self.run(&job);
            state = self.state.lock();
            state.working = false;
            // What failed before something changed is tried again.
            let is_same = state.changes == changes;
            if let Err(e) = done
                && is_same
                && !self.made_room_for(&state, &job, &e)
            {
                let cause = std::error::Error::source(&e).map(ToString::to_string).unwrap_or_default();
                tracing::warn!(?job, error = %e, cause, "background work waits for the next change");
                state.given_up.insert(job);
            }
            match sealed {
                Some(id) if is_same => state.forget_settled_up_to(id),
                // Which of the others failed is not known any more.
                Some(id) => drop(state.unsettled.remove(&id)),
                None => {}
            }
        }
        let unsynced = state.log_unsynced;
        drop(state);
        if unsynced && let Err(error) = self.sync_log() {
            tracing::warn!(%error, "the log of the manifest is not sealed");
        }
    }

    /// Whether a job failed for want of room, and has some now. A merge needs room before it gives room back: without the
    /// spare, a deletion on a full disk may never give any. One that may need more than that leaves it to deletions.
    fn made_room_for(&self, state: &StoreState, job: &Job, error: &StoreError) -> bool {
        let child = match job {
            Job::Merge { child, .. } => state.layers.get(child).cloned(),
            Job::Absorb { volume, .. } => state.volume(volume).ok().map(|volume| state.layer(volume.top)),
            _ => None,
        };
        let fits = child.is_some_and(|child| {
            child.is_ok_and(|child| child.maps.decided_blocks() * BLOCK_BYTES <= MOST_OF_SPARE)
        });
        fits && error.is_full() && release_spare(&self.dir)
    }

    /// Seals the journals of volumes that nobody flushes. With `host_sync` only a sync may.
    fn seal_open_volumes(&self, state: &StoreState) {
        if !self.options.host_sync {
            state.open.values().for_each(|core| core.chain.load().top.layer.journal.lock().seal());
        }
    }

    /// What is to be done next.
    pub(super) fn next_job(&self, state: &StoreState) -> Option<Job> {
        let sync = state.log_unsynced.then_some(Job::SyncLog);
        let rewrite = state.log.is_long().then_some(Job::RewriteManifest);
        let pairs = state.manifest.only_children();
        let merges = pairs.iter().filter_map(|(parent, child)| merge_job(state, *parent, *child));
        let rewrites = state.open.iter().filter_map(|(name, core)| {
            let journal = &core.chain.load().top.layer;
            let (records, compact) = {
                let j = journal.journal.lock();
                (j.records(), j.compact())
            };
            (records.saturating_sub(compact) > REWRITE_RECORDS.max(2 * compact))
                .then(|| Job::Rewrite(name.clone()))
        });
        let seals = state.unsettled.iter().filter_map(|id| {
            let frozen = state.layers.get(id)?.as_ref().ok()?;
            let grown = state.manifest.volume_on(*id).is_none() && frozen.layer.journal.lock().has_grown();
            grown.then_some(Job::Seal(*id))
        });
        // Under a load of changes there is always something to sync, and the others must come to their turn.
        let (first, last) = if state.synced_last { (None, sync) } else { (sync, None) };
        let others = rewrite.into_iter().chain(merges).chain(rewrites).chain(seals);
        first.into_iter().chain(others).chain(last).find(|job| !state.given_up.contains(job))
    }

    fn run(&self, job: &Job) -> Result<(), StoreError> {
        match job {
            Job::SyncLog => self.sync_log(),
            Job::RewriteManifest => self.rewrite_manifest(),
            Job::Merge { parent, child } => self.merge(*parent, *child),
            Job::Absorb { volume, parent } => self.absorb(volume, *parent),
            Job::Seal(id) => {
                let Some(Ok(frozen)) = self.state.lock().layers.get(id).cloned() else { return Ok(()) };
                let rewritten = frozen.layer.rewrite_journal(|| Arc::clone(&frozen.maps));
                frozen.layer.journal.lock().close_file();
                rewritten
            }
            Job::Rewrite(volume) => {
                let Some(core) = self.state.lock().open.get(volume).cloned() else { return Ok(()) };
                let top = Arc::clone(&core.chain.load().top);
                top.layer.rewrite_journal(|| top.maps())
            }
        }
    }

    /// Merges two frozen layers while everything else goes on.
    fn merge(&self, parent: LayerId, child: LayerId) -> Result<(), StoreError> {
        let (lower, upper) = {
            let state = self.state.lock();
            let (Some(Ok(lower)), Some(Ok(upper))) = (state.layers.get(&parent), state.layers.get(&child))
            else {
                return Ok(());
            };
            (lower.clone(), upper.clone())
        };
        let Some(merged) = self.copy_down(&lower, &upper, true)? else { return Ok(()) };
        let mut state = self.state.lock();
        if mergeable(&state, parent) != Some(Job::Merge { parent, child }) {
            return Ok(()); // deleted meanwhile
        }
        let change = Change::merge_child(&state.manifest, parent, child);
        self.commit(&mut state, change)?;
        state.unsettled.insert(parent);
        state.layers.remove(&child);
        state.layers.insert(parent, Ok(merged.clone()));
        for core in state.open.values() {
            replace_pair(core, child, &merged);
        }
        self.doom(state, vec![Doomed::Loaded(upper.layer)]);
        Ok(())
    }

    /// Merges a volume's writable layer with the frozen one below, when it is small; otherwise freezes it, which makes
    /// the pair one for [`Self::merge`].
    fn absorb(&self, volume: &str, parent: LayerId) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        if !matches!(mergeable(&state, parent), Some(Job::Absorb { volume: v, .. }) if v == volume) {
            return Ok(());
        }
        let child = state.volume(volume)?.top;
        let core = state.open.get(volume).cloned();
        let gate = core.as_ref().map(|core| core.stop_writes());
        let (Ok(lower), Ok(upper)) = (state.layer(parent), state.layer(child)) else { return Ok(()) };
        if upper.maps.decided_blocks() > ABSORB_BLOCKS {
            drop((gate, upper));
            self.put_layer_on_top(&mut state, volume)?;
            state.rounds += 1;
            return Ok(());
        }
        let Some(merged) = self.copy_down(&lower, &upper, false)? else { return Ok(()) };
        let change = Change::merge_child(&state.manifest, parent, child);
        self.commit(&mut state, change)?;
        state.unsettled.insert(parent);
        state.layers.remove(&child);
        match &core {
            Some(core) => {
                state.layers.remove(&parent);
                let below = core.chain.load().below[1..].to_vec();
                core.chain.store(Arc::new(Chain { top: Arc::new(Top::thaw(merged)), below }));
            }
            None => {
                state.layers.insert(parent, Ok(merged));
            }
        }
        drop(gate);
        self.doom(state, vec![Doomed::Loaded(upper.layer)]);
        Ok(())
    }

    /// Writes all that `upper` decides into `lower`, and gives the layer they make; `None` when the store closes.
    fn copy_down(
        &self,
        lower: &Frozen,
        upper: &Frozen,
        may_pause: bool,
    ) -> Result<Option<Frozen>, StoreError> {
        let fail = |e| {
            StoreError::io(
                "merge a layer into",
                lower.layer.dir.path().join(format!("{}.data", lower.layer.id)),
            )(e)
        };
        lower.layer.files.open_existing()?;
        upper.layer.files.open_existing()?;
        let copied = self.copy_runs(lower, upper, may_pause);
        // What was copied stays, whether all of it was or not.
        lower.layer.seal().map_err(fail)?;
        let merged = copied.map_err(fail)?;
        Ok(merged.map(|maps| Frozen { layer: Arc::clone(&lower.layer), maps: Arc::new(maps) }))
    }

    /// The copying of [`Self::copy_down`]: what `lower` decides after it.
    fn copy_runs(&self, lower: &Frozen, upper: &Frozen, may_pause: bool) -> io::Result<Option<Maps>> {
        let mut merged = (*lower.maps).clone();
        let mut buf = vec![0; STEP_BYTES];
        for (run, kind) in upper.maps.runs() {
            let mut at = run.start;
            while at < run.end {
                // A hole takes no memory, so that its length does not matter.
                let until = if kind == BlockKind::Data { run.end.min(at + STEP_BLOCKS) } else { run.end };
                let begin = Instant::now();
                lower.layer.take_over(&upper.layer, at..until, kind, &mut buf)?;
                merged.set(at..until, kind, lower.layer.has_parent);
                at = until;
                if may_pause && !self.pause(begin.elapsed()) {
                    return Ok(None);
                }
            }
        }
        Ok(Some(merged))
    }

    /// Leaves the machine to the load for a while, unless someone waits; false when the store closes.
    fn pause(&self, worked: Duration) -> bool {
        let mut state = self.state.lock();
        let until = Instant::now() + worked.min(LONGEST_PAUSE);
        while state.waiting == 0 && !self.stop.load(Ordering::SeqCst) {
            if self.changed.wait_until(&mut state, until).timed_out() {
                break;
            }
        }
        // A long merge keeps nobody's deletion from giving its space back.
        if state.log_unsynced && !state.given_up.contains(&Job::SyncLog) {
            drop(state);
            if let Err(error) = self.sync_log() {
                tracing::warn!(%error, "the log of the manifest is synced after the next change");
                self.state.lock().given_up.insert(Job::SyncLog);
            }
        }
        !self.stop.load(Ordering::SeqCst)
    }
}

impl StoreState {
    /// Leaves out the layers up to one that was sealed, which is the first that had to be: there is nothing to do about them.
    fn forget_settled_up_to(&mut self, id: LayerId) {
        let given_up = &self.given_up;
        self.unsettled.retain(|other| *other > id || given_up.contains(&Job::Seal(*other)));
    }

    /// Leaves only those layers to be looked at again whose sealing failed: there is nothing else to do about the others.
    fn forget_settled(&mut self) {
        let given_up = &self.given_up;
        self.unsettled.retain(|id| given_up.contains(&Job::Seal(*id)));
    }
}

/// What to do about a frozen layer now, if only one other needs it.
fn mergeable(state: &StoreState, parent: LayerId) -> Option<Job> {
    let child = *state.manifest.only_children().get(&parent)?;
    merge_job(state, parent, child)
}

fn merge_job(state: &StoreState, parent: LayerId, child: LayerId) -> Option<Job> {
    let is_sound = |id| state.layers.get(&id).is_none_or(Result::is_ok);
    if !is_sound(parent) || !is_sound(child) {
        return None;
    }
    match state.manifest.volume_on(child) {
        None => Some(Job::Merge { parent, child }),
        Some(volume) if state.rounds < MAX_ROUNDS => Some(Job::Absorb { volume: volume.to_owned(), parent }),
        Some(_) => None,
    }
}

/// Puts `merged` where `child` and the layer below it were.
fn replace_pair(core: &VolumeCore, child: LayerId, merged: &Frozen) {
    let chain = core.chain.load();
    let Some(at) = chain.below.iter().position(|frozen| frozen.layer.id == child) else { return };
    let mut below = chain.below.clone();
    below.splice(at..at + 2, [merged.clone()]);
    core.chain.store(Arc::new(Chain { top: Arc::clone(&chain.top), below }));
}
