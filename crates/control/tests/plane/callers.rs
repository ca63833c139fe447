//! Several callers at once, and a server that stops.

use ebbtide_control::{ControlError, ControlErrorKind, ControlPlane as _, FaultSetting, SetFaults};
use ebbtide_device::host::Home;

use crate::Fixture;

#[test]
fn of_several_callers_that_attach_a_volume_one_does() {
    let fixture = Fixture::new();
    fixture.create("db", "gp3:size=1GiB").unwrap();
    let outcomes = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..4).map(|_| scope.spawn(|| fixture.attach("db"))).collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect::<Vec<_>>()
    });
    let (done, refused): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
    assert_eq!(done.len(), 1);
    for error in refused.into_iter().map(Result::unwrap_err) {
        assert!(matches!(error, ControlError::NotFree { .. }), "{error:?}");
    }
    fixture.detach("db").unwrap();
}

#[test]
fn volumes_are_listed_while_others_create_and_delete_them() {
    let fixture = Fixture::new();
    fixture.create("stays", "gp3:size=1GiB").unwrap();
    std::thread::scope(|scope| {
        for caller in 0..3 {
            let fixture = &fixture;
            scope.spawn(move || {
                for round in 0..10 {
                    let name = format!("c{caller}-{round}");
                    fixture.create(&name, "gp3:size=1GiB").unwrap();
                    fixture.plane.delete_volume(&name).unwrap();
                }
            });
        }
        for _ in 0..30 {
            let listed = fixture.plane.volumes(None).unwrap();
            assert!(listed.iter().any(|volume| volume.name == "stays"));
        }
    });
    assert_eq!(fixture.plane.volumes(None).unwrap().len(), 1);
}

#[test]
fn a_server_with_stalled_volumes_goes_on_and_one_that_stopped_takes_no_request() {
    let fixture = Fixture::new();
    fixture.create("db", "gp3:size=1GiB").unwrap();
    fixture.attach("db").unwrap();
    let stall = SetFaults { name: "db".into(), settings: vec![FaultSetting::Stall(true)] };
    fixture.plane.set_faults(&stall).unwrap();
    let refused = fixture.plane.stop(false, &|_| ()).unwrap_err();
    assert_eq!(refused.to_string(), "the server goes on: I/O of volume 'db' is stalled");
    assert_eq!(refused.kind(), ControlErrorKind::InUse);
    fixture.plane.ready().unwrap();
    let detached = fixture.plane.stop(true, &|_| ()).unwrap();
    assert_eq!(detached.len(), 1);
    assert!(detached[0].forced.is_some(), "{detached:?}");
    for error in [
        fixture.plane.ready().unwrap_err(),
        fixture.create("more", "gp3:size=1GiB").unwrap_err(),
        fixture.plane.volumes(None).unwrap_err(),
        fixture.plane.stop(true, &|_| ()).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ControlErrorKind::Unavailable, "{error:?}");
    }
    fixture.plane.end();
}

#[test]
fn two_first_attachments_wait_for_one_calibration() {
    let fixture = Fixture::new();
    let file = Home::open(&fixture.dir.path().join("home")).unwrap().calibration_file();
    std::fs::remove_file(&file).unwrap();
    for name in ["a", "b"] {
        fixture.create(name, "gp3:size=1GiB").unwrap();
    }
    let details: Vec<_> = std::thread::scope(|scope| {
        let fixture = &fixture;
        let attach = |name| scope.spawn(move || fixture.attach(name).unwrap());
        let threads = ["a", "b"].map(attach);
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for detail in details {
        assert_eq!(detail.volume.not_calibrated, None, "{}", detail.volume.name);
    }
    assert!(file.exists());
    for name in ["a", "b"] {
        fixture.detach(name).unwrap();
    }
}
