//! What SHOW REPLICA STATUS printed with `\G`.

use std::collections::BTreeMap;

use ebbtide_observe::{Variables, worst_channel};

/// The columns that are kept, of all channels; empty where the statement was asked and the server has no source; None in another text.
pub(super) fn read(text: &str) -> Option<Variables> {
    let column = |line: &str| {
        let (name, value) = line.trim().split_once(':')?;
        let word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        word.then(|| (name.to_ascii_lowercase(), value.trim().to_owned()))
    };
    // A row begins with a line of asterisks and its number.
    let mut channels = vec![Vec::new()];
    for line in text.lines() {
        if line.starts_with("***") && line.contains(". row ") {
            channels.push(Vec::new());
        }
        if let (Some(column), Some(channel)) = (column(line), channels.last_mut()) {
            channel.push(column);
        }
    }
    let is_channel = |columns: &Vec<(String, String)>| {
        columns.iter().any(|(name, _)| matches!(&**name, "slave_io_running" | "replica_io_running"))
    };
    channels.retain(is_channel);
    if !channels.is_empty() {
        // Of several looks at a channel the last one holds.
        let name = |columns: &Variables| {
            ["channel_name", "connection_name"].iter().find_map(|name| columns.get(name)).map(str::to_owned)
        };
        let looks = channels.into_iter().map(Variables::from_iter);
        let last: BTreeMap<_, Variables> = looks.map(|columns| (name(&columns), columns)).collect();
        return Some(worst_channel(last.into_values()));
    }
    let asked = |line: &str| {
        matches!(
            line.trim(),
            "SHOW SLAVE STATUS\\G"
                | "SHOW REPLICA STATUS\\G"
                | "SHOW ALL SLAVES STATUS\\G"
                | "SHOW ALL REPLICAS STATUS\\G"
        )
    };
    let mut lines = text.lines().filter(|line| !line.trim().is_empty()).peekable();
    lines.peek()?;
    lines.all(asked).then(Variables::default)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_is_a_channel() {
        let row = |number: u32, name: &str, sql: &str, behind: &str| {
            format!(
                "*************************** {number}. row ***************************\n  Replica_IO_Running: Yes\n Replica_SQL_Running: {sql}\nSeconds_Behind_Source: {behind}\n        Channel_Name: {name}\n"
            )
        };
        let all = row(1, "a", "Yes", "0") + &row(2, "b", "No", "NULL") + &row(3, "", "Yes", "9");
        let read = read(&all).unwrap();
        assert_eq!(read.get("replica_sql_running"), Some("No"));
        let member = row(1, "group_replication_recovery", "No", "NULL");
        assert!(super::read(&member).unwrap().is_empty());
        assert_eq!(super::read("no such text"), None);
    }
}
