//! The control socket: how the other commands talk to `ebbtide serve`.
//!
//! One connection carries one request. Both directions are lines of JSON: the client sends one
//! [`Envelope`], the server answers with any number of [`Reply::Progress`] lines and then exactly
//! one [`Reply::Done`] or [`Reply::Failed`].

mod client;
mod server;
mod version;

use serde::{Deserialize, Serialize};

use crate::exit::{Exit, Report};
use crate::serve::ServerChange;
use crate::snapshot::SnapshotCreate;
use crate::volume::args::{
    AttachArgs, CrashImageArgs, CreateArgs, DetachArgs, FaultArgs, ListArgs, ModifyArgs, NameArgs,
    RecordFile, ShowArgs,
};

pub(crate) use client::{Answer, answers, ask, ask_if_there, clear, not_running};
pub(crate) use server::{Listener, Progress, serve_client};
pub(crate) use version::VERSION;

/// A request with the protocol version of who sends it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Envelope {
    /// [`VERSION`] of the client.
    pub(crate) v: u32,
    /// What it wants. Read as a plain value first, so that another version's request is refused
    /// for its version and not for its words.
    pub(crate) request: serde_json::Value,
}

/// What a client may ask for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Request {
    /// Is anyone there?
    Ping,
    /// `serve --status`
    Status,
    /// `serve --change`
    ServerChange(ServerChange),
    /// Detach everything and end.
    Stop {
        /// Also where volumes are in use.
        force: bool,
    },
    /// `volume create`
    VolumeCreate(CreateArgs),
    /// `volume attach`
    VolumeAttach(AttachArgs),
    /// `volume detach`
    VolumeDetach(DetachArgs),
    /// `volume record`: begin
    VolumeRecord(RecordFile),
    /// `volume record`: end
    VolumeRecordEnd(NameArgs),
    /// `volume modify`
    VolumeModify(ModifyArgs),
    /// `volume list`
    VolumeList(ListArgs),
    /// `volume show`
    VolumeShow(ShowArgs),
    /// `volume delete`
    VolumeDelete(NameArgs),
    /// `volume fault`
    VolumeFault(FaultArgs),
    /// `volume crash-image`
    VolumeCrashImage(CrashImageArgs),
    /// `volume calibrate`
    Calibrate {
        /// The short form.
        quick: bool,
    },
    /// `snapshot create`
    SnapshotCreate(SnapshotCreate),
    /// `snapshot list`
    SnapshotList,
    /// `snapshot delete`
    SnapshotDelete(NameArgs),
}

/// One line of an answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Reply {
    /// What the server is doing or waiting for.
    Progress(String),
    /// Done; the value is what `--json` prints.
    Done {
        /// How the client's process is to end.
        exit: Exit,
        /// The result.
        value: serde_json::Value,
    },
    /// Not done.
    Failed(Report),
}
