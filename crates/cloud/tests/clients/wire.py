"""botocore's own serializers, signers and parsers, for tests of the wire formats.

Reads one JSON object a line and answers each with one line.

{"do": "request", "service", "protocol", "operation", "input", "presign"?}: the signed request of an input.
{"do": "answer", "service", "protocol", "operation", "status", "headers", "body"}: what a client sees of an answer.

Blobs are base64 text and timestamps are seconds on both sides, as in the crate. `vectors` as an argument prints the
file of signed requests that is checked in.
"""

import base64
import datetime
import io
import json
import sys

import botocore.auth
import botocore.model
import botocore.session
from botocore import parsers, serialize
from botocore.awsrequest import create_request_object, prepare_request_dict
from botocore.credentials import Credentials

KEY, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
NOW = datetime.datetime(2026, 11, 22, 1, 2, 3, tzinfo=datetime.timezone.utc)
ENDPOINT = "http://127.0.0.1:4599"
FOLDERS = {"monitoring": "cloudwatch"}
CBOR = "smithy-rpc-v2-cbor"

SESSION = botocore.session.get_session()
MODELS = {}


def freeze():
    """Signatures are made at NOW."""
    botocore.auth.get_current_datetime = lambda *_, **__: NOW.replace(tzinfo=None)


def operation_of(task):
    service = task["service"]
    if service not in MODELS:
        MODELS[service] = SESSION.get_service_model(FOLDERS.get(service, service))
    return MODELS[service].operation_model(task["operation"])


def to_python(shape, value):
    """Values of the crate as those of boto3."""
    kind = shape.type_name
    if kind == "structure":
        return {name: to_python(shape.members[name], inner) for name, inner in value.items()}
    if kind == "list":
        return [to_python(shape.member, inner) for inner in value]
    if kind == "map":
        return {key: to_python(shape.value, inner) for key, inner in value.items()}
    if kind == "blob":
        return base64.b64decode(value)
    if kind == "timestamp":
        return datetime.datetime.fromtimestamp(value, tz=datetime.timezone.utc)
    return value


def from_python(value):
    """Values of boto3 as those of the crate."""
    if isinstance(value, dict):
        return {key: from_python(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [from_python(inner) for inner in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime.datetime):
        seconds = value.timestamp()
        return int(seconds) if seconds == int(seconds) else seconds
    if hasattr(value, "read"):
        return base64.b64encode(value.read()).decode()
    return value


def request(task):
    operation = operation_of(task)
    serializer = serialize.create_serializer(task["protocol"], include_validation=False)
    shape = operation.input_shape
    value = to_python(shape, task["input"]) if shape else {}
    found = serializer.serialize_to_request(value, operation)
    token = task.get("token")
    service = task.get("sign_as", task["service"])
    credentials = Credentials(KEY, task.get("secret", SECRET), token)
    if task.get("presign"):
        found = {**found, "method": "GET", "query_string": found["body"], "body": b"", "headers": {}}
        signer = botocore.auth.SigV4QueryAuth(credentials, service, "us-east-1", expires=3600)
    else:
        signer = botocore.auth.SigV4Auth(credentials, service, "us-east-1")
    prepare_request_dict(found, ENDPOINT)
    made = create_request_object(found)
    if operation.name == "PutSnapshotBlock":
        made.headers["X-Amz-Content-SHA256"] = "UNSIGNED-PAYLOAD"
    signer.add_auth(made)
    made = made.prepare()
    body = made.body or b""
    body = body.encode() if isinstance(body, str) else bytes(body)
    text = lambda value: value.decode() if isinstance(value, bytes) else str(value)
    headers = {name: text(value) for name, value in made.headers.items()}
    headers["Host"] = ENDPOINT.removeprefix("http://")
    return {
        "method": made.method,
        "url": made.url.removeprefix(ENDPOINT),
        "headers": headers,
        "body": base64.b64encode(body).decode(),
    }


def answer(task):
    operation = operation_of(task)
    parser = parsers.create_parser(task["protocol"])
    body = base64.b64decode(task["body"])
    shape = operation.output_shape
    if operation.has_streaming_output and task["status"] < 300:
        body = io.BytesIO(body)
    context = {"operation_name": operation.name}
    found = {
        "status_code": task["status"],
        "headers": botocore.awsrequest.HeadersDict(task["headers"]),
        "body": body,
        "context": context,
    }
    return from_python(parser.parse(found, shape))


VECTORS = [
    {"service": "ec2", "protocol": "ec2", "operation": "CreateVolume",
     "input": {"AvailabilityZone": "us-east-1a", "Size": 10, "VolumeType": "gp3", "Encrypted": True,
               "TagSpecifications": [{"ResourceType": "volume", "Tags": [{"Key": "a", "Value": "b c+d/é"}]}]}},
    {"service": "ec2", "protocol": "ec2", "operation": "DescribeVolumes", "token": "FwoG+token/=",
     "input": {"Filters": [{"Name": "tag:a", "Values": ["x", "y"]}], "MaxResults": 5}},
    {"service": "ec2", "protocol": "ec2", "operation": "CopySnapshot", "presign": True,
     "input": {"SourceRegion": "us-east-1", "SourceSnapshotId": "snap-0123456789abcdef0", "Description": "a b*~"}},
    {"service": "sts", "protocol": "query", "operation": "GetCallerIdentity", "input": {}},
    {"service": "ec2", "protocol": "ec2", "operation": "DescribeSnapshots", "presign": True, "token": "FwoG+token/=",
     "input": {"OwnerIds": ["self"]}},
    {"service": "monitoring", "protocol": "query", "operation": "PutMetricData",
     "input": {"Namespace": "N", "MetricData": [{"MetricName": "m", "Value": 1.5, "Timestamp": 1795309323}]}},
    {"service": "monitoring", "protocol": "json", "operation": "ListMetrics", "input": {"Namespace": "AWS/EBS"}},
    {"service": "monitoring", "protocol": CBOR, "operation": "GetMetricStatistics",
     "input": {"Namespace": "AWS/EBS", "MetricName": "VolumeReadOps", "StartTime": 1795309323, "EndTime": 1795309383.5,
               "Period": 60, "Statistics": ["Sum"]}},
    {"service": "kms", "protocol": "json", "operation": "Encrypt",
     "input": {"KeyId": "alias/aws/ebs", "Plaintext": "aGVsbG8=", "EncryptionContext": {"aws:ebs:id": "vol-1"}}},
    {"service": "ebs", "protocol": "rest-json", "operation": "StartSnapshot",
     "input": {"VolumeSize": 1, "Tags": [{"Key": "a", "Value": "b"}], "ClientToken": "token"}},
    {"service": "ebs", "protocol": "rest-json", "operation": "GetSnapshotBlock",
     "input": {"SnapshotId": "snap-0123456789abcdef0", "BlockIndex": 3, "BlockToken": "AAAB+/=="}},
    {"service": "ebs", "protocol": "rest-json", "operation": "PutSnapshotBlock",
     "input": {"SnapshotId": "snap-0123456789abcdef0", "BlockIndex": 3, "BlockData": "AAAA", "DataLength": 3,
               "Checksum": "cIAMoTB1", "ChecksumAlgorithm": "SHA256"}},
]


def main():
    freeze()
    if sys.argv[1:] == ["vectors"]:
        json.dump([{**task, "request": request(task)} for task in VECTORS], sys.stdout, indent=1, ensure_ascii=True)
        print()
        return
    do = {"request": request, "answer": answer}
    for line in sys.stdin:
        task = json.loads(line)
        print(json.dumps(do[task["do"]](task)), flush=True)


main()
