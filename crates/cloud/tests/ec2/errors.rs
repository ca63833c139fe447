//! Every row of `data/ec2-errors.toml`: code, message and status, and that nothing has changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::rows::Mismatches;
use crate::support::{ACCOUNT, ErrorRow, ErrorTable, OTHER, Rig, fill, fill_all, text};
use crate::wire::{Protocol, Shapes, Wire, refusal};

/// A home in a state, and the ids of what is in it.
struct World {
    rig: Rig,
    ids: BTreeMap<&'static str, String>,
}

const MISSING: [(&str, &str); 3] = [
    ("no-volume", "vol-0123456789abcdef0"),
    ("no-snapshot", "snap-0123456789abcdef0"),
    ("no-instance", "i-0123456789abcdef0"),
];

impl World {
    /// One resource of each kind and state.
    fn whole() -> Self {
        let rig = Rig::with(|mut options| {
            // What is archived below is at once: the modification of a volume must not end meanwhile.
            options.timing.archiving_ms = 0;
            options
        });
        let mut ids: BTreeMap<&'static str, String> = MISSING.map(|(name, id)| (name, id.to_owned())).into();
        let gp3 = || json!({"Size": 10, "VolumeType": "gp3"});
        for name in ["volume", "attached", "modifying", "recent", "deleting", "root", "binned-volume"] {
            ids.insert(name, rig.volume_of(gp3()));
        }
        let shared =
            |kind: &str| json!({"Size": 10, "VolumeType": kind, "Iops": 100, "MultiAttachEnabled": true});
        ids.insert("shared", rig.volume_of(shared("io2")));
        ids.insert("shared-io1", rig.volume_of(shared("io1")));
        ids.insert("other-zone", rig.volume_of(json!({"Size": 10, "AvailabilityZone": "us-east-1b"})));
        ids.insert("key", rig.key());
        ids.insert("disabled-key", rig.key());
        let secret = json!({"Size": 1, "Encrypted": true, "KmsKeyId": ids["key"]});
        ids.insert("secret", rig.volume_of(secret));
        ids.insert("managed", rig.volume_of(json!({"Size": 1, "Encrypted": true})));
        rig.kms("DisableKey", json!({"KeyId": ids["disabled-key"]}));
        ids.insert("instance", rig.instance());
        ids.insert("stopped", rig.instance());
        ids.insert("terminated", rig.instance());
        let used = json!({"Size": 1, "AvailabilityZone": "us-east-1a", "ClientToken": "used"});
        rig.call("CreateVolume", used);
        let deleted = json!({"Size": 1, "AvailabilityZone": "us-east-1a", "ClientToken": "deleted"});
        let deleted = text(&rig.call("CreateVolume", deleted)["VolumeId"]);
        rig.pass(5_000);
        rig.call("DeleteVolume", json!({"VolumeId": deleted}));
        ids.insert("of-deleted-token", deleted);
        let failing = json!({"SourceRegion": "us-east-1", "SourceSnapshotId": ids["no-snapshot"]});
        ids.insert("failed-snapshot", text(&rig.call("CopySnapshot", failing)["SnapshotId"]));
        rig.call("TerminateInstances", json!({"InstanceIds": [ids["terminated"]]}));
        rig.call("StopInstances", json!({"InstanceIds": [ids["stopped"]]}));
        rig.attach(&ids["attached"], &ids["instance"], "/dev/sdf");
        rig.attach(&ids["shared"], &ids["instance"], "/dev/sdg");
        rig.attach(&ids["root"], &ids["instance"], "/dev/xvda");
        ids.insert("snapshot", rig.snapshot(&ids["attached"]));
        ids.insert("secret-snapshot", rig.snapshot(&ids["secret"]));
        ids.insert("managed-snapshot", rig.snapshot(&ids["managed"]));
        for (name, volume) in [
            ("archived-snapshot", "other-zone"),
            ("shared-snapshot", "deleting"),
            ("locked-snapshot", "modifying"),
            ("binned-snapshot", "volume"),
        ] {
            ids.insert(name, rig.snapshot(&ids[volume]));
        }
        rig.pass(20_000);
        rig.call(
            "ModifySnapshotTier",
            json!({"SnapshotId": ids["archived-snapshot"], "StorageTier": "archive"}),
        );
        let share = json!({"SnapshotId": ids["shared-snapshot"], "OperationType": "add", "UserIds": [OTHER]});
        rig.call("ModifySnapshotAttribute", share);
        let lock =
            json!({"SnapshotId": ids["locked-snapshot"], "LockMode": "compliance", "LockDuration": 10});
        let end_s = rig.call("LockSnapshot", lock)["LockExpiresOn"].as_i64().unwrap();
        ids.insert("lock-end", format!("{:.3}", jiff::Timestamp::from_second(end_s).unwrap()));
        rig.bin(&ids["binned-volume"], &ids["binned-snapshot"]);
        rig.call("ModifyVolume", json!({"VolumeId": ids["modifying"], "Size": 20}));
        ids.insert("pending-snapshot", rig.snapshot(&ids["recent"]));
        ids.insert("creating", rig.volume_of(gp3()));
        ids.insert("pending-instance", rig.instance());
        rig.call("DeleteVolume", json!({"VolumeId": ids["deleting"]}));
        Self { rig, ids }
    }

    fn in_state(state: &str) -> Self {
        match state {
            "world" => Self::whole(),
            "denied" => Self::denied(),
            "keyless" => Self::keyless(),
            "quotas" => Self::quotas(),
            "full" => Self::full(),
            other => panic!("no state {other}"),
        }
    }

    fn denied() -> Self {
        use ebbtide_cloud::Service as _;
        let world = Self::whole();
        let actions = world.rig.ec2.actions().iter().map(|action| format!("ec2:{action}"));
        *world.rig.rights.denied.lock().unwrap() = actions.collect();
        world
    }

    /// The caller may not use keys of its own.
    fn keyless() -> Self {
        let world = Self::whole();
        *world.rig.rights.denied.lock().unwrap() = vec!["kms:CreateGrant".to_owned()];
        world
    }

    /// Small quotas, with one volume.
    fn quotas() -> Self {
        let rig = Rig::with(|mut options| {
            let quotas = &mut options.quotas;
            (quotas.type_gib, quotas.io2_gib) = (1_024, 1_024);
            (quotas.io1_iops, quotas.io2_iops) = (1_000, 1_000);
            quotas.modifying_gib = 1_024;
            (quotas.snapshots, quotas.pending_copies, quotas.instances) = (0, 0, 1);
            options.instant()
        });
        let mut ids: BTreeMap<&'static str, String> = MISSING.map(|(name, id)| (name, id.to_owned())).into();
        rig.volume_of(json!({"Size": 1}));
        ids.insert("volume", rig.volume());
        ids.insert("snapshot", ids["no-snapshot"].clone());
        Self { rig, ids }
    }

    fn full() -> Self {
        let rig = Rig::with(|mut options| {
            options.quotas.volumes = Some(1);
            options.instant()
        });
        let ids = [("volume", rig.volume())].into();
        Self { rig, ids }
    }

    fn fill(&self, text: &str) -> String {
        fill(&self.ids, text)
    }

    fn fill_all(&self, value: &Value) -> Value {
        fill_all(&self.ids, value)
    }

    /// Everything that is described.
    fn all(&self) -> Vec<Value> {
        let denied = std::mem::take(&mut *self.rig.rights.denied.lock().unwrap());
        let all =
            ["DescribeVolumes", "DescribeSnapshots", "DescribeInstances", "DescribeVolumesModifications"];
        let all = all.map(|action| self.rig.call(action, json!({}))).to_vec();
        *self.rig.rights.denied.lock().unwrap() = denied;
        all
    }
}

#[test]
fn every_row_of_the_errors_is_answered_as_it_says() {
    let table: ErrorTable = toml::from_str(include_str!("../../data/ec2-errors.toml")).unwrap();
    assert!(table.row.len() >= 150, "{} rows", table.row.len());
    let mut worlds: BTreeMap<String, World> = BTreeMap::new();
    let mut wrong = Mismatches::default();
    for ErrorRow { operation, state, parameters, code, message, status } in table.row {
        let world = worlds.entry(state.clone()).or_insert_with(|| World::in_state(&state));
        let input = world.fill_all(&parameters);
        let expected = (code, world.fill(&message), status);
        let found = world.rig.attempt(&operation, &input);
        let found = found.map_err(|error| (error.code.into_owned(), error.message, error.status));
        wrong.check(&format!("{state}: {operation} {input}"), found, &expected);
    }
    wrong.end();
}

#[test]
fn refused_calls_leave_everything_as_it_was() {
    let table: ErrorTable = toml::from_str(include_str!("../../data/ec2-errors.toml")).unwrap();
    let world = World::whole();
    let before = world.all();
    let names = world.rig.names();
    for row in table.row.iter().filter(|row| row.state == "world") {
        let _ = world.rig.attempt(&row.operation, &world.fill_all(&row.parameters));
    }
    assert_eq!(world.all(), before);
    assert_eq!(world.rig.names(), names);
}

#[test]
fn every_row_of_the_errors_goes_over_the_wire_of_ec2() {
    let table: ErrorTable = toml::from_str(include_str!("../../data/ec2-errors.toml")).unwrap();
    let shapes = Shapes::of("ec2");
    let mut worlds: BTreeMap<String, (World, Wire)> = BTreeMap::new();
    let mut wrong = Mismatches::default();
    // What policies deny is the affair of the policies' own tests.
    for row in table.row.iter().filter(|row| !["denied", "keyless"].contains(&row.state.as_str())) {
        let (world, wire) = worlds.entry(row.state.clone()).or_insert_with(|| {
            let world = World::in_state(&row.state);
            let wire = Wire::open(vec![Arc::clone(&world.rig.ec2) as _], world.rig.now(), ACCOUNT);
            (world, wire)
        });
        let input = world.fill_all(&row.parameters);
        if !shapes.carries(Protocol::Ec2Query, &row.operation, &input) {
            continue;
        }
        let response = wire.call(&shapes, Protocol::Ec2Query, &row.operation, (&input, &[]));
        let message = world.fill(&row.message);
        let expected = (row.code.as_str(), message.as_str(), row.status);
        wrong.check_wire(&format!("{} {input}", row.operation), Protocol::Ec2Query, &response, expected);
    }
    wrong.end();
}

#[test]
fn bad_signatures_are_refused_in_the_words_of_ec2() {
    let rig = Rig::new();
    let wire = Wire::closed(vec![Arc::clone(&rig.ec2) as _], rig.now());
    let shapes = Shapes::of("ec2");
    let create = json!({"AvailabilityZone": "us-east-1a", "Size": 1});
    let expected = [
        ("MissingAuthenticationToken", 403),
        ("AuthFailure", 401),
        ("RequestExpired", 400),
        ("AuthFailure", 401),
    ];
    wire.check_signatures(&shapes, Protocol::Ec2Query, ("CreateVolume", &create), expected);
    assert_eq!(rig.names().0, [""; 0]);
    assert_eq!(wire.call(&shapes, Protocol::Ec2Query, "CreateVolume", (&create, &[])).status(), 200);
    assert_eq!(rig.names().0.len(), 1, "the same call with a good signature");
}

#[test]
fn every_action_without_parameters_answers_or_says_what_is_missing() {
    use ebbtide_cloud::Service as _;
    let rig = Rig::new();
    let wire = Wire::open(vec![Arc::clone(&rig.ec2) as _], rig.now(), ACCOUNT);
    let shapes = Shapes::of("ec2");
    for action in rig.ec2.actions() {
        let response = wire.call(&shapes, Protocol::Ec2Query, action, (&json!({}), &[]));
        let needs = shapes.input(action)["required"].as_array().is_some_and(|names| !names.is_empty());
        let found = refusal(Protocol::Ec2Query, &response);
        let is_client_error = found.as_ref().is_some_and(|found| found.status == 400);
        let is_fine = if needs { is_client_error } else { found.is_none() || is_client_error };
        assert!(is_fine, "{action}: {found:?}");
    }
}
