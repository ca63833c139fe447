//! A TOML text as a tree in which every value has its place in the file, so that what is found wrong later
//! can be shown at its line, or at the option of the command line that it came from.

use std::fmt;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::ExperimentError;

/// Where a value is written: `mine.toml line 3`, or `--set load.rate=3`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WrittenAt(String);

impl WrittenAt {
    pub(super) fn option(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The error of something that is wrong here.
    pub(super) fn wrong(&self, message: impl Into<String>) -> ExperimentError {
        ExperimentError::Wrong { place: self.0.clone(), message: message.into() }
    }
}

impl fmt::Display for WrittenAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A value and its place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) place: WrittenAt,
}

/// What TOML can express, dates aside.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Text(String),
    Whole(i64),
    Real(f64),
    Switch(bool),
    List(Vec<Node>),
    Table(TomlTable),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "\"{text}\""),
            Self::Whole(number) => write!(f, "{number}"),
            Self::Real(number) => write!(f, "{number}"),
            Self::Switch(on) => write!(f, "{on}"),
            Self::List(_) => f.write_str("a list"),
            Self::Table(_) => f.write_str("a table"),
        }
    }
}

/// Keys and their values, in the order of the text.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct TomlTable {
    entries: Vec<(String, Node)>,
}

impl TomlTable {
    /// Reads a TOML text; `name` represents it in errors.
    pub(super) fn parse(name: &str, text: &str) -> Result<Self, ExperimentError> {
        let source = Source { name, text };
        match DeTable::parse(text) {
            Ok(table) => source.table(table.get_ref()),
            Err(error) => {
                let span = error.span().unwrap_or(0..0);
                let message = error.message().trim_end().replace('\n', "; ");
                Err(source.place(span.clone()).wrong(message + source.hint(span.start)))
            }
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        self.entries.iter().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    pub(super) fn take(&mut self, key: &str) -> Option<Node> {
        let at = self.entries.iter().position(|(name, _)| name == key)?;
        Some(self.entries.remove(at).1)
    }

    pub(super) fn insert(&mut self, key: &str, node: Node) {
        match self.entries.iter_mut().find(|(name, _)| name == key) {
            Some((_, old)) => *old = node,
            None => self.entries.push((key.to_owned(), node)),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.entries.iter().map(|(key, node)| (key.as_str(), node))
    }

    /// Lays `over` on top: tables are joined key by key, anything else is replaced.
    pub(super) fn merge(&mut self, over: &Self) {
        for (key, node) in over.iter() {
            match (self.entries.iter_mut().find(|(name, _)| name == key), &node.value) {
                (Some((_, Node { value: Value::Table(mine), .. })), Value::Table(theirs)) => {
                    mine.merge(theirs);
                }
                (Some((_, mine)), _) => *mine = node.clone(),
                (None, _) => self.entries.push((key.to_owned(), node.clone())),
            }
        }
    }

    /// Gives every key the name that `canonical` has for it.
    pub(super) fn rename(
        &mut self,
        canonical: impl Fn(&str, &Node) -> Result<String, ExperimentError>,
    ) -> Result<(), ExperimentError> {
        let mut renamed = Self::default();
        for (key, node) in std::mem::take(&mut self.entries) {
            let name = canonical(&key, &node)?;
            if renamed.get(&name).is_some() {
                return Err(node
                    .place
                    .wrong(format!("'{key}' is another word for '{name}', which is given too")));
            }
            renamed.insert(&name, node);
        }
        *self = renamed;
        Ok(())
    }
}

impl Node {
    /// A table, or the error that it is none.
    pub(super) fn table(&self, name: &str) -> Result<&TomlTable, ExperimentError> {
        match &self.value {
            Value::Table(table) => Ok(table),
            other => Err(self.place.wrong(format!("{name} = {other}: it must be a table, like [{name}]"))),
        }
    }

    pub(super) fn table_mut(&mut self, name: &str) -> Result<&mut TomlTable, ExperimentError> {
        match &mut self.value {
            Value::Table(table) => Ok(table),
            other => Err(self.place.wrong(format!("{name} = {other}: it must be a table, like [{name}]"))),
        }
    }

    /// A value as a command line gives it: a number or a switch where it reads as one, else text.
    pub(super) fn of_option(text: &str, place: WrittenAt) -> Self {
        let value = match DeValue::parse(text).ok().map(Spanned::into_inner) {
            Some(DeValue::Boolean(on)) => Value::Switch(on),
            Some(DeValue::Integer(number)) => {
                whole(&number).map_or(Value::Text(text.to_owned()), Value::Whole)
            }
            Some(DeValue::Float(number)) => match number.as_str().parse::<f64>() {
                Ok(real) if real.is_finite() => Value::Real(real),
                _ => Value::Text(text.to_owned()),
            },
            Some(DeValue::String(inner)) => Value::Text(inner.into_owned()),
            _ => Value::Text(text.to_owned()),
        };
        Self { value, place }
    }

    /// `key = value` within `section`, as a patch.
    pub(super) fn nested(self, section: &str, key: &str) -> TomlTable {
        let place = self.place.clone();
        let mut inner = TomlTable::default();
        inner.insert(key, self);
        let mut outer = TomlTable::default();
        outer.insert(section, Self { value: Value::Table(inner), place });
        outer
    }
}

fn whole(number: &toml::de::DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(number.as_str(), number.radix()).ok()
}

/// A text being read.
struct Source<'a> {
    name: &'a str,
    text: &'a str,
}

impl Source<'_> {
    fn place(&self, span: Range<usize>) -> WrittenAt {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        WrittenAt(format!("{} line {}", self.name, before.matches('\n').count() + 1))
    }

    /// What helps where the text is no TOML at a place.
    fn hint(&self, at: usize) -> &'static str {
        let (before, after) = self.text.split_at_checked(at).unwrap_or_default();
        let begin = before.rsplit('\n').next().unwrap_or_default();
        let end = after.split('\n').next().unwrap_or_default();
        let key = format!("{begin}{end}").split('=').next().unwrap_or_default().trim().to_owned();
        if key.ends_with("redo+binlog") { "; write the key with quotes, \"redo+binlog\"" } else { "" }
    }

    fn table(&self, table: &DeTable<'_>) -> Result<TomlTable, ExperimentError> {
        let mut keys: Vec<_> = table.iter().collect();
        keys.sort_by_key(|(key, _)| key.span().start);
        let mut entries = Vec::new();
        for (key, value) in keys {
            let node = Node { value: self.value(value)?, place: self.place(key.span()) };
            entries.push((key.get_ref().clone().into_owned(), node));
        }
        Ok(TomlTable { entries })
    }

    fn value(&self, value: &Spanned<DeValue<'_>>) -> Result<Value, ExperimentError> {
        let place = || self.place(value.span());
        Ok(match value.get_ref() {
            DeValue::String(text) => Value::Text(text.clone().into_owned()),
            DeValue::Integer(number) => Value::Whole(
                whole(number).ok_or_else(|| place().wrong(format!("{number} is too large a number")))?,
            ),
            DeValue::Float(number) => Value::Real(
                number.as_str().parse().map_err(|_| place().wrong(format!("{number} is not a number")))?,
            ),
            DeValue::Boolean(on) => Value::Switch(*on),
            DeValue::Datetime(_) => return Err(place().wrong("a date has no meaning here")),
            DeValue::Array(items) => Value::List(
                items
                    .iter()
                    .map(|item| Ok(Node { value: self.value(item)?, place: self.place(item.span()) }))
                    .collect::<Result<_, ExperimentError>>()?,
            ),
            DeValue::Table(table) => Value::Table(self.table(table)?),
        })
    }
}
