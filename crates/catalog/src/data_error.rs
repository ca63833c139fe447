//! What is wrong with catalogue data, or with an entry of an overrides file.

use ebbtide_volume::{ArrayError, QuantileError};
use jiff::civil::Date;

/// What is wrong with catalogue data, or with an entry of an overrides file.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// The text does not have the format of its file: the words of the parser.
    #[error("{0}")]
    Format(String),
    /// The comments at the head of a table lack a line.
    #[error("has no line '# {0}'")]
    NoLine(&'static str),
    /// A table has fewer rows than its source.
    #[error("has {found} rows, fewer than {least}: it was cut short")]
    Thin {
        /// Rows of the table.
        found: usize,
        /// The fewest that are accepted.
        least: usize,
    },
    /// A table is not sorted by name, or has a name twice.
    #[error("is not in the order of names: {name} follows {before}")]
    Order {
        /// The name out of order.
        name: String,
        /// The name before it.
        before: String,
    },
    /// Two entries have one name.
    #[error("is there twice")]
    Twice,
    /// A volume type.
    #[error(transparent)]
    Type(#[from] TypeDataError),
    /// Service times.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// A curve of service times.
    #[error(transparent)]
    Curve(#[from] CurveError),
    /// An instance type.
    #[error("{name}: {cause}")]
    Instance {
        /// The instance type.
        name: String,
        /// What is wrong.
        cause: InstanceDataError,
    },
    /// A price.
    #[error(transparent)]
    Price(#[from] PriceDataError),
    /// An override.
    #[error(transparent)]
    Override(#[from] OverrideError),
    /// The limits of a volume, which the physics refuses.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// Rates of the initialization from a snapshot.
    #[error("the rates do not rise from above zero")]
    InitializationRates,
    /// The size of the blocks in which a volume is loaded from its snapshot.
    #[error("the model loads blocks of another size")]
    LoadBlock,
}

/// What is wrong with a volume type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TypeDataError {
    /// It has no limits on any day.
    #[error("has no period")]
    NoPeriod,
    /// Its first limits are older than it is.
    #[error("has figures from before its launch")]
    BeforeLaunch,
    /// A period does not start after the one before it.
    #[error("has periods out of order")]
    PeriodOrder,
    /// How its I/Os are counted is not in the data.
    #[error("has unknown accounting '{0}'")]
    UnknownAccounting(String),
    /// Its service times are not in the data.
    #[error("has no service times '{0}'")]
    UnknownService(String),
    /// The limits of a period.
    #[error("period from {from}: {cause}")]
    Period {
        /// The first day of the period.
        from: Date,
        /// What is wrong.
        cause: PeriodError,
    },
    /// The figures of an instance store contradict themselves.
    #[error("no disks, no write IOPS, or more of them than read IOPS")]
    StoreFigures,
    /// The service times after which those of instance stores are made are missing.
    #[error("instance-store is missing")]
    NoStoreShape,
}

/// What is wrong with the limits of a volume type in one period.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PeriodError {
    /// Nothing says where the figures come from.
    #[error("has no source")]
    NoSource,
    /// Neither a range of sizes nor a default size.
    #[error("has no sizes")]
    NoSizes,
    /// A minimum is zero, or above what it is the minimum of.
    #[error("{figures} do not rise from above zero: {values:?}")]
    NotRising {
        /// What the figures are, with their unit.
        figures: &'static str,
        /// The figures, the smallest first.
        values: Vec<u64>,
    },
}

/// Points that make no curve of service times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CurveError {
    /// A number that is infinite, or a time below zero.
    #[error("a point is not a pair of a percentage and microseconds")]
    Point,
    /// The points are no distribution.
    #[error(transparent)]
    Quantiles(#[from] QuantileError),
}

/// Service times that contradict themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// The curve of one operation.
    #[error("service times of {operation}: {cause}")]
    Curve {
        /// `read`, `write`, `sequential` or `flush`.
        operation: &'static str,
        /// What is wrong.
        cause: CurveError,
    },
    /// The times of a write are given in two ways.
    #[error("write and write_quorum are both given")]
    WriteTwice,
    /// A write waits for none of its copies, or for more than there are.
    #[error("write_quorum needs {needed} of {copies} copies")]
    Quorum {
        /// Copies that must have answered.
        needed: u16,
        /// Copies in all zones.
        copies: usize,
    },
    /// The curve of a zone.
    #[error("a zone of write_quorum: {0}")]
    Zone(CurveError),
    /// The figures of a disk's arm and platters.
    #[error("mechanics: rpm must be above zero, and the average seek at least the one from track to track")]
    Mechanics,
}

/// Figures of an instance type that contradict themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InstanceDataError {
    /// It lacks what every instance has.
    #[error("no CPU, no memory or no EBS slot")]
    Nothing,
    /// No bandwidth or no IOPS.
    #[error("a baseline of zero")]
    ZeroBaseline,
    /// More bandwidth or IOPS for ever than for a while.
    #[error("a baseline above its maximum")]
    BaselineAboveMaximum,
    /// The column `bursts` and the figures differ.
    #[error("'bursts' disagrees with baseline and maximum")]
    Bursts,
    /// The bandwidth in bits and that in bytes differ.
    #[error("Mb/s divided by 8 is not MB/s")]
    Bandwidth,
    /// Either the number or the size of the disks is zero.
    #[error("disks without a size or a size without disks")]
    Disks,
}

/// Prices that are incomplete, or contradict themselves or the volume types.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PriceDataError {
    /// Nothing says where the prices come from.
    #[error("has no source")]
    NoSource,
    /// A tier does not start above the one before it.
    #[error("the tiers of {what} do not rise: {starts:?}")]
    TierOrder {
        /// IOPS or throughput.
        what: &'static str,
        /// Where each tier starts.
        starts: Vec<u64>,
    },
    /// A price of zero.
    #[error("a price of zero: leave a charge out where there is none")]
    Zero,
    /// A built-in region without the price of a type.
    #[error("region {region} has no price of {}", missing.join(", "))]
    IncompleteRegion {
        /// The region.
        region: String,
        /// The types.
        missing: Vec<&'static str>,
    },
    /// A built-in region without prices of managed databases.
    #[error("region {0} has no source, or lacks prices of gp3 or Aurora")]
    IncompleteManaged(String),
    /// The default region has no prices.
    #[error("there are prices for {} only", known.join(", "))]
    UnknownDefault {
        /// The regions that have prices.
        known: Vec<String>,
    },
    /// Prices of a type that EBS does not have.
    #[error("there is no EBS type of this name")]
    UnknownType,
    /// A type of EBS whose storage costs nothing.
    #[error("has no price of storage")]
    NoStorage,
    /// A price of what cannot be provisioned, or none of what can.
    #[error(
        "{what} {}, but the type {} provision {what}",
        if *priced { "has a price" } else { "has no price" },
        if *priced { "does not let one" } else { "lets one" }
    )]
    Provisioning {
        /// IOPS or throughput.
        what: &'static str,
        /// Whether it has a price.
        priced: bool,
    },
    /// An instance type that costs nothing.
    #[error("{0} costs nothing")]
    FreeInstance(String),
    /// A price list without all charges of any type.
    #[error("the list has no price of storage and of all that is provisioned for any EBS type")]
    NoTypePriced,
}

/// An override that cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OverrideError {
    /// It does not say why, or on what evidence.
    #[error("an override needs a reason and a source")]
    NoReason,
    /// It does not name one subject.
    #[error("give either type = \"...\" or instance = \"...\", or region = \"...\" for prices")]
    Subject,
    /// A type that the catalogue does not have.
    #[error("there is no type '{0}' to override; instance-store classes cannot be overridden")]
    UnknownType(String),
    /// A new type with the name of another.
    #[error("'{0}' is a type already; leave 'like' out to override it")]
    TypeExists(String),
    /// Service times of a type that has none.
    #[error("the type has no service times")]
    TypeWithoutService,
    /// Figures of a type that has no period.
    #[error("the type has no period")]
    TypeWithoutPeriod,
    /// An instance type that the catalogue does not have.
    #[error("there is no instance type '{0}'")]
    UnknownInstance(String),
    /// Service times of what is no volume type.
    #[error("{subject} has no service times")]
    NoServiceTimes {
        /// An instance or a price, with its article.
        subject: &'static str,
    },
    /// A price like another that does not exist.
    #[error("{kind} has no price in '{region}'")]
    UnknownPrice {
        /// The type.
        kind: String,
        /// The region.
        region: String,
    },
    /// A region without the name of one whose prices it gets.
    #[error("give type = \"...\" whose price it is, or like = \"...\"")]
    RegionLikeNothing,
    /// Figures for all types of a region.
    #[error("a region has no figures of its own; give type = \"...\" whose price it is")]
    RegionFigures,
    /// A new region with the name of another.
    #[error("'{0}' has prices already; give type = \"...\" whose price is another")]
    RegionExists(String),
    /// A region like another that has no prices.
    #[error("there are no prices for '{region}', only for {}", known.join(", "))]
    UnknownRegion {
        /// The region.
        region: String,
        /// The regions that have prices.
        known: Vec<String>,
    },
}

impl DataError {
    fn format(error: &impl ToString) -> Self {
        Self::Format(error.to_string().trim_end().to_owned())
    }
}

impl From<toml::de::Error> for DataError {
    fn from(error: toml::de::Error) -> Self {
        Self::format(&error)
    }
}

impl From<toml::ser::Error> for DataError {
    fn from(error: toml::ser::Error) -> Self {
        Self::format(&error)
    }
}

impl From<csv::Error> for DataError {
    fn from(error: csv::Error) -> Self {
        Self::format(&error)
    }
}

impl From<jiff::Error> for DataError {
    fn from(error: jiff::Error) -> Self {
        Self::format(&error)
    }
}
