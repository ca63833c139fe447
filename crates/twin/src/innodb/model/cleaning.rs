//! The rounds of the page cleaner, and where it begins in a run that is warm.

use ebbtide_volume::Nanos;

use super::super::cleaner::{CleanerView, Recommendation, may_sleep, recommend, recommend_idle, whole};
use super::{Event, Model, ROUND, SHORT_PAUSE, redo_horizon};

impl Model {
    pub(super) fn schedule_cleaner(&mut self, pause: Nanos) {
        if self.cleaner.next.is_none() && !self.cleaner.running {
            let at = self.now + pause;
            self.cleaner.next = Some(at);
            self.events.push(at, Event::Clean);
        }
    }

    /// Somebody waits for the page cleaner: it begins its next round now.
    pub(super) fn wake_cleaner(&mut self) {
        if !self.cleaner.running && self.now.since(self.cleaner.last) >= SHORT_PAUSE {
            self.clean();
        }
    }

    /// A round of the page cleaner: the end of the LRU list, then the flush list.
    pub(super) fn clean(&mut self) {
        self.cleaner.next = None;
        self.cleaner.running = true;
        let last = std::mem::replace(&mut self.cleaner.last, self.now);
        let needs_places = !self.pageless.is_empty() || self.pool.free() < self.settings.free_target() / 2;
        self.cleaner.asleep &= !needs_places;
        self.free_pages();
        self.average();
        let wanted = self.wanted(last);
        self.cleaner.urgent = wanted.urgent;
        self.cleaner.list_pages += wanted.pages.min(self.pool.flush_list().total());
        self.writer.add_list(wanted.pages);
        self.start_batches();
    }

    /// The pages of the flush list that a round writes.
    fn wanted(&mut self, last: Nanos) -> Recommendation {
        if let Some((target, urgent)) = self.cleaner.targets.next() {
            let most = self.settings.io_capacity_max.into();
            return Recommendation { pages: self.pool.flush_list().until(target, most), urgent };
        }
        let view = CleanerView {
            dirty: self.pool.flush_list().total() as f64,
            pool: self.pool.pages(),
            age: (self.lsn - self.pool.flush_list().oldest().unwrap_or(self.lsn)) as f64,
            pages_per_s: self.cleaner.pages_per_s,
            pages_for_redo: self.pages_for_redo(),
        };
        // A round is idle where a whole second had neither a change nor another round. Urgent flushing goes before: clients that
        // wait for the redo log change nothing either.
        let (lsn, since) = self.cleaner.changed;
        if lsn != self.lsn {
            self.cleaner.changed = (self.lsn, self.now);
        }
        let is_idle = lsn == self.lsn && self.now.since(since.max(last)) >= ROUND;
        let usual = recommend(&self.settings, &self.limits, &view);
        self.cleaner.asleep = may_sleep(&self.settings, &view) && (self.cleaner.asleep || usual.pages == 0);
        if self.cleaner.asleep {
            return Recommendation { pages: 0, urgent: false };
        }
        recommend_idle(&self.settings).filter(|_| is_idle && !usual.urgent).unwrap_or(usual)
    }

    /// Evicts pages from the end of the LRU list until enough are free.
    fn free_pages(&mut self) {
        let target = self.settings.free_target();
        let missing = (target + self.pool.owed()).saturating_sub(self.pool.free()).min(target);
        let mut dirty = 0;
        for _ in 0..missing {
            dirty += u64::from(self.pool.evict(&mut self.rng));
        }
        self.pool.add_free(missing - dirty);
        self.writer.add_lru(dirty);
        self.serve_pageless();
    }

    /// Pages a second and redo a second, averaged as the servers do: halfway to the newest value each interval.
    fn average(&mut self) {
        let (since, lsn) = self.cleaner.average_from;
        let passed = self.now.since(since).as_secs_f64();
        if lsn != 0 && passed < f64::from(self.settings.flushing_avg_loops) {
            return;
        }
        if lsn != 0 {
            let pages = self.cleaner.list_pages as f64 / passed;
            let redo = (self.lsn - lsn) as f64 / passed;
            self.cleaner.pages_per_s = f64::midpoint(self.cleaner.pages_per_s, pages);
            self.cleaner.redo_per_s = f64::midpoint(self.cleaner.redo_per_s, redo);
        }
        self.cleaner.list_pages = 0;
        self.cleaner.average_from = (self.now, self.lsn);
    }

    /// Dirty pages whose changes are in the next three seconds' worth of the oldest redo, for one second.
    fn pages_for_redo(&self) -> f64 {
        let Some(oldest) = self.pool.flush_list().oldest() else { return 0.0 };
        let target = oldest + whole(3.0 * self.cleaner.redo_per_s);
        let limit = 6 * u64::from(self.settings.io_capacity_max);
        self.pool.flush_list().until(target, limit) as f64 / 3.0
    }

    /// Brings the dirty pages to where page cleaner and eviction keep them at the throughput of the last seconds. A run
    /// that begins in the middle would else write what it was given too much for as long as a page stays in the pool.
    pub(super) fn balance(&mut self, tps: f64) {
        let Some(usual) = self.pool.usual_dirty().filter(|usual| *usual >= 1.0) else { return };
        let redo_per_s = tps * self.pool.shape().redo_bytes();
        let horizon = redo_horizon(self.pool.shape(), &self.settings, &self.limits);
        let cleaned = |share: f64| {
            let dirty = usual * share;
            // Pages leave the flush list at its old end, at the rate at which they come.
            let pages_for_redo = self.pool.dirty_flow(share).0 * tps;
            let view = |pages_per_s| CleanerView {
                dirty,
                pool: self.pool.pages(),
                age: horizon,
                pages_per_s,
                pages_for_redo,
            };
            (0..16).fold(0.0, |pages, _| recommend(&self.settings, &self.limits, &view(pages)).pages as f64)
        };
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..24 {
            let middle = f64::midpoint(low, high);
            let (dirtied, evicted) = self.pool.dirty_flow(middle);
            if dirtied * tps > evicted * tps + cleaned(middle) { low = middle } else { high = middle }
        }
        let pages_per_s = cleaned(high);
        let surplus = self.pool.flush_list().total() as f64 - usual * high;
        self.pool.take_oldest(whole(surplus.max(0.0)));
        self.cleaner.pages_per_s = pages_per_s;
        self.cleaner.redo_per_s = redo_per_s;
    }
}
