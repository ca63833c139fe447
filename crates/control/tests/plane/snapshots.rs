//! Snapshots: several at one instant, copies, names; and modifications that the caller has decided on.

use std::time::Duration;

use ebbtide_catalog::Spec;
use ebbtide_control::{
    ControlError, ControlPlane as _, CreateSnapshot, ModifyVolume, Names, Optimizing, Phase,
};

use crate::Fixture;

fn asked(name: &str, volume: &str) -> CreateSnapshot {
    CreateSnapshot { name: name.to_owned(), volume: volume.to_owned() }
}

#[test]
fn several_snapshots_are_taken_together_or_not_at_all() {
    let fixture = Fixture::new();
    fixture.create("a", "gp3:size=1GiB").unwrap();
    fixture.create("b", "gp3:size=2GiB").unwrap();
    fixture.attach("b").unwrap();
    let refused = fixture.plane.create_snapshots(&[asked("s-a", "a"), asked("s-c", "c")]).unwrap_err();
    assert!(matches!(refused, ControlError::NotFound { .. }), "{refused}");
    let twice = fixture.plane.create_snapshots(&[asked("s-a", "a"), asked("s-a", "b")]).unwrap_err();
    assert!(matches!(twice, ControlError::Exists { .. }), "{twice}");
    assert_eq!(fixture.plane.names().unwrap().snapshots, [""; 0]);
    let taken =
        fixture.plane.create_snapshots(&[asked("s-b", "b"), asked("s-a", "a"), asked("s-b2", "b")]).unwrap();
    let taken: Vec<_> = taken.iter().map(|one| (one.name.as_str(), one.size_bytes >> 30)).collect();
    assert_eq!(taken, [("s-b", 2), ("s-a", 1), ("s-b2", 2)]);
    fixture.detach("b").unwrap();
}

#[test]
fn a_copy_outlives_its_source_and_has_its_content() {
    let fixture = Fixture::new();
    fixture.create("a", "gp3:size=1GiB").unwrap();
    fixture.plane.create_snapshot(&asked("s", "a")).unwrap();
    let copy = fixture.plane.copy_snapshot("s", "t").unwrap();
    assert_eq!((copy.name.as_str(), copy.from_volume.as_str(), copy.size_bytes), ("t", "a", 1 << 30));
    let taken = fixture.plane.copy_snapshot("s", "t").unwrap_err();
    assert!(matches!(taken, ControlError::Exists { .. }), "{taken}");
    fixture.plane.delete_snapshot("s").unwrap();
    assert!(matches!(fixture.plane.snapshot("s"), Err(ControlError::NotFound { .. })));
    let request = ebbtide_control::CreateVolume {
        snapshot: Some("t".to_owned()),
        ..crate::asked("b", "gp3:size=1GiB")
    };
    fixture.plane.create_volume(&request).unwrap();
    fixture.plane.delete_snapshot("t").unwrap();
    let names = Names { volumes: vec!["a".to_owned(), "b".to_owned()], ..Names::default() };
    assert_eq!(fixture.plane.names().unwrap(), names);
}

#[test]
fn who_has_decided_on_a_modification_is_not_asked_for_the_rate_again() {
    let fixture = Fixture::new();
    fixture.create("a", "gp3:size=1GiB").unwrap();
    let modify = |gib: u64, optimizing| {
        let spec = Spec::parse(&format!("gp3:size={gib}GiB")).unwrap();
        fixture.plane.modify_volume(
            &ModifyVolume { name: "a".to_owned(), spec, optimizing, over_limit: true },
            &|_| (),
        )
    };
    let decided = |modifying, completes| Optimizing::Decided {
        modifying: Duration::from_secs(modifying),
        completes: Duration::from_secs(completes),
    };
    for gib in 2..9 {
        modify(gib, decided(0, 0)).unwrap();
    }
    modify(9, Optimizing::Aws).unwrap_err();
    let modified = modify(9, decided(0, 3_600)).unwrap().volume;
    assert_eq!(modified.modification.unwrap().state, Phase::Optimizing);
    let smaller = modify(8, decided(0, 0)).unwrap_err();
    assert!(matches!(smaller, ControlError::Catalog(_)), "{smaller}");
}
