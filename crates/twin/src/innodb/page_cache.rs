//! The page cache of the operating system, where data files go through it (`innodb_flush_method = fsync`): a second list of
//! pages below the buffer pool, which a page that the pool misses may be read from.
//!
//! It keeps the pages that were read or written last, each for a *characteristic time* after that (Che, Tung, Wang 2002). The
//! server reads a page when the pool misses it, and writes a dirty one when the pool evicts it. So a dirty page was in the page
//! cache when it left the pool, and a clean one when it came: the page cache then still holds copies of what the pool has.
//! Writes reach the volume when the server flushes the file, after each batch; the page cache saves none of them.

use super::pages::{ClassState, PageClass, PageKind, Pool};

/// How a page of a class comes and goes, in transactions.
#[derive(Debug, Clone, Copy)]
struct Cycle {
    /// Pages of the class.
    pages: f64,
    /// Mean time in the pool, from the read to the eviction.
    inside: f64,
    /// Mean time from the eviction to the next read. It is exponential: references are independent.
    outside: f64,
    /// Share of evictions with a write, 0 to 1.
    dirty: f64,
}

impl Cycle {
    /// None where pages of the class never leave the pool.
    fn of(pages: f64, state: &ClassState) -> Option<Self> {
        let whole = pages / state.evicted;
        (state.evicted > 1e-9).then(|| Self {
            pages,
            inside: whole * (1.0 - state.miss),
            outside: (whole * state.miss).max(1e-9),
            dirty: state.dirty_share,
        })
    }

    /// The probability that a page which the pool misses was read or written within `kept`.
    fn hit(&self, kept: f64) -> f64 {
        let within = |time: f64| -(-time.max(0.0) / self.outside).exp_m1();
        self.dirty * within(kept) + (1.0 - self.dirty) * within(kept - self.inside)
    }

    /// Pages of the class that were read or written within `kept`.
    fn cached(&self, kept: f64) -> f64 {
        let outside = |time: f64| -self.outside * (-time.max(0.0) / self.outside).exp_m1();
        let since_read = kept.min(self.inside);
        let clean = since_read + outside(kept - self.inside);
        let dirty = since_read + outside(kept);
        self.pages * (self.dirty * dirty + (1.0 - self.dirty) * clean) / (self.inside + self.outside)
    }
}

/// Pages of a class that the page cache holds where it keeps each for so many transactions.
fn cached(class: &PageClass, state: &ClassState, kept: f64) -> f64 {
    match class.kind {
        PageKind::Reused { pages, .. } => Cycle::of(pages, state).map_or(0.0, |cycle| cycle.cached(kept)),
        // It is written once, and read before where it is not new.
        PageKind::Once { read } => class.references * kept * if read { 2.0 } else { 1.0 },
        PageKind::Observed(_) => 0.0,
    }
}

/// Halvings of the search for the characteristic time, on a logarithmic scale.
const HALVINGS: u32 = 60;
/// Longer than any run, in transactions.
const EVER: f64 = 1e12;

/// Of the pages of each class that the pool misses, those that a page cache of so many pages has, 0 to 1.
pub(crate) fn hits(classes: &[PageClass], states: &[ClassState], pool: &Pool, pages: f64) -> Vec<f64> {
    let both = || classes.iter().zip(states);
    let observed = classes.iter().any(|class| matches!(class.kind, PageKind::Observed(_)));
    let all = |kept: f64| both().map(|(class, state)| cached(class, state, kept)).sum::<f64>();
    if pages < 1.0 {
        return vec![0.0; classes.len()];
    }
    if !observed && all(EVER) <= pages {
        return vec![1.0; classes.len()];
    }
    let (mut kept, mut high) = (1e-6_f64, EVER);
    for _ in 0..HALVINGS {
        let middle = (kept * high).sqrt();
        if all(middle) < pages { kept = middle } else { high = middle }
    }
    let of = |(class, state): (&PageClass, &ClassState)| match &class.kind {
        PageKind::Reused { pages, .. } => Cycle::of(*pages, state).map_or(0.0, |cycle| cycle.hit(kept)),
        // When it was written is not known.
        PageKind::Once { .. } => 0.0,
        PageKind::Observed(curve) => {
            let of_all = curve.data_pages.is_some_and(|data| data <= pages);
            // What left dirty was not in the page cache's part of the pool's pages, and what left clean was.
            let dirty = curve.at(pool.pages + pages).0;
            let clean = curve.at(pool.pages.max(pages)).0;
            let read = state.dirty_share * dirty + (1.0 - state.dirty_share) * clean;
            match state.reads {
                _ if of_all => 1.0,
                reads if reads > 0.0 => (1.0 - read / reads).clamp(0.0, 1.0),
                _ => 0.0,
            }
        }
    };
    both().map(of).collect()
}

#[cfg(test)]
mod tests {
    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::super::pages::{CurvePoint, MissCurve, Residence, characteristic_time, drawn};
    use super::*;

    fn reused(pages: f64, references: f64, modified: f64) -> PageClass {
        let kind = PageKind::Reused { pages, revisits: None };
        PageClass { name: "t".into(), kind, references, modified, secondary: false }
    }

    fn of(classes: &[PageClass], pool: f64, cache: f64) -> Vec<f64> {
        let pool = Pool::plain(pool);
        let kept = characteristic_time(classes, &pool).expect("not all pages fit");
        let states: Vec<_> = classes.iter().map(|class| class.state(Residence::plain(kept), &pool)).collect();
        hits(classes, &states, &pool, cache)
    }

    /// Moves a page to the front of a list of so many; whether it was there, and the page that leaves.
    fn refer(list: &mut Vec<(usize, u64)>, most: usize, page: (usize, u64)) -> (bool, Option<(usize, u64)>) {
        let at = list.iter().position(|known| *known == page);
        at.map(|at| list.remove(at));
        list.insert(0, page);
        (at.is_some(), if list.len() > most { list.pop() } else { None })
    }

    /// Of the pages that a pool misses, the share that a page cache below it has, by two lists that keep every page.
    fn hits_of_lists(classes: &[PageClass], pool: usize, cache: usize) -> Vec<f64> {
        println!("seed 11");
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(11);
        let mut unit = || (rng.next_u64() >> 11) as f64 / 9_007_199_254_740_992.0;
        let (mut pooled, mut cached, mut dirty) = (Vec::new(), Vec::new(), std::collections::HashSet::new());
        let mut counts = vec![(0_u32, 0_u32); classes.len()];
        for n in 0..150_000 {
            let page = drawn(classes, &mut unit);
            let class = page.0;
            let (found, evicted) = refer(&mut pooled, pool, page);
            if !found {
                let (hit, _) = refer(&mut cached, cache, page);
                if n > 50_000 {
                    counts[class].0 += 1;
                    counts[class].1 += u32::from(hit);
                }
            }
            if unit() < classes[class].modified {
                dirty.insert(page);
            }
            if let Some(left) = evicted.filter(|left| dirty.remove(left)) {
                refer(&mut cached, cache, left);
            }
        }
        counts.iter().map(|(all, hit)| f64::from(*hit) / f64::from(*all).max(1.0)).collect()
    }

    #[test]
    fn a_page_cache_has_what_a_list_below_the_list_of_the_pool_has() {
        // Clean pages of a cache no larger than the pool, all dirty, and both kinds beside each other.
        for (modified, pool, cache) in
            [(0.0, 600, 500), (0.0, 600, 1_200), (1.0, 600, 500), (0.3, 400, 900), (0.3, 400, 2_000)]
        {
            let classes = [reused(800.0, 6.0, modified), reused(2_400.0, 4.0, modified)];
            let expected = hits_of_lists(&classes, pool, cache);
            let found = of(&classes, pool as f64, cache as f64);
            for (found, expected) in found.iter().zip(&expected) {
                assert!(
                    (found - expected).abs() < 0.06,
                    "{modified}, {pool}, {cache}: {found}, the lists {expected}"
                );
            }
        }
    }

    #[test]
    fn a_larger_page_cache_never_has_less_and_one_for_all_pages_has_all() {
        let classes = [reused(10_000.0, 5.0, 0.3), reused(100_000.0, 5.0, 0.9), reused(2_000.0, 50.0, 0.0)];
        let mut before = vec![0.0; 3];
        for step in 0..=120 {
            let found = of(&classes, 30_000.0, f64::from(step) * 1_000.0);
            assert!(step > 0 || found == [0.0; 3], "{found:?}");
            let falls = found.iter().zip(&before).any(|(now, before)| now + 1e-6 < *before);
            assert!(!falls && found.iter().all(|hit| (0.0..=1.0).contains(hit)), "{step}: {found:?}");
            before = found;
        }
        assert_eq!(before, [1.0; 3]);
    }

    #[test]
    fn measured_pages_follow_their_curve_until_the_data_fit() {
        let point = |pool_pages, reads| CurvePoint { pool_pages, reads, writes: 0.0 };
        let curve =
            MissCurve { points: vec![point(100.0, 8.0), point(400.0, 2.0)], data_pages: Some(1_000.0) };
        let class = PageClass {
            name: "all".into(),
            kind: PageKind::Observed(curve),
            references: 1.0,
            modified: 1.0,
            secondary: false,
        };
        let at = |cache| of(std::slice::from_ref(&class), 100.0, cache)[0];
        // All leave clean: the page cache has copies of the pool's pages, and is as good as a pool of its size.
        assert_eq!((at(50.0), at(100.0)), (0.0, 0.0));
        assert!((at(400.0) - 0.75).abs() < 1e-9 && (at(900.0) - 0.75).abs() < 1e-9);
        assert_eq!(at(1_000.0), 1.0);
    }
}
