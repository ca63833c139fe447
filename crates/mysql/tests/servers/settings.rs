//! Settings on real servers: set, accepted, and read back.

use ebbtide_mysql::settings::{Effective, known};
use ebbtide_mysql::{Flavour, ServerError, Settings};

use crate::support::{Bench, on_each_server, start};

fn settings(values: &[(&str, &str)]) -> Settings {
    let mut settings = Settings::new();
    for (name, text) in values {
        settings.set(name, text).unwrap();
    }
    settings
}

/// Starts with the settings; answers with the notes. That they are what the server has was verified by
/// its start.
fn notes(bench: &Bench, settings: Settings) -> Vec<String> {
    let mut plan = bench.plan();
    plan.settings = settings;
    let server = start(&plan);
    let about_settings =
        |note: &&String| known().iter().any(|known| note.starts_with(&format!("{}: ", known.name)));
    let notes = server.notes().iter().filter(about_settings).cloned().collect();
    server.kill().unwrap();
    std::fs::remove_dir_all(&plan.layout.data).unwrap();
    notes
}

on_each_server! {
    fn every_fixed_default_is_taken_and_read_back_when_it_is_set(bench) {
        let mut settings = Settings::new();
        // A distribution has a character set of its own, which its collation follows.
        // MySQL knows those of semi-synchronous replication only while `semi_sync_source` loads its plugin.
        let left_out = ["character_set", "flush_method", "semi_sync_timeout", "semi_sync_wait_point"];
        for known in known().iter().filter(|known| !left_out.contains(&known.name.as_str())) {
            let Some(Effective { value, .. }) = Settings::new().effective(&known.name, &bench.binary) else {
                panic!("{} is not known", known.name)
            };
            if value != "none" && !value.starts_with("the server's choice") {
                settings.set(&known.name, &value).unwrap();
            }
        }
        assert!(settings.iter().count() > 60, "{settings:?}");
        // MariaDB's own defaults, which it rounds to the device and to the machine.
        let rounds = ["log_write_ahead_size: 512", "table_open_cache_instances: 8"];
        let mut notes = notes(&bench, settings);
        notes.retain(|note| !rounds.iter().any(|known| note.starts_with(known)));
        assert_eq!(notes, Vec::<String>::new());
    }

    fn settings_other_than_the_defaults_are_what_the_server_then_has(bench) {
        let mut wanted = settings(&[
            ("adaptive_flushing", "off"),
            ("adaptive_flushing_lwm", "25"),
            ("adaptive_hash_index", "on"),
            ("binlog_cache_size", "64KiB"),
            ("binlog_format", "mixed"),
            ("binlog_row_image", "minimal"),
            ("buffer_pool_size", "64MiB"),
            ("doublewrite", "off"),
            ("flush_log_at_trx_commit", "2"),
            ("flush_method", "fsync"),
            ("flush_neighbors", "2"),
            ("flush_sync", "off"),
            ("io_capacity", "500"),
            ("io_capacity_max", "750"),
            ("log_bin", "on"),
            ("log_buffer_size", "8MiB"),
            ("lru_scan_depth", "256"),
            ("max_connections", "300"),
            ("max_dirty_pages_pct", "75.5"),
            ("max_dirty_pages_pct_lwm", "5"),
            ("old_blocks_time", "250ms"),
            ("performance_schema", "on"),
            ("purge_threads", "2"),
            ("redo_capacity", "16MiB"),
            ("stats_persistent", "off"),
            ("sync_binlog", "7"),
            ("transaction_isolation", "read-committed"),
            ("write_io_threads", "8"),
            ("raw.net_retry_count", "11"),
        ]);
        notes(&bench, wanted.clone());
        // And the other way round.
        for (name, text) in [("log_bin", "off"), ("flush_method", "O_DIRECT"), ("redo_capacity", "64MiB")] {
            wanted.set(name, text).unwrap();
        }
        wanted.set("performance_schema", "off").unwrap();
        wanted.set("buffer_pool_size", "200MiB").unwrap();
        let notes = notes(&bench, wanted);
        if bench.binary.flavour == Flavour::MariaDb {
            assert_eq!(notes, Vec::<String>::new());
        } else {
            assert!(notes[0].starts_with("buffer_pool_size: 200MiB was asked for, the server has 256MiB"));
        }
    }

    fn an_option_that_does_nothing_is_an_error_and_not_a_line_in_a_log(bench) {
        let mut plan = bench.plan();
        // MariaDB removed it in 10.6 and accepts it since; MySQL knows no such option and does not start.
        plan.settings = settings(&[("raw.innodb_log_optimize_ddl", "on")]);
        let error = ebbtide_mysql::Server::start(&plan, &|_| {}).unwrap_err();
        let message = match &error {
            ServerError::Setting(why) => why.to_string(),
            ServerError::SettingRefused { words } => words.join(" "),
            ServerError::DidNotStart { .. } => error.log().join(" "),
            other => panic!("{other}"),
        };
        assert!(message.replace('-', "_").contains("innodb_log_optimize_ddl"), "{message}");
    }
}
