"""Requests that cannot be served, from a client that does not check them itself."""

import sys

import nbd

h = nbd.NBD()
h.add_meta_context(nbd.CONTEXT_BASE_ALLOCATION)
h.connect_uri(sys.argv[1])
h.set_strict_mode(0)
size = h.get_size()


def refused(errno, call, *args):
    try:
        call(*args)
    except nbd.Error as error:
        assert error.errno == errno, (error, errno)
    else:
        raise AssertionError("accepted: %r%r" % (call, args))
    # The connection is as good as before.
    assert h.pread(512, 0) == bytes(512)


refused("EINVAL", h.pread, 512, size)
refused("EINVAL", h.pread, 1024, size - 512)
refused("ENOSPC", h.pwrite, b"x" * 512, size)
refused("ENOSPC", h.pwrite, b"x" * 65536, size - 512)
refused("ENOSPC", h.zero, 1024, size - 512)
refused("EINVAL", h.trim, 1024, size - 512)
refused("EINVAL", h.pread, 512, 100)
refused("EINVAL", h.pread, 100, 512)
refused("EINVAL", h.pwrite, b"x" * 100, 0)
refused("EINVAL", h.block_status, 1024, size, lambda *args: 0)
refused("EINVAL", h.cache, 4096, 0)
refused("EINVAL", h.pread, 512, 0, 1 << 15)
refused("EINVAL", h.pwrite, b"x" * 512, 0, nbd.CMD_FLAG_DF)
refused("EOVERFLOW", h.pread, 33 << 20, 0)
refused("EINVAL", h.pwrite, bytes(33 << 20), 0)
h.shutdown()
