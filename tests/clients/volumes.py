"""The life of a volume through boto3: waiters, paginators, a file system, a snapshot and what was restored of it."""

import subprocess
import sys
from pathlib import Path

import boto3
from botocore.exceptions import ClientError

ZONE = "us-east-1a"
LINKS = Path("/dev/disk/by-id")
scratch = Path(sys.argv[1])
ec2 = boto3.client("ec2")


def tagged(kind, name):
    return [{"ResourceType": kind, "Tags": [{"Key": "Name", "Value": name}]}]


def device(volume):
    return LINKS / f"nvme-Amazon_Elastic_Block_Store_{volume.replace('-', '')}"


def attach(volume, letter):
    ec2.attach_volume(VolumeId=volume, InstanceId=instance, Device=f"/dev/sd{letter}")
    ec2.get_waiter("volume_in_use").wait(VolumeIds=[volume])
    return device(volume)


def release(volume):
    ec2.detach_volume(VolumeId=volume)
    ec2.get_waiter("volume_available").wait(VolumeIds=[volume])
    ec2.delete_volume(VolumeId=volume)
    ec2.get_waiter("volume_deleted").wait(VolumeIds=[volume])


def run(*words):
    subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL)


started = ec2.run_instances(ImageId="ami-00000000", InstanceType="m6i.large", MinCount=1, MaxCount=1)
instance = started["Instances"][0]["InstanceId"]
ec2.get_waiter("instance_running").wait(InstanceIds=[instance])

volume = ec2.create_volume(
    AvailabilityZone=ZONE, Size=1, VolumeType="gp3", TagSpecifications=tagged("volume", "data")
)["VolumeId"]
ec2.get_waiter("volume_available").wait(VolumeIds=[volume])
disk = attach(volume, "f")
run("mkfs.xfs", "-q", disk)
scratch.mkdir()
run("mount", disk, scratch)
try:
    (scratch / "row").write_text("kept")
    ec2.modify_volume(VolumeId=volume, Size=2)
    states = ec2.describe_volumes_modifications(VolumeIds=[volume])["VolumesModifications"]
    assert states[0]["TargetSize"] == 2, states
    run("xfs_growfs", scratch)
    run("sync", "-f", scratch)
    snapshot = ec2.create_snapshot(VolumeId=volume, TagSpecifications=tagged("snapshot", "first"))["SnapshotId"]
    (scratch / "row").write_text("later")
finally:
    run("umount", scratch)
ec2.get_waiter("snapshot_completed").wait(SnapshotIds=[snapshot])
release(volume)

found = ec2.describe_snapshots(OwnerIds=["self"], Filters=[{"Name": "tag:Name", "Values": ["first"]}])
assert [one["SnapshotId"] for one in found["Snapshots"]] == [snapshot], found
restored = ec2.create_volume(AvailabilityZone=ZONE, SnapshotId=snapshot, VolumeType="gp3")["VolumeId"]
ec2.get_waiter("volume_available").wait(VolumeIds=[restored])
run("mount", attach(restored, "g"), scratch)
try:
    kept = (scratch / "row").read_text()
    size = subprocess.run(["df", "--output=size", scratch], capture_output=True, check=True, text=True)
    assert int(size.stdout.split()[-1]) > 1_500_000, size.stdout
finally:
    run("umount", scratch)
release(restored)
ec2.delete_snapshot(SnapshotId=snapshot)

for number in range(12):
    ec2.create_volume(
        AvailabilityZone=ZONE, Size=1, VolumeType="gp2", TagSpecifications=tagged("volume", f"v{number}")
    )
pages = ec2.get_paginator("describe_volumes").paginate(PaginationConfig={"PageSize": 5})
sizes = [len(page["Volumes"]) for page in pages]
# With the root volume of the instance.
assert sizes == [5, 5, 3], sizes

try:
    ec2.delete_volume(VolumeId=volume)
    sys.exit("a deleted volume can be deleted again")
except ClientError as error:
    assert error.response["Error"]["Code"] == "InvalidVolume.NotFound", error
ec2.terminate_instances(InstanceIds=[instance])
ec2.get_waiter("instance_terminated").wait(InstanceIds=[instance])
print(kept)
