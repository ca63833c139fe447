"""What tools do before and around a volume of an instance, through boto3: look-ups, options that are off, root volumes, sharing.

Prints a line for each part that was as on AWS; the first that was not ends it with an error.
"""

import boto3
from botocore.exceptions import ClientError

ec2 = boto3.client("ec2")
IMAGE = "ami-00000000"
ONE = {"ImageId": IMAGE, "InstanceType": "m5.large", "MinCount": 1, "MaxCount": 1}


def by(**filters):
    return [{"Name": name.replace("_", "-"), "Values": [value]} for name, value in filters.items()]


def refused(call, **arguments):
    try:
        call(**arguments)
    except ClientError as error:
        return error.response["Error"]["Code"]
    raise SystemExit(f"{arguments} was not refused")


# Options that are switched off.
OFF = ({"HibernationOptions": {"Configured": False}}, {"EnclaveOptions": {"Enabled": False}})
for option in (*OFF, {**OFF[0], **OFF[1]}, {"InstanceMarketOptions": {"MarketType": "on-demand"}}):
    made = ec2.run_instances(**ONE, **option)["Instances"][0]["InstanceId"]
    ec2.terminate_instances(InstanceIds=[made])
assert refused(ec2.run_instances, **ONE, HibernationOptions={"Configured": True}) == "UnsupportedOperation"
print("options")

# All types, in pages, and each can be started.
pages = ec2.get_paginator("describe_instance_types").paginate(PaginationConfig={"PageSize": 100})
types = {row["InstanceType"]: row for page in pages for row in page["InstanceTypes"]}
assert len(types) == 1373, len(types)
for kind in ("t2.micro", "t3.nano", "m4.large", "c5.9xlarge", "m7i.large", "r8g.large", "x2gd.medium", "i4i.large"):
    dry = {**ONE, "InstanceType": kind, "DryRun": True}
    assert refused(ec2.run_instances, **dry) == "DryRunOperation", kind
    assert types[kind]["NetworkInfo"]["NetworkPerformance"] and types[kind]["PlacementGroupInfo"], kind
assert refused(ec2.run_instances, **{**ONE, "InstanceType": "m9.huge"}) == "InvalidParameterValue"
print("types")

# Images, offerings, networks.
for owner, filters in (
    ("amazon", by(name="al2023-ami-2023*-x86_64")),
    ("amazon", by(name="amzn2-ami-minimal-hvm-*", root_device_type="ebs")),
    ("099720109477", by(virtualization_type="hvm")),
):
    assert ec2.describe_images(Owners=[owner], Filters=filters)["Images"], (owner, filters)
offered = by(instance_type="m5.large", location="us-east-1a")
offerings = ec2.describe_instance_type_offerings(LocationType="availability-zone", Filters=offered)
assert len(offerings["InstanceTypeOfferings"]) == 1, offerings
vpc = ec2.describe_vpcs(Filters=by(is_default="true"))["Vpcs"][0]["VpcId"]
subnets = ec2.describe_subnets(Filters=by(availability_zone="us-east-1a", vpc_id=vpc))["Subnets"]
groups = ec2.describe_security_groups(GroupNames=["default"])["SecurityGroups"]
assert (len(subnets), len(groups)) == (1, 1), (subnets, groups)
print("look-ups")

# A root volume, and snapshots of all volumes of the instance.
instance = ec2.run_instances(**ONE, SubnetId=subnets[0]["SubnetId"])["Instances"][0]["InstanceId"]
ec2.get_waiter("instance_running").wait(InstanceIds=[instance])
shown = ec2.describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"][0]
assert shown["RootDeviceName"] in [mapping["DeviceName"] for mapping in shown["BlockDeviceMappings"]], shown
volumes = ec2.describe_volumes(Filters=[{"Name": "attachment.instance-id", "Values": [instance]}])["Volumes"]
snapshots = ec2.create_snapshots(InstanceSpecification={"InstanceId": instance})["Snapshots"]
assert (len(volumes), len(snapshots)) == (1, 1), (volumes, snapshots)
assert ec2.describe_images(ImageIds=[IMAGE])["Images"][0]["BlockDeviceMappings"]
print("root volume")

# Another type while it is stopped.
change = {"InstanceId": instance, "InstanceType": {"Value": "r6i.xlarge"}}
assert refused(ec2.modify_instance_attribute, **change) == "IncorrectInstanceState"
ec2.stop_instances(InstanceIds=[instance])
ec2.get_waiter("instance_stopped").wait(InstanceIds=[instance])
ec2.modify_instance_attribute(**change)
shown = ec2.describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"][0]
assert shown["InstanceType"] == "r6i.xlarge", shown
ec2.terminate_instances(InstanceIds=[instance])
print("type")

# A snapshot is shared and unshared, with the operation named twice.
snapshot = snapshots[0]["SnapshotId"]
ec2.get_waiter("snapshot_completed").wait(SnapshotIds=[snapshot])
share = {"SnapshotId": snapshot, "CreateVolumePermission": {"Add": [{"UserId": "111122223333"}]}}
ec2.modify_snapshot_attribute(OperationType="add", **share)
attribute = {"SnapshotId": snapshot, "Attribute": "createVolumePermission"}
assert ec2.describe_snapshot_attribute(**attribute)["CreateVolumePermissions"] == [{"UserId": "111122223333"}]
opposite = refused(ec2.modify_snapshot_attribute, OperationType="remove", **share)
assert opposite == "InvalidParameterCombination", opposite
share["CreateVolumePermission"] = {"Remove": [{"UserId": "111122223333"}]}
ec2.modify_snapshot_attribute(OperationType="remove", **share)
assert ec2.describe_snapshot_attribute(**attribute)["CreateVolumePermissions"] == []
ec2.delete_snapshot(SnapshotId=snapshot)
print("sharing")
