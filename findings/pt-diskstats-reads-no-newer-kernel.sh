#!/usr/bin/env bash
# pt-diskstats 3.2.1 prints nothing on Linux 5.5 and later, and does not say so.
#
# Expected: a row for each device that did something, on every kernel; or an error.
# Seen, with exit code 0: lines of /proc/diskstats with 14 (2.6) and 18 fields (4.18) are read. Those with 20, which the kernel
# has had since 5.5 (flushes), are passed over without a word: `return unless @dev_stats == 14 or @dev_stats == 18`. Debian 12
# has this version and Linux 6.1. The samples that pt-stalk and --save-samples keep are whole.
#
# Exit codes: 0 as stated; 1 changed; 2 usage; 3 not set up.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname -- "$0")/lib.sh"

usage_for "$@"
packages percona-toolkit=3.2.1-1
command -v script >/dev/null || none "script (Debian's package bsdutils) is missing: the tool wants a terminal"
echo "pt-diskstats: $(pt-diskstats --version)"

# Two samples, a second apart, of a device that does 100 reads and 100 writes, with the fields in $1 behind those of Linux 2.6.
samples() {
    local place
    for place in 1 2; do
        echo "TS 170000000$place.0 2023-11-14 22:13:2$place"
        echo "259 0 nvme1n1 ${place}00 0 ${place}600 50 ${place}00 0 ${place}600 50 0 ${place}00 100$1"
    done
}

# How many rows of the device the tool prints of a file.
rows_of() {
    local printed
    printed=$(timeout 30 script -qec "timeout 10 pt-diskstats --show-inactive --group-by all '$1'" /dev/null </dev/null) || true
    grep -c nvme1n1 <<<"$printed" || true
}

samples "" >"$WORK/fields-14"
samples " 0 0 0 0" >"$WORK/fields-18"
samples " 0 0 0 0 0 0" >"$WORK/fields-20"
SAME=yes
while read -r fields stated; do
    seen=$(rows_of "$WORK/fields-$fields")
    echo "$fields fields: $seen row(s) of the device"
    [ "$seen" = "$stated" ] || SAME=no
done <<'ROWS'
14 1
18 1
20 0
ROWS
verdict "$SAME" "pt-diskstats passes over devices of Linux 5.5 and later"
