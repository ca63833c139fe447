"""A client that wants simple replies, or only knows how to name an export."""

import os
import sys

import nbd

h = nbd.NBD()
h.set_request_structured_replies(False)
h.connect_uri(sys.argv[1])
assert not h.get_structured_replies_negotiated()
assert not h.can_df()
for offset, length in [(0, 4096), (512, 1 << 20), (1 << 20, 32 << 20)]:
    data = os.urandom(length)
    h.pwrite(data, offset)
    assert h.pread(length, offset) == data
h.zero(1 << 20, 0)
assert h.pread(1 << 20, 0) == bytes(1 << 20)
h.flush()
h.set_strict_mode(0)
for errno, call, args in [
    ("EINVAL", h.pread, (512, h.get_size())),
    ("ENOSPC", h.pwrite, (b"x" * 512, h.get_size())),
]:
    try:
        call(*args)
        raise AssertionError("accepted")
    except nbd.Error as error:
        assert error.errno == errno, error
assert h.pread(4096, 2 << 20) == data[(1 << 20) : (1 << 20) + 4096]
h.shutdown()
