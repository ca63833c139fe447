//! The price lists of all regions: reading, checking, and the charges of one volume.

use std::collections::BTreeMap;

use jiff::civil::Date;
use serde::Deserialize;

use crate::{
    CatalogError, Charge, Charged, ManagedPrices, PriceDataError, Usd,
    data::{Class, TypeEntry},
    error::data,
    managed::InstancePrices,
    money::price,
};

/// Types that a built-in region must have: fewer mean that a list was cut short.
const COMPLETE: [&str; 6] = ["gp2", "gp3", "io1", "io2", "sc1", "st1"];

/// `data/prices.toml`. Types stay tables here, so that overrides can be applied to them.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct PricesFile {
    default_region: String,
    region: BTreeMap<String, RegionEntry>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct RegionEntry {
    source: String,
    date: Date,
    r#type: BTreeMap<String, toml::Table>,
}

/// The prices as tables: region, then type, each with its source and date.
#[derive(Debug, Clone)]
pub(crate) struct PriceTables {
    pub(crate) default_region: String,
    pub(crate) regions: BTreeMap<String, BTreeMap<String, toml::Table>>,
}

/// The prices of all regions.
#[derive(Debug, Clone)]
pub(crate) struct PriceBook {
    pub(crate) default_region: String,
    pub(crate) regions: BTreeMap<String, BTreeMap<String, PriceEntry>>,
    /// Hourly prices of instances of lists that were given, by region; the built-in ones are the table's.
    pub(crate) instances: BTreeMap<String, InstancePrices>,
    /// Prices of RDS and Aurora, by region.
    pub(crate) managed: BTreeMap<String, ManagedPrices>,
}

/// What a type costs in a region.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PriceEntry {
    /// For a GiB and a month; none where the storage is charged with another volume.
    #[serde(default, deserialize_with = "price::option::deserialize")]
    gb_month: Option<Usd>,
    /// For provisioned operations a second, by how many there are.
    #[serde(default)]
    iops_month: Vec<IopsTier>,
    /// For provisioned throughput, by how much there is.
    #[serde(default)]
    gibps_month: Vec<ThroughputTier>,
    /// For a million I/O requests.
    #[serde(default, deserialize_with = "price::option::deserialize")]
    pub(crate) million_io: Option<Usd>,
    pub(crate) source: String,
    pub(crate) date: Date,
    pub(crate) overridden: Option<String>,
}

/// A price of each operation a second above a number, up to the next tier's.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct IopsTier {
    above: u64,
    #[serde(deserialize_with = "price::deserialize")]
    usd: Usd,
}

/// A price of a GiB/s above a number of MiB/s, up to the next tier's.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct ThroughputTier {
    above_mib_s: u64,
    #[serde(deserialize_with = "price::deserialize")]
    usd: Usd,
}

/// Amounts of a price list: EBS usage types without `EBS:` and region, such as `VolumeUsage.gp3`, with their price.
#[derive(Debug)]
pub(crate) struct ListedVolumes {
    pub(crate) source: String,
    pub(crate) date: Date,
    pub(crate) amounts: BTreeMap<String, Usd>,
}

impl PriceEntry {
    /// The same structure of charges with the amounts of a list; None where it lacks one, and for what is no EBS type.
    fn with_amounts(&self, kind: &str, list: &ListedVolumes) -> Option<Self> {
        let amount = |usage: String| list.amounts.get(&usage).copied();
        let family = match kind {
            "io1" => "piops",
            other => other,
        };
        let storage = if kind == "standard" { "VolumeUsage".into() } else { format!("VolumeUsage.{family}") };
        let tier = |n: usize| if n == 0 { String::new() } else { format!(".tier{}", n + 1) };
        let iops = self.iops_month.iter().enumerate().map(|(n, old)| {
            Some(IopsTier { usd: amount(format!("VolumeP-IOPS.{family}{}", tier(n)))?, ..*old })
        });
        let throughput = self
            .gibps_month
            .iter()
            .map(|old| Some(ThroughputTier { usd: amount(format!("VolumeP-Throughput.{family}"))?, ..*old }));
        Some(Self {
            gb_month: Some(amount(storage)?),
            iops_month: iops.collect::<Option<_>>()?,
            gibps_month: throughput.collect::<Option<_>>()?,
            million_io: match self.million_io {
                Some(_) => Some(amount("VolumeIOUsage".into())?),
                None => None,
            },
            source: list.source.clone(),
            date: list.date,
            overridden: None,
        })
    }

    /// The charges of one volume; those that come to nothing are left out, except for the storage.
    pub(crate) fn charges(&self, gib: u64, iops: u64, mib_s: u64) -> impl Iterator<Item = Charge> {
        let storage = self.gb_month.map(|usd| Charge {
            what: Charged::Storage,
            provisioned: gib,
            charged: gib,
            usd: usd.times(gib),
        });
        let tiers: Vec<(u64, Usd)> = self.iops_month.iter().map(|tier| (tier.above, tier.usd)).collect();
        let (charged, usd) = tiered(&tiers, iops);
        let iops = Charge { what: Charged::Iops, provisioned: iops, charged, usd };
        let tiers: Vec<(u64, Usd)> =
            self.gibps_month.iter().map(|tier| (tier.above_mib_s, tier.usd)).collect();
        let (charged, usd) = tiered(&tiers, mib_s);
        let usd = usd.per_1024();
        let throughput = Charge { what: Charged::Throughput, provisioned: mib_s, charged, usd };
        storage.into_iter().chain([iops, throughput].into_iter().filter(|charge| charge.charged > 0))
    }
}

/// How much of `amount` is charged, and what it costs: each tier's price holds from its beginning to the next one's.
fn tiered(tiers: &[(u64, Usd)], amount: u64) -> (u64, Usd) {
    let ends = tiers.iter().skip(1).map(|(above, _)| *above).chain([u64::MAX]);
    let within = tiers.iter().zip(ends).map(|(&(above, usd), end)| {
        let quantity = amount.min(end).saturating_sub(above);
        (quantity, usd.times(quantity))
    });
    within.fold((0, Usd::default()), |(all, sum), (quantity, usd)| (all + quantity, sum + usd))
}

/// Reads the built-in prices, and refuses lists that look thin.
pub(crate) fn builtin(place: &str, text: &str) -> Result<PriceTables, CatalogError> {
    let file: PricesFile = toml::from_str(text).map_err(|error| data(place, error))?;
    let mut regions = BTreeMap::new();
    for (name, region) in file.region {
        let missing: Vec<&'static str> =
            COMPLETE.into_iter().filter(|kind| !region.r#type.contains_key(*kind)).collect();
        if !missing.is_empty() {
            return Err(data(place, PriceDataError::IncompleteRegion { region: name, missing }));
        }
        let mut types = region.r#type;
        for table in types.values_mut() {
            table.entry("source").or_insert(region.source.clone().into());
            table.entry("date").or_insert(region.date.to_string().into());
        }
        regions.insert(name, types);
    }
    Ok(PriceTables { default_region: file.default_region, regions })
}

impl PriceBook {
    /// Reads the tables, and refuses prices that contradict themselves or the types that they belong to.
    pub(crate) fn build(tables: PriceTables) -> Result<Self, CatalogError> {
        let mut regions = BTreeMap::new();
        for (region, types) in tables.regions {
            let mut entries = BTreeMap::new();
            for (kind, table) in types {
                let place = format!("price of {kind} in {region}");
                let entry: PriceEntry = table.try_into().map_err(|error| data(&place, error))?;
                entry.check().map_err(|error| data(&place, error))?;
                entries.insert(kind, entry);
            }
            regions.insert(region, entries);
        }
        if !regions.contains_key(&tables.default_region) {
            let place = format!("default region '{}'", tables.default_region);
            return Err(data(
                &place,
                PriceDataError::UnknownDefault { known: regions.into_keys().collect() },
            ));
        }
        Ok(Self {
            default_region: tables.default_region,
            regions,
            instances: BTreeMap::new(),
            managed: BTreeMap::new(),
        })
    }

    /// Gives a region the prices of a list for EBS: those of the default region with other amounts. Types that the list
    /// does not have in full are left out.
    pub(crate) fn take_volumes(&mut self, region: &str, list: &ListedVolumes) {
        let Some(pattern) = self.regions.get(&self.default_region) else { return };
        let listed: BTreeMap<String, PriceEntry> = pattern
            .iter()
            .filter_map(|(kind, entry)| Some((kind.clone(), entry.with_amounts(kind, list)?)))
            .collect();
        self.regions.insert(region.to_owned(), listed);
    }

    /// Refuses prices of types that there are not, and prices that do not fit what a type lets one provision.
    pub(crate) fn check(&self, known: &[TypeEntry]) -> Result<(), CatalogError> {
        for (region, types) in &self.regions {
            for (kind, entry) in types {
                let place = format!("price of {kind} in {region}");
                let priced = [Class::Ebs, Class::Aurora];
                let known = known.iter().find(|known| known.name == *kind);
                let known = known.filter(|known| priced.contains(&known.class));
                let known = known.ok_or_else(|| data(&place, PriceDataError::UnknownType))?;
                if known.class == Class::Ebs && entry.gb_month.is_none() {
                    return Err(data(&place, PriceDataError::NoStorage));
                }
                if known.overridden.is_some() {
                    // What one may provision is the user's own there, and a price may lag behind.
                    continue;
                }
                let (iops, throughput) = known.provisioned();
                for (what, can, priced) in [
                    ("IOPS", iops, !entry.iops_month.is_empty()),
                    ("throughput", throughput, !entry.gibps_month.is_empty()),
                ] {
                    if can != priced {
                        return Err(data(&place, PriceDataError::Provisioning { what, priced }));
                    }
                }
            }
        }
        Ok(())
    }
}

impl PriceEntry {
    fn check(&self) -> Result<(), PriceDataError> {
        if self.source.trim().is_empty() {
            return Err(PriceDataError::NoSource);
        }
        let iops = self.iops_month.iter().map(|tier| tier.above);
        let throughput = self.gibps_month.iter().map(|tier| tier.above_mib_s);
        for (what, starts) in [("IOPS", iops.collect::<Vec<_>>()), ("throughput", throughput.collect())] {
            if starts.windows(2).any(|pair| pair[0] >= pair[1]) {
                return Err(PriceDataError::TierOrder { what, starts });
            }
        }
        let prices = self
            .gb_month
            .into_iter()
            .chain(self.iops_month.iter().map(|tier| tier.usd))
            .chain(self.gibps_month.iter().map(|tier| tier.usd))
            .chain(self.million_io);
        if prices.into_iter().any(|price| price == Usd::default()) {
            return Err(PriceDataError::Zero);
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_was_cut_short_is_refused() {
        let whole = include_str!("../data/prices.toml");
        builtin("prices.toml", whole).unwrap();
        let without = whole.replacen("sc1 = { gb_month = \"0.0168\" }\n", "", 1);
        let error = builtin("prices.toml", &without).unwrap_err();
        assert_eq!(error.to_string(), "prices.toml: region eu-west-1 has no price of sc1");
    }

    #[test]
    fn a_tier_holds_from_its_beginning_to_the_next_ones() {
        let usd = Usd::from_micros;
        let tiers = [(10, usd(100)), (20, usd(50)), (30, usd(1))];
        let costs = [0, 10, 11, 20, 21, 30, 31].map(|amount| tiered(&tiers, amount));
        let expected = [(0, 0), (0, 0), (1, 100), (10, 1_000), (11, 1_050), (20, 1_500), (21, 1_501)];
        assert_eq!(costs, expected.map(|(quantity, micros)| (quantity, usd(micros))));
        assert_eq!(tiered(&[], 5), (0, usd(0)), "nothing is charged without a tier");
    }
}
