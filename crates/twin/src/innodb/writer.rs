//! Page writes: batches through the doublewrite file, then to the data files.

use ebbtide_volume::Nanos;

use super::buffer::{BufferPool, around};
use super::disk::Disk;
use super::file_kind::FileKind;
use super::flavour::Settings;

use rand_core::Rng;

/// A batch on its way.
#[derive(Debug, Clone, Copy)]
struct Batch {
    pages: u32,
    lru: bool,
    stage: Stage,
    /// Position of the oldest change in the batch or behind it.
    oldest: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Doublewrite,
    Pages,
}

/// What became of a batch at an event of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Its next event is at this time.
    Until(Nanos),
    /// All pages are written. So many of them are free now.
    Done { freed: u64 },
}

/// The batches and what waits to be written.
#[derive(Debug)]
pub(crate) struct PageWriter {
    batches: Vec<Option<Batch>>,
    batch_pages: u32,
    page_bytes: u32,
    doublewrite: bool,
    flush_after_batch: bool,
    /// Whether that is of the data files too.
    flush_data: bool,
    /// Page writes for each page that is written, from calibration.
    scale: f64,
    lru: u64,
    list: u64,
}

impl PageWriter {
    pub(crate) fn new(settings: &Settings, scale: f64) -> Self {
        let (batch_pages, batches) = settings.write_batches();
        Self {
            batches: vec![None; batches.max(1) as usize],
            batch_pages: batch_pages.max(1),
            page_bytes: settings.page_bytes,
            doublewrite: settings.doublewrite,
            flush_after_batch: settings.flush_after_batch,
            flush_data: !(settings.doublewrite && settings.doublewrite_fast),
            scale,
            lru: 0,
            list: 0,
        }
    }

    /// Dirty pages at the end of the LRU list are to be written and freed.
    pub(crate) const fn add_lru(&mut self, pages: u64) {
        self.lru += pages;
    }

    /// The oldest pages of the flush list are to be written.
    pub(crate) const fn add_list(&mut self, pages: u64) {
        self.list += pages;
    }

    /// Whether nothing is being written or waits to be.
    pub(crate) fn is_idle(&self) -> bool {
        self.lru == 0 && self.list == 0 && self.batches.iter().all(Option::is_none)
    }

    /// The position up to which all changes are in the data files; `lsn` where nothing is dirty.
    pub(crate) fn checkpoint(&self, pool: &BufferPool, lsn: u64) -> u64 {
        let writing = self.batches.iter().flatten().filter_map(|batch| batch.oldest);
        writing.chain(pool.flush_list().oldest()).min().unwrap_or(lsn)
    }

    /// Starts a batch where one may and there is something to write; returns its number and its first event.
    pub(crate) fn start(
        &mut self,
        now: Nanos,
        disk: &mut Disk,
        pool: &mut BufferPool,
        rng: &mut impl Rng,
    ) -> Option<(usize, Nanos)> {
        let slot = self.batches.iter().position(Option::is_none)?;
        let most = u64::from(self.batch_pages);
        let oldest = pool.flush_list().oldest();
        let (pages, lru) = if self.lru > 0 {
            let pages = self.lru.min(most);
            self.lru -= pages;
            (pages, true)
        } else {
            let wanted = self.list.min(most);
            let pages = pool.take_oldest(wanted);
            self.list = if pages < wanted { 0 } else { self.list - pages };
            (pages, false)
        };
        if pages == 0 {
            return None;
        }
        let pages = u32::try_from(pages).expect("at most a batch");
        let batch = Batch { pages, lru, stage: Stage::Doublewrite, oldest: oldest.filter(|_| !lru) };
        self.batches[slot] = Some(batch);
        match self.advance(slot, now, disk, rng, !self.doublewrite) {
            Progress::Until(at) => Some((slot, at)),
            Progress::Done { .. } => unreachable!("a batch that starts has pages to write"),
        }
    }

    /// The event of a batch.
    pub(crate) fn event(&mut self, slot: usize, now: Nanos, disk: &mut Disk, rng: &mut impl Rng) -> Progress {
        self.advance(slot, now, disk, rng, true)
    }

    fn advance(
        &mut self,
        slot: usize,
        now: Nanos,
        disk: &mut Disk,
        rng: &mut impl Rng,
        copied: bool,
    ) -> Progress {
        let mut batch = self.batches[slot].expect("an event belongs to a batch");
        let progress = match batch.stage {
            Stage::Doublewrite if !copied => {
                let pages = around(f64::from(batch.pages) * self.scale, rng).max(1);
                let at = disk.submit(FileKind::Doublewrite, pages * self.page_bytes, now);
                return Progress::Until(self.flushed(FileKind::Doublewrite, at, now, disk));
            }
            Stage::Doublewrite => {
                batch.stage = Stage::Pages;
                let pages = around(f64::from(batch.pages) * self.scale, rng).max(1);
                let writes = (0..pages).map(|_| disk.submit(FileKind::DataWrite, self.page_bytes, now));
                let at = writes.max().expect("a batch has a page");
                Progress::Until(self.flushed(FileKind::DataWrite, at, now, disk))
            }
            Stage::Pages => Progress::Done { freed: if batch.lru { u64::from(batch.pages) } else { 0 } },
        };
        self.batches[slot] = if matches!(progress, Progress::Done { .. }) { None } else { Some(batch) };
        progress
    }

    fn flushed(&self, kind: FileKind, at: Nanos, now: Nanos, disk: &mut Disk) -> Nanos {
        let flushes = self.flush_after_batch && (self.flush_data || kind == FileKind::Doublewrite);
        if flushes { at + disk.flush(kind, now).since(now) } else { at }
    }
}
