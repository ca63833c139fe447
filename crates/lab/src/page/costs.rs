//! What the volumes cost, as a table of the page.

use std::collections::BTreeSet;

use ebbtide_catalog::MonthlyCost;
use ebbtide_report::{Block, Cell, Table};

use crate::cost::Costs;
use crate::experiment::{Arm, Role};

/// The volumes with their cost, each once with the arms that have it: `arms` are those of the page, by the names
/// that the page has for them. None where no volume has a price.
#[must_use]
pub fn table(costs: &Costs, arms: &[(&str, &Arm)]) -> Option<Block> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    let mut dates = BTreeSet::new();
    let mut shares = BTreeSet::new();
    for (name, arm) in arms {
        let known = costs.arm(&arm.name);
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
        costs.region,
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
        [self.role.holds().to_owned(), self.spec.replace(',', ", "), of, cost, parts].map(Cell::from).to_vec()
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
