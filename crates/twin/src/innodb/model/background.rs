//! What goes on beside the clients: purge, and pages that nobody waits for.

use ebbtide_volume::Nanos;

use super::super::cleaner::whole;
use super::super::file_kind::FileKind;
use super::super::purge::Unpurged;
use super::super::shape::EXTENT;
use super::{Event, Model, PURGE_ROUND};

/// Bytes of an I/O of read-ahead.
const READ_AHEAD: u32 = 256 * 1024;

impl Model {
    /// Reads the pages of an extent, of which one has its place already. They are one after the other on the volume, and
    /// the block layer makes I/Os of 256 KiB of them. Returns when the last one is there.
    pub(super) fn read_extent(&mut self) -> Nanos {
        let pages = whole(EXTENT);
        self.pool.owe_free(pages - 1);
        let ios = (pages * u64::from(self.settings.page_bytes)).div_ceil(READ_AHEAD.into());
        let reads = (0..ios).map(|_| self.disk.submit(FileKind::DataRead, READ_AHEAD, self.now));
        reads.max().expect("an extent is read in one I/O at least")
    }

    /// Reads a page that no client waits for.
    pub(super) fn read_for_nobody(&mut self) {
        self.pool.owe_free(1);
        self.disk.submit(FileKind::DataRead, self.settings.page_bytes, self.now);
    }

    /// A transaction leaves undo records to purge. Where the history is longer than ever, it needs new undo pages.
    pub(super) fn leave_undo(&mut self, committed: Unpurged) {
        let Some(purger) = &mut self.purger else { return };
        let undo_bytes = self.pool.shape().types[committed.kind].undo_bytes;
        let new = purger.add(committed, undo_bytes);
        if new > 0 {
            self.pool.owe_free(new);
            let undo = self.pool.shape().undo_class();
            for _ in 0..new {
                self.pool.changed(undo.as_slice(), committed.lsn);
            }
        }
    }

    /// Purge takes what no transaction needs any more, until a batch has to read.
    pub(super) fn purge(&mut self) {
        let running = self.clients.iter().filter_map(|client| client.view);
        let oldest = running.fold(self.pool.seen(), f64::min);
        let Self { pool, rng, lsn, purger, settings, .. } = self;
        let Some(purger) = purger else { return };
        let mut dirtied = Vec::new();
        while let Some(next) = purger.next(oldest, |kind| pool.shape().types[kind].undo_bytes) {
            let age = pool.seen() - next.seen;
            let mut reads = u64::from(pool.purge(next.kind, age, next.lsn, rng));
            pool.take_dirtied(&mut dirtied);
            pool.changed(&dirtied, *lsn);
            if pool.forgets(age) {
                let of_undo = pool.shape().types[next.kind].undo_bytes / f64::from(settings.page_bytes);
                let pages = super::around(of_undo, rng);
                reads += u64::from(pool.purge_undo(pages, rng));
            }
            purger.want(reads);
        }
        self.read_for_purge();
        self.events.push(self.now + PURGE_ROUND, Event::Purge);
    }

    /// A page that purge has read is there.
    pub(super) fn purged(&mut self) {
        if let Some(purger) = &mut self.purger {
            purger.end_read();
        }
        self.read_for_purge();
    }

    fn read_for_purge(&mut self) {
        while self.purger.as_mut().is_some_and(super::Purger::begin_read) {
            self.pool.owe_free(1);
            let at = self.disk.submit(FileKind::DataRead, self.settings.page_bytes, self.now);
            self.events.push(at, Event::Purged);
        }
    }
}
