//! The data that runs share, for people.

use ebbtide_lab::run::Prepared;

use crate::text::{TextTable, count, size};

/// The data that runs share.
pub(super) fn prepared(all: &[Prepared]) {
    let mut table = TextTable::new(&["NAME", "TABLES", "ROWS", "FS", "DISK", "SERVER"]);
    for one in all {
        let server = one.damage.clone().unwrap_or_else(|| one.server.trim().to_owned());
        let rows =
            one.warehouses.map_or_else(|| one.rows.to_string(), |count_of| count(count_of, "warehouse"));
        let tables = one.tables.to_string();
        table.row([one.name.clone(), tables, rows, one.fs.clone(), size(one.allocated_bytes), server]);
    }
    table.print("no prepared data");
}
