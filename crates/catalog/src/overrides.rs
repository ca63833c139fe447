//! Corrections to the data: the project's own, and a user's.

use std::collections::BTreeMap;

use crate::{
    CatalogError, DataError, OverrideError, Provenance,
    data::{InstanceRow, OverrideEntry, OverridesFile},
    error::data,
    instance_table,
    price_book::PriceTables,
};

/// The data as tables, before they are read as types: what overrides are applied to.
#[derive(Debug, Clone)]
pub(crate) struct Tables {
    pub(crate) types: Vec<toml::Table>,
    pub(crate) services: BTreeMap<String, toml::Table>,
    /// All instance types, once an override changes or adds one.
    pub(crate) instances: Option<Vec<(InstanceRow, Provenance)>>,
    pub(crate) prices: PriceTables,
}

/// Lays every override of `text` over the tables, in order.
pub(crate) fn apply(tables: &mut Tables, place: &str, text: &str) -> Result<(), CatalogError> {
    let file: OverridesFile = toml::from_str(text).map_err(|error| data(place, error))?;
    for (number, entry) in file.r#override.iter().enumerate() {
        let place = format!("{place}, override {}", number + 1);
        if entry.reason.trim().is_empty() || entry.source.trim().is_empty() {
            return Err(data(&place, OverrideError::NoReason));
        }
        match (&entry.r#type, &entry.instance, &entry.region) {
            (Some(kind), None, None) => override_type(tables, kind, entry).map_err(DataError::from),
            (None, Some(name), None) => override_instance(tables, name, entry),
            (Some(kind), None, Some(region)) => {
                override_price(&mut tables.prices, region, kind, entry).map_err(DataError::from)
            }
            (None, None, Some(region)) => {
                add_region(&mut tables.prices, region, entry).map_err(DataError::from)
            }
            _ => Err(OverrideError::Subject.into()),
        }
        .map_err(|error| data(&place, error))?;
    }
    if let Some(region) = file.default_region {
        tables.prices.default_region = region;
    }
    Ok(())
}

fn override_type(tables: &mut Tables, kind: &str, entry: &OverrideEntry) -> Result<(), OverrideError> {
    let original = entry.like.as_deref().unwrap_or(kind);
    let named = |table: &toml::Table, name: &str| table.get("name").and_then(|n| n.as_str()) == Some(name);
    let position = tables.types.iter().position(|table| named(table, original));
    let position = position.ok_or_else(|| OverrideError::UnknownType(original.to_owned()))?;
    let mut table = tables.types[position].clone();
    table.insert("name".into(), kind.into());
    table.insert("overridden".into(), entry.reason.clone().into());
    if kind != original {
        table.entry("priced_as").or_insert(original.into());
    }
    if !entry.service.is_empty() {
        override_service(tables, &mut table, kind, entry)?;
    }
    if !entry.set.is_empty() {
        let period = newest_period(&mut table)?;
        merge(period, &entry.set);
        period.insert("source".into(), entry.source.clone().into());
        period.insert("date".into(), entry.date.to_string().into());
    }
    if kind == original {
        tables.types[position] = table;
    } else if tables.types.iter().any(|table| named(table, kind)) {
        return Err(OverrideError::TypeExists(kind.to_owned()));
    } else {
        tables.types.push(table);
    }
    Ok(())
}

/// Gives the type service times of its own: those it had, with the given parts replaced.
fn override_service(
    tables: &mut Tables,
    table: &mut toml::Table,
    kind: &str,
    entry: &OverrideEntry,
) -> Result<(), OverrideError> {
    let default = table.get("service").and_then(|name| name.as_str()).map(str::to_owned);
    let period = newest_period(table)?;
    let present = period.get("service").and_then(|name| name.as_str()).map(str::to_owned).or(default);
    let present = present.ok_or(OverrideError::TypeWithoutService)?;
    let mut service = tables.services.get(&present).cloned().unwrap_or_default();
    for (part, value) in &entry.service {
        service.insert(part.clone(), value.clone());
    }
    service.insert("source".into(), entry.source.clone().into());
    service.insert("date".into(), entry.date.to_string().into());
    let own = format!("{kind} (overridden)");
    period.insert("service".into(), own.clone().into());
    tables.services.insert(own, service);
    Ok(())
}

fn newest_period(table: &mut toml::Table) -> Result<&mut toml::Table, OverrideError> {
    let periods = table.get_mut("period").and_then(toml::Value::as_array_mut);
    let newest = periods.and_then(|periods| periods.last_mut()).and_then(toml::Value::as_table_mut);
    newest.ok_or(OverrideError::TypeWithoutPeriod)
}

/// Replaces values key by key; tables are merged.
fn merge(under: &mut toml::Table, over: &toml::Table) {
    for (key, value) in over {
        match (under.get_mut(key), value) {
            (Some(toml::Value::Table(under)), toml::Value::Table(over)) => merge(under, over),
            _ => {
                under.insert(key.clone(), value.clone());
            }
        }
    }
}

fn override_instance(tables: &mut Tables, name: &str, entry: &OverrideEntry) -> Result<(), DataError> {
    if !entry.service.is_empty() {
        return Err(OverrideError::NoServiceTimes { subject: "an instance" }.into());
    }
    let instances = tables.instances.get_or_insert_with(instance_table::rows);
    let original = entry.like.as_deref().unwrap_or(name);
    let position = instances.iter().position(|(row, _)| row.name == original);
    let mut table = match position {
        Some(position) => toml::Table::try_from(&instances[position].0)?,
        None if entry.like.is_some() => {
            return Err(OverrideError::UnknownInstance(original.to_owned()).into());
        }
        None => toml::Table::new(),
    };
    merge(&mut table, &entry.set);
    table.insert("name".into(), name.into());
    complete_instance(&mut table, &entry.set);
    let row: InstanceRow = table.try_into()?;
    let provenance = Provenance {
        source: entry.source.clone(),
        date: entry.date.to_string(),
        overridden: Some(entry.reason.clone()),
    };
    match position {
        Some(position) if name == original => instances[position] = (row, provenance),
        _ => instances.push((row, provenance)),
    }
    Ok(())
}

/// Works out the columns that follow from others, where the override does not give them.
fn complete_instance(table: &mut toml::Table, given: &toml::Table) {
    let whole =
        |table: &toml::Table, key: &str| table.get(key).and_then(toml::Value::as_integer).unwrap_or(0);
    for end in ["baseline", "maximum"] {
        let (mbps, mb_s) = (format!("{end}_mbps"), format!("{end}_mb_s"));
        if !given.contains_key(&mb_s) {
            let figure = whole(table, &mbps) as f64 / 8.0;
            table.insert(mb_s, figure.into());
        }
    }
    if !given.contains_key("bursts") {
        let below =
            |what: &str| whole(table, &format!("baseline_{what}")) < whole(table, &format!("maximum_{what}"));
        let bursts = if below("mbps") || below("iops") { "yes" } else { "no" };
        table.insert("bursts".into(), bursts.into());
    }
    table.entry("slots").or_insert("dedicated".into());
    table.entry("store_disks").or_insert(0.into());
    table.entry("store_disk_gb").or_insert(0.into());
}

/// Replaces figures of a type's price in a region, which may be new.
fn override_price(
    tables: &mut PriceTables,
    region: &str,
    kind: &str,
    entry: &OverrideEntry,
) -> Result<(), OverrideError> {
    if !entry.service.is_empty() {
        return Err(OverrideError::NoServiceTimes { subject: "a price" });
    }
    let original = entry.like.as_deref().unwrap_or(region);
    let known = tables.regions.get(original).and_then(|types| types.get(kind)).cloned();
    let mut table = match known {
        Some(table) => table,
        None if entry.like.is_some() => {
            return Err(OverrideError::UnknownPrice { kind: kind.to_owned(), region: original.to_owned() });
        }
        None => toml::Table::new(),
    };
    merge(&mut table, &entry.set);
    sourced(&mut table, entry);
    tables.regions.entry(region.to_owned()).or_default().insert(kind.to_owned(), table);
    Ok(())
}

/// Gives a new region the prices of another.
fn add_region(tables: &mut PriceTables, region: &str, entry: &OverrideEntry) -> Result<(), OverrideError> {
    let original = entry.like.as_deref().ok_or(OverrideError::RegionLikeNothing)?;
    if !entry.set.is_empty() || !entry.service.is_empty() {
        return Err(OverrideError::RegionFigures);
    }
    if tables.regions.contains_key(region) {
        return Err(OverrideError::RegionExists(region.to_owned()));
    }
    let types = tables.regions.get(original).ok_or_else(|| OverrideError::UnknownRegion {
        region: original.to_owned(),
        known: tables.regions.keys().cloned().collect(),
    })?;
    let mut types = types.clone();
    types.values_mut().for_each(|table| sourced(table, entry));
    tables.regions.insert(region.to_owned(), types);
    Ok(())
}

/// Marks a table as an override's.
fn sourced(table: &mut toml::Table, entry: &OverrideEntry) {
    table.insert("source".into(), entry.source.clone().into());
    table.insert("date".into(), entry.date.to_string().into());
    table.insert("overridden".into(), entry.reason.clone().into());
}
