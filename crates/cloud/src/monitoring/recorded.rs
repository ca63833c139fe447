//! What the history has, as CloudWatch needs it: minutes of volumes and instances, and single values.

use std::collections::BTreeMap;
use std::ops::Range;

use ebbtide_control::{ControlError, Nanos, Stats, VolumeCounters, VolumeInterval};
use ebbtide_history::{
    Balances, GAUGE, GAUGE_LAYOUT, HistoryError, INSTANCE, NewPoint, Reading, Selector, SeriesKey, SeriesRow,
    Store, Tier, VOLUME, Value, VolumeMinute,
};

use super::instance_minute::InstanceMinute;
use super::inventory::{Attached, Gauge, Recorded, Running};
use super::metrics::Family;
use super::{MINUTE_MS, Monitoring};

/// Account and Region.
type Account<'a> = (&'a str, &'a str);

/// The families of metrics that a minute of a volume's type, or of an instance, has a value of, besides [`Family::All`].
pub(super) fn marks(kind: &str, minute: &VolumeMinute) -> Vec<&'static str> {
    let VolumeMinute { counters, balances } = minute;
    let has = if kind == INSTANCE {
        [(Family::IoCredits, balances.io.is_some()), (Family::ByteCredits, balances.bytes.is_some())].to_vec()
    } else {
        let is_burst = counters.credit_share.is_some() && Family::Burst.has(kind);
        let by_type = [Family::Provisioned, Family::Checked].map(|family| (family, family.has(kind)));
        [(Family::Burst, is_burst)].into_iter().chain(by_type).collect()
    };
    has.into_iter().filter(|(_, has)| *has).filter_map(|(family, _)| family.mark()).collect()
}

/// Whether a series has a value of a family since a minute.
pub(super) fn is_active(row: &SeriesRow, family: Family, since: u64) -> bool {
    match family.mark() {
        None => row.latest_minute >= since,
        Some(mark) => row.marks.get(mark).is_some_and(|latest| *latest >= since),
    }
}

fn key_of_volume(attached: &Attached) -> SeriesKey {
    let Attached { volume, owner, region, instance, .. } = attached;
    let labels = [("owner", owner), ("region", region), ("instance", instance), ("volume", volume)];
    SeriesKey::new(VOLUME, labels.map(|(name, value)| (name, value.clone())))
}

impl Monitoring {
    /// What attached volumes and running instances have counted. A volume that no instance has, has nothing but its name, under
    /// which the commands' own history finds it.
    pub(super) fn readings(&self, now_ms: u64) -> Result<Vec<Reading>, ControlError> {
        let attached = self.inventory.attached(now_ms);
        let counters = self.control.counters()?;
        let running = self.inventory.running(now_ms);
        let by_id = |counters: VolumeCounters| {
            (counters.id.clone().unwrap_or_else(|| counters.name.clone()), counters)
        };
        let mut by_id: BTreeMap<String, VolumeCounters> = counters.into_iter().map(by_id).collect();
        let mut left: BTreeMap<(String, String, String), Balances> = BTreeMap::new();
        let mut readings = Vec::with_capacity(attached.len() + running.len());
        for attached in attached {
            let Some(VolumeCounters { since, stats, instance, .. }) = by_id.remove(&attached.volume) else {
                continue;
            };
            let key = key_of_volume(&attached);
            let Attached { owner, region, instance: id, kind, .. } = attached;
            if let Some(balances) = instance {
                left.insert((owner, region, id), Balances { io: balances.io, bytes: balances.bytes });
            }
            readings.push(Reading { key, kind, since, stats, balances: None });
        }
        for Running { owner, region, instance } in running {
            let balances = left.remove(&(owner.clone(), region.clone(), instance.clone()));
            let key =
                SeriesKey::new(INSTANCE, [("owner", owner), ("region", region), ("instance", instance)]);
            // It counts time alone.
            let stats = Stats { at: Nanos(now_ms.saturating_mul(1_000_000)), ..Stats::default() };
            readings.push(Reading { key, kind: INSTANCE.to_owned(), since: Nanos::ZERO, stats, balances });
        }
        readings.extend(by_id.into_iter().map(|(id, VolumeCounters { name, since, stats, .. })| {
            let kind = self.inventory.recorded(&id, now_ms).map(|recorded| recorded.kind);
            Reading { kind: kind.unwrap_or_default(), ..Reading::of_volume(name, since, stats) }
        }));
        Ok(readings)
    }
}

/// The minutes of a volume, on one instance or on all, with its type in each. `recorded` adds those in which a command had it
/// attached.
pub(super) fn minutes(
    store: &Store,
    (owner, region): Account<'_>,
    (volume, recorded): (&str, Option<&Recorded>),
    instance: Option<&str>,
    minutes: Range<u64>,
) -> Result<BTreeMap<u64, (String, VolumeMinute)>, HistoryError> {
    let mut labels = vec![("volume", volume), ("owner", owner), ("region", region)];
    labels.extend(instance.map(|instance| ("instance", instance)));
    let mut found = store.volume_minutes(&labels, minutes.clone())?;
    let recorded = recorded.filter(|recorded| recorded.owner == owner && recorded.region == region);
    if let (None, Some(recorded)) = (instance, recorded) {
        let start = minutes.start.max(recorded.since_ms / MINUTE_MS);
        let key = SeriesKey::volume(recorded.name.clone());
        store.scan_key(Tier::Minute, &key, start..minutes.end.max(start), |point| {
            let minute = VolumeMinute::read(point.layout, point.values);
            // An instance and a command can have had it in one minute.
            let whole = found.get(&point.number).map_or(minute, |(_, earlier)| earlier.then(&minute));
            // A server without the endpoint does not record the type.
            let kind = if point.kind.is_empty() { recorded.kind.as_str() } else { point.kind };
            found.insert(point.number, (kind.to_owned(), whole));
        })?;
    }
    Ok(found)
}

/// The minutes of an instance, with all its volumes together. Volumes with Multi-Attach are of no instance.
pub(super) fn instance_minutes(
    store: &Store,
    (owner, region): Account<'_>,
    instance: &str,
    minutes: Range<u64>,
) -> Result<BTreeMap<u64, InstanceMinute>, HistoryError> {
    let mut found: BTreeMap<u64, (VolumeInterval, bool, Option<Balances>)> = BTreeMap::new();
    let labels = [("instance", instance), ("owner", owner), ("region", region)];
    store.scan(Tier::Minute, Selector { subject: None, labels: &labels }, minutes, |point| {
        let minute = VolumeMinute::read(point.layout, point.values);
        let (counters, is_stalled, balances) = found.entry(point.number).or_default();
        if point.kind == INSTANCE {
            *balances = Some(minute.balances);
        } else {
            *counters = counters.together(&minute.counters);
            *is_stalled |= minute.metrics().volume_stalled_io_check > 0;
        }
    })?;
    let whole = |(minute, (counters, is_stalled, balances))| {
        let volumes = VolumeMinute { counters, ..VolumeMinute::default() }.metrics();
        (minute, InstanceMinute { volumes, is_stalled, balances })
    };
    Ok(found.into_iter().map(whole).collect())
}

/// All volumes and instances of an account and Region that ever published, instances first, by their ids. `recorded` are its
/// volumes: a series of one that a command had attached has no label `instance`.
pub(super) fn series(
    store: &Store,
    (owner, region): Account<'_>,
    recorded: &[Recorded],
) -> Result<Vec<SeriesRow>, HistoryError> {
    let mut rows =
        store.series(Selector { subject: None, labels: &[("owner", owner), ("region", region)] })?;
    rows.retain(|row| row.key.subject() != GAUGE);
    rows.extend(named_series(store, recorded)?);
    rows.sort_by(|a, b| {
        let ids = |row: &SeriesRow| ["volume", "instance"].map(|name| row.key.label(name).map(str::to_owned));
        ids(a).cmp(&ids(b))
    });
    Ok(rows)
}

/// The series of volumes that are recorded under their names alone, with their ids in place of the names.
fn named_series(store: &Store, recorded: &[Recorded]) -> Result<Vec<SeriesRow>, HistoryError> {
    if recorded.is_empty() {
        return Ok(Vec::new());
    }
    let by_name: BTreeMap<&str, &Recorded> =
        recorded.iter().map(|recorded| (recorded.name.as_str(), recorded)).collect();
    let rows = store.series(Selector { subject: Some(VOLUME), labels: &[] })?.into_iter();
    let renamed = rows.filter(|row| row.key.label("owner").is_none()).filter_map(|row| {
        let recorded = by_name.get(row.key.label("volume")?)?;
        // Another volume of its name had it.
        if row.latest_minute < recorded.since_ms / MINUTE_MS {
            return None;
        }
        let labels = [("owner", &recorded.owner), ("region", &recorded.region), ("volume", &recorded.volume)];
        let key = SeriesKey::new(VOLUME, labels.map(|(name, value)| (name, value.clone())));
        // A server without the endpoint records no marks.
        let families = [Family::Burst, Family::Provisioned, Family::Checked];
        let marks = families.into_iter().filter(|family| family.has(&recorded.kind));
        let marks = marks.filter_map(|family| Some((family.mark()?.to_owned(), row.latest_minute)));
        Some(SeriesRow { key, latest_minute: row.latest_minute, marks: marks.collect() })
    });
    Ok(renamed.collect())
}

// ---- Metrics that are neither of volumes nor of instances -------------------------------------------------------------

/// Writes the values of a minute, all of them or none. One that is there already is replaced.
pub(super) fn write_gauges(store: &mut Store, minute: u64, gauges: &[Gauge]) -> Result<(), HistoryError> {
    let key = |gauge: &Gauge| {
        let Gauge { owner, region, metric, dimensions, .. } = gauge;
        let dimensions = joined(dimensions.iter().map(|(_, value)| value.as_str()));
        let labels = [
            ("owner", owner.clone()),
            ("region", region.clone()),
            ("metric", (*metric).to_owned()),
            ("dimensions", dimensions),
        ];
        SeriesKey::new(GAUGE, labels)
    };
    let keys: Vec<_> = gauges.iter().map(key).collect();
    let points = keys.iter().zip(gauges).map(|(key, gauge)| NewPoint {
        key,
        number: minute,
        kind: "",
        layout: &GAUGE_LAYOUT,
        values: vec![Some(Value::Real(gauge.value))],
        marks: Vec::new(),
    });
    store.write(Tier::Minute, &points.collect::<Vec<_>>())
}

/// The values of a metric with dimensions, by the minute.
pub(super) fn gauges(
    store: &Store,
    (owner, region): Account<'_>,
    metric: &str,
    dimensions: &[String],
    minutes: Range<u64>,
) -> Result<Vec<(u64, f64)>, HistoryError> {
    let dimensions = joined(dimensions.iter().map(String::as_str));
    let labels = [("dimensions", &*dimensions), ("metric", metric), ("owner", owner), ("region", region)];
    let mut found = Vec::new();
    store.scan(Tier::Minute, Selector { subject: Some(GAUGE), labels: &labels }, minutes, |point| {
        if let Some(Some(Value::Real(value))) = point.values.first() {
            found.push((point.number, *value));
        }
    })?;
    Ok(found)
}

/// The dimensions with which a metric has a value since a minute.
pub(super) fn gauge_series(
    store: &Store,
    (owner, region): Account<'_>,
    metric: &str,
    since: u64,
) -> Result<Vec<Vec<String>>, HistoryError> {
    let labels = [("metric", metric), ("owner", owner), ("region", region)];
    let rows = store.series(Selector { subject: Some(GAUGE), labels: &labels })?.into_iter();
    let active = rows.filter(|row| row.latest_minute >= since);
    let mut found: Vec<String> =
        active.map(|row| row.key.label("dimensions").unwrap_or_default().to_owned()).collect();
    found.sort_unstable();
    Ok(found.iter().map(|joined| joined.split('/').map(str::to_owned).collect()).collect())
}

/// The values of dimensions as one text; none of them has a slash.
fn joined<'a>(values: impl IntoIterator<Item = &'a str>) -> String {
    values.into_iter().collect::<Vec<_>>().join("/")
}
