//! What a volume costs a month, and of which charges that consists.

use serde::{Deserialize, Serialize};

use crate::Usd;

/// What a volume, or all volumes of an array, cost a month at list prices: on demand, provisioned for a whole month,
/// without tax. Snapshots, data transfer and the instance are not in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MonthlyCost {
    /// The sum of the charges, US dollars.
    pub usd: Usd,
    /// The region whose prices these are.
    pub region: String,
    /// When the prices were published, `2026-10-06`.
    pub as_of: String,
    /// Where the prices come from.
    pub source: String,
    /// Why an override replaced the built-in prices; none where none did.
    pub overridden: Option<String>,
    /// What the sum is made of, for all members of an array together. Each is rounded by itself where it is shown.
    pub charges: Vec<Charge>,
    /// What a million I/O requests cost on top, US dollars; none where AWS does not charge them.
    pub usd_per_million_io: Option<Usd>,
}

/// One part of a volume's cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    /// What is charged.
    pub what: Charged,
    /// How much of it there is, in [`Charged::unit`].
    pub provisioned: u64,
    /// How much of that is charged: gp3 includes the first 3,000 IOPS and 125 MiB/s.
    pub charged: u64,
    /// What that costs a month, US dollars.
    pub usd: Usd,
}

/// What is charged for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Charged {
    /// The size, whole GiB.
    Storage,
    /// Provisioned operations a second.
    Iops,
    /// Provisioned MiB/s.
    Throughput,
}

impl Charged {
    /// The unit of its quantity.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Storage => "GiB",
            Self::Iops => "IOPS",
            Self::Throughput => "MiB/s",
        }
    }
}

impl MonthlyCost {
    /// The sum for a table: `$60.00`, or `$1.00 + I/O` where I/O requests come on top.
    #[must_use]
    pub fn short(&self) -> String {
        let io = if self.usd_per_million_io.is_some() { " + I/O" } else { "" };
        format!("{}{io}", self.usd)
    }

    /// What the sum is made of: `500 GiB $40.00, 3000 of 6000 IOPS $15.00`, and what comes on top of it.
    #[must_use]
    pub fn parts(&self) -> String {
        let mut parts: Vec<String> = self.charges.iter().map(Charge::words).collect();
        parts.extend(self.usd_per_million_io.map(|usd| format!("and {usd} per million I/O requests")));
        parts.join(", ")
    }

    /// The sum, its parts, and whose prices they are, as one line: `$60.00 a month: 500 GiB $40.00, 3000 of 6000 IOPS
    /// $15.00, 125 of 250 MiB/s $5.00 (us-east-1, prices of 2026-10-06)`.
    #[must_use]
    pub fn line(&self) -> String {
        let own = if self.overridden.is_some() { "own prices" } else { "prices" };
        format!("{} a month: {} ({}, {own} of {})", self.usd, self.parts(), self.region, self.as_of)
    }

    /// The same cost with every amount as it is shown: whole cents.
    #[must_use]
    pub fn to_cents(mut self) -> Self {
        self.usd = self.usd.to_cents();
        self.charges.iter_mut().for_each(|charge| charge.usd = charge.usd.to_cents());
        self.usd_per_million_io = self.usd_per_million_io.map(Usd::to_cents);
        self
    }
}

impl Charge {
    fn words(&self) -> String {
        let unit = self.what.unit();
        if self.charged == self.provisioned {
            format!("{} {unit} {}", self.charged, self.usd)
        } else {
            format!("{} of {} {unit} {}", self.charged, self.provisioned, self.usd)
        }
    }
}
