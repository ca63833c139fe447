"""Encrypted volumes and snapshots through boto3: keys of KMS, copies under another key, and a key that is disabled.

Prints what was read back of an encrypted snapshot, and how calls with mistakes were refused.
"""

import base64
import hashlib

import boto3
from botocore.exceptions import ClientError

BLOCK = 512 * 1024
ZONE = "us-east-1a"
kms, ec2, ebs = boto3.client("kms"), boto3.client("ec2"), boto3.client("ebs")


def new_key(alias):
    arn = kms.create_key(Description=alias)["KeyMetadata"]["Arn"]
    kms.create_alias(AliasName=alias, TargetKeyId=arn)
    return arn


def refused(call, **arguments):
    try:
        call(**arguments)
        raise SystemExit(f"{arguments} was not refused")
    except ClientError as error:
        print(error.response["Error"]["Code"])


def read(snapshot):
    block = ebs.list_snapshot_blocks(SnapshotId=snapshot)["Blocks"][0]
    got = ebs.get_snapshot_block(SnapshotId=snapshot, BlockIndex=block["BlockIndex"], BlockToken=block["BlockToken"])
    return got["BlockData"].read()


first, second = new_key("alias/first"), new_key("alias/second")
data_key = kms.generate_data_key(KeyId="alias/first", KeySpec="AES_256", EncryptionContext={"a": "b"})
opened = kms.decrypt(CiphertextBlob=data_key["CiphertextBlob"], EncryptionContext={"a": "b"})
assert (opened["Plaintext"], opened["KeyId"]) == (data_key["Plaintext"], first), opened

data = b"a row of a table".ljust(BLOCK, b".")
started = ebs.start_snapshot(VolumeSize=1, Encrypted=True, KmsKeyArn=first)
assert started["KmsKeyArn"] == first, started
snapshot = started["SnapshotId"]
ebs.put_snapshot_block(
    SnapshotId=snapshot,
    BlockIndex=0,
    BlockData=data,
    DataLength=BLOCK,
    Checksum=base64.b64encode(hashlib.sha256(data).digest()).decode(),
    ChecksumAlgorithm="SHA256",
)
ebs.complete_snapshot(SnapshotId=snapshot, ChangedBlocksCount=1)
ec2.get_waiter("snapshot_completed").wait(SnapshotIds=[snapshot], WaiterConfig={"Delay": 1})

volume = ec2.create_volume(AvailabilityZone=ZONE, SnapshotId=snapshot)
assert (volume["Encrypted"], volume["KmsKeyId"]) == (True, first), volume
ec2.get_waiter("volume_available").wait(VolumeIds=[volume["VolumeId"]])
copy = ec2.copy_snapshot(SourceRegion="us-east-1", SourceSnapshotId=snapshot, KmsKeyId="alias/second")["SnapshotId"]
ec2.get_waiter("snapshot_completed").wait(SnapshotIds=[copy], WaiterConfig={"Delay": 1})
shown = ec2.describe_snapshots(SnapshotIds=[copy])["Snapshots"][0]
assert (shown["KmsKeyId"], shown["SseType"]) == (second, "sse-kms"), shown
assert read(copy) == data

kms.disable_key(KeyId=first)
print(read(copy)[:16].decode())
refused(read, snapshot=snapshot)
refused(kms.encrypt, KeyId=first, Plaintext=b"x")
refused(ec2.copy_snapshot, SourceRegion="us-east-1", SourceSnapshotId=copy, KmsKeyId=first)
failing = ec2.create_volume(AvailabilityZone=ZONE, Size=1, Encrypted=True, KmsKeyId=first)["VolumeId"]
refused(ec2.describe_volumes, VolumeIds=[failing])

ec2.enable_ebs_encryption_by_default()
by_default = ec2.create_volume(AvailabilityZone=ZONE, Size=1)
managed = kms.describe_key(KeyId="alias/aws/ebs")["KeyMetadata"]
assert (by_default["Encrypted"], by_default["KmsKeyId"]) == (True, managed["Arn"]), by_default
assert managed["KeyManager"] == "AWS", managed
