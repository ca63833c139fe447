//! The condition keys of a call, which policies compare.

use std::collections::BTreeMap;

/// Values of condition keys. The names of the keys are in lower case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Context(pub(crate) BTreeMap<String, Vec<String>>);

impl Context {
    /// Sets the values of a key.
    pub fn set(&mut self, key: &str, values: impl IntoIterator<Item = String>) {
        self.0.insert(key.to_lowercase(), values.into_iter().collect());
    }

    /// The values of a key.
    pub(crate) fn get(&self, key: &str) -> Option<&[String]> {
        self.0.get(&key.to_lowercase()).map(Vec::as_slice)
    }

    /// The one value of a key, for a policy's variable.
    pub(crate) fn one(&self, key: &str) -> Option<&str> {
        match self.get(key) {
            Some([value]) => Some(value),
            _ => None,
        }
    }
}
