"""A role of the endpoint: boto3 assumes it, uses its keys for EC2, also presigned, and again after a restart.

`roles.py assume|again|gone FILE`: the keys are in FILE between the calls.
"""

import json
import sys
import urllib.error
import urllib.request

import boto3
import botocore.exceptions

ROLE = "arn:aws:iam::000000000000:role/backup"


def client(name, keys):
    return boto3.client(
        name,
        aws_access_key_id=keys["AccessKeyId"],
        aws_secret_access_key=keys["SecretAccessKey"],
        aws_session_token=keys["SessionToken"],
    )


def code(call, **parameters):
    try:
        return call(**parameters)
    except botocore.exceptions.ClientError as error:
        return error.response["Error"]["Code"]


def presigned(keys):
    """The volumes of a presigned request; its refusal where the token is another one."""
    url = client("ec2", keys).generate_presigned_url("describe_volumes", HttpMethod="GET")
    assert "X-Amz-Security-Token=" in url, url
    try:
        answer = urllib.request.urlopen(url).read().decode()
        return f"{answer.count('<volumeId>')} volume"
    except urllib.error.HTTPError as error:
        return f"{error.code} {error.read().decode().split('<Code>')[1].split('<')[0]}"


def main():
    what, file = sys.argv[1:]
    sts = boto3.client("sts")
    if what == "assume":
        assumed = sts.assume_role(RoleArn=ROLE, RoleSessionName="nightly", DurationSeconds=900)
        keys = {name: value for name, value in assumed["Credentials"].items() if name != "Expiration"}
        with open(file, "w") as out:
            json.dump(keys, out)
        print(client("sts", keys).get_caller_identity()["Arn"])
        ec2 = client("ec2", keys)
        volume = ec2.create_volume(AvailabilityZone="us-east-1a", Size=1, VolumeType="gp3")["VolumeId"]
        print(ec2.describe_volumes(VolumeIds=[volume])["Volumes"][0]["State"])
        print(code(ec2.run_instances, MinCount=1, MaxCount=1, InstanceType="m6i.large"))
        print(presigned(keys))
        print(presigned({**keys, "SessionToken": "other"}))
        return
    with open(file) as kept:
        keys = json.load(kept)
    if what == "again":
        print(client("sts", keys).get_caller_identity()["Arn"])
        print(presigned(keys))
        mine = sts.get_session_token()["Credentials"]
        print(client("sts", mine).get_caller_identity()["Arn"])
        return
    print(code(client("sts", keys).get_caller_identity))
    print(code(client("ec2", keys).describe_volumes))


main()
