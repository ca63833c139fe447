//! Shadows and recordings of an attached volume.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ebbtide_control::{ControlError, ControlErrorKind, ControlPlane as _, DetachVolume, RecordVolume};
use ebbtide_twin::trace::{Options, Trace};
use ebbtide_volume::Op;
use parking_lot::Mutex;

use crate::Fixture;

/// A file that a test can look at.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A disk without room.
struct FullDisk;

impl Write for FullDisk {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::Error::from(std::io::ErrorKind::StorageFull))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn record() -> RecordVolume {
    RecordVolume { name: "db".into(), path: "/tmp/db.blkparse".into() }
}

/// Detaches the volume. A detach waits for up to 5 s while somebody looks at the attachment, and the volume cannot be
/// attached while somebody goes on: nobody does.
fn detach(fixture: &Fixture) -> ebbtide_control::DetachView {
    let request = DetachVolume { name: "db".into(), force: false };
    let view = fixture.plane.detach_volume(&request, &|_| ()).unwrap();
    fixture.attach("db").unwrap();
    fixture.plane.detach_volume(&request, &|_| ()).unwrap();
    view
}

#[test]
fn shadows_get_what_the_volume_gets_and_are_reported_until_the_end() {
    let fixture = Fixture::new();
    fixture.create("db", "gp3:size=20GiB").unwrap();
    // A size that is left out is the volume's.
    let attached = fixture.attach_with("db", &["gp2:size=30GiB,credits=50%", "gp3:iops=6000"]).unwrap();
    let shadows = attached.live.unwrap().shadows.unwrap();
    assert_eq!(shadows.shadows.iter().map(|one| one.read.ops).sum::<u64>(), 0);
    assert!(shadows.shadows[1].spec.contains("size=20GiB"), "{}", shadows.shadows[1].spec);
    assert!(shadows.shadows.iter().all(|one| one.monthly_cost.is_some()));

    nbd_io(&fixture, 300);
    let began = Instant::now();
    let shadows = loop {
        let shadows = fixture.plane.volume("db", None).unwrap().live.unwrap().shadows.unwrap();
        if shadows.requests >= 600 || began.elapsed() > Duration::from_secs(60) {
            break shadows;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert_eq!((shadows.live_read.ops, shadows.live_write.ops, shadows.lost), (300, 300, 0));
    for shadow in &shadows.shadows {
        assert_eq!((shadow.read.ops, shadow.write.ops), (300, 300), "{}", shadow.spec);
        assert!(shadow.write.p50_us.unwrap() > 100.0 && shadow.write.p99_us <= shadow.write.max_us);
    }
    assert!(shadows.shadows[0].credit_pct.unwrap() < 51.0 && shadows.shadows[1].credit_pct.is_none());
    let ended = detach(&fixture);
    assert_eq!(ended.shadows.unwrap().requests, shadows.requests);
    assert!(ended.recording.is_none());
    // The next attachment begins without them.
    assert!(fixture.attach("db").unwrap().live.unwrap().shadows.is_none());
}

#[test]
fn a_shadow_that_is_unknown_or_too_small_is_refused_before_anything_is_attached() {
    let fixture = Fixture::new();
    fixture.create("db", "gp3:size=10GiB").unwrap();
    let error = fixture.attach_with("db", &["gp3:size=9GiB"]).unwrap_err();
    assert!(matches!(&error, ControlError::ShadowTooSmall { .. }), "{error}");
    assert_eq!(error.kind(), ControlErrorKind::Usage);
    assert!(error.to_string().contains("10GiB"), "{error}");
    assert_eq!(fixture.attach_with("db", &["gp9"]).unwrap_err().kind(), ControlErrorKind::Usage);
    assert!(fixture.plane.volume("db", None).unwrap().volume.attachment.is_none());
}

#[test]
fn a_recording_has_every_request_and_can_be_replayed() {
    let fixture = Fixture::new();
    fixture.create("db", "gp3:size=1GiB").unwrap();
    let file = Shared::default();
    let refused = fixture.plane.record_volume(&record(), Box::new(file.clone())).unwrap_err();
    assert!(matches!(refused, ControlError::NotAttached { .. }), "{refused}");
    fixture.attach("db").unwrap();
    fixture.plane.record_volume(&record(), Box::new(file.clone())).unwrap();
    let refused = fixture.plane.record_volume(&record(), Box::new(Shared::default())).unwrap_err();
    assert!(matches!(refused, ControlError::Recorded { .. }), "{refused}");
    nbd_io(&fixture, 100);
    let view = fixture.plane.end_recording("db").unwrap();
    // A flush may have come with the end of the connection.
    assert!((200..=202).contains(&view.requests) && view.lost == 0 && view.failed.is_none(), "{view:?}");
    assert_eq!(view.bytes, file.0.lock().len() as u64);
    let refused = fixture.plane.end_recording("db").unwrap_err();
    assert!(matches!(refused, ControlError::NotRecorded { .. }), "{refused}");
    nbd_io(&fixture, 10);
    let text = file.0.lock().clone();
    let records: Vec<_> = Trace::open(&text[..], &Options::default()).unwrap().map(Result::unwrap).collect();
    for op in [Op::Read, Op::Write] {
        assert_eq!(records.iter().filter(|record| record.io.op == op).count(), 100);
    }
    assert!(records.iter().all(|record| record.latency.is_some()));
    // Another one can follow, and ends with the attachment.
    let second = Shared::default();
    fixture.plane.record_volume(&record(), Box::new(second.clone())).unwrap();
    nbd_io(&fixture, 20);
    let ended = detach(&fixture).recording.unwrap();
    assert!(ended.requests >= 40 && ended.bytes == second.0.lock().len() as u64, "{ended:?}");
}

#[test]
fn a_recording_that_cannot_be_written_ends_and_disturbs_nobody() {
    let fixture = Fixture::new();
    fixture.create("db", "gp3:size=1GiB").unwrap();
    fixture.attach_with("db", &["gp2"]).unwrap();
    fixture.plane.record_volume(&record(), Box::new(FullDisk)).unwrap();
    nbd_io(&fixture, 10);
    let view = fixture.plane.end_recording("db").unwrap();
    assert!(view.failed.is_some(), "{view:?}");
    nbd_io(&fixture, 10);
    assert_eq!(detach(&fixture).shadows.unwrap().live_read.ops, 20);
}

/// Writes and reads a block so many times through the volume's export, one after the other.
fn nbd_io(fixture: &Fixture, times: u64) {
    let mut client = crate::nbd::Client::connect(&fixture.socket("db"));
    for number in 0..times {
        client.write(number * 65_536, &[1; 16_384]);
        client.read(number * 65_536, 16_384);
    }
}
