//! The recycle bin: what rules keep, for how long, and that it comes back whole.

use ebbtide_cloud::rbin::Rbin;
use ebbtide_cloud::{ApiError, Service};
use ebbtide_device::host::Home;
use ebbtide_device::store::{StoreOptions, VolumeStore};
use serde_json::{Value, json};

use crate::direct::filled;
use crate::support::{self, ACCOUNT, OTHER, REGION, Rig, column, text};

const DAY: u64 = 86_400_000;

impl Rig {
    fn try_rule_as(&self, account: &str, action: &str, input: &Value) -> Result<Value, ApiError> {
        let rbin = Rbin::new(self.ec2.clone());
        let service: &dyn Service = &rbin;
        let caller = (account, REGION);
        let answer = support::answer(service, &self.rights, self.now(), caller, action, (input, &[]));
        answer.map(|answer| Value::Object(answer.output))
    }

    #[track_caller]
    fn rule(&self, action: &str, input: Value) -> Value {
        let answer = self.try_rule_as(ACCOUNT, action, &input);
        answer.unwrap_or_else(|error| panic!("{action} {input}: {error}"))
    }

    #[track_caller]
    fn keep(&self, kind: &str, days: u64, more: Value) -> String {
        let mut input = json!({
            "ResourceType": kind,
            "RetentionPeriod": {"RetentionPeriodValue": days, "RetentionPeriodUnit": "DAYS"},
        });
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        text(&self.rule("CreateRule", input)["Identifier"])
    }

    /// Deletes a volume and a snapshot, which are kept for a day.
    pub(crate) fn bin(&self, volume: &str, snapshot: &str) {
        let rules = ["EBS_VOLUME", "EBS_SNAPSHOT"].map(|kind| self.keep(kind, 1, json!({})));
        self.call("DeleteVolume", json!({"VolumeId": volume}));
        self.call("DeleteSnapshot", json!({"SnapshotId": snapshot}));
        for rule in rules {
            self.rule("DeleteRule", json!({"Identifier": rule}));
        }
    }

    fn binned(&self, action: &str, list: &str, id: &str) -> Vec<String> {
        column(&self.call(action, json!({}))[list], id)
    }

    fn binned_snapshots(&self) -> Vec<String> {
        self.binned("ListSnapshotsInRecycleBin", "Snapshots", "SnapshotId")
    }

    fn binned_volumes(&self) -> Vec<String> {
        self.binned("ListVolumesInRecycleBin", "Volumes", "VolumeId")
    }
}

#[test]
fn a_deleted_snapshot_comes_back_with_its_blocks_or_is_gone_at_the_end_of_its_time() {
    let rig = Rig::new();
    rig.keep("EBS_SNAPSHOT", 3, json!({}));
    let id = rig.start(None);
    rig.put(&id, 5, &filled(9));
    rig.complete(&id, 1);
    rig.call("DeleteSnapshot", json!({"SnapshotId": id}));
    assert_eq!(rig.code("DescribeSnapshots", json!({"SnapshotIds": [id]})), "InvalidSnapshot.NotFound");
    assert_eq!(rig.used_by_volume(&id), "InvalidSnapshot.NotFound");
    let shown = rig.call("ListSnapshotsInRecycleBin", json!({"SnapshotIds": [id]}))["Snapshots"][0].clone();
    assert_eq!(shown["RecycleBinEnterTime"], json!(rig.now() / 1_000));
    assert_eq!(shown["RecycleBinExitTime"], json!((rig.now() + 3 * DAY) / 1_000));
    rig.pass(3 * DAY - 1);
    let rig = rig.reopened();
    assert_eq!(rig.binned_snapshots(), [id.as_str()]);
    let restored = rig.call("RestoreSnapshotFromRecycleBin", json!({"SnapshotId": id}));
    assert_eq!((&restored["SnapshotId"], &restored["State"]), (&json!(id), &json!("completed")));
    let blocks = rig.listed(&id);
    assert_eq!(blocks.len(), 1);
    assert_eq!(rig.block(&id, 5, &blocks[0].1), filled(9));
    let twice = json!({"SnapshotId": id});
    assert_eq!(rig.code("RestoreSnapshotFromRecycleBin", twice), "InvalidSnapshot.NotFound");

    rig.call("DeleteSnapshot", json!({"SnapshotId": id}));
    rig.pass(3 * DAY);
    assert_eq!(
        rig.code("RestoreSnapshotFromRecycleBin", json!({"SnapshotId": id})),
        "InvalidSnapshot.NotFound"
    );
    assert_eq!(rig.binned_snapshots(), [""; 0]);
    assert_eq!(rig.names().1, [""; 0], "the block store has nothing of it");
}

impl Rig {
    fn used_by_volume(&self, id: &str) -> String {
        self.code("CreateVolume", json!({"AvailabilityZone": "us-east-1a", "SnapshotId": id}))
    }
}

#[test]
fn a_deleted_volume_comes_back_with_its_bytes() {
    let rig = Rig::new();
    rig.keep("EBS_VOLUME", 7, json!({"ResourceTags": [{"ResourceTagKey": "keep"}]}));
    let tagged = json!({"Size": 1, "TagSpecifications": [{"ResourceType": "volume",
        "Tags": [{"Key": "keep", "Value": "yes"}]}]});
    let (kept, other) = (rig.volume_of(tagged), rig.volume());
    let rig = rig.reopened_after(|home| {
        let store =
            VolumeStore::open(&Home::open(home).unwrap().store_dir(), StoreOptions::default()).unwrap();
        store.open_volume(&kept).unwrap().write_at(&[42; 4096], 8192).unwrap();
    });
    for id in [&kept, &other] {
        rig.call("DeleteVolume", json!({"VolumeId": id}));
        assert_eq!(rig.code("DescribeVolumes", json!({"VolumeIds": [id]})), "InvalidVolume.NotFound");
    }
    assert_eq!(rig.binned_volumes(), [kept.as_str()]);
    assert_eq!(rig.names().0, [kept.as_str()]);
    let refused = json!({"VolumeId": other});
    assert_eq!(rig.code("RestoreVolumeFromRecycleBin", refused), "InvalidVolume.NotFound");
    assert_eq!(rig.call("RestoreVolumeFromRecycleBin", json!({"VolumeId": kept})), json!({"Return": true}));
    assert_eq!(rig.state(&kept), "available");
    assert_eq!(rig.show(&kept)["Tags"], json!([{"Key": "keep", "Value": "yes"}]));
    let rig = rig.reopened_after(|home| {
        let store =
            VolumeStore::open(&Home::open(home).unwrap().store_dir(), StoreOptions::default()).unwrap();
        let mut data = [0; 4096];
        store.open_volume(&kept).unwrap().read_at(&mut data, 8192).unwrap();
        assert_eq!(data, [42; 4096]);
    });
    // With its instance it goes to the bin, too.
    let instance = rig.instance();
    rig.attach(&kept, &instance, "/dev/sdf");
    let mapping = json!([{"DeviceName": "/dev/sdf", "Ebs": {"DeleteOnTermination": true}}]);
    rig.call("ModifyInstanceAttribute", json!({"InstanceId": instance, "BlockDeviceMappings": mapping}));
    rig.call("TerminateInstances", json!({"InstanceIds": [instance]}));
    assert_eq!(rig.binned_volumes(), [kept.as_str()]);
    rig.pass(7 * DAY);
    assert_eq!(rig.binned_volumes(), [""; 0]);
    assert_eq!(rig.names().0, [""; 0]);
}

#[test]
fn the_longest_rule_that_matches_decides() {
    let rig = Rig::new();
    rig.keep("EBS_SNAPSHOT", 10, json!({"ResourceTags": [{"ResourceTagKey": "a", "ResourceTagValue": "1"}]}));
    rig.keep("EBS_SNAPSHOT", 20, json!({"ExcludeResourceTags": [{"ResourceTagKey": "no"}]}));
    let volume = rig.volume();
    for (tags, days) in [
        (json!([{"Key": "a", "Value": "1"}]), Some(20)),
        (json!([{"Key": "a", "Value": "1"}, {"Key": "no", "Value": ""}]), Some(10)),
        (json!([{"Key": "a", "Value": "2"}, {"Key": "no", "Value": ""}]), None),
        (json!([{"Key": "b", "Value": "1"}]), Some(20)),
    ] {
        let specification = json!([{"ResourceType": "snapshot", "Tags": tags}]);
        let input = json!({"VolumeId": volume, "TagSpecifications": specification});
        let id = text(&rig.call("CreateSnapshot", input)["SnapshotId"]);
        rig.call("DeleteSnapshot", json!({"SnapshotId": id}));
        let bin = rig.call("ListSnapshotsInRecycleBin", json!({}))["Snapshots"].clone();
        let found = bin.as_array().unwrap().iter().find(|row| row["SnapshotId"] == id.as_str());
        let kept = found.map(|row| {
            let at = |name: &str| row[name].as_f64().unwrap();
            (at("RecycleBinExitTime") - at("RecycleBinEnterTime")) / 86_400.0
        });
        assert_eq!(kept, days.map(f64::from), "{tags}");
    }
    // What failed is not kept.
    let failing = json!({"SourceRegion": REGION, "SourceSnapshotId": "snap-0123456789abcdef0"});
    let failed = text(&rig.call("CopySnapshot", failing)["SnapshotId"]);
    rig.call("DeleteSnapshot", json!({"SnapshotId": failed}));
    assert!(!rig.binned_snapshots().contains(&failed));
}

#[test]
fn rules_are_made_changed_listed_tagged_and_deleted() {
    let rig = Rig::new();
    let tags = json!([{"Key": "team", "Value": "db"}]);
    let id = rig.keep("EBS_SNAPSHOT", 30, json!({"Description": "for a month", "Tags": tags}));
    assert!(id.len() == 11 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
    rig.keep("EBS_VOLUME", 7, json!({}));
    let rig = rig.reopened();
    let rule = rig.rule("GetRule", json!({"Identifier": id}));
    assert_eq!(rule["RetentionPeriod"]["RetentionPeriodValue"], 30);
    assert_eq!((&rule["Status"], &rule["Description"]), (&json!("available"), &json!("for a month")));
    let arn = rule["RuleArn"].clone();
    assert_eq!(arn, json!(format!("arn:aws:rbin:{REGION}:{ACCOUNT}:rule/{id}")));
    assert_eq!(rig.rule("ListTagsForResource", json!({"ResourceArn": arn})), json!({"Tags": tags}));
    rig.rule("TagResource", json!({"ResourceArn": arn, "Tags": [{"Key": "b", "Value": "1"}]}));
    rig.rule("UntagResource", json!({"ResourceArn": arn, "TagKeys": ["team"]}));
    let tags = rig.rule("ListTagsForResource", json!({"ResourceArn": arn}));
    assert_eq!(tags, json!({"Tags": [{"Key": "b", "Value": "1"}]}));
    let period = json!({"RetentionPeriodValue": 365, "RetentionPeriodUnit": "DAYS"});
    let updated = rig.rule("UpdateRule", json!({"Identifier": id, "RetentionPeriod": period}));
    assert_eq!(updated["RetentionPeriod"], period);
    let second = rig.keep("EBS_SNAPSHOT", 1, json!({}));
    let mut all = [id.clone(), second];
    all.sort();
    let page = rig.rule("ListRules", json!({"ResourceType": "EBS_SNAPSHOT", "MaxResults": 1}));
    assert_eq!(column(&page["Rules"], "Identifier"), [all[0].as_str()]);
    let more = json!({"ResourceType": "EBS_SNAPSHOT", "NextToken": page["NextToken"]});
    assert_eq!(column(&rig.rule("ListRules", more)["Rules"], "Identifier"), [all[1].as_str()]);
    let code = |account: &str, action: &str, input: Value| {
        rig.try_rule_as(account, action, &input).unwrap_err().code.into_owned()
    };
    assert_eq!(code(OTHER, "GetRule", json!({"Identifier": id})), "ResourceNotFoundException");
    rig.rule("DeleteRule", json!({"Identifier": id}));
    assert_eq!(code(ACCOUNT, "GetRule", json!({"Identifier": id})), "ResourceNotFoundException");
    let days = |value: i64| json!({"RetentionPeriodValue": value, "RetentionPeriodUnit": "DAYS"});
    for wrong in [
        json!({"ResourceType": "EBS_VOLUME", "RetentionPeriod": days(8)}),
        json!({"ResourceType": "EBS_SNAPSHOT", "RetentionPeriod": days(366)}),
        json!({"ResourceType": "EBS_SNAPSHOT", "RetentionPeriod": days(0)}),
        json!({"ResourceType": "EC2_IMAGE", "RetentionPeriod": days(1)}),
        json!({"ResourceType": "EBS_SNAPSHOT", "RetentionPeriod": {"RetentionPeriodValue": 1, "RetentionPeriodUnit": "H"}}),
        json!({"ResourceType": "EBS_SNAPSHOT", "RetentionPeriod": days(1),
            "ResourceTags": [{"ResourceTagKey": "a"}], "ExcludeResourceTags": [{"ResourceTagKey": "b"}]}),
    ] {
        assert_eq!(code(ACCOUNT, "CreateRule", wrong.clone()), "ValidationException", "{wrong}");
    }
}

#[test]
fn a_locked_rule_stays_as_it_is_until_its_unlock_delay_has_ended() {
    let rig = Rig::new();
    let lock = |days: u64| json!({"UnlockDelay": {"UnlockDelayValue": days, "UnlockDelayUnit": "DAYS"}});
    let id = rig.keep("EBS_SNAPSHOT", 30, json!({}));
    let of_rule = |more: Value| {
        let mut input = json!({"Identifier": id});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        input
    };
    let lock_for = |days: u64| of_rule(json!({"LockConfiguration": lock(days)}));
    let code = |rig: &Rig, action: &str, input: &Value| {
        let refused = rig.try_rule_as(ACCOUNT, action, input).unwrap_err();
        (refused.code.into_owned(), refused.members["Reason"].clone(), refused.status)
    };
    let conflict = ("ConflictException".to_owned(), json!("INVALID_RULE_STATE"), 409);
    let change = of_rule(json!({"Description": "changed"}));
    let of_state = |rig: &Rig, state: &str| {
        let asked = json!({"ResourceType": "EBS_SNAPSHOT", "LockState": state});
        column(&rig.rule("ListRules", asked)["Rules"], "Identifier")
    };
    assert!(rig.rule("GetRule", of_rule(json!({}))).get("LockState").is_none(), "it was never locked");
    assert_eq!(code(&rig, "UnlockRule", &of_rule(json!({}))), conflict);
    let locked = rig.rule("LockRule", lock_for(7));
    assert_eq!((&locked["LockState"], &locked["LockConfiguration"]), (&json!("locked"), &lock(7)));
    let rig = rig.reopened();
    for (action, input) in
        [("UpdateRule", &change), ("DeleteRule", &of_rule(json!({}))), ("LockRule", &lock_for(7))]
    {
        assert_eq!(code(&rig, action, input), conflict, "{action}");
    }
    assert_eq!((of_state(&rig, "locked"), of_state(&rig, "unlocked")), (vec![id.clone()], Vec::new()));

    let unlocked = rig.rule("UnlockRule", of_rule(json!({})));
    assert_eq!(unlocked["LockState"], "pending_unlock");
    assert_eq!(unlocked["LockEndTime"], json!((rig.now() + 7 * DAY) / 1_000));
    rig.pass(7 * DAY - 1);
    for (action, input) in [
        ("UpdateRule", &change),
        ("DeleteRule", &of_rule(json!({}))),
        ("UnlockRule", &of_rule(json!({}))),
        ("LockRule", &lock_for(8)),
    ] {
        assert_eq!(code(&rig, action, input), conflict, "{action}");
    }
    // To lock it again begins the delay anew.
    assert_eq!(rig.rule("LockRule", lock_for(7))["LockState"], "locked");
    rig.pass(1);
    assert_eq!(code(&rig, "UpdateRule", &change), conflict);
    rig.rule("UnlockRule", of_rule(json!({})));
    rig.pass(7 * DAY);
    let rig = rig.reopened();
    let shown = rig.rule("GetRule", of_rule(json!({})));
    assert_eq!((&shown["LockState"], shown.get("LockConfiguration")), (&json!("unlocked"), None));
    assert_eq!(of_state(&rig, "unlocked"), [id.as_str()]);
    assert_eq!(rig.rule("UpdateRule", change)["Description"], "changed");
    assert_eq!(rig.rule("LockRule", lock_for(30))["LockConfiguration"], lock(30), "another delay");

    let made = rig.keep("EBS_VOLUME", 7, json!({"LockConfiguration": lock(8)}));
    let made = rig.rule("GetRule", json!({"Identifier": made}));
    assert_eq!((&made["LockState"], &made["LockConfiguration"]), (&json!("locked"), &lock(8)));
    // Rules that choose by tags cannot be locked.
    let by_tag = rig.keep("EBS_SNAPSHOT", 1, json!({"ResourceTags": [{"ResourceTagKey": "a"}]}));
    let mut input = json!({"Identifier": by_tag, "LockConfiguration": lock(7)});
    assert_eq!(code(&rig, "LockRule", &input).0, "ValidationException");
    input = json!({"ResourceType": "EBS_SNAPSHOT", "LockConfiguration": lock(7),
        "RetentionPeriod": {"RetentionPeriodValue": 1, "RetentionPeriodUnit": "DAYS"},
        "ExcludeResourceTags": [{"ResourceTagKey": "a"}]});
    assert_eq!(code(&rig, "CreateRule", &input).0, "ValidationException");
}
