//! What is drawn and replayed of points that were written.

use super::*;
use crate::key::DEVICE;
use crate::layout::Number;
use crate::store::{Durability, NewPoint};

/// The first second of an hour.
const FIRST: u64 = 497_000 * 3_600;

fn open() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Durability::Process, u64::MAX).unwrap();
    (dir, store)
}

fn key(device: &str) -> SeriesKey {
    SeriesKey::new(DEVICE, [("device", device.to_owned())])
}

fn layout() -> Layout {
    Layout::new([
        (SPAN, Aggregate::Sum, Number::Whole),
        ("reads", Aggregate::Sum, Number::Whole),
        ("queue", Aggregate::Latest, Number::Real),
    ])
}

/// Points of a second each with so many reads, and of a queue that is as long.
fn write(store: &mut Store, device: &str, points: &[(u64, u64)]) {
    let (key, layout) = (key(device), layout());
    let points = points.iter().map(|(number, reads)| NewPoint {
        key: &key,
        number: *number,
        kind: "nvme",
        layout: &layout,
        values: vec![
            Some(Value::Whole(1_000_000_000)),
            Some(Value::Whole(*reads)),
            Some(Value::Real(*reads as f64)),
        ],
        marks: Vec::new(),
    });
    store.write(Tier::Second, &points.collect::<Vec<_>>()).unwrap();
}

const FIGURES: [(&str, Figure); 4] = [
    ("reads", Figure::Rate),
    ("queue", Figure::Mean),
    ("queue", Figure::Maximum),
    ("none such", Figure::Rate),
];

#[test]
fn a_gap_has_no_value_and_one_late_second_is_no_gap() {
    let (_dir, mut store) = open();
    write(&mut store, "sda", &[(FIRST, 5), (FIRST + 1, 0), (FIRST + 3, 7), (FIRST + 10, 9)]);
    let span = FIRST * 1_000..(FIRST + 60) * 1_000;
    let lines = store.lines(Tier::Second, &key("sda"), &FIGURES, &span).unwrap();
    let seconds: Vec<_> = lines.start_ms.iter().map(|ms| ms / 1_000 - FIRST).collect();
    assert_eq!(seconds, [0, 1, 3, 4, 10], "a break begins with the second behind the last point");
    assert_eq!(lines.values[0], [Some(5.0), Some(0.0), Some(7.0), None, Some(9.0)]);
    assert_eq!((&lines.values[1], &lines.values[2]), (&lines.values[0], &lines.values[0]));
    assert_eq!(lines.values[3], [None; 5]);
    // Those that begin in the span.
    let part = (FIRST * 1_000 + 1)..(FIRST + 3) * 1_000;
    assert_eq!(store.lines(Tier::Second, &key("sda"), &FIGURES, &part).unwrap().values[0], [Some(0.0)]);
    assert_eq!(store.lines(Tier::Second, &key("sdb"), &FIGURES, &span).unwrap().start_ms, [0; 0]);
}

#[test]
fn minutes_draw_the_mean_and_the_extremes_of_their_seconds_and_rates_by_the_time_they_cover() {
    let (_dir, mut store) = open();
    // Half of the first minute alone was recorded.
    let seconds: Vec<_> = (30..120).map(|second| (FIRST + second, second)).collect();
    write(&mut store, "sda", &seconds);
    let minute = FIRST / 60;
    assert_eq!(store.roll_up(Tier::Second, Selector::default(), minute..minute + 5).unwrap(), 2);
    let span = FIRST * 1_000..(FIRST + 600) * 1_000;
    let lines = store.lines(Tier::Minute, &key("sda"), &FIGURES, &span).unwrap();
    assert_eq!(lines.start_ms, [minute, minute + 1].map(|minute| minute * 60_000));
    assert_eq!(lines.values[0], [Some(44.5), Some(89.5)]);
    assert_eq!(lines.values[1], lines.values[0]);
    assert_eq!(lines.values[2], [Some(59.0), Some(119.0)]);
    let least = store.lines(Tier::Minute, &key("sda"), &[("queue", Figure::Minimum)], &span).unwrap();
    assert_eq!(least.values[0], [Some(30.0), Some(60.0)]);
}

#[test]
fn a_replay_visits_all_series_of_an_interval_together_in_order() {
    let (_dir, mut store) = open();
    write(&mut store, "sda", &[(FIRST + 58, 1), (FIRST + 61, 2)]);
    write(&mut store, "sdb", &[(FIRST + 61, 3), (FIRST + 500, 4)]);
    let mut seen = Vec::new();
    let span = FIRST * 1_000..(FIRST + 500) * 1_000;
    store
        .replay(Tier::Second, Selector { subject: Some(DEVICE), labels: &[] }, &span, |start_ms, points| {
            let reads = points.iter().map(|point| {
                assert_eq!((point.kind.as_str(), &*point.layout), ("nvme", &layout()));
                (point.key.label("device").unwrap().to_owned(), point.values[1])
            });
            seen.push((start_ms / 1_000 - FIRST, reads.collect::<Vec<_>>()));
        })
        .unwrap();
    let point = |device: &str, reads| (device.to_owned(), Some(Value::Whole(reads)));
    assert_eq!(seen, [(58, vec![point("sda", 1)]), (61, vec![point("sda", 2), point("sdb", 3)])]);
}
