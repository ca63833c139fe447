//! What is to be brought up.

use std::path::PathBuf;
use std::time::Duration;

use ebbtide_load::Cancel;

use crate::binary::Binary;
use crate::layout::Layout;
use crate::replication_part::ReplicationPart;
use crate::settings::Settings;

/// How long a server may take to become ready, unless the plan sets another time.
pub const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Where a server's files are that are not its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkPaths {
    /// Option file, log, and a directory of the server's own with its socket and process id; made where it is missing.
    /// Outside of the volumes, and short: a socket's path has at most 107 bytes.
    pub dir: PathBuf,
    /// Records and locks, by the name of [`Self::dir`]: what [`crate::clear_leftovers`] goes by. Made where it is
    /// missing, for this process's user alone.
    pub records: PathBuf,
}

impl WorkPaths {
    /// The name of the record and the lock.
    pub(crate) fn name(&self) -> String {
        self.dir.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// A server to be brought up.
#[derive(Debug, Clone)]
pub struct ServerPlan {
    /// The program.
    pub binary: Binary,
    /// Its directories.
    pub layout: Layout,
    /// Its settings.
    pub settings: Settings,
    /// Memory of the server and its page cache, bytes; none: not bounded.
    pub memory_bytes: Option<u64>,
    /// Whether it is an error that memory cannot be bounded here; otherwise it is a note.
    pub require_memory: bool,
    /// Where its files are that are not its data.
    pub work: WorkPaths,
    /// Whether it also listens on a free TCP port of 127.0.0.1.
    pub tcp: bool,
    /// Its part in replication; none: nobody follows it, and it follows nobody.
    pub part: Option<ReplicationPart>,
    /// How long it may take to become ready. Recovery on a slow volume takes long.
    pub start_timeout: Duration,
    /// Ends whatever is waited for, and the server with it.
    pub cancel: Cancel,
}

impl ServerPlan {
    /// A server with its defaults, on the socket alone, without a bound on memory.
    #[must_use]
    pub fn new(binary: Binary, layout: Layout, work: WorkPaths) -> Self {
        Self {
            binary,
            layout,
            settings: Settings::default(),
            memory_bytes: None,
            require_memory: true,
            work,
            tcp: false,
            part: None,
            start_timeout: START_TIMEOUT,
            cancel: Cancel::default(),
        }
    }
}
