//! The flush list: how many pages of each class are dirty, and since which position of the redo log.

use std::collections::VecDeque;

/// Dirty pages of one class that turned dirty at about the same time.
#[derive(Debug, Clone, Copy)]
struct Cohort {
    /// Position in the redo log of their first change, bytes.
    lsn: u64,
    pages: u64,
}

/// The dirty pages of all classes, oldest first.
#[derive(Debug, Clone)]
pub(crate) struct FlushList {
    classes: Vec<VecDeque<Cohort>>,
    counts: Vec<u64>,
    total: u64,
    /// Pages that turn dirty within so many bytes of redo count as one cohort.
    grain: u64,
}

impl FlushList {
    pub(crate) fn new(classes: usize, grain: u64) -> Self {
        Self {
            classes: vec![VecDeque::new(); classes],
            counts: vec![0; classes],
            total: 0,
            grain: grain.max(1),
        }
    }

    /// Dirty pages of a class.
    pub(crate) fn of(&self, class: usize) -> u64 {
        self.counts[class]
    }

    /// Dirty pages of all classes.
    pub(crate) const fn total(&self) -> u64 {
        self.total
    }

    /// Pages of a class turn dirty. Positions do not fall.
    pub(crate) fn add(&mut self, class: usize, lsn: u64, pages: u64) {
        let lsn = lsn / self.grain * self.grain;
        let cohorts = &mut self.classes[class];
        match cohorts.back_mut() {
            Some(last) if last.lsn == lsn => last.pages += pages,
            _ if pages > 0 => cohorts.push_back(Cohort { lsn, pages }),
            _ => {}
        }
        self.counts[class] += pages;
        self.total += pages;
    }

    /// The oldest page of a class is written; false where it has none.
    pub(crate) fn remove(&mut self, class: usize) -> bool {
        let cohorts = &mut self.classes[class];
        let Some(first) = cohorts.front_mut() else { return false };
        first.pages -= 1;
        if first.pages == 0 {
            cohorts.pop_front();
        }
        self.counts[class] -= 1;
        self.total -= 1;
        true
    }

    /// The position of the oldest change; none where all pages are clean.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.classes.iter().filter_map(|cohorts| Some(cohorts.front()?.lsn)).min()
    }

    /// The position of the oldest change of a class; none where all its pages are clean.
    pub(crate) fn oldest_of(&self, class: usize) -> Option<u64> {
        Some(self.classes[class].front()?.lsn)
    }

    /// Pages that turned dirty at or before a position, counted up to a limit.
    pub(crate) fn until(&self, lsn: u64, limit: u64) -> u64 {
        let mut pages = 0;
        for cohorts in &self.classes {
            for cohort in cohorts.iter().take_while(|cohort| cohort.lsn <= lsn) {
                pages += cohort.pages;
                if pages >= limit {
                    return limit;
                }
            }
        }
        pages
    }

    /// Takes at most so many of the oldest pages, to be written; returns how many.
    pub(crate) fn take_oldest(&mut self, pages: u64) -> u64 {
        let mut left = pages.min(self.total);
        let taken = left;
        while left > 0 {
            let fronts = self.classes.iter().enumerate();
            let oldest = fronts.filter_map(|(class, cohorts)| Some((cohorts.front()?.lsn, class))).min();
            let (_, class) = oldest.expect("pages are left, so that a class has a first cohort");
            let first = self.classes[class].front_mut().expect("the class was chosen for its first cohort");
            let part = first.pages.min(left);
            first.pages -= part;
            if first.pages == 0 {
                self.classes[class].pop_front();
            }
            self.counts[class] -= part;
            self.total -= part;
            left -= part;
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_pages_of_all_classes_go_first_and_none_is_lost() {
        let mut list = FlushList::new(2, 10);
        list.add(0, 5, 3);
        list.add(1, 20, 4);
        list.add(0, 40, 2);
        assert_eq!((list.total(), list.of(0), list.oldest()), (9, 5, Some(0)));
        assert_eq!(list.until(20, 100), 7);
        assert_eq!(list.until(20, 5), 5);
        assert_eq!(list.take_oldest(4), 4);
        assert_eq!((list.total(), list.of(0), list.of(1), list.oldest()), (5, 2, 3, Some(20)));
        assert!(list.remove(0));
        assert_eq!(list.take_oldest(100), 4);
        assert_eq!((list.total(), list.oldest()), (0, None));
        assert!(!list.remove(1));
    }
}
