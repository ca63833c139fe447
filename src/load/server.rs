//! The server and the account: options of the command line, and the option files of MySQL's clients.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{ArgAction, Args};
use ebbtide_captured::client_defaults::{self, ClientDefaults, DefaultsError, DefaultsFile};
use ebbtide_load::{DATABASE, Endpoint, Target, Tls};
use ebbtide_names::NamedServer;

use super::switch::parse_switch;
use crate::exit::Refusal;
use crate::text::note;

/// The server and the account.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct ServerArgs {
    /// Hosts; connections take turns [default: the local socket, else 127.0.0.1]
    #[arg(long, alias = "mysql_host", value_name = "LIST", value_delimiter = ',')]
    mysql_host: Vec<String>,
    /// Ports; connections take turns [default: 3306]
    #[arg(long, alias = "mysql_port", value_name = "LIST", value_delimiter = ',')]
    mysql_port: Vec<u16>,
    /// Unix sockets; connections take turns
    #[arg(long, alias = "mysql_socket", value_name = "LIST", value_delimiter = ',')]
    mysql_socket: Vec<PathBuf>,
    /// The account [default: sbtest]
    #[arg(long, alias = "mysql_user", value_name = "NAME")]
    mysql_user: Option<String>,
    /// Its password. Every user of the machine can read it on a command line: an option file or
    /// EBBTIDE_MYSQL_PASSWORD keeps it private
    #[arg(
        long,
        alias = "mysql_password",
        value_name = "TEXT",
        env = "EBBTIDE_MYSQL_PASSWORD",
        hide_env_values = true
    )]
    mysql_password: Option<String>,
    /// The database [default: sbtest]
    #[arg(long, alias = "mysql_db", value_name = "NAME")]
    mysql_db: Option<String>,
    /// Encrypt [default: off]
    #[arg(long, alias = "mysql_ssl", value_name = "on|off", default_missing_value = "on",
        num_args = 0..=1, require_equals = true, value_parser = parse_switch, action = ArgAction::Set)]
    mysql_ssl: Option<bool>,
    /// Accept only a certificate that this authority signed (PEM); implies --mysql-ssl
    #[arg(long, alias = "mysql_ssl_ca", value_name = "FILE")]
    mysql_ssl_ca: Option<PathBuf>,
    /// Take server, account and password from this option file of MySQL's clients, and from no other
    #[arg(long, alias = "defaults_file", value_name = "FILE")]
    defaults_file: Option<PathBuf>,
    /// Take them from the usual option files, and then from this one
    #[arg(long, alias = "defaults_extra_file", value_name = "FILE", conflicts_with = "defaults_file")]
    defaults_extra_file: Option<PathBuf>,
    /// Read the groups with this suffix too, such as [client_db1] for _db1
    #[arg(long, alias = "defaults_group_suffix", value_name = "TEXT")]
    defaults_group_suffix: Option<String>,
    /// Only for scripts written for sysbench
    #[arg(long, alias = "db_driver", hide = true, default_value = "mysql", value_parser = ["mysql"])]
    db_driver: String,
}

/// Where MySQL and MariaDB put their socket on most systems.
const SOCKETS: [&str; 3] = ["/run/mysqld/mysqld.sock", "/var/lib/mysql/mysql.sock", "/tmp/mysql.sock"];
impl ServerArgs {
    /// Takes what a named server says and no option does. A place is taken whole: a host of the command line with a socket of the
    /// file would be neither's server.
    pub(crate) fn take(&mut self, server: &NamedServer) {
        if !self.names_place() {
            self.mysql_host.extend(server.host.clone());
            self.mysql_port.extend(server.port);
            self.mysql_socket.extend(server.socket.clone());
        }
        self.mysql_user = self.mysql_user.take().or_else(|| server.user.clone());
        self.mysql_db = self.mysql_db.take().or_else(|| server.database.clone());
        self.mysql_ssl_ca = self.mysql_ssl_ca.take().or_else(|| server.ssl_ca.clone());
        if self.defaults_extra_file.is_none() {
            self.defaults_file = self.defaults_file.take().or_else(|| server.defaults_file.clone());
        }
    }

    /// The options for a named server, whatever place the command line has.
    #[must_use]
    pub(crate) fn for_named(&self, server: &NamedServer) -> Self {
        let mut options =
            Self { mysql_host: Vec::new(), mysql_port: Vec::new(), mysql_socket: Vec::new(), ..self.clone() };
        options.take(server);
        options
    }

    /// The server and the account: what the command line does not set is that of the option files, where some are named.
    ///
    /// # Errors
    /// An option file that cannot be read, or has a value that cannot be used (exit code 2).
    pub(crate) fn target(&self) -> Result<Target> {
        self.target_of(&self.defaults(false)?, DATABASE, None)
    }

    /// The same as MySQL's own client takes them: the usual option files by default, and the user of the system as the
    /// account. A password of `password` goes before those of files and of the environment.
    ///
    /// # Errors
    /// As of [`ServerArgs::target`].
    pub(crate) fn client_target(&self, password: Option<String>) -> Result<Target> {
        self.target_of(&self.defaults(true)?, &system_user(), password)
    }

    fn target_of(&self, defaults: &ClientDefaults, user: &str, password: Option<String>) -> Result<Target> {
        if std::env::args_os().any(|word| is_password(&word.to_string_lossy())) {
            note(
                "warning: every user of this machine can read the password on the command line: use EBBTIDE_MYSQL_PASSWORD or --defaults-file",
            );
        }
        let ca = self.mysql_ssl_ca.clone().or(defaults.ca.clone());
        if self.mysql_ssl != Some(false) {
            defaults.check_verified(ca.as_deref()).map_err(refused)?;
        }
        let encrypt = self.mysql_ssl_ca.is_some()
            || self.mysql_ssl.unwrap_or(defaults.encrypt.unwrap_or(defaults.ca.is_some()));
        let own = |own: &Option<String>, other: &Option<String>, default: &str| {
            own.clone().or(other.clone()).unwrap_or_else(|| default.to_owned())
        };
        Ok(Target {
            endpoints: self.endpoints(defaults),
            user: own(&self.mysql_user, &defaults.user, user),
            password: password.unwrap_or_else(|| own(&self.mysql_password, &defaults.password, "")),
            database: own(&self.mysql_db, &defaults.database, DATABASE),
            tls: encrypt.then_some(Tls { ca }),
        })
    }

    /// Whether an option names the place of a server: a host, a port or a socket.
    pub(crate) fn names_place(&self) -> bool {
        !(self.mysql_host.is_empty() && self.mysql_port.is_empty() && self.mysql_socket.is_empty())
    }

    /// Whether an option names a server or its account; a password alone may come from the environment.
    pub(crate) fn names_one(&self) -> bool {
        let place = !self.names_place();
        let other = |word: &Option<String>| word.as_ref().is_some_and(|word| word != DATABASE);
        let account = !other(&self.mysql_user) && !other(&self.mysql_db);
        let files = self.defaults_file.is_some()
            || self.defaults_extra_file.is_some()
            || self.defaults_group_suffix.is_some();
        !(place && account) || self.mysql_ssl == Some(true) || self.mysql_ssl_ca.is_some() || files
    }

    /// As the MySQL clients do: sockets first, and no host and no port mean the local socket.
    fn endpoints(&self, defaults: &ClientDefaults) -> Vec<Endpoint> {
        if !self.mysql_socket.is_empty() {
            return self.mysql_socket.iter().cloned().map(Endpoint::Unix).collect();
        }
        let hosts = if self.mysql_host.is_empty() {
            defaults.host.clone().into_iter().collect()
        } else {
            self.mysql_host.clone()
        };
        let local = hosts.iter().all(|host| host == "localhost") && self.mysql_port.is_empty();
        if local && let Some(socket) = &defaults.socket {
            return vec![Endpoint::Unix(socket.clone())];
        }
        if local
            && defaults.port.is_none()
            && let Some(socket) = SOCKETS.iter().find(|path| Path::new(path).exists())
        {
            return vec![Endpoint::Unix(socket.into())];
        }
        let hosts = if hosts.is_empty() { vec!["127.0.0.1".into()] } else { hosts };
        let ports = if self.mysql_port.is_empty() {
            vec![defaults.port.unwrap_or(3306)]
        } else {
            self.mysql_port.clone()
        };
        let all = hosts.iter().flat_map(|host| ports.iter().map(move |port| (host.clone(), *port)));
        all.map(|(host, port)| Endpoint::Tcp { host, port }).collect()
    }

    /// The option files that are named; the usual ones too where a file or a suffix is added to them, and `by_default`.
    fn defaults(&self, by_default: bool) -> Result<ClientDefaults> {
        let usual = by_default || self.defaults_extra_file.is_some() || self.defaults_group_suffix.is_some();
        let files = match &self.defaults_file {
            Some(file) => vec![DefaultsFile::needed(file.clone())],
            None if usual => client_defaults::usual(self.defaults_extra_file.clone(), std::env::home_dir()),
            None => return Ok(ClientDefaults::default()),
        };
        let defaults = ClientDefaults::read(files, self.defaults_group_suffix.as_deref()).map_err(refused)?;
        for warning in &defaults.warnings {
            note(&format!("warning: {warning}"));
        }
        Ok(defaults)
    }
}

/// The account that MySQL's client takes by default: the name of the user of the system.
fn system_user() -> String {
    if rustix::process::geteuid().is_root() {
        return "root".to_owned();
    }
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    set("USER").or_else(|| set("LOGNAME")).unwrap_or_else(|| "root".to_owned())
}

/// Whether a word of the command line has a password in it, which is not empty.
fn is_password(word: &str) -> bool {
    let value = ["--mysql-password=", "--mysql_password="].iter().find_map(|name| word.strip_prefix(name));
    value.is_some_and(|value| !value.is_empty()) || word == "--mysql-password" || word == "--mysql_password"
}

fn refused(error: DefaultsError) -> anyhow::Error {
    let mut refusal = Refusal::usage(error.to_string());
    if matches!(error, DefaultsError::NoAuthority) {
        refusal = refusal.hint("add ssl-ca=FILE to it, or give --mysql-ssl-ca");
    }
    anyhow::Error::new(error).context(refusal)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        server: ServerArgs,
    }

    fn target(words: &[&str]) -> Result<Target> {
        Line::try_parse_from([&["x"], words].concat()).unwrap().server.target()
    }

    fn endpoints(words: &[&str]) -> Vec<String> {
        target(words).unwrap().endpoints.iter().map(ToString::to_string).collect()
    }

    /// A file that its owner alone reads.
    fn file(dir: &Path, text: &str) -> String {
        let path = dir.join("my.cnf");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        format!("--defaults-file={}", path.display())
    }

    #[test]
    fn sockets_come_first_and_a_port_alone_means_this_machine() {
        assert_eq!(endpoints(&["--mysql-socket=/a,/b", "--mysql-host=x"]), ["/a", "/b"]);
        assert_eq!(endpoints(&["--mysql-port=3307"]), ["127.0.0.1:3307"]);
        assert_eq!(endpoints(&["--mysql-host=a,b", "--mysql-port=1,2"]), ["a:1", "a:2", "b:1", "b:2"]);
    }

    #[test]
    fn an_option_file_gives_what_the_command_line_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let text = "[client]\nuser=u\npassword=\"p#1\"\nhost=db\nport=3307\n[mysqld]\nuser=mysql\n[client_b]\nuser=b\nsocket=/s\n";
        let file = file(dir.path(), text);
        let seen = target(&[&file]).unwrap();
        assert_eq!((&*seen.user, &*seen.password, &*seen.database), ("u", "p#1", "sbtest"));
        assert_eq!(endpoints(&[&file]), ["db:3307"]);
        let seen = target(&[&file, "--mysql-user=me", "--mysql-host=other"]).unwrap();
        assert_eq!((&*seen.user, seen.endpoints[0].to_string()), ("me", "other:3307".to_owned()));
        let suffix = target(&[&file, "--defaults-group-suffix=_b"]).unwrap();
        assert_eq!((&*suffix.user, &*suffix.password), ("b", "p#1"));
        assert_eq!(
            endpoints(&[&file, "--defaults-group-suffix=_b"]),
            ["db:3307"],
            "a host that is not local"
        );
        assert_eq!(endpoints(&[&file, "--defaults-group-suffix=_b", "--mysql-host=localhost"]), ["/s"]);
        assert!(target(&["--defaults-file=/nowhere.cnf"]).is_err());
    }

    #[test]
    fn encryption_is_what_the_file_asks_for_and_never_less() {
        let dir = tempfile::tempdir().unwrap();
        let tls = |text: &str, more: &[&str]| {
            let file = file(dir.path(), &format!("[client]\n{text}\n"));
            target(&[&[file.as_str()], more].concat())
        };
        assert_eq!(tls("ssl-mode=REQUIRED", &[]).unwrap().tls, Some(Tls { ca: None }));
        assert_eq!(tls("ssl-ca=/ca", &[]).unwrap().tls, Some(Tls { ca: Some("/ca".into()) }));
        assert_eq!(tls("ssl-mode=REQUIRED", &["--mysql-ssl=off"]).unwrap().tls, None);
        assert_eq!(tls("user=x", &[]).unwrap().tls, None);
        assert!(tls("ssl-mode=VERIFY_CA", &[]).unwrap_err().to_string().contains("ssl-ca"));
        // MariaDB's word for it.
        assert!(tls("ssl-verify-server-cert", &[]).unwrap_err().to_string().contains("ssl-ca"));
        assert!(tls("loose-ssl-verify-server-cert=1", &[]).is_err());
        assert_eq!(tls("ssl-verify-server-cert=0", &[]).unwrap().tls, None);
        assert_eq!(tls("ssl-mode=VERIFY_CA", &["--mysql-ssl=off"]).unwrap().tls, None);
        let own = Some(Tls { ca: Some("/ca".into()) });
        for verify in ["ssl-mode=VERIFY_CA", "ssl-verify-server-cert"] {
            assert_eq!(tls(verify, &["--mysql-ssl-ca=/ca"]).unwrap().tls, own, "{verify}: as the hint says");
        }
        assert!(tls("ssl-mode=what", &[]).unwrap_err().to_string().contains("VERIFY_IDENTITY"));
        assert!(tls("port=x", &[]).unwrap_err().to_string().contains("65535"));
    }

    #[test]
    fn as_a_client_the_account_is_the_systems_user_and_a_file_may_set_it() {
        let dir = tempfile::tempdir().unwrap();
        let option = file(dir.path(), "[client]\nuser=me\npassword=of-file\n");
        let of = |words: &[&str], password: Option<&str>| {
            let line = Line::try_parse_from([&["x"], words].concat()).unwrap();
            let target = line.server.client_target(password.map(str::to_owned)).unwrap();
            (target.user, target.password)
        };
        assert_eq!(of(&[&option], None), ("me".to_owned(), "of-file".to_owned()));
        assert_eq!(of(&[&option, "--mysql-user=you"], Some("typed")), ("you".to_owned(), "typed".to_owned()));
        let empty = file(dir.path(), "");
        assert_eq!(of(&[&empty], None), (system_user(), String::new()));
        assert_ne!(system_user(), "sbtest");
    }

    #[test]
    fn a_file_that_everyone_may_write_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let option = file(dir.path(), "[client]\nuser=evil\n");
        let path = dir.path().join("my.cnf");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        assert_eq!(target(&[&option]).unwrap().user, "sbtest");
    }

    #[test]
    fn a_password_among_the_words_is_seen() {
        assert!(is_password("--mysql-password=x") && is_password("--mysql_password"));
        assert!(!is_password("--mysql-password=") && !is_password("--mysql-user=x"));
    }
}
