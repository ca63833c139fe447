//! One inventory: volumes that commands make, change, attach and delete are in EC2, and those of EC2 in the home.

use std::time::Duration;

use ebbtide_catalog::Spec;
use ebbtide_cloud::ec2::{DeleteError, Hold, StoredRecords};
use ebbtide_cloud::iam::Policy;
use ebbtide_control::{
    AttachVolume, ControlError, ControlPlane as _, CreateVolume, DetachVolume, Export, ModifyVolume,
    NbdAddress, Optimizing, VolumeView,
};
use serde_json::{Value, json};

use crate::key_policies::User;
use crate::support::{self, ACCOUNT, OTHER, REGION, Rig, column, text};

fn create(rig: &Rig, name: &str, spec: &str) -> VolumeView {
    let request = CreateVolume {
        name: name.to_owned(),
        spec: Spec::parse(spec).unwrap(),
        snapshot: None,
        initialization: None,
        block_size: 512,
        seed: None,
        region: None,
        token: None,
        key: None,
        owner: Some(format!("{ACCOUNT}/us-east-1b").parse().unwrap()),
    };
    rig.control.create_volume(&request).unwrap().volume
}

fn id(volume: &VolumeView) -> String {
    volume.id.clone().unwrap()
}

fn attach(rig: &Rig, name: &str) {
    let export = Export::Nbd(NbdAddress::Unix(rig.socket(name)));
    let request =
        AttachVolume { name: name.to_owned(), export, instance: None, over_limit: true, shadows: Vec::new() };
    rig.control.attach_volume(&request, &|_| ()).unwrap();
}

fn detach(rig: &Rig, name: &str) {
    rig.control.detach_volume(&DetachVolume { name: name.to_owned(), force: false }, &|_| ()).unwrap();
}

fn modify(rig: &Rig, name: &str, spec: &str) {
    let request = ModifyVolume {
        name: name.to_owned(),
        spec: Spec::parse(spec).unwrap(),
        optimizing: Optimizing::For(Duration::ZERO),
        over_limit: true,
    };
    rig.control.modify_volume(&request, &|_| ()).unwrap();
}

/// The ids of the volumes that an account sees.
fn seen(rig: &Rig, account: &str, region: &str) -> Vec<String> {
    let answer = rig.try_as(account, region, "DescribeVolumes", &json!({})).unwrap();
    column(&answer["Volumes"], "VolumeId")
}

#[test]
fn a_volume_of_a_command_is_described_to_its_owner_and_keeps_its_id_and_its_tags() {
    let rig = Rig::new();
    let db = id(&create(&rig, "db", "gp3:size=8GiB,iops=4000,throughput=200"));
    let shown = rig.show(&db);
    assert_eq!((&shown["State"], &shown["Size"]), (&json!("available"), &json!(8)), "{shown}");
    assert_eq!((&shown["VolumeType"], &shown["Iops"]), (&json!("gp3"), &json!(4_000)), "{shown}");
    assert_eq!((&shown["Throughput"], &shown["Encrypted"]), (&json!(200), &json!(false)), "{shown}");
    assert_eq!(shown["AvailabilityZone"], "us-east-1b");
    assert_eq!(shown["Tags"], json!([{"Key": "Name", "Value": "db"}]));
    assert_eq!(seen(&rig, OTHER, REGION), Vec::<String>::new());
    assert_eq!(seen(&rig, ACCOUNT, "eu-west-1"), Vec::<String>::new());

    rig.call("CreateTags", json!({"Resources": [db], "Tags": [{"Key": "Name", "Value": "main"}]}));
    let rig = rig.reopened();
    assert_eq!(seen(&rig, ACCOUNT, REGION), [db.as_str()]);
    assert_eq!(rig.show(&db)["Tags"], json!([{"Key": "Name", "Value": "main"}]));
    assert_eq!(rig.control.volume(&db, None).unwrap().volume.name, "db", "commands take the id");
}

#[test]
fn what_aws_has_no_volume_of_has_an_id_and_is_not_described() {
    let rig = Rig::new();
    for (name, spec) in [("ideal", "ideal:size=64MiB"), ("array", "raid0(2x gp3:size=1GiB)")] {
        assert!(create(&rig, name, spec).id.is_some(), "{name}");
    }
    assert_eq!(seen(&rig, ACCOUNT, REGION), Vec::<String>::new());
}

#[test]
fn a_modification_by_a_command_is_described_and_one_by_ec2_is_the_homes() {
    let rig = Rig::new();
    let db = id(&create(&rig, "db", "gp3:size=1GiB"));
    // What changed before the endpoint has seen the volume is no modification to it.
    assert_eq!(rig.show(&db)["Size"], 1);
    modify(&rig, "db", "gp3:size=10GiB,iops=5000");
    let shown = rig.show(&db);
    assert_eq!((&shown["Size"], &shown["Iops"]), (&json!(10), &json!(5_000)), "{shown}");
    let latest = || {
        let answer = rig.call("DescribeVolumesModifications", json!({"VolumeIds": [db]}));
        answer["VolumesModifications"][0].clone()
    };
    let found = latest();
    assert_eq!((&found["OriginalSize"], &found["TargetSize"]), (&json!(1), &json!(10)), "{found}");
    assert_eq!((&found["OriginalIops"], &found["TargetIops"]), (&json!(3_000), &json!(5_000)), "{found}");

    rig.call("ModifyVolume", json!({"VolumeId": db, "Size": 12}));
    assert_eq!(rig.control.volume("db", None).unwrap().volume.size_bytes, 12 << 30);
    assert_eq!((&latest()["OriginalSize"], &latest()["TargetSize"]), (&json!(10), &json!(12)));

    // One of EC2 by its id, also while no endpoint looks.
    let own = rig.volume();
    modify(&rig, &own, "gp3:size=2GiB");
    assert_eq!(rig.show(&own)["Size"], 2);
    let spec = |rig: &Rig| rig.control.volume(&own, None).unwrap().volume.spec;
    let before = spec(&rig);
    let rig = rig.reopened();
    assert_eq!((spec(&rig), rig.show(&own)["Size"].clone()), (before, json!(2)));
}

#[test]
fn a_volume_that_a_command_has_attached_is_in_use_and_what_an_instance_has_is_left_to_ec2() {
    let rig = Rig::new();
    let instance = rig.call(
        "RunInstances",
        json!({"MinCount": 1, "MaxCount": 1, "InstanceType": "m5.large", "ImageId": support::WITHOUT_ROOT,
            "Placement": {"AvailabilityZone": "us-east-1b"}}),
    );
    let instance = text(&instance["Instances"][0]["InstanceId"]);
    let db = id(&create(&rig, "db", "gp3:size=1GiB"));
    attach(&rig, "db");
    let shown = rig.show(&db);
    assert_eq!((&shown["State"], &shown["Attachments"]), (&json!("in-use"), &json!([])), "{shown}");
    let to_instance = json!({"VolumeId": db, "InstanceId": instance, "Device": "/dev/sdf"});
    assert_eq!(rig.code("AttachVolume", to_instance.clone()), "VolumeInUse");
    assert_eq!(rig.code("DeleteVolume", json!({"VolumeId": db})), "VolumeInUse");
    assert_eq!(rig.code("DetachVolume", json!({"VolumeId": db})), "IncorrectState");
    rig.snapshot(&db);
    let refused = rig.ec2.delete_for_command(&db, rig.now()).unwrap_err();
    assert!(matches!(refused, DeleteError::Control(ControlError::NotFree { .. })), "{refused:?}");
    assert_eq!(rig.state(&db), "in-use", "nothing has changed");
    assert_eq!(rig.ec2.hold(&db), None, "a command may detach it");
    detach(&rig, "db");
    assert_eq!(rig.state(&db), "available");

    rig.call("AttachVolume", to_instance);
    assert_eq!(rig.show(&db)["Attachments"][0]["InstanceId"], instance.as_str());
    let held = Hold::Instance(instance.clone());
    assert_eq!(rig.ec2.hold(&db), Some(held.clone()));
    assert_eq!(rig.ec2.while_free(&db, || panic!("it is not free")), Err::<(), _>(held.clone()));
    let refused = rig.ec2.delete_for_command(&db, rig.now()).unwrap_err();
    assert!(matches!(refused, DeleteError::Held(found) if found == held));
    rig.call("DetachVolume", json!({"VolumeId": db}));
    assert!(rig.ec2.delete_for_command(&db, rig.now()).unwrap());
    assert_eq!(seen(&rig, ACCOUNT, REGION), Vec::<String>::new());
    assert_eq!(rig.names().0, Vec::<String>::new());
}

#[test]
fn a_volume_belongs_to_one_account_and_zone_at_a_time() {
    let rig = Rig::new();
    let db = id(&create(&rig, "db", "gp3:size=1GiB"));
    assert_eq!(seen(&rig, ACCOUNT, REGION), [db.as_str()]);
    rig.control.set_owner("db", &format!("{OTHER}/eu-west-1c").parse().unwrap()).unwrap();
    assert_eq!(seen(&rig, ACCOUNT, REGION), Vec::<String>::new());
    assert_eq!(seen(&rig, OTHER, "eu-west-1"), [db.as_str()]);
    let gone = rig.try_as(ACCOUNT, REGION, "DeleteVolume", &json!({"VolumeId": db})).unwrap_err();
    assert_eq!(gone.code, "InvalidVolume.NotFound");
    // Without a zone it stays where it is.
    rig.control.set_owner(&db, &ACCOUNT.parse().unwrap()).unwrap();
    let owner = rig.control.volume("db", None).unwrap().volume.owner.unwrap();
    assert_eq!(owner.to_string(), format!("{ACCOUNT}/eu-west-1c"));
    let rig = rig.reopened();
    assert_eq!(seen(&rig, ACCOUNT, "eu-west-1"), [db.as_str()]);
    rig.try_as(ACCOUNT, "eu-west-1", "DeleteVolume", &json!({"VolumeId": db})).unwrap();
    assert_eq!(rig.names().0, Vec::<String>::new());
}

#[test]
fn what_commands_do_while_no_endpoint_is_served_is_seen_by_the_next_one() {
    let rig = Rig::new();
    let [stays, goes] = ["stays", "goes"].map(|name| id(&create(&rig, name, "gp3:size=1GiB")));
    let (own, held, instance) = (rig.volume(), rig.volume(), rig.instance());
    rig.attach(&held, &instance, "/dev/sdf");
    assert_eq!(seen(&rig, ACCOUNT, REGION).len(), 4);
    let rig = rig.reopened_after(|home| {
        let control = support::control(home.parent().unwrap());
        let stored = StoredRecords::open(home).unwrap();
        assert_eq!(stored.hold(&held).unwrap(), Some(Hold::Instance(instance.clone())));
        assert!(stored.delete_for_command(&control, &held, 1).is_err());
        for volume in [&goes, &own] {
            assert_eq!(stored.hold(volume).unwrap(), None);
            assert!(stored.delete_for_command(&control, volume, 1).unwrap());
        }
        assert!(!stored.delete_for_command(&control, "vol-0123456789abcdef0", 1).unwrap());
        control.end();
    });
    let mut left = [stays.clone(), held.clone()];
    left.sort();
    assert_eq!(seen(&rig, ACCOUNT, REGION), left);
    // Of one that is missing and was deleted by nobody who knows EC2, a command's is forgotten and EC2's is lost.
    let rig = rig.between(|store| store.delete_volume("stays").unwrap());
    assert_eq!(seen(&rig, ACCOUNT, REGION), [held.as_str()]);
}

#[test]
fn volumes_of_a_store_without_ids_and_owners_get_them_once() {
    let rig = Rig::new();
    let own = rig.volume();
    create(&rig, "db", "gp3:size=1GiB");
    let rig = rig.between(|store| {
        for volume in ["db", own.as_str()] {
            let mut meta = store.meta(volume).unwrap();
            let record = meta["control"].as_object_mut().unwrap();
            assert!(record.remove("id").is_some() && record.remove("owner").is_some());
            store.set_meta(volume, meta).unwrap();
        }
    });
    let view = |rig: &Rig, name: &str| rig.control.volume(name, None).unwrap().volume;
    let (db, of_ec2) = (view(&rig, "db"), view(&rig, &own));
    assert_eq!(db.owner.as_ref().unwrap().to_string(), "000000000000/us-east-1a", "the default owner's");
    assert_eq!(of_ec2.id.as_deref(), Some(own.as_str()));
    assert_eq!(of_ec2.owner.unwrap().to_string(), format!("{ACCOUNT}/us-east-1a"), "the record's");
    assert_eq!(seen(&rig, "000000000000", REGION), [id(&db)]);
    let rig = rig.reopened();
    assert_eq!(view(&rig, "db").id, db.id);
}

#[test]
fn policies_of_some_volumes_hold_for_those_of_commands() {
    let rig = Rig::new();
    let [allowed, other] = ["allowed", "other"].map(|name| id(&create(&rig, name, "gp3:size=1GiB")));
    let resource = format!("arn:aws:ec2:{REGION}:{ACCOUNT}:volume/{allowed}");
    let policy = json!({"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Action": "ec2:*", "Resource": resource},
        {"Effect": "Allow", "Action": "ec2:CreateSnapshot", "Resource": "arn:aws:ec2:*::snapshot/*"},
    ]});
    let user = User::of(ACCOUNT, "anna", Some(Policy::parse(&policy.to_string()).unwrap()));
    let code = |action: &str, input: Value| {
        let answer = user.call_with(&rig, &*rig.ec2, action, (&input, &[]));
        answer.map_or_else(|error| error.code.into_owned(), |_| "ok".to_owned())
    };
    for (volume, expected) in [(&other, "UnauthorizedOperation"), (&allowed, "ok")] {
        let tags = json!([{"Key": "a", "Value": "b"}]);
        assert_eq!(code("CreateTags", json!({"Resources": [volume], "Tags": tags})), expected);
        assert_eq!(code("ModifyVolume", json!({"VolumeId": volume, "Size": 2})), expected);
        assert_eq!(code("CreateSnapshot", json!({"VolumeId": volume})), expected);
        assert_eq!(code("DeleteVolume", json!({"VolumeId": volume})), expected);
    }
    assert_eq!(rig.names().0, ["other"]);
}

#[test]
fn a_rule_of_the_recycle_bin_keeps_what_a_command_deletes() {
    let rig = Rig::new();
    let db = id(&create(&rig, "db", "gp3:size=1GiB"));
    let rbin = ebbtide_cloud::rbin::Rbin::new(rig.ec2.clone());
    let rule = json!({"ResourceType": "EBS_VOLUME",
        "RetentionPeriod": {"RetentionPeriodValue": 1, "RetentionPeriodUnit": "DAYS"}});
    support::answer(&rbin, &rig.rights, rig.now(), (ACCOUNT, REGION), "CreateRule", (&rule, &[])).unwrap();
    assert!(rig.ec2.delete_for_command(&db, rig.now()).unwrap());
    assert_eq!(rig.ec2.hold(&db), Some(Hold::RecycleBin));
    assert_eq!(seen(&rig, ACCOUNT, REGION), Vec::<String>::new());
    rig.call("RestoreVolumeFromRecycleBin", json!({"VolumeId": db}));
    assert_eq!(rig.state(&db), "available");
}
