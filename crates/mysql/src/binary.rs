//! Which server a program is.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use ebbtide_observe::{Flavour, Version};
use ebbtide_text::{closest, did_you_mean};
use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::error::ServerError;
use crate::process;

/// Directories of servers that an ordinary user's PATH leaves out.
const SYSTEM_DIRS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/usr/libexec"];
/// The programs, in the order in which they are looked for.
const PROGRAMS: [&str; 2] = ["mariadbd", "mysqld"];
/// Where a directory that was unpacked keeps its programs.
const PROGRAM_DIRS: [&str; 6] = ["", "bin", "sbin", "libexec", "usr/sbin", "usr/bin"];
/// `--version` and `--help` read no data: a program that takes longer is not a server.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// A server program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binary {
    /// The program.
    pub path: PathBuf,
    /// Whose it is.
    pub flavour: Flavour,
    /// Its version.
    pub version: Version,
    /// Its version in its own words (`--version`).
    pub text: String,
}

impl Binary {
    /// Finds out which server a program is, by starting it without privileges. A directory represents the server that was unpacked there, a
    /// bare name such as `mysql-9.7` for one that `./dev servers` has fetched; without a path it is
    /// `mariadbd`, else `mysqld`, from PATH or the system's directories.
    ///
    /// # Errors
    /// [`ServerError::NotFound`], [`ServerError::NotAServer`], and [`ServerError::WrongVersion`] for MariaDB
    /// before 10.6 and MySQL before 5.7.
    pub fn detect(path: Option<&Path>) -> Result<Self, ServerError> {
        let path = match path {
            Some(path) => program_at(path)?,
            None => program_in_path()?,
        };
        let text = answer(&path, &["--version"])?;
        let (flavour, version) = parse_version(&text).ok_or_else(|| ServerError::NotAServer {
            path: path.clone(),
            output: format!("says '{}'", text.chars().take(200).collect::<String>()),
        })?;
        let binary = Self { path, flavour, version, text };
        binary.check_age()?;
        Ok(binary)
    }

    /// Whether it is MariaDB.
    #[must_use]
    pub fn is_mariadb(&self) -> bool {
        self.flavour == Flavour::MariaDb
    }

    /// The collation of databases that are made without one, such as `latin1_swedish_ci`, as the program prints it
    /// (`--verbose --help`). Makers of packages change it, so that the version does not show it.
    ///
    /// # Errors
    /// [`ServerError::NotAServer`] for a program that does not answer, and [`ServerError::Incomplete`] where the answer does
    /// not have it.
    pub fn default_collation(&self) -> Result<String, ServerError> {
        let text = answer(&self.path, &["--verbose", "--help"])?;
        let value = |line: &str| match line.split_whitespace().collect::<Vec<_>>().as_slice() {
            ["collation-server" | "collation_server", name] => Some((*name).to_owned()),
            _ => None,
        };
        text.lines().find_map(value).ok_or_else(|| ServerError::Incomplete {
            path: self.path.clone(),
            missing: "the default of collation-server in what it prints for --verbose --help".to_owned(),
        })
    }

    /// Its name and version, such as `MySQL 9.7.4`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} {}", self.flavour, self.version)
    }

    pub(crate) fn check_age(&self) -> Result<(), ServerError> {
        // --bootstrap with root's empty password, and --initialize-insecure, are what these brought.
        let oldest = if self.is_mariadb() { Version::new(10, 6, 0) } else { Version::new(5, 7, 0) };
        if self.version >= oldest {
            return Ok(());
        }
        let why = format!("{} is too old: MariaDB is taken from 10.6 on, MySQL from 5.7 on", self.name());
        Err(ServerError::WrongVersion { path: self.path.clone(), why })
    }
}

/// Where `./dev servers` keeps servers: scripts/servers.sh has the same rule.
pub(crate) fn fetched_servers() -> PathBuf {
    if let Some(set) = std::env::var_os("EBBTIDE_SERVERS") {
        return set.into();
    }
    match std::env::var_os("HOME") {
        Some(home) if !rustix::process::geteuid().is_root() => {
            Path::new(&home).join(".cache/ebbtide/servers")
        }
        _ => "/var/cache/ebbtide/servers".into(),
    }
}

pub(crate) fn program_at(path: &Path) -> Result<PathBuf, ServerError> {
    let servers = fetched_servers();
    let (name, fetched) = (path, servers.join(path));
    let path = std::path::absolute(path).map_err(ServerError::at("resolve", path))?;
    let path = if path.exists() { path } else { fetched };
    if !path.exists() {
        let meant = nearest_fetched(name, &servers);
        return Err(ServerError::NotFound { looked: format!("{} does not exist{meant}", path.display()) });
    }
    if !path.is_dir() {
        return Ok(path);
    }
    let mut candidates = PROGRAM_DIRS.iter().flat_map(|dir| PROGRAMS.map(|name| path.join(dir).join(name)));
    candidates.find(|candidate| candidate.is_file()).ok_or_else(|| ServerError::NotFound {
        looked: format!("{} holds neither {}", path.display(), PROGRAMS.join(" nor ")),
    })
}

/// The fetched server that was meant by a name that none has; empty for a path, and where no name is like it.
fn nearest_fetched(name: &Path, servers: &Path) -> String {
    let Some(name) = name.to_str().filter(|name| !name.contains('/')) else { return String::new() };
    let entries = std::fs::read_dir(servers).into_iter().flatten().flatten();
    let known: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    did_you_mean(closest(name, known.iter().map(String::as_str)))
}

pub(crate) fn program_in_path() -> Result<PathBuf, ServerError> {
    system_programs().find(|candidate| candidate.is_file()).ok_or_else(|| ServerError::NotFound {
        looked: format!("neither {} in PATH or {}", PROGRAMS.join(" nor "), SYSTEM_DIRS.join(", ")),
    })
}

/// Where this machine's own server may be, the first choice first.
pub(crate) fn system_programs() -> impl Iterator<Item = PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs: Vec<PathBuf> =
        std::env::split_paths(&path).chain(SYSTEM_DIRS.iter().map(PathBuf::from)).collect();
    PROGRAMS.iter().flat_map(move |name| dirs.iter().map(|dir| dir.join(name)).collect::<Vec<_>>())
}

/// What a program answers to arguments with which it reads no data. It is started as a server is: as the server's user, with
/// nothing of our environment.
pub(crate) fn answer(path: &Path, arguments: &[&str]) -> Result<String, ServerError> {
    let account = Account::for_server()?;
    let mut command = process::command_of(&account.words(), path);
    // Option files of the machine are not ours, and a mistake in one would stop even --version.
    command.arg("--no-defaults").args(arguments);
    let not_a_server = |output: String| ServerError::NotAServer { path: path.to_owned(), output };
    let output = process::output(command, ANSWER_TIMEOUT).map_err(|error| match error.kind() {
        io::ErrorKind::TimedOut => not_a_server(format!("has no end within {} s", ANSWER_TIMEOUT.as_secs())),
        _ => not_a_server(format!("cannot be run: {error}")),
    })?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.success {
        return Ok(text);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    if let Some(words) = stderr.strip_prefix("setpriv: ") {
        // The likeliest reason why the server's user cannot start what root can.
        if let Err(error @ ServerError::NotReachable { .. }) = account.check_reach(path) {
            return Err(error);
        }
        let why = words.trim().rsplit(": ").next().unwrap_or_default();
        return Err(not_a_server(format!("cannot be run: {why}")));
    }
    let words = stderr.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("fails without a word");
    Err(not_a_server(format!("says '{words}'")))
}

/// The name and version of a server out of [`Binary::text`], such as `MariaDB 10.11.19`; the text where neither can be read.
#[must_use]
pub fn short_name(text: &str) -> String {
    // Of a program that was not started the text begins with both.
    let begin = || text.split_once(" (").map_or(text, |(begin, _)| begin).trim().to_owned();
    parse_version(text).map_or_else(begin, |(flavour, version)| format!("{flavour} {version}"))
}

/// Reads `PROGRAM  Ver VERSION for SYSTEM on MACHINE (DISTRIBUTION)`.
pub(crate) fn parse_version(text: &str) -> Option<(Flavour, Version)> {
    let mut words = text.split_whitespace();
    // MySQL's clients answer in the same form.
    let program = Path::new(words.next()?).file_name()?.to_str()?;
    if !PROGRAMS.iter().any(|name| program.contains(name)) || words.next()? != "Ver" {
        return None;
    }
    let word = words.next()?;
    let flavour = if text.contains("MariaDB") {
        Flavour::MariaDb
    } else if text.contains("Percona") {
        Flavour::Percona
    } else {
        Flavour::MySql
    };
    Some((flavour, Version::parse(word)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_a_short_name_by_its_own_words_and_by_those_of_its_package() {
        for text in [
            "/usr/sbin/mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)\n",
            "MariaDB 10.11.19 (/usr/sbin/mariadbd, package mariadb-server-core 1:10.11.19-0+deb12u1)",
        ] {
            assert_eq!(short_name(text), "MariaDB 10.11.19");
        }
        assert_eq!(short_name("mysqld  Ver 9.7.4 for Linux on x86_64 (MySQL Community)"), "MySQL 9.7.4");
        assert_eq!(short_name(" something else\n"), "something else");
    }

    #[test]
    fn a_name_that_no_fetched_server_has_is_answered_with_the_one_that_was_meant() {
        let dir = tempfile::tempdir().unwrap();
        for server in ["mariadb-11.8", "mysql-8.0", "mysql-9.7"] {
            std::fs::create_dir(dir.path().join(server)).unwrap();
        }
        let meant = |name: &str| nearest_fetched(Path::new(name), dir.path());
        assert_eq!(meant("mysql-8.1"), " (did you mean 'mysql-8.0'?)");
        assert_eq!(meant("postgres"), "");
        assert_eq!(meant("/no/mysql-8.1"), "", "a path");
        assert_eq!(nearest_fetched(Path::new("mysql-8.1"), Path::new("/no/such")), "");
    }

    #[test]
    fn versions_are_read_from_the_output_of_servers() {
        for (text, flavour, version) in [
            (
                "mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)",
                Flavour::MariaDb,
                (10, 11, 19),
            ),
            (
                "/usr/sbin/mariadbd  Ver 12.0.2-MariaDB for Linux on x86_64 (MariaDB Server)",
                Flavour::MariaDb,
                (12, 0, 2),
            ),
            ("/x/bin/mysqld  Ver 9.7.4-2 for Linux on x86_64 ((Debian))", Flavour::MySql, (9, 7, 4)),
            (
                "mysqld  Ver 5.7.22 for Linux on x86_64 (MySQL Community Server (GPL))",
                Flavour::MySql,
                (5, 7, 22),
            ),
            (
                "/usr/sbin/mysqld  Ver 8.0.36-28 for Linux on x86_64 (Percona Server (GPL), Release 28)",
                Flavour::Percona,
                (8, 0, 36),
            ),
        ] {
            let expected = (flavour, Version::new(version.0, version.1, version.2));
            assert_eq!(parse_version(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn clients_and_other_programs_are_not_servers() {
        for text in [
            "mysql  Ver 8.0.36 for Linux on x86_64 (MySQL Community Server - GPL)",
            "mariadb  Ver 15.1 Distrib 10.11.19-MariaDB, for debian-linux-gnu (x86_64)",
            "cat (GNU coreutils) 9.1",
            "mysqld  Ver unknown",
            "",
        ] {
            assert_eq!(parse_version(text), None, "{text}");
        }
    }

    #[test]
    fn a_server_older_than_the_oldest_is_refused_with_the_version_that_would_do() {
        let binary =
            |flavour, version| Binary { path: "/x/mysqld".into(), flavour, version, text: String::new() };
        let error = binary(Flavour::MySql, Version::new(5, 6, 24)).check_age().unwrap_err();
        assert_eq!(
            error.to_string(),
            "/x/mysqld: MySQL 5.6.24 is too old: MariaDB is taken from 10.6 on, MySQL from 5.7 on"
        );
        binary(Flavour::MariaDb, Version::new(10, 5, 29)).check_age().unwrap_err();
        binary(Flavour::MariaDb, Version::new(10, 6, 0)).check_age().unwrap();
        binary(Flavour::MySql, Version::new(5, 7, 22)).check_age().unwrap();
    }
}
