"""Calls a second of the AWS endpoint on one core: calls by the processor time that the server takes for them.

usage: ./dev bench aws-calls, which gives the program. BENCH_TINY=1: a hundred calls, and nothing is judged.

Each call is a POST that botocore signed, over four connections that stay open; DescribeVolumes shows a page of five
volumes with tags. Prints the median of five rounds with
its range, and beside it the calls a second by the clock, where the clients of this script take part of the processors.
"""

import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from urllib.parse import urlsplit

PROMISED = 2_000
CONNECTIONS = 4
REGION = "us-east-1"


def cpu_s(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def signed(url, key, service, body):
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    kind = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}
    request = AWSRequest("POST", url, data=body, headers=kind)
    SigV4Auth(Credentials(*key), service, REGION).add_auth(request)
    return dict(request.prepare().headers)


def send(url, headers, body, calls):
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    for _ in range(calls):
        connection.request("POST", "/", body, headers)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            sys.exit(text)
    connection.close()


def post(url, key, body):
    """What EC2 answers."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    connection.request("POST", "/", body, signed(url, key, "ec2", body))
    answer = connection.getresponse()
    text = answer.read().decode()
    if answer.status != 200:
        sys.exit(text)
    return text


def made(url, key, number):
    """The id of a new volume with a tag."""
    tag = f"TagSpecification.1.ResourceType=volume&TagSpecification.1.Tag.1.Key=Name&TagSpecification.1.Tag.1.Value=v{number}"
    create = f"Action=CreateVolume&Version=2016-11-15&Size=1&AvailabilityZone=us-east-1a&{tag}"
    return post(url, key, create).split("<volumeId>")[1].split("<")[0]


def round_of(pid, url, headers, body, calls):
    threads = [
        threading.Thread(target=send, args=(url, headers, body, calls // CONNECTIONS)) for _ in range(CONNECTIONS)
    ]
    before, begun = cpu_s(pid), time.monotonic()
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    took, cpu = time.monotonic() - begun, cpu_s(pid) - before
    return calls / max(cpu, 0.01), calls / took


def main():
    program = sys.argv[1]
    tiny = os.environ.get("BENCH_TINY") == "1"
    calls, rounds = (100, 1) if tiny else (4_000, 5)
    kept = True
    with tempfile.TemporaryDirectory() as home:

        def run(*words):
            ran = subprocess.run([program, *words, "--home", home, "--json"], capture_output=True, text=True)
            if ran.returncode != 0:
                sys.exit(ran.stderr)
            return json.loads(ran.stdout)

        serving = run("serve", "--detach", "--aws", "0", "--instant")
        try:
            user = run("user", "create", "bench")
            key = (user["access_key_id"], user["secret_access_key"])
            url = serving["aws"] + "/"
            page = "Action=DescribeVolumes&Version=2016-11-15&MaxResults=5"
            volumes = [made(url, key, number) for number in range(8)]
            shown = post(url, key, page).count("<volumeId>")
            assert shown == 5, f"the page has {shown} volumes"
            tags = "Tag.1.Key=Name&Tag.1.Value=data"
            for service, what, body in [
                ("sts", "GetCallerIdentity", "Action=GetCallerIdentity&Version=2011-06-15"),
                ("ec2", "DescribeVolumes", page),
                ("ec2", "CreateTags", f"Action=CreateTags&Version=2016-11-15&ResourceId.1={volumes[0]}&{tags}"),
            ]:
                headers = signed(url, key, service, body)
                figures = [round_of(serving["pid"], url, headers, body, calls) for _ in range(rounds)]
                on_a_core = [figure[0] for figure in figures]
                median = statistics.median(on_a_core)
                print(
                    f"{what:18} {median:8.0f} calls a second on one core ({min(on_a_core):.0f} to {max(on_a_core):.0f}); "
                    f"{statistics.median(figure[1] for figure in figures):.0f} a second by the clock"
                )
                kept &= median >= PROMISED
        finally:
            run("serve", "--stop", "--force")
    if not kept and not tiny:
        sys.exit(f"less than {PROMISED} calls a second on one core")


if __name__ == "__main__":
    main()
