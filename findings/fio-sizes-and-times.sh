#!/usr/bin/env bash
# fio 3.33 takes sizes and times that people write and reads a fraction of them, without an error.
#
# Expected: `size=1.5g` is 1.5 GiB and `runtime=1min` a minute, or both are refused; `4GiB` and `4Gi` are one size.
# Seen, with exit code 0: 1.5g is 1 byte, 10x is 16 bytes, 1min is 1 us, 5sec is 5 us, 1.5m is 1 s; 4Gi is 4 * 2^30 bytes, and
# 4GiB is 4 * 10^9. `rwmixread=70%` is 2^64 - 71, with which a mixed job does reads alone.
#
# Exit codes: 0 as stated; 1 changed; 2 usage; 3 not set up.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname -- "$0")/lib.sh"

usage_for "$@"
packages fio=3.33-3
echo "fio: $(fio --version)"

# Prints what fio reads of a value ($2) of a word ($1): bytes, or microseconds.
read_of() {
    local printed
    printed=$(printf '[a]\n%s=%s\n' "$1" "$2" | fio --parse-only --debug=parse - 2>&1) || none "fio refuses $1=$2"
    sed -n 's/.*ret=0, out=\([0-9]*\).*/\1/p' <<<"$printed" | tail -n 1
}

SAME=yes
while read -r word value stated; do
    seen=$(read_of "$word" "$value")
    printf '%-9s = %-5s read as %s\n' "$word" "$value" "$seen"
    [ "$seen" = "$stated" ] || SAME=no
done <<'ROWS'
size 4g 4294967296
size 4Gi 4294967296
size 4GiB 4000000000
size 1.5g 1
size 10x 16
runtime 60s 60000000
runtime 1m 60000000
runtime 1min 1
runtime 5sec 5
runtime 1.5m 1000000
rwmixread 70% 18446744073709551545
ROWS
verdict "$SAME" "fio reads a part of what is written, and does not say so"
