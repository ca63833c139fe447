//! The tags of a resource.
//!
//! Most have a few, and a service has tens of thousands of resources in memory. As a list they take a quarter of what a tree takes.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Tags by their keys, in order; at most fifty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tags(Vec<(String, String)>);

impl Tags {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    fn at(&self, key: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(other, _)| other.as_str().cmp(key))
    }

    /// The value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&String> {
        self.at(key).ok().map(|at| &self.0[at].1)
    }

    /// Gives a key a value, and answers with the one before.
    pub(super) fn insert(&mut self, key: String, value: String) -> Option<String> {
        match self.at(&key) {
            Ok(at) => Some(std::mem::replace(&mut self.0[at].1, value)),
            Err(at) => {
                self.0.insert(at, (key, value));
                None
            }
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&String, &String)> {
        self.0.iter().map(|(key, value)| (key, value))
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &String> {
        self.0.iter().map(|(key, _)| key)
    }

    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Keeps what a rule keeps.
    pub(super) fn retain(&mut self, keeps: impl Fn(&String, &String) -> bool) {
        self.0.retain(|(key, value)| keeps(key, value));
    }
}

impl Extend<(String, String)> for Tags {
    fn extend<I: IntoIterator<Item = (String, String)>>(&mut self, tags: I) {
        for (key, value) in tags {
            self.insert(key, value);
        }
    }
}

impl FromIterator<(String, String)> for Tags {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(tags: I) -> Self {
        let mut all = Self::new();
        all.extend(tags);
        all
    }
}

impl<const N: usize> From<[(String, String); N]> for Tags {
    fn from(tags: [(String, String); N]) -> Self {
        tags.into_iter().collect()
    }
}

impl IntoIterator for Tags {
    type Item = (String, String);
    type IntoIter = std::vec::IntoIter<(String, String)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Tags {
    type Item = (&'a String, &'a String);
    type IntoIter =
        std::iter::Map<std::slice::Iter<'a, (String, String)>, fn(&'a (String, String)) -> Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter().map(|(key, value)| (key, value))
    }
}

impl Serialize for Tags {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self)
    }
}

impl<'de> Deserialize<'de> for Tags {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Tags;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("texts by texts")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tags, A::Error> {
                let mut tags = Tags::new();
                while let Some((key, value)) = map.next_entry()? {
                    tags.insert(key, value);
                }
                tags.0.shrink_to_fit();
                Ok(tags)
            }
        }

        deserializer.deserialize_map(Reader)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn tags_are_a_map(given in proptest::collection::vec(("[a-d]{0,2}", "[a-z]{0,2}"), 0..20), dropped in "[a-d]{0,2}") {
            let (mut tags, mut model) = (Tags::new(), BTreeMap::new());
            for (key, value) in given {
                prop_assert_eq!(tags.insert(key.clone(), value.clone()), model.insert(key, value));
            }
            tags.retain(|key, _| *key != dropped);
            model.retain(|key, _| *key != dropped);
            prop_assert_eq!(tags.get(&dropped), None);
            prop_assert!(tags.iter().eq(&model) && tags.keys().eq(model.keys()) && tags.len() == model.len());
            // Records of earlier versions have a map.
            let text = serde_json::to_string(&model).unwrap();
            prop_assert_eq!(&serde_json::to_string(&tags).unwrap(), &text);
            prop_assert_eq!(&serde_json::from_str::<Tags>(&text).unwrap(), &tags);
            prop_assert_eq!(model.into_iter().collect::<Tags>(), tags);
        }
    }
}
