//! Background work: giving back the layers that nothing names any more.
//!
//! A frozen layer that no snapshot names and that has only one layer above is merged with that one. The child's blocks are
//! written into the parent, never the other way round: until the manifest is replaced the child hides every one of
//! them, so neither a reader nor a crash at any moment can see a merge that is half done.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use super::layer::{Chain, Frozen, Top};
use super::manifest::{LayerId, Manifest};
use super::maps::{BlockKind, Maps};
use super::shared::{Job, StoreShared, StoreState};
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
                self.changed.notify_all();
                if self.changed.wait_for(&mut state, LOOK_EVERY).timed_out() {
                    self.seal_open_volumes(&state);
                }
                continue;
            };
            state.working = true;
            drop(state);
            let done = self.run(&job);
            state = self.state.lock();
            state.working = false;
            if let Err(e) = done {
                let cause = std::error::Error::source(&e).map(ToString::to_string).unwrap_or_default();
                tracing::warn!(?job, error = %e, cause, "background work waits for the next change");
                state.given_up.insert(job);
            }
        }
    }

    /// Seals the journals of volumes that nobody flushes. With `host_sync` only a sync may.
    fn seal_open_volumes(&self, state: &StoreState) {
        if !self.options.host_sync {
            state.open.values().for_each(|core| core.chain.load().top.layer.journal.lock().seal());
        }
    }

    /// What is to be done next.
    pub(super) fn next_job(&self, state: &StoreState) -> Option<Job> {
        let sync = state.manifest_unsynced.then_some(Job::SyncManifest);
        let only_children = only_children(&state.manifest);
        let uses = Uses::of(&state.manifest);
        let merges =
            only_children.into_iter().filter_map(|(parent, child)| merge_job(state, &uses, parent, child));
        let rewrites = state.open.iter().filter_map(|(name, core)| {
            let journal = &core.chain.load().top.layer;
            let (records, compact) = {
                let j = journal.journal.lock();
                (j.records(), j.compact())
            };
            (records.saturating_sub(compact) > REWRITE_RECORDS.max(2 * compact))
                .then(|| Job::Rewrite(name.clone()))
        });
        let seals = state.layers.iter().filter_map(|(id, layer)| {
            let grown = layer.as_ref().is_ok_and(|frozen| frozen.layer.journal.lock().has_grown());
            (grown && !uses.tops.contains_key(id)).then_some(Job::Seal(*id))
        });
        sync.into_iter().chain(merges).chain(rewrites).chain(seals).find(|job| !state.given_up.contains(job))
    }

    fn run(&self, job: &Job) -> Result<(), StoreError> {
        match job {
            Job::SyncManifest => {
                self.state.lock().manifest_unsynced = false;
                self.sync_manifest().inspect_err(|_| self.state.lock().manifest_unsynced = true)
            }
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
        let next = merged_manifest(&state.manifest, parent, child);
        self.commit(&mut state, next)?;
        state.layers.remove(&child);
        state.layers.insert(parent, Ok(merged.clone()));
        for core in state.open.values() {
            replace_pair(core, child, &merged);
        }
        drop(state);
        upper.layer.remove();
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
            state.rounds += 1;
            return self.put_layer_on_top(&mut state, volume, |_, _| ()).map(drop);
        }
        let Some(merged) = self.copy_down(&lower, &upper, false)? else { return Ok(()) };
        let next = merged_manifest(&state.manifest, parent, child);
        self.commit(&mut state, next)?;
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
        drop(state);
        upper.layer.remove();
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
        !self.stop.load(Ordering::SeqCst)
    }
}

/// The layers below exactly one other, with that one.
fn only_children(manifest: &Manifest) -> BTreeMap<LayerId, LayerId> {
    let mut children: BTreeMap<LayerId, Option<LayerId>> = BTreeMap::new();
    for (child, layer) in &manifest.layers {
        if let Some(parent) = layer.parent {
            children.entry(parent).and_modify(|only| *only = None).or_insert(Some(*child));
        }
    }
    children.into_iter().filter_map(|(parent, only)| Some((parent, only?))).collect()
}

/// What to do about a frozen layer now, if only one other needs it.
fn mergeable(state: &StoreState, parent: LayerId) -> Option<Job> {
    let child = *only_children(&state.manifest).get(&parent)?;
    merge_job(state, &Uses::of(&state.manifest), parent, child)
}

/// What names each layer, so that a look at all layers takes no time that grows with their square.
struct Uses<'a> {
    snapshots: BTreeSet<LayerId>,
    /// The layers that volumes write to, with the names of the volumes.
    tops: BTreeMap<LayerId, &'a str>,
}

impl<'a> Uses<'a> {
    fn of(manifest: &'a Manifest) -> Self {
        Self {
            snapshots: manifest.snapshots.values().map(|snapshot| snapshot.layer).collect(),
            tops: manifest.volumes.iter().map(|(name, volume)| (volume.top, name.as_str())).collect(),
        }
    }
}

fn merge_job(state: &StoreState, uses: &Uses<'_>, parent: LayerId, child: LayerId) -> Option<Job> {
    if uses.snapshots.contains(&parent) {
        return None;
    }
    let is_sound = |id| state.layers.get(&id).is_none_or(Result::is_ok);
    if !is_sound(parent) || !is_sound(child) {
        return None;
    }
    match uses.tops.get(&child) {
        None => Some(Job::Merge { parent, child }),
        Some(volume) if state.rounds < MAX_ROUNDS => {
            Some(Job::Absorb { volume: (*volume).to_owned(), parent })
        }
        Some(_) => None,
    }
}

fn merged_manifest(manifest: &Manifest, parent: LayerId, child: LayerId) -> Manifest {
    let mut next = manifest.clone();
    next.merge_child(parent, child);
    next
}

/// Puts `merged` where `child` and the layer below it were.
fn replace_pair(core: &VolumeCore, child: LayerId, merged: &Frozen) {
    let chain = core.chain.load();
    let Some(at) = chain.below.iter().position(|frozen| frozen.layer.id == child) else { return };
    let mut below = chain.below.clone();
    below.splice(at..at + 2, [merged.clone()]);
    core.chain.store(Arc::new(Chain { top: Arc::clone(&chain.top), below }));
}
