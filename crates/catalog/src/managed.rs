//! What instances, RDS and Aurora cost.

use std::collections::BTreeMap;

use jiff::civil::Date;
use serde::Deserialize;

use crate::{CatalogError, PriceDataError, Usd, error::data, money::price};

/// Hours of a month, as AWS's own calculator counts them: 365 days by twelve.
pub const HOURS_A_MONTH: u64 = 730;

/// What an hour of an EC2 instance costs, on demand with Linux.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct InstancePrice {
    /// For an hour, US dollars.
    pub usd_hour: Usd,
    /// When the price was published, `2026-07-20`.
    pub as_of: String,
    /// Where it comes from.
    pub source: String,
}

impl InstancePrice {
    /// For a month of [`HOURS_A_MONTH`].
    #[must_use]
    pub const fn month(&self) -> Usd {
        self.usd_hour.times(HOURS_A_MONTH)
    }
}

/// Prices of RDS and Aurora in a region. What has no source is None.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManagedPrices {
    /// Where they come from.
    pub source: String,
    date: Date,
    /// Prices of RDS for MySQL and MariaDB.
    #[serde(default)]
    pub rds: RdsPrices,
    /// Prices of Aurora MySQL.
    #[serde(default)]
    pub aurora: AuroraPrices,
}

/// Prices of RDS for MySQL and MariaDB.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RdsPrices {
    /// General purpose storage.
    pub gp3: RdsStoragePrice,
    /// Provisioned IOPS storage.
    pub io1: RdsStoragePrice,
    /// Provisioned IOPS storage on Block Express.
    pub io2: RdsStoragePrice,
    /// A GiB and month of backups beyond the free ones.
    #[serde(deserialize_with = "price::option::deserialize")]
    pub backup_gb_month: Option<Usd>,
    /// An hour of each instance class, in one zone and with a standby.
    pub instances: BTreeMap<String, RdsInstancePrice>,
    /// What the instances' prices are of, where they are not of the source of the others.
    pub instances_of: Option<String>,
}

/// Prices of a type of RDS storage; `multi` are those with a standby in a second zone.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RdsStoragePrice {
    /// A GiB and month.
    #[serde(deserialize_with = "price::option::deserialize")]
    pub gb_month: Option<Usd>,
    /// A GiB and month with a standby.
    #[serde(deserialize_with = "price::option::deserialize")]
    pub multi_gb_month: Option<Usd>,
    /// An operation a second and month, above the baseline of gp3.
    #[serde(deserialize_with = "price::option::deserialize")]
    pub iops_month: Option<Usd>,
    /// The same with a standby.
    #[serde(deserialize_with = "price::option::deserialize")]
    pub multi_iops_month: Option<Usd>,
    /// A MiB/s and month above the baseline of gp3.
    #[serde(deserialize_with = "price::option::deserialize")]
    pub mib_s_month: Option<Usd>,
    /// The same with a standby.
    #[serde(deserialize_with = "price::option::deserialize")]
    pub multi_mib_s_month: Option<Usd>,
}

/// An hour of an instance class of RDS.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RdsInstancePrice {
    /// In one zone.
    #[serde(deserialize_with = "price::option::deserialize")]
    pub single_hour: Option<Usd>,
    /// With a standby in a second zone.
    #[serde(deserialize_with = "price::option::deserialize")]
    pub multi_hour: Option<Usd>,
}

/// Prices of Aurora MySQL.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuroraPrices {
    /// Aurora Standard, which charges I/O.
    pub standard: AuroraStoragePrice,
    /// Aurora I/O-Optimized, which does not.
    pub io_optimized: AuroraStoragePrice,
    /// A GiB and month of backups beyond the free ones.
    #[serde(deserialize_with = "price::option::deserialize")]
    pub backup_gb_month: Option<Usd>,
    /// An hour of each instance class.
    pub instances: BTreeMap<String, AuroraInstancePrice>,
    /// What the instances' prices with Aurora Standard are of, where they are not of the source of the others.
    pub standard_instances_of: Option<String>,
    /// The same with Aurora I/O-Optimized.
    pub io_optimized_instances_of: Option<String>,
}

/// Prices of a storage configuration of Aurora.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuroraStoragePrice {
    /// A GiB and month.
    #[serde(deserialize_with = "price::option::deserialize")]
    pub gb_month: Option<Usd>,
    /// A million I/O requests.
    #[serde(deserialize_with = "price::option::deserialize")]
    pub million_io: Option<Usd>,
    /// An hour of a capacity unit of Serverless v2.
    #[serde(deserialize_with = "price::option::deserialize")]
    pub acu_hour: Option<Usd>,
}

/// An hour of an instance class of Aurora.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuroraInstancePrice {
    /// With Aurora Standard.
    #[serde(deserialize_with = "price::option::deserialize")]
    pub standard_hour: Option<Usd>,
    /// With Aurora I/O-Optimized.
    #[serde(deserialize_with = "price::option::deserialize")]
    pub io_optimized_hour: Option<Usd>,
}

impl ManagedPrices {
    /// Prices of a list without any yet.
    pub(crate) fn empty(source: String, date: Date) -> Self {
        Self { source, date, rds: RdsPrices::default(), aurora: AuroraPrices::default() }
    }

    /// When they were published, `2026-07-28`.
    #[must_use]
    pub fn as_of(&self) -> String {
        self.date.to_string()
    }
}

/// `data/managed-prices.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ManagedFile {
    region: BTreeMap<String, ManagedPrices>,
}

/// Reads the built-in prices of RDS and Aurora.
pub(crate) fn builtin(place: &str, text: &str) -> Result<BTreeMap<String, ManagedPrices>, CatalogError> {
    let file: ManagedFile = toml::from_str(text).map_err(|error| data(place, error))?;
    for (region, prices) in &file.region {
        let complete = prices.rds.gp3.gb_month.is_some()
            && prices.aurora.standard.million_io.is_some()
            && prices.aurora.io_optimized.gb_month.is_some();
        if prices.source.trim().is_empty() || !complete {
            return Err(data(place, PriceDataError::IncompleteManaged(region.clone())));
        }
    }
    Ok(file.region)
}

/// Hourly prices of instances by name.
pub(crate) type InstancePrices = BTreeMap<String, InstancePrice>;
