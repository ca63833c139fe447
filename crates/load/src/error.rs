//! What can go wrong between us and the server.

use std::io;
use std::path::PathBuf;

use ebbtide_workload::OptionError;

/// Why a load could not be prepared or run.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The options contradict each other or lie out of range.
    #[error(transparent)]
    Options(#[from] OptionError),
    /// No connection to the server.
    #[error("no MySQL or MariaDB server answers at {endpoint}: {source}")]
    Unreachable {
        /// Where we tried.
        endpoint: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The server answered, and refused us or a statement of ours.
    #[error("the server answered error {code} ({state}): {message}{}", statement.as_ref().map(|sql| format!(" [for: {sql}]")).unwrap_or_default())]
    Server {
        /// The server's error code, such as 1045.
        code: u16,
        /// The SQLSTATE.
        state: String,
        /// The server's words.
        message: String,
        /// The statement, shortened.
        statement: Option<String>,
    },
    /// The connection broke in the middle of something.
    #[error("the connection to the server broke while {during}: {source}")]
    Broken {
        /// What we were doing.
        during: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The server asked for an authentication method that we do not speak, or that failed.
    #[error("cannot log in as '{user}' with the server's authentication method {plugin}: {message}")]
    Authentication {
        /// The account.
        user: String,
        /// The method's name.
        plugin: String,
        /// What failed.
        message: String,
    },
    /// The server asked for the password itself, on a connection whose other end is not known to be the server.
    #[error(
        "cannot log in as '{user}': the server's authentication method {plugin} asks for the password as it is, which is \
         sent only through the server's socket, or over TLS with a certificate that was checked"
    )]
    ClearPassword {
        /// The account.
        user: String,
        /// The method's name.
        plugin: String,
    },
    /// TLS could not be set up.
    #[error("TLS with {endpoint} failed: {message}")]
    Tls {
        /// The server.
        endpoint: String,
        /// What failed.
        message: String,
    },
    /// The server sent what the protocol does not allow here.
    #[error("the server's answer is not the MySQL protocol: {0}")]
    Protocol(String),
    /// Rows that were sent as lines are not in the table: LOAD DATA LOCAL leaves out what does not fit.
    #[error(
        "of {sent} rows for {table} the server has taken {loaded}: the others have keys that are there already"
    )]
    RowsRefused {
        /// The table.
        table: String,
        /// Rows sent.
        sent: u64,
        /// Rows that are in.
        loaded: u64,
    },
    /// The tables are not what a load with invariants left in them.
    #[error("the tables are not as the load prepared and left them: {0}")]
    Tables(String),
    /// The tables are not those of the workload.
    #[error("the tables of database {database} are not those that were asked for: {what}")]
    OtherTables {
        /// The database.
        database: String,
        /// What differs.
        what: String,
    },
    /// A file of ours could not be written or read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The operating system refused something that the event loop needs.
    #[error("the operating system refused {what}: {source}")]
    System {
        /// What we asked for.
        what: &'static str,
        /// Its message.
        source: io::Error,
    },
}

impl LoadError {
    /// The server's error code where the server spoke, or the client code of the same meaning
    /// (2013) where the connection broke.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Server { code, .. } => Some(*code),
            Self::Broken { .. } => Some(SERVER_LOST),
            Self::Unreachable { .. } => Some(CONNECTION_REFUSED),
            _ => None,
        }
    }

    pub(crate) fn broken(during: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Broken { during, source }
    }

    pub(crate) fn system(what: &'static str) -> impl FnOnce(rustix::io::Errno) -> Self {
        move |errno| Self::System { what, source: errno.into() }
    }

    /// What to do about it, where we know.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Unreachable { .. } => Some(
                "start the server, or point --mysql-socket or --mysql-host and --mysql-port at it \
                 (mariadb-admin status shows where it listens)",
            ),
            Self::Server { code, .. } => server_hint(*code),
            Self::OtherTables { .. } => Some(
                "give the number of warehouses that the tables have, name another database with --mysql-db, or drop \
                 the tables with `ebbtide load cleanup tpcc --execute` and make them again with `ebbtide load prepare tpcc`",
            ),
            Self::ClearPassword { .. } => Some(
                "name the authority that signed the server's certificate with --mysql-ssl-ca (MySQL makes one: ca.pem in \
                 its data directory), or connect through --mysql-socket",
            ),
            Self::Authentication { .. } => {
                Some("check --mysql-user and --mysql-password; --mysql-ssl=on opens more methods")
            }
            Self::Tls { message, .. } if message.contains("invalid peer certificate") => Some(
                "name the host as the certificate does, and its authority with --mysql-ssl-ca; without an authority the \
                 connection is encrypted and the certificate is not checked",
            ),
            Self::Tls { .. } => Some(
                "check that the server has TLS on (SHOW VARIABLES LIKE 'have_ssl'), or use --mysql-ssl=off",
            ),
            _ => None,
        }
    }
}

/// The client code for a connection lost during a query (CR_SERVER_LOST).
pub(crate) const SERVER_LOST: u16 = 2013;
/// The client code for a connection that could not be made (CR_CONN_HOST_ERROR).
const CONNECTION_REFUSED: u16 = 2003;

fn server_hint(code: u16) -> Option<&'static str> {
    match code {
        1044 | 1045 | 1698 | 3159 => Some(
            "check --mysql-user, --mysql-password and the account's host and grants; one that requires TLS needs --mysql-ssl",
        ),
        1049 => {
            Some("name an existing database with --mysql-db; `ebbtide load prepare` creates a missing one")
        }
        1050 => Some(
            "the tables are there already: run on them, or drop them with `ebbtide load cleanup --execute`",
        ),
        1146 => Some("create the tables with `ebbtide load prepare` and the same --tables"),
        1040 | 1203 => Some("use fewer --threads, or raise max_connections on the server"),
        1461 => Some(
            "every connection prepares each statement for each table: raise max_prepared_stmt_count on \
             the server, use fewer --tables or --threads, or --db-ps-mode=disable",
        ),
        _ => None,
    }
}
