//! Points are there until they are replaced or too old, packed or not.

use std::time::{Duration, Instant};

use ebbtide_volume::{Nanos, OpStats, Stats, VolumeInterval};

use super::*;
use crate::key::{SERVER, VOLUME};
use crate::layout::{Aggregate, Number};
use crate::volume::{LAYOUT, VolumeMinute};

const HOUR: u64 = 60;
/// The first minute of an hour.
const FIRST: u64 = 500_000 * HOUR;

fn open(most: u64) -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Durability::Process, most).unwrap();
    (dir, store)
}

fn key(volume: &str, instance: &str) -> SeriesKey {
    let labels = [("volume", volume), ("instance", instance), ("owner", "1")];
    SeriesKey::new(VOLUME, labels.map(|(name, value)| (name, value.to_owned())))
}

/// A counter, and a gauge with a minimum that is there in each third minute.
fn layout() -> Layout {
    Layout::new([("ops", Aggregate::Sum, Number::Whole), ("least", Aggregate::Minimum, Number::Real)])
}

fn values(number: u64, ops: u64) -> Vec<Option<Value>> {
    let least = number.is_multiple_of(3).then_some(Value::Real(0.25));
    vec![Some(Value::Whole(ops)), least]
}

fn write(store: &mut Store, key: &SeriesKey, points: impl IntoIterator<Item = (u64, u64)>) {
    let layout = layout();
    let point = |(number, ops)| NewPoint {
        key,
        number,
        kind: "gp3",
        layout: &layout,
        values: values(number, ops),
        marks: if ops > 0 { vec!["busy"] } else { Vec::new() },
    };
    store.write(Tier::Minute, &points.into_iter().map(point).collect::<Vec<_>>()).unwrap();
}

/// The numbers of minutes with their operations.
fn ops(store: &Store, labels: &[(&str, &str)], minutes: Range<u64>) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    store
        .scan(Tier::Minute, Selector { subject: Some(VOLUME), labels }, minutes, |point| {
            let Some(Value::Whole(ops)) = point.values[0] else { panic!("{point:?}") };
            assert_eq!((point.kind, point.values), ("gp3", values(point.number, ops).as_slice()));
            found.push((point.number, ops));
        })
        .unwrap();
    found
}

const V1: &[(&str, &str)] = &[("volume", "v1")];

#[test]
fn a_point_that_is_written_after_its_hour_is_packed_replaces_it() {
    let (_dir, mut store) = open(u64::MAX);
    let key = key("v1", "i1");
    write(&mut store, &key, [(FIRST, 1), (FIRST + 1, 2), (FIRST + 3, 4)]);
    assert_eq!(
        store.pack(Tier::Minute, (FIRST + HOUR) * 60_000, 10).unwrap(),
        0,
        "an hour later it may still change"
    );
    let now_ms = (FIRST + 2 * HOUR) * 60_000;
    assert_eq!(store.pack(Tier::Minute, now_ms, 10).unwrap(), 1);
    write(&mut store, &key, [(FIRST + 1, 5), (FIRST + 2, 7), (FIRST + 4, 8)]);
    let all = [(FIRST, 1), (FIRST + 1, 5), (FIRST + 2, 7), (FIRST + 3, 4), (FIRST + 4, 8)];
    assert_eq!(ops(&store, V1, FIRST..FIRST + HOUR), all);
    assert_eq!(store.pack(Tier::Minute, now_ms, 10).unwrap(), 1);
    assert_eq!(ops(&store, V1, FIRST..FIRST + HOUR), all);
    assert_eq!(ops(&store, V1, FIRST + 1..FIRST + 2), all[1..2], "the end is exclusive");
    assert_eq!(store.pack(Tier::Minute, now_ms, 10).unwrap(), 0);
}

#[test]
fn series_are_found_by_any_of_their_labels_and_their_subject() {
    let (_dir, mut store) = open(u64::MAX);
    write(&mut store, &key("v1", "i1"), [(FIRST, 1)]);
    write(&mut store, &key("v1", "i2"), [(FIRST + 1, 0)]);
    write(&mut store, &key("v2", "i1"), [(FIRST, 3)]);
    write(&mut store, &SeriesKey::volume("v1".to_owned()), [(FIRST, 4)]);
    let found = |labels: &[(&str, &str)]| ops(&store, labels, FIRST..FIRST + 2);
    assert_eq!(found(&[("volume", "v1"), ("owner", "1")]), [(FIRST, 1), (FIRST + 1, 0)]);
    assert_eq!(found(&[("instance", "i1")]), [(FIRST, 1), (FIRST, 3)]);
    assert_eq!(found(&[("owner", "1"), ("volume", "v2"), ("instance", "i1")]), [(FIRST, 3)]);
    assert_eq!(found(&[("volume", "v1")]).len(), 3);
    assert_eq!(found(&[]).len(), 4);
    assert_eq!(found(&[("volume", "v2"), ("instance", "i2")]), []);
    let of_another = Selector { subject: Some("server"), labels: V1 };
    assert_eq!(store.series(of_another).unwrap(), []);

    // The series of the name alone is another one.
    let mut single = Vec::new();
    let name_alone = SeriesKey::volume("v1".to_owned());
    store.scan_key(Tier::Minute, &name_alone, FIRST..FIRST + 2, |point| single.push(point.number)).unwrap();
    assert_eq!(single, [FIRST]);

    let rows = store.series(Selector { subject: None, labels: &[("instance", "i2")] }).unwrap();
    assert_eq!((&rows[0].key, rows[0].latest_minute), (&key("v1", "i2"), FIRST + 1));
    assert!(rows[0].marks.is_empty());
    write(&mut store, &key("v1", "i2"), [(FIRST + 7, 1), (FIRST + 9, 0)]);
    let rows = store.series(Selector { subject: None, labels: &[("instance", "i2")] }).unwrap();
    assert_eq!(
        (rows[0].latest_minute, &rows[0].marks),
        (FIRST + 9, &[("busy".to_owned(), FIRST + 7)].into())
    );
}

#[test]
fn points_of_two_layouts_in_one_hour_are_packed_in_the_later_one() {
    let (dir, mut store) = open(u64::MAX);
    let key = key("v1", "i1");
    write(&mut store, &key, [(FIRST, 1)]);
    let more = Layout::new([
        ("ops", Aggregate::Sum, Number::Whole),
        ("reads", Aggregate::Sum, Number::Whole),
        ("least", Aggregate::Minimum, Number::Real),
    ]);
    let later = NewPoint {
        key: &key,
        number: FIRST + 1,
        kind: "gp3",
        layout: &more,
        values: vec![Some(Value::Whole(2)), Some(Value::Whole(3)), None],
        marks: Vec::new(),
    };
    store.write(Tier::Minute, &[later]).unwrap();
    assert_eq!(store.pack(Tier::Minute, (FIRST + 2 * HOUR) * 60_000, 10).unwrap(), 1);
    drop(store);
    let store = Store::open(dir.path(), Durability::Disk, u64::MAX).unwrap();
    let mut found = Vec::new();
    store
        .scan_key(Tier::Minute, &key, FIRST..FIRST + HOUR, |point| {
            assert_eq!(*point.layout, more);
            found.push(point.values.to_vec());
        })
        .unwrap();
    let whole = |number| Some(Value::Whole(number));
    // 500,000 hours are a multiple of three minutes: the first point has the minimum.
    assert_eq!(found, [vec![whole(1), None, Some(Value::Real(0.25))], vec![whole(2), whole(3), None]]);
}

#[test]
fn beyond_the_bound_the_oldest_hours_go_first_packed_or_not() {
    let (_dir, mut store) = open(150);
    let end = FIRST + 4 * HOUR;
    write(&mut store, &key("v1", "i1"), (FIRST..end).map(|minute| (minute, minute)));
    let now_ms = end * 60_000;
    while store.pack(Tier::Minute, now_ms, 10).unwrap() > 0 {}
    store.prune(Tier::Minute, now_ms, &[VOLUME]).unwrap();
    // Three hours are packed. With the one that is not, two have room.
    let left = ops(&store, V1, FIRST..end);
    assert_eq!((left.len(), left[0].0), (120, end - 2 * HOUR));
    store.most = 50;
    store.prune(Tier::Minute, now_ms, &[VOLUME]).unwrap();
    assert_eq!(ops(&store, V1, FIRST..end)[0].0, end - 50);
}

#[test]
fn what_is_too_much_of_one_subject_deletes_nothing_of_another() {
    let (_dir, mut store) = open(150);
    let end = FIRST + 4 * HOUR;
    write(&mut store, &key("v1", "i1"), (FIRST..end).map(|minute| (minute, minute)));
    let server = SeriesKey::new(SERVER, [("server", "db".to_owned())]);
    write(&mut store, &server, (FIRST..end).map(|minute| (minute, minute)));
    let now_ms = end * 60_000;
    while store.pack(Tier::Minute, now_ms, 10).unwrap() > 0 {}
    let minutes = |store: &Store, key: &SeriesKey| {
        let mut count = 0;
        store.scan_key(Tier::Minute, key, FIRST..end, |_| count += 1).unwrap();
        count
    };
    store.prune(Tier::Minute, now_ms, &[SERVER]).unwrap();
    assert_eq!((minutes(&store, &server), minutes(&store, &key("v1", "i1"))), (120, 240));
    store.most = 50;
    store.prune(Tier::Minute, now_ms, &[SERVER]).unwrap();
    assert_eq!((minutes(&store, &server), minutes(&store, &key("v1", "i1"))), (50, 240));
}

#[test]
fn series_that_have_ended_are_not_added_up() {
    let (_dir, mut store) = open(u64::MAX);
    write(&mut store, &key("v1", "i1"), [(FIRST, 1)]);
    write(&mut store, &key("v2", "i1"), [(FIRST + HOUR, 1)]);
    let selector = Selector { subject: Some(VOLUME), labels: &[] };
    assert_eq!(store.series_since(selector, FIRST + 1).unwrap().len(), 1);
    assert_eq!(store.live_series(&[VOLUME], FIRST + 1).unwrap(), 1);
    assert_eq!(store.live_series(&[SERVER], FIRST).unwrap(), 0);
    assert_eq!(store.roll_up(Tier::Minute, selector, FIRST / HOUR..FIRST / HOUR + 2).unwrap(), 2);
}

#[test]
fn after_15_days_packed_hours_and_their_series_go() {
    let (_dir, mut store) = open(u64::MAX);
    write(&mut store, &key("v1", "i1"), (FIRST..FIRST + HOUR).map(|minute| (minute, 1)));
    store.pack(Tier::Minute, (FIRST + 2 * HOUR) * 60_000, 10).unwrap();
    store.prune(Tier::Minute, (FIRST + HOUR - 1 + Tier::Minute.kept()) * 60_000, &[VOLUME]).unwrap();
    assert_eq!(store.series(Selector::default()).unwrap().len(), 1);
    store.prune(Tier::Minute, (FIRST + HOUR + Tier::Minute.kept()) * 60_000, &[VOLUME]).unwrap();
    assert!(store.series(Selector::default()).unwrap().is_empty());
    assert!(ops(&store, V1, FIRST..FIRST + HOUR).is_empty());
    let labels: i64 =
        store.connection.query_row("SELECT count(*) FROM labels", (), |row| row.get(0)).unwrap();
    assert_eq!(labels, 0);
}

#[test]
fn a_series_stays_as_long_as_a_tier_has_points_of_it() {
    let (_dir, mut store) = open(u64::MAX);
    let (key, layout) = (key("v1", "i1"), layout());
    for tier in Tier::ALL {
        let number = tier.number(FIRST * 60_000);
        let values = values(number, 1);
        let point = NewPoint { key: &key, number, kind: "gp3", layout: &layout, values, marks: Vec::new() };
        store.write(tier, &[point]).unwrap();
    }
    let after = |tier: Tier| FIRST * 60_000 + (tier.kept() + 3_600) * tier.seconds() * 1_000;
    for tier in [Tier::Second, Tier::Minute] {
        store.prune(tier, after(tier), &[VOLUME]).unwrap();
        assert_eq!(store.series(Selector::default()).unwrap().len(), 1, "{tier:?}");
    }
    store.prune(Tier::Hour, after(Tier::Hour), &[VOLUME]).unwrap();
    assert!(store.series(Selector::default()).unwrap().is_empty());
}

#[test]
fn a_chunk_that_cannot_be_read_does_not_hold_up_the_later_ones() {
    let (_dir, mut store) = open(u64::MAX);
    write(&mut store, &key("v1", "i1"), [(FIRST, 1), (FIRST + HOUR, 2)]);
    let sql = "UPDATE minutes SET packed = x'ff' WHERE number = ?1";
    assert_eq!(store.connection.execute(sql, [stored(FIRST)]).unwrap(), 1);
    let now_ms = (FIRST + 4 * HOUR) * 60_000;
    while store.pack(Tier::Minute, now_ms, 10).unwrap() > 0 {}
    assert_eq!(ops(&store, V1, FIRST..FIRST + 2 * HOUR), [(FIRST + HOUR, 2)]);
}

#[test]
#[ignore = "a measurement: an hour of 10,000 volumes"]
fn an_hour_of_10_000_volumes_is_packed_fast() {
    let (dir, mut store) = open(u64::MAX);
    let keys: Vec<_> = (0..10_000_u64).map(|number| key(&format!("vol-{number:017x}"), "i-1")).collect();
    let begun = Instant::now();
    for number in FIRST..FIRST + HOUR {
        // Of ten volumes, nine are idle.
        let ops = |volume: u64| {
            if volume.is_multiple_of(10) { 50_000 + (number * 7_919 + volume) % 9_000 } else { 0 }
        };
        let points = (0..).zip(&keys).map(|(volume, key)| {
            let write =
                OpStats { ops: ops(volume), bytes: ops(volume) << 14, time: Nanos(ops(volume) * 612_345) };
            let idle_time = Nanos(60_000_000_000 / (ops(volume) + 1));
            let counters = Stats { at: Nanos::from_secs(60), write, idle_time, ..Stats::default() };
            let values =
                VolumeMinute { counters: VolumeInterval::of_growth(counters), ..VolumeMinute::default() }
                    .values();
            NewPoint { key, number, kind: "gp3", layout: &LAYOUT, values, marks: vec!["checked"] }
        });
        store.write(Tier::Minute, &points.collect::<Vec<_>>()).unwrap();
    }
    let size = |store: &Store| {
        store.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(())).unwrap();
        dir.path().join(FILE).metadata().unwrap().len()
    };
    println!("a minute is written in {:?}; the file has {} bytes", begun.elapsed() / 60, size(&store));
    let (mut calls, mut longest) = (0, Duration::ZERO);
    let whole = Instant::now();
    loop {
        let begun = Instant::now();
        if store.pack(Tier::Minute, (FIRST + 2 * HOUR) * 60_000, 200).unwrap() == 0 {
            break;
        }
        (calls, longest) = (calls + 1, longest.max(begun.elapsed()));
    }
    let sql = "SELECT sum(length(packed)) FROM minute_chunks";
    let packed: i64 = store.connection.query_row(sql, (), |row| row.get(0)).unwrap();
    println!("{calls} calls in {:?}, longest {longest:?}, {packed} bytes", whole.elapsed());
    let begun = Instant::now();
    store.prune(Tier::Minute, (FIRST + 2 * HOUR) * 60_000, &[VOLUME]).unwrap();
    println!("pruned in {:?}; the file has {} bytes", begun.elapsed(), size(&store));
    assert_eq!(calls, 50);
}

#[test]
fn a_file_that_is_only_read_is_neither_made_nor_brought_up_nor_written() {
    let nothing = tempfile::tempdir().unwrap();
    assert!(Store::open_read_only(nothing.path()).is_err());
    assert!(!nothing.path().join(FILE).exists());

    let (dir, mut store) = open(1_000);
    write(&mut store, &key("db", "i"), [(FIRST, 5)]);
    let mut reader = Store::open_read_only(dir.path()).unwrap();
    assert_eq!(ops(&reader, &[("volume", "db")], FIRST..FIRST + 1), [(FIRST, 5)]);
    assert!(reader.prune(Tier::Minute, FIRST * 60_000, &[]).is_err());

    store.connection.pragma_update(None, "user_version", 4).unwrap();
    let error = Store::open_read_only(dir.path()).unwrap_err().to_string();
    assert!(error.contains("has version 4, and 5 is read") && error.contains("ebbtide watch"), "{error}");
    let version: i64 = store.connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(version, 4, "it was not brought up");
}
