//! What each call does.

use serde_json::{Value, json};

use super::{BLOCK, aggregate, checksum, filled, reason};
use crate::support::{ACCOUNT, OTHER, REGION, Rig, START_MS, text};

const MINUTE_MS: u64 = 60_000;

#[test]
fn a_snapshot_of_blocks_is_pending_until_it_is_completed() {
    let rig = Rig::slow();
    let started = rig.direct(
        "StartSnapshot",
        json!({"VolumeSize": 2, "Description": "by blocks", "Tags": [{"Key": "k", "Value": "v"}]}),
    );
    let id = text(&started["SnapshotId"]);
    assert_eq!(
        started,
        json!({
            "SnapshotId": id, "OwnerId": ACCOUNT, "Status": "pending", "StartTime": START_MS as f64 / 1e3,
            "VolumeSize": 2, "BlockSize": BLOCK, "Description": "by blocks", "SseType": "none",
            "Tags": [{"Key": "k", "Value": "v"}],
        })
    );
    let shown = rig.show_snapshot(&id);
    assert_eq!(
        (&shown["State"], &shown["VolumeId"], &shown["VolumeSize"], &shown["Progress"], &shown["Tags"]),
        (&json!("pending"), &json!("vol-ffffffff"), &json!(2), &json!("0%"), &started["Tags"])
    );
    assert_eq!(shown.get("FullSnapshotSizeInBytes"), None);
    rig.put(&id, 4_095, &filled(7));
    rig.put(&id, 0, &filled(1));
    rig.put(&id, 0, &filled(2));
    assert_eq!(rig.direct_refused("ListSnapshotBlocks", json!({"SnapshotId": id})), "SNAPSHOT_NOT_FOUND");
    let from_pending = json!({"AvailabilityZone": "us-east-1a", "SnapshotId": id});
    assert_eq!(rig.code("CreateVolume", from_pending.clone()), "IncorrectState");

    let checksum = aggregate([&filled(2)[..], &filled(7)]);
    let complete = json!({
        "SnapshotId": id, "ChangedBlocksCount": 2, "Checksum": checksum, "ChecksumAlgorithm": "SHA256",
        "ChecksumAggregationMethod": "LINEAR",
    });
    assert_eq!(rig.direct("CompleteSnapshot", complete.clone()), json!({"Status": "pending"}));
    assert_eq!(rig.show_snapshot(&id)["State"], "pending");
    assert_eq!(reason(&rig.try_put(&id, 1, &filled(1)).unwrap_err()), "INVALID_SNAPSHOT_ID");
    rig.pass(5_000);
    assert_eq!(rig.direct("CompleteSnapshot", complete), json!({"Status": "completed"}));
    let shown = rig.show_snapshot(&id);
    assert_eq!((&shown["State"], &shown["Progress"]), (&json!("completed"), &json!("100%")));
    assert_eq!(shown["FullSnapshotSizeInBytes"], 2 * BLOCK);

    let blocks = rig.listed(&id);
    assert_eq!(blocks.iter().map(|(index, _)| *index).collect::<Vec<_>>(), [0, 4_095]);
    assert_eq!(rig.block(&id, 0, &blocks[0].1), filled(2));
    assert_eq!(rig.block(&id, 4_095, &blocks[1].1), filled(7));
    let volume = rig.volume_of(from_pending);
    assert_eq!((&rig.show(&volume)["Size"], &rig.show(&volume)["SnapshotId"]), (&json!(2), &json!(id)));
    rig.pass(5_000);
    let taken = rig.snapshot(&volume);
    rig.pass(60_000);
    let again = rig.listed(&taken);
    assert_eq!(rig.block(&taken, 4_095, &again[1].1), filled(7), "the volume has what was put");
}

#[test]
fn blocks_that_were_written_with_zeroes_are_listed_and_unwritten_ones_are_not() {
    let rig = Rig::new();
    let id = rig.start(None);
    rig.put(&id, 3, &filled(0));
    rig.complete(&id, 1);
    let blocks = rig.listed(&id);
    assert_eq!(blocks.len(), 1);
    assert_eq!(rig.block(&id, 3, &blocks[0].1), filled(0));
}

#[test]
fn lists_come_in_pages_and_begin_where_they_are_asked_to() {
    let rig = Rig::new();
    let id = rig.start(None);
    let indexes: Vec<u64> = (0..105).map(|number| number * 19).collect();
    for index in &indexes {
        rig.put(&id, *index, &filled(1));
    }
    rig.complete(&id, indexes.len());
    let list = |input: Value| {
        let answer = rig.direct("ListSnapshotBlocks", input);
        let all = answer["Blocks"].as_array().unwrap().iter().map(|row| row["BlockIndex"].as_u64().unwrap());
        (all.collect::<Vec<u64>>(), answer.get("NextToken").cloned())
    };
    let (first, next) = list(json!({"SnapshotId": id, "MaxResults": 100}));
    assert_eq!(first, indexes[..100]);
    let next = next.unwrap();
    let (rest, end) = list(json!({"SnapshotId": id, "MaxResults": 100, "NextToken": next}));
    assert_eq!((&rest[..], end), (&indexes[100..], None));
    assert_eq!(list(json!({"SnapshotId": id, "StartingBlockIndex": 20})).0, indexes[2..]);
    assert_eq!(list(json!({"SnapshotId": id, "StartingBlockIndex": 100_000})), (Vec::new(), None));
    let empty = rig.start(None);
    rig.complete(&empty, 0);
    let changed = json!({"FirstSnapshotId": id, "SecondSnapshotId": id, "NextToken": next});
    assert_eq!(rig.direct_refused("ListChangedBlocks", changed), "INVALID_PAGE_TOKEN");
    let other = json!({"SnapshotId": empty, "NextToken": next});
    assert_eq!(rig.direct_refused("ListSnapshotBlocks", other), "INVALID_PAGE_TOKEN");
    assert_eq!(rig.listed(&empty), []);
}

/// The changed blocks: index, and whether the first and the second have a token.
fn changed(rig: &Rig, first: &str, second: &str) -> Vec<(u64, bool, bool)> {
    let answer =
        rig.direct("ListChangedBlocks", json!({"FirstSnapshotId": first, "SecondSnapshotId": second}));
    let row = |row: &Value| {
        let has = |name: &str| row.get(name).is_some();
        (row["BlockIndex"].as_u64().unwrap(), has("FirstBlockToken"), has("SecondBlockToken"))
    };
    answer["ChangedBlocks"].as_array().unwrap().iter().map(row).collect()
}

#[test]
fn changed_blocks_are_those_that_were_put_since_the_parent() {
    let rig = Rig::new();
    let parent = rig.start(None);
    for index in 0..3 {
        rig.put(&parent, index, &filled(1));
    }
    rig.complete(&parent, 3);
    let child = rig.start(Some(&parent));
    rig.put(&child, 1, &filled(2));
    rig.put(&child, 9, &filled(3));
    rig.complete(&child, 2);
    assert_eq!(changed(&rig, &parent, &child), [(1, true, true), (9, false, true)]);
    assert_eq!(changed(&rig, &child, &parent), [(1, true, true), (9, true, false)]);
    assert_eq!(rig.listed(&child).iter().map(|(index, _)| *index).collect::<Vec<_>>(), [0, 1, 2, 9]);
    let all = rig.direct("ListChangedBlocks", json!({"FirstSnapshotId": parent, "SecondSnapshotId": child}));
    let row = &all["ChangedBlocks"][0];
    assert_eq!(rig.block(&parent, 1, row["FirstBlockToken"].as_str().unwrap()), filled(1));
    assert_eq!(rig.block(&child, 1, row["SecondBlockToken"].as_str().unwrap()), filled(2));
    assert_eq!((&all["BlockSize"], &all["VolumeSize"]), (&json!(BLOCK), &json!(1)));
    let same = rig.direct("ListChangedBlocks", json!({"FirstSnapshotId": child, "SecondSnapshotId": child}));
    assert_eq!(same, json!({"ChangedBlocks": []}));
    let other = rig.start(None);
    rig.complete(&other, 0);
    let unrelated = json!({"FirstSnapshotId": other, "SecondSnapshotId": child});
    assert_eq!(rig.direct_refused("ListChangedBlocks", unrelated), "UNRELATED_SNAPSHOTS");

    // A volume of the child goes on with its line.
    let volume = rig.volume_of(json!({"SnapshotId": child}));
    let taken = rig.snapshot(&volume);
    assert_eq!(changed(&rig, &child, &taken), []);
    assert_eq!(changed(&rig, &parent, &taken), [(1, true, true), (9, false, true)]);
}

#[test]
fn tokens_expire_and_are_for_one_block_of_one_snapshot() {
    let rig = Rig::new();
    let id = rig.start(None);
    rig.put(&id, 0, &filled(1));
    rig.put(&id, 1, &filled(2));
    rig.complete(&id, 2);
    let copy = rig.call("CopySnapshot", json!({"SourceRegion": REGION, "SourceSnapshotId": id}));
    let copy = text(&copy["SnapshotId"]);
    let listed = rig.direct("ListSnapshotBlocks", json!({"SnapshotId": id}));
    let token = text(&listed["Blocks"][0]["BlockToken"]);
    let get = |id: &str, index: u64| json!({"SnapshotId": id, "BlockIndex": index, "BlockToken": token});
    assert_eq!(rig.direct_refused("GetSnapshotBlock", get(&id, 1)), "INVALID_BLOCK_TOKEN");
    assert_eq!(rig.direct_refused("GetSnapshotBlock", get(&copy, 0)), "INVALID_BLOCK_TOKEN");
    let rig = rig.reopened();
    let expires_s = listed["ExpiryTime"].as_f64().unwrap();
    assert_eq!(expires_s, (rig.now() + 585_000_000) as f64 / 1e3);
    rig.pass(585_000_000 - 1);
    assert_eq!(rig.block(&id, 0, &token), filled(1), "until the time that was given, over a start");
    rig.pass(1);
    assert_eq!(rig.direct_refused("GetSnapshotBlock", get(&id, 0)), "INVALID_BLOCK_TOKEN");
}

#[test]
fn a_repeated_start_answers_as_the_first_did() {
    let rig = Rig::new();
    let input = |size: u64| json!({"VolumeSize": size, "ClientToken": "t", "Description": "d"});
    let first = rig.direct("StartSnapshot", input(1));
    let rig = rig.reopened();
    assert_eq!(rig.direct("StartSnapshot", input(1)), first);
    assert_eq!(rig.direct_refused("StartSnapshot", input(2)), "ConflictException");
    rig.complete(first["SnapshotId"].as_str().unwrap(), 0);
    assert_eq!(rig.direct("StartSnapshot", input(1)), first);
    rig.call("DeleteSnapshot", json!({"SnapshotId": first["SnapshotId"]}));
    assert_ne!(rig.direct("StartSnapshot", input(1))["SnapshotId"], first["SnapshotId"]);
}

#[test]
fn a_snapshot_without_blocks_for_its_timeout_is_in_error_and_takes_no_space() {
    let rig = Rig::new();
    let started = rig.direct("StartSnapshot", json!({"VolumeSize": 1, "Timeout": 10}));
    let id = text(&started["SnapshotId"]);
    rig.pass(9 * MINUTE_MS);
    rig.put(&id, 0, &filled(1));
    rig.pass(9 * MINUTE_MS);
    let rig = rig.reopened();
    rig.put(&id, 1, &filled(1));
    assert_eq!(rig.names_pending(), std::slice::from_ref(&id));
    rig.pass(11 * MINUTE_MS);
    let shown = rig.show_snapshot(&id);
    assert_eq!((&shown["State"], &shown["StateMessage"]), (&json!("error"), &json!("Snapshot timed out")));
    assert_eq!(reason(&rig.try_put(&id, 2, &filled(1)).unwrap_err()), "SNAPSHOT_NOT_FOUND");
    let complete = json!({"SnapshotId": id, "ChangedBlocksCount": 2});
    assert_eq!(rig.direct("CompleteSnapshot", complete), json!({"Status": "error"}));
    assert_eq!(rig.names_pending(), Vec::<String>::new());
    assert_eq!(rig.show_snapshot(&id)["StateMessage"], "Snapshot timed out");
    rig.call("DeleteSnapshot", json!({"SnapshotId": id}));
    assert_eq!(rig.code("DescribeSnapshots", json!({"SnapshotIds": [id]})), "InvalidSnapshot.NotFound");
}

#[test]
fn a_wrong_count_or_checksum_shows_later_as_an_error() {
    let rig = Rig::slow();
    let wrong = [
        (json!({"ChangedBlocksCount": 2}), "Changed blocks count mismatch for snapshot"),
        (
            json!({
                "ChangedBlocksCount": 1, "Checksum": aggregate([&filled(2)[..]]), "ChecksumAlgorithm": "SHA256",
                "ChecksumAggregationMethod": "LINEAR",
            }),
            "Checksum mismatch for snapshot",
        ),
    ];
    for (mut complete, message) in wrong {
        let id = rig.start(None);
        rig.put(&id, 5, &filled(1));
        complete["SnapshotId"] = json!(id);
        assert_eq!(rig.direct("CompleteSnapshot", complete.clone()), json!({"Status": "pending"}));
        assert_eq!(rig.show_snapshot(&id)["State"], "pending");
        rig.pass(5_000);
        let shown = rig.show_snapshot(&id);
        assert_eq!((&shown["State"], &shown["StateMessage"]), (&json!("error"), &json!(message)));
        assert_eq!(rig.direct("CompleteSnapshot", complete), json!({"Status": "error"}));
    }
    assert_eq!(rig.names_pending(), Vec::<String>::new());
}

#[test]
fn a_block_whose_checksum_is_wrong_is_not_put() {
    let rig = Rig::new();
    let id = rig.start(None);
    let mut input = super::of_put(&id, 0, &filled(1));
    input["Checksum"] = json!(checksum(&filled(2)));
    let error = rig.try_direct_as(ACCOUNT, "PutSnapshotBlock", (&input, &filled(1))).unwrap_err();
    assert_eq!((error.code.as_ref(), error.status), ("InvalidSignatureException", 403));
    rig.complete(&id, 0);
    assert_eq!(rig.listed(&id), []);
}

#[test]
fn what_was_put_survives_a_start_and_can_be_completed_after_it() {
    let rig = Rig::new();
    let parent = rig.start(None);
    rig.put(&parent, 0, &filled(9));
    rig.complete(&parent, 1);
    let id = rig.start(Some(&parent));
    rig.put(&id, 2, &filled(1));
    let rig = rig.reopened();
    rig.put(&id, 3, &filled(2));
    rig.call("DeleteSnapshot", json!({"SnapshotId": parent}));
    let rig = rig.reopened();
    assert_eq!(rig.show_snapshot(&id)["State"], "pending");
    rig.put(&id, 2, &filled(3));
    let complete = json!({
        "SnapshotId": id, "ChangedBlocksCount": 2, "Checksum": aggregate([&filled(3)[..], &filled(2)]),
        "ChecksumAlgorithm": "SHA256", "ChecksumAggregationMethod": "LINEAR",
    });
    rig.direct("CompleteSnapshot", complete);
    let rig = rig.reopened();
    let found: Vec<_> =
        rig.listed(&id).iter().map(|(index, token)| (*index, rig.block(&id, *index, token)[0])).collect();
    assert_eq!(found, [(0, 9), (2, 3), (3, 2)]);
}

#[test]
fn a_pending_snapshot_can_be_deleted_and_is_no_volume() {
    let rig = Rig::new();
    let id = rig.start(None);
    rig.put(&id, 0, &filled(1));
    assert_eq!(rig.names(), (Vec::new(), Vec::new()));
    assert!(rig.control_volumes().is_empty());
    rig.call("DeleteSnapshot", json!({"SnapshotId": id}));
    assert_eq!(rig.names_pending(), Vec::<String>::new());
    assert_eq!(reason(&rig.try_put(&id, 0, &filled(1)).unwrap_err()), "SNAPSHOT_NOT_FOUND");
}

#[test]
fn rights_are_asked_by_the_keys_of_the_service() {
    let rig = Rig::new();
    let parent = rig.start(None);
    rig.complete(&parent, 0);
    rig.rights.asked.lock().unwrap().clear();
    let input = json!({
        "VolumeSize": 3, "ParentSnapshotId": parent, "Description": "d", "Tags": [{"Key": "k", "Value": "v"}],
    });
    let id = text(&rig.direct("StartSnapshot", input)["SnapshotId"]);
    rig.put(&id, 0, &filled(1));
    let asked = rig.rights.asked.lock().unwrap().clone();
    let place = |id: &str| format!("arn:aws:ec2:{REGION}::snapshot/{id}");
    let found: Vec<_> =
        asked.iter().map(|access| (access.action.as_ref(), access.resource.clone())).collect();
    assert_eq!(
        found,
        [
            ("ebs:StartSnapshot", place("*")),
            ("ec2:CreateTags", place("*")),
            ("ebs:StartSnapshot", place(&parent)),
            ("ebs:PutSnapshotBlock", place(&id)),
        ]
    );
    let of_start = &asked[0].context;
    for (key, value) in [
        ("aws:RequestTag/k", "v"),
        ("aws:TagKeys", "k"),
        ("ebs:Description", "d"),
        ("ebs:ParentSnapshot", &place(&parent)),
        ("ebs:VolumeSize", "3"),
    ] {
        assert_eq!(of_start[key], [value], "{key}");
    }
    assert_eq!(asked[3].context["aws:ResourceTag/k"], ["v"]);
    for action in ["ListSnapshotBlocks", "CompleteSnapshot", "PutSnapshotBlock"] {
        *rig.rights.denied.lock().unwrap() = vec![format!("ebs:{action}")];
        let of = if action == "ListSnapshotBlocks" { &parent } else { &id };
        let input = json!({"SnapshotId": of, "ChangedBlocksCount": 1});
        assert_eq!(rig.try_direct(action, &input).unwrap_err().status, 403, "{action}");
    }
}

#[test]
fn others_read_what_is_shared_with_them_and_write_nothing() {
    let rig = Rig::new();
    let id = rig.start(None);
    rig.put(&id, 0, &filled(1));
    rig.complete(&id, 1);
    let list = || rig.try_direct_as(OTHER, "ListSnapshotBlocks", (&json!({"SnapshotId": id}), &[]));
    assert_eq!(reason(&list().unwrap_err()), "SNAPSHOT_NOT_FOUND");
    let modify = |change: Value| {
        let input = json!({"SnapshotId": id, "Attribute": "createVolumePermission", "CreateVolumePermission": change});
        rig.call("ModifySnapshotAttribute", input);
    };
    modify(json!({"Add": [{"Group": "all"}]}));
    assert_eq!(reason(&list().unwrap_err()), "INVALID_SNAPSHOT_ID");
    modify(json!({"Add": [{"UserId": OTHER}]}));
    let listed = list().unwrap().output;
    let get = json!({
        "SnapshotId": id, "BlockIndex": 0, "BlockToken": listed["Blocks"][0]["BlockToken"],
    });
    assert_eq!(rig.try_direct_as(OTHER, "GetSnapshotBlock", (&get, &[])).unwrap().payload, filled(1));
    let start = json!({"VolumeSize": 1, "ParentSnapshotId": id});
    let refused = rig.try_direct_as(OTHER, "StartSnapshot", (&start, &[])).unwrap_err();
    assert_eq!(reason(&refused), "SNAPSHOT_NOT_FOUND");
}

#[test]
fn so_many_snapshots_are_pending_at_a_time() {
    let rig = Rig::with(|mut options| {
        (options.quotas.pending_direct, options.quotas.snapshots) = (2, 3);
        options.instant()
    });
    let (first, _) = (rig.start(None), rig.start(None));
    let start = || rig.direct_refused("StartSnapshot", json!({"VolumeSize": 1}));
    assert_eq!(start(), "ConcurrentLimitExceededException");
    rig.complete(&first, 0);
    rig.start(None);
    assert_eq!(start(), "ConcurrentLimitExceededException");
    rig.call("DeleteSnapshot", json!({"SnapshotId": first}));
    assert_eq!(start(), "ConcurrentLimitExceededException");
}

#[test]
fn many_threads_put_at_once() {
    let rig = Rig::new();
    let id = rig.start(None);
    std::thread::scope(|scope| {
        for thread in 0..8_u8 {
            let (rig, id) = (&rig, &id);
            scope.spawn(move || {
                for number in 0..5 {
                    rig.put(id, u64::from(thread) + 8 * number, &filled(thread + 1));
                }
            });
        }
    });
    let blocks: Vec<Vec<u8>> = (0..40_u8).map(|index| filled(index % 8 + 1)).collect();
    let complete = json!({
        "SnapshotId": id, "ChangedBlocksCount": 40, "ChecksumAlgorithm": "SHA256",
        "ChecksumAggregationMethod": "LINEAR", "Checksum": aggregate(blocks.iter().map(Vec::as_slice)),
    });
    rig.direct("CompleteSnapshot", complete);
    assert_eq!(rig.show_snapshot(&id)["State"], "completed");
    for (index, token) in rig.listed(&id) {
        assert_eq!(rig.block(&id, index, &token), blocks[usize::try_from(index).unwrap()], "{index}");
    }
}
