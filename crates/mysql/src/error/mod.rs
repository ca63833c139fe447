//! What can go wrong with a server, and what to do about it.

mod cgroup;
mod setting;

use std::io;
use std::path::{Path, PathBuf};

use ebbtide_load::LoadError;

use crate::end::ProcessEnd;

pub use cgroup::CgroupError;
pub use setting::SettingError;

/// A server that could not be brought up, or did not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// There is no server program.
    #[error("no MySQL or MariaDB server was found: {looked}")]
    NotFound {
        /// Where it was looked for.
        looked: String,
    },
    /// The program is not a server.
    #[error("{} is not a MySQL or MariaDB server: `{} --version` {output}", path.display(), path.display())]
    NotAServer {
        /// The program.
        path: PathBuf,
        /// What it did instead of naming its version.
        output: String,
    },
    /// A program that a file names, and that the user has not allowed.
    #[error(
        "{} was not started: a file names it, and it is neither this machine's own server nor one that `./dev servers` has \
         fetched. Who wrote the file chose the program. Look at it, and allow it with --allow-servers",
        path.display()
    )]
    NotAllowed {
        /// The program.
        path: PathBuf,
    },
    /// A program whose version is not known unless it is started.
    #[error("the version of {} is not known without starting it", path.display())]
    VersionUnknown {
        /// The program.
        path: PathBuf,
    },
    /// The server is too old, or does not fit the data.
    #[error("{}: {why}", path.display())]
    WrongVersion {
        /// The program.
        path: PathBuf,
        /// What does not fit.
        why: String,
    },
    /// Files that come with the server are missing.
    #[error("{} lacks what making a data directory needs: {missing}", path.display())]
    Incomplete {
        /// The program.
        path: PathBuf,
        /// What is missing, and where it was looked for.
        missing: String,
    },
    /// A setting that this server does not have, or not with this value.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The server itself refused a setting, or took it otherwise than it was given.
    #[error("the server does not take a setting: {}", words.join("; "))]
    SettingRefused {
        /// The server's words.
        words: Vec<String>,
    },
    /// The server ended, or was not ready in time.
    #[error(
        "the server, as user '{user}', did not start: {}{end}{}{}",
        while_making(*initializing, end),
        because(cause.as_ref()),
        first_error(log)
    )]
    DidNotStart {
        /// The user that it ran as.
        user: String,
        /// How it ended, or why it was given up.
        end: ProcessEnd,
        /// Whether it was to make its data, and not to serve.
        initializing: bool,
        /// Why, where its cgroup or its log shows it.
        cause: Option<Cause>,
        /// Its error lines and the end of its log.
        log: Vec<String>,
    },
    /// The server ended while it was in use.
    #[error("the server died: {end}{}", because(cause.as_ref()))]
    Died {
        /// How it ended.
        end: ProcessEnd,
        /// Why, where its cgroup or its log shows it.
        cause: Option<Cause>,
        /// Its error lines and the end of its log.
        log: Vec<String>,
    },
    /// The server did not end in time after it was asked to.
    #[error("the server still runs {seconds} s after it was asked to stop; it was killed")]
    DidNotStop {
        /// How long it was waited for.
        seconds: u64,
        /// The end of its log.
        log: Vec<String>,
    },
    /// It was asked to end by [`ServerPlan::cancel`](crate::ServerPlan::cancel).
    #[error("cancelled")]
    Cancelled,
    /// A directory that a server was to fill holds something.
    #[error("{} is not empty: a server is made in directories that hold nothing", dir.display())]
    NotEmpty {
        /// The directory.
        dir: PathBuf,
    },
    /// The data directory was not made by us.
    #[error("{} was not made by ebbtide: no server is started on it", dir.display())]
    NotOurs {
        /// The directory.
        dir: PathBuf,
    },
    /// Another server runs on the directory.
    #[error("{} is in use by process {pid}", dir.display())]
    InUse {
        /// The directory.
        dir: PathBuf,
        /// The process, as far as the system reports.
        pid: String,
    },
    /// Files that an arm puts on a volume of their own do not exist.
    #[error("there is nothing to move to {}: {missing}", dir.display())]
    NothingToMove {
        /// The directory.
        dir: PathBuf,
        /// What the data directory lacks.
        missing: String,
    },
    /// The server's user may not reach a directory.
    #[error("user '{user}', as which the server runs, may not enter {}", parent.display())]
    NotReachable {
        /// The directory that is closed to it.
        parent: PathBuf,
        /// The user.
        user: String,
    },
    /// A socket path that the kernel does not take.
    #[error("the socket path {} has {} bytes, and 107 are allowed", path.display(), path.as_os_str().len())]
    SocketPath {
        /// The path.
        path: PathBuf,
    },
    /// There is no user to run the server as, or no tool to become it.
    #[error("the server cannot be run without privileges: {why}")]
    NoUser {
        /// What is missing.
        why: String,
    },
    /// The server's memory cannot be bounded here.
    #[error("the server's memory cannot be limited to {limit_bytes} bytes: {why}")]
    Cgroup {
        /// The limit.
        limit_bytes: u64,
        /// Why not.
        why: CgroupError,
    },
    /// The server did not answer a question as it should.
    #[error(transparent)]
    Session(#[from] LoadError),
    /// The operating system refused.
    #[error("cannot {action}")]
    Io {
        /// What was tried.
        action: String,
        /// Why not.
        source: io::Error,
    },
}

fn while_making(initializing: bool, end: &ProcessEnd) -> &'static str {
    if initializing && !matches!(end, ProcessEnd::GivenUp(_)) { "while making its data, " } else { "" }
}

fn because(cause: Option<&Cause>) -> String {
    cause.map(|cause| format!(": {cause}")).unwrap_or_default()
}

/// The first line that the server itself marks as an error: what follows it is mostly its consequence.
fn first_error(log: &[String]) -> String {
    let first = log.iter().find_map(|line| line.find("[ERROR]").map(|begin| &line[begin..]));
    first.map(|line| format!("; its first error: {line}")).unwrap_or_default()
}

/// Why a server did not start or died, as its log reports.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The file system is full.
    #[error("no space is left on its file system")]
    NoSpace,
    /// The port is taken.
    #[error("its TCP port is in use")]
    PortInUse,
    /// The data are in use.
    #[error("another server has its files open")]
    FilesInUse,
    /// The kernel's security module or the permissions forbid a path.
    #[error("it may not open its files")]
    Forbidden,
    /// It needed more memory than it may have.
    #[error("it needs more memory than it may have")]
    Memory,
    /// The files are damaged.
    #[error("its files are damaged")]
    Corrupt,
}

impl ServerError {
    pub(crate) fn io(action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let action = action.into();
        move |source| Self::Io { action, source }
    }

    pub(crate) fn at(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        Self::io(format!("{action} {}", path.display()))
    }

    /// The server's own lines, where it left any.
    #[must_use]
    pub fn log(&self) -> &[String] {
        match self {
            Self::DidNotStart { log, .. } | Self::Died { log, .. } | Self::DidNotStop { log, .. } => log,
            _ => &[],
        }
    }

    /// Whether something of this machine is in the way, rather than what was asked.
    #[must_use]
    pub const fn is_environment(&self) -> bool {
        !matches!(self, Self::Setting(_) | Self::SettingRefused { .. } | Self::NothingToMove { .. })
    }

    /// What to do about it, where we know.
    #[must_use]
    pub const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NotFound { .. } => Some(
                "install one (apt install mariadb-server-core), name one with --server PATH, or fetch one \
                 with `./dev servers`",
            ),
            Self::NotAServer { .. } => Some("--server takes the program mariadbd or mysqld itself"),
            Self::NotReachable { .. } => {
                Some("give others the right to enter it (chmod o+x), or use another")
            }
            Self::SocketPath { .. } => {
                Some("use a directory with a shorter path, such as one below /run or /tmp")
            }
            Self::Cgroup { .. } => Some(
                "run as root on a host with memory cgroups; a container needs its own writable cgroup tree",
            ),
            Self::DidNotStart { cause: Some(cause), .. } | Self::Died { cause: Some(cause), .. } => {
                cause.hint()
            }
            _ => None,
        }
    }
}

impl Cause {
    const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoSpace => Some("make the volume larger, or the data or the redo log smaller"),
            Self::Forbidden => Some(
                "the user that it runs as must own its files; AppArmor may confine the server to the distribution's directories: `aa-status` shows it, and \
                 docs/lab.md says how to lift it",
            ),
            Self::Memory => Some("give the instance more memory, or the server a smaller buffer pool"),
            Self::PortInUse | Self::FilesInUse | Self::Corrupt => None,
        }
    }
}
