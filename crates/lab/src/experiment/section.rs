//! One section of an experiment: its keys, and their values with types, units and ranges.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use ebbtide_mysql::{SettingError, Settings};
use ebbtide_text::{closest, did_you_mean, parse_duration};
use ebbtide_volume::parse_size;

use super::ExperimentError;
use super::tree::{Node, TomlTable, Value, WrittenAt};

/// The keys of a section, without the server's settings, which are a table of their own.
pub(super) const SECTIONS: [(&str, &[&str]); 10] = [
    ("data", &["tables", "rows", "aged", "c_length", "pad_length", "warehouses"]),
    ("instance", &["memory", "type", "fs", "divided_by", "rotational", "burst"]),
    ("volumes", &["data", "redo", "binlog", "redo+binlog", "undo", "tmp", "relay", "backup"]),
    ("topology", &["replicas", "by", "promote", SOURCE, REPLICA]),
    ("load", LOAD),
    ("trial", &["repeats", "measure"]),
    ("warmup", &["read_tables", "lead_in", "lead_in_speed", "settle"]),
    ("batch", &["sql", "start", "end", "connections"]),
    ("backup", &["method", "of", "start", "damage"]),
    ("crash", &["role", "replication", SOURCE, "cuts", "end", "fault", "moments", "keep", GAIN]),
];

/// The tables of `[topology]` with what the servers of a role have otherwise, and the keys and sections that they may
/// have.
pub(super) const SOURCE: &str = "source";
pub(super) const REPLICA: &str = "replica";
pub(super) const OF_SERVERS: [&str; 3] = [SERVER, "settings", "volumes"];

/// The key of these tables that names a server program.
pub(super) const SERVER: &str = "server";

/// The key of `[crash]` that all arms share.
pub(super) const GAIN: &str = "gain";

/// The keys that all arms share, of sections in which arms may differ.
pub(super) const SHARED: [(&str, &str); 2] = [("crash", GAIN), ("trial", "repeats")];

const LOAD: &[&str] = &[
    "workload",
    "connections",
    "round_trip",
    "rate",
    "arrival",
    "trx_level",
    "wait_mode",
    "statements",
    "distribution",
    "rand_spec_iter",
    "rand_spec_pct",
    "rand_spec_res",
    "rand_pareto_h",
    "rand_zipfian_exp",
    "point_selects",
    "simple_ranges",
    "sum_ranges",
    "order_ranges",
    "distinct_ranges",
    "range_size",
    "range_selects",
    "index_updates",
    "non_index_updates",
    "delete_inserts",
    "skip_trx",
    "gets_pct",
];

/// sysbench's words for keys that have another one here.
const ALSO: [(&str, &str, &str); 3] = [
    ("data", "table_size", "rows"),
    ("load", "threads", "connections"),
    ("load", "rand_type", "distribution"),
];

/// The sections in which arms may differ.
pub(super) const OF_ARMS: [&str; 10] =
    ["settings", "volumes", "topology", "load", "instance", "batch", "backup", "trial", "warmup", "crash"];

/// The sections that all arms share.
pub(super) const OF_ALL: [&str; 1] = ["data"];

/// The keys of a section; none for `settings`, which the servers decide on.
pub(super) fn keys_of(section: &str) -> Option<&'static [&'static str]> {
    SECTIONS.iter().find(|(name, _)| *name == section).map(|(_, keys)| *keys)
}

/// The key's own name, where it was written in sysbench's words or with dashes.
pub(super) fn canonical_key(section: &str, key: &str) -> String {
    let key = key.replace('-', "_");
    ALSO.iter()
        .find(|(of, also, _)| *of == section && *also == key)
        .map_or(key, |(_, _, name)| (*name).to_owned())
}

/// A section, looked into key by key.
pub(super) struct Section<'a> {
    name: &'static str,
    table: Option<&'a TomlTable>,
    place: Option<&'a WrittenAt>,
}

impl<'a> Section<'a> {
    /// The section of that name; one that is not there has all its defaults.
    pub(super) fn of(root: &'a TomlTable, name: &'static str) -> Result<Self, ExperimentError> {
        let place = root.get(name).map(|node| &node.place);
        let table = root.get(name).map(|node| node.table(name)).transpose()?;
        let keys = keys_of(name).unwrap_or(&[]);
        for (key, node) in table.into_iter().flat_map(TomlTable::iter) {
            if !keys.contains(&key) {
                return Err(unknown_key(&node.place, key, &format!("[{name}]"), keys));
            }
        }
        Ok(Self { name, table, place })
    }

    /// A table of a list, with the keys that it may have.
    pub(super) fn of_table(
        name: &'static str,
        node: &'a Node,
        keys: &[&str],
    ) -> Result<Self, ExperimentError> {
        let table = node.table(name)?;
        for (key, node) in table.iter() {
            if !keys.contains(&key) {
                return Err(unknown_key(&node.place, key, &format!("[[{name}]]"), keys));
            }
        }
        Ok(Self { name, table: Some(table), place: Some(&node.place) })
    }

    pub(super) fn is_there(&self) -> bool {
        self.table.is_some()
    }

    /// The keys that are there.
    pub(super) fn keys(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.table.into_iter().flat_map(TomlTable::iter).map(|(key, _)| key)
    }

    fn node(&self, key: &str) -> Option<&'a Node> {
        self.table.and_then(|table| table.get(key))
    }

    /// The error of a value that its key does not take.
    pub(super) fn wrong(&self, key: &str, expected: impl Display) -> ExperimentError {
        match (self.node(key), self.place) {
            (Some(node), _) => node.place.wrong(format!("{}.{key} = {}: {expected}", self.name, node.value)),
            (None, Some(section)) => section.wrong(format!("{}.{key}: {expected}", self.name)),
            (None, None) => WrittenAt::option(format!("[{}]", self.name)).wrong(format!("{key}: {expected}")),
        }
    }

    /// A text.
    pub(super) fn text(&self, key: &str) -> Result<Option<&'a str>, ExperimentError> {
        match self.node(key).map(|node| &node.value) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text.trim())),
            Some(_) => Err(self.wrong(key, "it must be a text in quotes")),
        }
    }

    /// A list of texts; one text is a list of one.
    pub(super) fn texts(&self, key: &str) -> Result<Option<Vec<&'a str>>, ExperimentError> {
        let wrong = || self.wrong(key, "it must be a list of texts, like [\"random\", \"redo\"]");
        match self.node(key).map(|node| &node.value) {
            None => Ok(None),
            // As a command line has it.
            Some(Value::Text(text)) => Ok(Some(text.split(',').map(str::trim).collect())),
            Some(Value::List(items)) => {
                let texts = items.iter().map(|item| match &item.value {
                    Value::Text(text) => Ok(text.trim()),
                    _ => Err(wrong()),
                });
                texts.collect::<Result<_, _>>().map(Some)
            }
            Some(_) => Err(wrong()),
        }
    }

    /// A table.
    pub(super) fn table(&self, key: &str) -> Result<Option<&'a TomlTable>, ExperimentError> {
        match self.node(key).map(|node| &node.value) {
            None => Ok(None),
            Some(Value::Table(table)) => Ok(Some(table)),
            Some(_) => Err(self.wrong(key, "it must be a table, like { one = 1, two = 2 }")),
        }
    }

    /// A whole number in a range.
    pub(super) fn whole(
        &self,
        key: &str,
        default: u32,
        range: RangeInclusive<u32>,
    ) -> Result<u32, ExperimentError> {
        let Some(node) = self.node(key) else { return Ok(default) };
        let number = match node.value {
            Value::Whole(number) => u32::try_from(number).ok().filter(|number| range.contains(number)),
            _ => None,
        };
        number.ok_or_else(|| {
            self.wrong(key, format!("it must be a whole number from {} to {}", range.start(), range.end()))
        })
    }

    /// A number of any kind; its range is the caller's.
    pub(super) fn real(&self, key: &str) -> Result<Option<f64>, ExperimentError> {
        match self.node(key).map(|node| &node.value) {
            None => Ok(None),
            Some(Value::Whole(number)) => Ok(Some(*number as f64)),
            Some(Value::Real(number)) => Ok(Some(*number)),
            Some(_) => Err(self.wrong(key, "it must be a number")),
        }
    }

    /// A switch.
    pub(super) fn switch(&self, key: &str, default: bool) -> Result<bool, ExperimentError> {
        match self.node(key).map(|node| &node.value) {
            None => Ok(default),
            Some(Value::Switch(on)) => Ok(*on),
            Some(_) => Err(self.wrong(key, "it must be true or false")),
        }
    }

    /// A duration in seconds.
    pub(super) fn duration(
        &self,
        key: &str,
        default: u32,
        range: RangeInclusive<u32>,
    ) -> Result<u32, ExperimentError> {
        Ok(self.maybe_duration(key, range)?.unwrap_or(default))
    }

    /// A duration in seconds, where there is one.
    pub(super) fn maybe_duration(
        &self,
        key: &str,
        range: RangeInclusive<u32>,
    ) -> Result<Option<u32>, ExperimentError> {
        let Some(node) = self.node(key) else { return Ok(None) };
        let text = match &node.value {
            Value::Text(text) => text.as_str(),
            _ => return Err(self.wrong(key, "a duration has its unit, like \"60s\", \"5m\" or \"1h\"")),
        };
        let span = parse_duration(text).map_err(|error| self.wrong(key, error))?;
        if span.subsec_nanos() != 0 {
            return Err(self.wrong(key, "it must be a whole number of seconds"));
        }
        let seconds = u32::try_from(span.as_secs()).ok().filter(|seconds| range.contains(seconds));
        seconds.map(Some).ok_or_else(|| {
            let [least, most] = [range.start(), range.end()]
                .map(|s| ebbtide_text::duration(Duration::from_secs((*s).into())));
            self.wrong(key, format!("it must be {least} to {most}"))
        })
    }

    /// A short duration in whole microseconds, from none to `most`.
    pub(super) fn short_duration(&self, key: &str, most: Duration) -> Result<u32, ExperimentError> {
        let Some(text) = self.text(key)? else { return Ok(0) };
        let span = parse_duration(text).map_err(|error| self.wrong(key, error))?;
        if !span.subsec_nanos().is_multiple_of(1000) {
            return Err(self.wrong(key, "it must be a whole number of microseconds"));
        }
        if span > most {
            return Err(self.wrong(key, format!("it must be 0s to {}", ebbtide_text::duration(most))));
        }
        Ok(u32::try_from(span.as_micros()).expect("seconds fit"))
    }

    /// A size in bytes.
    pub(super) fn size(
        &self,
        key: &str,
        default: u64,
        range: RangeInclusive<u64>,
    ) -> Result<u64, ExperimentError> {
        let Some(text) = self.node(key).map(|node| &node.value) else { return Ok(default) };
        let Value::Text(text) = text else {
            return Err(self.wrong(key, "a size has its unit, like \"2GiB\" or \"512MiB\""));
        };
        match parse_size(text) {
            Err(error) => Err(self.wrong(key, error)),
            Ok(bytes) if range.contains(&bytes) => Ok(bytes),
            Ok(_) => {
                let [least, most] = [*range.start(), *range.end()].map(ebbtide_volume::format_size);
                Err(self.wrong(key, format!("it must be {least} to {most}")))
            }
        }
    }
}

/// The error of a key that does not exist.
pub(super) fn unknown_key(place: &WrittenAt, key: &str, section: &str, keys: &[&str]) -> ExperimentError {
    let nearest = closest(key, keys.iter().copied());
    let suggestion = did_you_mean(nearest);
    place.wrong(format!("unknown key '{key}' in {section}{suggestion}; the keys are {}", keys.join(", ")))
}

/// The one name of a setting.
pub(super) fn setting_name(name: &str, text: &str) -> Result<String, SettingError> {
    let mut one = Settings::new();
    match one.set(name, text) {
        Ok(()) => Ok(one.iter().next().map_or(name, |(canonical, _)| canonical).to_owned()),
        // The name is known; the value is judged, or found to mean the default, where it is used.
        Err(SettingError::Value { name, .. }) => Ok(name),
        Err(error) => Err(error),
    }
}
