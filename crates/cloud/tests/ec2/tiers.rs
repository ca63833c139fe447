//! The archive tier, locks of snapshots, and block public access.

use serde_json::{Value, json};

use crate::support::{OTHER, REGION, Rig, column, text};

const MINUTE: u64 = 60_000;
const DAY: u64 = 86_400_000;

impl Rig {
    fn tier(&self, id: &str) -> Value {
        let filter = json!({"Filters": [{"Name": "snapshot-id", "Values": [id]}]});
        self.call("DescribeSnapshotTierStatus", filter)["SnapshotTierStatuses"][0].clone()
    }

    /// The tier and the last operation of a snapshot.
    fn tiered(&self, id: &str) -> (String, String) {
        let shown = self.tier(id);
        assert_eq!(self.show_snapshot(id)["StorageTier"], shown["StorageTier"]);
        (text(&shown["StorageTier"]), text(&shown["LastTieringOperationStatus"]))
    }

    /// The code of an attempt to make a volume of a snapshot; empty where it succeeds.
    fn used(&self, id: &str) -> String {
        let input = json!({"AvailabilityZone": "us-east-1a", "SnapshotId": id});
        self.attempt("CreateVolume", &input).err().map(|error| error.code.into_owned()).unwrap_or_default()
    }
}

fn pair(tier: &str, operation: &str) -> (String, String) {
    (tier.to_owned(), operation.to_owned())
}

#[test]
fn a_snapshot_is_archived_and_comes_back_for_a_while_and_for_good() {
    let rig = Rig::slow();
    let volume = rig.volume();
    rig.pass(2_000);
    let id = rig.snapshot(&volume);
    let archive = || json!({"SnapshotId": id, "StorageTier": "archive"});
    assert_eq!(rig.code("ModifySnapshotTier", archive()), "IncorrectState", "it is pending");
    rig.pass(4_000);
    assert!(rig.tier(&id).get("LastTieringOperationStatus").is_none());
    assert_eq!(rig.tier(&id)["StorageTier"], "standard");
    let begun = rig.call("ModifySnapshotTier", archive());
    assert_eq!(begun["SnapshotId"], id);
    rig.pass(7 * MINUTE + 30_000);
    assert_eq!(rig.tiered(&id), pair("standard", "archival-in-progress"));
    assert_eq!(rig.tier(&id)["LastTieringProgress"], 50);
    assert_eq!(rig.used(&id), "", "until it is in the archive");
    assert_eq!(rig.code("ModifySnapshotTier", archive()), "IncorrectState");
    rig.pass(7 * MINUTE + 30_000);
    let rig = rig.reopened();
    assert_eq!(rig.tiered(&id), pair("archive", "archival-completed"));
    let completed = rig.tier(&id)["ArchivalCompleteTime"].clone();
    assert_eq!(completed, json!(rig.now() / 1_000));
    let found = json!({"Filters": [{"Name": "storage-tier", "Values": ["archive"]}]});
    assert_eq!(column(&rig.call("DescribeSnapshots", found)["Snapshots"], "SnapshotId"), [id.as_str()]);
    // Nothing reads it now.
    assert_eq!(rig.used(&id), "IncorrectState");
    let copy = json!({"SourceRegion": REGION, "SourceSnapshotId": id});
    assert_eq!(rig.code("CopySnapshot", copy), "IncorrectState");
    assert_eq!(rig.direct_refused("ListSnapshotBlocks", json!({"SnapshotId": id})), "INVALID_SNAPSHOT_ID");
    let share = json!({"SnapshotId": id, "CreateVolumePermission": {"Add": [{"UserId": OTHER}]}});
    assert_eq!(rig.code("ModifySnapshotAttribute", share), "IncorrectState");

    let restored = rig.call("RestoreSnapshotTier", json!({"SnapshotId": id, "TemporaryRestoreDays": 2}));
    assert_eq!((&restored["RestoreDuration"], &restored["IsPermanentRestore"]), (&json!(2), &json!(false)));
    assert_eq!(rig.tiered(&id), pair("archive", "temporary-restore-in-progress"));
    assert_eq!(rig.used(&id), "IncorrectState");
    rig.pass(60 * MINUTE);
    assert_eq!(rig.tiered(&id), pair("archive", "temporary-restore-completed"));
    assert_eq!(rig.tier(&id)["RestoreExpiryTime"], json!((rig.now() + 2 * DAY) / 1_000));
    assert_eq!(rig.used(&id), "");
    // The period begins anew, at once.
    rig.pass(DAY);
    rig.call("RestoreSnapshotTier", json!({"SnapshotId": id, "TemporaryRestoreDays": 2}));
    rig.pass(2 * DAY - 1);
    assert_eq!(rig.used(&id), "");
    rig.pass(1);
    assert_eq!(rig.tiered(&id), pair("archive", "archival-completed"));
    assert_eq!(rig.used(&id), "IncorrectState");
    assert_eq!(rig.tier(&id)["ArchivalCompleteTime"], completed);

    rig.call("RestoreSnapshotTier", json!({"SnapshotId": id, "PermanentRestore": true}));
    assert_eq!(rig.tiered(&id), pair("archive", "permanent-restore-in-progress"));
    rig.pass(60 * MINUTE);
    assert_eq!(rig.tiered(&id), pair("standard", "permanent-restore-completed"));
    assert_eq!(rig.used(&id), "");
    rig.call("ModifySnapshotTier", archive());
    rig.call("DeleteSnapshot", json!({"SnapshotId": id}));
}

#[test]
fn archives_have_quotas() {
    let rig = Rig::with(|mut options| {
        options.quotas.archived_of_volume = 2;
        options.quotas.archiving = 2;
        options.quotas.restoring = 1;
        options.timing.snapshot_spacing_ms = 0;
        options.timing.snapshot_ms = 0;
        options.timing.creating_ms = 0;
        options
    });
    let volume = rig.volume();
    let ids = [(); 3].map(|()| rig.snapshot(&volume));
    let archive =
        |id: &str| rig.attempt("ModifySnapshotTier", &json!({"SnapshotId": id, "StorageTier": "archive"}));
    archive(&ids[0]).unwrap();
    archive(&ids[1]).unwrap();
    let refused = archive(&ids[2]).unwrap_err();
    assert_eq!(refused.code, "ResourceLimitExceeded");
    assert!(refused.message.contains(&volume), "{}", refused.message);
    let other = rig.snapshot(&rig.volume());
    assert!(archive(&other).unwrap_err().message.contains("being archived"));
    rig.pass(15 * MINUTE);
    archive(&other).unwrap();
    let restore =
        |id: &str| rig.attempt("RestoreSnapshotTier", &json!({"SnapshotId": id, "PermanentRestore": true}));
    restore(&ids[0]).unwrap();
    assert_eq!(restore(&ids[1]).unwrap_err().code, "ResourceLimitExceeded");
    rig.pass(60 * MINUTE);
    restore(&ids[1]).unwrap();
}

#[test]
fn a_locked_snapshot_stays_until_its_lock_ends() {
    let rig = Rig::new();
    let id = rig.snapshot(&rig.volume());
    let lock = |more: Value| {
        let mut input = json!({"SnapshotId": id});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        rig.attempt("LockSnapshot", &input).map_err(|error| error.code.into_owned())
    };
    let state = || {
        let shown = rig.call("DescribeLockedSnapshots", json!({"SnapshotIds": [id]}));
        shown["Snapshots"][0]["LockState"].clone()
    };
    let delete = || rig.attempt("DeleteSnapshot", &json!({"SnapshotId": id})).err().map(|error| error.code);
    let unlock = || rig.attempt("UnlockSnapshot", &json!({"SnapshotId": id})).err().map(|error| error.code);
    assert_eq!(state(), Value::Null);
    assert_eq!(unlock().unwrap(), "IncorrectState");

    let answer = lock(json!({"LockMode": "governance", "LockDuration": 10})).unwrap();
    assert_eq!((&answer["LockState"], &answer["LockDuration"]), (&json!("governance"), &json!(10)));
    assert_eq!(answer["LockExpiresOn"], json!((rig.now() + 10 * DAY) / 1_000));
    assert_eq!(delete().unwrap(), "OperationNotPermitted");
    // It may be shorter, and ended.
    lock(json!({"LockMode": "governance", "LockDuration": 1})).unwrap();
    rig.pass(DAY);
    assert_eq!(state(), "expired");
    lock(json!({"LockMode": "governance", "ExpirationDate": (rig.now() + DAY) / 1_000})).unwrap();
    assert_eq!(unlock(), None);
    assert_eq!(state(), Value::Null);

    let answer = lock(json!({"LockMode": "compliance", "LockDuration": 5, "CoolOffPeriod": 3})).unwrap();
    assert_eq!(answer["LockState"], "compliance-cooloff");
    assert_eq!(answer["CoolOffPeriodExpiresOn"], json!((rig.now() + 180 * MINUTE) / 1_000));
    assert_eq!(unlock(), None, "it cools off");
    lock(json!({"LockMode": "compliance", "LockDuration": 5, "CoolOffPeriod": 3})).unwrap();
    rig.pass(180 * MINUTE);
    assert_eq!(state(), "compliance");
    for (refused, what) in [
        (json!({"LockMode": "governance", "LockDuration": 100}), "another mode"),
        (json!({"LockMode": "compliance", "LockDuration": 4}), "a shorter time"),
    ] {
        assert_eq!(lock(refused).unwrap_err(), "OperationNotPermitted", "{what}");
    }
    assert_eq!(unlock().unwrap(), "OperationNotPermitted");
    lock(json!({"LockMode": "compliance", "LockDuration": 6})).unwrap();
    assert_eq!(delete().unwrap(), "OperationNotPermitted");
    let in_state = json!({"Filters": [{"Name": "lock-state", "Values": ["compliance"]}]});
    assert_eq!(
        column(&rig.call("DescribeLockedSnapshots", in_state)["Snapshots"], "SnapshotId"),
        [id.as_str()]
    );
    rig.pass(6 * DAY);
    assert_eq!(state(), "expired");
    assert_eq!(delete(), None);
}

#[test]
fn public_snapshots_are_blocked_as_the_account_says() {
    let rig = Rig::new();
    let (public, private) = (rig.snapshot(&rig.volume()), rig.snapshot(&rig.volume()));
    let share = |id: &str| {
        let input = json!({"SnapshotId": id, "CreateVolumePermission": {"Add": [{"Group": "all"}]}});
        rig.attempt("ModifySnapshotAttribute", &input)
    };
    let seen = || {
        let answer = rig.try_as(OTHER, REGION, "DescribeSnapshots", &json!({})).unwrap();
        column(&answer["Snapshots"], "SnapshotId")
    };
    let state = || rig.call("GetSnapshotBlockPublicAccessState", json!({}));
    assert_eq!(state(), json!({"State": "unblocked", "ManagedBy": "account"}));
    share(&public).unwrap();
    assert_eq!(seen(), [public.as_str()]);

    rig.call("EnableSnapshotBlockPublicAccess", json!({"State": "block-new-sharing"}));
    assert_eq!(state()["State"], "block-new-sharing");
    assert_eq!(share(&private).unwrap_err().code, "OperationNotPermitted");
    let account = json!({"SnapshotId": private, "CreateVolumePermission": {"Add": [{"UserId": OTHER}]}});
    rig.call("ModifySnapshotAttribute", account);
    let mut both = [public.as_str(), private.as_str()];
    both.sort_unstable();
    assert_eq!(seen(), both, "what was public is, and accounts may still be named");

    rig.call("EnableSnapshotBlockPublicAccess", json!({"State": "block-all-sharing"}));
    assert_eq!(seen(), [private.as_str()]);
    // Another account decides for itself.
    let theirs = rig.try_as(OTHER, REGION, "GetSnapshotBlockPublicAccessState", &json!({})).unwrap();
    assert_eq!(theirs["State"], "unblocked");
    rig.call("DisableSnapshotBlockPublicAccess", json!({}));
    assert_eq!(seen(), both, "it is public again");
    share(&private).unwrap();
}
