//! The options that a server lists (`--verbose --help`), and which of them a `raw.` setting may have.
//!
//! Servers take every unambiguous beginning of an option's name. A list of refused names does not see those, and so a
//! setting has the whole name of an option that the server lists. An option whose value is a file, a directory or a library
//! is refused by what the server says of it: its name, its description, and its default.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::names::{NEGATIONS, refuse};
use super::{RAW, Settings};
use crate::Binary;
use crate::binary::answer;
use crate::error::{ServerError, SettingError};

/// Words of a name or of a description by which a value is known as a place.
const PLACES: [&str; 16] = [
    "file",
    "files",
    "filename",
    "dir",
    "dirs",
    "directory",
    "directories",
    "path",
    "paths",
    "home",
    "basename",
    "socket",
    "library",
    "libraries",
    "plugins",
    "script",
];
/// Ends of words of names, such as `tmpdir` and `capath`.
const ENDS: [&str; 3] = ["dir", "path", "file"];
/// Options whose value is a place, a program or a user, and that the rule does not find in every server: certificates and
/// keys, names of log files, what is loaded, what becomes another user.
const MORE: [&str; 9] = [
    "chroot",
    "debug",
    "early_plugin_load",
    "log_bin",
    "log_error",
    "plugin_load",
    "plugin_load_add",
    "relay_log",
    "user",
];
const MORE_ENDS: [&str; 3] = ["ssl_cert", "ssl_key", "ssl_crl"];
/// Galera's options and those of a keyring's migration name libraries, commands and addresses.
const MORE_BEGINNINGS: [&str; 2] = ["wsrep_", "keyring_migration_"];
/// Names of files that are in the data directory if they are no paths.
const DATA_FILES: [&str; 2] = ["innodb_data_file_path", "innodb_temp_data_file_path"];
/// By these words MariaDB lists all values of an option: none of them is a place.
const ENUMERATIONS: [&str; 2] = ["One of:", "Any combination of:"];
/// Less is no list of a server's options.
const FEWEST: usize = 100;

/// An option as a server lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Listed {
    /// Whether it takes a text.
    takes_text: bool,
    description: String,
    /// Empty where none is listed.
    default: String,
}

/// A server's options by their names, with `_` in place of `-`.
type Options = BTreeMap<String, Listed>;

/// Checks the settings that are handed on as they are against what a server lists.
///
/// # Errors
/// [`ServerError::Setting`] for the first that the server does not list, or whose value is a place; where the server does not
/// print its options, what it did instead.
pub(crate) fn check(settings: &Settings, binary: &Binary) -> Result<(), ServerError> {
    let mut raw =
        settings.iter().filter_map(|(name, text)| Some((name, name.strip_prefix(RAW)?, text))).peekable();
    if raw.peek().is_none() {
        return Ok(());
    }
    let options = options(binary)?;
    raw.try_for_each(|(name, own, text)| Ok(judge(name, own, text, &options, &binary.name())?))
}

/// The options of a program, asked for once.
fn options(binary: &Binary) -> Result<Arc<Options>, ServerError> {
    static KNOWN: Mutex<BTreeMap<PathBuf, Arc<Options>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(options) = known.get(&binary.path) {
        return Ok(Arc::clone(options));
    }
    let options = Arc::new(parse(&answer(&binary.path, &["--verbose", "--help"])?));
    if options.len() < FEWEST {
        let missing = "a list of its options in what it prints for --verbose --help".to_owned();
        return Err(ServerError::Incomplete { path: binary.path.clone(), missing });
    }
    known.insert(binary.path.clone(), Arc::clone(&options));
    Ok(options)
}

fn judge(name: &str, own: &str, text: &str, options: &Options, server: &str) -> Result<(), SettingError> {
    let refused = |why: String| SettingError::Refused { name: name.to_owned(), why };
    let Some((option, listed)) = find(own, options) else {
        let longer = options.keys().find(|option| option.starts_with(own));
        let nearest = longer
            .map(String::as_str)
            .or_else(|| ebbtide_text::closest(own, options.keys().map(String::as_str)));
        let advice = ebbtide_text::did_you_mean(nearest);
        return Err(refused(format!("{server} lists no option of this whole name{advice}")));
    };
    refuse(name, option)?;
    if !listed.takes_text {
        return Ok(());
    }
    if DATA_FILES.contains(&option) {
        let outside = text.contains(['/', '\\']);
        let why = || format!("{text} is no name of a file in the data directory");
        return if outside { Err(refused(why())) } else { Ok(()) };
    }
    if is_place(option, listed) {
        let why = format!("{server} takes the name of a file, a directory, a library or a user for it");
        return Err(refused(why));
    }
    let leads_elsewhere = text.starts_with(['/', '~']) || text.contains("..") || text.ends_with(".so");
    if leads_elsewhere { Err(refused(format!("{text} is a path"))) } else { Ok(()) }
}

/// The option that a name switches or sets: the one of this name, or that of which it is the negation and the like.
fn find<'a>(own: &str, options: &'a Options) -> Option<(&'a str, &'a Listed)> {
    if let Some((option, listed)) = options.get_key_value(own) {
        return Some((option, listed));
    }
    NEGATIONS.iter().find_map(|prefix| find(own.strip_prefix(prefix)?, options))
}

/// Whether the value of an option that takes a text is a place, a library, a program or a user.
fn is_place(name: &str, listed: &Listed) -> bool {
    if MORE.contains(&name)
        || MORE_ENDS.iter().any(|end| name.ends_with(end))
        || MORE_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
    {
        return true;
    }
    if ENUMERATIONS.iter().any(|words| listed.description.contains(words)) {
        return false;
    }
    let by_name =
        name.split('_').any(|word| PLACES.contains(&word) || ENDS.iter().any(|end| word.ends_with(end)));
    // FILE in capitals is a value, as of log_output.
    let plain = |word: &str| word.get(1..).is_some_and(|rest| rest.chars().all(|c| c.is_ascii_lowercase()));
    let mut words = listed.description.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| plain(word));
    by_name
        || listed.default.contains('/')
        || words.any(|word| PLACES.contains(&word.to_ascii_lowercase().as_str()))
}

/// Reads `--verbose --help`: descriptions of options, then a table of variables with their defaults.
fn parse(help: &str) -> Options {
    let plain = |name: &str| name.to_ascii_lowercase().replace('-', "_");
    let mut options = Options::new();
    let mut lines = help.lines();
    let mut last: Option<String> = None;
    for line in lines.by_ref().take_while(|line| !line.starts_with("Variables (--variable-name=value)")) {
        if let Some((name, takes_text, words)) = option_line(line) {
            let name = plain(name);
            let listed = Listed { takes_text, description: words.to_owned(), default: String::new() };
            options.insert(name.clone(), listed);
            last = Some(name);
        } else if let Some(listed) = last.as_ref().and_then(|name| options.get_mut(name))
            && line.starts_with("  ")
        {
            listed.description.push(' ');
            listed.description.push_str(line.trim());
        }
    }
    for line in lines {
        let (name, default) = line.split_once(' ').unwrap_or((line, ""));
        if let Some(listed) = options.get_mut(&plain(name)) {
            default.trim().clone_into(&mut listed.default);
        }
    }
    options
}

/// Name, whether it takes a text, and the beginning of the description: `  -r, --chroot=name   Chroot mysqld`.
fn option_line(line: &str) -> Option<(&str, bool, &str)> {
    let rest = line.strip_prefix("  ")?;
    let rest = match rest.split_once(", ") {
        Some((short, rest)) if short.len() == 2 && short.starts_with('-') => rest,
        _ => rest,
    };
    let rest = rest.strip_prefix("--")?;
    let (word, description) = rest.split_once(' ').unwrap_or((rest, ""));
    let end = word.find(['=', '[']).unwrap_or(word.len());
    let (name, value) = word.split_at(end);
    (!name.is_empty()).then(|| (name, value.contains("name"), description.trim()))
}

#[cfg(test)]
mod tests {
    use super::super::tests::servers;
    use super::*;

    const HELP: &str = "mariadbd  Ver 10.11.19-MariaDB\n  --aria-sync-log-dir=name \n                      Controls syncing. One of: NEVER, NEWFILE, ALWAYS\n  -r, --chroot=name   Chroot mysqld daemon during startup.\n  --event-scheduler[=name] \n                      Enable the event scheduler.\n  --gadget=name       Load it from this library\n  --net-retry-count=# Retries\n  --other=name        Whatever\n  --ssl               Enable SSL\n\nVariables (--variable-name=value)\nand boolean options {FALSE|TRUE}        Value (after reading options)\n------------- ------\nevent-scheduler    OFF\nother              /usr/share/other\nnet-retry-count    10\n";

    fn why(own: &str, text: &str, options: &Options) -> Option<String> {
        judge(&format!("raw.{own}"), own, text, options, "X 1").err().map(|error| error.to_string())
    }

    #[test]
    fn whole_names_of_listed_options_are_taken_and_no_beginnings_places_or_paths() {
        let options = parse(HELP);
        assert_eq!(options.len(), 7, "{options:?}");
        assert!(options["chroot"].takes_text && !options["net_retry_count"].takes_text);
        for own in
            ["event_scheduler", "aria_sync_log_dir", "net_retry_count", "skip_ssl", "loose_skip_ssl", "ssl"]
        {
            assert_eq!(why(own, "ON", &options), None, "{own}");
        }
        for (own, words) in [
            ("event_sched", "lists no option of this whole name (did you mean 'event_scheduler'?)"),
            ("skip_event_sched", "lists no option of this whole name"),
            ("chroot", "cannot be set"),
            ("gadget", "a file, a directory, a library"),
            ("loose_gadget", "a file, a directory, a library"),
            ("other", "a file, a directory, a library"),
        ] {
            let why = why(own, "x", &options).unwrap_or_default();
            assert!(why.contains(words), "{own}: {why}");
        }
        for text in ["/etc/passwd", "~/x", "../x", "evil.so"] {
            assert!(why("event_scheduler", text, &options).unwrap().ends_with("is a path"), "{text}");
        }
    }

    #[test]
    fn every_server_that_is_there_has_its_places_found_and_its_other_options_left() {
        let places = [
            "basedir",
            "character_sets_dir",
            "datadir",
            "ft_stopword_file",
            "general_log_file",
            "init_file",
            "lc_messages_dir",
            "log_bin_index",
            "log_error",
            "pid_file",
            "plugin_dir",
            "plugin_load",
            "plugin_load_add",
            "relay_log",
            "relay_log_index",
            "secure_file_priv",
            "slow_query_log_file",
            "socket",
            "ssl_ca",
            "ssl_capath",
            "ssl_cert",
            "ssl_crl",
            "ssl_key",
            "tmpdir",
            "innodb_buffer_pool_filename",
            "innodb_data_home_dir",
            "user",
            "chroot",
        ];
        let plain = [
            "binlog_checksum",
            "character_set_server",
            "collation_server",
            "default_time_zone",
            "event_scheduler",
            "log_output",
            "optimizer_switch",
            "performance_schema_instrument",
            "sql_mode",
            "transaction_isolation",
            "init_connect",
            "replicate_do_db",
            "innodb_monitor_enable",
            "tls_version",
        ];
        for binary in servers() {
            let options = options(&binary).unwrap();
            println!("{}: {} options", binary.text, options.len());
            assert!(options.len() > 300);
            for name in places {
                // MySQL 9 has taken some of them away.
                let Some(listed) = options.get(name) else { continue };
                assert!(listed.takes_text && is_place(name, listed), "{}: {name} {listed:?}", binary.text);
            }
            for name in plain {
                let listed = &options[name];
                assert!(listed.takes_text && !is_place(name, listed), "{}: {name} {listed:?}", binary.text);
            }
        }
    }

    #[test]
    fn a_server_is_asked_for_its_options_only_where_a_setting_needs_them() {
        let (path, text) = ("/nowhere/mariadbd".into(), String::new());
        let version = crate::Version::new(10, 11, 19);
        let binary = Binary { path, flavour: crate::Flavour::MariaDb, version, text };
        let mut settings = Settings::new();
        settings.set("io_capacity", "300").unwrap();
        check(&settings, &binary).unwrap();
        settings.set("raw.event_scheduler", "ON").unwrap();
        assert!(matches!(check(&settings, &binary), Err(ServerError::NotAServer { .. })));
    }
}
