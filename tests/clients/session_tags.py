"""Session tags of a role: boto3 assumes it for projects, and a session works with the volumes of its own project alone.

`session_tags.py assume|again FILE`: the keys of project a and its volume are in FILE between the calls.
"""

import json
import sys

import boto3
import botocore.exceptions

ROLE = "arn:aws:iam::000000000000:role/developer"


def client(name, keys):
    return boto3.client(
        name,
        aws_access_key_id=keys["AccessKeyId"],
        aws_secret_access_key=keys["SecretAccessKey"],
        aws_session_token=keys["SessionToken"],
    )


def code(call, **parameters):
    try:
        call(**parameters)
        return "ok"
    except botocore.exceptions.ClientError as error:
        return error.response["Error"]["Code"]


def session(project, **more):
    tags = [{"Key": "project", "Value": project}]
    assumed = boto3.client("sts").assume_role(RoleArn=ROLE, RoleSessionName="nightly", Tags=tags, **more)
    return assumed, {name: value for name, value in assumed["Credentials"].items() if name != "Expiration"}


def create(keys, project):
    tags = [{"Key": "project", "Value": project}] if project else []
    specifications = [{"ResourceType": "volume", "Tags": tags}] if tags else []
    return client("ec2", keys).create_volume(
        AvailabilityZone="us-east-1a", Size=1, VolumeType="gp3", TagSpecifications=specifications
    )["VolumeId"]


def main():
    what, file = sys.argv[1:]
    if what == "assume":
        assumed, of_a = session("a", SourceIdentity="anna", TransitiveTagKeys=["project"])
        _, of_b = session("b")
        print(assumed["SourceIdentity"], assumed["PackedPolicySize"])
        print(client("sts", of_a).get_caller_identity()["Arn"])
        volume = create(of_a, "a")
        print(code(create, keys=of_a, project="b"), code(create, keys=of_a, project=None))
        grow = {"VolumeId": volume, "Size": 2}
        print(code(client("ec2", of_b).modify_volume, **grow), code(client("ec2", of_a).modify_volume, **grow))
        retag = {"Resources": [volume], "Tags": [{"Key": "project", "Value": "b"}]}
        print(code(client("ec2", of_a).create_tags, **retag))
        print(code(boto3.client("sts").assume_role, RoleArn=ROLE, RoleSessionName="nightly"))
        policy = [{"arn": "arn:aws:iam::aws:policy/ReadOnlyAccess"}]
        print(code(session, project="a", PolicyArns=policy))
        with open(file, "w") as out:
            json.dump({"a": of_a, "b": of_b, "volume": volume}, out)
        return
    with open(file) as kept:
        kept = json.load(kept)
    delete = {"VolumeId": kept["volume"]}
    print(code(client("ec2", kept["b"]).delete_volume, **delete), code(client("ec2", kept["a"]).delete_volume, **delete))


main()
