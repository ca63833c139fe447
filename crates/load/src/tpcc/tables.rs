//! The tables of a server: what is in them, and dropping them.

use ebbtide_workload::LEDGER_TABLE;
use ebbtide_workload::tpcc::{MAX_TABLE_SETS, TABLES};
use serde::{Deserialize, Serialize};

use crate::error::LoadError;
use crate::options::Target;
use crate::wire::{Session, quoted};

/// What the tables of a server hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TpccTables {
    /// Warehouses; of each set of tables where there are several.
    pub warehouses: u32,
    /// Sets of tables with numbers in their names; 0 for one set without.
    #[serde(default)]
    pub table_sets: u32,
    /// Items: 100,000 in the specification.
    pub items: u32,
    /// Customers of a district: 3,000 in the specification.
    pub customers: u32,
    /// The constant that the last names were drawn with, 0 to 255 (clause 2.1.6.1); null where another tool has loaded
    /// the tables and has not kept it.
    pub c_last: Option<u32>,
}

impl TpccTables {
    /// The warehouses of all sets.
    #[must_use]
    pub fn all_warehouses(&self) -> u32 {
        self.warehouses * self.table_sets.max(1)
    }

    /// Refuses tables of another number of warehouses.
    pub(super) fn must_have(&self, warehouses: u32, target: &Target) -> Result<(), LoadError> {
        if self.warehouses == warehouses {
            return Ok(());
        }
        Err(LoadError::OtherTables {
            database: target.database.clone(),
            what: format!(
                "they have {} warehouses, and --warehouses={warehouses} was asked for",
                self.warehouses
            ),
        })
    }
}

/// The name of a table in a set; without a number in set 0.
fn name_in(table: &str, set: u32) -> String {
    if set == 0 { table.to_owned() } else { format!("{table}{set}") }
}

/// Looks at the tables of a server: so many sets with numbers in their names, or the one without (0).
///
/// # Errors
/// The server's, and tables that are missing, are no whole warehouses, or differ between the sets.
pub fn inspect(target: &Target, table_sets: u32) -> Result<TpccTables, LoadError> {
    let mut session = Session::open(target, target.endpoint(0)?)?;
    if table_sets == 0 {
        return inspect_set(&mut session, target, 0);
    }
    let first = inspect_set(&mut session, target, 1)?;
    for set in 2..=table_sets {
        let other = inspect_set(&mut session, target, set)?;
        if (other.warehouses, other.items, other.customers)
            != (first.warehouses, first.items, first.customers)
        {
            let what = format!(
                "set {set} has {} warehouses, {} items, and {} customers in a district, and set 1 has {}, {} and {}",
                other.warehouses,
                other.items,
                other.customers,
                first.warehouses,
                first.items,
                first.customers
            );
            return Err(LoadError::OtherTables { database: target.database.clone(), what });
        }
    }
    Ok(TpccTables { table_sets, ..first })
}

fn inspect_set(session: &mut Session, target: &Target, set: u32) -> Result<TpccTables, LoadError> {
    let of = |table: &str| name_in(table, set);
    let present = present(session, &TABLES.map(of))?;
    let missing: Vec<String> = TABLES.map(of).into_iter().filter(|table| !present.contains(table)).collect();
    let other = |what| LoadError::OtherTables { database: target.database.clone(), what };
    if !missing.is_empty() {
        return Err(other(format!("it has no {}", missing.join(", "))));
    }
    let mut number = |sql: &str| -> Result<u32, LoadError> {
        let value = session.value(sql)?;
        Ok(value.and_then(|value| value.parse().ok()).unwrap_or(0))
    };
    let warehouse = of("warehouse");
    let warehouses = number(&format!("SELECT COUNT(*) FROM {warehouse}"))?;
    let last = number(&format!("SELECT MAX(w_id) FROM {warehouse}"))?;
    let items = number(&format!("SELECT COUNT(*) FROM {}", of("item")))?;
    let customers =
        number(&format!("SELECT COUNT(*) FROM {} WHERE c_w_id = 1 AND c_d_id = 1", of("customer")))?;
    if warehouses == 0 || last != warehouses || items == 0 || customers == 0 {
        return Err(other(format!(
            "they have {warehouses} warehouses, the last of which is {last}, {items} items, and {customers} customers in \
             the first district"
        )));
    }
    let comment = session.value(&format!(
        "SELECT table_comment FROM information_schema.tables \
         WHERE table_schema = DATABASE() AND table_name = '{warehouse}'"
    ))?;
    let c_last = comment.and_then(|comment| comment.strip_prefix("ebbtide tpcc c_last=")?.parse().ok());
    Ok(TpccTables { warehouses, table_sets: set, items, customers, c_last })
}

/// The names among those of TPC-C's tables that are there: those without a number, then those of the sets 1, 2 and so on
/// up to the first that has no table, then the ledger's.
///
/// # Errors
/// The server's.
pub fn tables_present(target: &Target) -> Result<Vec<String>, LoadError> {
    all_present(&mut Session::open(target, target.endpoint(0)?)?)
}

fn all_present(session: &mut Session) -> Result<Vec<String>, LoadError> {
    let mut all = present(session, &TABLES.map(str::to_owned))?;
    for set in 1..=MAX_TABLE_SETS {
        let of_set = present(session, &TABLES.map(|table| name_in(table, set)))?;
        if of_set.is_empty() {
            break;
        }
        all.extend(of_set);
    }
    all.extend(present(session, &[LEDGER_TABLE.to_owned()])?);
    Ok(all)
}

/// Those of the names that are there, in their order.
fn present(session: &mut Session, names: &[String]) -> Result<Vec<String>, LoadError> {
    let list = names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
    let rows = session.rows(&format!(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name IN ({list})"
    ))?;
    let found: Vec<String> = rows.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect();
    Ok(names.iter().filter(|name| found.contains(name)).cloned().collect())
}

/// Drops what [`tables_present`] names, and answers with it.
///
/// # Errors
/// The server's.
pub fn cleanup(target: &Target) -> Result<Vec<String>, LoadError> {
    let mut session = Session::open(target, target.endpoint(0)?)?;
    let names = all_present(&mut session)?;
    session.execute("SET SESSION foreign_key_checks=0")?;
    for name in &names {
        session.execute(&format!("DROP TABLE IF EXISTS {}", quoted(name)))?;
    }
    Ok(names)
}
