//! What the catalogue refuses, in AWS's words where AWS has words for it.

use std::path::PathBuf;

use ebbtide_text::did_you_mean;

use crate::DataError;

/// A request that the catalogue refuses, or catalogue data that it cannot use.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// A volume specification that AWS would refuse.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// A modification that AWS would refuse.
    #[error(transparent)]
    Modify(#[from] ModifyRejection),
    /// A type that did not exist on the day asked for.
    #[error("{kind} cannot be had as of {day}: {reason}")]
    NotThen {
        /// The type.
        kind: String,
        /// The day asked for.
        day: String,
        /// When it was launched, and from when on its limits are known.
        reason: String,
    },
    /// An instance type that the catalogue does not know.
    #[error(
        "unknown instance type '{name}'{suggestion}",
        suggestion = did_you_mean(nearest.as_deref())
    )]
    UnknownInstance {
        /// The name as written.
        name: String,
        /// The known name most like it.
        nearest: Option<String>,
        /// The sizes of its family, where there is such a family.
        sizes: Vec<String>,
    },
    /// A region without prices.
    #[error(
        "there are no prices for region '{name}'{suggestion}; there are some for {known}",
        suggestion = did_you_mean(nearest.as_deref()),
        known = known.join(", ")
    )]
    UnknownRegion {
        /// The name as written.
        name: String,
        /// The known name most like it.
        nearest: Option<String>,
        /// All regions that have prices.
        known: Vec<String>,
    },
    /// A setting that this kind of volume does not have.
    #[error("{kind} has no setting '{key}': {why}")]
    NoSuchSetting {
        /// The type.
        kind: String,
        /// The setting.
        key: &'static str,
        /// Why it has none.
        why: String,
    },
    /// More than the disks of an instance hold.
    #[error("{kind} has {max}; {size} do not fit")]
    DisksTooSmall {
        /// The type.
        kind: String,
        /// The size asked for, as text.
        size: String,
        /// The size of all disks, as text.
        max: String,
    },
    /// A RAID 0 whose chunk does not fit its members.
    #[error("a chunk of {chunk} is larger than the members of {member}")]
    ChunkTooLarge {
        /// The chunk, as text.
        chunk: String,
        /// The members' size, as text.
        member: String,
    },
    /// An overrides file that cannot be read.
    #[error("cannot read the overrides in {path}: {reason}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        reason: String,
    },
    /// Catalogue data or overrides that contradict themselves.
    #[error("{place}: {cause}")]
    Data {
        /// The file and the entry.
        place: String,
        /// What is wrong with it.
        cause: DataError,
    },
}

/// A CreateVolume request that AWS refuses, in its own words.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Rejection {
    /// A type that does not exist.
    #[error("Unsupported volume type '{kind}' for volume creation.")]
    UnknownType {
        /// The type as written.
        kind: String,
        /// The known type most like it.
        nearest: Option<String>,
        /// All known types.
        known: Vec<String>,
    },
    /// An EBS volume without a size.
    #[error("The request must contain the parameter size/snapshot")]
    NoSize,
    /// A size that is no whole number of GiB.
    #[error("Invalid value '{size}' for size: EBS volumes are whole GiB.")]
    NotWholeGib {
        /// The size as text.
        size: String,
    },
    /// Below the type's smallest size.
    #[error(
        "The volume size is invalid for {kind} volumes: {gib} GiB. {kind} volumes must be at least {min} GiB \
         in size. Please specify a volume size above the minimum limit."
    )]
    TooSmall {
        /// The type.
        kind: String,
        /// The size asked for, in GiB.
        gib: u64,
        /// The smallest, in GiB.
        min: u64,
    },
    /// Above the type's largest size.
    #[error("Volume of {gib}GiB is too large for volume type {kind}; maximum is {max}GiB")]
    TooLarge {
        /// The type.
        kind: String,
        /// The size asked for, in GiB.
        gib: u64,
        /// The largest, in GiB.
        max: u64,
    },
    /// IOPS on a type that has none to set.
    #[error("The parameter iops is not supported for {kind} volumes.")]
    IopsNotSupported {
        /// The type.
        kind: String,
    },
    /// No IOPS on a type that needs them.
    #[error("The parameter iops must be specified for {kind} volumes.")]
    IopsMissing {
        /// The type.
        kind: String,
        /// The smallest value.
        min: u64,
        /// The largest value.
        max: u64,
    },
    /// Above the type's highest IOPS.
    #[error("Volume iops of {iops} is too high; maximum is {max}.")]
    IopsTooHigh {
        /// The value asked for.
        iops: u64,
        /// The highest.
        max: u64,
    },
    /// Below the type's lowest IOPS.
    #[error("Volume iops of {iops} is too low; minimum is {min}.")]
    IopsTooLow {
        /// The value asked for.
        iops: u64,
        /// The lowest.
        min: u64,
    },
    /// More IOPS than the size allows.
    #[error("Iops to volume size ratio of {:.6} is too high; maximum is {max}", *iops as f64 / *gib as f64)]
    IopsPerGib {
        /// The IOPS asked for.
        iops: u64,
        /// The size in GiB.
        gib: u64,
        /// The most IOPS per GiB.
        max: u64,
    },
    /// Throughput on a type that has none to set.
    #[error("The throughput parameter is not supported for {kind} volumes.")]
    ThroughputNotSupported {
        /// The type.
        kind: String,
    },
    /// Above the type's highest throughput.
    #[error("Volume throughput of {mib_s} is too high; maximum is {max}.")]
    ThroughputTooHigh {
        /// The value asked for, in MiB/s.
        mib_s: u64,
        /// The highest, in MiB/s.
        max: u64,
    },
    /// Below the type's lowest throughput.
    #[error("Volume throughput of {mib_s} is too low; minimum is {min}.")]
    ThroughputTooLow {
        /// The value asked for, in MiB/s.
        mib_s: u64,
        /// The lowest, in MiB/s.
        min: u64,
    },
    /// More throughput than the IOPS allow.
    #[error(
        "Throughput (MiBps) to iops ratio of {:.6} is too high; maximum is {max:.6} MiBps per iops",
        *mib_s as f64 / *iops as f64
    )]
    ThroughputPerIops {
        /// The throughput asked for, in MiB/s.
        mib_s: u64,
        /// The IOPS.
        iops: u64,
        /// The most MiB/s per IOPS.
        max: f64,
    },
    /// An initialization rate that is not offered.
    #[error(
        "The value specified for VolumeInitializationRate is not in the allowed range: {mib_s} MiB/s, not {min} to \
         {max} MiB/s."
    )]
    InitializationRate {
        /// The value asked for, in MiB/s.
        mib_s: u64,
        /// The lowest, in MiB/s.
        min: u64,
        /// The highest, in MiB/s.
        max: u64,
    },
    /// One of the limits of a type for which AWS names them all in one sentence (io2).
    #[error("{sentence}")]
    Together {
        /// AWS's sentence.
        sentence: String,
        /// The limit in question.
        cause: Box<Rejection>,
    },
}

/// A ModifyVolume request that AWS refuses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModifyRejection {
    /// Another modification is not completed.
    #[error("The volume cannot be modified in modification state {state}")]
    InProgress {
        /// `MODIFYING` or `OPTIMIZING`.
        state: &'static str,
        /// When it is expected to complete, as an ISO 8601 time.
        completes: String,
    },
    /// Too many modifications, under the rule of four in 24 hours.
    #[error(
        "You've reached the maximum modification rate per volume limit of {limit} modifications in a rolling \
         24-hour period. The next modification is allowed after {next}."
    )]
    RateExceeded {
        /// The number allowed.
        limit: usize,
        /// The next allowed time, ISO 8601.
        next: String,
    },
    /// Too soon, under the rule of six hours that held before 2026-01-15.
    #[error(
        "You've reached the maximum modification rate per volume limit. Wait at least 6 hours between \
         modifications per EBS volume."
    )]
    TooSoon {
        /// The next allowed time, ISO 8601.
        next: String,
    },
    /// A smaller size.
    #[error("New size cannot be smaller than existing size")]
    Shrinks {
        /// The present size in GiB.
        from_gib: u64,
        /// The size asked for in GiB.
        to_gib: u64,
    },
    /// Something other than an EBS volume on either side.
    #[error("Volume of type {from} cannot be modified to {to}.")]
    TypeChange {
        /// The present type.
        from: String,
        /// The type asked for.
        to: String,
    },
    /// Other members than the array has.
    #[error("The array has {from} and cannot be striped anew as {to}.")]
    Restripe {
        /// The present members and chunk.
        from: String,
        /// Those asked for.
        to: String,
    },
    /// A setting that only a new volume has.
    #[error("The parameter {0} cannot be modified; it belongs to the creation of a volume.")]
    CreationOnly(&'static str),
    /// A target equal to what the volume is.
    #[error("The volume already has the requested size, type, iops and throughput.")]
    NothingToDo,
}

impl CatalogError {
    /// The AWS error code, where AWS has one for it.
    #[must_use]
    pub fn aws_code(&self) -> Option<&'static str> {
        match self {
            Self::Rejected(rejection) => Some(rejection.aws_code()),
            Self::Modify(rejection) => Some(rejection.aws_code()),
            Self::UnknownInstance { .. } => Some("InvalidParameterValue"),
            Self::NotThen { .. } => Some("UnknownVolumeType"),
            Self::NoSuchSetting { .. } | Self::ChunkTooLarge { .. } | Self::DisksTooSmall { .. } => {
                Some("InvalidParameterCombination")
            }
            Self::UnknownRegion { .. } | Self::Unreadable { .. } | Self::Data { .. } => None,
        }
    }

    /// What to do about it, as one sentence for people; none where the message has it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Rejected(rejection) => rejection.hint(),
            Self::Modify(rejection) => rejection.hint(),
            Self::UnknownInstance { name, sizes, .. } => {
                let family = name.trim().trim_start_matches("db.").split('.').next().unwrap_or_default();
                let sizes = match &sizes[..] {
                    [] => String::new(),
                    sizes => format!("{family} has the sizes {}. ", sizes.join(", ")),
                };
                Some(format!("{sizes}An instance type that is missing can be added to the overrides file."))
            }
            Self::UnknownRegion { .. } => Some(
                "Name one of these, or add the region's prices to the overrides file (docs/catalog.md)."
                    .into(),
            ),
            Self::NotThen { .. } => Some(
                "A year or month means its first day; give a later date, or none for today's limits.".into(),
            ),
            Self::ChunkTooLarge { .. } => Some("Give a smaller chunk or larger volumes.".into()),
            Self::NoSuchSetting { .. } => Some("Leave it out.".into()),
            Self::DisksTooSmall { .. } => Some("Give a smaller size, or none for all of it.".into()),
            Self::Unreadable { .. } => Some("Check the path and its permissions.".into()),
            Self::Data { .. } => Some("Correct the entry, or remove it to use the built-in figures.".into()),
        }
    }
}

impl Rejection {
    /// The AWS error code.
    #[must_use]
    pub const fn aws_code(&self) -> &'static str {
        match self {
            Self::UnknownType { .. } => "UnknownVolumeType",
            Self::NoSize => "MissingParameter",
            Self::IopsNotSupported { .. }
            | Self::IopsMissing { .. }
            | Self::ThroughputNotSupported { .. } => "InvalidParameterCombination",
            Self::NotWholeGib { .. }
            | Self::TooSmall { .. }
            | Self::TooLarge { .. }
            | Self::IopsTooHigh { .. }
            | Self::IopsTooLow { .. }
            | Self::IopsPerGib { .. }
            | Self::ThroughputTooHigh { .. }
            | Self::ThroughputTooLow { .. }
            | Self::ThroughputPerIops { .. }
            | Self::InitializationRate { .. }
            | Self::Together { .. } => "InvalidParameterValue",
        }
    }

    /// What to do about it; none where the message has it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::UnknownType { nearest, known, .. } => {
                let known = format!("The types are {}.", known.join(", "));
                match nearest {
                    Some(nearest) => format!("Did you mean '{nearest}'? {known}"),
                    None => known,
                }
            }
            Self::NoSize => "Give a size, like size=100GiB.".into(),
            Self::NotWholeGib { .. } => "Round the size up to a whole GiB.".into(),
            Self::TooSmall { min, .. } => format!("Give at least size={min}GiB."),
            Self::TooLarge { max, .. } => {
                format!("Give at most size={max}GiB, or stripe several with raid0.")
            }
            Self::IopsNotSupported { kind } => {
                format!(
                    "Leave iops out; the performance of {kind} follows from its size. gp3, io1 and io2 have it."
                )
            }
            Self::IopsMissing { min, max, .. } => format!("Give iops={min} to iops={max}."),
            Self::IopsTooHigh { max, .. } => format!("Give at most iops={max}."),
            Self::IopsTooLow { min, .. } => format!("Give at least iops={min}."),
            Self::IopsPerGib { iops, gib, max } => format!(
                "Give at most iops={} for {gib} GiB, or at least size={}GiB for {iops} IOPS.",
                gib * max,
                iops.div_ceil(*max)
            ),
            Self::ThroughputNotSupported { .. } => "Leave throughput out; only gp3 has it.".into(),
            Self::ThroughputTooHigh { max, .. } => format!("Give at most throughput={max}."),
            Self::ThroughputTooLow { min, .. } => format!("Give at least throughput={min}."),
            Self::ThroughputPerIops { mib_s, iops, max } => format!(
                "Give at most throughput={:.0} with {iops} IOPS, or at least iops={:.0} for {mib_s} MiB/s.",
                (*iops as f64 * max).floor(),
                (*mib_s as f64 / max).ceil()
            ),
            Self::InitializationRate { min, max, .. } => {
                format!(
                    "Give rate={min}MiB/s to rate={max}MiB/s, or lazy for EBS without a provisioned rate."
                )
            }
            Self::Together { cause, .. } => {
                let hint = cause.hint().unwrap_or_default();
                format!("{}. {hint}", cause.to_string().trim_end_matches('.'))
            }
        })
    }
}

impl ModifyRejection {
    /// The AWS error code.
    #[must_use]
    pub const fn aws_code(&self) -> &'static str {
        match self {
            Self::InProgress { .. } => "IncorrectModificationState",
            Self::RateExceeded { .. } | Self::TooSoon { .. } => "VolumeModificationRateExceeded",
            Self::CreationOnly(_) => "InvalidParameterCombination",
            Self::Shrinks { .. } | Self::TypeChange { .. } | Self::Restripe { .. } | Self::NothingToDo => {
                "InvalidParameterValue"
            }
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::InProgress { completes, .. } => format!("Try again after {completes}."),
            Self::RateExceeded { next, .. } | Self::TooSoon { next } => format!("Try again after {next}."),
            Self::Shrinks { from_gib, .. } => format!("Volumes only grow: give at least size={from_gib}GiB."),
            Self::TypeChange { .. } => {
                "Only EBS volumes can be modified, each into another EBS type; create a new volume.".into()
            }
            Self::Restripe { .. } => "Give the members' new volume alone, without raid0(...).".into(),
            Self::CreationOnly(key) => format!("Leave {key} out."),
            Self::NothingToDo => "Give a larger size, or another type, iops or throughput.".into(),
        })
    }
}

/// An error in the data at a place.
pub(crate) fn data(place: &str, cause: impl Into<DataError>) -> CatalogError {
    CatalogError::Data { place: place.into(), cause: cause.into() }
}
