//! A process that dies right before or right after each step on the control plane, and the start after that.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use ebbtide_cloud::ebs::Ebs;
use ebbtide_cloud::ec2::Ec2;
use serde_json::json;

use super::{filled, of_put};
use crate::steps::{Dying, Moment};
use crate::support::{self, ACCOUNT, REGION, Rig};

#[test]
fn a_death_around_each_step_with_blocks_is_ended_or_taken_back() {
    for moment in [Moment::Before, Moment::After] {
        for (step, action) in [
            ("begin_snapshot", "StartSnapshot"),
            ("write_block", "PutSnapshotBlock"),
            ("complete_snapshot", "CompleteSnapshot"),
            ("abandon_snapshot", "CompleteSnapshot"),
            ("abandon_snapshot", "DeleteSnapshot"),
        ] {
            let place = format!("{action}, {moment:?} {step}");
            let rig = Rig::new();
            let id = rig.start(None);
            rig.put(&id, 0, &filled(1));
            let (input, data) = match action {
                "StartSnapshot" => (json!({"VolumeSize": 1, "ClientToken": "t"}), Vec::new()),
                "PutSnapshotBlock" => (of_put(&id, 1, &filled(2)), filled(2)),
                "DeleteSnapshot" => (json!({"SnapshotId": id}), Vec::new()),
                _ => {
                    let count = if step == "complete_snapshot" { 1 } else { 7 };
                    (json!({"SnapshotId": id, "ChangedBlocksCount": count}), Vec::new())
                }
            };
            let home = support::home(rig.dir.path());
            let dying = Arc::new(Dying { inner: rig.control.clone(), at: Mutex::new(None) });
            let ec2 = Arc::new(Ec2::open(&home, dying.clone(), rig.options.clone()).unwrap());
            let ebs = Ebs::open(&home, Arc::clone(&ec2)).unwrap();
            *dying.at.lock().unwrap() = Some((step, moment));
            let call = || -> Result<_, ebbtide_cloud::ApiError> {
                let service: &dyn ebbtide_cloud::Service =
                    if action == "DeleteSnapshot" { &*ec2 } else { &ebs };
                let who = (ACCOUNT, REGION);
                support::answer(service, &rig.rights, rig.now(), who, action, (&input, &data))
            };
            let died = catch_unwind(AssertUnwindSafe(call));
            assert!(died.is_err(), "{place}: the step was not reached");
            drop((ebs, ec2, dying));

            let rig = rig.reopened();
            let described = rig.call("DescribeSnapshots", json!({}))["Snapshots"].clone();
            let state = described.get(0).map(|row| row["State"].clone());
            let rows = described.as_array().unwrap().len();
            let pending = rig.names_pending();
            match action {
                "DeleteSnapshot" => assert_eq!((rows, pending), (0, Vec::new()), "{place}"),
                _ if step == "abandon_snapshot" => {
                    assert_eq!((state, pending), (Some(json!("error")), Vec::new()), "{place}");
                }
                "CompleteSnapshot" if moment == Moment::After => {
                    assert_eq!((state, pending), (Some(json!("completed")), Vec::new()), "{place}");
                    assert_eq!(rig.listed(&id).len(), 1, "{place}");
                }
                _ => {
                    // As if it had not been called: the client's next attempt goes through.
                    assert_eq!((state, rows, &pending[..]), (Some(json!("pending")), 1, &[id.clone()][..]));
                    rig.put(&id, 1, &filled(2));
                    rig.complete(&id, 2);
                    assert_eq!(rig.listed(&id).len(), 2, "{place}");
                }
            }
        }
    }
}
