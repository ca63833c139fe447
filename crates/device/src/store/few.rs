//! A set that has mostly one element, or none: as a tree each would take hundreds of bytes.

use std::collections::BTreeSet;

/// A set of a few elements, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum FewSet<T: Ord> {
    /// It is empty.
    #[default]
    None,
    /// It has one element.
    One(T),
    /// It has at least two elements.
    Many(BTreeSet<T>),
}

impl<T: Ord> FewSet<T> {
    /// Puts an element in, if it is not there.
    pub(super) fn insert(&mut self, element: T) {
        *self = match std::mem::take(self) {
            Self::None => Self::One(element),
            Self::One(one) if one == element => Self::One(one),
            Self::One(one) => Self::Many(BTreeSet::from([one, element])),
            Self::Many(mut all) => {
                all.insert(element);
                Self::Many(all)
            }
        };
    }

    /// Takes an element out, if it is there.
    pub(super) fn remove<Q: Ord + ?Sized>(&mut self, element: &Q)
    where
        T: std::borrow::Borrow<Q>,
    {
        *self = match std::mem::take(self) {
            Self::One(one) if one.borrow() == element => Self::None,
            Self::Many(mut all) => {
                all.remove(element);
                if all.len() > 1 { Self::Many(all) } else { all.pop_first().map_or(Self::None, Self::One) }
            }
            other => other,
        };
    }

    /// Whether it has no element.
    pub(super) const fn is_empty(&self) -> bool {
        matches!(self, Self::None)
    }

    /// Its element, where it has one alone.
    pub(super) const fn only(&self) -> Option<&T> {
        match self {
            Self::One(one) => Some(one),
            _ => None,
        }
    }

    /// Its elements, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        let (one, many) = match self {
            Self::None => (None, None),
            Self::One(one) => (Some(one), None),
            Self::Many(all) => (None, Some(all)),
        };
        one.into_iter().chain(many.into_iter().flat_map(|all| all.iter()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_set_of_a_few_is_a_set(changes in proptest::collection::vec((0_u8..4, any::<bool>()), 0..40)) {
            let (mut few, mut model) = (FewSet::default(), BTreeSet::new());
            for (element, is_put) in changes {
                if is_put {
                    few.insert(element);
                    model.insert(element);
                } else {
                    few.remove(&element);
                    model.remove(&element);
                }
                prop_assert_eq!(few.iter().copied().collect::<Vec<_>>(), model.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!(few.is_empty(), model.is_empty());
                prop_assert_eq!(few.only().copied(), model.first().copied().filter(|_| model.len() == 1));
                // The form follows from what is in it, so that equal sets are equal.
                let mut again = FewSet::default();
                model.iter().for_each(|element| again.insert(*element));
                prop_assert_eq!(&few, &again);
            }
        }
    }
}
