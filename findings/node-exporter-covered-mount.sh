#!/usr/bin/env bash
# node_exporter gives a file system that another one covers the size and the free space of the other one.
#
#   node-exporter-covered-mount.sh     as root, or as a user who may make user namespaces
#
# Expected: where two file systems are mounted on one directory, the covered one is left out, as df leaves it out, or it has its own
#   size. Only the upper one can be asked by the path.
# Seen (node_exporter 1.5.0): both are reported, each with its device and type, and both with the values of the upper one. A covered
#   file system of 8 MiB is 64 MiB, and node_filesystem_device_error is 0.
# Where it happens: a new volume is mounted over the data directory without an umount of the old one. A sum over devices counts the upper
#   one twice, and the old volume's `device` has false values.
# What to do: `findmnt DIRECTORY` prints a line for each file system; `df -a` prints `-` for the covered one.
#
# The mounts are tmpfs in a namespace of the script's own; the machine does not see them.
#
# Exit codes: 0 as stated; 1 changed; 2 usage; 3 it could not be set up.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname -- "$0")/lib.sh"

usage_for "$@"
command -v unshare >/dev/null || none "unshare is missing"
packages prometheus-node-exporter=1.5.0-1+b6
mkdir "$WORK/data"

# The exporter reads the mounts of process 1, which the shell is here.
cat >"$WORK/inside.sh" <<'INSIDE'
set -e
cd "$1"
ip link set lo up
mount -t tmpfs -o size=8m lower data
mount -t tmpfs -o size=64m upper data
prometheus-node-exporter --collector.disable-defaults --collector.filesystem --web.listen-address=127.0.0.1:19198 >log 2>&1 &
for _ in $(seq 100); do
    if curl -sf http://127.0.0.1:19198/metrics >metrics; then break; fi
    sleep 0.1
done
df --output=source,size -B 1M data | tail -n 1 >df
kill $!
INSIDE
NAMESPACES=(--mount --net --pid --fork --mount-proc)
[ "$(id -u)" = 0 ] || NAMESPACES+=(--user --map-root-user)
unshare "${NAMESPACES[@]}" bash "$WORK/inside.sh" "$WORK" 2>"$WORK/unshare.log" ||
    none "no namespace, or no mount in it: $(tail -n 1 "$WORK/unshare.log")"

# A value of a file system ($2, its device) on the folder.
metric() {
    awk -v begin="$1{device=\"$2\"" -v end="mountpoint=\"$WORK/data\"}" \
        'index($1, begin) == 1 && substr($1, length($1) - length(end) + 1) == end { printf "%d\n", $2 }' "$WORK/metrics"
}
seen "df: the file system and its size in MiB" "$(awk '{ print $1, $2 }' "$WORK/df")" "upper 64"
seen "node_filesystem_size_bytes of the upper one, mounted with size=64m" "$(metric node_filesystem_size_bytes upper)" 67108864
seen "node_filesystem_size_bytes of the covered one, mounted with size=8m" "$(metric node_filesystem_size_bytes lower)" 67108864
seen "node_filesystem_avail_bytes of the covered one" "$(metric node_filesystem_avail_bytes lower)" 67108864
seen "node_filesystem_device_error of the covered one" "$(metric node_filesystem_device_error lower)" 0
conclude
