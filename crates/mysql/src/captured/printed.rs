//! Variables and status as clients print them: with tabs (`mysql --batch`), in a table, or below each other (`\G`).

use std::collections::BTreeMap;

use ebbtide_observe::Variables;

/// What was printed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Printed {
    /// `SHOW GLOBAL VARIABLES`.
    pub(super) variables: Option<Variables>,
    /// Each `SHOW GLOBAL STATUS`, in order.
    pub(super) status: Vec<Variables>,
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

impl Printed {
    pub(super) fn add(&mut self, other: Self) {
        self.status.extend(other.status);
        let Some(more) = other.variables else { return };
        self.variables = Some(match self.variables.take() {
            Some(own) => own.iter().chain(more.iter()).collect(),
            None => more,
        });
    }
}

/// Whether variables are all that a server has.
pub(super) fn is_whole(variables: &Variables) -> bool {
    variables.get("version").is_some() && variables.iter().count() >= WHOLE
}

/// Variables and status in a text; None where it has neither.
pub(super) fn read(text: &str) -> Option<Printed> {
    // A name that comes again begins the output of another statement.
    let mut blocks: Vec<BTreeMap<String, &str>> = vec![BTreeMap::new()];
    for (name, value) in pairs(text) {
        let name = name.to_ascii_lowercase();
        if blocks.last().is_some_and(|block| block.contains_key(&name)) {
            blocks.push(BTreeMap::new());
        }
        blocks.last_mut()?.insert(name, value);
    }
    let mut printed = Printed::default();
    for block in blocks {
        let has = |name: &str| block.contains_key(name);
        let (status, variables) = (has("uptime"), has("version") || NAMES.iter().any(|name| has(name)));
        let block: Variables = block.into_iter().collect();
        if status {
            printed.status.push(block.clone());
        }
        if variables && printed.variables.is_none() {
            printed.variables = Some(block);
        }
    }
    (printed != Printed::default()).then_some(printed)
}

/// Seconds between the first and the last status; None where the uptime went back, or there are not two.
pub(super) fn seconds(status: &[Variables]) -> Option<f64> {
    let uptime = |status: &Variables| status.get("uptime")?.parse::<u64>().ok();
    let all: Vec<u64> = status.iter().map(uptime).collect::<Option<_>>()?;
    let (first, last) = (all.first()?, all.last()?);
    let forward = all.len() > 1 && all.windows(2).all(|pair| pair[0] <= pair[1]);
    forward.then(|| (last - first) as f64)
}

/// Name and value of each line that has both.
fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut below = None;
    text.lines().filter_map(move |line| {
        if let Some(pair) = line.split_once('\t').filter(|(name, _)| is_name(name)) {
            return Some((pair.0, pair.1.trim()));
        }
        let line = line.trim();
        if let Some(name) = line.strip_prefix("Variable_name:") {
            below = Some(name.trim());
            return None;
        }
        if let (Some(name), Some(value)) = (below, line.strip_prefix("Value:")) {
            below = None;
            return Some((name, value.trim()));
        }
        let (name, value) = line.strip_prefix('|')?.strip_suffix('|')?.split_once('|')?;
        is_name(name.trim()).then_some((name.trim(), value.trim()))
    })
}

/// Whether a word may be the name of a variable.
fn is_name(word: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    word.bytes().all(plain) && word.starts_with(|c: char| c.is_ascii_alphabetic())
}
