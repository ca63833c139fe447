//! What the terminal, the pages and `--once` show, as plain data: a [`View`] of one moment, and [`Graph`]s over time.
//!
//! Nothing here knows how it is drawn. A figure that is not known is None, never zero.

use std::sync::Arc;

use serde::Serialize;

/// All that is shown of one moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct View {
    /// When, seconds since 1970.
    pub unix_s: i64,
    /// What local time is ahead of UTC, seconds.
    pub utc_offset_s: i64,
    /// How long this is watched, seconds; None in a replay.
    pub watched_s: Option<f64>,
    /// What watching costs.
    pub own: OwnCost,
    /// Servers, in the order in which they were named.
    pub servers: Vec<ServerView>,
    /// Volumes of Ebbtide and devices of the machine; those that hold files of a server first.
    pub storage: Vec<StorageView>,
    /// File systems.
    pub file_systems: Vec<FileSystemView>,
    /// Alarms that are not OK, the most severe first.
    pub alarms: Vec<AlarmView>,
    /// What could not be read, and what would make it readable.
    pub not_seen: Vec<NotSeenView>,
}

/// Rules wait for a minute to see a load, and for two before they alarm of what holds requests back, s.
const RULES_WAIT_S: f64 = 120.0;

impl View {
    /// How long this is watched, seconds, while that is too short for most rules; None afterwards.
    #[must_use]
    pub fn just_begun_s(&self) -> Option<f64> {
        self.watched_s.filter(|watched_s| *watched_s < RULES_WAIT_S)
    }
}

/// What watching costs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct OwnCost {
    /// Of a core, in the last minute: 0.01 is 1%.
    pub processor_share: Option<f64>,
    /// Memory that is resident, bytes.
    pub resident_bytes: Option<u64>,
    /// Time that servers spent on our statements in the last minute, of a second: 0.003 is 0.3%.
    pub server_share: Option<f64>,
    /// Samples that were left out because the ones before took too long.
    pub skipped: u64,
}

/// A server.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ServerView {
    /// Its name, as the user gave it or its address.
    pub name: String,
    /// Host and port, or the socket.
    pub address: String,
    /// Flavour and version, such as `MariaDB 11.8.9`; empty before the first answer.
    pub version: String,
    /// Why it is not read; None while it is.
    pub down: Option<String>,
    /// Seconds since it was started.
    pub uptime_s: Option<f64>,
    /// Statements a second.
    pub statements: Option<f64>,
    /// Those that write, a second.
    pub write_statements: Option<f64>,
    /// Commits a second: COMMIT statements, and where these are few, statements that write, which commit by themselves.
    pub commits: Option<f64>,
    /// Threads that run a statement.
    pub threads_running: Option<f64>,
    /// Connections, and the most that there may be.
    pub connections: Option<(f64, f64)>,
    /// Pages read from storage a second.
    pub page_reads: Option<f64>,
    /// Pages written a second.
    pub page_writes: Option<f64>,
    /// Share of the page requests that the buffer pool had, 0 to 1.
    pub pool_hits: Option<f64>,
    /// Share of the buffer pool that is dirty, 0 to 1.
    pub dirty: Option<f64>,
    /// The redo log.
    pub redo: Option<RedoView>,
    /// Waits for room in the log buffer a second.
    pub log_waits: Option<f64>,
    /// Waits for a free page a second.
    pub free_waits: Option<f64>,
    /// Waits for row locks a second.
    pub row_lock_waits: Option<f64>,
    /// Length of the history list (undo that was not purged).
    pub history: Option<f64>,
    /// Time in syncs of logs, of a second: 0.5 is half of the time.
    pub log_time: Option<f64>,
    /// Share of the main thread's loops or time that was active, 0 to 1.
    pub main_thread: Option<f64>,
    /// Its replication channels.
    pub replicas: Vec<ReplicaView>,
    /// What lies where: role, such as `data` or `redo`, and the name in [`View::storage`].
    pub files: Vec<(String, String)>,
}

/// The redo log of a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct RedoView {
    /// Its size, bytes.
    pub capacity_bytes: f64,
    /// Written since the last checkpoint, bytes.
    pub used_bytes: Option<f64>,
    /// Bytes written a second.
    pub written: Option<f64>,
    /// Seconds until the server flushes before all else, at the growth of the last minute; 0 while it is there.
    pub sync_flush_s: Option<f64>,
}

/// A replication channel.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ReplicaView {
    /// Its name; empty for the only one.
    pub channel: String,
    /// Its source, host and port.
    pub source: String,
    /// What its receiver and its applier do: `running`, `connecting`, `stopped`.
    pub threads: [String; 2],
    /// Seconds behind, by the best evidence; None is not zero.
    pub lag_s: Option<f64>,
    /// What says so.
    pub lag_by: String,
    /// The last error; empty without one.
    pub error: String,
}

/// A volume or a device.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct StorageView {
    /// Its name.
    pub name: String,
    /// What it is, such as `gp3:size=500GiB`; empty where it is not known.
    pub spec: String,
    /// Where it is mounted.
    pub mounts: Vec<String>,
    /// What lies on it: an entry for each server that has files there, such as `data, redo of shop`.
    pub roles: Vec<String>,
    /// Whether the figures are those of the model (a volume of Ebbtide), and not the kernel's.
    pub exact: bool,
    /// Reads a second.
    pub reads: Option<f64>,
    /// Writes a second.
    pub writes: Option<f64>,
    /// Bytes read a second.
    pub read_bytes: Option<f64>,
    /// Bytes written a second.
    pub written_bytes: Option<f64>,
    /// Mean time of a read, s.
    pub read_s: Option<f64>,
    /// Mean time of a write, s.
    pub write_s: Option<f64>,
    /// Requests in flight, the mean of the interval.
    pub queue: Option<f64>,
    /// Its limit of operations a second.
    pub iops_limit: Option<f64>,
    /// Its limit of bytes a second.
    pub bytes_limit: Option<f64>,
    /// Share of the time in which I/O waited for a limit, 0 to 1.
    pub throttled: Option<f64>,
    /// Which limit that was, such as `volume IOPS`.
    pub limited_by: Option<String>,
    /// Its burst credits.
    pub credits: Option<CreditsView>,
}

/// Burst credits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct CreditsView {
    /// Share left, 0 to 1.
    pub share: f64,
    /// Seconds until they end at the mean load of the last minute, or of what was seen of it; None where they do not.
    pub end_s: Option<f64>,
    /// Seconds until they are full without load.
    pub full_s: Option<f64>,
}

/// A file system.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct FileSystemView {
    /// Where it is mounted.
    pub mount: String,
    /// Its device.
    pub device: String,
    /// Its size, bytes.
    pub size_bytes: f64,
    /// Free for users, bytes.
    pub free_bytes: f64,
    /// Seconds until it is full at the growth of what stays; None where it does not grow.
    pub full_s: Option<f64>,
}

/// An alarm.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct AlarmView {
    /// The name of its rule.
    pub rule: String,
    /// The server, volume or file system.
    pub subject: String,
    /// `ALARM`, `INSUFFICIENT_DATA` or `OK`, as CloudWatch says it.
    pub state: String,
    /// `critical`, `high`, `medium` or `low`.
    pub severity: String,
    /// Since when, seconds since 1970.
    pub since_s: i64,
    /// Why, in numbers, with the time that it forecasts.
    pub reason: String,
    /// What to do.
    pub fix: String,
    /// Until when it is silenced, seconds since 1970.
    pub silenced_until_s: Option<i64>,
}

/// What could not be read.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct NotSeenView {
    /// The server or device.
    pub subject: String,
    /// What is not seen.
    pub figure: String,
    /// Why.
    pub reason: String,
    /// The statement or command that would make it readable; empty where nothing does.
    pub remedy: String,
}

/// What graphs are about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Subject {
    /// A server by its name.
    Server(String),
    /// A volume or device by its name.
    Storage(String),
}

/// A span of time, seconds since 1970, with `from_s < to_s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// Its beginning.
    pub from_s: i64,
    /// Its end.
    pub to_s: i64,
    /// The most points of a line that are wanted; the step is the shortest of 1 s, 60 s and 3,600 s, or a multiple, that keeps it.
    pub most_points: usize,
}

/// A graph over time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Graph {
    /// Its name in links, such as `iops`.
    pub key: &'static str,
    /// Its title for people.
    pub title: &'static str,
    /// The unit of its values: `/s`, `s`, `bytes`, `bytes/s`, `share`, or empty.
    pub unit: &'static str,
    /// Whether its axis is logarithmic.
    pub logarithmic: bool,
    /// The time of the first value, seconds since 1970.
    pub start_s: i64,
    /// Seconds from one value to the next.
    pub step_s: u32,
    /// Its lines, all of the same length.
    pub lines: Vec<GraphLine>,
}

/// A line of a graph.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GraphLine {
    /// What it shows, such as `reads`.
    pub label: String,
    /// A value for each step, the oldest first; None is a gap.
    pub values: Vec<Option<f64>>,
}

/// Where views and graphs come from: a watcher that runs, or its history.
pub trait ViewSource: Send + Sync {
    /// The last view.
    fn view(&self) -> Arc<View>;

    /// The graphs of a subject, those of the first row first: operations, latency, time in logs, main thread. Empty for a subject that
    /// is not known.
    fn graphs(&self, subject: &Subject, range: Range) -> Vec<Graph>;
}
