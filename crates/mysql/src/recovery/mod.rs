//! Evidence about a server that recovered from a power cut, or did not: its pages, its tables, its log,
//! and its binary log.
//!
//! Each check answers with what it found, or with [`Unverified`] where it could not look: no check takes
//! what it has not seen for clean. What is found is the evidence; the verdict is the caller's.

mod doublewrite;
mod in_dir;
mod innochecksum;
mod log;
pub mod page;
mod quick;
mod scan;
mod spaces;
mod tables;

pub mod binlog;

use std::io;
use std::path::{Path, PathBuf};

use ebbtide_load::LoadError;
use serde::{Deserialize, Serialize};

use crate::error::ServerError;

pub use binlog::{BinlogCommits, TornTail, binlog_commits, binlog_tail, own_binlog_index};
pub use innochecksum::check_pages;
pub use log::{LogEvidence, RecoveredPage};
pub use scan::scan_pages;
pub use tables::{TableCheck, check_tables};

/// What a look at every page of a server's tablespaces found.
///
/// Left out are temporary tablespaces, which every start makes anew, and the two blocks of the system
/// tablespace that serve as doublewrite buffer (MariaDB, and MySQL before 8.0.20): copies of pages of
/// other tablespaces are there, which fail the check even on an undamaged server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageCheck {
    /// Files that were looked at.
    pub files: u32,
    /// Pages in them.
    pub pages: u64,
    /// Pages that fail, by file and number; of one file at most [`INVALID_KEPT`].
    pub invalid: Vec<BadPage>,
}

/// At most so many invalid pages of one file are reported.
pub const INVALID_KEPT: usize = 100;

/// A page that does not pass its check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BadPage {
    /// The file.
    pub file: PathBuf,
    /// The page's number in its file, from 0.
    pub page: u32,
    /// What is wrong with it, and which tool or check found it.
    pub reason: String,
    /// What the page's header holds; none where the file ends inside of it.
    pub facts: Option<page::PageFacts>,
    /// Log position of the newest valid copy of it in the doublewrite buffer, as new as all that is left of the
    /// page; none where there is none, and where nobody looked: [`scan_pages`] does.
    pub copy: Option<u64>,
}

/// A check that could not be made: nothing is known, least of all that all is well.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unverified {
    /// The program that looks at pages is missing.
    #[error("no innochecksum fits {server}: {looked}")]
    NoTool {
        /// The server.
        server: String,
        /// Where it was looked for.
        looked: String,
    },
    /// The program that looks at pages did not do so.
    #[error("{tool} could not look at {}: {message}", file.display())]
    Tool {
        /// The program.
        tool: String,
        /// The file.
        file: PathBuf,
        /// Its message.
        message: String,
    },
    /// There is nothing to look at, or it is in a form that is not understood here.
    #[error("{}: {why}", file.display())]
    Form {
        /// The file or directory.
        file: PathBuf,
        /// What it is.
        why: String,
    },
    /// A file could not be read.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// There is no user without privileges to run the program as.
    #[error(transparent)]
    Account(Box<ServerError>),
    /// The server did not answer, or refused the question.
    #[error(transparent)]
    Session(#[from] LoadError),
}

impl Unverified {
    fn at(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }

    fn account(error: ServerError) -> Self {
        Self::Account(Box::new(error))
    }

    fn form(file: &Path, why: impl Into<String>) -> Self {
        Self::Form { file: file.to_owned(), why: why.into() }
    }

    /// What to do about it, where we know.
    #[must_use]
    pub const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoTool { .. } => Some(
                "install it (apt install mariadb-server-core, or mysql-server-core), or fetch a server that \
                 brings it (`./dev servers mariadb-11.8`, `./dev servers mysql-9.7`)",
            ),
            _ => None,
        }
    }
}
