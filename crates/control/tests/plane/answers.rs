//! What the server of a home answers on its control socket arrives as it was sent: JSON texts that scripts read depend on it.

use ebbtide_control::protocol::{Answer, ExitStatus, Reply, ServerStatus};
use ebbtide_control::{
    Calibration, ControlPlane as _, CreateSnapshot, DetachVolume, RecordVolume, SetFaults, TakeCrashImage,
};

use crate::nbd::Client;
use crate::{Fixture, calibrate};

/// Sends an answer, and compares what arrives with what was sent.
fn check(answer: impl Into<Answer>) {
    let sent = serde_json::to_value(Reply::Done { exit: ExitStatus::Clean, answer: answer.into() }).unwrap();
    let line = serde_json::to_string(&sent).unwrap();
    let arrived: Reply = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
    assert_eq!(serde_json::to_value(arrived).unwrap(), sent);
}

/// A volume with shadows, a recording, faults, and some requests behind it.
fn busy_volume(fixture: &Fixture) {
    fixture.create("db", "gp2:size=20GiB,credits=50%").unwrap();
    fixture.attach_with("db", &["gp3:iops=6000", "gp2:size=30GiB"]).unwrap();
    let record = RecordVolume { name: "db".into(), path: "/tmp/db.blkparse".into() };
    check(fixture.plane.record_volume(&record, Box::new(std::io::sink())).unwrap());
    let mut client = Client::connect(&fixture.socket("db"));
    client.write(0, &[1; 16_384]);
    client.read(4096, 8192);
    let settings = ["latency=read:2ms", "errors=3ppm", "error-range=1GiB+4KiB", "answer-early=on"];
    let settings = settings.iter().map(|text| text.parse().unwrap()).collect();
    check(fixture.plane.set_faults(&SetFaults { name: "db".into(), settings }).unwrap());
}

#[test]
fn each_view_of_an_answer_arrives_as_it_was_sent() {
    let fixture = Fixture::new();
    busy_volume(&fixture);
    let plane = &fixture.plane;
    check(plane.volume("db", Some("eu-west-1")).unwrap());
    let image = TakeCrashImage { name: "db".into(), image: "after".into(), seed: Some(u64::MAX) };
    check(plane.take_crash_image(&image).unwrap());
    check(plane.create_snapshot(&CreateSnapshot { name: "monday".into(), volume: "db".into() }).unwrap());
    check(plane.snapshots().unwrap());
    check(plane.volumes(None).unwrap());
    let detach = DetachVolume { name: "db".into(), force: false };
    let view = plane.detach_volume(&detach, &|_| ()).unwrap();
    assert!(view.shadows.is_some() && view.recording.is_some(), "{view:?}");
    check(view);
    check(ServerStatus {
        pid: 7,
        version: "1.0.0".into(),
        home: "/srv/ebb".into(),
        aws: Some("http://127.0.0.1:4599".into()),
        metrics: Some("http://127.0.0.1:9421/metrics".into()),
        requests: plane.requests(),
    });
    let file = fixture.dir.path().join("calibration");
    calibrate(&file);
    check(serde_json::from_slice::<Calibration>(&std::fs::read(file).unwrap()).unwrap());
    fixture.attach("after").unwrap();
    check(Answer::Stopped { home: "/srv/ebb".into(), detached: plane.stop(true, &|_| ()).unwrap() });
    check(Answer::Pong("1.0.0".into()));
}
