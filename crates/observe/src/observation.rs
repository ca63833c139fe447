//! What was seen of a server and of the storage below it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::facts::{Facts, Variables};
use crate::host::{Host, SyncProbe, VolumePeaks};
use crate::rates::Rates;
use crate::status::{StatementRates, StatusVariables};
use crate::tables::Tables;

/// What was seen of one server, by whomever. Everything is optional but where it comes from: a capture may have variables
/// alone, a trial rates and its volume.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// Where it comes from.
    pub origin: Origin,
    /// When, and over how long.
    pub span: Option<Span>,
    /// The server's settings in its own words.
    pub variables: Option<Variables>,
    /// Whether the variables are a part of the server's: a configuration file or a summary has no others. One that is
    /// missing is then not known.
    #[serde(default)]
    pub partial_variables: bool,
    /// What the option files of the server set, in the order in which they hold; None where no file was read.
    pub configured: Option<Vec<Configured>>,
    /// The values of the settings.
    pub facts: Option<Facts>,
    /// What the server did in the span, a second.
    pub rates: Option<Rates>,
    /// The spec of the volume that its data are on, such as `gp3:size=500GiB`.
    pub volume: Option<String>,
    /// The file system that its data are on.
    pub file_system: Option<FileSystem>,
    /// All status variables.
    pub status: Option<StatusVariables>,
    /// What statements did by their first word, such as `SELECT`; None where digests are not collected or not shown.
    pub statements: Option<BTreeMap<String, StatementRates>>,
    /// Mean number of clients whose statements ran, of several looks within the span; None where it was looked at twice.
    pub clients: Option<f64>,
    /// Where the value of each variable comes from, in the server's words, such as `COMPILED` or `CONFIG`.
    pub origins: Option<Variables>,
    /// Replication from a source, by the names of the server's columns; empty where the server has no source.
    pub replica: Option<Variables>,
    /// Tables of users.
    pub tables: Option<Tables>,
    /// The machine that the server runs on.
    pub host: Option<Host>,
    /// The spec of the volume of the redo log; None: that of the data.
    pub redo_volume: Option<String>,
    /// The spec of the volume of the binary log; None: that of the data.
    pub binlog_volume: Option<String>,
    /// The EC2 instance type, such as `r6i.large`.
    pub instance: Option<String>,
    /// What the volume of the data carried over days.
    pub peaks: Option<VolumePeaks>,
    /// How long a small write and its sync take; None where that was not asked for.
    pub sync_probe: Option<SyncProbe>,
    /// What was asked for and not answered.
    pub not_seen: Vec<NotSeen>,
}

/// An option that an option file (my.cnf) of the server sets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configured {
    /// Its name as that of a variable.
    pub name: String,
    /// Its value, numbers without a suffix, switches as `ON` and `OFF`.
    pub value: String,
    /// The group that it stands in.
    pub group: String,
    /// File and line.
    pub place: String,
}

/// Something that was asked for and could not be observed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotSeen {
    /// What.
    pub what: String,
    /// Why, and what would allow it.
    pub why: String,
}

impl Observation {
    /// One in which nothing was seen.
    #[must_use]
    pub const fn of(origin: Origin) -> Self {
        Self {
            origin,
            span: None,
            variables: None,
            partial_variables: false,
            configured: None,
            facts: None,
            rates: None,
            volume: None,
            file_system: None,
            status: None,
            statements: None,
            clients: None,
            origins: None,
            replica: None,
            tables: None,
            host: None,
            redo_volume: None,
            binlog_volume: None,
            instance: None,
            peaks: None,
            sync_probe: None,
            not_seen: Vec::new(),
        }
    }
}

/// Where an observation comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// A running server.
    Server {
        /// Socket, or host and port.
        at: String,
    },
    /// Text that was captured of a server before.
    Capture {
        /// File or directory.
        path: String,
    },
    /// A trial of an experiment.
    Trial {
        /// Name of the arm.
        arm: String,
        /// Number of the repeat, from 0.
        repeat: u32,
    },
}

/// When something was observed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// Its beginning, seconds since 1970; None: not known.
    pub began_unix_s: Option<u64>,
    /// Its length, s; over 0.
    pub seconds: f64,
    /// Whether the server was started again within it, so that its counters began anew.
    pub restarted: bool,
}

/// The file system that data files are on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSystem {
    /// Its name, such as `ext4-bigalloc`.
    pub name: String,
    /// Bytes in which it allocates, aligned on the device: a page of this size or less stays in one piece; 0 where it
    /// makes no such promise.
    pub aligned_bytes: u64,
}
