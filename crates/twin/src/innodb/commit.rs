//! Commits: the redo log and the binary log, each with the group that is being written and the one that waits.
//!
//! A group is written while the next one gathers, so groups grow by themselves when the volume is slow
//! (MySQL: `log0write.cc`, `MYSQL_BIN_LOG::ordered_commit`; MariaDB: `log0sync.cc`, `trx_group_commit_leader`).

use ebbtide_volume::{KIB, Nanos};

use super::disk::Disk;
use super::file_kind::FileKind;
use super::flavour::Settings;

/// A log with its group commit.
#[derive(Debug, Default)]
struct Stage {
    waiting: Vec<usize>,
    waiting_bytes: f64,
    group: Vec<usize>,
    busy: bool,
}

impl Stage {
    fn enqueue(&mut self, client: usize, bytes: f64) {
        self.waiting.push(client);
        self.waiting_bytes += bytes;
    }

    /// Those that wait become the group; returns their bytes. None where nobody waits or a group is being written.
    fn begin(&mut self) -> Option<f64> {
        if self.busy || self.waiting.is_empty() {
            return None;
        }
        self.busy = true;
        std::mem::swap(&mut self.group, &mut self.waiting);
        Some(std::mem::take(&mut self.waiting_bytes))
    }

    fn end(&mut self, into: &mut Vec<usize>) {
        self.busy = false;
        into.append(&mut self.group);
    }
}

/// The two logs.
#[derive(Debug)]
pub(crate) struct CommitPipeline {
    redo: Stage,
    binlog: Stage,
    settings: CommitSettings,
    /// Bytes in the page cache that no flush has written yet.
    unsynced_redo: f64,
    unsynced_binlog: f64,
    groups_since_sync: u32,
    /// What the sync of the binary log still needs.
    syncing: LogSync,
}

/// The rest of a sync of the binary log: writes of the file system's journal, each once the one before is on the volume, and
/// the pause of `binlog_group_commit_sync_delay`.
#[derive(Debug, Clone, Copy, Default)]
struct LogSync {
    journal_writes: u32,
    delay: Nanos,
}

/// What of a server's settings decides a commit.
#[derive(Debug, Clone, Copy)]
struct CommitSettings {
    flush_at_commit: bool,
    log_bin: bool,
    sync_binlog: u32,
    delay: Nanos,
    journal_writes: u32,
}

/// Least that a log writes: a block of the page cache.
const BLOCK: u64 = 4 * KIB;
/// What is written back of a file that nobody flushes, at a time.
const WRITE_BACK: u64 = 256 * KIB;

impl CommitPipeline {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            redo: Stage::default(),
            binlog: Stage::default(),
            settings: CommitSettings {
                flush_at_commit: settings.flush_log_at_commit == 1,
                log_bin: settings.log_bin,
                sync_binlog: settings.sync_binlog,
                delay: Nanos::from_us(settings.group_commit_delay_us),
                journal_writes: settings.file_system.journal_writes(),
            },
            unsynced_redo: 0.0,
            unsynced_binlog: 0.0,
            groups_since_sync: 0,
            syncing: LogSync::default(),
        }
    }

    /// A transaction comes to commit.
    pub(crate) fn enqueue(&mut self, client: usize, redo_bytes: f64) {
        self.redo.enqueue(client, redo_bytes);
    }

    /// Begins to write the redo of those that wait; returns when the write and its flush complete.
    pub(crate) fn begin_redo(&mut self, now: Nanos, disk: &mut Disk) -> Option<Nanos> {
        let bytes = self.redo.begin()?;
        if !self.settings.flush_at_commit {
            self.unsynced_redo += bytes;
            return Some(now);
        }
        // The last block of the group before is written again.
        Some(write_log(FileKind::Redo, bytes + BLOCK as f64 / 2.0, now, disk))
    }

    /// The group is in the redo log: those that are done, into `done`; with a binary log they go on to it.
    pub(crate) fn end_redo(&mut self, bytes: impl Fn(usize) -> f64, done: &mut Vec<usize>) {
        self.redo.end(done);
        if self.settings.log_bin {
            for client in done.drain(..) {
                self.binlog.enqueue(client, bytes(client));
            }
        }
    }

    /// Begins to write the binary log of those that wait; returns when its next step may begin ([`Self::sync_binlog`]).
    pub(crate) fn begin_binlog(&mut self, now: Nanos, disk: &mut Disk) -> Option<Nanos> {
        let bytes = self.binlog.begin()?;
        self.unsynced_binlog += bytes;
        self.groups_since_sync += 1;
        if self.settings.sync_binlog == 0 || self.groups_since_sync < self.settings.sync_binlog {
            return Some(now);
        }
        self.groups_since_sync = 0;
        let bytes = std::mem::take(&mut self.unsynced_binlog);
        let delay = if self.settings.sync_binlog == 1 { self.settings.delay } else { Nanos::ZERO };
        self.syncing = LogSync { journal_writes: self.settings.journal_writes, delay };
        Some(write_log(FileKind::Binlog, bytes, now, disk))
    }

    /// The next step of the sync of the binary log: returns when it completes; None where all steps are done. `fdatasync` of a
    /// file that grew waits for the data, and writes the journal then (`ext4_sync_file`, `xfs_file_fsync`: both call
    /// `file_write_and_wait_range` first). ext4 writes the block that commits after those before it (`jbd2_journal_commit_transaction`).
    pub(crate) fn sync_binlog(&mut self, now: Nanos, disk: &mut Disk) -> Option<Nanos> {
        if self.syncing.journal_writes > 0 {
            self.syncing.journal_writes -= 1;
            return Some(disk.submit(FileKind::Binlog, block(), now));
        }
        let delay = std::mem::take(&mut self.syncing.delay);
        (delay > Nanos::ZERO).then(|| now + delay)
    }

    /// The group is in the binary log.
    pub(crate) fn end_binlog(&mut self, done: &mut Vec<usize>) {
        self.binlog.end(done);
    }

    /// Once a second: what no commit has flushed goes to the volume, and nobody waits for it.
    pub(crate) fn write_back(&mut self, now: Nanos, disk: &mut Disk) {
        if self.unsynced_redo > 0.0 {
            write_log(FileKind::Redo, std::mem::take(&mut self.unsynced_redo), now, disk);
        }
        if self.settings.sync_binlog != 1 && self.unsynced_binlog >= WRITE_BACK as f64 {
            write_log(FileKind::Binlog, std::mem::take(&mut self.unsynced_binlog), now, disk);
        }
    }
}

fn block() -> u32 {
    u32::try_from(BLOCK).expect("4 KiB")
}

/// Writes to a log in whole blocks and at most [`WRITE_BACK`] at a time, and flushes.
fn write_log(kind: FileKind, bytes: f64, now: Nanos, disk: &mut Disk) -> Nanos {
    let blocks = super::cleaner::whole((bytes / BLOCK as f64).ceil()).max(1);
    let mut left = blocks * BLOCK;
    let mut written = now;
    while left > 0 {
        let part = left.min(WRITE_BACK);
        let len = u32::try_from(part).expect("at most 256 KiB");
        written = written.max(disk.submit(kind, len, now));
        left -= part;
    }
    // A flush has no data: it follows the write without waiting for a limit.
    written + disk.flush(kind, now).since(now)
}
