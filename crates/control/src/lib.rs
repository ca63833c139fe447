//! The control plane: what may be done to a volume, and when.
//!
//! [`ControlPlane`] takes typed requests and answers with typed views and errors. [`LiveControl`] carries
//! them out on a [`Host`](ebbtide_device::host::Host). The rules are pure and need no kernel: [`state`] decides
//! over a volume's state, a request and the time; [`record`] is what is kept of a volume, and what its model
//! is after a time without a server.
//!
//! Adapters translate: `ebbtide-serve` does so for its socket, with the types of [`protocol`]. [`socket`] has both ends of it, and
//! nothing else here knows JSON text or a socket. Nothing knows a command line or a terminal.
//!
//! # Where to begin reading
//!
//! - `plane` is the trait [`ControlPlane`], with the types of `request`, `view` and `error`.
//! - [`state`] and [`record`] are pure: the operations that a volume's state permits ([`state::VolumeState::permits`]), what is
//!   stored of a volume, and its model at a time.
//! - `identity` has the id of a volume and its owner. The AWS endpoint follows the volumes by them
//!   ([`ControlPlane::changed_volumes`]); every request takes an id in place of a volume's name.
//! - [`protocol`] has what a command and the server of a home say to each other: requests, and a stream of replies.
//! - `live` carries requests out on a host, and counts each by its operation (`request_counters`). `live::follow` feeds shadows and
//!   a recording with the requests that a thread of `ebbtide-device` fetches from the engine. `live::blocks` is between the EBS
//!   direct APIs and the block store.
//! - [`VolumeObserver`] is the trait by which metrics read all volumes at once; `live::observe` does so without waiting for I/O.
//! - [`document`] says what the views of a volume mean, as a document for people.
//!
//! A new request is a method of [`ControlPlane`], with a type in `src/request.rs`, a row of the counters, and what states permit it. Its
//! adapters are `crates/serve/src/service.rs`, for the socket, with a variant of [`protocol::Request`] and one of
//! [`protocol::Answer`], and the services of `ebbtide-cloud`.
#![forbid(unsafe_code)]

pub mod document;
mod error;
mod fault;
mod identity;
mod live;
mod observed;
mod plane;
pub mod protocol;
pub mod record;
mod request;
mod request_counters;
pub mod socket;
mod specs;
pub mod state;
mod time;
mod view;

pub use ebbtide_device::engine::{LatenessTotals, VolumeReading, VolumeTotals};
pub use ebbtide_device::faults::{ActiveFaults, InjectedFaults};
pub use ebbtide_device::host::{Calibration, Detached, Export, FsType, MountRequest, Progress};
pub use ebbtide_device::nbd::{NbdAddress, NbdError};
pub use ebbtide_device::store::{
    ChangedBlock, DATA_KEY_BYTES, DataKey, KeyUnavailable, KeyUnwrapper, SNAPSHOT_BLOCK_BYTES, WrappedKey,
};
pub use ebbtide_volume::{MinuteMetrics, Nanos, OpStats, Stats, VolumeInterval};
pub use error::{ControlError, ControlErrorKind, ForeignRecord, ResourceKind};
pub use fault::{FaultError, FaultSetting, in_force};
pub use identity::{Owner, OwnerError, OwnerRequest, VolumeIdentity, is_volume_id};
pub use live::LiveControl;
pub use observed::{ObservedAttachment, ObservedVolume, VolumeObserver};
pub use plane::ControlPlane;
pub use request::{
    AttachVolume, BeginSnapshot, CreateSnapshot, CreateVolume, DetachVolume, ModifyVolume, Optimizing,
    RecordVolume, SetFaults, TakeCrashImage,
};
pub use specs::{catalog, check, resolve};
pub use time::{TimeError, UnixTime};
pub use view::{
    AttachmentKind, AttachmentView, CrashImageView, CreditsView, DetachView, FailureCount, FaultView,
    InitializationState, InitializationView, InstanceBalances, LastMinuteView, LatencyView, LiveView,
    ModificationView, Names, OperationView, Phase, RecordingView, RequestsView, ShadowView, ShadowsView,
    SnapshotView, UnknownWord, VolumeCounters, VolumeDetail, VolumeStatus, VolumeView,
};
