//! What SHOW REPLICA STATUS printed with `\G`.

use ebbtide_observe::Variables;

use crate::status::is_kept_of_replica;

/// The columns that are kept; empty where the statement was asked and the server has no source; None in another text.
pub(super) fn read(text: &str) -> Option<Variables> {
    let column = |line: &str| {
        let (name, value) = line.trim().split_once(':')?;
        let word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        word.then(|| (name.to_ascii_lowercase(), value.trim().to_owned()))
    };
    let columns: Vec<_> = text.lines().filter_map(column).collect();
    let has = |name: &str| columns.iter().any(|(column, _)| column == name);
    if has("slave_io_running") || has("replica_io_running") {
        return Some(columns.into_iter().filter(|(name, _)| is_kept_of_replica(name)).collect());
    }
    let asked = |line: &str| matches!(line.trim(), "SHOW SLAVE STATUS\\G" | "SHOW REPLICA STATUS\\G");
    let mut lines = text.lines().filter(|line| !line.trim().is_empty()).peekable();
    lines.peek()?;
    lines.all(asked).then(Variables::default)
}
