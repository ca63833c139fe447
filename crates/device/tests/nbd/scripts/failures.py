"""A volume that fails at 5 MiB: errors with offsets, and everything else intact."""

import os
import sys

import nbd

MIB = 1 << 20
h = nbd.NBD()
h.connect_uri(sys.argv[1])
data = os.urandom(4 * MIB)
h.pwrite(data, 0)

# The piece that fails is named by its first byte; the pieces beside it arrive.
chunks = []


def chunk(subbuf, offset, status, error):
    if status == nbd.READ_ERROR:
        chunks.append((offset, status, error.value))
    else:
        chunks.append((offset, status, len(subbuf)))


try:
    h.pread_structured(8 * MIB, 0, chunk)
    raise AssertionError("a failed read succeeded")
except nbd.Error as error:
    assert error.errno == "EIO", error
errors = [entry for entry in chunks if entry[1] == nbd.READ_ERROR]
assert errors == [(5 * MIB, nbd.READ_ERROR, 5)], errors
fine = {offset for offset, status, _ in chunks if status != nbd.READ_ERROR}
assert fine >= {0, MIB, 2 * MIB, 3 * MIB, 4 * MIB, 6 * MIB, 7 * MIB}, fine


def fails(call, *args):
    try:
        call(*args)
    except nbd.Error as error:
        assert error.errno == "EIO", error
    else:
        raise AssertionError("a failed request succeeded: %r" % (call,))


fails(h.pread, 4096, 5 * MIB)
for length, offset in [(4096, 5 * MIB), (8 * MIB, 0)]:
    fails(h.pread_structured, length, offset, lambda *args: 0, nbd.CMD_FLAG_DF)
for flags in [0, nbd.CMD_FLAG_FUA]:
    fails(h.pwrite, b"x" * 4096, 5 * MIB, flags)
    fails(h.pwrite, bytes(8 * MIB), 4 * MIB, flags)
fails(h.zero, 4096, 5 * MIB)
assert h.pread(4 * MIB, 0) == data
h.shutdown()
