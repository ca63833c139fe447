//! Option files against the running server.

use std::collections::BTreeMap;

use ebbtide_observe::{Configured, NotSeen};

use super::sources::{MARIADB_INNODB, says};
use super::{EVERY, MARIADB};
use crate::check::Check;
use crate::finding::{FINE, Found, Gap, Judged, Severity};
use crate::fix::Fix;
use crate::view::View;

/// MySQL's manual, option files.
const OPTION_FILES: &str = "https://dev.mysql.com/doc/refman/8.4/en/option-files.html";

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "C01",
        title: "Each option of the files has an effect",
        condition: "an option file sets an InnoDB option that this MariaDB takes and ignores",
        reason: "the server starts with a warning in its log, so that the setting is believed to hold (seen on 10.11.19 and 11.8)",
        servers: MARIADB,
        severity: Severity::Low,
        gain: "the configuration says what holds",
        risk: "none",
        cost: "none",
        sources: &[says(MARIADB_INNODB, "variables that were removed are still taken, and ignored")],
        judge: removed,
    },
    Check {
        code: "C02",
        title: "The server runs with what its option files say",
        condition: "a storage setting of the running server is another than that of its option files",
        reason: "it was changed while the server ran, or the file after its start: the next restart changes it again",
        servers: EVERY,
        severity: Severity::Medium,
        gain: "no change at the next restart that nobody expects",
        risk: "find out first which of the two is meant",
        cost: "none",
        sources: &[says(OPTION_FILES, "options of files hold from the start of the server on")],
        judge: differs,
    },
    Check {
        code: "C03",
        title: "Each option is set once",
        condition: "a storage option is set several times, with different values",
        reason: "the last one holds, in the order in which files are read. A reader of one file takes the wrong value for the true one",
        servers: EVERY,
        severity: Severity::Low,
        gain: "the configuration says what holds",
        risk: "none",
        cost: "none",
        sources: &[says(
            OPTION_FILES,
            "if an option is given several times, the last instance takes precedence",
        )],
        judge: twice,
    },
];

/// Options that MariaDB takes and ignores, each from some release on.
const REMOVED: [&str; 37] = [
    "innodb_adaptive_max_sleep_delay",
    "innodb_background_scrub_data_check_interval",
    "innodb_background_scrub_data_compressed",
    "innodb_background_scrub_data_interval",
    "innodb_background_scrub_data_uncompressed",
    "innodb_buffer_pool_instances",
    "innodb_change_buffering",
    "innodb_commit_concurrency",
    "innodb_concurrency_tickets",
    "innodb_defragment",
    "innodb_defragment_fill_factor",
    "innodb_defragment_fill_factor_n_recs",
    "innodb_defragment_frequency",
    "innodb_defragment_n_pages",
    "innodb_defragment_stats_accuracy",
    "innodb_file_format",
    "innodb_force_load_corrupted",
    "innodb_idle_flush_pct",
    "innodb_large_prefix",
    "innodb_lock_schedule_algorithm",
    "innodb_locks_unsafe_for_binlog",
    "innodb_log_checksums",
    "innodb_log_compressed_pages",
    "innodb_log_files_in_group",
    "innodb_log_optimize_ddl",
    "innodb_lru_flush_size",
    "innodb_page_cleaners",
    "innodb_purge_rseg_truncate_frequency",
    "innodb_replication_delay",
    "innodb_rollback_segments",
    "innodb_scrub_log",
    "innodb_scrub_log_speed",
    "innodb_stats_sample_pages",
    "innodb_sync_array_size",
    "innodb_thread_concurrency",
    "innodb_thread_sleep_delay",
    "innodb_undo_logs",
];

/// Settings that a server takes as they are written: it rounds no other way than to a number.
const EXACT: [&str; 26] = [
    "binlog_format",
    "binlog_row_image",
    "innodb_adaptive_flushing",
    "innodb_adaptive_hash_index",
    "innodb_doublewrite",
    "innodb_file_per_table",
    "innodb_flush_log_at_timeout",
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_method",
    "innodb_flush_neighbors",
    "innodb_flush_sync",
    "innodb_io_capacity",
    "innodb_io_capacity_max",
    "innodb_lru_scan_depth",
    "innodb_max_dirty_pages_pct",
    "innodb_max_dirty_pages_pct_lwm",
    "innodb_purge_threads",
    "innodb_read_io_threads",
    "innodb_stats_on_metadata",
    "innodb_use_native_aio",
    "innodb_write_io_threads",
    "relay_log_recovery",
    "sync_binlog",
    "sync_relay_log",
    "innodb_log_buffer_size",
    "innodb_redo_log_capacity",
];

fn configured<'a>(v: &View<'a>) -> Result<&'a [Configured], Gap> {
    v.observation().configured.as_deref().ok_or_else(|| {
        Gap::Missing(NotSeen {
            what: "the server's option files".into(),
            why: "run this on the server's machine as root, or give them with --from".into(),
        })
    })
}

fn removed(v: &View<'_>) -> Judged {
    let lines = configured(v)?;
    if v.observation().partial_variables {
        return Err(Gap::Missing(NotSeen {
            what: "all variables of the server".into(),
            why: "connect to the server, or add the output of SHOW GLOBAL VARIABLES".into(),
        }));
    }
    let has = |name: &str| v.observation().variables.as_ref().is_some_and(|all| all.get(name).is_some());
    let ignored: Vec<&Configured> =
        lines.iter().filter(|line| REMOVED.contains(&line.name.as_str()) && !has(&line.name)).collect();
    let Some(first) = ignored.first() else { return FINE };
    let names: Vec<&str> = ignored.iter().map(|line| line.name.as_str()).collect();
    v.word("option", &format!("{} in {}", first.name, first.place), "option of a file");
    Found::because(format!("The server ignores {}.", names.join(", ")))
        .fix(Fix::by_hand(format!("Delete {} from the option files.", names.join(", "))))
        .answer()
}

/// Whether a file's value and a server's are the same setting.
fn is_same(file: &str, server: &str) -> bool {
    let number = |word: &str| match word.to_ascii_uppercase().as_str() {
        "ON" | "TRUE" | "YES" => Some(1.0),
        "OFF" | "FALSE" | "NO" => Some(0.0),
        _ => word.parse::<f64>().ok(),
    };
    match (number(file), number(server)) {
        (Some(file), Some(server)) => (file - server).abs() < 1e-6,
        // Of a choice a file may have the number.
        (Some(_), None) => true,
        _ => file.eq_ignore_ascii_case(server),
    }
}

fn differs(v: &View<'_>) -> Judged {
    let lines = configured(v)?;
    if v.observation().partial_variables {
        return Err(Gap::Undecided("The settings that were read are those of the option files.".into()));
    }
    let origins = v.observation().origins.as_ref();
    let mut found = Vec::new();
    for name in EXACT {
        let Some(line) = lines.iter().rfind(|line| line.name == name) else { continue };
        // SET PERSIST keeps a value over a restart.
        let persisted = origins
            .and_then(|all| all.get(name))
            .is_some_and(|origin| origin.eq_ignore_ascii_case("PERSISTED"));
        if let Some(now) = v.maybe(name)?
            && !persisted
            && !is_same(&line.value, now)
        {
            found.push(format!("{name} is {now}, and {} in {}", line.value, line.place));
        }
    }
    if found.is_empty() {
        return FINE;
    }
    Found::because(format!("{}.", found.join("; ")))
        .fix(Fix::by_hand("Write the value that is meant into the file, and set it on the server."))
        .answer()
}

fn twice(v: &View<'_>) -> Judged {
    let lines = configured(v)?;
    let of_storage = |name: &str| {
        ["innodb_", "sync_", "binlog_"].iter().any(|prefix| name.starts_with(prefix))
            && !name.starts_with("innodb_ft_")
    };
    let (mut last, mut found) = (BTreeMap::new(), BTreeMap::new());
    for line in lines.iter().filter(|line| of_storage(&line.name)) {
        let earlier: Option<&Configured> = last.insert(line.name.as_str(), line);
        if let Some(earlier) = earlier.filter(|earlier| !is_same(&earlier.value, &line.value)) {
            let text = format!(
                "{} is {} in {}, and {} in {}, which holds",
                line.name, earlier.value, earlier.place, line.value, line.place
            );
            found.insert(line.name.as_str(), text);
        }
    }
    let Some(first) = found.keys().next() else { return FINE };
    v.word("option", first, "option of a file");
    let found: Vec<String> = found.into_values().collect();
    Found::because(format!("{}.", found.join("; ")))
        .fix(Fix::by_hand("Delete the lines that do not hold."))
        .answer()
}
