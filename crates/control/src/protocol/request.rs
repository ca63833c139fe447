//! What a command may ask the server of a home for.
//!
//! Specs and addresses travel as the texts that the user wrote. The server reads them: its refusal of one comes after that of a
//! server that stops, and has the same words whatever client asks.

use std::path::PathBuf;
use std::time::Duration;

use ebbtide_catalog::{Initialization, Spec};
use ebbtide_device::host::{Export, FsType, MountRequest};
use ebbtide_device::nbd::NbdAddress;
use serde::{Deserialize, Serialize};

use crate::{
    AttachVolume, ControlError, CreateSnapshot, CreateVolume, DetachVolume, ModifyVolume, Optimizing,
    OwnerRequest, SetFaults, TakeCrashImage,
};

/// One request.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// Whether a server answers.
    Ping,
    /// What the server was asked.
    Status,
    /// Detach everything and end.
    Stop {
        /// Also volumes that are in use.
        force: bool,
    },
    /// Create a volume.
    VolumeCreate(CreateRequest),
    /// Attach a volume.
    VolumeAttach(AttachRequest),
    /// Detach a volume.
    VolumeDetach(DetachVolume),
    /// Begin to record the requests of an attached volume.
    VolumeRecord {
        /// The volume.
        name: String,
        /// The new file, absolute.
        file: PathBuf,
    },
    /// End a recording.
    VolumeRecordEnd {
        /// The volume.
        name: String,
    },
    /// Change type, size, IOPS or throughput, or the owner.
    VolumeModify(ModifyRequest),
    /// All volumes.
    VolumeList {
        /// AWS region whose prices are shown; none for the default one.
        region: Option<String>,
    },
    /// One volume.
    VolumeShow {
        /// The volume.
        name: String,
        /// AWS region whose prices are shown; none for the default one.
        region: Option<String>,
    },
    /// Delete a detached volume.
    VolumeDelete {
        /// The volume.
        name: String,
    },
    /// Set faults, end them, or show them.
    VolumeFault(SetFaults),
    /// Create a volume with what a power cut of another one would leave.
    VolumeCrashImage(TakeCrashImage),
    /// Measure what the host can carry.
    Calibrate {
        /// The short form.
        quick: bool,
    },
    /// Copy a volume.
    SnapshotCreate(CreateSnapshot),
    /// All snapshots.
    SnapshotList,
    /// Delete a snapshot.
    SnapshotDelete {
        /// The snapshot.
        name: String,
    },
    /// Change the running server.
    ServerChange(ServerChange),
}

/// What a running server is to change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerChange {
    /// Which events are logged from now on; none: those that are.
    pub log: Option<String>,
    /// The options of the AWS endpoint that begins now, as words; empty for none.
    pub aws: Vec<String>,
    /// Where metrics are served from now on, as the command line has it, or `off`; none: as before.
    pub metrics: Option<String>,
}

/// A new volume: [`CreateVolume`] with its spec as text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateRequest {
    /// Its name.
    pub name: String,
    /// What it is, such as `gp3:size=500GiB`.
    pub spec: String,
    /// Snapshot whose content it begins with; none for an empty volume.
    pub snapshot: Option<String>,
    /// How the snapshot's blocks come to the volume; none for the way of its type.
    pub initialization: Option<Initialization>,
    /// Logical block size, bytes.
    pub block_size: u32,
    /// Seed of its draws; none: the server draws one.
    pub seed: Option<u64>,
    /// AWS region whose prices the answer has; none for the default one.
    pub region: Option<String>,
    /// Whose it is; none: the server's default owner's.
    pub owner: Option<OwnerRequest>,
}

/// A volume to attach: [`AttachVolume`] with its texts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttachRequest {
    /// The volume.
    pub name: String,
    /// How the outside sees it.
    pub export: ExportRequest,
    /// EC2 instance whose own limits hold too, as `TYPE` or `TYPE/ID`.
    pub instance: Option<String>,
    /// Whether it is attached although it is faster than this host can carry.
    pub over_limit: bool,
    /// Specs of volumes that follow its requests.
    pub shadows: Vec<String>,
}

/// How the outside is to see a volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExportRequest {
    /// As a block device.
    Block {
        /// Where it is mounted; none: it is not.
        mount: Option<MountPoint>,
    },
    /// Through NBD.
    Nbd {
        /// `unix:PATH` or `tcp:HOST:PORT`; the path is absolute.
        address: String,
    },
}

/// Where a volume is to be mounted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountPoint {
    /// The directory, absolute.
    pub dir: PathBuf,
    /// The file system, which a blank volume gets first.
    pub fs: FsType,
    /// Whether other content may be destroyed for it.
    pub destroy: bool,
}

/// A change of a volume: [`ModifyVolume`] with its spec as text, and its owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModifyRequest {
    /// The volume.
    pub name: String,
    /// What it becomes; a setting that is left out keeps its value. None: it stays what it is.
    pub spec: Option<String>,
    /// Whose it becomes, after the rest of the change; none: its owner's.
    pub owner: Option<OwnerRequest>,
    /// How long it performs between old and new; none: no time at all.
    pub optimizing: Option<Optimizing>,
    /// Whether it is modified although it is then faster than this host can carry.
    pub over_limit: bool,
}

impl TryFrom<CreateRequest> for CreateVolume {
    type Error = ControlError;

    fn try_from(request: CreateRequest) -> Result<Self, ControlError> {
        let CreateRequest { name, spec, snapshot, initialization, block_size, seed, region, owner } = request;
        let spec = Spec::parse(&spec)?;
        // A command is never repeated on its own, and keys are the AWS endpoint's.
        let (token, key) = (None, None);
        Ok(Self { name, spec, snapshot, initialization, block_size, seed, region, token, key, owner })
    }
}

impl TryFrom<AttachRequest> for AttachVolume {
    type Error = ControlError;

    fn try_from(request: AttachRequest) -> Result<Self, ControlError> {
        let AttachRequest { name, export, instance, over_limit, shadows } = request;
        let export = Export::try_from(export)?;
        let shadows = shadows.iter().map(|text| Spec::parse(text)).collect::<Result<_, _>>()?;
        Ok(Self { name, export, instance, over_limit, shadows })
    }
}

impl TryFrom<ExportRequest> for Export {
    type Error = ControlError;

    fn try_from(request: ExportRequest) -> Result<Self, ControlError> {
        Ok(match request {
            ExportRequest::Nbd { address } => {
                Self::Nbd(NbdAddress::parse(&address).map_err(ControlError::Address)?)
            }
            ExportRequest::Block { mount } => Self::Block {
                mount: mount.map(|MountPoint { dir, fs, destroy }| MountRequest {
                    dir,
                    fs,
                    destroy,
                    grow: false,
                    noexec: false,
                }),
            },
        })
    }
}

impl ModifyRequest {
    /// The change of what the volume is; None where only its owner changes.
    ///
    /// # Errors
    /// A text that is no spec.
    pub fn change(&self) -> Result<Option<ModifyVolume>, ControlError> {
        let Some(spec) = &self.spec else { return Ok(None) };
        Ok(Some(ModifyVolume {
            name: self.name.clone(),
            spec: Spec::parse(spec)?,
            optimizing: self.optimizing.unwrap_or(Optimizing::For(Duration::ZERO)),
            over_limit: self.over_limit,
        }))
    }
}
