//! Corrections to the data: the project's own, and a user's.

use std::collections::BTreeMap;

use crate::{
    CatalogError, Provenance,
    data::{InstanceRow, OverrideEntry, OverridesFile},
    error::data,
    price_book::PriceTables,
};

/// The data as tables, before they are read as types: what overrides are applied to.
#[derive(Debug, Clone)]
pub(crate) struct Tables {
    pub(crate) types: Vec<toml::Table>,
    pub(crate) services: BTreeMap<String, toml::Table>,
    pub(crate) instances: Vec<(InstanceRow, Provenance)>,
    pub(crate) prices: PriceTables,
}

/// Lays every override of `text` over the tables, in order.
pub(crate) fn apply(tables: &mut Tables, place: &str, text: &str) -> Result<(), CatalogError> {
    let file: OverridesFile = toml::from_str(text).map_err(|error| data(place, error))?;
    for (number, entry) in file.r#override.iter().enumerate() {
        let place = format!("{place}, override {}", number + 1);
        if entry.reason.trim().is_empty() || entry.source.trim().is_empty() {
            return Err(data(&place, "an override needs a reason and a source"));
        }
        match (&entry.r#type, &entry.instance, &entry.region) {
            (Some(kind), None, None) => override_type(tables, kind, entry),
            (None, Some(name), None) => override_instance(tables, name, entry),
            (Some(kind), None, Some(region)) => override_price(&mut tables.prices, region, kind, entry),
            (None, None, Some(region)) => add_region(&mut tables.prices, region, entry),
            _ => {
                Err("give either type = \"...\" or instance = \"...\", or region = \"...\" for prices"
                    .to_owned())
            }
        }
        .map_err(|reason| data(&place, reason))?;
    }
    if let Some(region) = file.default_region {
        tables.prices.default_region = region;
    }
    Ok(())
}

fn override_type(tables: &mut Tables, kind: &str, entry: &OverrideEntry) -> Result<(), String> {
    let original = entry.like.as_deref().unwrap_or(kind);
    let named = |table: &toml::Table, name: &str| table.get("name").and_then(|n| n.as_str()) == Some(name);
    let position = tables.types.iter().position(|table| named(table, original)).ok_or_else(|| {
        format!("there is no type '{original}' to override; instance-store classes cannot be overridden")
    })?;
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
        return Err(format!("'{kind}' is a type already; leave 'like' out to override it"));
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
) -> Result<(), String> {
    let default = table.get("service").and_then(|name| name.as_str()).map(str::to_owned);
    let period = newest_period(table)?;
    let present = period.get("service").and_then(|name| name.as_str()).map(str::to_owned).or(default);
    let present = present.ok_or("the type has no service times")?;
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

fn newest_period(table: &mut toml::Table) -> Result<&mut toml::Table, String> {
    let periods = table.get_mut("period").and_then(toml::Value::as_array_mut);
    let newest = periods.and_then(|periods| periods.last_mut()).and_then(toml::Value::as_table_mut);
    newest.ok_or_else(|| "the type has no period".into())
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

fn override_instance(tables: &mut Tables, name: &str, entry: &OverrideEntry) -> Result<(), String> {
    if !entry.service.is_empty() {
        return Err("an instance has no service times".into());
    }
    let original = entry.like.as_deref().unwrap_or(name);
    let position = tables.instances.iter().position(|(row, _)| row.name == original);
    let mut table = match position {
        Some(position) => toml::Table::try_from(&tables.instances[position].0).map_err(|e| e.to_string())?,
        None if entry.like.is_some() => return Err(format!("there is no instance type '{original}'")),
        None => toml::Table::new(),
    };
    merge(&mut table, &entry.set);
    table.insert("name".into(), name.into());
    complete_instance(&mut table, &entry.set);
    let row: InstanceRow = table.try_into().map_err(|error: toml::de::Error| error.to_string())?;
    let provenance = Provenance {
        source: entry.source.clone(),
        date: entry.date.to_string(),
        overridden: Some(entry.reason.clone()),
    };
    match position {
        Some(position) if name == original => tables.instances[position] = (row, provenance),
        _ => tables.instances.push((row, provenance)),
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
) -> Result<(), String> {
    if !entry.service.is_empty() {
        return Err("a price has no service times".into());
    }
    let original = entry.like.as_deref().unwrap_or(region);
    let known = tables.regions.get(original).and_then(|types| types.get(kind)).cloned();
    let mut table = match known {
        Some(table) => table,
        None if entry.like.is_some() => return Err(format!("{kind} has no price in '{original}'")),
        None => toml::Table::new(),
    };
    merge(&mut table, &entry.set);
    sourced(&mut table, entry);
    tables.regions.entry(region.to_owned()).or_default().insert(kind.to_owned(), table);
    Ok(())
}

/// Gives a new region the prices of another.
fn add_region(tables: &mut PriceTables, region: &str, entry: &OverrideEntry) -> Result<(), String> {
    let original = entry.like.as_deref().ok_or("give type = \"...\" whose price it is, or like = \"...\"")?;
    if !entry.set.is_empty() || !entry.service.is_empty() {
        return Err("a region has no figures of its own; give type = \"...\" whose price it is".into());
    }
    if tables.regions.contains_key(region) {
        return Err(format!("'{region}' has prices already; give type = \"...\" whose price is another"));
    }
    let known: Vec<_> = tables.regions.keys().map(String::as_str).collect();
    let types = tables.regions.get(original);
    let types = types
        .ok_or_else(|| format!("there are no prices for '{original}', only for {}", known.join(", ")))?;
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
