//! Encrypted volumes and snapshots: whose key they have, what a key that cannot be used does, and nothing plain on the disk.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex};

use ebbtide_cloud::ec2::Ec2;
use ebbtide_cloud::kms::Kms;
use ebbtide_cloud::monitoring::{EventSink, Inventory as _};
use ebbtide_control::ControlPlane as _;
use ebbtide_device::host::{Home, Host, HostOptions};
use serde_json::{Value, json};

use crate::steps::{Dying, Moment};
use crate::support::{self, ACCOUNT, OTHER, REGION, Rig, column, text};

/// What tests write: no ciphertext and no record has it.
const MARKER: &[u8; 32] = b"ebbtide plaintext marker 7f3a91c";
const BLOCK: usize = 4096;

fn marked() -> Vec<u8> {
    MARKER.iter().copied().cycle().take(BLOCK).collect()
}

/// Writes the marker to volumes, while nobody serves the home.
fn mark(rig: Rig, volumes: &[&str]) -> Rig {
    rig.reopened_after(|home| {
        let kms = Arc::new(Kms::open(home).unwrap());
        let home = Home::open(home).unwrap();
        let host = Host::open(home.lock().unwrap(), HostOptions::default()).unwrap();
        host.store().set_key_unwrapper(kms);
        for volume in volumes {
            host.store().open_volume(volume).unwrap().write_at(&marked(), 1 << 20).unwrap();
        }
    })
}

/// The files of a folder that have the marker.
fn with_marker(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(with_marker(&path));
        } else if path.is_file()
            && std::fs::read(&path).unwrap().windows(MARKER.len()).any(|part| part == MARKER)
        {
            found.push(path.display().to_string());
        }
    }
    found
}

/// Whether a snapshot has the marker where it was written, as clients read it.
fn reads_marker(rig: &Rig, snapshot: &str) -> bool {
    rig.control.read_block(snapshot, 2).unwrap()[..BLOCK] == marked()
}

fn copy(rig: &Rig, source: &str, more: &Value) -> String {
    let mut input = json!({"SourceRegion": REGION, "SourceSnapshotId": source});
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    text(&rig.call("CopySnapshot", input)["SnapshotId"])
}

#[test]
fn no_plain_block_of_an_encrypted_volume_its_snapshots_and_copies_is_in_any_file_of_the_home() {
    let rig = Rig::new();
    let (first, second) = (rig.key(), rig.key());
    let plain = rig.volume();
    let secret = rig.volume_of(json!({"Size": 1, "Encrypted": true, "KmsKeyId": first}));
    let rig = mark(rig, &[&plain, &secret]);
    let home = support::home(rig.dir.path());
    let of_plain = rig.snapshot(&plain);
    let snapshot = rig.snapshot(&secret);
    let moved = copy(&rig, &snapshot, &json!({"KmsKeyId": second}));
    let encrypted = copy(&rig, &of_plain, &json!({"Encrypted": true}));
    let volume_of = |more: Value| {
        let mut input = json!({"SnapshotId": snapshot});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        rig.volume_of(input)
    };
    let (same, other) = (volume_of(json!({})), volume_of(json!({"Encrypted": true, "KmsKeyId": second})));
    let from_plain = rig.volume_of(json!({"SnapshotId": of_plain, "Encrypted": true}));
    let keys = [&secret, &same, &other].map(|volume| text(&rig.show(volume)["KmsKeyId"]));
    assert_eq!(keys, [first.clone(), first.clone(), second.clone()]);
    let of_same = rig.snapshot(&same);
    let all = [snapshot.clone(), moved, encrypted, of_same, rig.snapshot(&other), rig.snapshot(&from_plain)];
    for id in &all {
        assert!(reads_marker(&rig, id), "{id}");
        let shown = rig.show_snapshot(id);
        assert_eq!((&shown["Encrypted"], &shown["SseType"]), (&json!(true), &json!("sse-kms")), "{id}");
    }
    let found = with_marker(&home);
    assert_eq!(found.len(), 1, "the search finds the plain volume: {found:?}");
    rig.call("DeleteVolume", json!({"VolumeId": plain}));
    rig.call("DeleteSnapshot", json!({"SnapshotId": of_plain}));
    let rig = rig.reopened();
    assert_eq!(with_marker(&home), [""; 0]);
    assert!(all.iter().all(|id| reads_marker(&rig, id)));
}

#[test]
fn a_volume_has_the_key_that_the_table_of_outcomes_names() {
    let rig = Rig::new();
    let key = rig.key();
    rig.kms("CreateAlias", json!({"AliasName": "alias/mine", "TargetKeyId": key}));
    let shown = |id: &str| {
        let shown = rig.show(id);
        (shown["Encrypted"] == true, shown["KmsKeyId"].as_str().unwrap_or_default().to_owned())
    };
    let plain = rig.volume();
    assert_eq!(shown(&plain), (false, String::new()));
    let default = rig.volume_of(json!({"Size": 1, "Encrypted": true}));
    let managed = text(&rig.kms("DescribeKey", json!({"KeyId": "alias/aws/ebs"}))["KeyMetadata"]["Arn"]);
    assert_eq!(shown(&default), (true, managed.clone()));
    for name in
        ["alias/mine", key.rsplit('/').next().unwrap(), &key, "arn:aws:kms:us-east-1:123456789012:alias/mine"]
    {
        let volume = rig.volume_of(json!({"Size": 1, "Encrypted": true, "KmsKeyId": name}));
        assert_eq!(shown(&volume), (true, key.clone()), "{name}");
    }
    let mine = rig.volume_of(json!({"Size": 1, "Encrypted": true, "KmsKeyId": key}));
    let (of_plain, of_mine) = (rig.snapshot(&plain), rig.snapshot(&mine));
    assert_eq!(shown(&rig.volume_of(json!({"SnapshotId": of_mine}))).1, key, "the snapshot's");
    assert_eq!(shown(&rig.volume_of(json!({"SnapshotId": of_mine, "Encrypted": true}))).1, key);
    assert!(!shown(&rig.volume_of(json!({"SnapshotId": of_plain}))).0);
    assert_eq!(
        text(&rig.show_snapshot(&copy(&rig, &of_mine, &json!({})))["KmsKeyId"]),
        managed,
        "of a copy: the default"
    );
    // Another account has its own default key, once the snapshot's is open to it.
    let share = json!({"SnapshotId": of_mine, "OperationType": "add", "UserIds": [OTHER]});
    rig.call("ModifySnapshotAttribute", share);
    let input = json!({"AvailabilityZone": "us-east-1a", "SnapshotId": of_mine});
    let theirs = || rig.try_as(OTHER, REGION, "CreateVolume", &input).unwrap();
    let failed = json!({"VolumeIds": [theirs()["VolumeId"]]});
    let gone = rig.try_as(OTHER, REGION, "DescribeVolumes", &failed).unwrap_err();
    assert_eq!(gone.code, "InvalidVolume.NotFound");
    let policy = json!({"Version": "2012-10-17", "Statement": {
        "Effect": "Allow", "Principal": {"AWS": [ACCOUNT, OTHER]}, "Action": "kms:*", "Resource": "*"}});
    rig.kms("PutKeyPolicy", json!({"KeyId": key, "Policy": policy.to_string()}));
    let theirs = text(&theirs()["KmsKeyId"]);
    assert!(theirs.contains(&format!(":{OTHER}:key/")), "{theirs}");
    // By default, from here on.
    rig.call("EnableEbsEncryptionByDefault", json!({}));
    rig.call("ModifyEbsDefaultKmsKeyId", json!({"KmsKeyId": "alias/mine"}));
    let rig = rig.reopened();
    let shown = |id: &str| text(&rig.show(id)["KmsKeyId"]);
    assert_eq!(
        rig.call("GetEbsEncryptionByDefault", json!({})),
        json!({"EbsEncryptionByDefault": true, "SseType": "sse-kms"})
    );
    assert_eq!(rig.call("GetEbsDefaultKmsKeyId", json!({}))["KmsKeyId"], json!(key));
    assert_eq!(shown(&rig.volume()), key);
    assert_eq!(shown(&rig.volume_of(json!({"Size": 1, "Encrypted": false}))), key);
    assert_eq!(shown(&rig.volume_of(json!({"SnapshotId": of_plain}))), key);
    assert_eq!(text(&rig.show_snapshot(&copy(&rig, &of_plain, &json!({})))["KmsKeyId"]), key);
    let elsewhere = rig.try_as(ACCOUNT, "us-west-2", "GetEbsEncryptionByDefault", &json!({})).unwrap();
    assert_eq!(elsewhere["EbsEncryptionByDefault"], false, "another Region");
    assert_eq!(rig.call("ResetEbsDefaultKmsKeyId", json!({}))["KmsKeyId"], "alias/aws/ebs");
    rig.call("DisableEbsEncryptionByDefault", json!({}));
    assert_eq!(rig.show(&rig.volume())["Encrypted"], false);
    let filter = |value: &str| json!({"Filters": [{"Name": "encrypted", "Values": [value]}]});
    let count = |value: &str| rig.call("DescribeVolumes", filter(value))["Volumes"].as_array().unwrap().len();
    assert_eq!(
        count("true") + count("false"),
        rig.call("DescribeVolumes", json!({}))["Volumes"].as_array().unwrap().len()
    );
    let of_snapshots = rig.call("DescribeSnapshots", filter("false"));
    assert_eq!(column(&of_snapshots["Snapshots"], "SnapshotId"), [of_plain]);
}

#[test]
fn policies_see_whether_and_with_which_key_something_is_encrypted() {
    let rig = Rig::new();
    let key = rig.key();
    let volume = rig.volume_of(json!({"Size": 1, "Encrypted": true, "KmsKeyId": key}));
    rig.snapshot(&volume);
    let asked = std::mem::take(&mut *rig.rights.asked.lock().unwrap());
    let of = |action: &str| {
        let access = asked.iter().find(|access| access.action == action).unwrap();
        (access.context.get("ec2:Encrypted").cloned(), access.context.get("ec2:KmsKeyId").cloned())
    };
    let expected = (Some(vec!["true".to_owned()]), Some(vec![key.clone()]));
    assert_eq!(of("ec2:CreateVolume"), expected);
    assert_eq!(of("ec2:CreateSnapshot"), expected, "of the volume");
    let of_key = asked.iter().find(|access| access.action == "kms:CreateGrant").unwrap();
    assert_eq!(
        (&of_key.resource, of_key.context["kms:ViaService"][0].as_str()),
        (&key, "ec2.us-east-1.amazonaws.com")
    );
    // A dry run asks for the volume's right alone, and finds no fault with a key.
    let dry = json!({"AvailabilityZone": "us-east-1a", "Size": 1, "Encrypted": true, "KmsKeyId": "alias/missing", "DryRun": true});
    assert_eq!(rig.code("CreateVolume", dry), "DryRunOperation");
}

#[derive(Debug, Default)]
struct Kept(Mutex<Vec<Value>>);

impl EventSink for Kept {
    fn publish(&self, event: &Value) {
        self.0.lock().unwrap().push(event["detail"].clone());
    }
}

#[test]
fn a_volume_with_a_key_that_cannot_be_used_gets_an_id_and_is_gone_when_creating_ends() {
    let rig = Rig::slow();
    let (disabled, denied) = (rig.key(), rig.key());
    rig.kms("DisableKey", json!({"KeyId": disabled}));
    let missing = "alias/missing".to_owned();
    for (key, cause) in [
        (disabled.clone(), format!("{disabled} is disabled.")),
        (missing.clone(), format!("{missing} does not exist.")),
        ("no key at all".to_owned(), "no key at all does not exist.".to_owned()),
        (denied.clone(), format!("{denied} is not accessible.")),
    ] {
        let kept = Arc::new(Kept::default());
        let sink: Arc<dyn EventSink> = Arc::<Kept>::clone(&kept);
        let ec2 =
            Ec2::open(&support::home(rig.dir.path()), rig.control.clone(), rig.options.clone()).unwrap();
        let ec2 = ec2.with_kms(rig.kms.clone()).with_events(sink);
        let call = |action: &str, input: Value| {
            support::call(&ec2, &rig.rights, rig.now(), (ACCOUNT, REGION), action, &input)
        };
        let token = &key[key.len() - 12..];
        let create = json!({"AvailabilityZone": "us-east-1a", "Size": 1, "Encrypted": true, "KmsKeyId": key, "ClientToken": token});
        *rig.rights.denied.lock().unwrap() =
            if key == denied { vec!["kms:CreateGrant".to_owned()] } else { Vec::new() };
        let created = call("CreateVolume", create.clone()).unwrap();
        assert_eq!((&created["State"], &created["Encrypted"]), (&json!("creating"), &json!(true)));
        let id = text(&created["VolumeId"]);
        call("DescribeVolumes", json!({"VolumeIds": [id]})).unwrap();
        rig.pass(10);
        assert_eq!(call("CreateVolume", create.clone()).unwrap()["VolumeId"], json!(id), "by its token");
        rig.pass(2_000);
        ec2.tick(rig.now());
        let gone = call("DescribeVolumes", json!({"VolumeIds": [id]})).unwrap_err();
        assert_eq!(gone.code, "InvalidVolume.NotFound");
        assert_eq!(call("CreateVolume", create).unwrap_err().code, "IdempotentParameterMismatch");
        assert!(!rig.names().0.contains(&id));
        let events = std::mem::take(&mut *kept.0.lock().unwrap());
        let short: Vec<_> = events
            .iter()
            .map(|event| (text(&event["event"]), text(&event["result"]), text(&event["cause"])))
            .collect();
        assert_eq!(short, [("createVolume".to_owned(), "failed".to_owned(), cause)]);
    }
    let rig = rig.reopened();
    assert_eq!(rig.call("DescribeVolumes", json!({}))["Volumes"], json!([]));
}

#[test]
fn a_disabled_key_fails_the_next_attachment_while_running_ones_go_on() {
    let rig = Rig::slow();
    let key = rig.key();
    let volume = || rig.volume_of(json!({"Size": 1, "Encrypted": true, "KmsKeyId": key}));
    let (running, next, instance) = (volume(), volume(), rig.instance());
    rig.pass(20_000);
    rig.attach(&running, &instance, "/dev/sdf");
    rig.pass(20_000);
    rig.kms("DisableKey", json!({"KeyId": key}));
    let answered = rig.attach(&next, &instance, "/dev/sdg");
    assert_eq!(answered["State"], "attaching");
    assert_eq!((rig.state(&running), rig.state(&next)), ("in-use".to_owned(), "in-use".to_owned()));
    rig.pass(2_000);
    assert_eq!(rig.state(&next), "available", "the attachment has failed");
    assert!(!rig.socket(&next).exists() && rig.socket(&running).exists());
    let snapshot = rig.snapshot(&running);
    rig.pass(20_000);
    assert_eq!(rig.show_snapshot(&snapshot)["State"], "completed");
    let failed = copy(&rig, &snapshot, &json!({}));
    rig.pass(20_000);
    let shown = rig.show_snapshot(&failed);
    assert_eq!(
        (&shown["State"], &shown["StateMessage"]),
        (&json!("error"), &json!("Given key ID is not accessible"))
    );
    let refused = rig.control.read_block(&snapshot, 0).unwrap_err();
    assert!(refused.to_string().contains("is encrypted"), "{refused}");
    rig.kms("EnableKey", json!({"KeyId": key}));
    rig.attach(&next, &instance, "/dev/sdg");
    rig.pass(2_000);
    assert!(rig.socket(&next).exists());
    // A start attaches again what has a key.
    let rig = rig.reopened();
    assert!(rig.socket(&next).exists() && rig.socket(&running).exists());
    rig.kms("DisableKey", json!({"KeyId": key}));
    let rig = rig.reopened();
    assert_eq!((rig.state(&running), rig.state(&next)), ("available".to_owned(), "available".to_owned()));
}

#[test]
fn an_attachment_that_fails_for_its_key_is_an_event_once_also_after_a_restart() {
    let rig = Rig::slow();
    let key = rig.key();
    let volume = rig.volume_of(json!({"Size": 1, "Encrypted": true, "KmsKeyId": key}));
    let instance = rig.instance();
    rig.pass(20_000);
    // What a server publishes that is started now and ends.
    let published = || -> Vec<(String, String, String)> {
        let kept = Arc::new(Kept::default());
        let sink: Arc<dyn EventSink> = Arc::<Kept>::clone(&kept);
        let ec2 = Ec2::open(&support::home(rig.dir.path()), rig.control.clone(), rig.options.clone());
        let ec2 = ec2.unwrap().with_kms(rig.kms.clone()).with_events(sink);
        ec2.tick(rig.now());
        drop(ec2);
        let events = kept.0.lock().unwrap();
        events.iter().map(|it| (text(&it["event"]), text(&it["result"]), text(&it["cause"]))).collect()
    };
    assert_eq!(published().len(), 1, "createVolume");
    rig.kms("DisableKey", json!({"KeyId": key}));
    rig.attach(&volume, &instance, "/dev/sdf");
    assert_eq!(published(), [], "it has not failed yet");
    rig.pass(2_000);
    // The cause is that of the attempt.
    rig.kms("EnableKey", json!({"KeyId": key}));
    let failed = ("attachVolume".to_owned(), "failed".to_owned(), format!("{key} is disabled."));
    assert_eq!(published(), [failed]);
    assert_eq!(published(), []);
}

#[test]
fn a_snapshot_of_blocks_is_encrypted_and_clients_see_it_plain() {
    use base64::Engine as _;
    use ring::digest;
    let rig = Rig::new();
    let key = rig.key();
    let ebs = |action: &str, input: Value, payload: &[u8]| {
        support::answer(
            rig.ebs.as_ref(),
            &rig.rights,
            rig.now(),
            (ACCOUNT, REGION),
            action,
            (&input, payload),
        )
    };
    let started =
        ebs("StartSnapshot", json!({"VolumeSize": 1, "Encrypted": true, "KmsKeyArn": key}), &[]).unwrap();
    assert_eq!((&started.output["SseType"], &started.output["KmsKeyArn"]), (&json!("sse-kms"), &json!(key)));
    let id = text(&started.output["SnapshotId"]);
    let block: Vec<u8> = marked().into_iter().cycle().take(512 << 10).collect();
    let checksum = base64::engine::general_purpose::STANDARD.encode(digest::digest(&digest::SHA256, &block));
    let put = json!({"SnapshotId": id, "BlockIndex": 1, "DataLength": 512 << 10, "Checksum": checksum, "ChecksumAlgorithm": "SHA256"});
    ebs("PutSnapshotBlock", put, &block).unwrap();
    ebs("CompleteSnapshot", json!({"SnapshotId": id, "ChangedBlocksCount": 1}), &[]).unwrap();
    let child = ebs("StartSnapshot", json!({"VolumeSize": 1, "ParentSnapshotId": id}), &[]).unwrap();
    assert_eq!(child.output["KmsKeyArn"], json!(key), "as its parent");
    let listed = ebs("ListSnapshotBlocks", json!({"SnapshotId": id}), &[]).unwrap();
    let get =
        json!({"SnapshotId": id, "BlockIndex": 1, "BlockToken": listed.output["Blocks"][0]["BlockToken"]});
    assert!(ebs("GetSnapshotBlock", get.clone(), &[]).unwrap().payload == block);
    assert_eq!(with_marker(&support::home(rig.dir.path())), [""; 0]);
    rig.kms("DisableKey", json!({"KeyId": key}));
    for refused in [
        ebs("GetSnapshotBlock", get, &[]).unwrap_err(),
        ebs("StartSnapshot", json!({"VolumeSize": 1, "KmsKeyArn": key}), &[]).unwrap_err(),
    ] {
        assert_eq!(refused.members["Reason"], "INVALID_CUSTOMER_KEY");
        assert_eq!(refused.message, format!("{key} is disabled."));
    }
    rig.call("EnableEbsEncryptionByDefault", json!({}));
    let by_default = ebs("StartSnapshot", json!({"VolumeSize": 1}), &[]).unwrap();
    assert_eq!(by_default.output["SseType"], "sse-kms");
}

#[test]
fn a_death_around_an_encryption_anew_is_taken_back_by_the_next_start() {
    for moment in [Moment::Before, Moment::After] {
        for (step, action) in [("encrypt_snapshot", "CopySnapshot"), ("create_volume", "CreateVolume")] {
            let rig = Rig::new();
            let volume = rig.volume();
            let rig = mark(rig, &[&volume]);
            let snapshot = rig.snapshot(&volume);
            let home = support::home(rig.dir.path());
            let dying = Arc::new(Dying { inner: rig.control.clone(), at: Mutex::new(None) });
            let open =
                |plane| Ec2::open(&home, plane, rig.options.clone()).unwrap().with_kms(rig.kms.clone());
            let ec2 = open(dying.clone());
            *dying.at.lock().unwrap() = Some((step, moment));
            let input = json!({
                "AvailabilityZone": "us-east-1a", "SnapshotId": snapshot, "SourceRegion": REGION,
                "SourceSnapshotId": snapshot, "Encrypted": true,
            });
            let call = || support::call(&ec2, &rig.rights, rig.now(), (ACCOUNT, REGION), action, &input);
            catch_unwind(AssertUnwindSafe(call)).expect_err(action);
            // What a kill within the step leaves: the content, half of it, under the name of the record.
            if moment == Moment::Before {
                let making = std::fs::read(home.join("aws.db-wal")).unwrap();
                let prefix: &[u8] = if action == "CopySnapshot" { b"snap-" } else { b"vol-" };
                let ids: Vec<String> = making
                    .windows(prefix.len() + 17)
                    .filter(|part| {
                        part.starts_with(prefix) && part[prefix.len()..].iter().all(u8::is_ascii_hexdigit)
                    })
                    .map(|part| String::from_utf8(part.to_vec()).unwrap())
                    .collect();
                let id = ids.iter().rev().find(|id| **id != volume && **id != snapshot).unwrap();
                let begun = ebbtide_control::BeginSnapshot {
                    name: id.clone(),
                    size_bytes: 1 << 30,
                    parent: None,
                    key: None,
                };
                rig.control.begin_snapshot(&begun).unwrap();
            }
            drop(ec2);
            drop(open(rig.control.clone()));
            assert_eq!(rig.names(), (vec![volume], vec![snapshot]), "{action}, {moment:?}");
            assert_eq!(rig.names_pending(), [""; 0], "{action}, {moment:?}");
        }
    }
}
