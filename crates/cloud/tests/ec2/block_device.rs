//! Attachments as block devices, with the links that Nitro instances have. They need root, FUSE and loop devices.

use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::process::Command;

use ebbtide_cloud::ec2::{AttachAs, Options};
use ebbtide_device::host::missing_for_block_devices;
use serde_json::json;

use crate::support::Rig;

/// A service that attaches block devices; none where this machine has none.
fn rig() -> Option<Rig> {
    let missing = missing_for_block_devices();
    if !missing.is_empty() {
        println!("SKIPPED: {}", missing.join("; "));
        return None;
    }
    Some(Rig::with(|options| {
        let AttachAs::NbdSocket(dir) = options.attach_as.clone() else { unreachable!("as the rig has it") };
        let links = dir.join("by-id");
        fs::create_dir(&links).unwrap();
        Options { attach_as: AttachAs::BlockDevice, device_links: Some(links), ..options.instant() }
    }))
}

#[test]
fn a_volume_is_a_block_device_under_its_nitro_name() {
    let Some(rig) = rig() else { return };
    let links = rig.options.device_links.clone().unwrap();
    let (volume, instance) = (rig.volume(), rig.instance());
    let link = links.join(format!("nvme-Amazon_Elastic_Block_Store_{}", volume.replace('-', "")));
    rig.attach(&volume, &instance, "/dev/sdf");
    let device = fs::canonicalize(&link).unwrap();
    assert!(fs::metadata(&device).unwrap().file_type().is_block_device(), "{}", device.display());
    // After a start the link is that of the new device; one of a volume that is gone is removed.
    let left = links.join("nvme-Amazon_Elastic_Block_Store_vol0123456789abcdef0");
    std::os::unix::fs::symlink("/dev/null", &left).unwrap();
    let rig = rig.reopened();
    assert!(fs::metadata(&link).unwrap().file_type().is_block_device());
    assert!(left.symlink_metadata().is_ok(), "it is not of a volume of this service");
    rig.call("DetachVolume", json!({"VolumeId": volume}));
    assert!(link.symlink_metadata().is_err());
}

#[test]
fn a_device_in_use_is_busy_until_it_is_closed() {
    let Some(rig) = rig() else { return };
    let links = rig.options.device_links.clone().unwrap();
    let (volume, instance) = (rig.volume(), rig.instance());
    rig.attach(&volume, &instance, "/dev/sdf");
    let link = links.join(format!("nvme-Amazon_Elastic_Block_Store_{}", volume.replace('-', "")));
    // Another process: what this one has open is not counted.
    let mut user = Command::new("sleep").arg("600").stdin(fs::File::open(&link).unwrap()).spawn().unwrap();
    assert_eq!(rig.call("DetachVolume", json!({"VolumeId": volume}))["State"], "detaching");
    assert_eq!(rig.show(&volume)["Attachments"][0]["State"], "busy");
    rig.pass(1_000);
    assert_eq!(rig.show(&volume)["Attachments"][0]["State"], "busy");
    user.kill().unwrap();
    user.wait().unwrap();
    rig.pass(1_000);
    assert_eq!(rig.state(&volume), "available");
    assert!(link.symlink_metadata().is_err());
}
