"""Metrics and alarms of a volume by boto3: `attach` makes one with an alarm, `see VOLUME` says what it did."""

import datetime
import json
import sys

import boto3

ALARM = "writes"


def metric(volume, name):
    return {"Namespace": "AWS/EBS", "MetricName": name, "Dimensions": [{"Name": "VolumeId", "Value": volume}]}


def attach():
    ec2 = boto3.client("ec2")
    volume = ec2.create_volume(AvailabilityZone="us-east-1a", Size=1, VolumeType="gp3")["VolumeId"]
    ran = ec2.run_instances(MinCount=1, MaxCount=1, InstanceType="m5.large", ImageId="ami-00000000000000001")
    instance = ran["Instances"][0]["InstanceId"]
    ec2.attach_volume(VolumeId=volume, InstanceId=instance, Device="/dev/sdf")
    boto3.client("cloudwatch").put_metric_alarm(
        AlarmName=ALARM, Statistic="Sum", Period=60, EvaluationPeriods=2, DatapointsToAlarm=1, Threshold=1 << 19,
        ComparisonOperator="GreaterThanThreshold", TreatMissingData="notBreaching",
        **metric(volume, "VolumeWriteBytes"))
    return {"volume": volume, "instance": instance, "state": state()}


def state():
    return boto3.client("cloudwatch").describe_alarms(AlarmNames=[ALARM])["MetricAlarms"][0]["StateValue"]


def see(volume):
    cloudwatch = boto3.client("cloudwatch")
    now = datetime.datetime.now(datetime.timezone.utc)
    span = {"StartTime": now - datetime.timedelta(minutes=10), "EndTime": now + datetime.timedelta(minutes=1)}
    points = cloudwatch.get_metric_statistics(
        Period=60, Statistics=["Sum"], **metric(volume, "VolumeWriteBytes"), **span)["Datapoints"]
    queries = [
        {"Id": "b", "MetricStat": {"Metric": metric(volume, "VolumeWriteBytes"), "Period": 60, "Stat": "Sum"}},
        {"Id": "kib", "Expression": "b / 1024"},
    ]
    pages = cloudwatch.get_paginator("get_metric_data").paginate(MetricDataQueries=queries, **span)
    sums = {"b": 0, "kib": 0}
    for page in pages:
        for result in page["MetricDataResults"]:
            sums[result["Id"]] += sum(result["Values"])
    listed = cloudwatch.get_paginator("list_metrics").paginate(
        Namespace="AWS/EBS", Dimensions=[{"Name": "VolumeId", "Value": volume}])
    names = sorted({row["MetricName"] for page in listed for row in page["Metrics"]})
    history = cloudwatch.describe_alarm_history(AlarmName=ALARM, HistoryItemType="StateUpdate")
    try:
        cloudwatch.get_metric_data(MetricDataQueries=[{"Id": "e", "Expression": "SEARCH('', 'Sum', 60)"}], **span)
        refused = None
    except cloudwatch.exceptions.ClientError as error:
        refused = error.response["Error"]["Code"]
    return {
        "units": sorted({point["Unit"] for point in points}),
        "bytes": sum(point["Sum"] for point in points),
        "sums": sums,
        "names": names,
        "state": state(),
        "changes": [item["HistorySummary"] for item in history["AlarmHistoryItems"]],
        "refused": refused,
    }


print(json.dumps(attach() if sys.argv[1] == "attach" else see(sys.argv[2])))
