//! Whose volumes are attached to what, as the service needs to know it.

/// An attached volume, with what CloudWatch's dimensions and owners need.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attached {
    /// The id of the volume, which is its name in the control plane.
    pub volume: String,
    /// The account that it belongs to.
    pub owner: String,
    /// Its Region.
    pub region: String,
    /// The id of the instance.
    pub instance: String,
    /// Its type, such as `gp3`.
    pub kind: String,
}

/// Knows which volumes are attached.
pub trait Inventory: std::fmt::Debug + Send + Sync {
    /// Does what is due at a time, in milliseconds since 1970. Called about once a second.
    fn tick(&self, now_ms: u64);

    /// The attached volumes at a time, in milliseconds since 1970.
    fn attached(&self, now_ms: u64) -> Vec<Attached>;
}
