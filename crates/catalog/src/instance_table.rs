//! The built-in table of instance types: all that AWS has, with their prices, packed.
//!
//! It is unpacked when an instance or its price is first asked for: most commands never do.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::OnceLock;

use flate2::read::GzDecoder;
use jiff::civil::Date;
use serde::Deserialize;

use crate::data::{EbsOptimized, InstanceRow, InstanceRules, Slots, YesNo, header_line, table_source};
use crate::{
    CatalogError, DataError, InstancePrice, InstanceType, PriceDataError, Provenance, Usd, error::data,
    managed::InstancePrices, money::price,
};

/// `cargo xtask instances` makes it.
const PACKED: &[u8] = include_bytes!("../data/instances.csv.gz");
const PLACE: &str = "instances.csv.gz";

/// Fewer types or prices mean that the table was cut short.
const LEAST: usize = 1_300;

/// A row of the table: the figures that do not follow from others.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    vcpus: u32,
    memory_gib: f64,
    architecture: String,
    manufacturer: String,
    ebs_optimized: EbsOptimized,
    /// Empty where AWS publishes none.
    baseline_mbps: Option<u64>,
    maximum_mbps: Option<u64>,
    baseline_iops: Option<u64>,
    maximum_iops: Option<u64>,
    ebs_slots: u32,
    slots: Slots,
    store_disks: Option<u32>,
    store_disk_gb: Option<u64>,
    current: YesNo,
    /// Empty where the list has none.
    #[serde(default, deserialize_with = "price::optional::deserialize")]
    usd_hour: Option<Usd>,
}

impl Row {
    fn figures(self) -> InstanceRow {
        let (baseline_mbps, maximum_mbps) = (self.baseline_mbps.unwrap_or(0), self.maximum_mbps.unwrap_or(0));
        let (baseline_iops, maximum_iops) = (self.baseline_iops.unwrap_or(0), self.maximum_iops.unwrap_or(0));
        let bursts = baseline_mbps < maximum_mbps || baseline_iops < maximum_iops;
        InstanceRow {
            name: self.name,
            vcpus: self.vcpus,
            memory_gib: self.memory_gib,
            architecture: self.architecture,
            manufacturer: self.manufacturer,
            ebs_optimized: self.ebs_optimized,
            baseline_mbps,
            maximum_mbps,
            baseline_mb_s: baseline_mbps as f64 / 8.0,
            maximum_mb_s: maximum_mbps as f64 / 8.0,
            baseline_iops,
            maximum_iops,
            bursts: if bursts { YesNo::Yes } else { YesNo::No },
            ebs_slots: self.ebs_slots,
            slots: self.slots,
            store_disks: self.store_disks.unwrap_or(0),
            store_disk_gb: self.store_disk_gb.unwrap_or(0),
            current: self.current,
        }
    }
}

/// The prices of instances of one region.
#[derive(Debug)]
pub(crate) struct RegionPrices {
    pub(crate) region: String,
    pub(crate) prices: InstancePrices,
}

/// The built-in types, by name. `rules` are built in, too: whoever asks first, they are the same.
pub(crate) fn types(rules: &InstanceRules) -> &'static [InstanceType] {
    static TYPES: OnceLock<Vec<InstanceType>> = OnceLock::new();
    TYPES.get_or_init(|| read_types(&text(), rules).expect("the built-in table agrees with itself"))
}

/// The built-in prices.
pub(crate) fn prices() -> &'static RegionPrices {
    static PRICES: OnceLock<RegionPrices> = OnceLock::new();
    PRICES.get_or_init(|| read_prices(&text()).expect("the built-in prices agree with themselves"))
}

/// The built-in rows, for overrides.
pub(crate) fn rows() -> Vec<(InstanceRow, Provenance)> {
    read(&text()).expect("the built-in table agrees with itself")
}

fn text() -> String {
    let mut text = String::new();
    GzDecoder::new(PACKED).read_to_string(&mut text).expect("the built-in table is a gzip file");
    text
}

fn parsed(text: &str) -> Result<Vec<Row>, CatalogError> {
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
    let rows: Vec<Row> =
        reader.deserialize().collect::<Result<_, _>>().map_err(|error| data(PLACE, error))?;
    if let Some(pair) = rows.windows(2).find(|pair| pair[0].name >= pair[1].name) {
        return Err(data(
            PLACE,
            DataError::Order { name: pair[1].name.clone(), before: pair[0].name.clone() },
        ));
    }
    if rows.len() < LEAST {
        return Err(data(PLACE, DataError::Thin { found: rows.len(), least: LEAST }));
    }
    Ok(rows)
}

fn read(text: &str) -> Result<Vec<(InstanceRow, Provenance)>, CatalogError> {
    let (source, date) = table_source(PLACE, text)?;
    let provenance = Provenance { source, date: date.to_string(), overridden: None };
    Ok(parsed(text)?.into_iter().map(|row| (row.figures(), provenance.clone())).collect())
}

fn read_types(text: &str, rules: &InstanceRules) -> Result<Vec<InstanceType>, CatalogError> {
    let rows = read(text)?.into_iter();
    rows.map(|(row, provenance)| {
        InstanceType::from_row(&row, rules, provenance).map_err(|error| data(PLACE, error))
    })
    .collect()
}

fn read_prices(text: &str) -> Result<RegionPrices, CatalogError> {
    let region = header_line(PLACE, text, "region:")?;
    let source = header_line(PLACE, text, "prices:")?;
    let priced = header_line(PLACE, text, "priced:")?;
    let date: Date = priced.parse().map_err(|error: jiff::Error| data(PLACE, error))?;
    let mut prices = BTreeMap::new();
    for row in parsed(text)? {
        let Some(usd_hour) = row.usd_hour else { continue };
        if usd_hour == Usd::default() {
            return Err(data(PLACE, PriceDataError::FreeInstance(row.name)));
        }
        let price = InstancePrice { usd_hour, as_of: date.to_string(), source: source.clone() };
        prices.insert(row.name, price);
    }
    if prices.len() < LEAST {
        return Err(data(PLACE, DataError::Thin { found: prices.len(), least: LEAST }));
    }
    Ok(RegionPrices { region, prices })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_was_cut_short_is_refused() {
        let whole = text();
        assert_eq!(read(&whole).unwrap().len(), 1_373);
        let half = &whole[..whole.len() / 2];
        let half = half.rsplit_once('\n').unwrap().0;
        let error = read(half).unwrap_err().to_string();
        assert!(error.contains("fewer than 1300"), "{error}");
        assert!(read_prices(half).is_err());
    }

    #[test]
    fn a_table_without_its_source_or_a_figure_is_refused() {
        let whole = text();
        for (line, part) in [
            ("# source:", "source:"),
            ("# date:", "date:"),
            ("# prices:", "prices:"),
            ("# region:", "region:"),
        ] {
            let without = whole.replacen(line, "# left out:", 1);
            let errors = [read(&without).err(), read_prices(&without).err()];
            let error = errors.into_iter().flatten().next().expect(line).to_string();
            assert!(error.contains(part), "{line}: {error}");
        }
        let row = "c5.9xlarge,36,72,x86_64,Intel,default,9500,9500,40000,40000,27,shared,,,no,1.53\n";
        assert!(whole.contains(row));
        for (bad, part) in [
            ("c5.9xlarge,36,72,x86_64,Intel,default,9500,9500,40000,40000,27,shared,,,no\n", "fields"),
            ("c5.9xlarge,36,72,x86_64,Intel,often,9500,9500,40000,40000,27,shared,,,no,1.53\n", "often"),
            ("z9.9xlarge,36,72,x86_64,Intel,default,9500,9500,40000,40000,27,shared,,,no,1.53\n", "order"),
        ] {
            let error = read(&whole.replace(row, bad)).unwrap_err().to_string();
            assert!(error.contains(part), "{bad}: {error}");
        }
        let free = whole.replace(row, &row.replace("1.53", "0.00"));
        assert!(read_prices(&free).is_err(), "no instance is free");
    }

    #[test]
    fn no_type_without_figures_has_limits_and_no_other_lacks_them() {
        let rules =
            InstanceRules { burst_s: 1_800, source: "test".to_owned(), date: jiff::civil::date(2026, 1, 1) };
        let types = read_types(&text(), &rules).unwrap();
        let without: Vec<_> =
            types.iter().filter(|kind| !kind.has_limits()).map(|kind| &kind.name[..]).collect();
        assert_eq!(without.len(), 19, "{without:?}");
        assert!(without.contains(&"t2.micro") && without.contains(&"m3.medium"), "{without:?}");
    }
}
