//! What a metric family is.

/// The type of a family, as Prometheus has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FamilyKind {
    /// Only grows; begins at zero with the process.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts by upper bounds, with the sum of all values.
    Histogram,
}

impl FamilyKind {
    /// As the text format names it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// A metric family: metrics of one name, which differ in their labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Family {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: FamilyKind,
    /// The unit of its values.
    pub unit: &'static str,
    /// The labels of each metric.
    pub labels: &'static [&'static str],
    /// What it is, in one sentence.
    pub help: &'static str,
    /// Where its values come from.
    pub source: &'static str,
}
