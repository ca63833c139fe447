//! A volume from its creation to its end, and what each state refuses.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use ebbtide_catalog::Spec;
use ebbtide_control::{
    AttachmentKind, ControlError, ControlErrorKind, ControlPlane as _, CreateSnapshot, FaultSetting,
    ModifyVolume, Optimizing, Phase, SetFaults, TakeCrashImage, VolumeStatus,
};

use crate::Fixture;

fn modification(spec: &str, optimizing: Duration) -> ModifyVolume {
    ModifyVolume {
        name: "db".to_owned(),
        spec: Spec::parse(spec).unwrap(),
        optimizing: Optimizing::For(optimizing),
        over_limit: true,
    }
}

#[test]
fn a_volume_goes_through_its_states() {
    let fixture = Fixture::new();
    assert_eq!(fixture.create("db", "gp2:size=1GiB").unwrap().volume.state, VolumeStatus::Available);
    let attached = fixture.attach("db").unwrap();
    assert_eq!(attached.volume.state, VolumeStatus::InUse);
    let at = attached.volume.attachment.unwrap();
    assert_eq!((at.kind, at.device, at.power_lost), (AttachmentKind::Nbd, None, false));
    assert!(attached.live.is_some());
    // It is really there: a server of NBD names itself.
    let mut magic = [0; 8];
    UnixStream::connect(fixture.socket("db")).unwrap().read_exact(&mut magic).unwrap();
    assert_eq!(&magic, b"NBDMAGIC");

    let changed =
        fixture.plane.modify_volume(&modification("gp3:size=2GiB", Duration::from_secs(3_600)), &|_| ());
    let changed = changed.unwrap().volume;
    assert_eq!((changed.size_bytes, changed.modification.unwrap().state), (2 << 30, Phase::Optimizing));
    let again =
        fixture.plane.modify_volume(&modification("gp3:size=3GiB", Duration::ZERO), &|_| ()).unwrap_err();
    assert_eq!(again.kind(), ControlErrorKind::Conflict, "{again}");

    fixture.plane.create_snapshot(&CreateSnapshot { name: "live".into(), volume: "db".into() }).unwrap();
    let image = TakeCrashImage { name: "db".into(), image: "after".into(), seed: Some(7) };
    assert_eq!(fixture.plane.take_crash_image(&image).unwrap().seed, 7);
    assert_eq!(fixture.plane.volume("after", None).unwrap().volume.from_volume.as_deref(), Some("db"));

    fixture.detach("db").unwrap();
    let detached = fixture.plane.volume("db", None).unwrap();
    assert_eq!((detached.volume.state, detached.live.is_none()), (VolumeStatus::Available, true));
    fixture.plane.delete_volume("db").unwrap();
    fixture.plane.delete_volume("after").unwrap();
    assert!(fixture.plane.volumes(None).unwrap().is_empty());
}

#[test]
fn a_request_that_was_done_already_has_an_error_of_its_own() {
    let fixture = Fixture::new();
    fixture.create("db", "gp3:size=1GiB").unwrap();
    assert!(matches!(fixture.detach("db"), Err(ControlError::NotAttached { .. })));
    fixture.attach("db").unwrap();
    let twice = fixture.attach("db").unwrap_err();
    assert!(
        matches!(&twice, ControlError::NotFree { state, .. } if state.starts_with("attached at")),
        "{twice:?}"
    );
    assert!(matches!(fixture.plane.delete_volume("db"), Err(ControlError::NotFree { .. })));
    fixture.detach("db").unwrap();
    fixture.plane.delete_volume("db").unwrap();
    assert!(matches!(fixture.plane.delete_volume("db"), Err(ControlError::NotFound { .. })));
    assert!(matches!(fixture.plane.volume("db", None), Err(ControlError::NotFound { .. })));
}

#[test]
fn faults_are_set_on_an_attached_volume_alone_and_end() {
    let fixture = Fixture::new();
    fixture.create("db", "gp3:size=1GiB").unwrap();
    let set = |settings: &[&str]| {
        let settings = settings.iter().map(|text| text.parse::<FaultSetting>().unwrap()).collect();
        fixture.plane.set_faults(&SetFaults { name: "db".into(), settings })
    };
    assert!(matches!(set(&["stall=on"]), Err(ControlError::NotAttached { .. })));
    fixture.attach("db").unwrap();
    let view = set(&["latency=write:2ms", "errors=10ppm"]).unwrap();
    assert_eq!(ebbtide_control::in_force(&view.faults), "latency=write:2ms errors=10ppm");
    let beyond = set(&["clear", "error-range=1GiB+4KiB"]).unwrap_err();
    assert_eq!(beyond.to_string(), "'error-range=1GiB+4KiB' ends beyond volume 'db', which has 1GiB");
    assert_eq!(set(&[]).unwrap().faults, view.faults, "a refused request changes nothing");
    set(&["stall=on"]).unwrap();
    assert!(matches!(fixture.detach("db"), Err(ControlError::Stalled { .. })));
    set(&["clear"]).unwrap();
    assert!(set(&["power-cut=7"]).unwrap().power_lost);
    fixture.detach("db").unwrap();
}

#[test]
fn a_volume_of_another_program_is_listed_and_not_attached() {
    let dir = tempfile::tempdir().unwrap();
    let home = ebbtide_device::host::Home::open(dir.path()).unwrap();
    let host = ebbtide_device::host::Host::open(home.lock().unwrap(), Default::default()).unwrap();
    host.store().create_volume("theirs", 1 << 20, serde_json::json!({ "owner": "lab" })).unwrap();
    let fixture = Fixture { plane: ebbtide_control::LiveControl::new(host), dir };
    assert_eq!(fixture.plane.volumes(None).unwrap()[0].spec, "");
    let error = fixture.attach("theirs").unwrap_err();
    assert!(matches!(error, ControlError::Foreign { .. }), "{error:?}");
    fixture.plane.delete_volume("theirs").unwrap();
}

#[test]
fn overrides_that_mean_nothing_hide_no_volume_and_keep_it_from_being_attached() {
    let fixture = Fixture::new();
    fixture.create("db", "gp3:size=1GiB").unwrap();
    let overrides = fixture.dir.path().join("home/catalog.toml");
    std::fs::File::create(&overrides).unwrap().write_all(b"type = 1").unwrap();
    assert_eq!(fixture.plane.volumes(None).unwrap()[0].name, "db");
    let error = fixture.attach("db").unwrap_err();
    assert!(matches!(&error, ControlError::Overrides { file, .. } if *file == overrides), "{error:?}");
}
