//! The file of a home of before, of each of its versions.

use std::path::Path;

use super::*;
use crate::earlier::written;
use crate::key::Selector;
use crate::store::{Durability, Store, stored};
use crate::tier::Tier;

const OWNER: &str = "000000000000";
const HOUR: u64 = 500_000;

/// A file of before with a volume on an instance, an alarm, and minutes with so many writes: one that is not packed, and
/// where the version has them, packed ones of the hour before.
fn earlier(home: &Path, version: usize) {
    let versions = [
        include_str!("../sql/earlier-1.sql"),
        include_str!("../sql/earlier-2.sql"),
        include_str!("../sql/earlier-3.sql"),
    ];
    let dir = tempfile::tempdir().unwrap();
    let connection = Connection::open(dir.path().join(EARLIER_FILE)).unwrap();
    connection.pragma_update(None, "journal_mode", "WAL").unwrap();
    for sql in &versions[..version] {
        connection.execute_batch(sql).unwrap();
    }
    let sql = "INSERT INTO series (id, owner, region, volume, instance, latest, latest_checked) \
               VALUES (7, ?1, 'us-east-1', 'vol-1', 'i-1', ?2, ?2)";
    connection.execute(sql, params![OWNER, stored((HOUR + 1) * 60)]).unwrap();
    let sql = "INSERT INTO minutes (series, minute, kind, span, read_ops, read_bytes, read_time, write_ops, write_bytes, \
               write_time, consumed_ops, queue, queue_time, idle_time, volume_iops_exceeded, volume_throughput_exceeded, \
               instance_iops_exceeded, instance_throughput_exceeded, credit_share, iops_rate) \
               VALUES (7, ?1, 'gp2', 60000000000, 1, 2, 3, 9, 147456, 5400000, 10, 1, 6, 59000000000, 7, 8, 9, 10, 0.75, 300)";
    connection.execute(sql, [stored((HOUR + 1) * 60)]).unwrap();
    connection
        .execute_batch(
            "INSERT INTO alarms (owner, region, name, record) VALUES ('1', 'us-east-1', 'low', '{}')",
        )
        .unwrap();
    if version > 1 {
        let minutes =
            [(3, "gp2", minute()), (4, "gp3", VolumeMinute { balances: Balances::default(), ..minute() })];
        let sql = "INSERT INTO hours (series, hour, count, packed) VALUES (7, ?1, 2, ?2)";
        connection.execute(sql, params![stored(HOUR), written::pack(&minutes)]).unwrap();
        connection
            .execute_batch(
                "INSERT INTO gauge_series VALUES (3, '000000000000', 'us-east-1', 'SnapshotCopyBytesTransferred', 'eu-west-1', 30000061); \
                 INSERT INTO gauges VALUES (3, 30000060, 1.5); INSERT INTO gauges VALUES (3, 30000061, 4096.0);",
            )
            .unwrap();
    }
    // As after a kill: the file does not have what is in its log.
    for suffix in ["", "-wal"] {
        let name = format!("{EARLIER_FILE}{suffix}");
        fs::copy(dir.path().join(&name), home.join(&name)).unwrap();
    }
}

/// The minute of [`earlier`] that is not packed.
fn minute() -> VolumeMinute {
    let ops = |ops, bytes, time| OpStats { ops, bytes, time: Nanos(time) };
    let counters = Stats {
        at: Nanos::from_secs(60),
        read: ops(1, 2, 3),
        write: ops(9, 147_456, 5_400_000),
        consumed_ops: 10,
        queue: 1,
        queue_time: Nanos(6),
        idle_time: Nanos::from_secs(59),
        volume_iops_exceeded: Nanos(7),
        volume_throughput_exceeded: Nanos(8),
        instance_iops_exceeded: Nanos(9),
        instance_throughput_exceeded: Nanos(10),
        credit_share: Some(0.75),
        iops_rate: Some(300),
        ..Stats::default()
    };
    VolumeMinute { counters: VolumeInterval::of_growth(counters), ..VolumeMinute::default() }
}

fn open(home: &Path) -> Store {
    Store::open(home, Durability::Disk, u64::MAX).unwrap()
}

#[test]
fn a_file_of_each_earlier_version_keeps_its_minutes() {
    for version in 1..=3 {
        let dir = tempfile::tempdir().unwrap();
        earlier(dir.path(), version);
        // Made before SQLite opens it.
        fs::write(dir.path().join(FILE), "").unwrap();
        for _ in 0..2 {
            let mut store = open(dir.path());
            assert!(!dir.path().join(EARLIER_FILE).exists(), "version {version}");
            let minutes = (HOUR * 60)..(HOUR + 2) * 60;
            let labels =
                [("volume", "vol-1"), ("owner", OWNER), ("region", "us-east-1"), ("instance", "i-1")];
            let found: Vec<_> = store.volume_minutes(&labels, minutes.clone()).unwrap().into_iter().collect();
            let single = ((HOUR + 1) * 60, ("gp2".to_owned(), minute()));
            let packed = [
                (HOUR * 60 + 3, ("gp2".to_owned(), minute())),
                (HOUR * 60 + 4, ("gp3".to_owned(), minute())),
            ];
            let all = if version > 1 { packed.into_iter().chain([single]).collect() } else { vec![single] };
            assert_eq!(found, all, "version {version}");
            let mut gauges = Vec::new();
            let copied =
                Selector { subject: Some(GAUGE), labels: &[("metric", "SnapshotCopyBytesTransferred")] };
            let visit = |point: crate::Scanned<'_>| gauges.push((point.number, point.values.to_vec()));
            store.scan(Tier::Minute, copied, minutes, visit).unwrap();
            let value = |value| vec![Some(Value::Real(value))];
            let all = [(30_000_060, value(1.5)), (30_000_061, value(4_096.0))];
            assert_eq!(gauges, if version > 1 { all.to_vec() } else { Vec::new() });
            let series = store.series(Selector { subject: Some(VOLUME), labels: &labels }).unwrap();
            assert_eq!(series[0].marks, [("checked".to_owned(), (HOUR + 1) * 60)].into());
            // Both kinds of chunks are packed and pruned like new ones.
            while store.pack(Tier::Minute, (HOUR + 4) * 3_600_000, 10).unwrap() > 0 {}
        }
        let connection = Connection::open(dir.path().join(FILE)).unwrap();
        let count = |sql: &str| connection.query_row(sql, (), |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(count("SELECT count(*) FROM alarms"), 1, "CloudWatch fetches it");
        assert_eq!(count("SELECT count(*) FROM minutes"), 0);
        drop(connection);
        open(dir.path())
            .prune(Tier::Minute, (HOUR + 4) * 3_600_000 + Tier::Minute.kept() * 60_000, &[VOLUME, INSTANCE])
            .unwrap();
        assert!(open(dir.path()).series(Selector::default()).unwrap().is_empty());
    }
}

#[test]
fn a_history_is_not_replaced_by_a_file_of_before_and_alarms_alone_are_none() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    earlier(dir.path(), 3);
    assert!(open(dir.path()).series(Selector::default()).unwrap().is_empty());
    assert!(dir.path().join(EARLIER_FILE).exists());

    let dir = tempfile::tempdir().unwrap();
    Connection::open(dir.path().join(EARLIER_FILE))
        .unwrap()
        .pragma_update(None, "user_version", FIRST_OWN)
        .unwrap();
    drop(open(dir.path()));
    assert!(dir.path().join(EARLIER_FILE).exists());
}

#[test]
fn a_file_of_a_later_version_is_refused_and_a_new_one_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    let mode = fs::metadata(dir.path().join(FILE)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    Connection::open(dir.path().join(FILE))
        .unwrap()
        .pragma_update(None, "user_version", VERSION + 1)
        .unwrap();
    let refused = Store::open(dir.path(), Durability::Disk, u64::MAX).unwrap_err().to_string();
    assert_eq!(refused, "history.db has version 6, 5 is known; use the program that wrote it");
}

#[test]
fn a_history_without_seconds_and_hours_gets_their_tables_and_keeps_its_minutes() {
    let dir = tempfile::tempdir().unwrap();
    let key = SeriesKey::volume("v1".to_owned());
    let point = |number| crate::NewPoint {
        key: &key,
        number,
        kind: "gp2",
        layout: &LAYOUT,
        values: minute().values(),
        marks: Vec::new(),
    };
    open(dir.path()).write(Tier::Minute, &[point(HOUR * 60)]).unwrap();
    // As the version before wrote it.
    let connection = Connection::open(dir.path().join(FILE)).unwrap();
    connection
        .execute_batch(
            "DROP TABLE seconds; DROP TABLE second_chunks; DROP TABLE hours; DROP TABLE hour_chunks; PRAGMA user_version = 4",
        )
        .unwrap();
    drop(connection);
    let mut store = open(dir.path());
    for tier in Tier::ALL {
        store.write(tier, &[point(HOUR * 3_600 / tier.seconds())]).unwrap();
        let mut count = 0;
        store.scan_key(tier, &key, 0..u64::MAX / 2, |_| count += 1).unwrap();
        assert_eq!(count, 1, "{tier:?}");
    }
}
