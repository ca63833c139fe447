//! A process that dies right before or right after each step on the control plane, and the start after that.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex};

use ebbtide_cloud::ec2::Ec2;
use ebbtide_control::{
    AttachVolume, BeginSnapshot, Calibration, ChangedBlock, ControlError, ControlPlane, CrashImageView,
    CreateSnapshot, CreateVolume, DetachView, DetachVolume, Detached, FaultView, InitializationView,
    LiveControl, ModifyVolume, Names, OwnerRequest, Progress, RecordVolume, RecordingView, RequestsView,
    SetFaults, SnapshotView, TakeCrashImage, VolumeCounters, VolumeDetail, VolumeIdentity, VolumeView,
    WrappedKey,
};
use serde_json::{Value, json};

use crate::support::{self, ACCOUNT, REGION, Rig, column, text};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    Before,
    After,
}

/// Dies at a step. As after a kill, nothing more is written: the call never goes on. It unwinds without the message of
/// a panic, so that what a test prints is of its own failure.
#[derive(Debug)]
pub(crate) struct Dying {
    pub(crate) inner: Arc<LiveControl>,
    pub(crate) at: Mutex<Option<(&'static str, Moment)>>,
}

impl Dying {
    fn step<T>(&self, name: &'static str, work: impl FnOnce(&LiveControl) -> T) -> T {
        let at = *self.at.lock().unwrap();
        if at == Some((name, Moment::Before)) {
            resume_unwind(Box::new("dies before a step"));
        }
        let done = work(&self.inner);
        if at == Some((name, Moment::After)) {
            resume_unwind(Box::new("dies after a step"));
        }
        done
    }
}

macro_rules! steps {
    ($($name:ident($($argument:ident: $kind:ty),*) -> $answer:ty;)*) => {
        impl ControlPlane for Dying {
            fn requests(&self) -> RequestsView {
                self.inner.requests()
            }

            fn changed_volumes(&self, anew: bool) -> Vec<String> {
                self.inner.changed_volumes(anew)
            }

            fn identity(&self, id: &str) -> Option<VolumeIdentity> {
                self.inner.identity(id)
            }

            $(fn $name(&self, $($argument: $kind),*) -> Result<$answer, ControlError> {
                self.step(stringify!($name), |inner| inner.$name($($argument),*))
            })*
        }
    };
}

steps! {
    ready() -> ();
    create_volume(request: &CreateVolume) -> VolumeDetail;
    volumes(region: Option<&str>) -> Vec<VolumeView>;
    volume(name: &str, region: Option<&str>) -> VolumeDetail;
    initializations(names: &[&str]) -> Vec<Option<InitializationView>>;
    attach_volume(request: &AttachVolume, progress: Progress<'_>) -> VolumeDetail;
    detach_volume(request: &DetachVolume, progress: Progress<'_>) -> DetachView;
    record_volume(request: &RecordVolume, output: Box<dyn Write + Send>) -> RecordingView;
    end_recording(name: &str) -> RecordingView;
    modify_volume(request: &ModifyVolume, progress: Progress<'_>) -> VolumeDetail;
    set_owner(name: &str, owner: &OwnerRequest) -> ();
    delete_volume(name: &str) -> ();
    set_faults(request: &SetFaults) -> FaultView;
    take_crash_image(request: &TakeCrashImage) -> CrashImageView;
    create_snapshot(request: &CreateSnapshot) -> SnapshotView;
    create_snapshots(requests: &[CreateSnapshot]) -> Vec<SnapshotView>;
    copy_snapshot(snapshot: &str, name: &str) -> SnapshotView;
    encrypt_snapshot(snapshot: &str, name: &str, key: &WrappedKey) -> SnapshotView;
    snapshot(name: &str) -> SnapshotView;
    names() -> Names;
    counters() -> Vec<VolumeCounters>;
    snapshots() -> Vec<SnapshotView>;
    delete_snapshot(name: &str) -> ();
    begin_snapshot(request: &BeginSnapshot) -> ();
    write_block(name: &str, block: u64, data: &[u8]) -> ();
    written_blocks(name: &str) -> Vec<u64>;
    read_written_block(name: &str, block: u64) -> Vec<u8>;
    complete_snapshot(name: &str) -> SnapshotView;
    abandon_snapshot(name: &str) -> ();
    snapshot_blocks(name: &str, from: u64, most: usize) -> Vec<u64>;
    changed_blocks(first: &str, second: &str, from: u64, most: usize) -> Vec<ChangedBlock>;
    read_block(snapshot: &str, block: u64) -> Vec<u8>;
    calibrate(quick: bool, progress: Progress<'_>) -> Calibration;
    stop(force: bool, progress: Progress<'_>) -> Vec<Detached>;
}

/// What is described: volumes with state and size, and snapshots.
type Seen = (Vec<(String, String, u64)>, Vec<String>);

fn seen(rig: &Rig, ec2: &Ec2) -> Seen {
    let all = |action: &str| {
        let answer = support::call(ec2, &rig.rights, rig.now(), (ACCOUNT, REGION), action, &json!({}));
        Value::Object(answer.unwrap())
    };
    let volumes = all("DescribeVolumes")["Volumes"].clone();
    let volume = |row: &Value| (text(&row["VolumeId"]), text(&row["State"]), row["Size"].as_u64().unwrap());
    let volumes = volumes.as_array().unwrap().iter().map(volume).collect();
    (volumes, column(&all("DescribeSnapshots")["Snapshots"], "SnapshotId"))
}

#[test]
fn a_death_around_each_step_is_ended_or_taken_back_by_the_next_start() {
    for moment in [Moment::Before, Moment::After] {
        for (step, action, ends) in [
            ("create_volume", "CreateVolume", false),
            ("create_snapshots", "CreateSnapshot", false),
            ("copy_snapshot", "CopySnapshot", false),
            ("create_snapshot", "CopyVolumes", false),
            ("create_volume", "CopyVolumes", false),
            ("delete_snapshot", "CopyVolumes", false),
            ("attach_volume", "AttachVolume", false),
            ("delete_volume", "DeleteVolume", true),
            ("delete_snapshot", "DeleteSnapshot", true),
            ("modify_volume", "ModifyVolume", true),
            ("detach_volume", "DetachVolume", true),
        ] {
            let place = format!("{action}, {moment:?} {step}");
            let rig = Rig::new();
            let (free, used, instance) = (rig.volume(), rig.volume(), rig.instance());
            rig.attach(&used, &instance, "/dev/sdf");
            let snapshot = rig.snapshot(&free);
            let input = match action {
                "CreateVolume" => json!({"AvailabilityZone": "us-east-1a", "Size": 1, "ClientToken": "t"}),
                "CreateSnapshot" | "DeleteVolume" => json!({"VolumeId": free}),
                "CopyVolumes" => json!({"SourceVolumeId": used, "ClientToken": "t"}),
                "CopySnapshot" => json!({"SourceRegion": REGION, "SourceSnapshotId": snapshot}),
                "AttachVolume" => json!({"VolumeId": free, "InstanceId": instance, "Device": "/dev/sdg"}),
                "DeleteSnapshot" => json!({"SnapshotId": snapshot}),
                "ModifyVolume" => json!({"VolumeId": used, "Size": 3}),
                _ => json!({"VolumeId": used}),
            };
            let home = support::home(rig.dir.path());
            let before = seen(&rig, &rig.ec2);
            let dying = Arc::new(Dying { inner: rig.control.clone(), at: Mutex::new(None) });
            let ec2 = Ec2::open(&home, dying.clone(), rig.options.clone()).unwrap();
            *dying.at.lock().unwrap() = Some((step, moment));
            let call = || support::call(&ec2, &rig.rights, rig.now(), (ACCOUNT, REGION), action, &input);
            catch_unwind(AssertUnwindSafe(call)).expect_err(&place);
            drop(ec2);
            let ec2 = Ec2::open(&home, rig.control.clone(), rig.options.clone()).unwrap();
            let mut expected = before.clone();
            if ends {
                match action {
                    "DeleteVolume" => expected.0.retain(|(id, ..)| *id != free),
                    "DeleteSnapshot" => expected.1.clear(),
                    _ => {
                        let volume = expected.0.iter_mut().find(|(id, ..)| *id == used).unwrap();
                        if action == "ModifyVolume" {
                            volume.2 = 3;
                        } else {
                            volume.1 = "available".to_owned();
                        }
                    }
                }
            }
            let found = seen(&rig, &ec2);
            assert_eq!(found, expected, "{place}");
            let names = rig.control.names().unwrap();
            let volumes: Vec<String> = found.0.iter().map(|(id, ..)| id.clone()).collect();
            assert_eq!((&names.volumes, &names.snapshots), (&volumes, &found.1), "{place}");
            for (id, state, size) in &found.0 {
                let volume = rig.control.volume(id, None).unwrap().volume;
                let there = (volume.attachment.is_some(), volume.size_bytes);
                assert_eq!(there, (state == "in-use", size << 30), "{place}: {id}");
            }
        }
    }
}
