"""Sends 64 requests and waits for all of them."""

import sys

import nbd

h = nbd.NBD()
h.connect_uri(sys.argv[1])
pending = [h.aio_pread(nbd.Buffer(4096), i * 4096) for i in range(64)]
for cookie in pending:
    while not h.aio_command_completed(cookie):
        h.poll(-1)
h.shutdown()
