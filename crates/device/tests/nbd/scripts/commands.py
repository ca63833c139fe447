"""Reads, writes, zeroes, trims and flushes with every flag that goes with them."""

import os
import sys

import nbd

h = nbd.NBD()
h.connect_uri(sys.argv[1])
assert h.get_structured_replies_negotiated()
MIB = 1 << 20

# A fresh volume reads as zeroes; writes of any size and alignment to 512 bytes come back.
assert h.pread(MIB, 0) == bytes(MIB)
ignore = lambda *args: 0
for offset, length in [(0, 512), (1536, 7168), (3 * MIB - 512, 1024), (4 * MIB, 32 * MIB)]:
    data = os.urandom(length)
    h.pwrite(data, offset)
    assert h.pread(length, offset) == data, (offset, length)
    assert h.pread_structured(length, offset, ignore, nbd.CMD_FLAG_DF) == data, (offset, length)

# Data and zeroes in one reply, where zeroes come as holes.
data = bytearray(2 * MIB)
data[0:512] = os.urandom(512)
data[MIB + 4096 : MIB + 8192] = os.urandom(4096)
h.pwrite(data, 40 * MIB)
chunks = []


def chunk(subbuf, offset, status, error):
    chunks.append((offset, len(subbuf), status))


buf = h.pread_structured(2 * MIB, 40 * MIB, chunk)
assert buf == data
holes = sum(length for _, length, status in chunks if status == nbd.READ_HOLE)
assert holes > MIB, chunks
chunks.clear()
assert h.pread_structured(2 * MIB, 40 * MIB, chunk, nbd.CMD_FLAG_DF) == data
assert [c[2] for c in chunks] == [nbd.READ_DATA], chunks

# FUA goes with everything that writes, and is harmless elsewhere.
h.pwrite(b"f" * 4096, 8192, nbd.CMD_FLAG_FUA)
assert h.pread(4096, 8192) == b"f" * 4096
h.zero(4096, 8192, nbd.CMD_FLAG_FUA)
assert h.pread(4096, 8192) == bytes(4096)
h.pwrite(b"g" * 4096, 8192)
h.trim(4096, 8192, nbd.CMD_FLAG_FUA)
assert h.pread(4096, 8192) == bytes(4096)
h.flush()

# Zeroes: as a hole, without a hole, at odd places, and longer than any payload.
for flags in [0, nbd.CMD_FLAG_NO_HOLE, nbd.CMD_FLAG_NO_HOLE | nbd.CMD_FLAG_FUA]:
    h.pwrite(b"z" * 8192, MIB)
    h.zero(1024, MIB + 512, flags)
    assert h.pread(8192, MIB) == b"z" * 512 + bytes(1024) + b"z" * (8192 - 1536)
h.pwrite(b"z" * MIB, 50 * MIB)
h.zero(h.get_size(), 0)
assert h.pread(MIB, 50 * MIB) == bytes(MIB)
h.pwrite(b"z" * (2 * MIB), 0)
h.zero(2 * MIB, 0, nbd.CMD_FLAG_NO_HOLE)
assert h.pread(2 * MIB, 0) == bytes(2 * MIB)

# A fast zero is done for whole blocks, and refused otherwise without touching the data.
h.pwrite(b"q" * 8192, 0)
h.zero(8192, 0, nbd.CMD_FLAG_FAST_ZERO)
assert h.pread(8192, 0) == bytes(8192)
h.pwrite(b"q" * 8192, 0)
for offset, length, flags in [(512, 4096, 0), (0, 512, 0), (0, 8192, nbd.CMD_FLAG_NO_HOLE)]:
    try:
        h.zero(length, offset, nbd.CMD_FLAG_FAST_ZERO | flags)
        raise AssertionError("a fast zero that is not fast was accepted")
    except nbd.Error as error:
        assert error.errno == "ENOTSUP" or error.errno == "EOPNOTSUPP", error
assert h.pread(8192, 0) == b"q" * 8192

# Many in flight at once, in any order.
pending = []
for i in range(256):
    pending.append(h.aio_pwrite(nbd.Buffer.from_bytearray(bytearray([i] * 4096)), i * 4096))
for cookie in pending:
    while not h.aio_command_completed(cookie):
        h.poll(-1)
for i in range(256):
    assert h.pread(4096, i * 4096) == bytes([i] * 4096)
h.shutdown()
