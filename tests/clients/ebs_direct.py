"""Puts snapshots together from blocks with boto3 and reads them back, as clients of the EBS direct APIs do.

Prints how many blocks were put, listed, changed and read, and how calls with mistakes were refused.
"""

import base64
import hashlib
import sys

import boto3
from botocore.exceptions import ClientError

BLOCK = 512 * 1024

ebs = boto3.client("ebs")
ec2 = boto3.client("ec2")


def sha256(data):
    return hashlib.sha256(data).digest()


def text(digest):
    return base64.b64encode(digest).decode()


def put(snapshot, index, data, checksum=None):
    return ebs.put_snapshot_block(
        SnapshotId=snapshot,
        BlockIndex=index,
        BlockData=data,
        DataLength=len(data),
        Progress=50,
        Checksum=checksum or text(sha256(data)),
        ChecksumAlgorithm="SHA256",
    )


def state(snapshot):
    return ec2.describe_snapshots(SnapshotIds=[snapshot])["Snapshots"][0]["State"]


def upload(blocks, **start):
    started = ebs.start_snapshot(VolumeSize=1, Timeout=10, Tags=[{"Key": "k", "Value": "v"}], **start)
    snapshot = started["SnapshotId"]
    assert (started["Status"], started["BlockSize"], state(snapshot)) == ("pending", BLOCK, "pending"), started
    for index, data in blocks.items():
        put(snapshot, index, data)
    checksum = sha256(b"".join(sha256(blocks[index]) for index in sorted(blocks)))
    completed = ebs.complete_snapshot(
        SnapshotId=snapshot,
        ChangedBlocksCount=len(blocks),
        Checksum=text(checksum),
        ChecksumAlgorithm="SHA256",
        ChecksumAggregationMethod="LINEAR",
    )
    assert completed["Status"] == "pending", completed
    ec2.get_waiter("snapshot_completed").wait(SnapshotIds=[snapshot], WaiterConfig={"Delay": 1})
    return snapshot


def download(snapshot):
    found, token = {}, {}
    while True:
        page = ebs.list_snapshot_blocks(SnapshotId=snapshot, MaxResults=100, **token)
        assert (page["BlockSize"], page["VolumeSize"]) == (BLOCK, 1), page
        for row in page["Blocks"]:
            index = row["BlockIndex"]
            answer = ebs.get_snapshot_block(SnapshotId=snapshot, BlockIndex=index, BlockToken=row["BlockToken"])
            data = answer["BlockData"].read()
            assert (answer["DataLength"], answer["Checksum"]) == (len(data), text(sha256(data))), answer
            found[index] = data
        if "NextToken" not in page:
            return found
        token = {"NextToken": page["NextToken"]}


def refused(call):
    try:
        call()
    except ClientError as error:
        response = error.response
        status = response["ResponseMetadata"]["HTTPStatusCode"]
        return f"{status} {response['Error']['Code']} {response.get('Reason', '-')}"
    sys.exit("a call with a mistake was answered")


def block(number):
    return number.to_bytes(4, "big") * (BLOCK // 4)


blocks = {index: block(index) for index in [*range(0, 2048, 19), 2047]}
first = upload(blocks)
listed = download(first)
assert listed == blocks, sorted(set(listed) ^ set(blocks))
print(f"put {len(blocks)}, read {len(listed)}")

new = {19: block(7), 20: block(8)}
second = upload(new, ParentSnapshotId=first)
assert download(second) == {**blocks, **new}
changed = ebs.list_changed_blocks(FirstSnapshotId=first, SecondSnapshotId=second)["ChangedBlocks"]
tokens = [(row["BlockIndex"], "FirstBlockToken" in row, "SecondBlockToken" in row) for row in changed]
print("changed", tokens)

zone = ec2.describe_availability_zones()["AvailabilityZones"][0]["ZoneName"]
volume = ec2.create_volume(SnapshotId=second, AvailabilityZone=zone)
assert volume["Size"] == 1, volume
print("volume", volume["VolumeId"])

open_one = ebs.start_snapshot(VolumeSize=1)["SnapshotId"]
print(refused(lambda: put(open_one, 0, block(1), checksum=text(sha256(block(2))))))
print(refused(lambda: put(open_one, 2048, block(1))))
print(refused(lambda: put(first, 0, block(1))))
print(refused(lambda: ebs.list_snapshot_blocks(SnapshotId=open_one)))
print(refused(lambda: ebs.get_snapshot_block(SnapshotId=first, BlockIndex=0, BlockToken="none")))
