#!/usr/bin/env bash
# How long `./dev demo` takes from a clean clone, and how wide the interval of its ratio is: with the build, once more
# without it and without prepared data, and once with them.
#
# usage: scripts/bench/demo.sh [EBBTIDE]   (the program is not used: the clone builds its own)
# What cargo has downloaded, and packages that are installed, are used again. BENCH_TINY=1: no clone, and one short
# trial for each server.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [ "${BENCH_TINY:-0}" = 1 ]; then exec ./dev demo --tiny; fi
RATIO=$PWD/scripts/bench/ratio.sh
WORK=$(mktemp -d "${TMPDIR:-/tmp}/ebbtide-bench-demo.XXXXXX")
trap 'rm -rf "$WORK"' EXIT
git clone --quiet . "$WORK/clone"
cd "$WORK/clone"
unset CARGO_TARGET_DIR EBBTIDE_HOME EBBTIDE

# One demo ($1 says which), which may take $2 minutes.
demo() {
    local began=$SECONDS took status=0
    ./dev demo >"$WORK/said" 2>"$WORK/errors" || status=$?
    took=$((SECONDS - began))
    # Where a trial does not count the demo ends with 1, with a report: its time is one all the same.
    if [ "$status" -gt 1 ] || ! grep -q '^report: ' "$WORK/said"; then
        tail -n 30 "$WORK/errors" "$WORK/said"
        echo "FAILED: the demo $1 ended with $status after $took s"
        return 1
    fi
    sed -n '/^$/,$p' "$WORK/said" | grep -v '^report: '
    printf 'the demo %s: %d min %02d s, of %d min (exit %d)\n' "$1" $((took / 60)) $((took % 60)) "$2" "$status"
    "$RATIO" "$WORK/said" >"$WORK/ratio" || { echo "FAILED: $(cat "$WORK/ratio")"; return 1; }
    [ "$took" -le $(($2 * 60)) ] || { echo "FAILED: it took longer than promised"; return 1; }
}

echo "promised: 15 minutes from a clean clone on two cores, 6 without the build; here: $(nproc) processors"
failed=0
demo 'with the build' 15 || failed=1
rm -rf target/demo
demo 'without the build' 6 || failed=1
demo 'without the build, on prepared data' 6 || failed=1
exit $failed
