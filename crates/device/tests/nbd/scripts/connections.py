"""Several connections to one volume: what is answered on one is true on all."""

import os
import sys

import nbd

handles = []
for _ in range(4):
    h = nbd.NBD()
    h.connect_uri(sys.argv[1])
    assert h.can_multi_conn()
    handles.append(h)

for turn in range(40):
    writer = handles[turn % 4]
    data = os.urandom(16384)
    writer.pwrite(data, turn * 65536)
    for reader in handles:
        assert reader.pread(16384, turn * 65536) == data, turn
handles[0].flush()

# A connection that ends without a word disturbs none of the others.
handles[1].aio_pwrite(nbd.Buffer.from_bytearray(bytearray(1 << 20)), 0)
del handles[1]
for h in handles:
    assert len(h.pread(4096, 0)) == 4096
    h.shutdown()
