"""Random valid calls of eight clients to the AWS endpoint against a model of the states, while the server is killed.

usage: ./dev bench aws-soak [DURATION], which gives the program. DURATION is 1h, 20m or 90s; an hour without it.
BENCH_TINY=1: six seconds with two kills. --home DIR: a home of one's own, else a temporary one.

Each client has volumes, snapshots and alarms of its own and knows what they must be: a call that was answered is done,
a call during which the server was killed is done or not, and nothing else may differ. The seed is printed;
EBBTIDE_SEED repeats the clients' choices. Exit code 1: something differs.
"""

import argparse
import base64
import collections
import copy
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

CLIENTS = 8
KILLS = 20
BLOCK = 512 * 1024
ZONE = "us-east-1a"
VOLUMES, SNAPSHOTS, ALARMS = 5, 5, 3
# What AWS allows in 24 hours.
MODIFICATIONS = 4


class Divergence(Exception):
    pass


def seconds(text):
    match = re.fullmatch(r"(\d+)([smh])", text)
    if not match:
        raise argparse.ArgumentTypeError(f"'{text}' is no duration; write 1h, 20m or 90s")
    return int(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2]]


def digest(data):
    return base64.b64encode(hashlib.sha256(data).digest()).decode()


def filled(byte):
    return bytes([byte]) * BLOCK


class Server:
    """The program that serves a home. Clients wait while it is down."""

    def __init__(self, program, home):
        self.program, self.home, self.address = program, home, "0"
        self.is_up = threading.Event()

    def run(self, *words):
        ran = subprocess.run([self.program, *words, "--home", self.home, "--json"], capture_output=True, text=True)
        if ran.returncode != 0:
            raise Divergence(f"{words}: {ran.stderr}")
        return json.loads(ran.stdout)

    def start(self):
        serving = self.run("serve", "--detach", "--aws", self.address, "--instant")
        self.pid, self.url = serving["pid"], serving["aws"]
        # The same address after each start, as the clients have it.
        self.address = self.url.rsplit(":", 1)[1]
        self.is_up.set()

    def kill(self):
        self.is_up.clear()
        os.kill(self.pid, signal.SIGKILL)
        until = time.monotonic() + 5
        while self.threads() and time.monotonic() < until:
            time.sleep(0.01)

    def threads(self):
        """Threads that have not ended; one may wait for a volume of its own."""
        try:
            with open(f"/proc/{self.pid}/stat") as stat:
                is_zombie = stat.read().rsplit(")", 1)[1].split()[0] == "Z"
            left = len(os.listdir(f"/proc/{self.pid}/task"))
            return 0 if is_zombie and left <= 1 else left
        except OSError:
            return 0


def sdk(url, key, name):
    return boto3.client(
        name, endpoint_url=url, region_name="us-east-1", aws_access_key_id=key[0], aws_secret_access_key=key[1],
        config=Config(retries={"total_max_attempts": 1}, max_pool_connections=2 * CLIENTS, read_timeout=120),
    )


class Client:
    """One client: its choices, what it knows, and what the endpoint shows of it."""

    def __init__(self, number, seed, api, instance, server):
        self.name, self.random = f"client-{number}", random.Random(f"{seed} {number}")
        self.ec2, self.ebs, self.cloudwatch = api
        self.instance, self.device, self.server = instance, f"/dev/sd{'fghijklm'[number]}", server
        self.world = {"volumes": {}, "snapshots": {}, "alarms": {}}
        # Blocks of snapshots that were put together from blocks.
        self.blocks, self.modified = {}, collections.Counter()
        self.calls, self.cut, self.number = collections.Counter(), 0, 0

    # ---- What the endpoint shows ----------------------------------------------------------------

    def mine(self):
        return [{"Name": "tag:client", "Values": [self.name]}]

    def wait_for_detached(self, volume):
        """Another program of this machine may look at the device just then: the attachment is `busy` for so long."""
        until = time.monotonic() + 60
        while True:
            row = self.ec2.describe_volumes(VolumeIds=[volume])["Volumes"][0]
            if all(one["State"] not in ("busy", "detaching") for one in row["Attachments"]):
                return
            if time.monotonic() > until:
                raise Divergence(f"{self.name}: {volume} is not detached: {row['Attachments']}")
            time.sleep(0.2)

    def look(self):
        volumes, snapshots = {}, {}
        for page in self.ec2.get_paginator("describe_volumes").paginate(Filters=self.mine()):
            for row in page["Volumes"]:
                if row["State"] not in ("available", "in-use"):
                    raise Divergence(f"{self.name}: {row['VolumeId']} is {row['State']}")
                attached = row["State"] == "in-use"
                if any(one["State"] in ("busy", "detaching") for one in row["Attachments"]):
                    self.wait_for_detached(row["VolumeId"])
                    attached = False
                volumes[row["VolumeId"]] = {
                    "size": row["Size"], "iops": row["Iops"], "attached": attached, "tags": tags(row)}
        for page in self.ec2.get_paginator("describe_snapshots").paginate(Filters=self.mine()):
            for row in page["Snapshots"]:
                snapshots[row["SnapshotId"]] = {"size": row["VolumeSize"], "state": row["State"], "tags": tags(row)}
        pages = self.cloudwatch.get_paginator("describe_alarms").paginate(AlarmNamePrefix=self.name + ".")
        alarms = {row["AlarmName"]: row["Threshold"] for page in pages for row in page["MetricAlarms"]}
        return {"volumes": volumes, "snapshots": snapshots, "alarms": alarms}

    def compare(self, other=None):
        """The endpoint shows this world, or the other one, in which what was made has any id."""
        until = time.monotonic() + 30
        while True:
            seen = self.look()
            if seen == self.world or (other and anonymous(seen, self.world) == other):
                self.world = seen
                return
            # A snapshot of blocks is pending for a moment after it was completed.
            if time.monotonic() > until or all(row["state"] != "pending" for row in seen["snapshots"].values()):
                text = [json.dumps(world, indent=1, sort_keys=True) for world in (seen, self.world, other)]
                raise Divergence(f"{self.name}: seen {text[0]}\nexpected {text[1]}\nor {text[2]}")
            time.sleep(0.2)

    # ---- Calls: each is (name, request, what the world is after it) -----------------------------

    def pick(self, kind, wanted=lambda one: True):
        found = sorted(key for key, one in self.world[kind].items() if wanted(one))
        return self.random.choice(found) if found else None

    def draw(self):
        while True:
            call = getattr(self, self.random.choice(CALLS))()
            if call:
                return call

    def create(self):
        if len(self.world["volumes"]) >= VOLUMES:
            return None
        whole = self.pick("snapshots", lambda one: one["state"] == "completed") if self.random.random() < 0.3 else None
        least = self.world["snapshots"][whole]["size"] if whole else 1
        size, own = self.random.randint(least, least + 3), self.label()
        request = dict(AvailabilityZone=ZONE, Size=size, VolumeType="gp3", ClientToken=f"{self.name}.{self.number}",
                       TagSpecifications=self.specification("volume", own))
        if whole:
            request["SnapshotId"] = whole
        row = {"size": size, "iops": 3000, "attached": False, "tags": own}
        return "CreateVolume", lambda: self.ec2.create_volume(**request)["VolumeId"], self.added("volumes", row)

    def delete(self):
        volume = self.pick("volumes", lambda one: not one["attached"])
        return volume and ("DeleteVolume", lambda: self.ec2.delete_volume(VolumeId=volume), self.removed("volumes", volume))

    def attach(self):
        volume = self.pick("volumes")
        if not volume or any(one["attached"] for one in self.world["volumes"].values()):
            return None
        request = dict(VolumeId=volume, InstanceId=self.instance, Device=self.device)
        return "AttachVolume", lambda: self.ec2.attach_volume(**request), self.changed("volumes", volume, attached=True)

    def detach(self):
        volume = self.pick("volumes", lambda one: one["attached"])

        def call():
            self.ec2.detach_volume(VolumeId=volume)
            self.wait_for_detached(volume)

        return volume and ("DetachVolume", call, self.changed("volumes", volume, attached=False))

    def modify(self):
        volume = self.pick("volumes")
        if not volume or self.modified[volume] >= MODIFICATIONS:
            return None
        one = self.world["volumes"][volume]
        new = {"size": one["size"] + 8, "iops": one["iops"] + 500}
        self.modified[volume] += 1
        call = lambda: self.ec2.modify_volume(VolumeId=volume, Size=new["size"], Iops=new["iops"])
        return "ModifyVolume", call, self.changed("volumes", volume, **new)

    def tag(self):
        kind = self.random.choice(["volumes", "snapshots"])
        one = self.pick(kind)
        if not one:
            return None
        own = {**self.world[kind][one]["tags"], "word": str(self.random.randrange(1000))}
        call = lambda: self.ec2.create_tags(Resources=[one], Tags=[{"Key": "word", "Value": own["word"]}])
        return "CreateTags", call, self.changed(kind, one, tags=own)

    def untag(self):
        kind = self.random.choice(["volumes", "snapshots"])
        one = self.pick(kind, lambda one: "word" in one["tags"])
        if not one:
            return None
        own = {key: value for key, value in self.world[kind][one]["tags"].items() if key != "word"}
        call = lambda: self.ec2.delete_tags(Resources=[one], Tags=[{"Key": "word"}])
        return "DeleteTags", call, self.changed(kind, one, tags=own)

    def snapshot(self):
        volume = self.pick("volumes")
        if not volume or len(self.world["snapshots"]) >= SNAPSHOTS:
            return None
        own = self.label()
        call = lambda: self.ec2.create_snapshot(
            VolumeId=volume, TagSpecifications=self.specification("snapshot", own))["SnapshotId"]
        row = {"size": self.world["volumes"][volume]["size"], "state": "completed", "tags": own}
        return "CreateSnapshot", call, self.added("snapshots", row)

    def copy(self):
        source = self.pick("snapshots", lambda one: one["state"] == "completed")
        if not source or len(self.world["snapshots"]) >= SNAPSHOTS:
            return None
        own = self.label()
        call = lambda: self.ec2.copy_snapshot(
            SourceRegion="us-east-1", SourceSnapshotId=source,
            TagSpecifications=self.specification("snapshot", own))["SnapshotId"]
        row = {"size": self.world["snapshots"][source]["size"], "state": "completed", "tags": own}
        return "CopySnapshot", call, self.added("snapshots", row)

    def forget(self):
        one = self.pick("snapshots", lambda one: one["state"] == "completed")
        call = lambda: self.ec2.delete_snapshot(SnapshotId=one)
        return one and ("DeleteSnapshot", call, self.removed("snapshots", one))

    def start(self):
        if len(self.world["snapshots"]) >= SNAPSHOTS:
            return None
        own = self.label()
        listed = [{"Key": key, "Value": value} for key, value in {**own, "client": self.name}.items()]
        call = lambda: self.ebs.start_snapshot(VolumeSize=1, Tags=listed)["SnapshotId"]
        return "StartSnapshot", call, self.added("snapshots", {"size": 1, "state": "pending", "tags": own})

    def put(self):
        one = self.pick("snapshots", lambda one: one["state"] == "pending")
        if not one:
            return None
        index, byte = self.random.randrange(2048), self.random.randrange(256)

        def call():
            # Put again after a kill: what is there of the first time does not matter.
            self.blocks.setdefault(one, {})[index] = byte
            self.put_block(one, index, byte)

        return "PutSnapshotBlock", call, None

    def put_block(self, one, index, byte):
        data = filled(byte)
        self.ebs.put_snapshot_block(SnapshotId=one, BlockIndex=index, BlockData=data, DataLength=BLOCK,
                                    Checksum=digest(data), ChecksumAlgorithm="SHA256")

    def complete(self):
        one = self.pick("snapshots", lambda one: one["state"] == "pending")
        if not one:
            return None
        count = len(self.blocks.get(one, {}))
        call = lambda: self.ebs.complete_snapshot(SnapshotId=one, ChangedBlocksCount=count)
        return "CompleteSnapshot", call, self.changed("snapshots", one, state="completed")

    def read(self):
        one = self.pick("snapshots", lambda one: one["state"] == "completed")
        if one not in self.blocks:
            return None

        def call():
            listed = self.ebs.list_snapshot_blocks(SnapshotId=one)["Blocks"]
            found = {}
            for row in listed:
                got = self.ebs.get_snapshot_block(
                    SnapshotId=one, BlockIndex=row["BlockIndex"], BlockToken=row["BlockToken"])
                data = got["BlockData"].read()
                found[row["BlockIndex"]] = data[0] if data == filled(data[0]) else None
            if found != self.blocks[one]:
                raise Divergence(f"{self.name}: {one} has {found}, not {self.blocks[one]}")

        return "GetSnapshotBlock", call, None

    def alarm(self):
        name, threshold = f"{self.name}.{self.random.randrange(ALARMS)}", float(self.random.randrange(100))
        call = lambda: self.cloudwatch.put_metric_alarm(
            AlarmName=name, Namespace="AWS/EBS", MetricName="VolumeReadOps", Statistic="Sum", Period=60,
            EvaluationPeriods=1, Threshold=threshold, ComparisonOperator="GreaterThanThreshold",
            Dimensions=[{"Name": "VolumeId", "Value": "vol-00000000000000001"}])
        after = copy.deepcopy(self.world)
        after["alarms"][name] = threshold
        return "PutMetricAlarm", call, lambda made: after

    def silence(self):
        name = self.pick("alarms")
        call = lambda: self.cloudwatch.delete_alarms(AlarmNames=[name])
        return name and ("DeleteAlarms", call, self.removed("alarms", name))

    def look_at_all(self):
        return "Describe", self.compare, None

    # ---- Worlds ---------------------------------------------------------------------------------

    def label(self):
        self.number += 1
        return {"number": str(self.number)}

    def specification(self, kind, own):
        listed = [{"Key": key, "Value": value} for key, value in {**own, "client": self.name}.items()]
        return [{"ResourceType": kind, "Tags": listed}]

    def added(self, kind, row):
        def after(made):
            return {**self.world, kind: {**self.world[kind], made: row}}
        return after

    def removed(self, kind, key):
        def after(_):
            return {**self.world, kind: {one: row for one, row in self.world[kind].items() if one != key}}
        return after

    def changed(self, kind, key, **new):
        def after(_):
            return {**self.world, kind: {**self.world[kind], key: {**self.world[kind][key], **new}}}
        return after

    # ---- The run --------------------------------------------------------------------------------

    def step(self):
        name, call, after = self.draw()
        while True:
            self.server.is_up.wait()
            try:
                made = call()
                self.calls[name] += 1
                if after:
                    self.world = after(made if isinstance(made, str) else None)
                return
            except ClientError as error:
                raise Divergence(f"{self.name}: {name} was refused: {error}; known: {self.world}") from error
            except BotoCoreError:
                # The server was killed. A call without an effect of its own is repeated.
                self.cut += 1
                if after:
                    self.settle(after("made"))
                    return

    def settle(self, other):
        while True:
            self.server.is_up.wait()
            try:
                return self.compare(other)
            except BotoCoreError:
                continue

    def live(self, until, failures):
        try:
            while time.monotonic() < until and not failures:
                self.step()
            self.settle(None)
        except Exception as error:  # noqa: BLE001 - whatever it is, the run has failed
            failures.append(error)


CALLS = ["create", "create", "delete", "attach", "detach", "modify", "tag", "untag", "snapshot", "copy", "forget", "start",
         "put", "put", "complete", "read", "alarm", "silence", "look_at_all"]


def tags(row):
    return {tag["Key"]: tag["Value"] for tag in row.get("Tags", []) if tag["Key"] != "client"}


def anonymous(seen, known):
    """What is new gets the name `made`."""
    return {kind: {one if one in known[kind] or kind == "alarms" else "made": row for one, row in rows.items()}
            for kind, rows in seen.items()}


def soak(server, seed, duration, kills):
    server.start()
    user = server.run("user", "create", "soak")
    key = (user["access_key_id"], user["secret_access_key"])
    api = [sdk(server.url, key, name) for name in ("ec2", "ebs", "cloudwatch")]
    ran = api[0].run_instances(MinCount=1, MaxCount=1, InstanceType="m5.large", ImageId="ami-ffffffff")  # without a root volume, which no client made
    instance = ran["Instances"][0]["InstanceId"]
    clients = [Client(number, seed, api, instance, server) for number in range(CLIENTS)]
    begun, failures, starts = time.monotonic(), [], []
    threads = [threading.Thread(target=one.live, args=(begun + duration, failures), daemon=True) for one in clients]
    [thread.start() for thread in threads]
    choice = random.Random(f"{seed} kills")
    for number in range(kills):
        # Within the interval of this kill, so that all of them are in the run.
        at = begun + duration * (number + choice.uniform(0.2, 0.8)) / kills
        while time.monotonic() < at and not failures:
            time.sleep(0.01)
        if failures:
            break
        server.kill()
        restarting = time.monotonic()
        server.start()
        starts.append(time.monotonic() - restarting)
    [thread.join() for thread in threads]
    if failures:
        raise failures[0]
    volumes = {volume for one in clients for volume in one.world["volumes"]}
    listed = {row["name"] for row in server.run("volume", "list")}
    if volumes != listed:
        raise Divergence(f"volumes of the home: {sorted(listed ^ volumes)} are known to one side only")
    calls = sum((one.calls for one in clients), collections.Counter())
    print(f"{sum(calls.values())} calls of {CLIENTS} clients in {time.monotonic() - begun:.0f} s, {kills} kills, "
          f"{sum(one.cut for one in clients)} calls cut; restart {max(starts, default=0):.1f} s at most; nothing differs")
    print(", ".join(f"{name} {count}" for name, count in sorted(calls.items())))


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("program")
    words.add_argument("duration", nargs="?", type=seconds, default=None)
    words.add_argument("--home")
    words = words.parse_args()
    tiny = os.environ.get("BENCH_TINY") == "1"
    duration = words.duration or (6 if tiny else 3600)
    seed = os.environ.get("EBBTIDE_SEED") or str(random.SystemRandom().randrange(1 << 32))
    print(f"seed {seed}: repeat with EBBTIDE_SEED={seed}", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        server = Server(words.program, words.home or os.path.join(scratch, "home"))
        try:
            soak(server, seed, duration, 2 if tiny else KILLS)
        except Divergence as error:
            sys.exit(f"seed {seed}: {error}")
        finally:
            subprocess.run([server.program, "serve", "--stop", "--force", "--home", server.home], capture_output=True)


if __name__ == "__main__":
    main()
