//! Creating volumes, with a token and without.

use ebbtide_control::{
    ControlError, ControlErrorKind, ControlPlane as _, CreateSnapshot, CreateVolume, VolumeStatus,
};

use crate::{Fixture, asked};

fn with_token(name: &str, spec: &str, token: &str) -> CreateVolume {
    CreateVolume { token: Some(token.to_owned()), ..asked(name, spec) }
}

#[test]
fn a_repeated_request_with_its_token_answers_with_the_first_ones_volume() {
    let fixture = Fixture::new();
    let first = fixture.plane.create_volume(&with_token("vol-1", "gp3:size=1GiB", "abc")).unwrap();
    let again = fixture.plane.create_volume(&with_token("vol-2", "gp3:size=1GiB,iops=3000", "abc")).unwrap();
    assert_eq!((&again.volume.name, again.volume.seed), (&first.volume.name, first.volume.seed));
    assert_eq!(fixture.plane.volumes(None).unwrap().len(), 1);
    let other = fixture.plane.create_volume(&with_token("vol-3", "gp3:size=2GiB", "abc")).unwrap_err();
    assert!(matches!(&other, ControlError::TokenUsed { volume } if volume == "vol-1"), "{other:?}");
    assert_eq!(other.kind(), ControlErrorKind::Conflict);
}

#[test]
fn a_token_is_known_after_the_volume_was_modified() {
    let fixture = Fixture::new();
    let request = with_token("db", "gp3:size=1GiB", "abc");
    fixture.plane.create_volume(&request).unwrap();
    let modify = ebbtide_control::ModifyVolume {
        name: "db".to_owned(),
        spec: ebbtide_catalog::Spec::parse("gp3:size=2GiB").unwrap(),
        optimizing: ebbtide_control::Optimizing::For(std::time::Duration::ZERO),
        over_limit: false,
    };
    fixture.plane.modify_volume(&modify, &|_| ()).unwrap();
    assert_eq!(fixture.plane.create_volume(&request).unwrap().volume.size_bytes, 2 << 30);
}

#[test]
fn callers_with_one_token_get_one_volume() {
    let fixture = Fixture::new();
    let names = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..8)
            .map(|caller| {
                let request = with_token(&format!("vol-{caller}"), "gp3:size=1GiB", "abc");
                let plane = &fixture.plane;
                scope.spawn(move || plane.create_volume(&request).unwrap().volume.name)
            })
            .collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(names.iter().all(|name| *name == names[0]), "{names:?}");
    assert_eq!(fixture.plane.volumes(None).unwrap().len(), 1);
}

#[test]
fn a_token_of_an_impossible_length_is_refused() {
    let fixture = Fixture::new();
    for token in ["", &"x".repeat(65)] {
        let error = fixture.plane.create_volume(&with_token("db", "gp3:size=1GiB", token)).unwrap_err();
        assert!(matches!(error, ControlError::TokenLength { length } if length == token.len()), "{error:?}");
    }
    assert!(fixture.plane.volumes(None).unwrap().is_empty());
}

#[test]
fn a_volume_begins_with_a_snapshot_that_fits() {
    let fixture = Fixture::new();
    fixture.create("db", "gp3:size=2GiB").unwrap();
    let snapshot = CreateSnapshot { name: "monday".into(), volume: "db".into() };
    let taken = fixture.plane.create_snapshot(&snapshot).unwrap();
    assert_eq!((taken.from_volume.as_str(), taken.size_bytes), ("db", 2 << 30));
    let from = |name: &str, spec: &str, snapshot: &str| {
        fixture
            .plane
            .create_volume(&CreateVolume { snapshot: Some(snapshot.to_owned()), ..asked(name, spec) })
    };
    let small = from("small", "gp3:size=1GiB", "monday").unwrap_err();
    assert!(
        matches!(small, ControlError::SmallerThanSnapshot { needed_bytes, .. } if needed_bytes == 2 << 30)
    );
    assert_eq!(from("none", "gp3:size=2GiB", "tuesday").unwrap_err().kind(), ControlErrorKind::NotFound);
    let copy = from("copy", "gp3:size=3GiB", "monday").unwrap().volume;
    assert_eq!((copy.from_snapshot.as_deref(), copy.state), (Some("monday"), VolumeStatus::Available));
    fixture.plane.delete_snapshot("monday").unwrap();
    assert_eq!(fixture.plane.delete_snapshot("monday").unwrap_err().kind(), ControlErrorKind::NotFound);
    assert!(fixture.plane.snapshots().unwrap().is_empty());
}

#[test]
fn what_cannot_be_created_is_refused_by_kind() {
    let fixture = Fixture::new();
    fixture.create("db", "gp3:size=1GiB").unwrap();
    let kind = |request: &CreateVolume| fixture.plane.create_volume(request).unwrap_err().kind();
    assert_eq!(kind(&asked("db", "gp3:size=1GiB")), ControlErrorKind::Conflict);
    assert_eq!(kind(&asked("Not A Name", "gp3:size=1GiB")), ControlErrorKind::Usage);
    assert_eq!(kind(&asked("other", "gp3:size=1GiB,iops=1")), ControlErrorKind::Usage);
    assert_eq!(
        kind(&CreateVolume { block_size: 520, ..asked("other", "gp3:size=1GiB") }),
        ControlErrorKind::Usage
    );
    let nowhere = CreateVolume { region: Some("mars-1".into()), ..asked("other", "gp3:size=1GiB") };
    assert_eq!(kind(&nowhere), ControlErrorKind::Usage);
    assert_eq!(fixture.plane.volumes(None).unwrap().len(), 1);
}
