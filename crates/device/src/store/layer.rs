//! Layers and the chain of them that makes a volume.

use std::io;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use parking_lot::{Mutex, RwLock};

use super::files::{Files, data_name, data_path};
use super::journal::{Journal, Scan, journal_name, journal_path, rewrite};
use super::maps::{BlockKind, Maps, SEGMENTS};
use super::{BLOCK_BYTES, LayerId, StoreError};
use ebbtide_dir::Dir;

/// The files of a layer, whether it is written to or frozen.
#[derive(Debug)]
pub(super) struct Layer {
    pub(super) dir: Dir,
    pub(super) id: LayerId,
    pub(super) files: Files,
    pub(super) journal: Mutex<Journal>,
    /// Whether a layer is below, so that a hole has something to hide.
    pub(super) has_parent: bool,
    host_sync: bool,
    syncing: Mutex<()>,
    /// Whether the files are removed, so that a rewrite would bring one back.
    retired: Mutex<bool>,
}

impl Layer {
    fn new(dir: &Dir, id: LayerId, journal: Journal, has_parent: bool, host_sync: bool) -> Self {
        let (files, journal) = (Files::new(dir, id), Mutex::new(journal));
        let (syncing, retired) = (Mutex::new(()), Mutex::new(false));
        Self { dir: dir.clone(), id, files, journal, has_parent, host_sync, syncing, retired }
    }

    /// Puts data and journal on the host's disk, data first: a journal must not promise what is not there. Records that
    /// come between the two may reach the disk with the others, but are not among those that the header calls durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        let _one = self.syncing.lock();
        self.journal.lock().begin_sync();
        self.files.sync()?;
        let retired = self.retired.lock();
        if *retired {
            return Ok(()); // merged, and synced with the layer that took it over
        }
        let file = self.journal.lock().data_synced()?;
        drop(retired);
        let Some(file) = file else { return Ok(()) };
        file.sync_data().inspect_err(|_| self.journal.lock().mark_unsynced())?;
        self.journal.lock().end_sync();
        Ok(())
    }

    /// Vouches for every record that is there, with `host_sync` once it is on the host's disk.
    pub(super) fn seal(&self) -> io::Result<()> {
        if self.host_sync {
            self.sync()?;
            return self.journal.lock().seal_synced();
        }
        self.journal.lock().seal();
        Ok(())
    }

    /// Writes the journal anew, as short as it can be. `maps` is asked while no record can be appended.
    pub(super) fn rewrite_journal(&self, maps: impl FnOnce() -> Arc<Maps>) -> Result<(), StoreError> {
        let _no_sync = self.host_sync.then(|| self.syncing.lock());
        let retired = self.retired.lock();
        if *retired {
            return Ok(());
        }
        let (maps, upto) = {
            let journal = self.journal.lock();
            (maps(), journal.records())
        };
        if self.host_sync {
            let data = data_path(&self.dir, self.id, 0);
            self.files.sync().map_err(StoreError::io("sync", data))?;
        }
        let rewritten = rewrite(&self.dir, self.id, &maps, self.host_sync)?;
        drop(maps);
        self.journal.lock().replace(rewritten, upto, self.host_sync)
    }

    /// Removes the files. Readers that have them open read on.
    pub(super) fn remove(&self) {
        *self.retired.lock() = true;
        self.files.retire();
        remove_files(&self.dir, self.id);
    }

    /// Writes what a layer above decides into this one: data into the data file, then the journal.
    pub(super) fn take_over(
        &self,
        above: &Layer,
        run: Range<u64>,
        kind: BlockKind,
        buf: &mut [u8],
    ) -> io::Result<()> {
        let (offset, len) = byte_range(&run);
        match kind {
            BlockKind::Data => {
                let part = &mut buf[..usize::try_from(len).map_err(io::Error::other)?];
                above.files.read_at(part, offset)?;
                self.files.write_at(part, offset)?;
            }
            BlockKind::Hole => self.files.punch(offset, len)?,
        }
        self.journal.lock().append(&[(run, kind)])
    }
}

/// The topmost layer of an open volume, the only one that is written to.
#[derive(Debug)]
pub(super) struct Top {
    pub(super) layer: Arc<Layer>,
    /// Shared with the frozen layer that this becomes; until then with nobody for long.
    maps: RwLock<Arc<Maps>>,
}

/// A layer that never changes again.
#[derive(Debug, Clone)]
pub(super) struct Frozen {
    pub(super) layer: Arc<Layer>,
    pub(super) maps: Arc<Maps>,
}

impl Frozen {
    /// A new, empty layer.
    pub(super) fn create(
        dir: &Dir,
        id: LayerId,
        has_parent: bool,
        host_sync: bool,
    ) -> Result<Self, StoreError> {
        let journal = Journal::create(dir, id, host_sync)?;
        let layer = Arc::new(Layer::new(dir, id, journal, has_parent, host_sync));
        Ok(Self { layer, maps: nothing() })
    }

    /// A layer whose journal was read without damage.
    pub(super) fn adopt(
        dir: &Dir,
        id: LayerId,
        scan: Scan,
        has_parent: bool,
        host_sync: bool,
    ) -> Result<Self, StoreError> {
        let journal = Journal::adopt(dir, id, &scan, host_sync)?;
        let settled = journal.is_settled(host_sync);
        let layer = Arc::new(Layer::new(dir, id, journal, has_parent, host_sync));
        if host_sync && !settled {
            // What a killed process left, or one without `host_sync`: from here on the header's word counts.
            let sync = || layer.files.open_existing().map(|()| layer.seal());
            sync()?.map_err(StoreError::io("sync", journal_path(dir, id)))?;
            layer.journal.lock().close_file();
        }
        Ok(Self { layer, maps: if scan.maps.is_empty() { nothing() } else { Arc::new(scan.maps) } })
    }
}

/// What a layer decides that decides nothing. All such layers have the same, as a store has thousands of them.
fn nothing() -> Arc<Maps> {
    static NOTHING: LazyLock<Arc<Maps>> = LazyLock::new(Arc::default);
    Arc::clone(&NOTHING)
}

impl Top {
    /// Makes a layer writable.
    pub(super) fn thaw(frozen: Frozen) -> Self {
        Self { layer: frozen.layer, maps: RwLock::new(frozen.maps) }
    }

    /// The layer as it is; final once nothing writes to it any more.
    pub(super) fn freeze(&self) -> Frozen {
        Frozen { layer: Arc::clone(&self.layer), maps: self.maps() }
    }

    /// What the layer decides now.
    pub(super) fn maps(&self) -> Arc<Maps> {
        Arc::clone(&self.maps.read())
    }

    /// Whether the layer decides nothing yet.
    pub(super) fn is_empty(&self) -> bool {
        self.maps.read().is_empty()
    }

    /// Whether every block of the range is data here.
    pub(super) fn all_data(&self, blocks: &Range<u64>) -> bool {
        self.maps.read().all_data(blocks)
    }

    /// Records that blocks are data, which they must be in the data file by now.
    pub(super) fn note_data(&self, blocks: Range<u64>) -> io::Result<()> {
        self.note(blocks, BlockKind::Data)
    }

    /// Makes blocks read as zeroes and frees their space.
    pub(super) fn free(&self, blocks: Range<u64>) -> io::Result<()> {
        let own = self.maps.read().any_data(&blocks);
        if own {
            // Before the journal: on a full disk this makes room for the record, and zeroes are what is asked for.
            let (offset, len) = byte_range(&blocks);
            self.layer.files.punch(offset, len)?;
        }
        self.note(blocks, BlockKind::Hole)
    }

    /// Frees what a failed write left in blocks that the layer does not hold, where it would only take up space.
    pub(super) fn free_leftovers(&self, blocks: Range<u64>) {
        let maps = self.maps();
        let mut at = blocks.start;
        while at < blocks.end {
            let (kind, run_end) = maps.run_at(at, blocks.end);
            if kind != Some(BlockKind::Data) {
                let (offset, len) = byte_range(&(at..run_end));
                drop(self.layer.files.punch(offset, len));
            }
            at = run_end;
        }
    }

    fn note(&self, blocks: Range<u64>, kind: BlockKind) -> io::Result<()> {
        // The maps change under the journal's lock, so that both have one order.
        let mut journal = self.layer.journal.lock();
        journal.append(&[(blocks.clone(), kind)])?;
        Arc::make_mut(&mut self.maps.write()).set(blocks, kind, self.layer.has_parent);
        Ok(())
    }

    fn run_at(&self, block: u64, end: u64) -> (Option<BlockKind>, u64) {
        self.maps.read().run_at(block, end)
    }
}

/// The layers of an open volume.
#[derive(Debug)]
pub(super) struct Chain {
    /// The writable layer.
    pub(super) top: Arc<Top>,
    /// The frozen ones, nearest first.
    pub(super) below: Vec<Frozen>,
}

impl Chain {
    /// The layer that holds `block`, if any does, and up to where (at most `end`) the same holds.
    pub(super) fn locate(&self, block: u64, end: u64) -> (Option<&Layer>, u64) {
        let (kind, top_end) = self.top.run_at(block, end);
        match kind {
            Some(BlockKind::Data) => (Some(&self.top.layer), top_end),
            Some(BlockKind::Hole) => (None, top_end),
            None => locate_in(&self.below, block, top_end),
        }
    }

    /// Fills `buf`; what no layer holds reads as zeroes.
    pub(super) fn read(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let blocks = blocks_touched(offset, buf.len());
        if self.top.all_data(&blocks) {
            return self.top.layer.files.read_at(buf, offset);
        }
        let (mut at, mut rest) = (offset, buf);
        while !rest.is_empty() {
            let (holder, run_end) = self.locate(at / BLOCK_BYTES, blocks.end);
            let len =
                usize::try_from(run_end * BLOCK_BYTES - at).map_or(rest.len(), |run| run.min(rest.len()));
            let (part, after) = rest.split_at_mut(len);
            match holder {
                Some(layer) => layer.files.read_at(part, at)?,
                None => part.fill(0),
            }
            at += u64::try_from(len).map_err(io::Error::other)?;
            rest = after;
        }
        Ok(())
    }
}

/// As [`Chain::locate`], in frozen layers.
pub(super) fn locate_in(below: &[Frozen], block: u64, end: u64) -> (Option<&Layer>, u64) {
    let mut end = end;
    for frozen in below {
        let (kind, run_end) = frozen.maps.run_at(block, end);
        end = run_end;
        match kind {
            Some(BlockKind::Data) => return (Some(&frozen.layer), end),
            Some(BlockKind::Hole) => return (None, end),
            None => {}
        }
    }
    (None, end)
}

/// The blocks that a range of bytes touches.
pub(super) fn blocks_touched(offset: u64, len: usize) -> Range<u64> {
    let end = offset + u64::try_from(len).expect("a buffer fits into 64 bits");
    offset / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES)
}

/// Offset and length of blocks, bytes.
pub(super) fn byte_range(blocks: &Range<u64>) -> (u64, u64) {
    (blocks.start * BLOCK_BYTES, (blocks.end - blocks.start) * BLOCK_BYTES)
}

/// Removes the files of a layer.
pub(super) fn remove_files(dir: &Dir, id: LayerId) {
    let data = (0..SEGMENTS).map(|segment| data_name(id, segment));
    for name in data.chain([journal_name(id)]) {
        match dir.remove(&name) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                let path = dir.path().join(name);
                tracing::warn!(file = %path.display(), error = %e, "left a file behind; the next open removes it");
            }
            _ => {}
        }
    }
}
