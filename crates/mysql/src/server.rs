//! A running server.

use std::path::Path;
use std::time::Duration;

use ebbtide_load::{Session, Target};

use crate::error::ServerError;
use crate::plan::ServerPlan;

/// Memory of a server and of the page cache that its files take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// In use now, page cache included, bytes.
    pub bytes: u64,
    /// The most that was in use, bytes; 0 where the kernel does not tell.
    pub peak_bytes: u64,
    /// Of [`Self::bytes`], the page cache.
    pub page_cache_bytes: u64,
}

/// What a server has read and written at its file systems, page cache hits left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IoUse {
    /// Bytes read from devices.
    pub read_bytes: u64,
    /// Bytes written towards devices.
    pub written_bytes: u64,
}

/// A running server; dropping it kills it.
#[derive(Debug)]
pub struct Server {
    pid: u32,
    target: Target,
    options: Vec<String>,
    notes: Vec<String>,
}

impl Server {
    /// Starts a server on directories that [`initialize`](crate::initialize) has made (or clones of them)
    /// and waits until it answers.
    ///
    /// # Errors
    /// [`ServerError::DidNotStart`] with the server's own lines, [`ServerError::SettingRefused`], and what
    /// stands in the way before it is started.
    pub fn start(plan: &ServerPlan, progress: &dyn Fn(&str)) -> Result<Self, ServerError> {
        let _ = (plan, progress);
        Err(ServerError::NotFound { looked: "starting comes with the next change".into() })
    }

    /// Its process.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// Where it listens: its socket first, then its port where it has one; user `root`, database `sbtest`.
    #[must_use]
    pub fn target(&self) -> Target {
        self.target.clone()
    }

    /// A connection to it, without a database.
    ///
    /// # Errors
    /// Where it does not answer.
    pub fn session(&self) -> Result<Session, ServerError> {
        Ok(Session::open_without_database(&self.target, &self.target.endpoints[0])?)
    }

    /// The option lines that it was started with.
    #[must_use]
    pub fn options(&self) -> &[String] {
        &self.options
    }

    /// What should be known about how it runs, such as memory that could not be bounded.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The last lines of its log.
    #[must_use]
    pub fn log_tail(&self, lines: usize) -> Vec<String> {
        let _ = lines;
        Vec::new()
    }

    /// How it ended, where it did.
    pub fn exited(&mut self) -> Option<String> {
        None
    }

    /// The error of a server that died while it was in use; none while it lives.
    pub fn died(&mut self) -> Option<ServerError> {
        None
    }

    /// Processor time that it has used so far; its last reading once it has ended.
    #[must_use]
    pub fn cpu_time(&self) -> Duration {
        Duration::ZERO
    }

    /// Memory in use; zeros where it runs without a memory cgroup.
    #[must_use]
    pub fn memory(&self) -> MemoryUse {
        MemoryUse::default()
    }

    /// What it has read and written so far; zeros where the kernel does not tell.
    #[must_use]
    pub fn io(&self) -> IoUse {
        IoUse::default()
    }

    /// Asks it to shut down and waits.
    ///
    /// # Errors
    /// [`ServerError::DidNotStop`] after `timeout` (it is killed then), [`ServerError::Died`] where it ended
    /// otherwise than cleanly.
    pub fn stop(self, timeout: Duration) -> Result<(), ServerError> {
        let _ = timeout;
        Ok(())
    }

    /// Ends it at once, as a power cut of the instance would.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn kill(self) -> Result<(), ServerError> {
        Ok(())
    }
}

/// Ends servers and removes cgroups that a killed process left behind in a work directory below `run_dir`
/// (or in it), and says what that was. Nothing is touched that a living process of ours holds.
#[must_use]
pub fn clear_leftovers(run_dir: &Path) -> Vec<String> {
    let _ = run_dir;
    Vec::new()
}
