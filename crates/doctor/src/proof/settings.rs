//! A server's variables as settings of the lab, whose names and ranges are those of the server that the lab starts.

use std::collections::BTreeMap;

use ebbtide_advisor::VariableChange;
use ebbtide_mysql::{Binary, SettingError, Settings};
use ebbtide_observe::{Observation, Variables};

/// Variables that change what a server does to its volumes. Others stay as the lab's server has them.
const KEPT: [&str; 46] = [
    "binlog_cache_size",
    "binlog_checksum",
    "binlog_commit_wait_count",
    "binlog_commit_wait_usec",
    "binlog_format",
    "binlog_group_commit_sync_delay",
    "binlog_group_commit_sync_no_delay_count",
    "binlog_row_image",
    "binlog_transaction_compression",
    "innodb_adaptive_flushing",
    "innodb_adaptive_flushing_lwm",
    "innodb_adaptive_hash_index",
    "innodb_buffer_pool_size",
    "innodb_change_buffering",
    "innodb_checksum_algorithm",
    "innodb_doublewrite",
    "innodb_doublewrite_pages",
    "innodb_flush_log_at_timeout",
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_method",
    "innodb_flush_neighbors",
    "innodb_flush_sync",
    "innodb_io_capacity",
    "innodb_io_capacity_max",
    "innodb_log_buffer_size",
    "innodb_log_file_buffering",
    "innodb_log_file_size",
    "innodb_log_write_ahead_size",
    "innodb_log_writer_threads",
    "innodb_lru_scan_depth",
    "innodb_max_dirty_pages_pct",
    "innodb_max_dirty_pages_pct_lwm",
    "innodb_page_cleaners",
    "innodb_page_size",
    "innodb_purge_threads",
    "innodb_random_read_ahead",
    "innodb_read_ahead_threshold",
    "innodb_read_io_threads",
    "innodb_redo_log_capacity",
    "innodb_thread_concurrency",
    "innodb_use_fdatasync",
    "innodb_use_native_aio",
    "innodb_write_io_threads",
    "log_bin",
    "log_bin_compress",
    "sync_binlog",
];

const MIB: f64 = (1_u64 << 20) as f64;

/// Settings that follow the size of the machine: the least that every server takes, and the step.
const SCALED: [(&str, f64, f64); 5] = [
    ("buffer_pool_size", 16.0 * MIB, MIB),
    ("redo_capacity", 8.0 * MIB, 4.0 * MIB),
    ("io_capacity", 100.0, 1.0),
    ("io_capacity_max", 100.0, 1.0),
    ("lru_scan_depth", 100.0, 1.0),
];

/// A variable that the lab's server does not take, with the reason as a sentence without a full stop.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotTaken {
    /// A size that is no number.
    #[error("{0} is no size")]
    NoSize(String),
    /// No setting of the lab, or not with this value or for this server.
    #[error(transparent)]
    Setting(#[from] SettingError),
}

/// Settings by the lab's names, and what could not be taken over, with the reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Translated {
    pub(crate) settings: BTreeMap<String, String>,
    pub(crate) left_out: Vec<(String, String)>,
}

/// Whose variables they are, and for which server and which share of the machine they are made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) seen: &'a Observation,
    pub(crate) binary: &'a Binary,
    /// The lab's machine is one of so many parts.
    pub(crate) divided_by: u32,
}

impl Target<'_> {
    /// The settings that the server has now.
    pub(crate) fn observed(&self) -> Translated {
        let nothing = Variables::default();
        let variables = self.seen.variables.as_ref().unwrap_or(&nothing);
        let mut all = Translated::default();
        for name in KEPT {
            let Some(value) = variables.get(name) else { continue };
            // The size that holds, whichever variable it comes from.
            let capacity = self.seen.redo_capacity_bytes().map(|bytes| bytes.to_string());
            let value = match name {
                "innodb_log_file_size" if variables.get("innodb_redo_log_capacity").is_some() => continue,
                "innodb_redo_log_capacity" => capacity.as_deref().unwrap_or(value),
                _ => value,
            };
            match self.one(name, value) {
                Ok((name, value)) => {
                    all.settings.insert(name, value);
                }
                Err(why) => all.left_out.push((format!("{name} = {value}"), why.to_string())),
            }
        }
        // MariaDB 11 has switches in place of the method.
        if let (false, Some(direct)) = (
            all.settings.contains_key("flush_method"),
            self.seen.facts.as_ref().and_then(|facts| facts.direct),
        ) {
            let method = if direct { "O_DIRECT" } else { "fsync" };
            all.settings.insert("flush_method".into(), method.into());
        }
        all
    }

    /// What a fix changes; the first that the lab cannot express is the error.
    pub(crate) fn changed(&self, changes: &[VariableChange]) -> Result<BTreeMap<String, String>, NotTaken> {
        let one = |change: &VariableChange| match change.variable {
            "innodb_data_file_buffering" => {
                let direct = change.value.eq_ignore_ascii_case("off");
                Ok(("flush_method".to_owned(), if direct { "O_DIRECT" } else { "fsync" }.to_owned()))
            }
            name => self.one(name, &change.value),
        };
        changes.iter().map(one).collect()
    }

    /// A variable of the observed server as a setting of the lab's, at its scale.
    fn one(&self, variable: &str, value: &str) -> Result<(String, String), NotTaken> {
        let (name, value) = match variable {
            "innodb_log_file_size" => {
                let bytes: u64 = value.parse().map_err(|_| NotTaken::NoSize(value.to_owned()))?;
                let nothing = Variables::default();
                let variables = self.seen.variables.as_ref().unwrap_or(&nothing);
                let files = self.seen.facts.as_ref().map_or(1, |facts| facts.redo_files(variables));
                ("redo_capacity", bytes.saturating_mul(files).to_string())
            }
            // The name of the files is the lab's own.
            "log_bin" => ("log_bin", if value.eq_ignore_ascii_case("off") { "off" } else { "on" }.to_owned()),
            _ => (variable, plain(value).to_owned()),
        };
        let mut one = Settings::new();
        one.set(name, &value)?;
        let name = one.iter().next().map_or(name, |(canonical, _)| canonical).to_owned();
        let value = scaled(&name, &value, self.divided_by);
        let mut one = Settings::new();
        one.set(&name, &value)?;
        one.options_for(self.binary)?;
        Ok((name, value))
    }
}

/// A number without the zeros that servers print behind its point, such as `90.000000`.
fn plain(value: &str) -> &str {
    if value.contains('.') && value.parse::<f64>().is_ok() {
        return value.trim_end_matches('0').trim_end_matches('.');
    }
    value
}

/// The part of a value that is one share of the machine's; others stay.
fn scaled(name: &str, value: &str, divided_by: u32) -> String {
    let row = SCALED.iter().find(|(scaled, ..)| *scaled == name);
    let (Some((_, least, step)), Ok(number)) = (row, value.parse::<f64>()) else { return value.to_owned() };
    if divided_by == 1 {
        return value.to_owned();
    }
    let part = (number / f64::from(divided_by) / step).round() * step;
    format!("{:.0}", part.max(*least).min(number))
}

#[cfg(test)]
mod tests {
    use ebbtide_mysql::{Flavour, Version};
    use ebbtide_observe::{Facts, Origin};

    use super::*;

    fn binary(flavour: Flavour, version: (u32, u32, u32)) -> Binary {
        let version = Version::new(version.0, version.1, version.2);
        Binary { path: "/usr/sbin/mysqld".into(), flavour, version, text: format!("Ver {version}") }
    }

    fn seen(variables: &[(&str, &str)]) -> Observation {
        let variables: Variables = variables.iter().copied().collect();
        Observation {
            facts: Some(Facts::of(&variables)),
            variables: Some(variables),
            ..Observation::of(Origin::Capture { path: "/c".into() })
        }
    }

    fn change(variable: &'static str, value: &str) -> VariableChange {
        VariableChange { variable, value: value.into(), restart: false }
    }

    #[test]
    fn variables_become_settings_at_the_scale_of_the_lab() {
        let seen = seen(&[
            ("version", "10.11.19-MariaDB"),
            ("innodb_log_file_size", "536870912"),
            ("innodb_log_files_in_group", "2"),
            ("innodb_buffer_pool_size", "8589934592"),
            ("innodb_io_capacity", "200"),
            ("innodb_max_dirty_pages_pct", "90.000000"),
            ("sync_binlog", "0"),
            ("log_bin", "ON"),
            ("innodb_page_cleaners", "4"),
            ("port", "3306"),
        ]);
        let binary = binary(Flavour::MariaDb, (10, 11, 14));
        let all = Target { seen: &seen, binary: &binary, divided_by: 8 }.observed();
        let expect = [
            ("buffer_pool_size", "1073741824"),
            ("io_capacity", "100"),
            ("log_bin", "on"),
            ("max_dirty_pages_pct", "90"),
            ("redo_capacity", "67108864"),
            ("sync_binlog", "0"),
        ];
        let expect = expect.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(all.settings, BTreeMap::from(expect));
        assert_eq!(all.left_out.len(), 1);
        assert!(all.left_out[0].0.starts_with("innodb_page_cleaners") && all.left_out[0].1.contains("10.6"));
    }

    #[test]
    fn the_files_of_an_older_redo_log_are_added_up_and_a_capacity_goes_before_them() {
        let binary = binary(Flavour::MySql, (8, 0, 36));
        let redo = |variables: &[(&str, &str)]| {
            let seen = seen(variables);
            Target { seen: &seen, binary: &binary, divided_by: 1 }.observed().settings["redo_capacity"]
                .clone()
        };
        let files = [("innodb_log_file_size", "50331648"), ("innodb_log_files_in_group", "3")];
        assert_eq!(redo(&files), "150994944");
        let capacity = |bytes| ("innodb_redo_log_capacity", bytes);
        assert_eq!(redo(&[files[0], files[1], capacity("1073741824")]), "1073741824");
        // The capacity is its default, and the files are not: the server takes these.
        assert_eq!(redo(&[files[0], files[1], capacity("104857600")]), "150994944");
    }

    #[test]
    fn what_a_fix_sets_that_the_lab_cannot_is_said_with_the_reason() {
        let seen = seen(&[("version", "8.0.36")]);
        let binary = binary(Flavour::MySql, (8, 0, 36));
        let target = Target { seen: &seen, binary: &binary, divided_by: 4 };
        let set = target.changed(&[change("innodb_io_capacity", "2000")]).unwrap();
        assert_eq!(set, BTreeMap::from([("io_capacity".to_owned(), "500".to_owned())]));
        let why = target.changed(&[change("binlog_expire_logs_seconds", "604800")]).unwrap_err().to_string();
        assert!(why.contains("binlog_expire_logs_seconds"), "{why}");
        let method = target.changed(&[change("innodb_data_file_buffering", "OFF")]).unwrap();
        assert_eq!(method["flush_method"], "O_DIRECT");
    }

    #[test]
    fn a_share_is_no_less_than_a_server_takes_and_no_more_than_the_whole() {
        assert_eq!(scaled("redo_capacity", "100663296", 1000), "8388608");
        assert_eq!(scaled("io_capacity", "50", 8), "50");
        assert_eq!(scaled("sync_binlog", "1000", 8), "1000");
        assert_eq!(
            (plain("75.500000"), plain("90.000000"), plain("O_DIRECT"), plain("100")),
            ("75.5", "90", "O_DIRECT", "100")
        );
    }
}
