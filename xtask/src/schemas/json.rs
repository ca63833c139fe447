//! JSON whose fields keep the order in which they were put in, as the types have them.

use serde::{Serialize, Serializer};

/// A JSON value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Json {
    Bool(bool),
    Number(u64),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    pub(super) fn object<const N: usize>(fields: [(&str, Json); N]) -> Self {
        Self::Object(fields.map(|(name, value)| (name.to_owned(), value)).into())
    }

    pub(super) fn texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        Self::List(texts.into_iter().map(Self::from).collect())
    }

    /// The value of a field.
    pub(super) fn get(&self, name: &str) -> Option<&Self> {
        let Self::Object(fields) = self else { return None };
        fields.iter().find(|(field, _)| field == name).map(|(_, value)| value)
    }

    /// The definitions that it refers to.
    pub(super) fn references(&self) -> Vec<String> {
        match self {
            Self::List(values) => values.iter().flat_map(Self::references).collect(),
            Self::Object(fields) => {
                let below = |(name, value): &(String, Self)| match value {
                    Self::Text(path) if name == "$ref" => {
                        path.strip_prefix("#/$defs/").into_iter().map(str::to_owned).collect()
                    }
                    value => value.references(),
                };
                fields.iter().flat_map(below).collect()
            }
            Self::Bool(_) | Self::Number(_) | Self::Text(_) => Vec::new(),
        }
    }

    /// Puts a field at the end of an object.
    pub(super) fn push(&mut self, name: &str, value: Self) {
        if let Self::Object(fields) = self {
            fields.push((name.to_owned(), value));
        }
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Bool(value) => value.serialize(serializer),
            Self::Number(value) => value.serialize(serializer),
            Self::Text(value) => value.serialize(serializer),
            Self::List(values) => values.serialize(serializer),
            Self::Object(fields) => serializer.collect_map(fields.iter().map(|(name, value)| (name, value))),
        }
    }
}
