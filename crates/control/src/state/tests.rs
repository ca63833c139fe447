//! Every state with every operation, and long sequences of them.

use std::time::Duration;

use ebbtide_catalog::{CatalogError, ModifyRejection};
use proptest::prelude::*;

use super::*;
use crate::ControlErrorKind;
use crate::record::at;

/// 2026-11-20 00:00 UTC.
const NOW: i64 = 1_795_132_800;
const DAY: i64 = 24 * 3_600;

fn volume(occupancy: Occupancy) -> VolumeState {
    let record = VolumeRecord {
        spec: "gp3:size=100GiB,iops=3000,throughput=125,twp=on".to_owned(),
        block_size: 512,
        seed: 7,
        id: None,
        owner: None,
        modified_from: None,
        modifications: Vec::new(),
        initialization: None,
        creation: None,
    };
    VolumeState {
        name: "db".to_owned(),
        record: Ok(record),
        credits: None,
        loading: Ok(None),
        occupancy,
        damage: None,
    }
}

fn damaged(occupancy: Occupancy) -> VolumeState {
    let damage = Damage { file: "layer".into(), offset: 0, what: "a torn header".to_owned() };
    VolumeState { damage: Some(damage), ..volume(occupancy) }
}

fn foreign(occupancy: Occupancy) -> VolumeState {
    VolumeState { record: VolumeRecord::read(&serde_json::json!({})), ..volume(occupancy) }
}

fn attached() -> Occupancy {
    Occupancy::Attached("as /dev/loop0".to_owned())
}

/// What comes of each operation, in the order of [`Operation::ALL`].
fn outcomes(state: &VolumeState) -> [&'static str; 7] {
    Operation::ALL.map(|operation| match state.permits(operation) {
        Ok(()) => "yes",
        Err(ControlError::NotFree { .. }) => "not free",
        Err(ControlError::NotAttached { .. }) => "not attached",
        Err(ControlError::Damaged(_)) => "damaged",
        Err(ControlError::Foreign { .. }) => "foreign",
        Err(other) => panic!("{operation:?}: {other:?}"),
    })
}

#[test]
fn every_state_permits_what_the_table_gives() {
    use Occupancy::{Busy, Free};
    const NOT_FREE: &str = "not free";
    const DETACHED: &str = "not attached";
    let rows = [
        // attach, detach, modify, delete, snapshot, crash image, faults
        (volume(Free), VolumeStatus::Available, ["yes", DETACHED, "yes", "yes", "yes", DETACHED, DETACHED]),
        (volume(Busy("being attached")), VolumeStatus::Busy, [NOT_FREE; 7]),
        (volume(attached()), VolumeStatus::InUse, [NOT_FREE, "yes", "yes", NOT_FREE, "yes", "yes", "yes"]),
        (
            damaged(Free),
            VolumeStatus::Damaged,
            ["damaged", DETACHED, "yes", "yes", "damaged", DETACHED, DETACHED],
        ),
        (damaged(Busy("being deleted")), VolumeStatus::Damaged, [NOT_FREE; 7]),
        (damaged(attached()), VolumeStatus::Damaged, [NOT_FREE, "yes", "yes", NOT_FREE, "yes", "yes", "yes"]),
        (
            foreign(Free),
            VolumeStatus::Available,
            ["foreign", DETACHED, "foreign", "yes", "yes", DETACHED, DETACHED],
        ),
        (foreign(Busy("being deleted")), VolumeStatus::Busy, [NOT_FREE; 7]),
        (
            foreign(attached()),
            VolumeStatus::InUse,
            [NOT_FREE, "yes", "foreign", NOT_FREE, "yes", "yes", "yes"],
        ),
    ];
    for (state, name, expected) in rows {
        assert_eq!(outcomes(&state), expected, "{state:?}");
        assert_eq!(state.state(), name, "{state:?}");
    }
}

#[test]
fn a_refusal_names_who_has_the_volume() {
    let text = |occupancy, operation| volume(occupancy).permits(operation).unwrap_err().to_string();
    assert_eq!(text(attached(), Operation::Delete), "volume 'db' is attached as /dev/loop0");
    assert_eq!(text(Occupancy::Busy("being detached"), Operation::Attach), "volume 'db' is being detached");
    assert_eq!(text(Occupancy::Free, Operation::Detach), "volume 'db' is not attached");
}

#[test]
fn a_volume_is_attached_with_the_model_of_its_record() {
    let state = volume(Occupancy::Free);
    let (record, model) = state.attach(&Catalog::builtin(), at(NOW)).unwrap();
    assert_eq!((record.seed, model.members()[0].limits().iops.unwrap().rate), (7, 3_000));
    let busy = volume(Occupancy::Busy("being deleted"));
    let busy = busy.attach(&Catalog::builtin(), at(NOW));
    assert!(matches!(busy, Err(ControlError::NotFree { .. })), "{busy:?}");
}

#[test]
fn a_second_modification_waits_for_the_first_and_only_four_begin_in_a_day() {
    let mut state = volume(attached());
    let mut modify = |to: &str, after: i64| {
        let to = Spec::parse(to).unwrap();
        let span = Optimizing::For(Duration::from_secs(3_600));
        let change = state.modify(&Catalog::builtin(), &to, span, at(NOW + after))?;
        state.record = Ok(change.record);
        Ok::<_, ControlError>(())
    };
    let refused = |result: Result<(), ControlError>| {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ControlErrorKind::Conflict, "{error}");
        match error {
            ControlError::Catalog(CatalogError::Modify(why)) => why,
            other => panic!("{other:?}"),
        }
    };
    modify("gp3:size=101GiB", 0).unwrap();
    let why = refused(modify("gp3:size=102GiB", 3_599));
    assert!(matches!(why, ModifyRejection::InProgress { state: "OPTIMIZING", .. }), "{why:?}");
    modify("gp3:size=102GiB", 3_600).unwrap();
    modify("gp3:size=103GiB", 7_200).unwrap();
    modify("gp3:size=104GiB", 10_800).unwrap();
    let why = refused(modify("gp3:size=105GiB", DAY - 1));
    assert!(matches!(why, ModifyRejection::RateExceeded { limit: 4, .. }), "{why:?}");
    modify("gp3:size=105GiB", DAY).unwrap();
}

#[test]
fn a_modification_that_is_wrong_in_itself_is_no_conflict() {
    let smaller = Spec::parse("gp3:size=1GiB").unwrap();
    let error =
        volume(Occupancy::Free).modify(&Catalog::builtin(), &smaller, Optimizing::Aws, at(NOW)).unwrap_err();
    assert_eq!(error.kind(), ControlErrorKind::Usage, "{error}");
}

/// One request of a sequence, after a time.
#[derive(Debug, Clone, Copy)]
enum StateRequest {
    Attach,
    Detach,
    Delete,
    Modify { gib: u64, optimizing_s: u64 },
}

fn sequences() -> impl Strategy<Value = Vec<(i64, StateRequest)>> {
    let asked = prop_oneof![
        Just(StateRequest::Attach),
        Just(StateRequest::Detach),
        Just(StateRequest::Delete),
        (90_u64..200, 0_u64..20_000)
            .prop_map(|(gib, optimizing_s)| StateRequest::Modify { gib, optimizing_s }),
        (90_u64..200, 0_u64..20_000)
            .prop_map(|(gib, optimizing_s)| StateRequest::Modify { gib, optimizing_s }),
    ];
    proptest::collection::vec((0_i64..30_000, asked), 1..40)
}

proptest! {
    #[test]
    fn no_sequence_breaks_what_a_volume_promises(sequence in sequences()) {
        let catalog = Catalog::builtin();
        let (mut state, mut now, mut sizes) = (volume(Occupancy::Free), NOW, vec![100]);
        for (wait, asked) in sequence {
            now += wait;
            let is_attached = matches!(state.occupancy, Occupancy::Attached(_));
            match asked {
                StateRequest::Attach => {
                    let allowed = state.attach(&catalog, at(now)).is_ok();
                    prop_assert_eq!(allowed, !is_attached);
                    state.occupancy = attached();
                }
                StateRequest::Detach => {
                    prop_assert_eq!(state.permits(Operation::Detach).is_ok(), is_attached);
                    state.occupancy = Occupancy::Free;
                }
                StateRequest::Delete => prop_assert_eq!(state.permits(Operation::Delete).is_ok(), !is_attached),
                StateRequest::Modify { gib, optimizing_s } => {
                    let to = Spec::parse(&format!("gp3:size={gib}GiB")).unwrap();
                    let span = Optimizing::For(Duration::from_secs(optimizing_s));
                    if let Ok(change) = state.modify(&catalog, &to, span, at(now)) {
                        sizes.push(gib);
                        state.record = Ok(change.record);
                    }
                }
            }
        }
        prop_assert!(sizes.is_sorted_by(|before, after| before < after), "{sizes:?}");
        let past = state.record.unwrap().modifications;
        for pair in past.windows(2) {
            prop_assert!(pair[0].completes_unix_s <= pair[1].started_unix_s, "{past:?}");
        }
        for five in past.windows(5) {
            prop_assert!(five[0].started_unix_s + DAY <= five[4].started_unix_s, "{past:?}");
        }
    }
}
