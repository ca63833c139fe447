//! Several callers at once, and a server that stops.

use ebbtide_control::{ControlError, ControlErrorKind, ControlPlane as _, FaultSetting, SetFaults};

use crate::Rig;

#[test]
fn of_several_callers_that_attach_a_volume_one_does() {
    let rig = Rig::new();
    rig.create("db", "gp3:size=1GiB").unwrap();
    let outcomes = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..4).map(|_| scope.spawn(|| rig.attach("db"))).collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect::<Vec<_>>()
    });
    let (done, refused): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
    assert_eq!(done.len(), 1);
    for error in refused.into_iter().map(Result::unwrap_err) {
        assert!(matches!(error, ControlError::NotFree { .. }), "{error:?}");
    }
    rig.detach("db").unwrap();
}

#[test]
fn volumes_are_listed_while_others_create_and_delete_them() {
    let rig = Rig::new();
    rig.create("stays", "gp3:size=1GiB").unwrap();
    std::thread::scope(|scope| {
        for caller in 0..3 {
            let rig = &rig;
            scope.spawn(move || {
                for round in 0..10 {
                    let name = format!("c{caller}-{round}");
                    rig.create(&name, "gp3:size=1GiB").unwrap();
                    rig.plane.delete_volume(&name).unwrap();
                }
            });
        }
        for _ in 0..30 {
            let listed = rig.plane.volumes(None).unwrap();
            assert!(listed.iter().any(|volume| volume.name == "stays"));
        }
    });
    assert_eq!(rig.plane.volumes(None).unwrap().len(), 1);
}

#[test]
fn a_server_with_stalled_volumes_goes_on_and_one_that_stopped_takes_no_request() {
    let rig = Rig::new();
    rig.create("db", "gp3:size=1GiB").unwrap();
    rig.attach("db").unwrap();
    let stall = SetFaults { name: "db".into(), settings: vec![FaultSetting::Stall(true)] };
    rig.plane.set_faults(&stall).unwrap();
    let refused = rig.plane.stop(false, &|_| ()).unwrap_err();
    assert_eq!(refused.to_string(), "the server goes on: I/O of volume 'db' is stalled");
    assert_eq!(refused.kind(), ControlErrorKind::InUse);
    rig.plane.ready().unwrap();
    let detached = rig.plane.stop(true, &|_| ()).unwrap();
    assert_eq!(detached.len(), 1);
    assert!(detached[0].forced.is_some(), "{detached:?}");
    for error in [
        rig.plane.ready().unwrap_err(),
        rig.create("more", "gp3:size=1GiB").unwrap_err(),
        rig.plane.volumes(None).unwrap_err(),
        rig.plane.stop(true, &|_| ()).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ControlErrorKind::Unavailable, "{error:?}");
    }
    rig.plane.end();
}
