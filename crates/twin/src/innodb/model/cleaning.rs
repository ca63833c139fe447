//! The rounds of the page cleaner, and where it begins in a run that is warm.

use ebbtide_volume::Nanos;

use super::super::cleaner::{CleanerView, Recommendation, may_sleep, recommend, recommend_idle, whole};
use super::super::equilibrium::{AtThroughput, DirtyClass, Equilibrium};
use super::{Event, Model, ROUND, SHORT_PAUSE, redo_horizon};

/// How often dirty pages are balanced before the measurement begins.
const BALANCE_EVERY: Nanos = Nanos::from_secs(4);
/// Ages of dirty pages that are told apart: a quarter of a second of redo, as the page cleaner looks ahead for three seconds; and at
/// most so many of a class.
const GRAIN_S: f64 = 0.25;
const MOST_COHORTS: f64 = 65_536.0;
/// The same while the throughput is not known.
const COHORTS: f64 = 512.0;

/// When dirty pages were balanced last, with the transactions and the rounds up to then, and the begin of the last round.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Balanced {
    at: Nanos,
    finished: u64,
    rounds: u64,
    begun: Nanos,
}

/// Why a round of the page cleaner begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waking {
    /// Its time has come.
    Planned,
    /// Somebody waits for a page, or for the redo log.
    Woken,
}

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
            self.clean(Waking::Woken);
        }
    }

    /// A round of the page cleaner: the end of the LRU list, then the flush list.
    pub(super) fn clean(&mut self, waking: Waking) {
        self.cleaner.next = None;
        self.cleaner.running = true;
        let last = std::mem::replace(&mut self.cleaner.last, self.now);
        if waking == Waking::Planned || self.settings.flavour.is_mariadb() {
            self.cleaner.begun = self.now;
            self.cleaner.rounds += 1;
        }
        let needs_places = !self.pageless.is_empty() || self.pool.free() < self.settings.free_target() / 2;
        self.cleaner.asleep &= !needs_places;
        self.free_pages();
        self.average();
        let wanted = self.wanted(last, waking);
        self.cleaner.urgent = wanted.urgent;
        self.cleaner.list_pages += wanted.pages.min(self.pool.flush_list().total());
        self.writer.add_list(wanted.pages);
        self.start_batches();
    }

    /// The pages of the flush list that a round writes. Woken between two seconds, MySQL's page cleaner frees pages of the LRU list
    /// and writes none of the flush list, unless the redo log ends (`buf_flush_page_coordinator_thread` of `buf0flu.cc`).
    fn wanted(&mut self, last: Nanos, waking: Waking) -> Recommendation {
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
        if waking == Waking::Woken && !self.settings.flavour.is_mariadb() && !usual.urgent {
            return Recommendation { pages: 0, urgent: false };
        }
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

    /// The dirty pages with which a run begins, before its throughput is known: none is older than the horizon.
    pub(super) fn begin_balanced(&mut self) {
        let redo_bytes = self.pool.shape().redo_bytes();
        if redo_bytes <= 0.0 {
            return;
        }
        let horizon = redo_horizon(self.pool.shape(), &self.settings, &self.limits);
        let flows = self.pool.dirty_flows(self.costs.reads);
        let classes: Vec<_> = flows.iter().map(|flow| DirtyClass::at(flow, horizon / redo_bytes)).collect();
        self.set_dirty(&classes, horizon / COHORTS);
    }

    fn set_dirty(&mut self, classes: &[DirtyClass], grain: f64) {
        let redo_bytes = self.pool.shape().redo_bytes();
        let oldest = classes.iter().map(|class| class.age).fold(0.0, f64::max) * redo_bytes;
        let grain = whole(grain.max(oldest / MOST_COHORTS)).max(1);
        self.pool.set_dirty(classes, self.lsn, redo_bytes, grain);
    }

    /// Brings the dirty pages to where page cleaner and eviction keep them at the throughput of the last seconds. A run
    /// that begins elsewhere would write more or fewer pages for as long as a page stays in the pool, which may be hours.
    pub(super) fn rebalance(&mut self) {
        let redo_bytes = self.pool.shape().redo_bytes();
        let Balanced { at: since, finished, rounds, begun } = self.cleaner.balanced;
        let passed = self.now.since(since);
        let all_finished = self.meter.all_finished();
        if redo_bytes <= 0.0 || passed < BALANCE_EVERY || all_finished == finished {
            return;
        }
        // From the begin of one round to that of another: whole seconds have too few of them.
        let rounds_per_s = (self.cleaner.rounds - rounds) as f64
            / self.cleaner.begun.since(begun).as_secs_f64().max(passed.as_secs_f64() / 2.0);
        self.cleaner.balanced = Balanced {
            at: self.now,
            finished: all_finished,
            rounds: self.cleaner.rounds,
            begun: self.cleaner.begun,
        };
        let measured = (all_finished - finished) as f64 / passed.as_secs_f64();
        // More page writes than in balance leave fewer transactions, which then ask for fewer page writes: half of the way each
        // time converges, the whole way swings.
        let tps = self.cleaner.balanced_tps.map_or(measured, |before| f64::midpoint(before, measured));
        self.cleaner.balanced_tps = Some(tps);
        let flows = self.pool.dirty_flows(self.costs.reads);
        let balance = AtThroughput {
            settings: &self.settings,
            limits: &self.limits,
            flows: &flows,
            pool: self.pool.pages(),
            tps,
            redo_bytes,
            rounds_per_s,
        };
        let Equilibrium { classes, pages_per_s } = balance.solve();
        let redo_per_s = tps * redo_bytes;
        self.set_dirty(&classes, redo_per_s * GRAIN_S);
        self.cleaner.pages_per_s = pages_per_s;
        self.cleaner.redo_per_s = redo_per_s;
        self.cleaner.average_from = (self.now, self.lsn);
        self.cleaner.list_pages = 0;
    }
}
