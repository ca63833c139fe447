//! Variables and status as clients print them: with tabs (`mysql --batch`), in a table, below each other (`\G`), or as CSV of a
//! program with windows.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_observe::Variables;

/// What was printed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Printed {
    /// `SHOW GLOBAL VARIABLES`; of several the last value of each.
    pub(super) variables: Option<Variables>,
    /// Settings that several of them have with another value.
    pub(super) changed: BTreeSet<String>,
    /// A name and two values of one that a server has once: they are of several servers.
    pub(super) mixed: Option<(String, [String; 2])>,
    /// Each `SHOW GLOBAL STATUS`.
    pub(super) status: Statuses,
    /// The name in a last line that has no end, whose value may be cut off.
    pub(super) cut: Option<String>,
}

/// Outputs of `SHOW GLOBAL STATUS`, of which the first and the last are kept.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Statuses {
    pub(super) first: Option<Variables>,
    /// The last one of several.
    pub(super) last: Option<Variables>,
    /// Why they are not of one run of one server, in order.
    wrong: Option<NoRates>,
}

/// Names by which a part of the variables is known.
const NAMES: [&str; 6] = [
    "datadir",
    "innodb_buffer_pool_size",
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_method",
    "innodb_io_capacity",
    "sync_binlog",
];
/// Every server since 5.5 has more variables.
const WHOLE: usize = 250;

/// Whether names are those of a server's variables or of its status.
pub(super) fn is_of_server<'a>(names: impl Iterator<Item = &'a str>) -> bool {
    let is_known = |name: &str| NAMES.iter().chain([&"uptime"]).any(|known| name.eq_ignore_ascii_case(known));
    names.into_iter().any(is_known)
}

impl Printed {
    pub(super) fn add(&mut self, other: Self) {
        self.changed.extend(other.changed);
        self.mixed = self.mixed.take().or(other.mixed);
        self.status.add(other.status);
        self.cut = self.cut.take().or(other.cut);
        if let Some(more) = other.variables {
            self.add_variables(more);
        }
    }

    fn add_variables(&mut self, more: Variables) {
        let Some(own) = &mut self.variables else {
            self.variables = Some(more);
            return;
        };
        self.mixed = self.mixed.take().or_else(|| mixed(own, &more));
        self.changed.extend(more.changed_in(own));
        own.extend(more.iter());
    }

    /// Takes the output of one statement.
    fn take(&mut self, block: &BTreeMap<String, &str>) {
        let has = |name: &str| block.contains_key(name);
        let is_status = has("uptime");
        let are_variables = has("version") || NAMES.iter().any(|name| has(name));
        let values = || -> Variables { block.iter().map(|(name, value)| (name, *value)).collect() };
        if is_status {
            self.status.push(values());
        }
        if are_variables {
            self.add_variables(values());
        }
    }
}

impl Statuses {
    fn push(&mut self, status: Variables) {
        let Some(before) = self.last.as_ref().or(self.first.as_ref()) else {
            self.first = Some(status);
            return;
        };
        self.wrong = self.wrong.take().or_else(|| onward(before, &status).err());
        self.last = Some(status);
    }

    fn add(&mut self, other: Self) {
        if let Some(first) = other.first {
            self.push(first);
        }
        self.wrong = self.wrong.take().or(other.wrong);
        if other.last.is_some() {
            self.last = other.last;
        }
    }

    /// Seconds between the first and the last; None where there are not two.
    ///
    /// # Errors
    /// They are not of one run of one server, in order.
    pub(super) fn seconds(&self) -> Result<Option<f64>, NoRates> {
        let (Some(first), Some(last)) = (&self.first, &self.last) else { return Ok(None) };
        if let Some(wrong) = &self.wrong {
            return Err(wrong.clone());
        }
        match uptime(last)?.saturating_sub(uptime(first)?) {
            0 => Err(NoRates::SameTime),
            seconds => Ok(Some(seconds as f64)),
        }
    }
}

/// What tells servers apart.
const IDENTITY: [&str; 5] = ["server_uuid", "hostname", "port", "datadir", "version"];

/// A name and two values of one that tells servers apart.
pub(super) fn mixed(one: &Variables, other: &Variables) -> Option<(String, [String; 2])> {
    IDENTITY.into_iter().find_map(|name| {
        let values = [one.get(name)?, other.get(name)?];
        (values[0] != values[1]).then(|| (name.to_owned(), values.map(str::to_owned)))
    })
}

/// Whether variables are all that a server has.
pub(super) fn is_whole(variables: &Variables) -> bool {
    variables.get("version").is_some() && variables.iter().count() >= WHOLE
}

/// Variables and status in a text; None where it has neither.
pub(super) fn read(text: &str) -> Option<Printed> {
    let mut printed = Printed::default();
    let mut block: BTreeMap<String, &str> = BTreeMap::new();
    // With tabs, nothing but the end of the line shows that a value is whole.
    let (text, last) = match text.rsplit_once('\n') {
        Some((lines, last)) if last.contains('\t') => (lines, last),
        _ => (text, ""),
    };
    for (name, value) in pairs(text) {
        let name = name.to_ascii_lowercase();
        // A name that comes again begins the output of another statement.
        if block.contains_key(&name) {
            printed.take(&block);
            block.clear();
        }
        block.insert(name, value);
    }
    printed.take(&block);
    let known = printed != Printed::default();
    printed.cut = pairs(last).next().map(|(name, _)| name.to_ascii_lowercase());
    known.then_some(printed)
}

/// Why several statuses give no rates.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoRates {
    /// One of them has no uptime that is a number.
    #[error("its Uptime is no number")]
    NoUptime,
    #[error(
        "its Uptime went back: the server was started again between the two, the files are not in the order of their times, \
         or the second shows differences (mysqladmin --relative)"
    )]
    UptimeBack,
    /// A counter that a server never resets went back.
    #[error(
        "its {0} went back: the server was started again between the two, or they are of several servers; take two of one run"
    )]
    CounterBack(&'static str),
    /// A size that a server never changes is another one.
    #[error(
        "its {0} is another one: the second shows differences (mysqladmin --relative), or they are of several servers"
    )]
    Other(&'static str),
    #[error("all have the same Uptime: take the second some seconds later")]
    SameTime,
}

/// Counters that go back with a restart alone: FLUSH STATUS leaves them.
const ONWARD: [&str; 5] = [
    "connections",
    "innodb_data_writes",
    "innodb_data_written",
    "innodb_data_reads",
    "innodb_os_log_written",
];
/// What a server has from its start to its end.
const FIXED: [&str; 1] = ["innodb_page_size"];

fn number(status: &Variables, name: &str) -> Option<u64> {
    status.get(name)?.parse().ok()
}

fn uptime(status: &Variables) -> Result<u64, NoRates> {
    number(status, "uptime").ok_or(NoRates::NoUptime)
}

/// Whether a status is a later one of the same run of the same server, as far as it shows.
fn onward(before: &Variables, after: &Variables) -> Result<(), NoRates> {
    let both = |name: &str| number(before, name).zip(number(after, name));
    if let Some(name) =
        FIXED.into_iter().find(|name| both(name).is_some_and(|(before, after)| before != after))
    {
        return Err(NoRates::Other(name));
    }
    if uptime(before)? > uptime(after)? {
        return Err(NoRates::UptimeBack);
    }
    let back = |name: &&str| both(name).is_some_and(|(before, after)| before > after);
    ONWARD.into_iter().find(back).map_or(Ok(()), |name| Err(NoRates::CounterBack(name)))
}

/// Name and value of each line that has both.
fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut below = None;
    let mut separator = None;
    text.lines().filter_map(move |line| {
        // More columns are of another table, such as information_schema.SYSTEM_VARIABLES.
        let is_pair = |(name, value): &(&str, &str)| is_name(name) && !value.contains('\t');
        if let Some(pair) = line.split_once('\t').filter(is_pair) {
            return Some((pair.0, pair.1.trim()));
        }
        let line = line.trim();
        separator = separator.or_else(|| heading_of_csv(line));
        if let Some((name, value)) = separator.and_then(|separator| line.split_once(separator)) {
            return Some((unquoted(name), unquoted(value))).filter(|(name, _)| is_name(name));
        }
        // With \G there is no heading between two statements.
        if line.starts_with('*') && line.contains(" 1. row ") {
            return Some(("Variable_name", "Value"));
        }
        if let Some(name) = line.strip_prefix("Variable_name:") {
            below = Some(name.trim());
            return None;
        }
        if let (Some(name), Some(value)) = (below, line.strip_prefix("Value:")) {
            below = None;
            return Some((name, value.trim()));
        }
        if let Some(pair) = quoted_pair(line) {
            return Some(pair);
        }
        let (name, value) = line.strip_prefix('|')?.strip_suffix('|')?.split_once('|')?;
        let has_more = value.contains(" | ");
        (is_name(name.trim()) && !has_more).then_some((name.trim(), value.trim()))
    })
}

/// What stands between the fields of a CSV, by its heading; None of another line. A name has no separator, so that what follows the
/// first one is the value.
fn heading_of_csv(line: &str) -> Option<char> {
    let (name, value) = line.split_once([',', ';'])?;
    let is_heading = unquoted(name).eq_ignore_ascii_case("variable_name")
        && ["value", "variable_value"].iter().any(|word| unquoted(value).eq_ignore_ascii_case(word));
    line.chars().find(|letter| [',', ';'].contains(letter)).filter(|_| is_heading)
}

/// Two quoted fields of a CSV, which may have no heading.
fn quoted_pair(line: &str) -> Option<(&str, &str)> {
    let inner = line.strip_prefix('"')?.strip_suffix('"')?;
    let pair = ["\",\"", "\";\""].into_iter().find_map(|between| inner.split_once(between))?;
    Some(pair).filter(|(name, value)| is_name(name) && !value.contains('"'))
}

/// A field of a CSV without its quotes.
fn unquoted(field: &str) -> &str {
    let field = field.trim();
    field.strip_prefix('"').and_then(|field| field.strip_suffix('"')).unwrap_or(field)
}

/// Whether a word may be the name of a variable.
fn is_name(word: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    word.bytes().all(plain) && word.starts_with(|c: char| c.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_pairs_need_no_heading() {
        for between in [",", ";"] {
            let text = format!("\"Uptime\"{between}\"5\"\n\"Queries\"{between}\"7\"\n");
            let status = read(&text).unwrap().status.first.unwrap();
            assert_eq!((status.get("uptime"), status.get("queries")), (Some("5"), Some("7")));
        }
        assert_eq!(read("\"Uptime\",\"5\",\"x\"\n"), None, "three columns are of another table");
    }
}
