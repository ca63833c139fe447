//! What the volumes of an experiment cost a month.

use std::collections::BTreeMap;

use ebbtide_catalog::{Catalog, MonthlyCost, Prices, Usd};

pub use ebbtide_analysis::cost::{ArmCost, Costs};

use crate::experiment::{Arm, Experiment, Role};

/// What the volumes of an experiment cost, at the catalogue's prices of its region; those of the default region
/// where the catalogue lacks that one.
#[must_use]
pub fn of(experiment: &Experiment, catalog: &Catalog) -> Option<Costs> {
    let prices = catalog.prices(experiment.region.as_deref()).or_else(|_| catalog.prices(None)).ok()?;
    let arms = experiment.arms.iter().map(|arm| of_arm(arm, catalog, prices));
    Some(Costs { region: prices.region().to_owned(), arms: arms.collect() })
}

fn of_arm(arm: &Arm, catalog: &Catalog, prices: Prices<'_>) -> ArmCost {
    let cost = |text: &String| {
        let resolved = catalog.resolve(&text.parse().ok()?).ok()?;
        prices.monthly_cost(&resolved)
    };
    let volumes: BTreeMap<Role, Option<MonthlyCost>> =
        arm.volumes.iter().map(|(role, text)| (*role, cost(text))).collect();
    let sums: Option<Vec<Usd>> = volumes.values().map(|cost| cost.as_ref().map(|cost| cost.usd)).collect();
    let usd = sums.map(|sums| sums.into_iter().sum::<Usd>().to_cents());
    let volumes = volumes.into_iter().map(|(role, cost)| (role, cost.map(MonthlyCost::to_cents))).collect();
    ArmCost { name: arm.name.clone(), usd, divided_by: arm.instance.divided_by, volumes }
}
