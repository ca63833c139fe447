"""Who boto3 is, according to the endpoint of its environment."""

import boto3

answer = boto3.client("sts").get_caller_identity()
print(answer["Arn"])
