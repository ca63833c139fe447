//! What the volumes of a run cost a month, at list prices.

use std::collections::BTreeMap;

use ebbtide_catalog::{MonthlyCost, Usd};
use serde::{Deserialize, Serialize};

use crate::record::Role;

/// The cost of every arm's volumes, at list prices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// The AWS region whose prices these are.
    pub region: String,
    /// The arms, in the order of the experiment.
    pub arms: Vec<ArmCost>,
}

/// The cost of an arm's volumes as the experiment names them, whatever share of them was emulated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArmCost {
    /// The arm's name.
    pub name: String,
    /// All of its volumes together a month, US dollars; none where one of them has no price.
    pub usd: Option<Usd>,
    /// By which the volumes were divided for the emulation; 1: emulated as they are named. The cost is not divided.
    pub divided_by: u32,
    /// Each volume; null where its type has no price in the region.
    pub volumes: BTreeMap<Role, Option<MonthlyCost>>,
}

impl Costs {
    /// The arm of this name.
    #[must_use]
    pub fn arm(&self, name: &str) -> Option<&ArmCost> {
        self.arms.iter().find(|arm| arm.name == name)
    }
}

impl ArmCost {
    /// The sum for a table: `$60.00`, or `$1.00 + I/O` where I/O requests come on top. None where a volume has no
    /// price.
    #[must_use]
    pub fn short(&self) -> Option<String> {
        let usd = self.usd?;
        let on_top = self.volumes.values().flatten().any(|cost| cost.usd_per_million_io.is_some());
        Some(format!("{usd}{}", if on_top { " + I/O" } else { "" }))
    }
}
