//! What a server would be started with, from its option files.

use std::collections::BTreeMap;
use std::path::Path;

use ebbtide_observe::{Configured, Variables, Version};

use crate::option_file::{OptionFile, OptionFileError, OptionFileWarning, OptionLine, normal};

/// Variables that are switches: files spell them in many ways, servers `ON` and `OFF`.
const SWITCHES: &[&str] = &[
    "binlog_transaction_compression",
    "innodb_adaptive_flushing",
    "innodb_adaptive_hash_index",
    "innodb_buffer_pool_dump_at_shutdown",
    "innodb_buffer_pool_load_at_startup",
    "innodb_data_file_buffering",
    "innodb_data_file_write_through",
    "innodb_dedicated_server",
    "innodb_doublewrite",
    "innodb_file_per_table",
    "innodb_flush_sync",
    "innodb_log_checksums",
    "innodb_log_file_buffering",
    "innodb_log_writer_threads",
    "innodb_numa_interleave",
    "innodb_random_read_ahead",
    "innodb_stats_on_metadata",
    "innodb_use_fdatasync",
    "innodb_use_native_aio",
    "log_bin_compress",
    "log_replica_updates",
    "log_slave_updates",
    "performance_schema",
    "query_cache_type",
    "relay_log_recovery",
];

/// Switches that keep their value where a file sets another word than those of [`switched`]. The others are OFF then, `yes` too.
const KEEPING: [&str; 7] = [
    "innodb_adaptive_flushing",
    "innodb_file_per_table",
    "innodb_flush_sync",
    "innodb_numa_interleave",
    "innodb_random_read_ahead",
    "innodb_use_fdatasync",
    "innodb_use_native_aio",
];
/// Switches that know more words, such as `DETECT_ONLY`.
const WITH_MORE_WORDS: [&str; 3] = ["innodb_doublewrite", "innodb_log_writer_threads", "query_cache_type"];

/// Variables of words, which files may give in any case and by their numbers.
const WORDS: [(&str, &[&str]); 3] = [
    ("innodb_flush_method", &["fsync", "O_DSYNC", "littlesync", "nosync", "O_DIRECT", "O_DIRECT_NO_FSYNC"]),
    ("binlog_format", &["MIXED", "STATEMENT", "ROW"]),
    ("binlog_row_image", &["MINIMAL", "NOBLOB", "FULL"]),
];

/// Groups that servers read, in lower case.
const GROUPS: [&str; 6] = ["mysqld", "server", "mariadb", "mariadbd", "client-server", "galera"];

/// Whether a server of a version reads a group; None where that depends on the version and it is not known.
fn reads(group: &str, version: Option<Version>, mariadb: Option<bool>) -> Option<bool> {
    let (name, number) = match group.split_once('-') {
        Some((name, number)) if number.starts_with(|c: char| c.is_ascii_digit()) => (name, Some(number)),
        _ => (group, None),
    };
    if !GROUPS.contains(&name) && !GROUPS.contains(&group) {
        return Some(false);
    }
    let of_mariadb = matches!(name, "mariadb" | "mariadbd") || matches!(group, "client-server" | "galera");
    match (of_mariadb, mariadb) {
        (true, Some(false)) => return Some(false),
        (true, None) => return None,
        _ => {}
    }
    let Some(number) = number else { return Some(true) };
    // MariaDB from 11 on has groups of all releases of a major version too.
    version.map(|version| {
        number == format!("{}.{}", version.major, version.minor)
            || (of_mariadb && version.major > 10 && number == version.major.to_string())
    })
}

/// The options of the server's groups, in order. Groups that a server of another version or maker reads are left out; `unsure`
/// gets those of which it is not known.
#[must_use]
pub fn configured(
    file: &OptionFile,
    version: Option<Version>,
    mariadb: Option<bool>,
    unsure: &mut Vec<String>,
) -> Vec<Configured> {
    let mut all = Vec::new();
    for line in &file.lines {
        match reads(&line.group, version, mariadb) {
            Some(true) => {
                let place = || format!("{}:{}", line.file.display(), line.line);
                all.extend(plain(&line.name, line.value.as_deref()).map(|(name, value)| Configured {
                    name,
                    value,
                    place: place(),
                    group: line.group.clone(),
                }));
            }
            Some(false) => {}
            None if unsure.contains(&line.group) => {}
            None => unsure.push(line.group.clone()),
        }
    }
    all
}

/// A name without what only changes how it is read (`loose-`, `skip-`), and a value as the servers print it; None of a line that
/// changes nothing.
fn plain(name: &str, value: Option<&str>) -> Option<(String, String)> {
    let name = name.strip_prefix("loose_").unwrap_or(name);
    let is_switch = |name: &str| SWITCHES.contains(&name) || name == "log_bin";
    for (prefix, word, other) in [("skip_", "OFF", "ON"), ("disable_", "OFF", "ON"), ("enable_", "ON", "OFF")]
    {
        if let Some(rest) = name.strip_prefix(prefix).filter(|rest| is_switch(rest)) {
            // 0 is a second negation, and every other value is none.
            let word = if value == Some("0") { other } else { word };
            return Some((rest.to_owned(), word.to_owned()));
        }
    }
    let value = match value {
        // `log-bin = NAME` turns the binary log on.
        _ if name == "log_bin" => "ON".to_owned(),
        None => "ON".to_owned(),
        Some(value) if SWITCHES.contains(&name) => match switched(value) {
            Some(is_on) => if is_on { "ON" } else { "OFF" }.to_owned(),
            None if WITH_MORE_WORDS.contains(&name) => value.to_ascii_uppercase(),
            None if KEEPING.contains(&name) => return None,
            None => "OFF".to_owned(),
        },
        Some(value) => word(name, value)
            .map(str::to_owned)
            .or_else(|| bytes(value).map(|bytes| bytes.to_string()))
            .unwrap_or_else(|| value.to_owned()),
    };
    Some((name.to_owned(), value))
}

/// What a switch is set to by a word that every server knows. `yes` and `no` are none of them.
fn switched(word: &str) -> Option<bool> {
    let is = |words: [&str; 3]| words.iter().any(|known| word.eq_ignore_ascii_case(known));
    if is(["1", "ON", "TRUE"]) {
        return Some(true);
    }
    is(["0", "OFF", "FALSE"]).then_some(false)
}

/// A word as the servers print it, of a variable that has words.
fn word(name: &str, value: &str) -> Option<&'static str> {
    let (_, words) = WORDS.iter().find(|(known, _)| *known == name)?;
    let by_name = words.iter().find(|word| word.eq_ignore_ascii_case(value));
    by_name.or_else(|| words.get(value.parse::<usize>().ok()?)).copied()
}

/// A number with a suffix such as `48M`. The servers look at the first letter alone: `48MB` is the same, and `300ms` are 300 MiB.
fn bytes(value: &str) -> Option<u64> {
    let value = value.trim();
    let digits = value.find(|letter: char| !letter.is_ascii_digit())?;
    let (number, suffix) = value.split_at(digits);
    let first = suffix.chars().next()?.to_ascii_lowercase();
    let power = ['k', 'm', 'g', 't', 'p', 'e'].iter().position(|one| *one == first)?;
    // A text that begins with a number, such as `12M:autoextend`, is none.
    let is_number = suffix.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let number: u64 = number.parse().ok().filter(|_| is_number)?;
    number.checked_mul(1_u64.checked_shl(10 * (u32::try_from(power).ok()? + 1))?)
}

/// Whether a file has a group that is meant for the server, and which no server reads: `[ mysqld ]`.
pub(crate) fn has_unread_group(file: &OptionFile) -> bool {
    file.warnings.iter().any(|warning| {
        matches!(warning, OptionFileWarning::BlankGroup { name, .. } if reads(name.trim(), None, None) != Some(false))
    })
}

/// Lines of the server's groups that set a switch to a word which no server knows, for people.
pub(crate) fn unknown_words(
    file: &OptionFile,
    version: Option<Version>,
    mariadb: Option<bool>,
) -> Vec<String> {
    let said = |line: &OptionLine| {
        let value = line.value.as_deref()?;
        let name = line.name.strip_prefix("loose_").unwrap_or(&line.name);
        let is_wrong =
            SWITCHES.contains(&name) && !WITH_MORE_WORDS.contains(&name) && switched(value).is_none();
        let read =
            if KEEPING.contains(&name) { "leave the switch as it was" } else { "read another word as OFF" };
        is_wrong.then(|| {
            format!(
                "{name} = {value} ({}:{}): servers know ON, OFF, TRUE, FALSE, 1 and 0, and {read}",
                line.file.display(),
                line.line
            )
        })
    };
    let of_server = file.lines.iter().filter(|line| reads(&line.group, version, mariadb) != Some(false));
    of_server.filter_map(said).collect()
}

/// The settings as variables: of several lines the last one holds.
#[must_use]
pub fn variables(configured: &[Configured]) -> Variables {
    let last: BTreeMap<&str, &str> =
        configured.iter().map(|line| (line.name.as_str(), line.value.as_str())).collect();
    last.into_iter().collect()
}

/// Option files that servers read where none is named.
const FILES: [&str; 4] = ["/etc/my.cnf", "/etc/mysql/my.cnf", "/usr/etc/my.cnf", "/usr/local/etc/my.cnf"];

/// Why it is not known what a server was started with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigurationError {
    /// An option file that the server reads cannot be read here.
    #[error(transparent)]
    File(#[from] OptionFileError),
    /// One that it includes cannot.
    #[error("{0}")]
    Included(OptionFileWarning),
}

/// What a server was started with: its option files as they are now, and then its command line.
///
/// # Errors
/// A file that the server reads cannot be read here.
pub fn of_arguments(
    arguments: &[String],
    version: Option<Version>,
    mariadb: Option<bool>,
) -> Result<Vec<Configured>, ConfigurationError> {
    let value = |name: &str| arguments.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let mut files: Vec<&Path> = match value("--defaults-file") {
        Some(file) => vec![Path::new(file)],
        None if arguments.iter().any(|word| word == "--no-defaults") => Vec::new(),
        None => FILES.iter().map(Path::new).filter(|path| path.exists()).collect(),
    };
    files.extend(value("--defaults-extra-file").map(Path::new));
    let mut all = OptionFile::default();
    for path in files {
        let file = OptionFile::read(path)?;
        // A file that is not seen may set anything.
        let is_unread = |warning: &OptionFileWarning| matches!(warning, OptionFileWarning::Unreadable { .. });
        if let Some(warning) = file.warnings.into_iter().find(is_unread) {
            return Err(ConfigurationError::Included(warning));
        }
        all.lines.extend(file.lines);
    }
    if let Some(suffix) = value("--defaults-group-suffix") {
        for line in &mut all.lines {
            if let Some(group) = line.group.strip_suffix(&suffix.to_ascii_lowercase()) {
                line.group = group.to_owned();
            }
        }
    }
    let of_line = arguments
        .iter()
        .filter_map(|word| word.strip_prefix("--"))
        .filter(|word| !word.starts_with("defaults"));
    all.lines.extend(of_line.map(|word| {
        let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        OptionLine {
            group: "mysqld".into(),
            name: normal(name),
            value: value.map(str::to_owned),
            file: "the command line".into(),
            line: 1,
        }
    }));
    Ok(configured(&all, version, mariadb, &mut Vec::new()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, version: Option<Version>, mariadb: Option<bool>) -> (Variables, Vec<String>) {
        let mut unsure = Vec::new();
        let file = OptionFile::of_text(Path::new("/my.cnf"), text);
        (variables(&configured(&file, version, mariadb, &mut unsure)), unsure)
    }

    #[test]
    fn the_groups_of_the_server_hold_and_the_last_line_wins() {
        let text =
            "[mysqld]\na=1\nb=48M\n[client]\na=2\n[mysqld-8.0]\na=3\n[mariadb-10.11]\nc=1\n[server]\nb=1G\n";
        let (mysql, unsure) = of(text, Some(Version::new(8, 0, 36)), Some(false));
        assert_eq!([mysql.get("a"), mysql.get("b"), mysql.get("c")], [Some("3"), Some("1073741824"), None]);
        assert!(unsure.is_empty());
        let (unknown, unsure) = of(text, None, None);
        assert_eq!([unknown.get("a"), unknown.get("c")], [Some("1"), None]);
        assert_eq!(unsure, ["mysqld-8.0", "mariadb-10.11"]);
        let (mariadb, _) = of(text, Some(Version::new(10, 11, 19)), Some(true));
        assert_eq!([mariadb.get("a"), mariadb.get("c")], [Some("1"), Some("1")]);
        let galera = "[galera]\na=1\n";
        assert_eq!(of(galera, Some(Version::new(10, 11, 19)), Some(true)).0.get("a"), Some("1"));
        assert_eq!(of(galera, Some(Version::new(8, 0, 36)), Some(false)).0.get("a"), None);
        assert_eq!(of(galera, None, None).1, ["galera"]);
    }

    #[test]
    fn values_are_spelled_as_the_servers_print_them() {
        let text = "[mysqld]\nlog-bin=/x/b\nskip-innodb-doublewrite\ninnodb_file_per_table\nloose-innodb_io_capacity=2K\n\
                    innodb_adaptive_flushing=0\ninnodb_flush_log_at_trx_commit=0\nbinlog_format=mixed\nsync_binlog=\n";
        let (all, _) = of(text, None, None);
        let expect = [
            ("log_bin", "ON"),
            ("innodb_doublewrite", "OFF"),
            ("innodb_file_per_table", "ON"),
            ("innodb_io_capacity", "2048"),
            ("innodb_adaptive_flushing", "OFF"),
            ("innodb_flush_log_at_trx_commit", "0"),
            ("binlog_format", "MIXED"),
            ("sync_binlog", ""),
        ];
        for (name, value) in expect {
            assert_eq!(all.get(name), Some(value), "{name}");
        }
        assert_eq!(of("[mysqld]\nskip-log-bin\n", None, None).0.get("log_bin"), Some("OFF"));
        // What MariaDB 10.11 and 11.8 and MySQL 8.0 and 9.7 print of these with --verbose --help.
        for (line, name, value) in [
            ("innodb_buffer_pool_size=10GB", "innodb_buffer_pool_size", Some("10737418240")),
            ("innodb_buffer_pool_size=1G512M", "innodb_buffer_pool_size", Some("1073741824")),
            ("innodb_io_capacity=4kb", "innodb_io_capacity", Some("4096")),
            (
                "innodb_data_file_path=ibdata1:12M:autoextend",
                "innodb_data_file_path",
                Some("ibdata1:12M:autoextend"),
            ),
            (
                "innodb_temp_data_file_path=12M:autoextend",
                "innodb_temp_data_file_path",
                Some("12M:autoextend"),
            ),
            ("log_slave_updates=yes", "log_slave_updates", Some("OFF")),
            ("relay_log_recovery=YES", "relay_log_recovery", Some("OFF")),
            ("performance_schema=", "performance_schema", Some("OFF")),
            ("innodb_flush_sync=no", "innodb_flush_sync", None),
            ("innodb_file_per_table=2", "innodb_file_per_table", None),
            ("innodb_doublewrite=detect_only", "innodb_doublewrite", Some("DETECT_ONLY")),
            ("skip-innodb-file-per-table=0", "innodb_file_per_table", Some("ON")),
            ("enable-innodb-file-per-table=0", "innodb_file_per_table", Some("OFF")),
            ("loose-skip-innodb-doublewrite", "innodb_doublewrite", Some("OFF")),
            ("innodb_flush_method=4", "innodb_flush_method", Some("O_DIRECT")),
            ("innodb-flush-method=o_direct", "innodb_flush_method", Some("O_DIRECT")),
            ("binlog_format=1", "binlog_format", Some("STATEMENT")),
        ] {
            assert_eq!(of(&format!("[mysqld]\n{line}\n"), None, None).0.get(name), value, "{line}");
        }
        let wrong = OptionFile::of_text(
            Path::new("/c"),
            "[mysqld]\nrelay_log_recovery=yes\n[client]\nrelay_log_recovery=no\n",
        );
        assert!(has_unread_group(&OptionFile::of_text(Path::new("/c"), "[ mysqld ]\na=1\n")));
        assert!(!has_unread_group(&OptionFile::of_text(Path::new("/c"), "[ other ]\na=1\n")));
        let said = unknown_words(&wrong, None, None);
        assert!(said.len() == 1 && said[0].contains("relay_log_recovery = yes (/c:2)"), "{said:?}");
        let old = OptionFile::of_text(Path::new("/c"), "[mysqld-5.7]\nrelay_log_recovery=yes\n");
        assert_eq!(
            unknown_words(&old, Version::parse("8.0.36"), Some(false)),
            [""; 0],
            "it reads no such group"
        );
        assert_eq!(unknown_words(&old, Version::parse("5.7.44"), Some(false)).len(), 1);
        assert_eq!([bytes("99999999999999T"), bytes("é"), bytes("")], [None; 3]);
    }

    #[test]
    fn a_file_that_is_read_is_used_with_its_warnings_and_an_include_that_is_not_hides_the_rest() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cannot read.cnf");
        let started = |text: &str| {
            std::fs::write(&path, text).unwrap();
            of_arguments(&[format!("--defaults-file={}", path.display())], None, None)
        };
        let with_warning = started("sync_binlog=1\n[mysqld]\nsync_binlog=0\n").unwrap();
        assert_eq!(variables(&with_warning).get("sync_binlog"), Some("0"));
        let error = started("[mysqld]\n!include gone.cnf\n").unwrap_err();
        let gone = OptionFileWarning::Unreadable { path: dir.path().join("gone.cnf") };
        assert!(matches!(&error, ConfigurationError::Included(warning) if *warning == gone), "{error}");
        assert!(error.to_string().starts_with("cannot read the option file "), "{error}");
    }

    #[test]
    fn a_server_was_started_with_its_file_and_then_its_command_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("my.cnf");
        std::fs::write(&path, "[mysqld]\nsync_binlog=0\n[mysqld_b]\ninnodb_io_capacity=9\n").unwrap();
        let words = |more: &[&str]| {
            let file = format!("--defaults-file={}", path.display());
            let words =
                ["mysqld", &file].iter().chain(more).map(|word| (*word).to_owned()).collect::<Vec<_>>();
            variables(&of_arguments(&words, None, None).unwrap())
        };
        assert_eq!(words(&[]).get("sync_binlog"), Some("0"));
        assert_eq!(words(&["--sync-binlog=1"]).get("sync_binlog"), Some("1"));
        assert_eq!(words(&["--defaults-group-suffix=_b"]).get("innodb_io_capacity"), Some("9"));
        let gone = ["--defaults-file=/nowhere.cnf".to_owned()];
        assert!(of_arguments(&gone, None, None).is_err());
        std::fs::write(&path, "[mysqld]\nsync_binlog=1\n[galera]\nsync_binlog=0\n").unwrap();
        let with = |mariadb| {
            let file = ["mysqld".to_owned(), format!("--defaults-file={}", path.display())];
            variables(&of_arguments(&file, None, Some(mariadb)).unwrap())
                .get("sync_binlog")
                .map(str::to_owned)
        };
        let of = |group: &str, major| reads(group, Some(Version::new(major, 8, 0)), Some(true));
        assert_eq!(
            [of("mariadb-11", 11), of("mariadb-11.8", 11), of("mariadb-10", 10)],
            [Some(true), Some(true), Some(false)]
        );
        assert_eq!([with(true), with(false)], [Some("0".to_owned()), Some("1".to_owned())]);
        let none = of_arguments(&["--no-defaults".to_owned()], None, None).unwrap();
        assert!(none.iter().all(|line| line.place.starts_with("the command line")));
    }
}
