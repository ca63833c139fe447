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
    /// Of changes to pages of secondary indexes that are missing, those that the change buffer keeps, 0 to 1.
    pub buffered: f64,
    /// Changes that it has kept of a page when it merges them: one read of the page does for so many.
    pub per_merge: f64,
}

/// Bytes that a change takes in the change buffer: the entry with what it is for, on pages two thirds full.
const BUFFERED_CHANGE: f64 = 60.0;
/// Largest share of the pool that the change buffer takes (`innodb_change_buffer_max_size`).
const CHANGE_BUFFER: f64 = 0.25;
/// Changes of a page that a merge finds, at most: background merges go on while the buffer is not full.
const MOST_PER_MERGE: f64 = 100.0;

impl Pool {
    /// A pool of so many pages without a change buffer.
    #[must_use]
    pub const fn plain(pages: f64) -> Self {
        Self { pages, buffered: 0.0, per_merge: 1.0 }
    }

    /// The pool of a server with these classes of pages.
    #[must_use]
    pub fn of(settings: &Settings, classes: &[PageClass]) -> Self {
        let pages = settings.pool_pages();
        let indexed: f64 = classes.iter().filter(|class| class.secondary).map(PageClass::pages).sum();
        let records = CHANGE_BUFFER * pages * f64::from(settings.page_bytes) / BUFFERED_CHANGE;
        let per_merge = (1.0 + records / indexed.max(1.0)).min(MOST_PER_MERGE);
        Self { buffered: settings.change_buffering, per_merge, ..Self::plain(pages) }
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
    /// The same of a revisit.
    pub(crate) revisit_miss: f64,
    /// Pages that are evicted, each transaction: those that it brings in, in the long run.
    pub(crate) evicted: f64,
    /// Pages that are evicted dirty and pages that are dirty, in the long run, where nothing but eviction cleans.
    pub(crate) dirty_share: f64,
    pub(crate) dirty: f64,
    /// Pages cached.
    pub(crate) cached: f64,
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

    /// The class where the pool keeps a page for `kept` transactions after its last reference. The pages of `pool` are
    /// those that are cached, which is what observed classes go by.
    pub(crate) fn state(&self, kept: f64, pool: &Pool) -> ClassState {
        match &self.kind {
            PageKind::Reused { pages, revisits } => self.reused(*pages, *revisits, kept, pool),
            PageKind::Once { read } => ClassState {
                changes: self.references * self.modified,
                miss: if *read { 1.0 } else { 0.0 },
                evicted: self.references,
                dirty_share: self.modified,
                dirty: self.references * self.modified * kept,
                cached: self.references * kept,
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

    fn reused(&self, pages: f64, revisits: Option<Revisits>, kept: f64, pool: &Pool) -> ClassState {
        let rate = self.references / pages.max(1e-9);
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
            revisit_miss,
            evicted: all,
            dirty_share: if all > 0.0 { dirty_share * evicted / all } else { 0.0 },
            dirty,
            cached: pages * (1.0 - miss),
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

/// How many transactions a page stays after its last reference, in a pool of so many pages; none where all pages fit.
#[must_use]
pub fn characteristic_time(classes: &[PageClass], pool: &Pool) -> Option<f64> {
    if let [PageClass { kind: PageKind::Observed(curve), .. }] = classes {
        let (reads, writes) = curve.at(pool.pages);
        return (reads.max(writes) > 1e-6).then(|| pool.pages / reads.max(writes));
    }
    let cached = |kept: f64| classes.iter().map(|class| class.state(kept, pool).cached).sum::<f64>();
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

/// Pages that a transaction reads and writes in the long run, where pages are written when they are evicted.
#[must_use]
pub fn pages_per_transaction(classes: &[PageClass], pool: &Pool) -> (f64, f64) {
    let kept = characteristic_time(classes, pool);
    let state = |class: &PageClass| class.state(kept.unwrap_or(1e12), pool);
    classes.iter().fold((0.0, 0.0), |(reads, writes), class| {
        let at = state(class);
        let read = match &class.kind {
            PageKind::Reused { revisits, .. } => {
                let buffered = class.modified * (at.buffered - at.merges);
                class.references * (1.0 - buffered) * at.miss + revisits.map_or(0.0, |r| r.references) * at.revisit_miss
            }
            PageKind::Once { .. } => class.references * at.miss,
            PageKind::Observed(_) => at.reads,
        };
        let written = if kept.is_some() { at.evicted * at.dirty_share } else { 0.0 };
        (reads + read, writes + written)
    })
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn a_curve_is_straight_over_the_logarithm_and_flat_beyond() {
        let point = |pool_pages, reads| CurvePoint { pool_pages, reads, writes: reads / 2.0 };
        let curve = MissCurve { points: vec![point(100.0, 8.0), point(400.0, 4.0)] };
        assert!((curve.at(200.0).0 - 6.0).abs() < 1e-9);
        assert!((curve.at(200.0).1 - 3.0).abs() < 1e-9);
        assert_eq!(curve.at(1_000.0).0, 4.0);
        assert!((curve.at(50.0).0 - 10.0).abs() < 1e-9);
        assert_eq!(curve.at(1.0).0, 12.0);
    }
}
