//! What the volumes of an experiment cost a month.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_catalog::{Catalog, MonthlyCost, Prices, Usd};
use ebbtide_report::{Block, Cell, Table};
use serde::{Deserialize, Serialize};

use crate::experiment::{Arm, Experiment, Role};
use crate::page::words;

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
    /// What the volumes of an experiment cost, at the catalogue's prices of its region; those of the default region
    /// where the catalogue lacks that one.
    #[must_use]
    pub fn of(experiment: &Experiment, catalog: &Catalog) -> Option<Self> {
        let prices = catalog.prices(experiment.region.as_deref()).or_else(|_| catalog.prices(None)).ok()?;
        let arms = experiment.arms.iter().map(|arm| ArmCost::of(arm, catalog, prices));
        Some(Self { region: prices.region().to_owned(), arms: arms.collect() })
    }

    /// The arm of this name.
    #[must_use]
    pub fn arm(&self, name: &str) -> Option<&ArmCost> {
        self.arms.iter().find(|arm| arm.name == name)
    }

    /// The volumes with their cost, each once with the arms that have it: `arms` are those of the page, by the names
    /// that the page has for them. None where no volume has a price.
    pub(crate) fn table(&self, arms: &[(&str, &Arm)]) -> Option<Block> {
        let mut rows: Vec<Row<'_>> = Vec::new();
        let mut dates = BTreeSet::new();
        let mut shares = BTreeSet::new();
        for (name, arm) in arms {
            let known = self.arm(&arm.name);
            shares.extend(known.map(|known| known.divided_by));
            for (role, spec) in &arm.volumes {
                let cost = known.and_then(|known| known.volumes.get(role)).and_then(Option::as_ref);
                dates.extend(cost.map(|cost| cost.as_of.as_str()));
                match rows.iter_mut().find(|row| row.role == *role && row.spec == spec) {
                    Some(row) => row.arms.push(name),
                    None => rows.push(Row { role: *role, spec, cost, arms: vec![name] }),
                }
            }
        }
        let dates: Vec<&str> = dates.into_iter().collect();
        let caption = format!(
            "What the volumes cost: list prices of {}, published {}, on demand, without I/O requests, snapshots and the \
             instance{}",
            self.region,
            dates.join(" and "),
            share_words(&shares)
        );
        let columns = ["Volume", "Spec", "Arms", "Cost", "Made up of"];
        (!dates.is_empty()).then(|| {
            Block::Table(Table {
                caption,
                columns: columns.map(str::to_owned).to_vec(),
                rows: rows.iter().map(|row| row.cells(arms.len())).collect(),
                prose: true,
                words: true,
                ..Table::default()
            })
        })
    }
}

/// A volume of one or more arms, with its cost.
struct Row<'a> {
    role: Role,
    spec: &'a str,
    cost: Option<&'a MonthlyCost>,
    arms: Vec<&'a str>,
}

impl Row<'_> {
    /// Its cells, in a table of so many arms.
    fn cells(&self, arms: usize) -> Vec<Cell> {
        let (cost, parts) = match self.cost {
            Some(cost) => (format!("{} a month", cost.short()), cost.parts()),
            None => ("-".to_owned(), "no price: not an EBS volume of this region".to_owned()),
        };
        let of = if self.arms.len() == arms && arms > 1 { "all".to_owned() } else { self.arms.join(", ") };
        // A space after each comma lets a long spec wrap.
        [words::role(self.role).to_owned(), self.spec.replace(',', ", "), of, cost, parts]
            .map(Cell::from)
            .to_vec()
    }
}

/// That a cost is not of what was emulated, where that is a share of the volumes.
fn share_words(shares: &BTreeSet<u32>) -> String {
    let shares: Vec<String> = shares.iter().filter(|by| **by > 1).map(|by| format!("1/{by}")).collect();
    if shares.is_empty() {
        return String::new();
    }
    format!(
        ". The cost is that of the volumes as they are named here; {} of each was emulated",
        shares.join(" or ")
    )
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

    fn of(arm: &Arm, catalog: &Catalog, prices: Prices<'_>) -> Self {
        let cost = |text: &String| {
            let resolved = catalog.resolve(&text.parse().ok()?).ok()?;
            prices.monthly_cost(&resolved)
        };
        let volumes: BTreeMap<Role, Option<MonthlyCost>> =
            arm.volumes.iter().map(|(role, text)| (*role, cost(text))).collect();
        let sums: Option<Vec<Usd>> =
            volumes.values().map(|cost| cost.as_ref().map(|cost| cost.usd)).collect();
        let usd = sums.map(|sums| sums.into_iter().sum::<Usd>().to_cents());
        let volumes =
            volumes.into_iter().map(|(role, cost)| (role, cost.map(MonthlyCost::to_cents))).collect();
        Self { name: arm.name.clone(), usd, divided_by: arm.instance.divided_by, volumes }
    }
}
