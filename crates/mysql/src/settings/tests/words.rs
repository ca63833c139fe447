//! What is set, and what servers are started with.

use super::super::{SettingError, Settings, differences};
use super::{mariadb, mysql, server};
use crate::{Binary, Flavour};

fn settings(values: &[(&str, &str)]) -> Settings {
    let mut settings = Settings::new();
    for (name, text) in values {
        settings.set(name, text).unwrap();
    }
    settings
}

fn lines(values: &[(&str, &str)], binary: &Binary) -> Vec<String> {
    settings(values).options_for(binary).unwrap()
}

fn refusal(values: &[(&str, &str)], binary: &Binary) -> String {
    settings(values).options_for(binary).unwrap_err().to_string()
}

fn set_refusal(name: &str, text: &str) -> String {
    Settings::new().set(name, text).unwrap_err().to_string()
}

#[test]
fn a_redo_capacity_is_written_in_each_servers_words() {
    let set = [("redo_capacity", "1GiB")];
    assert_eq!(lines(&set, &mariadb(10, 11, 19)), ["innodb_log_file_size=1073741824"]);
    assert_eq!(lines(&set, &mysql(8, 0, 30)), ["innodb_redo_log_capacity=1073741824"]);
    assert_eq!(
        lines(&set, &mysql(8, 0, 29)),
        ["innodb_log_file_size=536870912", "innodb_log_files_in_group=2"]
    );
}

#[test]
fn a_switch_of_a_plugin_loads_it_and_its_other_settings_do_not() {
    let set = [("semi_sync_source", "on"), ("semi_sync_timeout", "2s")];
    assert_eq!(
        lines(&set, &mysql(9, 7, 4)),
        [
            "plugin-load-add=semisync_source.so",
            "rpl_semi_sync_source_enabled=ON",
            "loose_rpl_semi_sync_source_timeout=2000"
        ]
    );
    assert_eq!(
        lines(&set, &mysql(8, 0, 15))[..2],
        ["plugin-load-add=semisync_master.so", "rpl_semi_sync_master_enabled=ON"]
    );
    assert_eq!(
        lines(&set, &mariadb(10, 11, 19)),
        ["rpl_semi_sync_master_enabled=ON", "rpl_semi_sync_master_timeout=2000"]
    );
    let off = [("semi_sync_source", "off")];
    assert!(lines(&off, &mysql(9, 7, 4)).is_empty(), "the server would not know the option");
    assert_eq!(lines(&off, &mariadb(10, 11, 19)), ["rpl_semi_sync_master_enabled=OFF"]);
}

#[test]
fn a_flush_method_becomes_switches_where_the_method_itself_is_deprecated() {
    let method = |method| lines(&[("flush_method", method)], &mariadb(11, 8, 6));
    let switches = |data, data_through, log_through| {
        [
            format!("innodb_data_file_buffering={data}"),
            format!("innodb_data_file_write_through={data_through}"),
            format!("innodb_log_file_write_through={log_through}"),
        ]
    };
    assert_eq!(method("fsync"), switches("ON", "OFF", "OFF"));
    assert_eq!(method("o_dsync"), switches("OFF", "ON", "ON"));
    assert_eq!(method("O_DIRECT"), switches("OFF", "OFF", "OFF"));
    assert_eq!(lines(&[("flush_method", "fsync")], &mariadb(10, 11, 19)), ["innodb_flush_method=fsync"]);
    let both = [("flush_method", "O_DIRECT"), ("data_file_buffering", "off")];
    assert!(refusal(&both, &mariadb(11, 8, 6)).contains("cannot both be set"));
}

#[test]
fn a_value_that_a_server_would_take_for_another_is_refused() {
    let why = refusal(&[("flush_method", "O_DIRECT_NO_FSYNC")], &mariadb(11, 8, 6));
    assert!(why.contains("'O_DIRECT_NO_FSYNC'") && why.contains("one of fsync, O_DSYNC, O_DIRECT"), "{why}");
    let percona = server(Flavour::Percona, (8, 0, 36));
    assert_eq!(lines(&[("flush_method", "all_o_direct")], &percona), ["innodb_flush_method=ALL_O_DIRECT"]);
    assert!(refusal(&[("flush_method", "ALL_O_DIRECT")], &mysql(8, 0, 36)).contains("MySQL 8.0.36 takes"));
}

#[test]
fn a_setting_that_a_version_lacks_is_an_error_that_names_the_version_that_took_or_brought_it() {
    let why = refusal(&[("page_cleaners", "4")], &mariadb(10, 11, 19));
    assert!(why.starts_with("MariaDB 10.11.19 has no page_cleaners (innodb_page_cleaners): removed in 10.6"));
    let why = refusal(&[("doublewrite_pages", "64")], &mysql(8, 0, 15));
    assert!(why.contains("added in 8.0.20"), "{why}");
    let why = refusal(&[("log_writer_threads", "off")], &mysql(8, 0, 15));
    assert!(why.contains("added in 8.0.22"), "{why}");
    let why = refusal(&[("query_cache_type", "off")], &mysql(9, 7, 4));
    assert!(why.contains("removed in 8.0.3"), "{why}");
    let why = refusal(&[("undo_tablespaces", "4")], &mysql(8, 4, 0));
    assert!(why.contains("without effect since 8.0.14"), "{why}");
}

#[test]
fn the_servers_own_names_are_taken_for_ours() {
    let set = settings(&[("innodb-buffer-pool-size", "16M"), ("Innodb_Redo_Log_Capacity", "8M")]);
    assert_eq!(set.get("buffer_pool_size"), Some("16M"));
    assert_eq!(set.get("redo_capacity"), Some("8M"));
    let set = settings(&[("tx_isolation", "read-committed"), ("log_bin_compress", "1")]);
    let names: Vec<_> = set.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["binlog_compression", "transaction_isolation"]);
}

#[test]
fn names_that_mean_different_things_on_different_servers_are_refused_with_what_to_write() {
    assert!(set_refusal("innodb_log_file_size", "1G").contains("redo_capacity"));
    assert!(set_refusal("innodb_log_files_in_group", "2").contains("redo_capacity"));
    assert!(set_refusal("raw.innodb_log_files_in_group", "2").contains("redo_capacity"));
    assert!(set_refusal("raw.loose-innodb-io-capacity", "2").contains("set io_capacity"));
    assert!(set_refusal("raw.skip-innodb-doublewrite", "1").contains("set doublewrite"));
    let ours = [
        "datadir",
        "raw.socket",
        "raw.loose_tmpdir",
        "innodb-log-group-home-dir",
        "raw.loose-skip-networking",
        "raw.maximum_port",
        "raw.enable-skip_grant-tables",
    ];
    for ours in ours {
        assert!(set_refusal(ours, "/x").contains("cannot be set"), "{ours}");
    }
}

#[test]
fn an_unknown_name_brings_the_nearest_one() {
    assert!(set_refusal("bufer_pool_size", "1G").contains("did you mean 'buffer_pool_size'?"));
    assert!(set_refusal("innodb_redo_log_capcity", "1G").contains("did you mean 'redo_capacity'?"));
    assert!(set_refusal("frobnicate_wildly", "1").contains("raw.NAME"));
}

#[test]
fn a_value_out_of_range_names_the_value_and_the_range() {
    let why = refusal(&[("redo_capacity", "4MiB")], &mysql(9, 7, 4));
    assert!(why.contains("'4MiB'") && why.contains("from 8MiB to 512GiB, in steps of 1MiB"), "{why}");
    assert_eq!(lines(&[("redo_capacity", "4MiB")], &mariadb(10, 11, 19)), ["innodb_log_file_size=4194304"]);
    assert!(refusal(&[("flush_log_at_trx_commit", "3")], &mysql(8, 4, 0)).contains("from 0 to 2"));
    assert!(refusal(&[("page_size", "12KiB")], &mysql(8, 4, 0)).contains("a power of two"));
    assert!(set_refusal("buffer_pool_size", "128MB").contains("a size such as 64MiB"));
    assert!(set_refusal("doublewrite", "sometimes").contains("one of OFF, ON, fast"));
}

#[test]
fn a_lower_bound_above_its_upper_one_is_refused_with_the_default_counted() {
    let low = [("io_capacity_max", "2000")];
    assert!(
        refusal(&low, &mysql(8, 4, 0)).contains("io_capacity is 10000, which is more than io_capacity_max")
    );
    assert_eq!(lines(&low, &mysql(8, 0, 36)), ["innodb_io_capacity_max=2000"]);
    assert_eq!(lines(&[("io_capacity", "5000")], &mysql(8, 0, 36)).len(), 1);
    let pct = [("max_dirty_pages_pct", "5")];
    assert!(refusal(&pct, &mysql(8, 0, 36)).contains("max_dirty_pages_pct_lwm is 10%"));
    assert_eq!(lines(&pct, &mariadb(11, 4, 5)), ["innodb_max_dirty_pages_pct=5"]);
}

#[test]
fn switches_times_and_percentages_are_written_as_options_take_them() {
    let set = [
        ("adaptive_hash_index", "true"),
        ("binlog_commit_wait_usec", "2ms"),
        ("max_dirty_pages_pct", "75.5%"),
        ("doublewrite", "0"),
        ("log_bin", "off"),
        ("transaction_isolation", "read_committed"),
        ("raw.innodb_linux_aio", "aio"),
        ("raw.skip-stack-trace", ""),
    ];
    let expected = [
        "innodb_adaptive_hash_index=ON",
        "binlog_commit_wait_usec=2000",
        "innodb_doublewrite=OFF",
        "skip_log_bin",
        "innodb_max_dirty_pages_pct=75.5",
        "innodb_linux_aio=aio",
        "skip_stack_trace",
        "transaction_isolation=READ-COMMITTED",
    ];
    assert_eq!(lines(&set, &mariadb(10, 11, 19)), expected);
    assert_eq!(lines(&[("log_bin", "on")], &mysql(9, 7, 4)), ["log_bin=binlog"]);
}

#[test]
fn a_raw_value_cannot_smuggle_in_a_line() {
    assert!(set_refusal("raw.innodb_x", "1\ndatadir=/").contains("one line"));
    assert!(set_refusal("raw.a\nb", "1").contains("letters"));
    assert!(set_refusal("character_set", "latin1\ndatadir=/").contains("one line"));
}

#[test]
fn servers_older_than_the_table_are_refused() {
    let why = refusal(&[("io_capacity", "200")], &mysql(5, 7, 44));
    assert_eq!(why, "the settings of MySQL 5.7.44 are not known: they are from 8.0 on");
    assert!(refusal(&[("io_capacity", "200")], &mariadb(10, 5, 23)).contains("from 10.6 on"));
    assert!(Settings::new().options_for(&mysql(5, 7, 44)).unwrap().is_empty());
}

#[test]
fn what_is_laid_over_replaces_what_was_there_by_any_of_its_names() {
    let mut base = settings(&[("redo_capacity", "96MiB"), ("io_capacity", "200")]);
    base.merge(&settings(&[("innodb_redo_log_capacity", "1GiB")]));
    assert_eq!(base.iter().collect::<Vec<_>>(), [("io_capacity", "200"), ("redo_capacity", "1GiB")]);
}

#[test]
fn data_directories_are_shared_by_settings_that_they_do_not_keep() {
    let key = |values: &[_], binary: &Binary| settings(values).init_key(binary);
    let server = mariadb(10, 11, 19);
    assert_eq!(key(&[("io_capacity", "200")], &server), key(&[], &server));
    assert_eq!(key(&[("page_size", "4096")], &server), key(&[("innodb_page_size", "4KiB")], &server));
    assert_ne!(key(&[("page_size", "4KiB")], &server), key(&[], &server));
    assert_ne!(key(&[], &mariadb(11, 8, 6)), key(&[], &server));
}

#[test]
fn differences_count_defaults_and_not_spelling() {
    let a = settings(&[("buffer_pool_size", "128M"), ("io_capacity", "200"), ("redo_capacity", "12MiB")]);
    let b = settings(&[("io_capacity_max", "2000"), ("redo_capacity", "64MiB"), ("raw.x", "1")]);
    let found = differences(&a, &b, &mariadb(10, 11, 19));
    let rows: Vec<_> = found.iter().map(|row| (row.name.as_str(), row.a.as_str(), row.b.as_str())).collect();
    let choice = "the server's choice (twice io_capacity, at least 2000)";
    assert_eq!(
        rows,
        [
            ("io_capacity_max", choice, "2000"),
            ("raw.x", "the server's default", "1"),
            ("redo_capacity", "12MiB", "64MiB"),
        ]
    );
    assert!(found[0].a_is_default && !found[0].b_is_default);
    assert_eq!(found[2].own_name, "innodb_log_file_size");
    let fsync = settings(&[("flush_method", "fsync")]);
    let found = differences(&fsync, &Settings::new(), &mariadb(11, 8, 6));
    assert!(found[0].own_name.starts_with("innodb_data_file_buffering, "), "{found:?}");
    assert_eq!(found[0].b, "O_DIRECT");
}

#[test]
fn a_file_may_write_values_without_quotes_and_is_checked_as_it_is_read() {
    let text = "buffer_pool_size = '16MiB'\nsync_binlog = 1\nlog_bin = true\nmax_dirty_pages_pct = 75.5";
    let read: Settings = toml::from_str(text).unwrap();
    assert_eq!(read.get("log_bin"), Some("on"));
    assert_eq!(read.get("max_dirty_pages_pct"), Some("75.5"));
    let wrong = toml::from_str::<Settings>("bufer_pool_size = 1").unwrap_err().to_string();
    assert!(wrong.contains("did you mean 'buffer_pool_size'?"), "{wrong}");
    let written = toml::to_string(&read).unwrap();
    assert_eq!(toml::from_str::<Settings>(&written).unwrap(), read);
}

#[test]
fn an_error_names_its_setting() {
    match settings(&[("page_cleaners", "4")]).options_for(&mariadb(10, 11, 19)) {
        Err(SettingError::NotHere { name, own_name, .. }) => {
            assert_eq!((name.as_str(), own_name.as_str()), ("page_cleaners", "innodb_page_cleaners"));
        }
        other => panic!("{other:?}"),
    }
}
