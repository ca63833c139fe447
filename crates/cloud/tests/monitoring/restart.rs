//! What a restart and a kill leave.

use ebbtide_volume::Op;

use crate::support::Rig;

const DB: &str = "vol-00000000000000001";

#[test]
fn a_minute_that_was_answered_is_there_after_a_kill() {
    let rig = Rig::new();
    rig.attach(DB, "gp3:size=100GiB");
    rig.drive(DB, 90, (Op::Write, 16, 10));
    assert_eq!(rig.minutes::<2>(DB, "VolumeWriteOps", "Sum"), [Some(600.0), None]);
    let rig = rig.restarted();
    assert_eq!(rig.minutes::<2>(DB, "VolumeWriteOps", "Sum"), [Some(600.0), None]);
    // The rest of the minute in which it was killed has what was counted since.
    rig.attach(DB, "gp3:size=100GiB");
    rig.drive(DB, 90, (Op::Write, 16, 5));
    assert_eq!(rig.minutes::<3>(DB, "VolumeWriteOps", "Sum"), [Some(600.0), Some(150.0), Some(300.0)]);
}

#[test]
fn a_minute_that_was_shown_before_a_kill_goes_on_and_is_counted_once() {
    let rig = Rig::instant();
    rig.attach(DB, "gp3:size=100GiB");
    rig.drive(DB, 20, (Op::Write, 16, 10));
    assert_eq!(rig.minutes::<1>(DB, "VolumeWriteOps", "Sum"), [Some(200.0)]);
    rig.drive(DB, 10, (Op::Write, 16, 10));
    assert_eq!(rig.minutes::<1>(DB, "VolumeWriteOps", "Sum"), [Some(300.0)]);
    let rig = rig.restarted();
    assert_eq!(rig.minutes::<1>(DB, "VolumeWriteOps", "Sum"), [Some(300.0)]);
    rig.attach(DB, "gp3:size=100GiB");
    rig.drive(DB, 10, (Op::Write, 16, 10));
    assert_eq!(rig.minutes::<1>(DB, "VolumeWriteOps", "Sum"), [Some(400.0)]);
    rig.drive(DB, 30, (Op::Write, 16, 10));
    assert_eq!(rig.minutes::<2>(DB, "VolumeWriteOps", "Sum"), [Some(600.0), Some(100.0)]);
    let idle = rig.minutes::<1>(DB, "VolumeIdleTime", "Sum")[0].unwrap();
    assert!((55.0..=60.0).contains(&idle), "{idle}");
}

#[test]
fn an_orderly_end_keeps_the_minute_that_has_begun() {
    let rig = Rig::new();
    rig.attach(DB, "gp3:size=100GiB");
    rig.drive(DB, 30, (Op::Write, 16, 10));
    // Volumes may be gone before the service ends.
    rig.volumes.is_stopping.store(true, std::sync::atomic::Ordering::Relaxed);
    rig.service.close(rig.now_ms()).unwrap();
    let rig = rig.restarted();
    rig.attach(DB, "gp3:size=100GiB");
    rig.drive(DB, 30, (Op::Write, 16, 10));
    assert_eq!(rig.minutes::<1>(DB, "VolumeWriteOps", "Sum"), [Some(600.0)]);
}

#[test]
fn minutes_of_past_hours_are_the_same_after_they_are_packed() {
    let rig = Rig::new();
    rig.attach(DB, "gp2:size=100GiB");
    for number in 0..3_u64 {
        rig.drive(DB, 60, (Op::Write, 16, number + 1));
    }
    rig.pass(2 * 3_600);
    let all = |rig: &Rig| {
        ["VolumeWriteOps", "VolumeIdleTime", "BurstBalance", "VolumeAvgIOPS", "VolumeTotalWriteTime"]
            .map(|metric| rig.points(DB, metric, "Sum", 60))
    };
    let ops = rig.minutes::<4>(DB, "VolumeWriteOps", "Sum");
    assert_eq!(ops, [Some(60.0), Some(120.0), Some(180.0), Some(0.0)]);
    let before = all(&rig);
    assert_eq!(before[0].len(), 123);
    assert_eq!(rig.stored(), (123 - rig.packed(), rig.packed()), "some are packed already");
    rig.pass(2 * 3_600);
    assert!(rig.packed() >= 123, "{} packed", rig.packed());
    let after = all(&rig);
    for (before, after) in before.iter().zip(&after) {
        assert!(before.iter().all(|(at, value)| after.get(at) == Some(value)));
    }
    let rig = rig.restarted();
    assert_eq!(all(&rig), after);
}
