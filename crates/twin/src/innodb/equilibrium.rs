//! The dirty pages of a server in balance: as many turn dirty as page cleaner and eviction clean.
//!
//! Dirty pages of a class leave at their old end, whether they are evicted or written from the flush list. So their ages are
//! even from 0 to that of the oldest. A class that eviction alone keeps in balance has an oldest age of its own; of all
//! others the oldest page is as old as the page cleaner lets it become. That one age is searched: the older pages become, the
//! fewer are to be written, and the more the page cleaner writes.

use super::cleaner::{CleanerView, recommend};
use super::flavour::Settings;
use super::redo::RedoLimits;

/// How pages of a class turn dirty, and leave dirty, each transaction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DirtyFlow {
    /// Pages that turn dirty where all are clean; those that are dirty already do not.
    pub(crate) changes: f64,
    /// Pages that turn dirty however many are.
    pub(crate) fresh: f64,
    /// Pages of the class; None for classes whose pages are never changed twice.
    pub(crate) pages: Option<f64>,
    /// Dirty pages that are evicted, for each dirty page.
    pub(crate) evicted: f64,
}

impl DirtyFlow {
    /// Pages that turn dirty with so many dirty ones.
    fn dirtied(&self, dirty: f64) -> f64 {
        let clean = self.pages.map_or(1.0, |pages| (1.0 - dirty / pages.max(1.0)).max(0.0));
        self.fresh + self.changes * clean
    }

    /// Dirty pages where nothing but eviction cleans.
    fn by_eviction(&self) -> f64 {
        let again = self.pages.map_or(0.0, |pages| self.changes / pages.max(1.0));
        (self.fresh + self.changes) / (again + self.evicted).max(1e-12)
    }

    /// Dirty pages where each is written so many transactions after its first change.
    fn by_age(&self, age: f64) -> f64 {
        let again = self.pages.map_or(0.0, |pages| self.changes / pages.max(1.0));
        (self.fresh + self.changes) * age / (1.0 + again * age)
    }
}

/// The dirty pages of a class in balance.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct DirtyClass {
    /// Dirty pages.
    pub(crate) pages: f64,
    /// How many transactions ago the oldest of them turned dirty.
    pub(crate) age: f64,
    /// Pages that turn dirty, each transaction.
    pub(crate) dirtied: f64,
    /// Of them, those that eviction does not clean: the page cleaner must write them.
    pub(crate) left: f64,
}

impl DirtyClass {
    /// A class of which no page becomes older than so many transactions.
    pub(crate) fn at(flow: &DirtyFlow, oldest: f64) -> Self {
        let pages = flow.by_eviction().min(flow.by_age(oldest));
        let dirtied = flow.dirtied(pages);
        let age = if dirtied > 0.0 { (pages / dirtied).min(oldest) } else { 0.0 };
        Self { pages, age, dirtied, left: (dirtied - pages * flow.evicted).max(0.0) }
    }
}

/// What the page cleaner has in balance.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Equilibrium {
    /// The dirty pages of each class.
    pub(crate) classes: Vec<DirtyClass>,
    /// Pages of the flush list that it writes in a second.
    pub(crate) pages_per_s: f64,
}

/// A server at a throughput.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AtThroughput<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) limits: &'a RedoLimits,
    pub(crate) flows: &'a [DirtyFlow],
    /// Pages of the pool.
    pub(crate) pool: f64,
    /// Transactions a second.
    pub(crate) tps: f64,
    /// Redo of a transaction, bytes.
    pub(crate) redo_bytes: f64,
    /// Rounds of the page cleaner in a second: fewer than one where its writes take longer.
    pub(crate) rounds_per_s: f64,
}

/// Halvings of the search for the oldest age.
const HALVINGS: u32 = 60;
/// Rounds in which the page cleaner's average of its own pace settles.
const AVERAGES: u32 = 24;
/// Seconds of redo that the page cleaner looks ahead (`buf_flush_lsn_scan_factor` of `buf0flu.cc`).
const AHEAD_S: f64 = 3.0;

impl AtThroughput<'_> {
    /// The balance.
    pub(crate) fn solve(&self) -> Equilibrium {
        let oldest = self.oldest();
        let classes = self.classes(oldest);
        let left: f64 = classes.iter().map(|class| class.left).sum();
        Equilibrium { pages_per_s: left * self.tps, classes }
    }

    fn classes(&self, oldest: f64) -> Vec<DirtyClass> {
        self.flows.iter().map(|flow| DirtyClass::at(flow, oldest)).collect()
    }

    /// The age that the page cleaner lets pages reach, in transactions.
    fn oldest(&self) -> f64 {
        // Older than this no page is: eviction has it, or the redo log ends.
        let own = |flow: &DirtyFlow| DirtyClass::at(flow, 1e15).age;
        let evicted = self.flows.iter().map(own).fold(0.0, f64::max);
        let most = evicted.min(self.limit() / self.redo_bytes.max(1e-9));
        let (mut low, mut high) = (0.0, most);
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(low, high);
            let classes = self.classes(middle);
            let left = classes.iter().map(|class| class.left).sum::<f64>() * self.tps;
            if left > self.written(&classes, middle) { low = middle } else { high = middle }
        }
        high
    }

    /// The redo age at which pages are written as fast as they must be, bytes.
    fn limit(&self) -> f64 {
        if self.settings.flavour.is_mariadb() { self.limits.asynchronous } else { self.limits.synchronous }
    }

    /// Pages of the flush list that the page cleaner writes in a second.
    fn written(&self, classes: &[DirtyClass], oldest: f64) -> f64 {
        let ahead = AHEAD_S * self.tps;
        let young = oldest - ahead;
        let due = |class: &DirtyClass| class.dirtied * (class.age - young).clamp(0.0, ahead.min(class.age));
        let view = CleanerView {
            dirty: classes.iter().map(|class| class.pages).sum(),
            pool: self.pool,
            age: oldest * self.redo_bytes,
            pages_per_s: 0.0,
            pages_for_redo: classes.iter().map(due).sum::<f64>() / AHEAD_S,
        };
        let mut pages_per_s = 0.0;
        for _ in 0..AVERAGES {
            let round = recommend(self.settings, self.limits, &CleanerView { pages_per_s, ..view });
            pages_per_s = round.pages as f64 * self.rounds_per_s;
        }
        pages_per_s
    }
}

#[cfg(test)]
mod tests {
    use super::super::flavour::Flavour;
    use super::*;

    const FLOWS: [DirtyFlow; 2] = [
        // Evicted often, and hot pages that eviction never cleans.
        DirtyFlow { changes: 1.0, fresh: 0.0, pages: Some(1e6), evicted: 1e-4 },
        DirtyFlow { changes: 2.0, fresh: 0.0, pages: Some(20_000.0), evicted: 0.0 },
    ];

    #[test]
    fn as_many_pages_turn_dirty_as_eviction_and_page_cleaner_clean() {
        let settings = Settings::of(Flavour::MySql80, 1 << 32);
        let limits = RedoLimits::of(&settings);
        for tps in [20.0, 200.0, 2_000.0] {
            let server = AtThroughput {
                settings: &settings,
                limits: &limits,
                flows: &FLOWS,
                pool: 200_000.0,
                tps,
                redo_bytes: 100.0,
                rounds_per_s: 1.0,
            };
            let Equilibrium { classes, pages_per_s } = server.solve();
            let dirtied: f64 = classes.iter().map(|class| class.dirtied).sum();
            let evicted: f64 =
                classes.iter().zip(&FLOWS).map(|(class, flow)| class.pages * flow.evicted).sum();
            assert!(((dirtied - evicted) * tps / pages_per_s - 1.0).abs() < 1e-6, "{classes:?}");
            let oldest = classes.iter().map(|class| class.age).fold(0.0, f64::max);
            let written = server.written(&classes, oldest);
            // Whole pages, and whole percents of io_capacity, are written: few at a low throughput.
            assert!((written / pages_per_s - 1.0).abs() < 0.25, "{written}, not {pages_per_s}: {classes:?}");
        }
    }

    #[test]
    fn dirty_pages_of_a_class_are_as_old_as_they_are_many() {
        for flow in FLOWS {
            for oldest in [10.0, 1_000.0, 100_000.0] {
                let class = DirtyClass::at(&flow, oldest);
                assert!((class.age * class.dirtied - class.pages).abs() < 1e-6 * class.pages, "{class:?}");
                assert!(class.age <= oldest && class.left >= 0.0, "{class:?}");
            }
        }
    }
}
