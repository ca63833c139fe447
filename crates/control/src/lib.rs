//! The control plane: what may be done to a volume, and when.
//!
//! [`ControlPlane`] takes typed requests and answers with typed views and errors. [`LiveControl`] carries
//! them out on a [`Host`](ebbtide_device::host::Host). The rules are pure and need no kernel: [`state`] decides
//! over a volume's state, a request and the time; [`record`] is what is kept of a volume, and what its model
//! is after a time without a server.
//!
//! Adapters translate: `ebbtide serve` does so for its socket. Nothing here knows a command line, JSON text,
//! a socket or a terminal.
#![forbid(unsafe_code)]

mod error;
mod fault;
mod live;
mod plane;
pub mod record;
mod request;
mod request_counters;
mod specs;
pub mod state;
mod time;
mod view;

pub use ebbtide_device::host::{Calibration, Detached, Export, FsType, MountRequest, Progress};
pub use ebbtide_device::nbd::{NbdAddress, NbdError};
pub use ebbtide_device::store::{
    ChangedBlock, DATA_KEY_BYTES, DataKey, KeyUnavailable, KeyUnwrapper, SNAPSHOT_BLOCK_BYTES, WrappedKey,
};
pub use ebbtide_volume::{MinuteMetrics, Nanos, OpStats, Stats};
pub use error::{ControlError, ControlErrorKind, ForeignRecord, ResourceKind};
pub use fault::{FaultError, FaultSetting, in_force};
pub use live::LiveControl;
pub use plane::ControlPlane;
pub use request::{
    AttachVolume, BeginSnapshot, CreateSnapshot, CreateVolume, DetachVolume, ModifyVolume, Optimizing,
    RecordVolume, SetFaults, TakeCrashImage,
};
pub use specs::{catalog, check, resolve};
pub use time::{TimeError, UnixTime};
pub use view::{
    AttachmentKind, AttachmentView, CrashImageView, DetachView, FailureCount, FaultView, InitializationState,
    InitializationView, InstanceBalances, LatencyView, LiveView, ModificationView, Names, OperationView,
    Phase, RecordingView, RequestsView, ShadowView, ShadowsView, SnapshotView, UnknownWord, VolumeCounters,
    VolumeDetail, VolumeStatus, VolumeView,
};
