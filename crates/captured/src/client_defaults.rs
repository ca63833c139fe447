//! Server, account and encryption as the option files of MySQL's and MariaDB's clients set them.

use std::path::{Path, PathBuf};

use crate::option_file::{self, OptionFile, OptionFileError, OptionLine};

/// Option files that the clients read before that of the user.
const OPTION_FILES: [&str; 2] = ["/etc/my.cnf", "/etc/mysql/my.cnf"];
/// Groups that the clients of MySQL and MariaDB read, in the order of their files.
const GROUPS: [&str; 6] = ["client", "client-server", "client-mariadb", "mysql", "mariadb-client", "ebbtide"];

/// What option files set of the server and the account. The default has nothing.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ClientDefaults {
    /// The host.
    pub host: Option<String>,
    /// Its port.
    pub port: Option<u16>,
    /// The socket of a server of this machine.
    pub socket: Option<PathBuf>,
    /// The account.
    pub user: Option<String>,
    /// Its password.
    pub password: Option<String>,
    /// The database.
    pub database: Option<String>,
    /// The authority whose certificates are accepted (PEM).
    pub ca: Option<PathBuf>,
    /// Whether the connection is encrypted.
    pub encrypt: Option<bool>,
    /// Whether a certificate that no known authority signed is refused.
    pub verify: bool,
    /// What could not be read, and what every user may read or write.
    pub warnings: Vec<String>,
}

/// An option file to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultsFile {
    path: PathBuf,
    /// Whether it is an error that it is not there.
    needed: bool,
}

impl DefaultsFile {
    /// One that somebody has named.
    #[must_use]
    pub const fn needed(path: PathBuf) -> Self {
        Self { path, needed: true }
    }
}

/// Why option files set nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DefaultsError {
    /// A file that was named cannot be read.
    #[error(transparent)]
    File(#[from] OptionFileError),
    /// An option has a value that it cannot have.
    #[error("{}, line {line}: {name} is '{value}', and {allowed} is needed", .file.display())]
    Value {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The option.
        name: String,
        /// What it is set to.
        value: String,
        /// What it can be.
        allowed: &'static str,
    },
    /// A certificate is to be checked, and there is nothing to check it with.
    #[error(
        "the option file asks to verify the server's certificate (ssl-mode, ssl-verify-server-cert), and names no ssl-ca"
    )]
    NoAuthority,
}

/// The files that the clients read by default, in their order: those of the machine, the one that is read in addition, and that of the
/// user, whose directory is `home`.
#[must_use]
pub fn usual(extra: Option<PathBuf>, home: Option<PathBuf>) -> Vec<DefaultsFile> {
    let optional = |path: PathBuf| DefaultsFile { path, needed: false };
    let mut files = OPTION_FILES.map(|path| optional(path.into())).to_vec();
    files.extend(extra.map(DefaultsFile::needed));
    files.extend(home.map(|home| optional(home.join(".my.cnf"))));
    files
}

impl ClientDefaults {
    /// Reads files in their order: what a later one sets holds. Groups with the suffix, such as `client_db1` for `_db1`, are read too.
    ///
    /// # Errors
    /// A file that is needed cannot be read, or an option has a value that it cannot have.
    pub fn read(files: Vec<DefaultsFile>, suffix: Option<&str>) -> Result<Self, DefaultsError> {
        let mut groups: Vec<String> = GROUPS.map(str::to_owned).to_vec();
        if let Some(suffix) = suffix {
            groups.extend(GROUPS.map(|group| format!("{group}{}", suffix.to_ascii_lowercase())));
        }
        let mut defaults = Self::default();
        for file in files {
            if file.needed || file.path.exists() {
                defaults.read_file(&file.path, &groups)?;
            }
        }
        Ok(defaults)
    }

    /// Takes what a file sets. As the clients do, a file that everyone may write is left out, with a warning.
    fn read_file(&mut self, path: &Path, groups: &[String]) -> Result<(), DefaultsError> {
        if option_file::access(path).is_some_and(|access| access.world_writable) {
            self.warnings.push(format!("{} is not read: every user may write it", path.display()));
            return Ok(());
        }
        let file = OptionFile::read(path)?;
        self.warnings.extend(file.warnings.iter().map(ToString::to_string));
        for line in file.of_groups(groups) {
            self.set(line)?;
        }
        Ok(())
    }

    /// Takes an option; one that says nothing of server, account or encryption changes nothing.
    fn set(&mut self, line: &OptionLine) -> Result<(), DefaultsError> {
        let value = line.value.clone();
        let text = value.clone().unwrap_or_default();
        let wrong = |allowed: &'static str| DefaultsError::Value {
            file: line.file.clone(),
            line: line.line,
            name: line.name.clone(),
            value: text.clone(),
            allowed,
        };
        match line.name.strip_prefix("loose_").unwrap_or(&line.name) {
            "host" => self.host = value,
            "port" => self.port = Some(text.parse().map_err(|_| wrong("a number up to 65535"))?),
            "socket" => self.socket = value.map(PathBuf::from),
            "user" => self.user = value,
            "database" => self.database = value,
            "password" => {
                let readable = option_file::access(&line.file).is_some_and(|access| access.world_readable);
                if readable && !text.is_empty() {
                    let path = line.file.display();
                    self.warnings
                        .push(format!("{path} has a password, and every user may read it: chmod 600 {path}"));
                }
                self.password = Some(text);
            }
            "ssl_ca" => self.ca = value.map(PathBuf::from),
            // The word alone switches it on.
            "ssl" if text.is_empty() => self.encrypt = Some(true),
            "ssl" => self.encrypt = Some(switch(&text).ok_or_else(|| wrong("on or off"))?),
            "skip_ssl" => self.encrypt = Some(false),
            "ssl_verify_server_cert" => self.verify = text.is_empty() || switch(&text).unwrap_or(true),
            "skip_ssl_verify_server_cert" | "disable_ssl_verify_server_cert" => self.verify = false,
            "ssl_mode" => match text.to_ascii_uppercase().as_str() {
                "DISABLED" => (self.encrypt, self.verify) = (Some(false), false),
                "PREFERRED" => (self.encrypt, self.verify) = (None, false),
                "REQUIRED" => (self.encrypt, self.verify) = (Some(true), false),
                "VERIFY_CA" | "VERIFY_IDENTITY" => (self.encrypt, self.verify) = (Some(true), true),
                _ => return Err(wrong("DISABLED, PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY")),
            },
            _ => {}
        }
        Ok(())
    }

    /// A certificate cannot be checked without its authority: files that ask for that are not taken for less. `ca` is the authority
    /// that holds in the end.
    ///
    /// # Errors
    /// The files ask to check it, and there is none.
    pub fn check_verified(&self, ca: Option<&Path>) -> Result<(), DefaultsError> {
        if self.verify && self.encrypt != Some(false) && ca.is_none() {
            return Err(DefaultsError::NoAuthority);
        }
        Ok(())
    }
}

/// The words of sysbench and of MySQL for on and off, in any case.
#[must_use]
pub fn switch(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "on" | "true" | "1" | "yes" | "required" => Some(true),
        "off" | "false" | "0" | "no" | "disabled" => Some(false),
        _ => None,
    }
}
