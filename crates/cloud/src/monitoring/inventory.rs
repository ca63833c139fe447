//! Which instances run, and which volumes are attached to them, as the service needs to know it.

/// What follows the type of a volume with Multi-Attach.
pub const SHARED: &str = "multi-attach";

/// An attached volume, with what CloudWatch's dimensions and owners need.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attached {
    /// The id of the volume.
    pub volume: String,
    /// The account that it belongs to.
    pub owner: String,
    /// Its Region.
    pub region: String,
    /// The id of the instance; empty with Multi-Attach, whose metrics are those of all instances together.
    pub instance: String,
    /// Its type, such as `gp3`; with Multi-Attach `io2/` and [`SHARED`].
    pub kind: String,
}

/// A volume whose minutes are recorded under its name alone while a command has it attached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The id of the volume.
    pub volume: String,
    /// Its name in the control plane.
    pub name: String,
    /// The account that it belongs to.
    pub owner: String,
    /// Its Region.
    pub region: String,
    /// Its type, such as `gp3`.
    pub kind: String,
    /// When it was created, in milliseconds since 1970. Earlier minutes are those of another volume of its name.
    pub since_ms: u64,
}

/// A running instance.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Running {
    /// The account that it belongs to.
    pub owner: String,
    /// Its Region.
    pub region: String,
    /// Its id.
    pub instance: String,
}

/// A value of a metric that is neither of a volume nor of an instance, for one minute.
#[derive(Debug, Clone, PartialEq)]
pub struct Gauge {
    /// The account that it belongs to.
    pub owner: String,
    /// Its Region.
    pub region: String,
    /// The name of the metric.
    pub metric: &'static str,
    /// Names and values of its dimensions, in the order of the names.
    pub dimensions: Vec<(&'static str, String)>,
    /// The value.
    pub value: f64,
}

/// Knows which volumes are attached, and which instances run.
pub trait Inventory: std::fmt::Debug + Send + Sync {
    /// Does what is due at a time, in milliseconds since 1970. Called about once a second.
    fn tick(&self, now_ms: u64);

    /// The attached volumes at a time, in milliseconds since 1970.
    fn attached(&self, now_ms: u64) -> Vec<Attached>;

    /// A volume by its id, at a time in milliseconds since 1970; None of one that is not there.
    fn recorded(&self, volume: &str, now_ms: u64) -> Option<Recorded>;

    /// All volumes of an account in a Region, at a time in milliseconds since 1970.
    fn all_recorded(&self, account: (&str, &str), now_ms: u64) -> Vec<Recorded>;

    /// The running instances at a time, in milliseconds since 1970.
    fn running(&self, now_ms: u64) -> Vec<Running>;

    /// The metrics that are neither of volumes nor of instances, over a minute or what has passed of it, in milliseconds since 1970.
    fn gauges(&self, minute_ms: std::ops::Range<u64>) -> Vec<Gauge>;
}
