//! The event queue of virtual time.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use ebbtide_volume::Nanos;

#[derive(Debug, Clone, Copy)]
struct Entry<T> {
    at: Nanos,
    order: u64,
    event: T,
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The earliest entry is the greatest, since the heap gives out its greatest.
impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

/// Events in the order of their times; those of the same time in the order they were added.
///
/// A throttled volume answers in the order of submission, so that most events are later than all
/// before them: those go through a plain queue, and only the others through a heap.
#[derive(Debug)]
pub(crate) struct EventQueue<T> {
    rising: VecDeque<Entry<T>>,
    others: BinaryHeap<Entry<T>>,
    added: u64,
}

impl<T> EventQueue<T> {
    pub(crate) fn new() -> Self {
        Self { rising: VecDeque::new(), others: BinaryHeap::new(), added: 0 }
    }

    pub(crate) fn push(&mut self, at: Nanos, event: T) {
        self.added += 1;
        let entry = Entry { at, order: self.added, event };
        if self.rising.back().is_none_or(|last| last.at <= at) {
            self.rising.push_back(entry);
        } else {
            self.others.push(entry);
        }
    }

    pub(crate) fn next_time(&self) -> Option<Nanos> {
        match (self.rising.front(), self.others.peek()) {
            (Some(a), Some(b)) => Some(a.at.min(b.at)),
            (a, b) => a.or(b).map(|entry| entry.at),
        }
    }

    pub(crate) fn pop(&mut self) -> Option<(Nanos, T)> {
        let from_heap = match (self.rising.front(), self.others.peek()) {
            (Some(rising), Some(other)) => other > rising,
            (rising, _) => rising.is_none(),
        };
        let entry = if from_heap { self.others.pop() } else { self.rising.pop_front() };
        entry.map(|entry| (entry.at, entry.event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_time_order_and_ties_in_the_order_added() {
        let mut queue = EventQueue::new();
        for (at, name) in [(5, 'a'), (9, 'b'), (3, 'c'), (9, 'd'), (5, 'e'), (12, 'f'), (1, 'g')] {
            queue.push(Nanos(at), name);
        }
        assert_eq!(queue.next_time(), Some(Nanos(1)));
        let order: String = std::iter::from_fn(|| queue.pop()).map(|(_, name)| name).collect();
        assert_eq!(order, "gcaebdf");
    }
}
