//! Purge: what becomes of undo records once no transaction needs the rows that they have kept.
//!
//! A transaction that has committed is purged when all that were running then have ended. Purge reads its undo records,
//! and removes what it has marked as deleted from the pages of tables and indexes. These pages are usually still in the
//! pool. Where they are not, purge reads them again, by so many threads; then the history grows, and with it the undo
//! pages. MySQL: `trx0purge.cc`, `row0purge.cc`; MariaDB the same.

use std::collections::VecDeque;

use super::flavour::Settings;

/// A transaction that waits to be purged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Unpurged {
    /// Its kind.
    pub(crate) kind: usize,
    /// How many transactions had begun when it committed.
    pub(crate) seen: f64,
    /// Its position in the redo log.
    pub(crate) lsn: u64,
}

/// The history, and the reads of the purge threads.
#[derive(Debug)]
pub(crate) struct Purger {
    history: VecDeque<Unpurged>,
    history_bytes: f64,
    page_bytes: f64,
    /// Undo pages beyond those that are always in use, at the most so far.
    grown: u64,
    /// Pages to be read, and reads on their way.
    wanted: u64,
    reading: u32,
    threads: u32,
    batch: u64,
}

impl Purger {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            history: VecDeque::new(),
            history_bytes: 0.0,
            page_bytes: f64::from(settings.page_bytes),
            grown: 0,
            wanted: 0,
            reading: 0,
            threads: settings.purge_threads.max(1),
            batch: u64::from(settings.purge_batch.max(1)),
        }
    }

    /// A transaction commits that has left so many bytes of undo records; returns the undo pages that the history has never
    /// had before.
    pub(crate) fn add(&mut self, committed: Unpurged, undo_bytes: f64) -> u64 {
        self.history.push_back(committed);
        self.history_bytes += undo_bytes;
        let pages = super::cleaner::whole(self.history_bytes / self.page_bytes);
        let new = pages.saturating_sub(self.grown);
        self.grown += new;
        new
    }

    /// The next transaction to purge: its successors began when `oldest` had, which is the oldest that runs. None while
    /// a batch still reads.
    pub(crate) fn next(&mut self, oldest: f64, undo_bytes: impl Fn(usize) -> f64) -> Option<Unpurged> {
        if self.wanted >= self.batch {
            return None;
        }
        let next = *self.history.front().filter(|next| next.seen <= oldest)?;
        self.history.pop_front();
        self.history_bytes = (self.history_bytes - undo_bytes(next.kind)).max(0.0);
        Some(next)
    }

    /// Pages are to be read.
    pub(crate) const fn want(&mut self, pages: u64) {
        self.wanted += pages;
    }

    /// A thread begins to read; false where all do, or nothing is to be read.
    pub(crate) const fn begin_read(&mut self) -> bool {
        let some = self.wanted > 0 && self.reading < self.threads;
        if some {
            self.wanted -= 1;
            self.reading += 1;
        }
        some
    }

    /// A read is done.
    pub(crate) const fn end_read(&mut self) {
        self.reading -= 1;
    }

    /// Transactions that wait to be purged.
    pub(crate) fn history(&self) -> u64 {
        self.history.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::super::flavour::Flavour;
    use super::*;

    fn purger() -> Purger {
        Purger::new(&Settings { purge_threads: 2, purge_batch: 3, ..Settings::of(Flavour::MySql80, 1 << 30) })
    }

    fn committed(seen: f64) -> Unpurged {
        Unpurged { kind: 0, seen, lsn: 0 }
    }

    #[test]
    fn a_transaction_is_purged_when_those_that_ran_at_its_commit_have_ended() {
        let mut purger = purger();
        purger.add(committed(10.0), 100.0);
        purger.add(committed(20.0), 100.0);
        assert_eq!(purger.next(9.0, |_| 100.0), None);
        assert_eq!(purger.next(15.0, |_| 100.0), Some(committed(10.0)));
        assert_eq!(purger.next(15.0, |_| 100.0), None);
        assert_eq!(purger.history(), 1);
    }

    #[test]
    fn undo_pages_are_new_only_where_the_history_is_longer_than_ever() {
        let mut purger = purger();
        let pages: u64 = (0..10).map(|n| purger.add(committed(f64::from(n)), 16_384.0)).sum();
        assert_eq!(pages, 10);
        while purger.next(1e9, |_| 16_384.0).is_some() {}
        let again: u64 = (0..10).map(|n| purger.add(committed(f64::from(n)), 16_384.0)).sum();
        assert_eq!(again, 0);
        assert_eq!(purger.add(committed(11.0), 16_384.0), 1);
    }

    #[test]
    fn a_batch_that_reads_holds_back_the_next_one() {
        let mut purger = purger();
        purger.add(committed(1.0), 0.0);
        purger.want(5);
        assert_eq!(purger.next(9.0, |_| 0.0), None);
        assert!(purger.begin_read() && purger.begin_read() && !purger.begin_read(), "two threads read");
        purger.end_read();
        assert!(purger.begin_read());
        assert_eq!(purger.next(9.0, |_| 0.0), Some(committed(1.0)));
    }
}
