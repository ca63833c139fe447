#!/usr/bin/env bash
# While requests hang, the weighted time of a block device stands still: iostat shows a queue of 0.00 on a device that is 100% busy.
#
#   diskstats-hung-request.sh     as root, with losetup, fsfreeze and mkfs.ext4. It makes two loop devices in files of its own
#
# Expected: field 11 of /proc/diskstats (time_in_queue) grows by the requests in progress, times the time that passed. The kernel's
#   Documentation/admin-guide/iostats.rst says so: at each start, end and merge of an I/O "or read of these stats". Its rate is
#   then the length of the queue. iostat prints it as aqu-sz, node_exporter has it as node_disk_io_time_weighted_seconds_total.
# Seen (Linux 6.18, sysstat 12.6.1, node_exporter 1.5.0): the field gets the time of a request when that request ends. While one hangs it
#   does not change, nor do the counts and the times of reads and writes. At its end the whole wait is added at once. io_ticks (%util) and the
#   requests in progress (node_disk_io_now) do show it.
# What to do: for a volume that answers nothing, alarm on node_disk_io_now > 0 with rate(node_disk_io_time_seconds_total) near 1 and no reads
#   and writes completed. An alarm on the queue, or on the latency, sees it afterwards.
#
# The request hangs because the file behind the loop device is on a file system that is frozen for some seconds.
#
# Exit codes: 0 as stated; 1 changed; 2 usage; 3 it could not be set up.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname -- "$0")/lib.sh"

usage_for "$@"
[ "$(id -u)" = 0 ] || none "it needs root"
for tool in losetup fsfreeze mkfs.ext4; do command -v "$tool" >/dev/null || none "$tool is missing"; done
packages sysstat=12.6.1-1 prometheus-node-exporter=1.5.0-1+b6

FROZEN='' INNER='' WRITER=''
# shellcheck disable=SC2317,SC2329 # called by `clean`
also_clean() {
    [ -z "$FROZEN" ] || fsfreeze -u "$WORK/outer" || true
    [ -z "$WRITER" ] || wait "$WRITER" || true
    [ -z "$INNER" ] || losetup -d "$INNER" || true
    if mountpoint -q "$WORK/outer"; then umount "$WORK/outer" || umount -l "$WORK/outer"; fi
}

truncate -s 64M "$WORK/outer.image"
mkfs.ext4 -q -F "$WORK/outer.image"
mkdir "$WORK/outer"
mount -o loop "$WORK/outer.image" "$WORK/outer" || none "no loop device can be mounted"
dd if=/dev/zero of="$WORK/outer/inner.image" bs=1M count=16 conv=fsync status=none
INNER=$(losetup --show -f "$WORK/outer/inner.image") || none "no loop device is free"
DEVICE=${INNER#/dev/}

# A field of the device's statistics, counted from 1 as the kernel's document does.
field() { awk -v field="$1" '{ print $field }' "/sys/block/$DEVICE/stat"; }
# Whether $1 is at least $2.
at_least() { if [ "$1" -ge "$2" ]; then echo yes; else echo "no: $1"; fi; }
# iostat's column ($1) in the second of two intervals of a second.
iostat_column() {
    LC_ALL=C iostat -xd "$DEVICE" 1 2 |
        awk -v column="$1" -v device="$DEVICE" '$1 == "Device" { for (i = 1; i <= NF; i++) if ($i == column) position = i }
            $1 == device { value = $position } END { print value }'
}

[ "$(field 9)" = 0 ] || none "$INNER is in use"
fsfreeze -f "$WORK/outer" && FROZEN=yes
dd if=/dev/zero of="$INNER" bs=4k count=1 oflag=direct status=none &
WRITER=$!
for _ in $(seq 100); do if [ "$(field 9)" -gt 0 ]; then break; fi; sleep 0.1; done
[ "$(field 9)" = 1 ] || none "the write does not hang"

busy=$(field 10) queue=$(field 11) writes=$(field 5)
sleep 2
seen "a write hangs for 2 s: requests in progress (field 9)" "$(field 9)" 1
seen "growth of io_ticks (field 10) of 1,900 ms at least" "$(at_least $(($(field 10) - busy)) 1900)" yes
seen "growth of time_in_queue (field 11), ms" "$(($(field 11) - queue))" 0
seen "iostat -x: %util" "$(iostat_column %util)" 100.00
seen "iostat -x: aqu-sz" "$(iostat_column aqu-sz)" 0.00
seen "iostat -x: w_await" "$(iostat_column w_await)" 0.00

# The exporter leaves loop devices out unless it is told otherwise.
prometheus-node-exporter --collector.disable-defaults --collector.diskstats --collector.diskstats.device-exclude='^$' \
    --web.listen-address=127.0.0.1:19198 >"$WORK/exporter.log" 2>&1 &
SERVER_PID=$!
metric() {
    curl -sf http://127.0.0.1:19198/metrics >"$WORK/metrics" || return 1
    awk -v name="$1{device=\"$DEVICE\"}" '$1 == name { print $2 }' "$WORK/metrics"
}
for _ in $(seq 100); do if metric node_disk_io_now >/dev/null; then break; fi; sleep 0.1; done
before=$(metric node_disk_io_time_weighted_seconds_total) || none "the exporter does not answer: $(tail -n 1 "$WORK/exporter.log")"
sleep 1
after=$(metric node_disk_io_time_weighted_seconds_total)
seen "node_exporter: node_disk_io_now" "$(metric node_disk_io_now)" 1
seen "node_exporter: growth of node_disk_io_time_weighted_seconds_total" "$(awk "BEGIN { print $after - $before }")" 0

fsfreeze -u "$WORK/outer" && FROZEN=
wait "$WRITER" || none "the write failed"
WRITER=
seen "after its end: writes completed since (field 5)" "$(($(field 5) - writes))" 1
seen "growth of time_in_queue of 5,000 ms at least" "$(at_least $(($(field 11) - queue)) 5000)" yes
conclude
