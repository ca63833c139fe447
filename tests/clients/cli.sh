#!/usr/bin/env bash
# The AWS CLI beyond docs/aws.md: the EBS direct APIs, CloudWatch, and waiters of what is deleted.
#
# usage: cli.sh AWS SCRATCH. Prints a line for each part.
# shellcheck disable=SC2016 # JMESPath has backticks of its own
set -euo pipefail
readonly AWS=$1 SCRATCH=$2
digest() { openssl dgst -sha256 -binary "$1" | base64; }

# A block of 512 KiB goes into a snapshot and comes back.
head -c 524288 /dev/urandom >"$SCRATCH/block"
SNAPSHOT=$("$AWS" ebs start-snapshot --volume-size 1 --query SnapshotId --output text)
"$AWS" ebs put-snapshot-block --snapshot-id "$SNAPSHOT" --block-index 3 --block-data "$SCRATCH/block" --data-length 524288 \
    --checksum "$(digest "$SCRATCH/block")" --checksum-algorithm SHA256 >"$SCRATCH/put.json"
"$AWS" ebs complete-snapshot --snapshot-id "$SNAPSHOT" --changed-blocks-count 1 --query Status --output text
"$AWS" ec2 wait snapshot-completed --snapshot-ids "$SNAPSHOT"
TOKEN=$("$AWS" ebs list-snapshot-blocks --snapshot-id "$SNAPSHOT" --query 'Blocks[?BlockIndex==`3`].BlockToken' --output text)
"$AWS" ebs get-snapshot-block --snapshot-id "$SNAPSHOT" --block-index 3 --block-token "$TOKEN" "$SCRATCH/got" >"$SCRATCH/get.json"
cmp "$SCRATCH/block" "$SCRATCH/got" && echo "the block is the same"

# Metrics of the volume that is attached.
VOLUME=$("$AWS" ec2 describe-volumes --filters Name=status,Values=in-use Name=size,Values=20 --query 'Volumes[0].VolumeId' --output text)
cat >"$SCRATCH/queries.json" <<QUERIES
[{"Id": "w", "ReturnData": false, "MetricStat": {"Period": 60, "Stat": "Sum", "Metric": {"Namespace": "AWS/EBS",
  "MetricName": "VolumeWriteBytes", "Dimensions": [{"Name": "VolumeId", "Value": "$VOLUME"}]}}},
 {"Id": "mib", "Expression": "w / 1048576"}]
QUERIES
"$AWS" cloudwatch get-metric-data --metric-data-queries "file://$SCRATCH/queries.json" \
    --start-time "$(date -u -d '-10 minutes' +%FT%TZ)" --end-time "$(date -u -d '+1 minute' +%FT%TZ)" \
    --query 'sum(MetricDataResults[?Id==`mib`].Values[])' --output text

# Detached and deleted.
"$AWS" ec2 detach-volume --volume-id "$VOLUME" --query State --output text
"$AWS" ec2 wait volume-available --volume-ids "$VOLUME"
"$AWS" ec2 delete-volume --volume-id "$VOLUME"
"$AWS" ec2 wait volume-deleted --volume-ids "$VOLUME"
