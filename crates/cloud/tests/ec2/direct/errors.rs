//! Every row of `data/ebs-errors.toml`: code, reason, message and status, and that nothing has changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{filled, reason};
use crate::rows::Mismatches;
use crate::support::{ACCOUNT, OTHER, REGION, Rig, fill, fill_all, text};
use crate::wire::{Protocol, Shapes, Wire};

/// A home in a state, and what words in braces mean.
struct World {
    rig: Rig,
    words: BTreeMap<&'static str, String>,
}

/// What is described, and the blocks that were put.
type Described = (Value, Vec<Vec<u64>>);

impl World {
    /// A snapshot in each state, and tokens.
    fn whole() -> Self {
        let rig = Rig::slow();
        let mut words = BTreeMap::from([
            ("none", "snap-0123456789abcdef0".to_owned()),
            ("checksum", super::checksum(&filled(1))),
            ("other-checksum", super::checksum(&filled(2))),
            ("long", "x".repeat(256)),
        ]);
        let volume = rig.volume();
        rig.pass(5_000);
        words.insert("of-volume", rig.snapshot(&volume));
        let direct = text(&rig.direct("StartSnapshot", json!({"VolumeSize": 2}))["SnapshotId"]);
        rig.put(&direct, 0, &filled(1));
        rig.complete(&direct, 1);
        words.insert("direct", direct.clone());
        let failed = rig.start(None);
        rig.complete(&failed, 3);
        words.insert("failed", failed);
        rig.pass(20_000);
        words.insert("block-token", rig.listed(&direct)[0].1.clone());
        let others = |change: Option<Value>| {
            let input = json!({"VolumeSize": 1});
            let started = rig.try_direct_as(OTHER, "StartSnapshot", (&input, &[])).unwrap();
            let id = text(&started.output["SnapshotId"]);
            let complete = json!({"SnapshotId": id, "ChangedBlocksCount": 0});
            rig.try_direct_as(OTHER, "CompleteSnapshot", (&complete, &[])).unwrap();
            if let Some(change) = change {
                let input = json!({
                    "SnapshotId": id, "Attribute": "createVolumePermission", "CreateVolumePermission": change,
                });
                rig.try_as(OTHER, REGION, "ModifySnapshotAttribute", &input).unwrap();
            }
            id
        };
        words.insert("others", others(None));
        words.insert("public", others(Some(json!({"Add": [{"Group": "all"}]}))));
        rig.pass(20_000);
        rig.direct("StartSnapshot", json!({"VolumeSize": 1, "ClientToken": "used"}));
        words.insert("pending", rig.start(None));
        Self { rig, words }
    }

    fn in_state(state: &str) -> Self {
        match state {
            "world" => Self::whole(),
            "denied" => Self::denied(),
            "full" => Self::full(),
            "crowded" => Self::crowded(),
            other => panic!("no state {other}"),
        }
    }

    fn denied() -> Self {
        use ebbtide_cloud::Service as _;
        let world = Self::whole();
        let actions = world.rig.ebs.actions().iter().map(|action| format!("ebs:{action}"));
        *world.rig.rights.denied.lock().unwrap() = actions.collect();
        world
    }

    /// Small quotas that are used up.
    fn full() -> Self {
        let rig = Rig::with(|mut options| {
            options.quotas.pending_direct = 1;
            options.instant()
        });
        rig.start(None);
        Self { rig, words: BTreeMap::new() }
    }

    /// No room for another snapshot.
    fn crowded() -> Self {
        let rig = Rig::with(|mut options| {
            options.quotas.snapshots = 1;
            options.instant()
        });
        rig.start(None);
        Self { rig, words: BTreeMap::new() }
    }

    fn fill(&self, text: &str) -> String {
        fill(&self.words, text)
    }

    fn fill_all(&self, value: &Value) -> Value {
        fill_all(&self.words, value)
    }

    /// Everything that is described, and what was put.
    fn all(&self) -> Described {
        let denied = std::mem::take(&mut *self.rig.rights.denied.lock().unwrap());
        let all = self.rig.call("DescribeSnapshots", json!({}));
        *self.rig.rights.denied.lock().unwrap() = denied;
        use ebbtide_control::ControlPlane as _;
        let pending = self.rig.names_pending();
        (all, pending.iter().map(|id| self.rig.control.written_blocks(id).unwrap()).collect())
    }
}

#[derive(serde::Deserialize)]
struct Table {
    row: Vec<Row>,
}

#[derive(serde::Deserialize)]
struct Row {
    operation: String,
    state: String,
    parameters: Value,
    /// Bytes of the body, all 1.
    #[serde(default)]
    bytes: usize,
    code: String,
    reason: Option<String>,
    message: String,
    status: u16,
}

#[test]
fn every_row_of_the_errors_of_blocks_is_answered_as_it_says_and_changes_nothing() {
    let table: Table = toml::from_str(include_str!("../../../data/ebs-errors.toml")).unwrap();
    assert!(table.row.len() >= 50, "{} rows", table.row.len());
    let mut worlds: BTreeMap<String, (World, Described)> = BTreeMap::new();
    let mut wrong = Mismatches::default();
    for row in table.row {
        let (world, _) = worlds.entry(row.state.clone()).or_insert_with(|| {
            let world = World::in_state(&row.state);
            let before = world.all();
            (world, before)
        });
        let input = world.fill_all(&row.parameters);
        let body = vec![1; row.bytes];
        let expected_reason = row.reason.unwrap_or_else(|| row.code.clone());
        let expected = (row.code, expected_reason, world.fill(&row.message), row.status);
        let place = format!("{}: {} {input}", row.state, row.operation);
        let found = world.rig.try_direct_as(ACCOUNT, &row.operation, (&input, &body));
        let found = found.map(|answer| answer.output);
        let found = found.map_err(|it| (it.code.to_string(), reason(&it), it.message, it.status));
        wrong.check(&place, found, &expected);
    }
    wrong.end();
    for (state, (world, before)) in worlds {
        assert_eq!(world.all(), before, "{state}");
    }
}

#[test]
fn every_row_of_the_errors_of_blocks_goes_over_the_wire() {
    let table: Table = toml::from_str(include_str!("../../../data/ebs-errors.toml")).unwrap();
    let shapes = Shapes::of("ebs");
    let mut worlds: BTreeMap<String, (World, Wire)> = BTreeMap::new();
    let mut wrong = Mismatches::default();
    for row in table.row.iter().filter(|row| row.state != "denied") {
        let (world, wire) = worlds.entry(row.state.clone()).or_insert_with(|| {
            let world = World::in_state(&row.state);
            let wire = Wire::open(vec![Arc::clone(&world.rig.ebs) as _], world.rig.now(), ACCOUNT);
            (world, wire)
        });
        let input = world.fill_all(&row.parameters);
        if !shapes.carries(Protocol::RestJson, &row.operation, &input) {
            continue;
        }
        let body = vec![1; row.bytes];
        let response = wire.call(&shapes, Protocol::RestJson, &row.operation, (&input, &body));
        let message = world.fill(&row.message);
        let expected = (row.code.as_str(), message.as_str(), row.status);
        wrong.check_wire(&format!("{} {input}", row.operation), Protocol::RestJson, &response, expected);
    }
    wrong.end();
}

#[test]
fn bad_signatures_are_refused_in_the_words_of_the_direct_apis() {
    let rig = Rig::new();
    let wire = Wire::closed(vec![Arc::clone(&rig.ebs) as _], rig.now());
    let shapes = Shapes::of("ebs");
    let start = json!({"VolumeSize": 1});
    let expected = [
        ("MissingAuthenticationTokenException", 403),
        ("InvalidSignatureException", 403),
        ("InvalidSignatureException", 403),
        ("InvalidSignatureException", 403),
    ];
    wire.check_signatures(&shapes, Protocol::RestJson, ("StartSnapshot", &start), expected);
    assert_eq!(rig.names_pending(), [""; 0]);
    assert_eq!(wire.call(&shapes, Protocol::RestJson, "StartSnapshot", (&start, &[])).status(), 201);
    assert_eq!(rig.names_pending().len(), 1, "the same call with a good signature");
}
