"""Block status: allocation, changes since a snapshot, and the flag that asks for one extent."""

import sys

import nbd

KIB, MIB = 1 << 10, 1 << 20
DIRTY = "qemu:dirty-bitmap:monday"
h = nbd.NBD()
h.add_meta_context(nbd.CONTEXT_BASE_ALLOCATION)
h.add_meta_context(DIRTY)
h.add_meta_context("qemu:dirty-bitmap:friday")
h.add_meta_context("x-unknown:thing")
h.connect_uri(sys.argv[1])
if sys.argv[2] == "prepare":
    assert h.can_meta_context(nbd.CONTEXT_BASE_ALLOCATION)
    assert not h.can_meta_context(DIRTY)
    h.pwrite(b"a" * MIB, MIB)
    h.pwrite(b"b" * 4096, 3 * MIB)
    h.shutdown()
    sys.exit()

assert h.can_meta_context(DIRTY)
assert not h.can_meta_context("qemu:dirty-bitmap:friday")
h.pwrite(b"c" * (64 * KIB), MIB + 256 * KIB)
h.trim(64 * KIB, 2 * MIB - 64 * KIB)


def status(offset, length, flags=0):
    found = {}

    def extent(context, start, entries, error):
        assert start == offset and context not in found
        found[context] = list(zip(entries[::2], entries[1::2]))

    h.block_status(length, offset, extent, flags)
    assert set(found) == {nbd.CONTEXT_BASE_ALLOCATION, DIRTY}, found
    return found[nbd.CONTEXT_BASE_ALLOCATION], found[DIRTY]


HOLE = nbd.STATE_HOLE | nbd.STATE_ZERO
allocation, dirty = status(0, 64 * MIB)
assert allocation == [
    (MIB, HOLE),
    (MIB - 64 * KIB, 0),
    (MIB + 64 * KIB, HOLE),
    (4 * KIB, 0),
    (61 * MIB - 4 * KIB, HOLE),
], allocation
assert dirty == [
    (MIB + 256 * KIB, 0),
    (64 * KIB, 1),
    (640 * KIB, 0),
    (64 * KIB, 1),
    (62 * MIB, 0),
], dirty

# A part of an extent, one extent, and a request that is not aligned to the store's blocks.
assert status(MIB + 512 * KIB, 64 * KIB) == ([(64 * KIB, 0)], [(64 * KIB, 0)])
allocation, dirty = status(0, 8 * MIB, nbd.CMD_FLAG_REQ_ONE)
assert allocation == [(MIB, HOLE)] and dirty == [(MIB + 256 * KIB, 0)]
allocation, dirty = status(3 * MIB + 512, 4096)
assert allocation == [(3584, 0), (512, HOLE)], allocation

# A checkerboard: the answer is cut short, and asking on from there covers everything.
for i in range(0, 2048, 2):
    h.pwrite(b"x" * 4096, 32 * MIB + i * 4096)
at, pieces = 32 * MIB, 0
while at < 40 * MIB:
    allocation, _ = status(at, 40 * MIB - at)
    pieces += len(allocation)
    at += sum(length for length, _ in allocation)
assert pieces >= 2048 and at == 40 * MIB, (pieces, at)

# Other contexts, listed by query.
names = []
g = nbd.NBD()
g.set_opt_mode(True)
g.connect_uri(sys.argv[1])
g.add_meta_context("qemu:")
g.opt_list_meta_context(lambda name: names.append(name))
assert names == [DIRTY], names
g.opt_abort()
h.shutdown()
