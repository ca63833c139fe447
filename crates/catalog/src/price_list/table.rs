//! A price list as CSV: five lines about the list, then a price in each row.

use std::io::Read as Input;

use csv::StringRecord;

use super::{
    DamagedList, Read,
    row::{Product, Row},
};

/// The columns that are read. AWS's list of RDS has some of them only.
const COLUMNS: [&str; 15] = [
    "TermType",
    "Unit",
    "PricePerUnit",
    "Currency",
    "Product Family",
    "Region Code",
    "usageType",
    "Instance Type",
    "Operating System",
    "Tenancy",
    "Pre Installed S/W",
    "CapacityStatus",
    "operation",
    "Database Engine",
    "Deployment Option",
];

/// Reads a list; what was read before an error stays.
pub(super) fn read(input: impl Input, read: &mut Read) -> Result<(), DamagedList> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(input);
    let mut record = StringRecord::new();
    let mut header = None;
    while header.is_none() {
        if !reader.read_record(&mut record)? {
            return Err(DamagedList::NoColumns);
        }
        let value = || record.get(1).map(str::to_owned);
        match record.get(0) {
            Some("OfferCode") => read.offer = value(),
            Some("Publication Date") => read.published = value(),
            Some("SKU") => header = Some(places(&record)),
            _ => {}
        }
    }
    let places = header.unwrap_or_default();
    while reader.read_record(&mut record)? {
        let at = |column: usize| places[column].and_then(|place| record.get(place)).unwrap_or_default();
        if at(0) != "OnDemand" || at(3) != "USD" {
            continue;
        }
        let product = product(at);
        let row = product.what().and_then(|of| {
            let usd = of.usd(at(2), at(1))?;
            Some(Row { region: product.region.clone(), of, usd })
        });
        read.rows.extend(row);
    }
    Ok(())
}

/// Where each column is.
fn places(header: &StringRecord) -> [Option<usize>; COLUMNS.len()] {
    COLUMNS.map(|name| header.iter().position(|column| column.eq_ignore_ascii_case(name)))
}

fn product<'a>(at: impl Fn(usize) -> &'a str) -> Product {
    let text = |column| at(column).to_owned();
    Product {
        family: text(4),
        region: text(5),
        usage: text(6),
        instance: text(7),
        system: text(8),
        tenancy: text(9),
        software: text(10),
        capacity: text(11),
        operation: text(12),
        engine: text(13),
        deployment: text(14),
    }
}
