//! `mysql_slave_status_*`: mysqld_exporter's collector `slave_status` (`slave_status.go`), with the words of both eras: each column
//! stands under its own name and under the one that it has with `replica` for `slave` and `source` for `master`, or the other way round, so
//! that a rule finds it whatever the version.

use ebbtide_mysql::sampling::ReplicaRow;

use super::families::{Families, Kind, Labels};
use super::value::number;

const HELP: &str = "Generic metric from SHOW SLAVE STATUS.";

/// Words of the older statements, and of those that follow them.
const WORDS: [(&str, &str); 2] = [("slave", "replica"), ("master", "source")];

/// Adds the families of SHOW REPLICA STATUS in the words of any version.
pub(super) fn add(families: &mut Families, rows: &[ReplicaRow]) {
    for row in rows {
        add_row(families, row);
    }
}

fn add_row(families: &mut Families, row: &ReplicaRow) {
    let text = |names: &[&str]| {
        let found = names.iter().find_map(|name| row.get(*name).filter(|text| !text.is_empty()));
        found.cloned().unwrap_or_default()
    };
    let labels: Labels = vec![
        ("master_host", text(&["Master_Host", "Source_Host"])),
        ("master_uuid", text(&["Master_UUID", "Source_UUID"])),
        ("channel_name", text(&["Channel_Name"])),
        ("connection_name", text(&["Connection_name"])),
    ];
    for (column, text) in row {
        let Some(value) = number(text) else { continue };
        let column = column.to_lowercase();
        let name = format!("mysql_slave_status_{column}");
        if let Some(other) = other_words(&column) {
            families.add(&format!("mysql_slave_status_{other}"), Kind::Untyped, HELP, labels.clone(), value);
        }
        families.add(&name, Kind::Untyped, HELP, labels.clone(), value);
    }
    for column in ["Gtid_IO_Pos", "Gtid_Slave_Pos"] {
        let Some(positions) = row.get(column) else { continue };
        let column = column.to_lowercase();
        let names = [Some(column.clone()), other_words(&column)];
        for name in names.into_iter().flatten().map(|column| format!("mysql_slave_status_{column}")) {
            for (domain, server, sequence) in positions.split(',').filter_map(gtid) {
                let place = [("domain_id", domain.to_owned()), ("server_id", server.to_owned())];
                let labels = [&labels[..], &place].concat();
                families.add(&name, Kind::Gauge, HELP, labels, sequence as f64);
            }
        }
    }
}

/// The three parts of a GTID of MariaDB: domain, server, sequence number.
pub(super) fn gtid(text: &str) -> Option<(&str, &str, u64)> {
    let mut parts = text.trim().split('-');
    let found = (parts.next()?, parts.next()?, parts.next()?.parse().ok()?);
    parts.next().is_none().then_some(found)
}

/// A column in the words of the other era, word by word: `replicate` is no form of `replica`. None where it has none of them.
fn other_words(column: &str) -> Option<String> {
    let mut found = false;
    let other = |word: &str| {
        let pair = WORDS.iter().find(|(old, new)| word == *old || word == *new);
        let Some((old, new)) = pair else { return word.to_owned() };
        found = true;
        (if word == *old { *new } else { *old }).to_owned()
    };
    let words: Vec<String> = column.split('_').map(other).collect();
    found.then(|| words.join("_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(columns: &[(&str, &str)]) -> ReplicaRow {
        columns.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn families(columns: &[(&str, &str)]) -> Families {
        let mut families = Families::default();
        add(&mut families, &[row(columns)]);
        families
    }

    const NO_LABELS: [(&str, &str); 4] =
        [("master_host", "127.0.0.1"), ("master_uuid", ""), ("channel_name", ""), ("connection_name", "")];

    /// The row and the values of mysqld_exporter's own test.
    #[test]
    fn a_replica_of_mariadb_has_the_names_of_mysqld_exporter_and_the_newer_ones() {
        let families = families(&[
            ("Master_Host", "127.0.0.1"),
            ("Read_Master_Log_Pos", "1"),
            ("Slave_IO_Running", "Connecting"),
            ("Slave_SQL_Running", "Yes"),
            ("Seconds_Behind_Master", "2"),
            ("Gtid_IO_Pos", "0-1-2,3-4-5"),
            ("Replicate_Ignore_Server_Ids", "7"),
        ]);
        for (name, value) in [
            ("read_master_log_pos", 1.0),
            ("read_source_log_pos", 1.0),
            ("slave_io_running", 0.0),
            ("replica_io_running", 0.0),
            ("slave_sql_running", 1.0),
            ("replica_sql_running", 1.0),
            ("seconds_behind_master", 2.0),
            ("seconds_behind_source", 2.0),
            ("replicate_ignore_server_ids", 7.0),
        ] {
            let name = format!("mysql_slave_status_{name}");
            assert_eq!(families.value(&name, &NO_LABELS), Some(value), "{name}");
        }
        for (domain, server, sequence) in [("0", "1", 2.0), ("3", "4", 5.0)] {
            let labels = [&NO_LABELS[..], &[("domain_id", domain), ("server_id", server)]].concat();
            assert_eq!(families.value("mysql_slave_status_gtid_io_pos", &labels), Some(sequence));
        }
        assert!(!families.text().contains("slavete_"), "replicate is no form of replica");
    }

    #[test]
    fn a_replica_of_a_newer_mysql_has_the_older_names_too() {
        let families = families(&[
            ("Source_Host", "db1"),
            ("Source_UUID", "u"),
            ("Channel_Name", "shop"),
            ("Replica_IO_Running", "Yes"),
            ("Replica_SQL_Running", "No"),
            ("Exec_Source_Log_Pos", "157"),
            ("Get_Source_public_key", "0"),
        ]);
        let labels =
            [("master_host", "db1"), ("master_uuid", "u"), ("channel_name", "shop"), ("connection_name", "")];
        for (name, value) in [
            ("replica_io_running", 1.0),
            ("slave_io_running", 1.0),
            ("slave_sql_running", 0.0),
            ("exec_master_log_pos", 157.0),
            ("get_master_public_key", 0.0),
        ] {
            assert_eq!(families.value(&format!("mysql_slave_status_{name}"), &labels), Some(value), "{name}");
        }
        // The lag of a stopped replica is NULL, and not 0.
        assert!(!families.text().contains("seconds_behind"));
    }

    #[test]
    fn a_gtid_has_three_parts() {
        assert_eq!(gtid("0-1-4711"), Some(("0", "1", 4711)));
        assert_eq!([gtid("0-1"), gtid("0-1-2-3"), gtid("0-1-x"), gtid("")], [None; 4]);
    }
}
