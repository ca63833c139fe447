//! Settings side by side, for a report.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::render::{RenderedSetting, render_one};
use super::table::{Here, Row, table};
use super::{RAW, Settings};
use crate::{Binary, Flavour};

/// What a setting comes to on a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effective {
    /// The canonical name.
    pub name: String,
    /// What the server calls it; several where one setting is many variables.
    pub own_name: String,
    /// The value, as it was set or as the server has it by default.
    pub value: String,
    /// Whether it is the server's default and was not set.
    pub is_default: bool,
}

/// A setting that two servers do not have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The canonical name.
    pub name: String,
    /// What the server calls it; several where one setting is many variables.
    pub own_name: String,
    /// The first one's value, or the server's default.
    pub a: String,
    /// The second one's value, or the server's default.
    pub b: String,
    /// Whether the first one's value is the server's default and was not set.
    pub a_is_default: bool,
    /// Whether the second one's value is the server's default and was not set.
    pub b_is_default: bool,
}

impl Settings {
    /// What one setting comes to on a server: as set, or the server's default. None for a name that the
    /// table lacks and that is not set.
    #[must_use]
    pub fn effective(&self, name: &str, binary: &Binary) -> Option<Effective> {
        if let Some(own) = name.strip_prefix(RAW) {
            let value = self.get(name).unwrap_or("the server's default").to_owned();
            let is_default = self.get(name).is_none();
            return Some(Effective { name: name.to_owned(), own_name: own.to_owned(), value, is_default });
        }
        let row = table().find(name)?;
        let shape = row.shape();
        let (own_name, default) = match row.here(binary) {
            Ok(here) => {
                let default = here.default().map(|value| shape.show(&value));
                let chosen = here.span.chosen.as_ref().map(|how| format!("the server's choice ({how})"));
                (here.own().to_owned(), default.or(chosen).unwrap_or_default())
            }
            Err(absent) => (absent.own, "none".to_owned()),
        };
        let Some(text) = self.get(&row.name) else {
            return Some(Effective { name: row.name.clone(), own_name, value: default, is_default: true });
        };
        let value = shape.read(text).map_or_else(|| text.to_owned(), |value| shape.show(&value));
        let own_name = render_one(&row.name, text, binary).map_or(own_name, |rendered| own_names(&rendered));
        Some(Effective { name: row.name.clone(), own_name, value, is_default: false })
    }
}

fn own_names(rendered: &RenderedSetting) -> String {
    rendered.variables.iter().map(|(own, _)| own.as_str()).collect::<Vec<_>>().join(", ")
}

/// What differs between two servers of the same program, unset ones by the program's defaults; by name.
#[must_use]
pub fn differences(a: &Settings, b: &Settings, binary: &Binary) -> Vec<Difference> {
    let names: BTreeSet<&str> = a.iter().chain(b.iter()).map(|(name, _)| name).collect();
    let rows = names.into_iter().filter_map(|name| {
        let (a, b) = (a.effective(name, binary)?, b.effective(name, binary)?);
        (a.value != b.value).then(|| Difference {
            name: name.to_owned(),
            own_name: if a.is_default { b.own_name } else { a.own_name },
            a: a.value,
            b: b.value,
            a_is_default: a.is_default,
            b_is_default: b.is_default,
        })
    });
    rows.collect()
}

/// A setting that there is, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// The canonical name.
    pub name: String,
    /// What it does, in half a sentence.
    pub what: String,
    /// What it takes, over all servers.
    pub takes: String,
    /// What MariaDB has of it, by version.
    pub mariadb: Vec<KnownSpan>,
    /// What MySQL has of it, by version.
    pub mysql: Vec<KnownSpan>,
}

/// What some versions of a server have of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownSpan {
    /// Which versions, such as `8.0.30 to before 8.4.0`; empty for all.
    pub versions: String,
    /// What they call it; none where they do not have it.
    pub own_name: Option<String>,
    /// The default or how it is chosen; why they do not have it otherwise.
    pub default: String,
    /// Whether it can change while the server runs.
    pub dynamic: bool,
}

/// All settings that the table knows, by name.
#[must_use]
pub fn known() -> Vec<Known> {
    let known = |row: &Row| Known {
        name: row.name.clone(),
        what: row.what.clone(),
        takes: row.expected(),
        mariadb: known_spans(row, Flavour::MariaDb),
        mysql: known_spans(row, Flavour::MySql),
    };
    table().rows.values().map(known).collect()
}

fn known_spans(row: &Row, flavour: Flavour) -> Vec<KnownSpan> {
    let spans = row.spans(flavour).iter().map(|span| {
        let here = Here { row, span };
        let versions = match (span.since, span.until) {
            (None, None) => String::new(),
            (Some(since), None) => format!("from {since}"),
            (None, Some(until)) => format!("before {until}"),
            (Some(since), Some(until)) => format!("{since} to before {until}"),
        };
        let default = here.default().map(|value| row.shape().show(&value));
        let why = span.why_gone().map(str::to_owned);
        KnownSpan {
            versions,
            own_name: (!span.is_gone()).then(|| here.own().to_owned()),
            default: default.or_else(|| span.chosen.clone()).or(why).unwrap_or_default(),
            dynamic: span.dynamic,
        }
    });
    spans.collect()
}
