//! The last values of a series, as a ring.

use std::collections::VecDeque;

use ebbtide_volume::Nanos;

/// Values of the last `span`, and one before it, so that the values cover it. Values that come within `step` of the one before are
/// left out: so a window of an hour takes no more room than one of a minute.
#[derive(Debug, Clone)]
pub(crate) struct Window<T> {
    span: Nanos,
    step: Nanos,
    values: VecDeque<(Nanos, T)>,
}

impl<T> Window<T> {
    pub(crate) const fn new(span: Nanos, step: Nanos) -> Self {
        Self { span, step, values: VecDeque::new() }
    }

    /// Adds a value, unless it comes within a step. Times must rise.
    pub(crate) fn push(&mut self, now: Nanos, value: T) {
        if self.values.back().is_some_and(|(last, _)| now.since(*last) < self.step) {
            return;
        }
        self.values.push_back((now, value));
        while self.values.get(1).is_some_and(|(second, _)| now.since(*second) >= self.span) {
            self.values.pop_front();
        }
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.values.clear();
    }

    /// The oldest value.
    pub(crate) fn oldest(&self) -> Option<&(Nanos, T)> {
        self.values.front()
    }

    /// The newest value.
    pub(crate) fn newest(&self) -> Option<&(Nanos, T)> {
        self.values.back()
    }

    /// All, the oldest first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &(Nanos, T)> {
        self.values.iter()
    }

    /// Time from the oldest to the newest.
    pub(crate) fn covered(&self) -> Nanos {
        match (self.oldest(), self.newest()) {
            (Some((first, _)), Some((last, _))) => last.since(*first),
            _ => Nanos::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_covers_its_span_and_holds_no_more() {
        let mut window = Window::new(Nanos::from_secs(60), Nanos::from_secs(10));
        for second in 0..1_000 {
            window.push(Nanos::from_secs(second), second);
        }
        assert_eq!(window.newest().map(|(_, value)| *value), Some(990));
        assert_eq!(window.oldest().map(|(_, value)| *value), Some(930));
        assert_eq!((window.iter().count(), window.covered()), (7, Nanos::from_secs(60)));
        window.clear();
        assert_eq!(window.covered(), Nanos::ZERO);
    }
}
