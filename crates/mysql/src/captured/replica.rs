//! What SHOW REPLICA STATUS printed with `\G`.

use std::collections::BTreeMap;

use ebbtide_observe::Variables;

use crate::status::all_channels;

/// The columns that are kept, of all channels; empty where the statement was asked and the server has no source; None in another text.
pub(super) fn read(text: &str) -> Option<Variables> {
    let column = |line: &str| {
        let (name, value) = line.trim().split_once(':')?;
        let word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        word.then(|| (name.to_ascii_lowercase(), value.trim().to_owned()))
    };
    // A channel begins with `*** 1. row ***`.
    let mut channels: Vec<Vec<(String, String)>> = vec![Vec::new()];
    for line in text.lines() {
        if line.starts_with('*') {
            channels.push(Vec::new());
        }
        channels.last_mut()?.extend(column(line));
    }
    channels.retain(|columns| {
        columns.iter().any(|(name, _)| matches!(name.as_str(), "slave_io_running" | "replica_io_running"))
    });
    if !channels.is_empty() {
        // Of several looks at a channel the last one holds.
        let name = |columns: &Variables| {
            ["channel_name", "connection_name"].iter().find_map(|name| columns.get(name)).map(str::to_owned)
        };
        let looks = channels.into_iter().map(Variables::from_iter);
        let last: BTreeMap<_, Variables> = looks.map(|columns| (name(&columns), columns)).collect();
        return Some(all_channels(last.into_values()));
    }
    let asked = |line: &str| matches!(line.trim(), "SHOW SLAVE STATUS\\G" | "SHOW REPLICA STATUS\\G");
    let mut lines = text.lines().filter(|line| !line.trim().is_empty()).peekable();
    lines.peek()?;
    lines.all(asked).then(Variables::default)
}
