//! Volumes: created, described, modified, deleted.

use serde_json::json;

use crate::support::{ACCOUNT, OTHER, REGION, Rig, text};

#[test]
fn a_volume_is_created_with_the_defaults_of_its_type_and_is_really_there() {
    let rig = Rig::slow();
    let made =
        rig.call("CreateVolume", json!({"AvailabilityZone": "us-east-1b", "Size": 4, "VolumeType": "gp3"}));
    let id = text(&made["VolumeId"]);
    assert_eq!(made["State"], "creating");
    assert_eq!(made["Attachments"], json!([]));
    assert_eq!(made["SnapshotId"], "");
    assert_eq!((&made["Iops"], &made["Throughput"]), (&json!(3000), &json!(125)));
    assert_eq!(made["Tags"], json!([]));
    assert_eq!(made["AvailabilityZoneId"], "use1-az2");
    assert_eq!(made["CreateTime"], json!(1_790_000_000));
    assert_eq!(rig.names().0, [id.as_str()]);
    assert_eq!(rig.state(&id), "creating");
    rig.pass(1_499);
    assert_eq!(rig.state(&id), "creating");
    rig.pass(1);
    let shown = rig.show(&id);
    assert_eq!(shown["State"], "available");
    assert_eq!(shown.get("Tags"), None);
}

#[test]
fn types_show_the_figures_that_aws_shows_of_them() {
    let rig = Rig::new();
    for (input, iops, throughput) in [
        (json!({"Size": 1}), json!(100), None),
        (json!({"Size": 100, "VolumeType": "gp2"}), json!(300), None),
        (json!({"Size": 1, "VolumeType": "GP3"}), json!(3000), Some(125)),
        (json!({"Size": 10, "VolumeType": "gp3", "Iops": 200, "Throughput": 50}), json!(3000), Some(125)),
        (
            json!({"Size": 100, "VolumeType": "gp3", "Iops": 8000, "Throughput": 2000}),
            json!(8000),
            Some(2000),
        ),
        (json!({"Size": 4, "VolumeType": "io1", "Iops": 100}), json!(100), None),
        (json!({"Size": 4, "VolumeType": "io2", "Iops": 4000}), json!(4000), None),
        (json!({"Size": 125, "VolumeType": "st1"}), json!(null), None),
        (json!({"Size": 1, "VolumeType": "standard"}), json!(null), None),
    ] {
        let id = rig.volume_of(input.clone());
        let shown = rig.show(&id);
        assert_eq!(shown["Iops"], iops, "{input}");
        assert_eq!(shown.get("Throughput").cloned(), throughput.map(|mib_s: u64| json!(mib_s)), "{input}");
    }
    assert_eq!(rig.show(&rig.volume_of(json!({"Size": 1})))["VolumeType"], "gp2");
}

#[test]
fn a_repeated_token_makes_one_volume() {
    let rig = Rig::slow();
    let input = |size| json!({"AvailabilityZone": "us-east-1a", "Size": size, "ClientToken": "t-1"});
    let first = rig.call("CreateVolume", input(1));
    rig.pass(2_000);
    let second = rig.call("CreateVolume", input(1));
    assert_eq!(second["VolumeId"], first["VolumeId"]);
    assert_eq!(second["State"], "available", "the current state is answered");
    assert_eq!(rig.names().0.len(), 1);
    assert_eq!(rig.code("CreateVolume", input(2)), "IdempotentParameterMismatch");
    rig.call("DeleteVolume", json!({"VolumeId": first["VolumeId"]}));
    let refused = rig.refused("CreateVolume", input(1));
    assert_eq!(refused.code, "IdempotentParameterMismatch");
    assert!(refused.message.contains("has already been deleted"), "{refused}");
    // A token is of an account and a region.
    let other = rig.try_as(OTHER, REGION, "CreateVolume", &input(5)).unwrap();
    assert_ne!(other["VolumeId"], first["VolumeId"]);
    let west = json!({"AvailabilityZone": "us-west-2a", "Size": 3, "ClientToken": "t-1"});
    rig.try_as(ACCOUNT, "us-west-2", "CreateVolume", &west).unwrap();
    // And it outlives a start.
    let rig = rig.reopened();
    let input = json!({"AvailabilityZone": "us-east-1a", "Size": 1, "ClientToken": "t-2"});
    let first = rig.call("CreateVolume", input.clone());
    let rig = rig.reopened();
    assert_eq!(rig.call("CreateVolume", input)["VolumeId"], first["VolumeId"]);
}

#[test]
fn volumes_of_other_accounts_and_regions_are_not_seen() {
    let rig = Rig::new();
    let id = rig.volume();
    for (account, region) in [(OTHER, REGION), (ACCOUNT, "eu-west-1")] {
        let all = rig.try_as(account, region, "DescribeVolumes", &json!({})).unwrap();
        assert_eq!(all["Volumes"], json!([]));
        for (action, input) in [
            ("DescribeVolumes", json!({"VolumeIds": [id]})),
            ("DeleteVolume", json!({"VolumeId": id})),
            ("ModifyVolume", json!({"VolumeId": id, "Size": 9})),
            ("CreateSnapshot", json!({"VolumeId": id})),
            ("CreateTags", json!({"Resources": [id], "Tags": [{"Key": "a", "Value": "b"}]})),
        ] {
            let error = rig.try_as(account, region, action, &input).unwrap_err();
            assert_eq!(error.code, "InvalidVolume.NotFound", "{action}");
        }
    }
}

#[test]
fn a_deleted_volume_is_deleting_and_then_gone() {
    let rig = Rig::slow();
    let id = rig.volume();
    rig.pass(2_000);
    assert_eq!(rig.call("DeleteVolume", json!({"VolumeId": id})), json!({}));
    assert_eq!(rig.names().0, [""; 0]);
    assert_eq!(rig.state(&id), "deleting");
    assert_eq!(rig.code("DeleteVolume", json!({"VolumeId": id})), "InvalidVolume.NotFound");
    rig.pass(1_500);
    assert_eq!(rig.code("DescribeVolumes", json!({"VolumeIds": [id]})), "InvalidVolume.NotFound");
    // The record goes as well, from time to time.
    rig.pass(120_000);
    rig.call("DescribeVolumes", json!({}));
    let rig = rig.reopened();
    assert_eq!(rig.call("DescribeVolumes", json!({}))["Volumes"], json!([]));
}

#[test]
fn a_modification_passes_through_its_states_by_the_rules_of_aws() {
    let rig = Rig::slow();
    let id = rig.volume_of(json!({"Size": 100, "VolumeType": "gp2"}));
    rig.pass(2_000);
    let answer = rig.call("ModifyVolume", json!({"VolumeId": id, "VolumeType": "gp3", "Size": 200}));
    let modification = &answer["VolumeModification"];
    assert_eq!(modification["ModificationState"], "modifying");
    assert_eq!(modification["Progress"], 0);
    assert_eq!((&modification["OriginalSize"], &modification["TargetSize"]), (&json!(100), &json!(200)));
    assert_eq!((&modification["OriginalIops"], &modification["TargetIops"]), (&json!(300), &json!(3000)));
    assert_eq!(modification.get("OriginalThroughput"), None);
    let latest = || {
        rig.call("DescribeVolumesModifications", json!({"VolumeIds": [id]}))["VolumesModifications"][0]
            .clone()
    };
    // The size is seen when optimizing begins.
    assert_eq!(rig.show(&id)["Size"], 100);
    assert_eq!(rig.show(&id)["VolumeType"], "gp2");
    let mut seen = vec![text(&latest()["ModificationState"])];
    for _ in 0..48 {
        rig.pass(600_000);
        let state = text(&latest()["ModificationState"]);
        assert_eq!(rig.show(&id)["Size"], if state == "modifying" { 100 } else { 200 });
        if seen.last() != Some(&state) {
            seen.push(state);
        }
    }
    assert_eq!(seen, ["modifying", "optimizing", "completed"]);
    let done = latest();
    assert_eq!(done["Progress"], 100);
    assert!(done["EndTime"].as_f64() > done["StartTime"].as_f64(), "{done}");
    let refused = rig.refused("ModifyVolume", json!({"VolumeId": id, "Size": 100}));
    assert_eq!(refused.message, "New size cannot be smaller than existing size");
}

#[test]
fn a_volume_is_modified_four_times_in_a_day() {
    let rig = Rig::new();
    let id = rig.volume();
    for size in 2..6 {
        rig.call("ModifyVolume", json!({"VolumeId": id, "Size": size}));
        rig.pass(60_000);
    }
    let refused = rig.refused("ModifyVolume", json!({"VolumeId": id, "Size": 6}));
    assert_eq!(refused.code, "VolumeModificationRateExceeded");
    assert_eq!(
        refused.message,
        "You've reached the maximum modification rate per volume limit. Wait until 2026-09-22T14:13:20.000Z before you \
         can issue the next modification request for this volume."
    );
    rig.pass(24 * 3_600_000 - 4 * 60_000);
    let rig = rig.reopened();
    rig.call("ModifyVolume", json!({"VolumeId": id, "Size": 6}));
    assert_eq!(rig.show(&id)["Size"], 6);
}

#[test]
fn a_second_modification_waits_for_the_first() {
    let rig = Rig::slow();
    let id = rig.volume();
    rig.pass(2_000);
    rig.call("ModifyVolume", json!({"VolumeId": id, "Size": 2}));
    let refused = rig.refused("ModifyVolume", json!({"VolumeId": id, "Size": 3}));
    assert_eq!(refused.code, "IncorrectModificationState");
    assert_eq!(refused.message, format!("Volume {id} cannot be modified in modification state MODIFYING"));
    rig.pass(60_000);
    let refused = rig.refused("ModifyVolume", json!({"VolumeId": id, "Size": 3}));
    assert_eq!(refused.message, format!("Volume {id} cannot be modified in modification state OPTIMIZING"));
}

#[test]
fn attributes_and_status_are_kept_and_shown() {
    let rig = Rig::new();
    let id = rig.volume();
    let attribute =
        |name: &str| rig.call("DescribeVolumeAttribute", json!({"VolumeId": id, "Attribute": name}));
    assert_eq!(attribute("autoEnableIO")["AutoEnableIO"], json!({"Value": false}));
    rig.call("ModifyVolumeAttribute", json!({"VolumeId": id, "AutoEnableIO": {"Value": true}}));
    assert_eq!(attribute("autoEnableIO")["AutoEnableIO"], json!({"Value": true}));
    assert_eq!(attribute("productCodes")["ProductCodes"], json!([]));
    let status = rig.call("DescribeVolumeStatus", json!({"VolumeIds": [id]}))["VolumeStatuses"][0].clone();
    assert_eq!(status["VolumeStatus"]["Status"], "ok");
    assert_eq!(
        status["VolumeStatus"]["Details"],
        json!([{"Name": "io-enabled", "Status": "passed"}, {"Name": "io-performance", "Status": "not-applicable"}])
    );
    let refused = rig.refused("EnableVolumeIO", json!({"VolumeId": id}));
    assert_eq!(
        (&*refused.code, refused.message),
        ("IncorrectState", format!("Volume {id} already has IO enabled."))
    );
}

#[test]
fn a_volume_that_the_home_has_lost_is_in_error_until_it_is_deleted() {
    use ebbtide_control::ControlPlane as _;
    let rig = Rig::new();
    let id = rig.volume();
    rig.control.delete_volume(&id).unwrap();
    let rig = rig.reopened();
    assert_eq!(rig.state(&id), "error");
    let status = rig.call("DescribeVolumeStatus", json!({"VolumeIds": [id]}));
    assert_eq!(status["VolumeStatuses"][0]["VolumeStatus"]["Status"], "impaired");
    rig.call("DeleteVolume", json!({"VolumeId": id}));
    assert_eq!(rig.call("DescribeVolumes", json!({}))["Volumes"], json!([]));
}

#[test]
fn a_volume_of_somebody_else_in_the_home_is_neither_shown_nor_touched() {
    use ebbtide_control::{ControlPlane as _, CreateVolume};
    let rig = Rig::new();
    let foreign = "vol-0123456789abcdef0";
    let request = CreateVolume {
        name: foreign.to_owned(),
        spec: "gp3:size=1GiB".parse().unwrap(),
        snapshot: None,
        initialization: None,
        block_size: 512,
        seed: None,
        region: None,
        token: None,
        key: None,
        owner: None,
    };
    rig.control.create_volume(&request).unwrap();
    let rig = rig.reopened();
    assert_eq!(rig.call("DescribeVolumes", json!({}))["Volumes"], json!([]));
    assert_eq!(rig.code("DeleteVolume", json!({"VolumeId": foreign})), "InvalidVolume.NotFound");
    assert_eq!(rig.names().0, [foreign]);
}
