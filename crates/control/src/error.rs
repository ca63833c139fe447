//! Why a request was refused: what is wrong as data, and of which kind it is.
//!
//! The texts name values and rules. What to type next is the adapter's to name, since only it knows how it was
//! asked.

use std::fmt;
use std::path::PathBuf;

use ebbtide_catalog::{CatalogError, ModifyRejection, SpecError};
use ebbtide_device::engine::EngineError;
use ebbtide_device::host::HostError;
use ebbtide_device::nbd::NbdError;
use ebbtide_device::store::{Damage, KeyUnavailable, StoreError};
use ebbtide_text::size;
use ebbtide_volume::format_size;
use serde::{Deserialize, Serialize};

use crate::FaultSetting;

/// Of which kind a refusal is: what an exit code or an HTTP status follows from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ControlErrorKind {
    /// The request is wrong whatever the state: it must be changed. HTTP: 400.
    Usage,
    /// What it names does not exist. HTTP: 404.
    NotFound,
    /// The state does not allow it now, or not any more. HTTP: 409.
    Conflict,
    /// Someone outside uses the volume, or its I/O is stalled: force ends that. HTTP: 409.
    InUse,
    /// No request is taken: the server is stopping. HTTP: 503.
    Unavailable,
    /// The environment does not allow it: no permission, no space, no device, damage. HTTP: 500.
    Environment,
    /// An invariant of our own broke. HTTP: 500.
    Invariant,
}

impl ControlErrorKind {
    /// All of them, each at the place of its number.
    pub(crate) const ALL: [Self; 7] = [
        Self::Usage,
        Self::NotFound,
        Self::Conflict,
        Self::InUse,
        Self::Unavailable,
        Self::Environment,
        Self::Invariant,
    ];

    /// As it is printed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::NotFound => "not-found",
            Self::Conflict => "conflict",
            Self::InUse => "in-use",
            Self::Unavailable => "unavailable",
            Self::Environment => "environment",
            Self::Invariant => "invariant",
        }
    }
}

/// What a name belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceKind {
    /// A volume.
    Volume,
    /// A snapshot.
    Snapshot,
}

impl ResourceKind {
    /// In lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Volume => "volume",
            Self::Snapshot => "snapshot",
        }
    }

    /// By the name that the block store has for it.
    fn of(kind: &str) -> Self {
        if kind == Self::Snapshot.name() { Self::Snapshot } else { Self::Volume }
    }
}

impl fmt::Display for ResourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Metadata that this program has not written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ForeignRecord(pub(crate) String);

/// A request that was not carried out. Nothing is changed then, unless a text reports it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// No request is taken any more.
    #[error("the server is stopping")]
    Stopping,
    /// A block size that no disk has.
    #[error("a block size of {given} is not possible")]
    BlockSize {
        /// Bytes.
        given: u32,
    },
    /// A text that is no spec.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// What AWS would refuse, in its words; an unknown instance; a region without prices.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The home's catalogue overrides cannot be read, or mean nothing.
    #[error("this home's catalogue overrides cannot be used")]
    Overrides {
        /// Their file.
        file: PathBuf,
        /// What is wrong with it.
        source: CatalogError,
    },
    /// A volume that is smaller than the snapshot that it is to begin as.
    #[error(
        "the volume would have {}, the snapshot '{snapshot}' needs {}",
        size(*size_bytes),
        size(*needed_bytes)
    )]
    SmallerThanSnapshot {
        /// The snapshot.
        snapshot: String,
        /// Size that the volume would have, bytes.
        size_bytes: u64,
        /// Size of the snapshot, bytes.
        needed_bytes: u64,
    },
    /// An initialization of a volume that has nothing to load.
    #[error("an initialization needs a snapshot: an empty volume has nothing to load")]
    NothingToInitialize,
    /// A token of an impossible form.
    #[error("a token of {length} characters is not possible; give 1 to 64")]
    TokenLength {
        /// Its characters.
        length: usize,
    },
    /// A token that another request with other parameters has used.
    #[error("the token of this request has created volume '{volume}' with other parameters")]
    TokenUsed {
        /// The volume that it created.
        volume: String,
    },
    /// A fault in a range that the volume has not, or not whole.
    #[error("'{setting}' ends beyond volume '{volume}', which has {}", format_size(*size_bytes))]
    BeyondEnd {
        /// The volume.
        volume: String,
        /// The fault.
        setting: FaultSetting,
        /// Size of the volume, bytes.
        size_bytes: u64,
    },
    /// A shadow that is smaller than the volume that it follows.
    #[error("the shadow {spec} is smaller than volume '{volume}', which has {}", format_size(*size_bytes))]
    ShadowTooSmall {
        /// The volume.
        volume: String,
        /// The shadow.
        spec: String,
        /// Size of the volume, bytes.
        size_bytes: u64,
    },
    /// A volume that is recorded already.
    #[error("volume '{volume}' is being recorded to {path}")]
    Recorded {
        /// The volume.
        volume: String,
        /// Where to.
        path: String,
    },
    /// A volume that is not recorded.
    #[error("volume '{volume}' is not being recorded")]
    NotRecorded {
        /// The volume.
        volume: String,
    },
    /// No volume or snapshot of that name.
    #[error("there is no {thing} '{name}'; list what there is first")]
    NotFound {
        /// What was looked for.
        thing: ResourceKind,
        /// Its name.
        name: String,
    },
    /// The name is taken.
    #[error("{thing} '{name}' exists already; choose another name or delete it first")]
    Exists {
        /// What has it.
        thing: ResourceKind,
        /// The name.
        name: String,
    },
    /// A name or a size that cannot be.
    #[error(transparent)]
    Invalid(StoreError),
    /// The volume is attached, or on its way.
    #[error("volume '{volume}' is {state}")]
    NotFree {
        /// The volume.
        volume: String,
        /// `attached as ...`, `being detached`, ...
        state: String,
    },
    /// The store has the volume open, although it is not attached: someone still looks at it.
    #[error("volume '{volume}' is in use; detach it first")]
    Open {
        /// The volume.
        volume: String,
    },
    /// The volume is not attached.
    #[error("volume '{volume}' is not attached")]
    NotAttached {
        /// The volume.
        volume: String,
    },
    /// Someone uses the device or the mounted file system.
    #[error("volume '{volume}' is in use at {}: {holders}", at.display())]
    InUse {
        /// The volume.
        volume: String,
        /// The device or directory.
        at: PathBuf,
        /// By whom.
        holders: String,
    },
    /// I/O is stalled by a fault, so that unmounting would wait for ever.
    #[error("I/O of volume '{volume}' is stalled")]
    Stalled {
        /// The volume.
        volume: String,
    },
    /// Volumes that cannot be detached keep the server from stopping.
    #[error("the server goes on: {}", reasons.join("; "))]
    StillInUse {
        /// The first volume that someone uses, or whose I/O is stalled.
        volume: Option<String>,
        /// A text for each volume.
        reasons: Vec<String>,
    },
    /// The volume is faster than what this host carries.
    #[error("volume '{volume}' is faster than this host: {}", figures.join("; "))]
    FasterThanHost {
        /// The volume.
        volume: String,
        /// In which figures, as texts.
        figures: Vec<String>,
        /// Whether a modification was asked for, not an attachment.
        modify: bool,
    },
    /// What the host refuses for a reason of the request's own: an instance without room, a directory or
    /// content that a mount cannot have, no block devices, no space.
    #[error(transparent)]
    Refused(HostError),
    /// An address that an NBD export cannot have.
    #[error(transparent)]
    Address(NbdError),
    /// Two snapshots that do not descend from one disk are to be compared.
    #[error("snapshots '{first}' and '{second}' are not related")]
    Unrelated {
        /// The first snapshot.
        first: String,
        /// The second snapshot.
        second: String,
    },
    /// The data key of something encrypted cannot be unwrapped.
    #[error("'{name}' is encrypted, and its data key cannot be unwrapped")]
    Key {
        /// The volume or snapshot.
        name: String,
        /// Why.
        source: KeyUnavailable,
    },
    /// The volume cannot be opened.
    #[error(transparent)]
    Damaged(Damage),
    /// A volume that another program has made in this store.
    #[error("volume '{volume}' was made by another program")]
    Foreign {
        /// The volume.
        volume: String,
        /// What its metadata lack.
        source: ForeignRecord,
    },
    /// The disk that holds the home has no space.
    #[error("the host's disk is full")]
    HostFull(#[source] StoreError),
    /// The block store does not do it.
    #[error("the block store cannot be used")]
    Store(#[source] StoreError),
    /// The kernel, a tool, or the home's file system does not do it.
    #[error("the host does not allow it")]
    Host(#[source] HostError),
    /// What is stored, or the catalogue, contradicts itself: a defect of ours.
    #[error("{what}")]
    Contradiction {
        /// What does, as a sentence.
        what: &'static str,
        /// Against what.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl ControlError {
    /// Of which kind it is.
    #[must_use]
    pub const fn kind(&self) -> ControlErrorKind {
        use HostError as H;
        match self {
            Self::Stopping => ControlErrorKind::Unavailable,
            Self::Catalog(CatalogError::Modify(
                ModifyRejection::InProgress { .. }
                | ModifyRejection::TooSoon { .. }
                | ModifyRejection::RateExceeded { .. },
            ))
            | Self::TokenUsed { .. }
            | Self::Exists { .. }
            | Self::NotFree { .. }
            | Self::Open { .. }
            | Self::NotAttached { .. }
            | Self::Recorded { .. }
            | Self::NotRecorded { .. }
            | Self::Refused(H::NoSlot { .. } | H::OtherInstance { .. } | H::NotBlank { .. }) => {
                ControlErrorKind::Conflict
            }
            Self::BlockSize { .. }
            | Self::Spec(_)
            | Self::Catalog(_)
            | Self::SmallerThanSnapshot { .. }
            | Self::NothingToInitialize
            | Self::TokenLength { .. }
            | Self::BeyondEnd { .. }
            | Self::ShadowTooSmall { .. }
            | Self::Unrelated { .. }
            | Self::Invalid(_)
            | Self::Address(_)
            | Self::Refused(H::MountDir { .. }) => ControlErrorKind::Usage,
            Self::NotFound { .. } => ControlErrorKind::NotFound,
            Self::InUse { .. } | Self::Stalled { .. } | Self::StillInUse { .. } => ControlErrorKind::InUse,
            Self::Overrides { .. }
            | Self::FasterThanHost { .. }
            | Self::Refused(_)
            | Self::Key { .. }
            | Self::Damaged(_)
            | Self::Foreign { .. }
            | Self::HostFull(_)
            | Self::Store(_)
            | Self::Host(_) => ControlErrorKind::Environment,
            Self::Contradiction { .. } => ControlErrorKind::Invariant,
        }
    }

    /// A contradiction in what is stored or in the catalogue.
    pub(crate) fn contradiction<E>(what: &'static str) -> impl FnOnce(E) -> Self
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        move |source| Self::Contradiction { what, source: source.into() }
    }
}

impl From<StoreError> for ControlError {
    fn from(error: StoreError) -> Self {
        use StoreError as E;
        match error {
            E::NotFound { kind, name } => Self::NotFound { thing: ResourceKind::of(kind), name },
            E::Exists { kind, name } => Self::Exists { thing: ResourceKind::of(kind), name },
            E::Busy { name } => Self::Open { volume: name },
            E::Unrelated { first, second } => Self::Unrelated { first, second },
            E::Name { .. } | E::Size { .. } | E::NotAncestor { .. } => Self::Invalid(error),
            E::Key { name, source } => Self::Key { name, source },
            E::Damaged(damage) => Self::Damaged(damage),
            E::Io { .. } if error.is_full() => Self::HostFull(error),
            _ => Self::Store(error),
        }
    }
}

impl From<EngineError> for ControlError {
    fn from(error: EngineError) -> Self {
        use EngineError as E;
        match error {
            E::Store(error) => error.into(),
            // Both were checked when the volume was created.
            E::BlockBytes(_) | E::StoreTooSmall { .. } => {
                Self::contradiction("the stored volume contradicts itself")(error)
            }
            other => Self::Host(other.into()),
        }
    }
}

impl From<HostError> for ControlError {
    fn from(error: HostError) -> Self {
        use HostError as E;
        use NbdError as N;
        match error {
            E::Store(error) => error.into(),
            E::Engine(error) => error.into(),
            E::NotFree { volume, state } => Self::NotFree { volume, state },
            E::NotAttached { volume } => Self::NotAttached { volume },
            E::InUse { volume, at, holders } => Self::InUse { volume, at, holders },
            E::Stalled { volume } => Self::Stalled { volume },
            E::NoSlot { .. }
            | E::OtherInstance { .. }
            | E::NoBlockDevice { .. }
            | E::MountDir { .. }
            | E::NotBlank { .. }
            | E::NoSpace { .. } => Self::Refused(error),
            E::Nbd(
                error @ (N::Address { .. }
                | N::PathTooLong { .. }
                | N::ExportName { .. }
                | N::InUse { .. }
                | N::NotASocket { .. }
                | N::BeyondLoopback { .. }),
            ) => Self::Address(error),
            other => Self::Host(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the host reports, and what the control plane makes of it.
    fn converted(error: impl Fn() -> HostError) -> (String, ControlError) {
        (error().to_string(), error().into())
    }

    #[test]
    fn a_refusal_that_has_a_type_of_its_own_keeps_the_words_of_its_source() {
        let volume = || "db".to_owned();
        let of_store = |error: StoreError| HostError::from(error);
        let cases = [
            (
                converted(|| of_store(StoreError::NotFound { kind: "volume", name: volume() })),
                ControlErrorKind::NotFound,
            ),
            (
                converted(|| of_store(StoreError::NotFound { kind: "snapshot", name: volume() })),
                ControlErrorKind::NotFound,
            ),
            (
                converted(|| of_store(StoreError::Exists { kind: "snapshot", name: volume() })),
                ControlErrorKind::Conflict,
            ),
            (converted(|| of_store(StoreError::Busy { name: volume() })), ControlErrorKind::Conflict),
            (converted(|| of_store(StoreError::Name { name: "A".into() })), ControlErrorKind::Usage),
            (
                converted(|| HostError::NotFree { volume: volume(), state: "away".into() }),
                ControlErrorKind::Conflict,
            ),
            (converted(|| HostError::NotAttached { volume: volume() }), ControlErrorKind::Conflict),
            (
                converted(|| HostError::InUse {
                    volume: volume(),
                    at: "/mnt".into(),
                    holders: "sh (7)".into(),
                }),
                ControlErrorKind::InUse,
            ),
            (converted(|| HostError::Stalled { volume: volume() }), ControlErrorKind::InUse),
            (
                converted(|| HostError::NoSlot { instance: "t3.small/a".into(), slots: 1 }),
                ControlErrorKind::Conflict,
            ),
            (
                converted(|| HostError::MountDir { dir: "/".into(), why: "no".into() }),
                ControlErrorKind::Usage,
            ),
            (
                converted(|| HostError::NoBlockDevice { missing: "root".into() }),
                ControlErrorKind::Environment,
            ),
            (
                converted(|| NbdError::ExportName { length: 5_000, max: 4_096 }.into()),
                ControlErrorKind::Usage,
            ),
        ];
        for ((text, error), kind) in cases {
            assert_eq!(error.to_string(), text);
            assert_eq!(error.kind(), kind, "{error:?}");
        }
    }

    #[test]
    fn a_full_disk_and_a_broken_one_are_distinguished_and_keep_their_cause() {
        let io = |kind: std::io::ErrorKind| StoreError::Io {
            action: "write",
            path: "manifest".into(),
            source: kind.into(),
        };
        let full = ControlError::from(HostError::from(io(std::io::ErrorKind::StorageFull)));
        let broken = ControlError::from(io(std::io::ErrorKind::Other));
        assert!(matches!(full, ControlError::HostFull(_)), "{full:?}");
        assert!(matches!(broken, ControlError::Store(_)), "{broken:?}");
        for error in [full, broken] {
            assert_eq!(error.kind(), ControlErrorKind::Environment);
            let cause = std::error::Error::source(&error).unwrap();
            assert_eq!(cause.to_string(), "cannot write manifest");
        }
    }

    #[test]
    fn a_store_that_contradicts_the_model_is_our_defect() {
        let error = ControlError::from(HostError::from(EngineError::StoreTooSmall { volume: 2, store: 1 }));
        assert_eq!(error.kind(), ControlErrorKind::Invariant);
        assert_eq!(error.to_string(), "the stored volume contradicts itself");
    }
}
