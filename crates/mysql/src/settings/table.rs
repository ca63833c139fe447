//! The table of settings: what each server calls them, allows and defaults to (`data/settings.toml`).

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::{Deserialize, Deserializer, de};

use super::value::{Shape, Unit, Value, ValueKind, bytes};
use crate::error::SettingError;
use crate::{Binary, Flavour, Version};

const TEXT: &str = include_str!("../../data/settings.toml");
/// The oldest versions that the table's first spans are true of.
pub(crate) const OLDEST_MARIADB: Version = Version { major: 10, minor: 6, patch: 0 };
pub(crate) const OLDEST_MYSQL: Version = Version { major: 8, minor: 0, patch: 0 };

/// A setting.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    #[serde(skip)]
    pub(crate) name: String,
    pub(crate) what: String,
    pub(crate) kind: ValueKind,
    own: Option<String>,
    #[serde(default, deserialize_with = "quantity")]
    min: Option<u64>,
    #[serde(default, deserialize_with = "quantity")]
    max: Option<u64>,
    #[serde(default, deserialize_with = "quantity")]
    step: Option<u64>,
    unit: Option<Unit>,
    #[serde(default)]
    words: Vec<String>,
    #[serde(default)]
    pub(crate) made_with: bool,
    mariadb: Vec<Span>,
    mysql: Vec<Span>,
    #[serde(default)]
    percona: Vec<Span>,
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "for those who read the table; a test wants it filled")
    )]
    pub(crate) source: String,
}

/// What holds of a setting for a span of versions.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Span {
    #[serde(deserialize_with = "version")]
    pub(crate) since: Option<Version>,
    #[serde(deserialize_with = "version")]
    pub(crate) until: Option<Version>,
    own: Option<String>,
    pub(crate) variable: Option<String>,
    default: Option<String>,
    pub(crate) chosen: Option<String>,
    /// For the test that holds the table against the servers' own help; `skip` where that lists nothing.
    pub(crate) help: Option<String>,
    #[serde(deserialize_with = "quantity")]
    min: Option<u64>,
    #[serde(deserialize_with = "quantity")]
    max: Option<u64>,
    #[serde(deserialize_with = "quantity")]
    step: Option<u64>,
    words: Option<Vec<String>>,
    pub(crate) dynamic: bool,
    pub(crate) form: Option<Form>,
    /// The library that has it, which a server loads where a switch of it is on.
    pub(crate) plugin: Option<String>,
    pub(crate) rounded: Option<String>,
    gone: Option<String>,
    ignored: Option<String>,
}

/// How a setting is written where one `own=value` does not do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) enum Form {
    /// The redo log as two files of half the size.
    #[serde(rename = "two files")]
    TwoFiles,
    /// A flush method as the switches that took its place.
    #[serde(rename = "buffering")]
    Buffering,
    /// `log_bin=binlog` or `skip_log_bin`.
    #[serde(rename = "log_bin")]
    LogBin,
    /// A size that is a power of two.
    #[serde(rename = "power of two")]
    PowerOfTwo,
}

/// A setting on one server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Here<'a> {
    pub(crate) row: &'a Row,
    pub(crate) span: &'a Span,
}

/// The whole table.
#[derive(Debug)]
pub(crate) struct SettingsTable {
    pub(crate) rows: BTreeMap<String, Row>,
    by_own: BTreeMap<String, String>,
}

/// The built-in table.
pub(crate) fn table() -> &'static SettingsTable {
    static TABLE: OnceLock<SettingsTable> = OnceLock::new();
    TABLE.get_or_init(|| SettingsTable::read(TEXT).expect("the built-in table is read by the tests"))
}

impl SettingsTable {
    fn read(text: &str) -> Result<Self, toml::de::Error> {
        let mut rows: BTreeMap<String, Row> = toml::from_str(text)?;
        let mut by_own = BTreeMap::new();
        for (name, row) in &mut rows {
            row.name.clone_from(name);
            for span in row.mariadb.iter().chain(&row.mysql).chain(&row.percona) {
                for own in [Some(row.own(span)), span.variable.as_deref()].into_iter().flatten() {
                    by_own.insert(own.to_owned(), name.clone());
                }
            }
        }
        Ok(Self { rows, by_own })
    }

    /// By its canonical name, or by what a server calls it.
    pub(crate) fn find(&self, name: &str) -> Option<&Row> {
        let name = name.to_ascii_lowercase().replace('-', "_");
        self.rows.get(&name).or_else(|| self.rows.get(self.by_own.get(&name)?))
    }

    /// The known name most like `written`, where any is like it at all.
    pub(crate) fn nearest(&self, written: &str) -> Option<String> {
        let known = self.rows.keys().chain(self.by_own.keys()).map(|name| name.as_ref());
        let name = ebbtide_text::closest(&written.replace('-', "_"), known)?;
        Some(self.by_own.get(name).map_or(name, |canonical| canonical.as_ref()).to_owned())
    }
}

impl Row {
    pub(crate) fn spans(&self, flavour: Flavour) -> &[Span] {
        match flavour {
            Flavour::MariaDb => &self.mariadb,
            Flavour::Percona if !self.percona.is_empty() => &self.percona,
            Flavour::MySql | Flavour::Percona => &self.mysql,
        }
    }

    fn own<'a>(&'a self, span: &'a Span) -> &'a str {
        span.own.as_deref().or(self.own.as_deref()).unwrap_or(&self.name)
    }

    pub(crate) fn shape(&self) -> Shape<'_> {
        Shape { kind: self.kind, unit: self.unit.unwrap_or(Unit::S), words: &self.words }
    }

    /// What any server allows, for people.
    pub(crate) fn expected(&self) -> String {
        let spans =
            || self.mariadb.iter().chain(&self.mysql).chain(&self.percona).filter(|span| !span.is_gone());
        let min = spans().map(|span| Here { row: self, span }.min()).min().unwrap_or(0);
        let max = spans().map(|span| Here { row: self, span }.max()).max().unwrap_or(u64::MAX);
        self.expected_within(min, max, &self.words, None)
    }

    fn expected_within(&self, min: u64, max: u64, words: &[String], step: Option<u64>) -> String {
        let shape = self.shape();
        let range = match (min, max) {
            (min, u64::MAX) => format!("from {} on", shape.show_number(min)),
            (min, max) => format!("from {} to {}", shape.show_number(min), shape.show_number(max)),
        };
        let step = step.map(|step| format!(", in steps of {}", shape.show_number(step))).unwrap_or_default();
        match self.kind {
            ValueKind::Bytes => format!("a size such as 64MiB {range}{step}"),
            ValueKind::Count => format!("a whole number {range}"),
            ValueKind::Percent => format!("a percentage {range}"),
            ValueKind::Duration => format!("a time such as 100{} {range}", self.unit_name()),
            ValueKind::Switch => "on or off".to_owned(),
            ValueKind::Word => format!("one of {}", words.join(", ")),
            ValueKind::Text => "one line of text".to_owned(),
        }
    }

    fn unit_name(&self) -> &'static str {
        match self.unit {
            Some(Unit::Us) => "us",
            Some(Unit::Ms) => "ms",
            Some(Unit::S) | None => "s",
        }
    }

    /// The span for a version; what is known about it otherwise.
    pub(crate) fn here(&self, binary: &Binary) -> Result<Here<'_>, Absent> {
        let spans = self.spans(binary.flavour);
        let holds = |span: &&Span| {
            span.since.is_none_or(|since| binary.version >= since)
                && span.until.is_none_or(|until| binary.version < until)
        };
        let Some(span) = spans.iter().find(holds) else {
            let later = spans.iter().find_map(|span| span.since);
            let why = later.map_or_else(|| "it never had it".into(), |since| format!("added in {since}"));
            let own = self.own.clone().unwrap_or_else(|| self.name.clone());
            return Err(Absent { own, why, listed: false });
        };
        match span.why_gone() {
            Some(why) => {
                let listed = span.ignored.is_some();
                Err(Absent { own: self.own(span).to_owned(), why: why.to_owned(), listed })
            }
            None => Ok(Here { row: self, span }),
        }
    }
}

/// A setting that a server does not have.
#[derive(Debug)]
pub(crate) struct Absent {
    /// What the server calls it, or would.
    pub(crate) own: String,
    /// Since or until when, and what replaces it.
    pub(crate) why: String,
    /// Whether the server accepts it all the same, without effect.
    #[cfg_attr(not(test), expect(dead_code, reason = "held against the servers' own help by a test"))]
    pub(crate) listed: bool,
}

impl Span {
    pub(crate) fn is_gone(&self) -> bool {
        self.why_gone().is_some()
    }

    pub(crate) fn why_gone(&self) -> Option<&str> {
        self.gone.as_deref().or(self.ignored.as_deref())
    }
}

impl<'a> Here<'a> {
    pub(crate) fn own(&self) -> &'a str {
        self.row.own(self.span)
    }

    pub(crate) fn min(&self) -> u64 {
        self.span.min.or(self.row.min).unwrap_or(0)
    }

    pub(crate) fn max(&self) -> u64 {
        self.span.max.or(self.row.max).unwrap_or(u64::MAX)
    }

    pub(crate) fn step(&self) -> Option<u64> {
        self.span.step.or(self.row.step)
    }

    pub(crate) fn words(&self) -> &'a [String] {
        self.span.words.as_deref().unwrap_or(&self.row.words)
    }

    /// The value without the setting, where it is a fixed one.
    pub(crate) fn default(&self) -> Option<Value> {
        self.row.shape().read(self.span.default.as_deref()?)
    }

    /// Whether this server takes the value.
    pub(crate) fn takes(&self, value: &Value) -> bool {
        match value {
            Value::Number(number) => {
                (self.min()..=self.max()).contains(number)
                    && self.step().is_none_or(|step| number.is_multiple_of(step))
                    && (self.span.form != Some(Form::PowerOfTwo) || number.is_power_of_two())
            }
            Value::Percent(percent) => (self.min() as f64..=self.max() as f64).contains(percent),
            Value::Word(word) => self.words().contains(word),
            Value::Switch(_) | Value::Text(_) => true,
        }
    }

    /// What this server takes, in words.
    pub(crate) fn expected(&self) -> String {
        let expected = self.row.expected_within(self.min(), self.max(), self.words(), self.step());
        let power = if self.span.form == Some(Form::PowerOfTwo) { ", a power of two" } else { "" };
        format!("{expected}{power}")
    }
}

/// A number, or a size such as `128MiB`.
fn quantity<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Number(u64),
        Text(String),
    }
    match Written::deserialize(from)? {
        Written::Number(number) => Ok(Some(number)),
        Written::Text(text) => match bytes(&text) {
            Some(number) => Ok(Some(number)),
            None => Err(de::Error::custom(format!("'{text}' is no size"))),
        },
    }
}

/// `8.0.30`, or `8.4` for its first.
fn version<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Version>, D::Error> {
    let text = String::deserialize(from)?;
    let mut parts = text.split('.').map(str::parse);
    let mut next = || parts.next().unwrap_or(Ok(0));
    match (next(), next(), next()) {
        (Ok(major), Ok(minor), Ok(patch)) => Ok(Some(Version { major, minor, patch })),
        _ => Err(de::Error::custom(format!("'{text}' is no version"))),
    }
}

/// No such setting, with the nearest one that there is.
pub(super) fn unknown(name: &str) -> SettingError {
    SettingError::Unknown { name: name.to_owned(), nearest: table().nearest(name) }
}
