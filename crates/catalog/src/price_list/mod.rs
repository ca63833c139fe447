//! AWS's bulk price list of a region: `offers/v1.0/aws/AmazonEC2/current/REGION/index.json` or `index.csv`, and the same of
//! AmazonRDS.
//!
//! A list has hundreds of megabytes, most of which is about other things: it is read as a stream, and what is not needed is
//! passed over.

mod json;
mod row;
mod table;

use std::{collections::BTreeMap, io::BufRead};

use jiff::civil::Date;

use crate::{
    Catalog, CatalogError, InstancePrice, ManagedPrices, PriceDataError, Usd, price_book::ListedVolumes,
};
use row::{Managed, Of, Row};

/// Which of AWS's lists a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// AmazonEC2: instances and EBS.
    Ec2,
    /// AmazonRDS: RDS and Aurora.
    Rds,
}

/// The prices of a list that size and simulate use.
#[derive(Debug)]
pub struct PriceList {
    offer: Offer,
    region: String,
    date: Date,
    source: String,
    rows: Vec<Row>,
}

/// A price list that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PriceListError {
    /// It is no price list of AWS.
    #[error(
        "{place} is no price list of AWS: expected index.json or index.csv of the offer AmazonEC2 or AmazonRDS"
    )]
    Unknown {
        /// The file.
        place: String,
    },
    /// It is damaged, or cut off.
    #[error("{place} is damaged: {cause}; read before it: {read} prices")]
    Damaged {
        /// The file.
        place: String,
        /// What is wrong, and where.
        cause: DamagedList,
        /// Prices that were read before.
        read: usize,
    },
    /// It has prices of more than one region, or of none.
    #[error(
        "{place} has prices of {found}; expected the list of one region, such as .../AmazonEC2/current/eu-west-1/index.json"
    )]
    Region {
        /// The file.
        place: String,
        /// The regions.
        found: String,
    },
    /// It has none of the prices that are looked for.
    #[error("{place} has no price of a volume or of an instance for Linux on demand")]
    Nothing {
        /// The file.
        place: String,
    },
}

/// What is wrong with a damaged price list.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DamagedList {
    /// It is no JSON, or ends within it.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// It is no CSV.
    #[error(transparent)]
    Csv(#[from] csv::Error),
    /// It has no line with the names of its columns.
    #[error("it ends before its columns")]
    NoColumns,
    /// It does not say when it was published.
    #[error("it has no publication date")]
    NoDate,
}

/// What is read of a list before it is checked.
#[derive(Debug, Default)]
struct Read {
    offer: Option<String>,
    published: Option<String>,
    rows: Vec<Row>,
}

impl PriceList {
    /// Reads a list; `place` names it in errors.
    ///
    /// # Errors
    /// [`PriceListError`].
    pub fn read(place: &str, mut input: impl BufRead) -> Result<Self, PriceListError> {
        let unknown = || PriceListError::Unknown { place: place.into() };
        let first =
            input.fill_buf().map_err(|_| unknown())?.iter().find(|byte| !byte.is_ascii_whitespace()).copied();
        let mut read = Read::default();
        let whole = match first {
            Some(b'{') => json::read(input, &mut read),
            Some(b'"' | b'F') => table::read(input, &mut read),
            _ => return Err(unknown()),
        };
        if let Err(cause) = whole {
            // What does not even begin like a list is none.
            return Err(match read.offer {
                None => unknown(),
                Some(_) => PriceListError::Damaged { place: place.into(), cause, read: read.rows.len() },
            });
        }
        Self::of(place, read)
    }

    fn of(place: &str, read: Read) -> Result<Self, PriceListError> {
        let place = || place.to_owned();
        let offer = match read.offer.as_deref() {
            Some("AmazonEC2") => Offer::Ec2,
            Some("AmazonRDS") => Offer::Rds,
            _ => return Err(PriceListError::Unknown { place: place() }),
        };
        if read.rows.is_empty() {
            return Err(PriceListError::Nothing { place: place() });
        }
        let mut regions: Vec<&str> = read.rows.iter().map(|row| row.region.as_str()).collect();
        regions.sort_unstable();
        regions.dedup();
        let [region] = regions[..] else {
            let found = regions.join(", ");
            return Err(PriceListError::Region { place: place(), found });
        };
        let day = read.published.as_deref().and_then(|text| text.get(..10)?.parse::<Date>().ok());
        let date = day.ok_or_else(|| PriceListError::Damaged {
            place: place(),
            cause: DamagedList::NoDate,
            read: read.rows.len(),
        })?;
        let name = if offer == Offer::Ec2 { "AmazonEC2" } else { "AmazonRDS" };
        Ok(Self {
            offer,
            region: region.to_owned(),
            date,
            source: format!("AWS Price List, {name}, {region}, published {date}, from {}", place()),
            rows: read.rows,
        })
    }

    /// The list.
    #[must_use]
    pub const fn offer(&self) -> Offer {
        self.offer
    }

    /// The region whose prices it has.
    #[must_use]
    pub fn region(&self) -> &str {
        &self.region
    }

    /// When it was published, `2026-09-30`.
    #[must_use]
    pub fn as_of(&self) -> String {
        self.date.to_string()
    }

    /// Prices that were taken.
    #[must_use]
    pub fn prices(&self) -> usize {
        self.rows.len()
    }
}

impl Catalog {
    /// Takes the prices of a list in place of those that the region has. Where the list lacks a charge of a volume type, the
    /// type has no price in the region.
    ///
    /// # Errors
    /// A list that has no EBS type in full: [`CatalogError::Data`].
    pub fn take_prices(&mut self, list: &PriceList) -> Result<(), CatalogError> {
        match list.offer {
            Offer::Ec2 => self.take_ec2(list)?,
            Offer::Rds => self.take_rds(list),
        }
        Ok(())
    }

    fn take_ec2(&mut self, list: &PriceList) -> Result<(), CatalogError> {
        let mut volumes =
            ListedVolumes { source: list.source.clone(), date: list.date, amounts: BTreeMap::new() };
        let mut instances = BTreeMap::new();
        for row in &list.rows {
            match &row.of {
                Of::Volume(usage) => {
                    volumes.amounts.insert(usage.clone(), row.usd);
                }
                Of::Instance(name) => {
                    let price = InstancePrice {
                        usd_hour: row.usd,
                        as_of: list.date.to_string(),
                        source: list.source.clone(),
                    };
                    instances.insert(name.clone(), price);
                }
                Of::Managed(_) => {}
            }
        }
        self.prices.take_volumes(&list.region, &volumes);
        if self.prices(Some(&list.region))?.provenance().next().is_none() {
            return Err(crate::error::data(&list.source, PriceDataError::NoTypePriced));
        }
        self.prices.instances.insert(list.region.clone(), instances);
        Ok(())
    }

    fn take_rds(&mut self, list: &PriceList) {
        let mut prices = ManagedPrices::empty(list.source.clone(), list.date);
        for row in &list.rows {
            if let Of::Managed(what) = &row.of {
                set(&mut prices, what, row.usd);
            }
        }
        self.prices.managed.insert(list.region.clone(), prices);
    }
}

/// Sets one price of RDS or Aurora.
fn set(prices: &mut ManagedPrices, what: &Managed, usd: Usd) {
    let slot = match what {
        Managed::Storage { kind, multi }
        | Managed::Iops { kind, multi }
        | Managed::Throughput { kind, multi } => {
            let storage = match kind.as_str() {
                "gp3" => &mut prices.rds.gp3,
                "io1" => &mut prices.rds.io1,
                _ => &mut prices.rds.io2,
            };
            match (what, multi) {
                (Managed::Storage { .. }, false) => &mut storage.gb_month,
                (Managed::Storage { .. }, true) => &mut storage.multi_gb_month,
                (Managed::Iops { .. }, false) => &mut storage.iops_month,
                (Managed::Iops { .. }, true) => &mut storage.multi_iops_month,
                (_, false) => &mut storage.mib_s_month,
                (_, true) => &mut storage.multi_mib_s_month,
            }
        }
        Managed::Backup => &mut prices.rds.backup_gb_month,
        Managed::Instance { class, multi: false } => {
            &mut prices.rds.instances.entry(class.clone()).or_default().single_hour
        }
        Managed::Instance { class, multi: true } => {
            &mut prices.rds.instances.entry(class.clone()).or_default().multi_hour
        }
        Managed::AuroraStorage { optimized: false } => &mut prices.aurora.standard.gb_month,
        Managed::AuroraStorage { optimized: true } => &mut prices.aurora.io_optimized.gb_month,
        Managed::AuroraIo => &mut prices.aurora.standard.million_io,
        Managed::AuroraAcu { optimized: false } => &mut prices.aurora.standard.acu_hour,
        Managed::AuroraAcu { optimized: true } => &mut prices.aurora.io_optimized.acu_hour,
        Managed::AuroraBackup => &mut prices.aurora.backup_gb_month,
        Managed::AuroraInstance { class, optimized: false } => {
            &mut prices.aurora.instances.entry(class.clone()).or_default().standard_hour
        }
        Managed::AuroraInstance { class, optimized: true } => {
            &mut prices.aurora.instances.entry(class.clone()).or_default().io_optimized_hour
        }
    };
    *slot = Some(usd);
}
