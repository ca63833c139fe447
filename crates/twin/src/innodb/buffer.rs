//! The buffer pool: what a transaction reads and changes, which page leaves, and what is dirty.

use rand_core::Rng;

use super::cleaner::whole;
use super::dirty::FlushList;
use super::equilibrium::{DirtyClass, DirtyFlow};
use super::page_cache;
use super::pages::{ClassState, PageClass, PageKind, Pool, Residence, characteristic_time, residence};
use super::shape::Shape;

/// A number of references above which their outcomes are drawn together.
const MANY: f64 = 24.0;

/// What a transaction needs of the pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Touched {
    /// Pages that it misses.
    pub(crate) misses: u32,
    /// Of them, those that the page cache of the system has.
    pub(crate) cached: u32,
    /// Pages that it adds without a read.
    pub(crate) created: u32,
    /// Pages that are read for it while it goes on: those of merges of the change buffer.
    pub(crate) background: u32,
    /// Pages that are read ahead for it.
    pub(crate) ahead: u32,
    /// Pages of these two that the page cache has: they need a place in the pool, and no I/O.
    pub(crate) placed: u32,
}

impl Touched {
    /// Misses pages, of which the page cache has a share.
    fn miss(&mut self, pages: u32, hit: f64, rng: &mut impl Rng) {
        self.misses += pages;
        self.cached += part(pages, hit, rng);
    }

    /// Reads pages that the client does not wait for: returns those that are read from the volume.
    fn read_in_background(&mut self, pages: u32, hit: f64, rng: &mut impl Rng) -> u32 {
        let cached = part(pages, hit, rng);
        self.placed += cached;
        pages - cached
    }
}

/// The pool and its classes of pages.
#[derive(Debug)]
pub(crate) struct BufferPool {
    shape: Shape,
    states: Vec<ClassState>,
    /// Pages of the page cache below the pool; None where data files do not go through it.
    cache: Option<f64>,
    /// Of the pages of each class that the pool misses, the share that the page cache has.
    hits: Vec<f64>,
    /// Running sums of the classes' shares of evicted pages.
    evictions: Vec<f64>,
    flush_list: FlushList,
    pool: Pool,
    free: u64,
    /// Pages that were taken when none was free.
    owed: u64,
    /// Transactions until a pool that was empty is full; none where all pages fit.
    kept: Option<f64>,
    /// How long a page stays once it is full.
    stay: Option<Residence>,
    /// Transactions since the pool was empty.
    seen: f64,
    filling: bool,
    /// Classes that the transaction at hand turned dirty.
    dirtied: Vec<usize>,
}

impl BufferPool {
    /// A pool of so many pages, empty or as it is after a long time. `redo_grain` is the length of redo, in bytes,
    /// within which the ages of dirty pages are not told apart; `cache` the pages of the page cache below the pool.
    pub(crate) fn new(
        shape: Shape,
        pool: Pool,
        cache: Option<f64>,
        cold: bool,
        spare: u64,
        redo_grain: u64,
    ) -> Self {
        let kept = characteristic_time(&shape.classes, &pool);
        let stay = residence(&shape.classes, &pool);
        let pages = pool.pages;
        let classes = shape.classes.len();
        let mut made = Self {
            shape,
            states: Vec::new(),
            cache,
            hits: Vec::new(),
            evictions: Vec::new(),
            flush_list: FlushList::new(classes, redo_grain),
            pool,
            free: whole(pages),
            owed: 0,
            kept,
            stay,
            seen: 0.0,
            filling: cold,
            dirtied: Vec::new(),
        };
        if !cold {
            made.seen = kept.unwrap_or(1e12);
        }
        made.refresh();
        if !cold {
            let cached: f64 = made.states.iter().map(|state| state.cached).sum();
            let free = if kept.is_some() { spare as f64 } else { (pages - cached).max(spare as f64) };
            made.free = whole(free);
        }
        made
    }

    /// How pages of each class turn dirty, and leave dirty, where so many pages are read for each that the classes miss.
    pub(crate) fn dirty_flows(&self, reads: f64) -> Vec<DirtyFlow> {
        let classes = self.shape.classes.iter().zip(&self.states);
        let flow = |(class, state): (&PageClass, &ClassState)| {
            // Pages that are read beyond those that are missed need places too; each miss needs one.
            let evicted = reads.max(1.0) * state.evicted * state.dirty_share / state.dirty.max(1.0);
            let (changes, fresh, pages) = match class.kind {
                PageKind::Reused { pages, .. } => (state.changes - state.merged, state.merged, Some(pages)),
                PageKind::Once { .. } => (0.0, class.references * class.modified, None),
                PageKind::Observed(_) => (0.0, state.dirtied, None),
            };
            DirtyFlow { changes, fresh, pages, evicted }
        };
        classes.map(flow).collect()
    }

    /// Replaces the dirty pages: each class has so many, evenly from its oldest age up to now, at a position of the redo log
    /// that grows by so many bytes with each transaction. `grain` is the length of redo within which ages are not told apart.
    pub(crate) fn set_dirty(&mut self, classes: &[DirtyClass], lsn: u64, redo_bytes: f64, grain: u64) {
        self.flush_list = FlushList::new(classes.len(), grain);
        for (class, dirty) in classes.iter().enumerate() {
            let span = whole(dirty.age * redo_bytes).min(lsn);
            let steps = span.div_ceil(grain).max(1);
            let each = dirty.pages.min(self.pool.pages) / steps as f64;
            let upto = |step: u64| whole(each * step as f64);
            for step in 0..steps {
                self.flush_list.add(class, lsn - span + step * grain, upto(step + 1) - upto(step));
            }
        }
    }

    /// Brings the classes up to date while the pool fills.
    pub(crate) fn refresh(&mut self) {
        // No page is evicted while the pool fills, and none is old.
        let full = self.kept.is_some_and(|kept| self.seen >= kept);
        let kept = Residence::plain(self.kept.unwrap_or(1e12).min(self.seen));
        let stay = self.stay.filter(|_| full).unwrap_or(kept);
        let cached = if self.filling { self.pool.pages - self.free as f64 } else { self.pool.pages };
        let pool = Pool { pages: cached, ..self.pool };
        self.states = self.shape.classes.iter().map(|class| class.state(stay, &pool)).collect();
        // While the pool fills, no page has been in it twice: none is in the page cache either.
        let cache = self.cache.filter(|_| full || !self.filling).unwrap_or(0.0);
        self.hits = page_cache::hits(&self.shape.classes, &self.states, &pool, cache);
        let mut sum = 0.0;
        let running = self.states.iter().map(|state| {
            sum += state.evicted;
            sum
        });
        self.evictions = running.collect();
        self.filling &= self.kept.is_none_or(|kept| self.seen < kept);
    }

    pub(crate) const fn is_filling(&self) -> bool {
        self.filling
    }

    /// What a transaction of a kind reads and changes. Its dirty pages are marked by [`Self::changed`].
    pub(crate) fn touch(&mut self, kind: usize, rng: &mut impl Rng) -> Touched {
        self.seen += 1.0;
        self.dirtied.clear();
        let mut touched = Touched::default();
        for n in 0..self.shape.types[kind].touches.len() {
            let touch = self.shape.types[kind].touches[n];
            let state = self.states[touch.class];
            let hit = self.hits[touch.class];
            match &self.shape.classes[touch.class].kind {
                PageKind::Reused { pages, .. } => {
                    let clean = 1.0 - self.flush_list.of(touch.class) as f64 / pages.max(1.0);
                    let miss = if touch.revisits { state.revisit_miss } else { state.miss };
                    // Changes that the change buffer keeps need no page until they are merged.
                    let kept = touch.modified * state.buffered;
                    let missed = successes(touch.references, miss * (1.0 - kept), rng);
                    let ahead = around(f64::from(missed) * touch.read_ahead(), rng).min(missed);
                    touched.ahead += touched.read_in_background(ahead, hit, rng);
                    touched.miss(missed - ahead, hit, rng);
                    let merged = successes(touch.references, miss * touch.modified * state.merges, rng);
                    touched.background += touched.read_in_background(merged, hit, rng);
                    let changed = touch.modified * (1.0 - miss * state.buffered);
                    let dirtied = successes(touch.references, changed * clean.max(0.0), rng);
                    self.mark(touch.class, dirtied + merged);
                }
                PageKind::Once { read } => {
                    let pages = successes(touch.references, 1.0, rng);
                    if *read {
                        touched.miss(pages, hit, rng)
                    } else {
                        touched.created += pages
                    }
                    self.mark(touch.class, pages);
                }
                PageKind::Observed(_) => {
                    let reads = poisson(state.reads * touch.references, rng);
                    let writes = state.dirtied * touch.references;
                    touched.miss(reads, hit, rng);
                    touched.created += poisson((writes - state.reads * touch.references).max(0.0), rng);
                    let dirtied = poisson(writes, rng);
                    self.mark(touch.class, dirtied);
                }
            }
        }
        touched
    }

    /// Purge comes to the pages of a transaction of a kind that ended so many transactions ago, at a position of the redo
    /// log: returns the pages that it must read again from the volume, and marks those that turn dirty.
    pub(crate) fn purge(&mut self, kind: usize, age: f64, lsn: u64, rng: &mut impl Rng) -> u32 {
        self.dirtied.clear();
        let left = self.forgets(age);
        let mut reads = 0;
        for n in 0..self.shape.types[kind].purged.len() {
            let (class, pages) = self.shape.types[kind].purged[n];
            let state = self.states[class];
            let of_class = self.shape.classes[class].pages().max(1.0);
            // What the transaction has changed is there, and dirty, unless it was evicted or written since.
            let missed = if left { successes(pages, state.miss * (1.0 - state.buffered), rng) } else { 0 };
            let written = self.flush_list.oldest_of(class).is_none_or(|oldest| oldest > lsn);
            let clean = if written { 1.0 - self.flush_list.of(class) as f64 / of_class } else { 0.0 };
            let dirtied = successes(pages, clean.clamp(0.0, 1.0), rng).max(missed);
            self.mark(class, dirtied);
            let cached = part(missed, self.hits[class], rng);
            self.owe_free(cached.into());
            reads += missed - cached;
        }
        reads
    }

    /// Purge reads so many undo pages again that have left the pool: returns those that are read from the volume.
    pub(crate) fn purge_undo(&mut self, pages: u32, rng: &mut impl Rng) -> u32 {
        let hit = self.shape.undo_class().map_or(0.0, |class| self.hits[class]);
        let cached = part(pages, hit, rng);
        self.owe_free(cached.into());
        pages - cached
    }

    /// Whether a page that was referenced so many transactions ago may have left the pool.
    pub(crate) fn forgets(&self, age: f64) -> bool {
        self.stay.is_some_and(|stay| age > stay.old)
    }

    /// Transactions since the pool was empty.
    pub(crate) const fn seen(&self) -> f64 {
        self.seen
    }

    fn mark(&mut self, class: usize, pages: u32) {
        for _ in 0..pages {
            self.dirtied.push(class);
        }
    }

    /// Hands over the classes of the pages that the last transaction turned dirty.
    pub(crate) fn take_dirtied(&mut self, into: &mut Vec<usize>) {
        into.clear();
        into.append(&mut self.dirtied);
    }

    /// Pages of these classes turn dirty at a position of the redo log.
    pub(crate) fn changed(&mut self, classes: &[usize], lsn: u64) {
        for &class in classes {
            self.flush_list.add(class, lsn, 1);
        }
    }

    /// Takes a free page; false where there is none.
    pub(crate) fn take_free(&mut self) -> bool {
        let some = self.free > 0;
        self.free -= u64::from(some);
        some
    }

    /// Takes free pages that nobody waits for: where there are none, the page cleaner makes up for them.
    pub(crate) fn owe_free(&mut self, pages: u64) {
        let now = pages.min(self.free);
        self.free -= now;
        self.owed += pages - now;
    }

    /// Pages that were taken when none was free.
    pub(crate) const fn owed(&self) -> u64 {
        self.owed
    }

    pub(crate) fn add_free(&mut self, pages: u64) {
        let owed = pages.min(self.owed);
        self.owed -= owed;
        self.free += pages - owed;
    }

    pub(crate) const fn free(&self) -> u64 {
        self.free
    }

    /// The page that leaves next; true where it must be written first, in which case it counts as clean from now on.
    pub(crate) fn evict(&mut self, rng: &mut impl Rng) -> bool {
        let class = self.victim(rng);
        let dirty = unit(rng) < self.dirty_share(class);
        dirty && self.flush_list.remove(class)
    }

    /// Whether one of so many pages at the end of the list is clean.
    pub(crate) fn finds_clean(&mut self, pages: u32, rng: &mut impl Rng) -> bool {
        (0..pages).any(|_| {
            let class = self.victim(rng);
            unit(rng) >= self.dirty_share(class)
        })
    }

    fn victim(&self, rng: &mut impl Rng) -> usize {
        let all = self.evictions.last().copied().unwrap_or(0.0);
        let at = unit(rng) * all;
        self.evictions.partition_point(|&sum| sum <= at).min(self.evictions.len().saturating_sub(1))
    }

    /// Probability that an evicted page of a class is dirty: that of the long run, by how many are dirty now.
    fn dirty_share(&self, class: usize) -> f64 {
        let state = &self.states[class];
        let usual = state.dirty.max(1.0);
        (state.dirty_share * self.flush_list.of(class) as f64 / usual).min(1.0)
    }

    pub(crate) const fn flush_list(&self) -> &FlushList {
        &self.flush_list
    }

    pub(crate) fn take_oldest(&mut self, pages: u64) -> u64 {
        self.flush_list.take_oldest(pages)
    }

    pub(crate) const fn pages(&self) -> f64 {
        self.pool.pages
    }

    pub(crate) const fn shape(&self) -> &Shape {
        &self.shape
    }
}

/// A number in [0, 1).
pub(crate) fn unit(rng: &mut impl Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
}

/// How evenly the time of a transaction's statements adds up, at the most: a New-Order of TPC-C has 5 to 15 lines, whose
/// spread is that of ten exponential times.
const EVENEST: f64 = 10.0;

/// The time of so many statements relative to its mean. That of each varies exponentially.
pub(crate) fn of_statements(statements: f64, rng: &mut impl Rng) -> f64 {
    let parts = around(statements.clamp(1.0, EVENEST), rng);
    let product = (0..parts).fold(1.0, |product, _| product * (1.0 - unit(rng)));
    -f64::ln(product) / f64::from(parts)
}

/// A whole number with this mean: one of the two nearest.
pub(crate) fn around(mean: f64, rng: &mut impl Rng) -> u32 {
    let low = mean.floor();
    let more = unit(rng) < mean - low;
    u32::try_from(whole(low)).unwrap_or(u32::MAX - 1) + u32::from(more)
}

/// How many of so many have a property that each has with a probability.
fn part(of: u32, probability: f64, rng: &mut impl Rng) -> u32 {
    if probability <= 0.0 {
        return 0;
    }
    (0..of).fold(0, |sum, _| sum + u32::from(unit(rng) < probability))
}

/// Successes of `mean` trials with a probability each.
fn successes(mean: f64, probability: f64, rng: &mut impl Rng) -> u32 {
    if probability <= 0.0 {
        return 0;
    }
    if mean > MANY {
        return poisson(mean * probability, rng);
    }
    let trials = around(mean, rng);
    if probability >= 1.0 {
        return trials;
    }
    (0..trials).fold(0, |sum, _| sum + u32::from(unit(rng) < probability))
}

/// A Poisson draw by the product of uniforms, in parts where the mean is large.
fn poisson(mean: f64, rng: &mut impl Rng) -> u32 {
    const PART: f64 = 16.0;
    let (mut left, mut sum) = (mean, 0);
    while left > 0.0 {
        let part = left.min(PART);
        left -= part;
        let limit = (-part).exp();
        let mut product = unit(rng);
        while product > limit {
            sum += 1;
            product *= unit(rng);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use rand_core::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::super::pages::pages_per_transaction;
    use super::super::tpcc;
    use super::*;

    #[test]
    fn draws_have_their_means() {
        println!("seed 3");
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        for (mean, probability) in [(0.3, 1.0), (7.5, 0.4), (200.0, 0.25)] {
            let sum: u32 = (0..20_000).map(|_| successes(mean, probability, &mut rng)).sum();
            let got = f64::from(sum) / 20_000.0;
            assert!((got / (mean * probability) - 1.0).abs() < 0.04, "{mean} x {probability}: {got}");
        }
    }

    #[test]
    fn the_time_of_many_statements_varies_less_than_that_of_one() {
        println!("seed 4");
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(4);
        for (statements, spread) in [(0.5, 1.0), (1.0, 1.0), (4.0, 0.5), (47.0, 0.316)] {
            let times: Vec<f64> = (0..20_000).map(|_| of_statements(statements, &mut rng)).collect();
            let mean = times.iter().sum::<f64>() / 20_000.0;
            let variance = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / 20_000.0;
            assert!((mean - 1.0).abs() < 0.03, "{statements}: {mean}");
            assert!((variance.sqrt() / spread - 1.0).abs() < 0.06, "{statements}: {}", variance.sqrt());
        }
    }

    #[test]
    fn in_the_long_run_as_many_pages_turn_dirty_as_leave_dirty() {
        println!("seed 5");
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
        let shape = tpcc::shape(
            20,
            tpcc::Kit::TpccMysql,
            tpcc::Keys::Nurand,
            ebbtide_workload::log_bytes::LogMaker::MariaDb,
        );
        let pages = Pool::plain(13_000.0);
        let (reads, writes) = pages_per_transaction(&shape.classes, &pages);
        let mut pool = BufferPool::new(shape, pages, None, false, 1_000, 1 << 20);
        let balance: Vec<_> = pool.dirty_flows(1.0).iter().map(|flow| DirtyClass::at(flow, 1e6)).collect();
        pool.set_dirty(&balance, 1 << 30, 10_000.0, 1 << 20);
        let (mut misses, mut dirty, mut lsn) = (0_u64, 0_u64, 1_u64 << 30);
        let mut classes = Vec::new();
        let transactions = 30_000_u32;
        for n in 0..transactions {
            let kind = match unit(&mut rng) {
                x if x < 0.45 => 0,
                x if x < 0.88 => 1,
                x if x < 0.92 => 2,
                x if x < 0.96 => 3,
                _ => 4,
            };
            let touched = pool.touch(kind, &mut rng);
            lsn += 10_000;
            pool.take_dirtied(&mut classes);
            pool.changed(&classes, lsn);
            for _ in 0..touched.misses + touched.created {
                let written = pool.evict(&mut rng);
                dirty += u64::from(written && n >= transactions / 2);
            }
            misses += if n >= transactions / 2 { u64::from(touched.misses) } else { 0 };
        }
        let each = f64::from(transactions / 2);
        let (got_reads, got_writes) = (misses as f64 / each, dirty as f64 / each);
        assert!((got_reads / reads - 1.0).abs() < 0.03, "{got_reads} reads, not {reads}");
        assert!((got_writes / writes - 1.0).abs() < 0.06, "{got_writes} writes, not {writes}");
    }
}
