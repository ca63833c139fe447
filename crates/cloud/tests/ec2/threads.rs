//! Many callers at once.

use std::collections::BTreeSet;
use std::thread;

use serde_json::json;

use crate::support::{Rig, Rng, column, seed, text};

#[test]
fn eight_threads_make_change_and_delete_volumes_of_their_own() {
    const THREADS: u64 = 8;
    let seed = seed(41);
    let rig = Rig::with(|mut options| {
        options.quotas.instances = 100;
        options.instant()
    });
    thread::scope(|scope| {
        for number in 0..THREADS {
            let rig = &rig;
            scope.spawn(move || {
                let mut rng = Rng(seed ^ (number << 32));
                let instance = rig.instance();
                let mut own: Vec<String> = Vec::new();
                for _ in 0..25 {
                    match rng.below(5) {
                        0 | 1 => own.push(rig.volume()),
                        2 => {
                            let Some(id) = rng.pick(&own) else { continue };
                            rig.attach(id, &instance, "/dev/sdf");
                            rig.call("DetachVolume", json!({"VolumeId": id}));
                        }
                        3 => {
                            let Some(id) = rng.pick(&own) else { continue };
                            let snapshot = rig.snapshot(id);
                            rig.call("DeleteSnapshot", json!({"SnapshotId": snapshot}));
                        }
                        _ => {
                            let Some(id) = own.pop() else { continue };
                            rig.call("DeleteVolume", json!({"VolumeId": id}));
                        }
                    }
                    let all = rig.call("DescribeVolumes", json!({}));
                    let all: BTreeSet<String> = column(&all["Volumes"], "VolumeId").into_iter().collect();
                    assert!(own.iter().all(|id| all.contains(id)));
                }
            });
        }
    });
    let listed = column(&rig.call("DescribeVolumes", json!({}))["Volumes"], "VolumeId");
    assert_eq!(listed, rig.names().0);
    assert_eq!(rig.names().1, [""; 0]);
}

#[test]
fn of_eight_calls_with_one_token_one_makes_the_volume() {
    let rig = Rig::new();
    let input = json!({"AvailabilityZone": "us-east-1a", "Size": 1, "ClientToken": "same"});
    let ids: BTreeSet<String> = thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| text(&rig.call("CreateVolume", input.clone())["VolumeId"])))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(ids.len(), 1);
    assert_eq!(rig.names().0.len(), 1);
}

#[test]
fn of_eight_attachments_of_one_volume_one_succeeds() {
    let rig = Rig::new();
    let (volume, instance) = (rig.volume(), rig.instance());
    let attached = thread::scope(|scope| {
        let attach = |number: u8| {
            let device = format!("/dev/sd{}", char::from(b'f' + number));
            rig.attempt(
                "AttachVolume",
                &json!({"VolumeId": volume, "InstanceId": instance, "Device": device}),
            )
        };
        let threads: Vec<_> = (0..8).map(|number| scope.spawn(move || attach(number))).collect();
        let ended = threads.into_iter().map(|thread| thread.join().unwrap());
        ended
            .filter(|outcome| match outcome {
                Ok(_) => true,
                Err(error) => {
                    assert_eq!(error.code, "VolumeInUse", "{error}");
                    false
                }
            })
            .count()
    });
    assert_eq!(attached, 1);
}
