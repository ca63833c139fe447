//! The server's table of a profile, from the server's variables.

use ebbtide_observe::{Facts, Flavour, Variables, Version, switch};
use ebbtide_twin::profile::{DoublewriteMode, DoublewriteTable, ServerTable};
use ebbtide_volume::format_size;

/// The table, and what the model does not have of these variables, in sentences. A variable that is not known has the
/// default of the flavour.
#[must_use]
pub fn server_table(
    facts: &Facts,
    variables: &Variables,
    file_system: Option<&str>,
) -> (ServerTable, Vec<String>) {
    let mut notes = Vec::new();
    let known = Known { variables };
    let size = |name: &str| known.number::<u64>(name).map(format_size);
    let table = ServerTable {
        flavour: flavour(facts, &mut notes).map(str::to_owned),
        buffer_pool_size: size("innodb_buffer_pool_size"),
        // MariaDB has none, and ignores the variable from 10.5 on.
        buffer_pool_instances: known
            .number("innodb_buffer_pool_instances")
            .filter(|_| facts.flavour != Flavour::MariaDb),
        page_size: size("innodb_page_size"),
        io_capacity: known.number("innodb_io_capacity"),
        io_capacity_max: known.number("innodb_io_capacity_max"),
        max_dirty_pages_pct: known.number("innodb_max_dirty_pages_pct"),
        max_dirty_pages_pct_lwm: known.number("innodb_max_dirty_pages_pct_lwm"),
        adaptive_flushing: known.switch("innodb_adaptive_flushing"),
        adaptive_flushing_lwm: known.number("innodb_adaptive_flushing_lwm"),
        flushing_avg_loops: known.number("innodb_flushing_avg_loops"),
        flush_sync: known.switch("innodb_flush_sync"),
        lru_scan_depth: known.number("innodb_lru_scan_depth"),
        idle_flush_pct: known.number("innodb_idle_flush_pct"),
        flush_neighbors: known.number("innodb_flush_neighbors"),
        doublewrite: doublewrite(facts, &mut notes),
        // 0 stands for the default.
        doublewrite_pages: known.number("innodb_doublewrite_pages").filter(|pages| *pages > 0),
        flush_method: flush_method(facts, variables),
        redo_log_capacity: facts.redo_bytes(variables).map(format_size),
        flush_log_at_trx_commit: known
            .number("innodb_flush_log_at_trx_commit")
            // MariaDB's 3 syncs at commit, too.
            .map(|value: u8| if value == 3 { 1 } else { value }),
        log_bin: variables.get("log_bin").map(|value| switch(value) != Some(false)),
        sync_binlog: known.number("sync_binlog"),
        binlog_group_commit_sync_delay: known.number("binlog_group_commit_sync_delay").or_else(|| {
            let waits = known.number::<u64>("binlog_commit_wait_count").is_some_and(|count| count > 0);
            known.number("binlog_commit_wait_usec").filter(|_| waits)
        }),
        file_system: match file_system {
            Some(name) if name.starts_with("ext") => Some(ebbtide_twin::innodb::FileSystem::Ext4),
            Some("xfs") => Some(ebbtide_twin::innodb::FileSystem::Xfs),
            _ => None,
        },
        // MariaDB 11 knows the name, and has no change buffer.
        change_buffering: variables
            .get("innodb_change_buffering")
            .filter(|_| {
                !facts
                    .release()
                    .is_some_and(|release| facts.flavour == Flavour::MariaDb && release.major >= 11)
            })
            .map(str::to_owned),
        old_blocks_pct: known.number("innodb_old_blocks_pct"),
        purge_threads: known.number("innodb_purge_threads"),
        purge_batch_size: known.number("innodb_purge_batch_size"),
    };
    (table, notes)
}

struct Known<'a> {
    variables: &'a Variables,
}

impl Known<'_> {
    fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.variables.get(name)?.trim().parse().ok()
    }

    fn switch(&self, name: &str) -> Option<bool> {
        self.variables.get(name).map(|value| switch(value) != Some(false))
    }
}

/// The model's name of the server; none where no version is known, and where the model has no such server.
fn flavour(facts: &Facts, notes: &mut Vec<String>) -> Option<&'static str> {
    let release = facts.release()?;
    let found = match (facts.flavour, release) {
        (Flavour::MariaDb, Version { major: 11.., .. }) => Some("mariadb-11"),
        (Flavour::MariaDb, Version { major: 10, minor: 5.., .. }) => Some("mariadb-10.5"),
        (Flavour::MySql | Flavour::Percona, Version { major: 9.., .. }) => Some("mysql-8.4"),
        (Flavour::MySql | Flavour::Percona, Version { major: 8, minor: 4.., .. }) => Some("mysql-8.4"),
        (Flavour::MySql | Flavour::Percona, Version { major: 8, .. }) => Some("mysql-8.0"),
        (Flavour::MySql | Flavour::Percona, Version { major: 5, minor: 7, .. }) => Some("mysql-5.7"),
        _ => None,
    };
    if found.is_none() {
        notes.push(format!(
            "the model does not know {} {release}: set server.flavour to the one that is most like it",
            facts.flavour
        ));
    }
    if facts.aurora.is_some() {
        notes.push("Aurora's storage takes no pages: the model has none of it".into());
    }
    found
}

fn doublewrite(facts: &Facts, notes: &mut Vec<String>) -> Option<DoublewriteTable> {
    let value = facts.doublewrite.as_deref()?;
    if value.to_ascii_uppercase().starts_with("DETECT_ONLY") {
        notes.push("innodb_doublewrite = DETECT_ONLY writes no pages twice: the profile has it off".into());
        return Some(DoublewriteTable::Switch(false));
    }
    if value.eq_ignore_ascii_case("fast") {
        return Some(DoublewriteTable::Mode(DoublewriteMode::Fast));
    }
    Some(DoublewriteTable::Switch(switch(value) != Some(false)))
}

fn flush_method(facts: &Facts, variables: &Variables) -> Option<String> {
    match variables.get("innodb_flush_method").filter(|value| !value.is_empty()) {
        Some(method) => Some(method.to_owned()),
        None => facts.direct.map(|direct| if direct { "O_DIRECT" } else { "fsync" }.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> (ServerTable, Vec<String>) {
        let variables: Variables = variables.iter().copied().collect();
        server_table(&Facts::of(&variables), &variables, Some("xfs"))
    }

    #[test]
    fn variables_become_the_servers_table() {
        let (table, notes) = of(&[
            ("version", "8.0.36"),
            ("innodb_buffer_pool_size", "8589934592"),
            ("innodb_redo_log_capacity", "104857600"),
            ("innodb_max_dirty_pages_pct", "90.000000"),
            ("innodb_adaptive_flushing", "ON"),
            ("innodb_doublewrite", "ON"),
            ("innodb_doublewrite_pages", "0"),
            ("innodb_flush_method", "O_DIRECT"),
            ("log_bin", "OFF"),
            ("sync_binlog", "1"),
        ]);
        assert_eq!(notes, Vec::<String>::new());
        let expect = ServerTable {
            flavour: Some("mysql-8.0".into()),
            buffer_pool_size: Some("8GiB".into()),
            redo_log_capacity: Some("100MiB".into()),
            max_dirty_pages_pct: Some(90.0),
            adaptive_flushing: Some(true),
            doublewrite: Some(DoublewriteTable::Switch(true)),
            flush_method: Some("O_DIRECT".into()),
            log_bin: Some(false),
            sync_binlog: Some(1),
            file_system: Some(ebbtide_twin::innodb::FileSystem::Xfs),
            ..ServerTable::default()
        };
        assert_eq!(table, expect);
    }

    #[test]
    fn every_release_is_the_flavour_that_the_model_has_or_is_said_to_be_none() {
        let name = |version: &str| of(&[("version", version)]).0.flavour.unwrap_or_default();
        let names = ["5.7.44-log", "8.0.36", "8.3.0", "8.4.1", "9.7.4", "10.11.19-MariaDB", "11.8.6-MariaDB"]
            .map(name);
        assert_eq!(
            names,
            ["mysql-5.7", "mysql-8.0", "mysql-8.0", "mysql-8.4", "mysql-8.4", "mariadb-10.5", "mariadb-11"]
        );
        let (table, notes) = of(&[("version", "10.3.39-MariaDB")]);
        assert!(table.flavour.is_none() && notes[0].contains("MariaDB 10.3.39"), "{notes:?}");
    }

    #[test]
    fn what_the_model_has_not_of_the_settings_is_said() {
        let (table, notes) = of(&[
            ("version", "11.8.6-MariaDB"),
            ("innodb_data_file_buffering", "ON"),
            ("innodb_doublewrite", "DETECT_ONLY"),
            ("innodb_log_file_size", "100663296"),
            ("innodb_log_files_in_group", "2"),
        ]);
        assert_eq!(
            (table.flush_method.as_deref(), table.doublewrite),
            (Some("fsync"), Some(DoublewriteTable::Switch(false)))
        );
        let fast = of(&[("version", "11.8.6-MariaDB"), ("innodb_doublewrite", "fast")]).0.doublewrite;
        assert_eq!(fast, Some(DoublewriteTable::Mode(DoublewriteMode::Fast)));
        assert_eq!(table.redo_log_capacity.as_deref(), Some("96MiB"), "MariaDB has one file");
        assert!(notes.iter().any(|one| one.contains("DETECT_ONLY")), "{notes:?}");
    }
}
