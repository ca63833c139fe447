//! Which names may be set.

use super::table::{table, unknown};
use crate::error::SettingError;

/// Names that people know and that mean less, or something else, than they seem to.
const REFUSED: [(&str, &str); 5] = [
    (
        "innodb_log_file_size",
        "it is the whole redo log in MariaDB and one file of several in MySQL before 8.0.30; set redo_capacity, the size of all files together",
    ),
    ("innodb_log_files_in_group", "set redo_capacity, the size of all redo log files together"),
    (
        "innodb_dedicated_server",
        "it replaces the sizes that are compared here by the server's own choice; set buffer_pool_size and redo_capacity",
    ),
    ("skip_log_bin", "set log_bin = off"),
    ("disable_log_bin", "set log_bin = off"),
];

/// Options that the caller of the server sets: where it runs, and where its files are.
const NOT_THE_USERS: [&str; 30] = [
    "basedir",
    "bind_address",
    "chroot",
    "datadir",
    "defaults_extra_file",
    "defaults_file",
    "defaults_group_suffix",
    "init_file",
    "innodb_data_home_dir",
    "innodb_log_group_home_dir",
    "innodb_read_only",
    "innodb_temp_tablespaces_dir",
    "innodb_tmpdir",
    "innodb_undo_directory",
    "lc_messages_dir",
    "log_bin_index",
    "log_error",
    "mysqlx",
    "mysqlx_port",
    "mysqlx_socket",
    "pid_file",
    "port",
    "secure_file_priv",
    "server_id",
    "skip_grant_tables",
    "skip_networking",
    "slave_load_tmpdir",
    "socket",
    "tmpdir",
    "user",
];

/// What the servers take before the name of an option: the option may be missing, is switched, or has its bound set.
pub(super) const NEGATIONS: [&str; 6] = ["loose_", "skip_", "disable_", "enable_", "maximum_", "autoset_"];

/// The canonical name behind `name`, for a value that at least one server takes.
pub(crate) fn canonical(name: &str, text: &str) -> Result<String, SettingError> {
    refuse(name, &name.to_ascii_lowercase().replace('-', "_"))?;
    let row = table().find(name).ok_or_else(|| unknown(name))?;
    match row.shape().read(text) {
        Some(_) => Ok(row.name.clone()),
        None => Err(SettingError::Value {
            name: row.name.clone(),
            value: text.to_owned(),
            expected: format!("it takes {}", row.expected()),
        }),
    }
}

/// The key of a server's own variable.
pub(crate) fn check_raw(name: &str, own: &str, text: &str) -> Result<String, SettingError> {
    let refused = |why: &str| SettingError::Refused { name: name.to_owned(), why: why.to_owned() };
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if own.is_empty() || !own.chars().all(allowed) {
        return Err(refused(
            "`raw.` takes the name of a server's variable: letters, digits, '_', '-' and '.'",
        ));
    }
    if text.contains(['\n', '\r']) {
        return Err(refused("its value must be one line"));
    }
    let plain = own.to_ascii_lowercase().replace('-', "_");
    let mut option = Some(plain.as_str());
    // Each of the names that servers read in it.
    while let Some(read) = option {
        refuse(name, read)?;
        if let Some(row) = table().find(read) {
            return Err(refused(&format!("it is known here: set {}", row.name)));
        }
        option = NEGATIONS.iter().find_map(|prefix| read.strip_prefix(prefix));
    }
    Ok(format!("raw.{plain}"))
}

pub(super) fn refuse(name: &str, plain: &str) -> Result<(), SettingError> {
    let known = REFUSED.iter().find(|(refused, _)| *refused == plain).map(|(_, why)| (*why).to_owned());
    let ours = NOT_THE_USERS.contains(&plain);
    let why =
        known.or_else(|| ours.then(|| "the server is run in a place of its own, which sets it".to_owned()));
    why.map_or(Ok(()), |why| Err(SettingError::Refused { name: name.to_owned(), why }))
}
