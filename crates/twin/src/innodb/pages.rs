//! What a workload does to the buffer pool: classes of pages that are used alike, and which of them are cached.
//!
//! The state is kept for each class and not for each page, so that a run costs the same for 1 GiB and 10 TiB of data.
//! Pages of a class are referenced independently and alike; a pool that evicts the least recently used page then
//! caches each page for a *characteristic time* after its last reference (Che, Tung, Wang 2002). It is counted in
//! transactions here, since all references come from them.

use super::flavour::Settings;

/// Pages that are used alike.
#[derive(Debug, Clone, PartialEq)]
pub struct PageClass {
    /// The table or index.
    pub name: String,
    /// What becomes of a page of it.
    pub kind: PageKind,
    /// References of a transaction on average, to all pages of the class together; revisits apart.
    pub references: f64,
    /// Share of the references that change the page, 0 to 1.
    pub modified: f64,
    /// Leaf pages of a secondary index that is not unique: the change buffer keeps changes of pages that are missing.
    pub secondary: bool,
}

/// What becomes of a page.
#[derive(Debug, Clone, PartialEq)]
pub enum PageKind {
    /// It is referenced again and again.
    Reused {
        /// Pages.
        pages: f64,
        /// References that follow earlier ones.
        revisits: Option<Revisits>,
    },
    /// It is referenced for a while and never again: the end of a table that grows, or the place where a queue is read.
    Once {
        /// Whether it is read from the volume first; a new page is not.
        read: bool,
    },
    /// What was measured of a server, for a pool of each size. `references` and `modified` are not used.
    Observed(MissCurve),
}

/// References to pages that were referenced a while ago (TPC-C's Stock-Level looks at the items of the last orders).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Revisits {
    /// The oldest reference that is looked at, in transactions; all ages up to it are alike.
    pub window: f64,
    /// Transactions between two revisits of a page, on average.
    pub interval: f64,
    /// Revisits of a transaction on average.
    pub references: f64,
}

/// Pages read and written by a transaction, by the size of the pool.
#[derive(Debug, Clone, PartialEq)]
pub struct MissCurve {
    /// Rising by `pool_pages`; at least one.
    pub points: Vec<CurvePoint>,
    /// Pages of the data, where that is known: nothing is read of a page cache that holds them.
    pub data_pages: Option<f64>,
}

/// What a transaction reads and writes with a pool of one size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CurvePoint {
    /// Pages of the pool.
    pub pool_pages: f64,
    /// Pages read by a transaction.
    pub reads: f64,
    /// Pages written by a transaction, without doublewrite.
    pub writes: f64,
}

/// How far reads and writes grow beyond the smallest measured pool.
const MOST_EXTRAPOLATION: f64 = 1.5;

impl MissCurve {
    /// Reads and writes with a pool of so many pages: between two points as straight over the logarithm of the size;
    /// beyond the largest as there; below the smallest as the first two points rise, at most by half.
    #[must_use]
    pub fn at(&self, pool_pages: f64) -> (f64, f64) {
        let above = self.points.iter().position(|point| point.pool_pages >= pool_pages);
        let (a, b) = match (above, self.points.len()) {
            (_, 0) => return (0.0, 0.0),
            (None, n) => return (self.points[n - 1].reads, self.points[n - 1].writes),
            (Some(0), 1) => return (self.points[0].reads, self.points[0].writes),
            (Some(0), _) => (self.points[0], self.points[1]),
            (Some(n), _) => (self.points[n - 1], self.points[n]),
        };
        let share = (pool_pages.max(1.0) / a.pool_pages).ln() / (b.pool_pages / a.pool_pages).ln();
        let between = |a: f64, b: f64| (a + (b - a) * share).clamp(0.0, a.max(b) * MOST_EXTRAPOLATION);
        (between(a.reads, b.reads), between(a.writes, b.writes))
    }
}

/// What of a buffer pool decides which pages it has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pool {
    /// Pages.
    pub pages: f64,
    /// The part of the LRU list behind its midpoint, 0 to 1. A page that is read comes to its begin, and to the begin of the
    /// whole list when it is referenced again. 1: a list without a midpoint.
    pub old_share: f64,
    /// Of changes to pages of secondary indexes that are missing, those that the change buffer keeps, 0 to 1.
    pub buffered: f64,
    /// Changes that it has kept of a page when it merges them: one read of the page does for so many.
    pub per_merge: f64,
}

/// A shorter list has no midpoint (`BUF_LRU_OLD_MIN_LEN` of `buf0lru.cc`).
const LEAST_WITH_MIDPOINT: f64 = 512.0;
/// Bytes that a change takes in the change buffer: the entry with what it is for, on pages two thirds full.
const BUFFERED_CHANGE: f64 = 60.0;
/// Largest share of the pool that the change buffer takes (`innodb_change_buffer_max_size`).
const CHANGE_BUFFER: f64 = 0.25;
/// Changes of a page that a merge finds, at most: background merges go on while the buffer is not full.
const MOST_PER_MERGE: f64 = 100.0;

impl Pool {
    /// A pool of so many pages without a midpoint of its list and without a change buffer.
    #[must_use]
    pub const fn plain(pages: f64) -> Self {
        Self { pages, old_share: 1.0, buffered: 0.0, per_merge: 1.0 }
    }

    /// The pool of a server with these classes of pages.
    #[must_use]
    pub fn of(settings: &Settings, classes: &[PageClass]) -> Self {
        let pages = settings.pool_pages();
        let indexed: f64 = classes.iter().filter(|class| class.secondary).map(PageClass::pages).sum();
        let records = CHANGE_BUFFER * pages * f64::from(settings.page_bytes) / BUFFERED_CHANGE;
        let per_merge = (1.0 + records / indexed.max(1.0)).min(MOST_PER_MERGE);
        let old_share = if pages < LEAST_WITH_MIDPOINT { 1.0 } else { settings.old_blocks_pct / 100.0 };
        Self { pages, old_share, buffered: settings.change_buffering, per_merge }
    }
}

/// How long the pool keeps a page, in transactions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Residence {
    /// From the midpoint of the list to its end: so long stays a page that is read and not referenced again.
    pub(crate) old: f64,
    /// From the begin of the list to its midpoint.
    pub(crate) young: f64,
}

impl Residence {
    /// That of a list without a midpoint.
    pub(crate) const fn plain(kept: f64) -> Self {
        Self { old: kept, young: 0.0 }
    }

    /// How long a page stays after its last reference, on average of those with such a rate of references. A page is
    /// absent, then in the old part until its next reference or its end, and young for as long as no gap between two
    /// references is longer than the young part. The probability to be absent is that of a plain list with this time.
    fn kept(&self, rate: f64) -> f64 {
        if self.young == 0.0 || rate <= 0.0 {
            return self.old;
        }
        ((rate * self.old).exp_m1() * (rate * self.young).exp()).ln_1p() / rate
    }
}

/// What a class does per transaction once the pool keeps pages for a time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct ClassState {
    /// Probability that a reference finds its page missing.
    pub(crate) miss: f64,
    /// Pages that turn dirty where they are clean, each transaction: changes that find their page, and merges.
    pub(crate) changes: f64,
    /// Of changes, those that the change buffer keeps where the page is missing, and of these, the reads of merges.
    pub(crate) buffered: f64,
    pub(crate) merges: f64,
    /// Of `changes`, those of merges: their pages were missing, so that none is dirty already.
    pub(crate) merged: f64,
    /// The same of a revisit.
    pub(crate) revisit_miss: f64,
    /// Pages that are evicted, each transaction: those that it brings in, in the long run.
    pub(crate) evicted: f64,
    /// Pages that are evicted dirty and pages that are dirty, in the long run, where nothing but eviction cleans.
    pub(crate) dirty_share: f64,
    pub(crate) dirty: f64,
    /// Pages cached, and those of them in the old part of the list.
    pub(crate) cached: f64,
    pub(crate) old: f64,
    /// Pages that turn dirty, each transaction; of observed classes only.
    pub(crate) dirtied: f64,
    /// Pages read, each transaction; of observed classes only.
    pub(crate) reads: f64,
}

impl PageClass {
    /// Pages of a class that has a number of them.
    pub(crate) const fn pages(&self) -> f64 {
        match &self.kind {
            PageKind::Reused { pages, .. } => *pages,
            PageKind::Once { .. } | PageKind::Observed(_) => 0.0,
        }
    }

    /// The class where the pool keeps pages for `stay`. The pages of `pool` are those that are cached, which is what
    /// observed classes go by.
    pub(crate) fn state(&self, stay: Residence, pool: &Pool) -> ClassState {
        // A new page begins young, and one that is read does not.
        let kept = |read: bool| stay.old + if read { 0.0 } else { stay.young };
        match &self.kind {
            PageKind::Reused { pages, revisits } => self.reused(*pages, *revisits, stay, pool),
            PageKind::Once { read } => ClassState {
                changes: self.references * self.modified,
                miss: if *read { 1.0 } else { 0.0 },
                evicted: self.references,
                dirty_share: self.modified,
                dirty: self.references * self.modified * kept(*read),
                cached: self.references * kept(*read),
                old: self.references * stay.old,
                ..ClassState::default()
            },
            PageKind::Observed(curve) => {
                let (reads, writes) = curve.at(pool.pages);
                let evicted = reads.max(writes);
                let dirty_share = if evicted > 0.0 { writes / evicted } else { 0.0 };
                let dirty = pool.pages * dirty_share;
                ClassState {
                    evicted,
                    dirty_share,
                    dirty,
                    cached: pool.pages,
                    changes: writes,
                    dirtied: writes,
                    reads,
                    ..ClassState::default()
                }
            }
        }
    }

    fn reused(&self, pages: f64, revisits: Option<Revisits>, stay: Residence, pool: &Pool) -> ClassState {
        let rate = self.references / pages.max(1e-9);
        let kept = stay.kept(rate);
        let (longer, revisit_age) = revisits.map_or((kept, 0.0), |revisits| revisits.at(kept));
        let (buffered, merges) =
            if self.secondary { (pool.buffered, pool.buffered / pool.per_merge) } else { (0.0, 0.0) };
        // References that bring a missing page in: all but those that are buffered without a merge.
        let bringing = 1.0 - self.modified * (buffered - merges);
        // A page is absent where no reference, or revisit of one, lies within the time that the pool keeps it. It stays
        // absent the longer the fewer references bring it in.
        let miss = 1.0 / (1.0 + bringing * (rate * longer).exp_m1());
        let revisit_miss = miss * revisit_age;
        let revisited = revisits.map_or(0.0, |revisits| revisits.references) * revisit_miss;
        let clean = 1.0 - self.modified;
        // A residence has a geometric number of references; the page leaves clean where none of them changed it.
        // The first change comes before the end of the residence with the odds of the two.
        let dirty_share =
            if self.modified > 0.0 { self.modified / (self.modified + miss * clean) } else { 0.0 };
        let evicted = self.references * bringing * miss;
        let changes = self.references * self.modified * (1.0 - miss * (buffered - merges));
        let dirty =
            if changes > 0.0 { (pages * (1.0 - evicted * dirty_share / changes)).max(0.0) } else { 0.0 };
        let all = evicted + revisited;
        ClassState {
            miss,
            changes,
            buffered,
            merges,
            merged: self.references * self.modified * miss * merges,
            revisit_miss,
            evicted: all,
            dirty_share: if all > 0.0 { dirty_share * evicted / all } else { 0.0 },
            dirty,
            cached: pages * (1.0 - miss),
            old: pages * (1.0 - miss) * (-rate * stay.young).exp(),
            ..ClassState::default()
        }
    }
}

impl Revisits {
    /// How long a page stays because it is revisited, in transactions, and the probability that a revisit finds that
    /// both the reference it follows and the last revisit are longer ago than `kept`.
    fn at(&self, kept: f64) -> (f64, f64) {
        let unvisited = (-kept / self.interval).exp();
        let longer = kept + (self.window - kept).max(0.0) * (1.0 - unvisited);
        (longer, (1.0 - kept / self.window).max(0.0) * unvisited)
    }
}

/// How many transactions a page stays after its last reference in a pool whose list has no midpoint; none where all
/// pages fit.
#[must_use]
pub fn characteristic_time(classes: &[PageClass], pool: &Pool) -> Option<f64> {
    if let [PageClass { kind: PageKind::Observed(curve), .. }] = classes {
        let (reads, writes) = curve.at(pool.pages);
        return (reads.max(writes) > 1e-6).then(|| pool.pages / reads.max(writes));
    }
    let cached = |kept: f64| sums(classes, Residence::plain(kept), pool).0;
    let (mut low, mut high) = (0.0_f64, 1e12_f64);
    if cached(high) <= pool.pages {
        return None;
    }
    while high / (low.max(1e-3)) > 1.000_001 {
        let middle = if low == 0.0 { high / 1e3 } else { (low * high).sqrt() };
        if cached(middle) < pool.pages {
            low = middle;
        } else {
            high = middle;
        }
        if high < 1e-3 {
            break;
        }
    }
    Some(high)
}

/// Pages cached, and those in the old part of the list.
fn sums(classes: &[PageClass], stay: Residence, pool: &Pool) -> (f64, f64) {
    classes
        .iter()
        .map(|class| class.state(stay, pool))
        .fold((0.0, 0.0), |(cached, old), state| (cached + state.cached, old + state.old))
}

/// Halvings of a search on a logarithmic scale: they leave less than a thousandth.
const HALVINGS: u32 = 44;

/// How long the pool keeps a page in both parts of its list; none where all pages fit.
pub(crate) fn residence(classes: &[PageClass], pool: &Pool) -> Option<Residence> {
    let kept = characteristic_time(classes, pool)?;
    let observed = classes.iter().any(|class| matches!(class.kind, PageKind::Observed(_)));
    if pool.old_share >= 1.0 || observed {
        return Some(Residence::plain(kept));
    }
    let search = |from: f64, to: f64, below: &dyn Fn(f64) -> bool| {
        let (mut low, mut high) = (from, to);
        for _ in 0..HALVINGS {
            let middle = (low * high).sqrt();
            if below(middle) { low = middle } else { high = middle }
        }
        high
    };
    // The young part that fills the pool beside an old one, and the old part that has its share of the pages.
    let with = |old: f64| {
        let young = search(1e-6 * kept, 1e9 * kept, &|young| {
            sums(classes, Residence { old, young }, pool).0 < pool.pages
        });
        Residence { old, young }
    };
    let old =
        search(1e-6 * kept, kept, &|old| sums(classes, with(old), pool).1 < pool.old_share * pool.pages);
    Some(with(old))
}

/// Pages that a transaction reads and writes in the long run, where pages are written when they are evicted.
#[must_use]
pub fn pages_per_transaction(classes: &[PageClass], pool: &Pool) -> (f64, f64) {
    let stay = residence(classes, pool);
    let state = |class: &PageClass| class.state(stay.unwrap_or(Residence::plain(1e12)), pool);
    classes.iter().fold((0.0, 0.0), |(reads, writes), class| {
        let at = state(class);
        let read = match &class.kind {
            PageKind::Reused { revisits, .. } => {
                let buffered = class.modified * (at.buffered - at.merges);
                class.references * (1.0 - buffered) * at.miss
                    + revisits.map_or(0.0, |r| r.references) * at.revisit_miss
            }
            PageKind::Once { .. } => class.references * at.miss,
            PageKind::Observed(_) => at.reads,
        };
        let written = if stay.is_some() { at.evicted * at.dirty_share } else { 0.0 };
        (reads + read, writes + written)
    })
}

/// A reference, drawn by what each class is referenced: the class, and the page of it.
#[cfg(test)]
pub(super) fn drawn(classes: &[PageClass], unit: &mut impl FnMut() -> f64) -> (usize, u64) {
    let mut at = unit() * classes.iter().map(|class| class.references).sum::<f64>();
    let class = classes.iter().position(|class| {
        at -= class.references;
        at < 0.0
    });
    let class = class.unwrap_or(0);
    (class, super::cleaner::whole(unit() * classes[class].pages()))
}

#[cfg(test)]
mod tests {
    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::super::cleaner::whole;
    use super::*;

    fn reused(pages: f64, references: f64, modified: f64) -> PageClass {
        let kind = PageKind::Reused { pages, revisits: None };
        PageClass { name: "t".into(), kind, references, modified, secondary: false }
    }

    #[test]
    fn uniform_references_miss_by_the_share_that_does_not_fit() {
        let (reads, writes) = pages_per_transaction(&[reused(100_000.0, 10.0, 1.0)], &Pool::plain(40_000.0));
        assert!((reads - 6.0).abs() < 1e-3, "{reads}");
        // Every reference changes its page, so every page leaves dirty.
        assert!((writes - 6.0).abs() < 1e-3, "{writes}");
    }

    #[test]
    fn what_fits_is_not_read() {
        assert_eq!(characteristic_time(&[reused(1_000.0, 10.0, 0.5)], &Pool::plain(2_000.0)), None);
        assert!(pages_per_transaction(&[reused(1_000.0, 10.0, 0.5)], &Pool::plain(2_000.0)).0 < 1e-9);
    }

    #[test]
    fn hot_pages_stay_and_cold_ones_share_the_rest() {
        let classes = [reused(1_000.0, 90.0, 0.0), reused(100_000.0, 10.0, 0.0)];
        let (reads, writes) = pages_per_transaction(&classes, &Pool::plain(51_000.0));
        assert!((reads - 5.0).abs() < 0.05, "{reads}");
        assert_eq!(writes, 0.0);
    }

    #[test]
    fn a_larger_pool_never_reads_more() {
        let classes = [reused(10_000.0, 5.0, 0.3), reused(100_000.0, 5.0, 0.9)];
        let mut before = f64::INFINITY;
        for step in 1..=110 {
            let (reads, _) = pages_per_transaction(&classes, &Pool::plain(f64::from(step) * 1_000.0));
            assert!(reads <= before + 1e-6, "{step}: {reads} after {before}");
            before = reads;
        }
    }

    /// Misses of an LRU list with a midpoint that keeps every page, drawn reference by reference.
    fn misses_of_list(classes: &[PageClass], pool: usize, old_share: f64) -> Vec<f64> {
        println!("seed 7");
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        let mut unit = || (rng.next_u64() >> 11) as f64 / 9_007_199_254_740_992.0;
        let old = usize::try_from(whole(old_share * pool as f64)).expect("a share of the pool");
        let mut list: Vec<(usize, u64)> = Vec::new();
        let mut counts = vec![(0_u32, 0_u32); classes.len()];
        for n in 0..200_000 {
            let page = drawn(classes, &mut unit);
            let counts = &mut counts[page.0];
            let counted = u32::from(n >= 60_000);
            counts.0 += counted;
            match list.iter().position(|known| *known == page) {
                Some(at) => {
                    list.remove(at);
                    list.insert(0, page);
                }
                None => {
                    counts.1 += counted;
                    list.truncate(pool - 1);
                    list.insert((list.len() + 1).saturating_sub(old).min(list.len()), page);
                }
            }
        }
        counts.iter().map(|(all, missed)| f64::from(*missed) / f64::from(*all)).collect()
    }

    #[test]
    fn both_parts_of_the_list_keep_what_a_list_of_all_pages_does() {
        let classes = [reused(900.0, 8.0, 0.0), reused(2_500.0, 6.0, 0.0), reused(60_000.0, 6.0, 0.0)];
        for old_share in [1.0, 0.37] {
            let pool = Pool { old_share, ..Pool::plain(2_000.0) };
            let stay = residence(&classes, &pool).expect("not all pages fit");
            let of_list = misses_of_list(&classes, 2_000, old_share);
            for (class, expected) in classes.iter().zip(of_list) {
                let miss = class.state(stay, &pool).miss;
                assert!((miss - expected).abs() < 0.03, "{old_share}: {miss}, the list {expected}");
            }
        }
    }

    #[test]
    fn a_scan_passes_through_the_old_part_and_leaves_the_hot_pages() {
        let classes = [reused(20_000.0, 5.0, 0.0), reused(10_000_000.0, 20.0, 0.0)];
        let hot = |old_share: f64| {
            let pool = Pool { old_share, ..Pool::plain(30_000.0) };
            classes[0].state(residence(&classes, &pool).expect("the scan never fits"), &pool).miss
        };
        let (with, without) = (hot(0.37), hot(1.0));
        assert!(with < 0.1 && without > 0.5, "{with} with a midpoint, {without} without");
    }

    #[test]
    fn a_curve_is_straight_over_the_logarithm_and_flat_beyond() {
        let point = |pool_pages, reads| CurvePoint { pool_pages, reads, writes: reads / 2.0 };
        let curve = MissCurve { points: vec![point(100.0, 8.0), point(400.0, 4.0)], data_pages: None };
        assert!((curve.at(200.0).0 - 6.0).abs() < 1e-9);
        assert!((curve.at(200.0).1 - 3.0).abs() < 1e-9);
        assert_eq!(curve.at(1_000.0).0, 4.0);
        assert!((curve.at(50.0).0 - 10.0).abs() < 1e-9);
        assert_eq!(curve.at(1.0).0, 12.0);
    }
}
