//! The prices of one region, and what volumes and instances cost there.

use std::collections::BTreeMap;

use ebbtide_text::closest;

use crate::{
    Catalog, CatalogError, Charge, InstancePrice, ManagedPrices, MonthlyCost, Provenance, Resolved,
    instance_table, price_book::PriceEntry, resolved::gib,
};

/// The prices of one region.
#[derive(Debug, Clone, Copy)]
pub struct Prices<'a> {
    catalog: &'a Catalog,
    region: &'a str,
    types: &'a BTreeMap<String, PriceEntry>,
}

impl Catalog {
    /// The prices of a region; without a name those of the default region.
    ///
    /// # Errors
    /// A region without prices: [`CatalogError::UnknownRegion`], which names those that have some.
    pub fn prices(&self, region: Option<&str>) -> Result<Prices<'_>, CatalogError> {
        let name = region.unwrap_or(&self.prices.default_region);
        let found = self.prices.regions.get_key_value(name.trim());
        let (region, types) = found.ok_or_else(|| CatalogError::UnknownRegion {
            name: name.into(),
            nearest: closest(name, self.regions()).map(str::to_owned),
            known: self.regions().map(str::to_owned).collect(),
        })?;
        Ok(Prices { catalog: self, region, types })
    }

    /// The regions that have prices, by name.
    pub fn regions(&self) -> impl Iterator<Item = &str> {
        self.prices.regions.keys().map(String::as_str)
    }
}

impl<'a> Prices<'a> {
    /// Whose prices these are.
    #[must_use]
    pub const fn region(&self) -> &'a str {
        self.region
    }

    /// What the volumes of a spec cost a month, at these prices whatever day's limits the spec asks for. None where
    /// the type has no price here: a device, an instance store, a type that the region does not list.
    #[must_use]
    pub fn monthly_cost(&self, resolved: &Resolved) -> Option<MonthlyCost> {
        let volume = &resolved.spec.volume;
        let original = self.catalog.entry(&volume.kind)?.priced_as.as_ref();
        let entry = self.types.get(&volume.kind).or_else(|| self.types.get(original?))?;
        let members = u64::from(resolved.spec.members());
        let charges: Vec<Charge> = entry
            .charges(gib(volume.size_bytes?), volume.iops.unwrap_or(0), volume.throughput_mib_s.unwrap_or(0))
            .map(|charge| Charge {
                provisioned: charge.provisioned * members,
                charged: charge.charged * members,
                usd: charge.usd.times(members),
                ..charge
            })
            .collect();
        Some(MonthlyCost {
            usd: charges.iter().map(|charge| charge.usd).sum(),
            region: self.region.to_owned(),
            as_of: entry.date.to_string(),
            source: entry.source.clone(),
            overridden: entry.overridden.clone(),
            charges,
            usd_per_million_io: entry.million_io,
        })
    }

    /// What an hour of an EC2 instance type costs here; None where the type has no price.
    #[must_use]
    pub fn instance(&self, name: &str) -> Option<&'a InstancePrice> {
        let name = name.strip_prefix("db.").unwrap_or(name);
        if let Some(own) = self.catalog.prices.instances.get(self.region) {
            return own.get(name);
        }
        let builtin = instance_table::prices();
        if builtin.region == self.region { builtin.prices.get(name) } else { None }
    }

    /// The prices of RDS and Aurora here; None where there are none.
    #[must_use]
    pub fn managed(&self) -> Option<&'a ManagedPrices> {
        self.catalog.prices.managed.get(self.region)
    }

    /// Where the prices of each type come from.
    pub fn provenance(&self) -> impl Iterator<Item = (&'a str, Provenance)> {
        self.types.iter().map(|(name, entry)| {
            let provenance = Provenance {
                source: entry.source.clone(),
                date: entry.date.to_string(),
                overridden: entry.overridden.clone(),
            };
            (name.as_str(), provenance)
        })
    }
}
