//! What the server of a home answers.

use std::path::PathBuf;

use ebbtide_device::host::{Calibration, Detached};
use serde::{Deserialize, Serialize};

use crate::{
    CrashImageView, DetachView, FaultView, RecordingView, RequestsView, SnapshotView, VolumeDetail,
    VolumeView,
};

/// A part of an answer. [`Self::Done`] or [`Self::Failed`] is the last one.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// What the server does or waits for, for people.
    Progress(String),
    /// What the user must know although the request is carried out, as a sentence.
    Warning(String),
    /// The request was carried out.
    Done {
        /// How the client's process ends.
        exit: ExitStatus,
        /// The result.
        answer: Answer,
    },
    /// It was not. This shape is the same in every version of the protocol.
    Failed(RefusedRequest),
}

impl Reply {
    /// Whether nothing follows.
    #[must_use]
    pub const fn is_last(&self) -> bool {
        matches!(self, Self::Done { .. } | Self::Failed(_))
    }
}

/// How the process of a client ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExitStatus {
    /// Done, and nothing to report.
    Clean,
    /// Done, and a violation or a finding is reported.
    Finding,
    /// The request itself is wrong.
    Usage,
    /// The environment does not allow it.
    Environment,
    /// An invariant of our own broke.
    Invariant,
}

/// Why a request was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedRequest {
    /// How the client's process ends.
    pub exit: ExitStatus,
    /// The messages, each with the next one as its cause.
    pub chain: Vec<String>,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// The result of a request.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Of [`Request::Ping`](super::Request::Ping): the server's version.
    Pong(String),
    /// Of [`Request::Status`](super::Request::Status).
    Status(Box<ServerStatus>),
    /// Of [`Request::Stop`](super::Request::Stop).
    Stopped {
        /// The home that was served.
        home: PathBuf,
        /// How each volume was detached.
        detached: Vec<Detached>,
    },
    /// A volume that was created, attached, modified or asked for.
    Volume(Box<VolumeDetail>),
    /// All volumes.
    Volumes(Vec<VolumeView>),
    /// A volume that was detached.
    Detached(Box<DetachView>),
    /// A recording that has begun or ended.
    Recording(Box<RecordingView>),
    /// The faults of a volume.
    Faults(Box<FaultView>),
    /// A crash image.
    CrashImage(Box<CrashImageView>),
    /// What the host can carry.
    Calibration(Box<Calibration>),
    /// A new snapshot.
    Snapshot(Box<SnapshotView>),
    /// All snapshots.
    Snapshots(Vec<SnapshotView>),
    /// The name of a volume or snapshot that was deleted.
    Deleted(String),
    /// What holds in a server that was changed.
    ServerChanged(ServerChanged),
}

/// Makes an [`Answer`] of each view by its type.
macro_rules! answers {
    ($($view:ty => $variant:ident,)*) => {
        $(impl From<$view> for Answer {
            fn from(view: $view) -> Self {
                Self::$variant(view.into())
            }
        })*
    };
}

answers! {
    ServerStatus => Status,
    ServerChanged => ServerChanged,
    VolumeDetail => Volume,
    Vec<VolumeView> => Volumes,
    DetachView => Detached,
    RecordingView => Recording,
    FaultView => Faults,
    CrashImageView => CrashImage,
    Calibration => Calibration,
    SnapshotView => Snapshot,
    Vec<SnapshotView> => Snapshots,
}

/// What `serve --change` prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerChanged {
    /// The filter of the log that holds now; null where it was not changed.
    pub log: Option<String>,
    /// URL of the AWS endpoint; null where none is served.
    pub aws: Option<String>,
    /// URL of the metrics; null where none are served.
    pub metrics: Option<String>,
}

/// What `serve --status` prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerStatus {
    /// Process number of the server.
    pub pid: u32,
    /// Its version.
    pub version: String,
    /// The home that it serves.
    pub home: PathBuf,
    /// URL of its AWS endpoint; null without `--aws`.
    pub aws: Option<String>,
    /// URL of its metrics; null without `--metrics`.
    pub metrics: Option<String>,
    /// What it was asked: by commands, by the AWS endpoint, and by itself for metrics.
    pub requests: RequestsView,
}
