//! The catalogue: what is built in, and what a user overrides.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::{Arc, LazyLock},
};

use ebbtide_text::closest;
use ebbtide_volume::Accounting;
use jiff::civil::Date;
use serde::de::DeserializeOwned;

use crate::{
    CatalogError, DataError, InstanceType, PeriodError, Provenance, TypeDataError,
    data::{
        AccountingEntry, ArrayRules, Class, InitializationRules, InstanceRow, InstanceRules, IopsRule,
        ModificationRules, Period, ServiceEntry, StoreRow, StoreRules, ThroughputRule, TornWritePrevention,
        TypeEntry, TypesFile, table_source,
    },
    error::data,
    initialization, instance_table, managed,
    overrides::{self, Tables},
    price_book::{self, PriceBook},
};

const TYPES: &str = include_str!("../data/volume-types.toml");
const SERVICE_TIMES: &str = include_str!("../data/service-times.toml");
const INSTANCE_STORE: &str = include_str!("../data/instance-store.csv");
const PRICES: &str = include_str!("../data/prices.toml");
const MANAGED_PRICES: &str = include_str!("../data/managed-prices.toml");
const CORRECTIONS: &str = include_str!("../data/overrides.toml");

/// All volume and instance types.
#[derive(Debug, Clone)]
pub struct Catalog {
    types: Vec<TypeEntry>,
    infos: Vec<TypeInfo>,
    services: BTreeMap<String, ServiceEntry>,
    accounting: BTreeMap<String, AccountingEntry>,
    pub(crate) torn_write_prevention: TornWritePrevention,
    pub(crate) array: ArrayRules,
    pub(crate) modification: ModificationRules,
    pub(crate) initialization: InitializationRules,
    instance: InstanceRules,
    instance_store: StoreRules,
    /// All types where an override changes or adds one; None: the built-in ones.
    instances: Option<Arc<[InstanceType]>>,
    pub(crate) prices: PriceBook,
}

/// A volume type, for listings.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct TypeInfo {
    /// `gp3`.
    pub name: String,
    /// One line of what it is.
    pub summary: String,
    /// First day on which it could be created, where it was ever launched.
    pub launched: Option<String>,
    /// Days on which its limits changed.
    pub periods: Vec<String>,
    /// Whether an EC2 instance can boot from it (EBS user guide, `ebs-volume-types`).
    pub boot: bool,
    /// Whether several instances can attach it at once.
    pub multi_attach: bool,
    /// Share of volumes that fail in a year, in percent, as AWS states it; none: not stated.
    pub annual_failure_percent: Option<String>,
    /// Keys that a spec may give for it.
    pub keys: Vec<&'static str>,
    /// Where its present limits come from.
    pub provenance: Provenance,
    /// Where its present service times come from.
    pub service_provenance: Provenance,
}

static BUILTIN: LazyLock<Catalog> = LazyLock::new(|| {
    load(None).expect("the built-in data agree with themselves, as the tests of this crate prove")
});

impl Catalog {
    /// The built-in catalogue.
    #[must_use]
    pub fn builtin() -> Self {
        BUILTIN.clone()
    }

    /// The built-in catalogue with a user's overrides; a file that does not exist is an error.
    ///
    /// # Errors
    /// A file that cannot be read, does not parse, or leads to contradictory figures.
    pub fn with_overrides(path: &Path) -> Result<Self, CatalogError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| CatalogError::Unreadable { path: path.into(), reason: error.to_string() })?;
        load(Some((&path.display().to_string(), &text)))
    }

    /// The built-in catalogue with overrides given as text; `place` names them in errors.
    ///
    /// # Errors
    /// A text that does not parse, or leads to contradictory figures.
    pub fn with_overrides_text(place: &str, text: &str) -> Result<Self, CatalogError> {
        load(Some((place, text)))
    }

    /// An instance type.
    ///
    /// # Errors
    /// Where the catalogue does not know it.
    pub fn instance(&self, name: &str) -> Result<InstanceType, CatalogError> {
        let wanted = name.trim().to_ascii_lowercase();
        let wanted = wanted.strip_prefix("db.").unwrap_or(&wanted);
        self.instance_named(wanted).cloned().ok_or_else(|| {
            let names = || self.instances().iter().map(|instance| instance.name.as_str());
            let family = wanted.split('.').next().unwrap_or(wanted);
            let sizes = names().filter_map(|name| name.split_once('.').filter(|(own, _)| *own == family));
            CatalogError::UnknownInstance {
                name: name.into(),
                nearest: closest(wanted, names()).map(str::to_owned),
                sizes: sizes.map(|(_, size)| size.to_owned()).collect(),
            }
        })
    }

    /// An instance type by its exact name.
    #[must_use]
    pub fn instance_named(&self, name: &str) -> Option<&InstanceType> {
        let types = self.instances();
        let place = types.binary_search_by(|instance| instance.name.as_str().cmp(name)).ok()?;
        types.get(place)
    }

    /// All instance types, by name.
    #[must_use]
    pub fn instances(&self) -> &[InstanceType] {
        self.instances.as_deref().unwrap_or_else(|| instance_table::types(&self.instance))
    }

    /// The rules that belong to no single type, each in one line with its source.
    #[must_use]
    pub fn rules(&self) -> Vec<(String, Provenance)> {
        let from = |source: &str, date: Date| Provenance {
            source: source.to_owned(),
            date: date.to_string(),
            overridden: None,
        };
        let (twp, array, modify) = (&self.torn_write_prevention, &self.array, &self.modification);
        let (instance, store) = (&self.instance, &self.instance_store);
        let mut rules = vec![
            (
                format!("EBS keeps aligned 16 KiB writes whole since {}", twp.since),
                from(&twp.source, twp.date),
            ),
            (
                format!("an instance holds its maximum for {} s on full credits", instance.burst_s),
                from(&instance.source, instance.date),
            ),
            (
                format!("an instance store moves {} times its 4 KiB reads", store.throughput_per_read),
                from(&store.source, store.date),
            ),
            (format!("RAID 0 chunk {} KiB", array.default_chunk_kib), from(&array.source, array.date)),
            (
                format!(
                    "{} modifications in 24 h since {} ({} h apart before), optimizing {} h per TiB",
                    modify.per_day, modify.since, modify.wait_before_h, modify.optimizing_h_per_tib
                ),
                from(&modify.source, modify.date),
            ),
        ];
        let loading = &self.initialization;
        rules.push((
            format!(
                "a volume from a snapshot loads blocks of {} KiB, at {} to {} MiB/s where a rate is provisioned",
                loading.block_kib, loading.min_mib_s, loading.max_mib_s
            ),
            from(&loading.source, loading.date),
        ));
        rules.extend(self.accounting.iter().map(|(name, entry)| {
            let unit = entry.rules().unit_bytes >> 10;
            (format!("{name}: an operation is at most {unit} KiB"), from(&entry.source, entry.date))
        }));
        rules
    }

    /// All volume types.
    #[must_use]
    pub fn types(&self) -> &[TypeInfo] {
        &self.infos
    }

    pub(crate) fn entry(&self, kind: &str) -> Option<&TypeEntry> {
        self.types.iter().find(|entry| entry.name == kind)
    }

    pub(crate) fn service(&self, entry: &TypeEntry, period: &Period) -> &ServiceEntry {
        let name = period.service.as_ref().unwrap_or(&entry.service);
        self.services.get(name).expect("a type's service times were found when it was loaded")
    }

    pub(crate) fn accounting(&self, entry: &TypeEntry) -> Accounting {
        let accounting = self.accounting.get(&entry.accounting);
        accounting.expect("a type's accounting was found when it was loaded").rules()
    }
}

fn load(user: Option<(&str, &str)>) -> Result<Catalog, CatalogError> {
    let file: TypesFile = parse("volume-types.toml", TYPES)?;
    let services = parse("service-times.toml", SERVICE_TIMES)?;
    let mut tables = Tables {
        types: file.r#type.clone(),
        services,
        instances: None,
        prices: price_book::builtin("prices.toml", PRICES)?,
    };
    overrides::apply(&mut tables, "overrides.toml", CORRECTIONS)?;
    if let Some((place, text)) = user {
        overrides::apply(&mut tables, place, text)?;
    }
    build(file, tables)
}

fn build(file: TypesFile, tables: Tables) -> Result<Catalog, CatalogError> {
    let mut types: Vec<TypeEntry> = Vec::new();
    for table in tables.types {
        let name = table.get("name").and_then(toml::Value::as_str).unwrap_or("a type").to_owned();
        types.push(table.try_into().map_err(|error| data(&name, error))?);
    }
    let mut services = BTreeMap::new();
    for (name, table) in tables.services {
        let entry: ServiceEntry = table.try_into().map_err(|error| data(&name, error))?;
        services.insert(name, entry);
    }
    add_instance_store(&mut types, &mut services, &file.instance_store)?;
    let of_rows = |mut rows: Vec<(InstanceRow, Provenance)>| {
        rows.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
        let types = rows.into_iter().map(|(row, provenance)| {
            InstanceType::from_row(&row, &file.instance, provenance).map_err(|error| data("instances", error))
        });
        types.collect::<Result<_, _>>()
    };
    let mut catalog = Catalog {
        instances: tables.instances.map(of_rows).transpose()?,
        accounting: file.accounting,
        types,
        infos: Vec::new(),
        services,
        torn_write_prevention: file.torn_write_prevention,
        array: file.array,
        modification: file.modification,
        initialization: file.initialization,
        instance: file.instance,
        instance_store: file.instance_store,
        prices: PriceBook::build(tables.prices)?,
    };
    catalog.prices.managed = managed::builtin("managed-prices.toml", MANAGED_PRICES)?;
    check(&catalog)?;
    initialization::check(&catalog.initialization)?;
    catalog.prices.check(&catalog.types)?;
    catalog.infos = catalog.types.iter().map(|entry| info(&catalog, entry)).collect();
    Ok(catalog)
}

/// One type for each published instance-store class, after the pattern of the shape in the data.
fn add_instance_store(
    types: &mut Vec<TypeEntry>,
    services: &mut BTreeMap<String, ServiceEntry>,
    rules: &StoreRules,
) -> Result<(), CatalogError> {
    let (source, date) = table_source("instance-store.csv", INSTANCE_STORE)?;
    let shape = services.get("instance-store").cloned();
    let shape = shape.ok_or_else(|| data("service-times.toml", TypeDataError::NoStoreShape))?;
    for row in rows::<StoreRow>("instance-store.csv", INSTANCE_STORE)? {
        let name = format!("instance-store:{}", row.name);
        if row.write_iops == 0 || row.write_iops > row.read_iops || row.disks == 0 {
            return Err(data(&name, TypeDataError::StoreFigures));
        }
        services.insert(name.clone(), row.service(&shape, rules));
        types.push(store_type(name, &row, rules, source.clone(), date));
    }
    Ok(())
}

fn store_type(name: String, row: &StoreRow, rules: &StoreRules, source: String, date: Date) -> TypeEntry {
    let period = Period {
        from: jiff::civil::date(2000, 1, 1),
        size_gib: None,
        default_size_gib: None,
        default_size_bytes: Some(row.disks * row.disk_gb * 1_000_000_000 / 4096 * 4096),
        iops: None,
        throughput: Some(ThroughputRule::Fixed { mib_s: row.throughput_mib_s(rules) }),
        service: None,
        volatile_cache_mib: 0,
        max_atomic_kib: Some(row.max_atomic_kib),
        atomic_by_default: true,
        together: None,
        nominal_iops: Some(row.read_iops),
        source,
        date,
    };
    TypeEntry {
        service: name.clone(),
        name,
        summary: format!(
            "All {} disk(s) of one {} together: {} read / {} write IOPS at 4 KiB",
            row.disks, row.name, row.read_iops, row.write_iops
        ),
        class: Class::InstanceStore,
        accounting: "device".into(),
        launched: None,
        boot: false,
        multi_attach: false,
        annual_failure_percent: None,
        period: vec![period],
        priced_as: None,
        overridden: None,
    }
}

/// Refuses data that look thin or contradict themselves.
fn check(catalog: &Catalog) -> Result<(), CatalogError> {
    let mut names = BTreeSet::new();
    for entry in &catalog.types {
        if !names.insert(&entry.name) {
            return Err(data(&entry.name, DataError::Twice));
        }
        check_type(catalog, entry).map_err(|error| data(&entry.name, error))?;
    }
    let changed = catalog.instances.as_deref().unwrap_or_default();
    match changed.windows(2).find(|pair| pair[0].name == pair[1].name) {
        Some(pair) => Err(data(&pair[0].name, DataError::Twice)),
        None => Ok(()),
    }
}

fn check_type(catalog: &Catalog, entry: &TypeEntry) -> Result<(), DataError> {
    let first = entry.period.first().ok_or(TypeDataError::NoPeriod)?;
    if entry.launched.is_some_and(|launched| launched > first.from) {
        return Err(TypeDataError::BeforeLaunch.into());
    }
    if entry.period.windows(2).any(|pair| pair[0].from >= pair[1].from) {
        return Err(TypeDataError::PeriodOrder.into());
    }
    if !catalog.accounting.contains_key(&entry.accounting) {
        return Err(TypeDataError::UnknownAccounting(entry.accounting.clone()).into());
    }
    entry.period.iter().try_for_each(|period| {
        let service = period.service.as_ref().unwrap_or(&entry.service);
        let times = catalog.services.get(service);
        let times = times.ok_or_else(|| TypeDataError::UnknownService(service.clone()))?;
        times.check()?;
        let of_period = |cause| TypeDataError::Period { from: period.from, cause };
        Ok(check_period(entry, period).map_err(of_period)?)
    })
}

fn check_period(entry: &TypeEntry, period: &Period) -> Result<(), PeriodError> {
    let rising = |figures: &'static str, values: &[u64]| {
        let rises = values.windows(2).all(|pair| pair[0] <= pair[1]) && values[0] > 0;
        if rises { Ok(()) } else { Err(PeriodError::NotRising { figures, values: values.to_vec() }) }
    };
    if period.source.trim().is_empty() {
        return Err(PeriodError::NoSource);
    }
    let sized = match entry.class {
        Class::Ebs => period.size_gib.is_some(),
        _ => period.default_size_gib.is_some() || period.default_size_bytes.is_some(),
    };
    if !sized {
        return Err(PeriodError::NoSizes);
    }
    if let Some([min, max]) = period.size_gib {
        rising("sizes", &[min, max])?;
    }
    match period.iops {
        Some(IopsRule::BySize { min, max, burst, .. }) => {
            rising("IOPS", &[min, max])?;
            rising("IOPS and burst", &[min, burst])?;
        }
        Some(IopsRule::Provisioned { min, max, default, .. }) => {
            rising("IOPS", &[min, default.unwrap_or(min), max])?;
        }
        Some(IopsRule::Fixed { iops }) => rising("IOPS", &[iops])?,
        None => {}
    }
    match period.throughput {
        Some(ThroughputRule::BySize { mib_s, max_mib_s, .. }) => rising("MiB/s", &[mib_s, max_mib_s]),
        Some(ThroughputRule::Step { small_mib_s, large_mib_s, .. }) => {
            rising("MiB/s", &[small_mib_s, large_mib_s])
        }
        Some(ThroughputRule::Provisioned { min, max, default, .. }) => rising("MiB/s", &[min, default, max]),
        Some(ThroughputRule::PerIops { max_mib_s, above_max_mib_s, .. }) => {
            rising("MiB/s", &[max_mib_s, above_max_mib_s.unwrap_or(max_mib_s)])
        }
        Some(ThroughputRule::PerTib { base_mib_s, base_max_mib_s, burst_mib_s, burst_max_mib_s }) => {
            rising("base MiB/s", &[base_mib_s, base_max_mib_s, burst_max_mib_s])?;
            rising("burst MiB/s", &[base_mib_s, burst_mib_s])
        }
        Some(ThroughputRule::Fixed { mib_s }) => rising("MiB/s", &[mib_s]),
        None => Ok(()),
    }
}

fn info(catalog: &Catalog, entry: &TypeEntry) -> TypeInfo {
    let period = entry.period.last().expect("a type has a period, as was checked");
    let service = catalog.service(entry, period);
    let mut keys = vec!["size"];
    if matches!(period.iops, Some(IopsRule::Provisioned { .. })) {
        keys.push("iops");
    }
    if matches!(period.throughput, Some(ThroughputRule::Provisioned { .. })) {
        keys.push("throughput");
    }
    if matches!(period.iops, Some(IopsRule::BySize { .. }))
        || matches!(period.throughput, Some(ThroughputRule::PerTib { .. }))
    {
        keys.push("credits");
    }
    if entry.class == Class::Ebs || period.max_atomic_kib.is_some_and(|kib| kib > 4) {
        keys.push("twp");
    }
    let provenance = |source: &str, date: Date| Provenance {
        source: source.to_owned(),
        date: date.to_string(),
        overridden: entry.overridden.clone(),
    };
    TypeInfo {
        name: entry.name.clone(),
        summary: entry.summary.clone(),
        launched: entry.launched.map(|day| day.to_string()),
        periods: entry.period.iter().map(|period| period.from.to_string()).collect(),
        boot: entry.boot,
        multi_attach: entry.multi_attach,
        annual_failure_percent: entry.annual_failure_percent.clone(),
        keys,
        provenance: provenance(&period.source, period.date),
        service_provenance: provenance(&service.source, service.date),
    }
}

fn parse<T: DeserializeOwned>(place: &str, text: &str) -> Result<T, CatalogError> {
    toml::from_str(text).map_err(|error| data(place, error))
}

fn rows<T: DeserializeOwned>(place: &str, text: &str) -> Result<Vec<T>, CatalogError> {
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
    reader.deserialize().collect::<Result<_, _>>().map_err(|error| data(place, error))
}
