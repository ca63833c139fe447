//! Minutes of counters that grow, over restarts and attachments. Cloud's tests do the same with volumes of the model.

use std::path::Path;

use ebbtide_volume::OpStats;

use super::*;
use crate::history::{History, Options};
use crate::key::VOLUME;
use crate::store::Durability;

const START_MS: u64 = 1_790_000_100_000;
const START: u64 = START_MS / MINUTE_MS;

fn history(home: &Path) -> History {
    History::open(home, Options { durability: Durability::Disk, ..Options::default() }).unwrap()
}

/// What a volume has counted that writes ten times a second since an attachment.
fn reading(since_ms: u64, now_ms: u64) -> Reading {
    let ops = (now_ms - since_ms) / 100;
    let write = OpStats { ops, bytes: ops << 14, time: Nanos(ops * 600_000) };
    let stats = Stats { at: Nanos(now_ms * 1_000_000), write, ..Stats::default() };
    let key = SeriesKey::volume("db".to_owned());
    Reading { key, kind: "gp3".to_owned(), since: Nanos(since_ms * 1_000_000), stats, balances: None }
}

/// Seconds of a volume that is attached since a time.
fn pass(history: &History, since_ms: u64, seconds: std::ops::RangeInclusive<u64>) {
    for second in seconds {
        let now_ms = START_MS + second * 1_000;
        history.record(now_ms, vec![reading(since_ms, now_ms)]).unwrap();
        history.keep_up(now_ms).unwrap();
    }
}

/// The writes of the first minutes that have any.
fn writes(history: &History) -> Vec<(u64, u64)> {
    let minutes = history.store().volume_minutes(&[("volume", "db")], START..START + 10).unwrap();
    minutes.into_iter().map(|(minute, (_, counted))| (minute - START, counted.counters.write.ops)).collect()
}

#[test]
fn a_minute_is_there_once_it_has_ended_and_after_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let first = history(dir.path());
    pass(&first, START_MS, 0..=59);
    assert_eq!(writes(&first), []);
    pass(&first, START_MS, 60..=90);
    assert_eq!(writes(&first), [(0, 600)]);
    // Nothing is closed: the half minute is lost, and what comes after adds to the rest of it.
    drop(first);
    let second = history(dir.path());
    assert_eq!(writes(&second), [(0, 600)]);
    pass(&second, START_MS + 100_000, 100..=125);
    assert_eq!(writes(&second), [(0, 600), (1, 200)]);
}

#[test]
fn a_minute_that_was_published_goes_on_in_the_next_process_and_is_counted_once() {
    let dir = tempfile::tempdir().unwrap();
    let first = history(dir.path());
    pass(&first, START_MS, 0..=20);
    first.publish().unwrap();
    assert_eq!(writes(&first), [(0, 200)]);
    pass(&first, START_MS, 21..=30);
    first.publish().unwrap();
    drop(first);
    let second = history(dir.path());
    assert_eq!(writes(&second), [(0, 300)]);
    pass(&second, START_MS + 40_000, 40..=70);
    assert_eq!(writes(&second), [(0, 500)]);
}

#[test]
fn an_attachment_within_a_minute_adds_to_the_one_before() {
    let dir = tempfile::tempdir().unwrap();
    let history = history(dir.path());
    pass(&history, START_MS, 0..=20);
    pass(&history, START_MS + 25_000, 25..=70);
    assert_eq!(writes(&history), [(0, 550)]);
}

#[test]
fn a_series_with_more_labels_is_not_taken_for_the_one_that_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let key = SeriesKey::new(VOLUME, [("volume", "db".to_owned()), ("instance", "i-1".to_owned())]);
    let first = history(dir.path());
    for second in 0..=20 {
        let now_ms = START_MS + second * 1_000;
        first.record(now_ms, vec![Reading { key: key.clone(), ..reading(START_MS, now_ms) }]).unwrap();
    }
    first.publish().unwrap();
    drop(first);
    let second = history(dir.path());
    pass(&second, START_MS + 40_000, 40..=70);
    let store = second.store();
    let mut own = 0;
    store
        .scan_key(Tier::Minute, &SeriesKey::volume("db".to_owned()), START..START + 1, |point| {
            own = VolumeMinute::read(point.layout, point.values).counters.write.ops;
        })
        .unwrap();
    assert_eq!(own, 200);
    let both = store.volume_minutes(&[("volume", "db")], START..START + 1).unwrap();
    assert_eq!(both[&START].1.counters.write.ops, 400);
}

#[test]
fn a_minute_without_a_volume_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let history = history(dir.path());
    for second in 0..200 {
        history.record(START_MS + second * 1_000, Vec::new()).unwrap();
        history.keep_up(START_MS + second * 1_000).unwrap();
    }
    history.publish().unwrap();
    assert_eq!(history.store().series(crate::Selector::default()).unwrap(), []);
}

#[test]
fn a_recorder_that_follows_another_in_one_process_counts_an_attachment_from_its_first_reading() {
    let dir = tempfile::tempdir().unwrap();
    let first = history(dir.path());
    pass(&first, START_MS, 0..=30);
    first.publish().unwrap();
    drop(first);
    // The volume stays attached meanwhile.
    let began_ms = START_MS + 30_500;
    let options = Options { durability: Durability::Disk, began_ms, ..Options::default() };
    let second = History::open(dir.path(), options).unwrap();
    pass(&second, START_MS, 31..=60);
    // The second between both is nobody's.
    assert_eq!(writes(&second), [(0, 590)]);
    // What is attached later is counted from its beginning.
    pass(&second, START_MS + 70_000, 71..=125);
    assert_eq!(writes(&second)[1], (1, 500));
}
