//! A server that was seen, for the tests of this crate and of the program.

use ebbtide_observe::{Facts, Observation, Origin, Rates, Span, StatusVariables, Variables};

/// A MariaDB with a small redo log, no sync of its binary log, and 100 transactions a second, of a
/// 4 GiB buffer pool on a gp3. `more` has variables that take the place of these.
#[must_use]
pub fn busy_mariadb(more: &[(&str, &str)]) -> Observation {
    let variables: Variables = [
        ("version", "10.11.19-MariaDB"),
        ("log_bin", "ON"),
        ("sync_binlog", "0"),
        ("binlog_format", "ROW"),
        ("innodb_buffer_pool_size", "4294967296"),
        ("innodb_log_file_size", "50331648"),
        ("innodb_flush_log_at_trx_commit", "1"),
        ("innodb_io_capacity", "400"),
        ("innodb_page_size", "16384"),
    ]
    .iter()
    .chain(more)
    .copied()
    .collect();
    let rates = Rates {
        commits: Some(100.0),
        read_statements: Some(1_000.0),
        write_statements: Some(300.0),
        redo_bytes: Some(1e6),
        threads_running: Some(32.0),
        data_pages: Some(200_000.0),
        page_reads: Some(0.0),
        ..Rates::default()
    };
    let growth = [("com_update", 200.0), ("com_insert", 50.0), ("com_delete", 50.0)];
    let growth = growth.map(|(name, value)| (name.to_owned(), value));
    Observation {
        span: Some(Span { began_unix_s: None, seconds: 60.0, restarted: false }),
        facts: Some(Facts::of(&variables)),
        variables: Some(variables),
        rates: Some(rates),
        status: Some(StatusVariables { last: Variables::default(), growth_per_s: growth.into() }),
        volume: Some("gp3:size=500GiB,iops=6000".into()),
        ..Observation::of(Origin::Capture { path: "/c".into() })
    }
}
