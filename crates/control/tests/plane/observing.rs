//! What metrics read: all volumes at once, with counters that go on over attachments.

use ebbtide_control::{
    AttachmentKind, ControlError, ControlPlane as _, ObservedVolume, SetFaults, VolumeObserver as _,
    VolumeStatus,
};

use crate::Fixture;
use crate::nbd::Client;

fn observed(fixture: &Fixture, name: &str) -> ObservedVolume {
    let volumes = fixture.plane.observe().unwrap();
    volumes.into_iter().find(|volume| volume.name == name).unwrap()
}

fn write_twice(fixture: &Fixture, name: &str) {
    let mut client = Client::connect(&fixture.socket(name));
    client.write(0, &[1; 16_384]);
    client.write(16_384, &[1; 16_384]);
}

#[test]
fn counters_are_those_of_the_view_and_go_on_after_a_detach_and_an_attach() {
    let fixture = Fixture::new();
    fixture.create("db", "gp2:size=20GiB,credits=50%").unwrap();
    let before = observed(&fixture, "db");
    assert_eq!((before.kind.as_str(), before.status), ("gp2", VolumeStatus::Available));
    assert_eq!((before.size_bytes, before.totals, before.attachment), (20 << 30, None, None));

    fixture.attach("db").unwrap();
    write_twice(&fixture, "db");
    let first = observed(&fixture, "db");
    let (totals, attachment) = (first.totals.unwrap(), first.attachment.unwrap());
    let shown = fixture.plane.volume("db", None).unwrap();
    let live = shown.live.unwrap();
    assert_eq!((totals.stats.write, totals.stats.write.ops), (live.stats.write, 2));
    assert_eq!(totals.stats.write_latency, live.stats.write_latency);
    assert_eq!(attachment.kind, AttachmentKind::Nbd);
    assert_eq!(attachment.reading.iops_limit.map(|limit| (limit.rate, limit.ceiling)), Some((100, 3_000)));
    let credits = attachment.reading.credits.unwrap();
    assert!((credits.left / credits.capacity as f64 - 0.5).abs() < 0.01, "{credits:?}");
    assert!(attachment.credits.unwrap().full_in_s.unwrap() > 3_600.0);

    fixture.detach("db").unwrap();
    let detached = observed(&fixture, "db");
    assert_eq!(detached.totals.unwrap().stats.write.ops, 2, "a last scrape sees what the attachment did");
    fixture.attach("db").unwrap();
    write_twice(&fixture, "db");
    let again = observed(&fixture, "db").totals.unwrap();
    assert_eq!((again.stats.write.ops, again.stats.write.bytes), (4, 4 * 16_384));
    assert!(again.lateness.sum >= totals.lateness.sum);

    fixture.detach("db").unwrap();
    fixture.plane.delete_volume("db").unwrap();
    fixture.create("db", "gp3:size=1GiB").unwrap();
    assert_eq!(observed(&fixture, "db").totals, None, "it is another volume");
}

#[test]
fn faults_in_force_are_seen_and_what_they_change_is_counted() {
    let fixture = Fixture::new();
    fixture.create("db", "gp3:size=1GiB").unwrap();
    fixture.attach("db").unwrap();
    let settings =
        ["latency=write:1ms", "error-range=512MiB+4KiB"].map(|text| text.parse().unwrap()).to_vec();
    fixture.plane.set_faults(&SetFaults { name: "db".into(), settings }).unwrap();
    write_twice(&fixture, "db");
    let volume = observed(&fixture, "db");
    let faults = volume.attachment.unwrap().reading.faults;
    assert!(faults.latency && faults.errors && !faults.stalled, "{faults:?}");
    let injected = volume.totals.unwrap().injected;
    assert_eq!((injected.delayed, injected.failed), (2, 0));
}

#[test]
fn a_server_that_stops_is_not_observed_any_more() {
    let fixture = Fixture::new();
    fixture.plane.stop(false, &|_| ()).unwrap();
    assert!(matches!(fixture.plane.observe(), Err(ControlError::Stopping)));
}
