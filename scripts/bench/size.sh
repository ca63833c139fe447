#!/usr/bin/env bash
# How long an answer of `ebbtide size` takes: over the whole catalogue (a bench of cargo's), and for thirty volumes at once, one
# CSV of CloudWatch each.
#
# usage: scripts/bench/size.sh [EBBTIDE] [ARGUMENT of the bench of cargo's...]
# Settings by environment: RUNS=7 VOLUMES=30; BENCH_TINY=1: one run of each, and an hour of metrics.
#
# The times of thirty volumes are not judged: the goal is under a second on two processors with nothing else to do.
set -euo pipefail
cd "$(dirname "$0")/../.."

EBBTIDE=$(realpath -- "${1:-target/release/ebbtide}")
shift || true
[ -x "$EBBTIDE" ] || { echo "no program at $EBBTIDE: cargo build --release" >&2; exit 3; }
RUNS=${RUNS:-7} VOLUMES=${VOLUMES:-30} DAYS=(1 14)
if [ "${BENCH_TINY:-0}" = 1 ]; then RUNS=1 DAYS=(0.05); fi

cargo bench --quiet --package ebbtide-advisor --bench sizing -- "$@"

WORK=$(mktemp -d "${TMPDIR:-/tmp}/ebbtide-bench-size.XXXXXX")
trap 'rm -rf "$WORK"' EXIT

# Metrics of so many days ($2) in intervals of so many seconds ($3) for each volume, below $1: an office day, each volume with
# another peak and noise.
metrics() {
    mkdir -p "$1"
    TZ=UTC awk -v dir="$1" -v days="$2" -v step="$3" -v volumes="$VOLUMES" 'BEGIN {
        srand(1)
        for (volume = 1; volume <= volumes; volume++) {
            file = sprintf("%s/volume-%02d.csv", dir, volume)
            print "Label,VolumeReadOps,VolumeWriteOps,VolumeReadBytes,VolumeWriteBytes,VolumeTotalReadTime,VolumeTotalWriteTime," \
                "VolumeQueueLength,BurstBalance" > file
            for (at = 0; at < days * 86400; at += step) {
                day = 0.55 - 0.45 * cos(at / 86400 * 6.2831853)
                ios = (200 + 90 * volume) * day * (0.8 + 0.4 * rand()) / 1.5 * step
                reads = int(ios * 0.6); writes = int(ios * 0.4)
                printf "%s,%d,%d,%d,%d,%.3f,%.3f,%.3f,100.000\n", strftime("%Y/%m/%d %H:%M:%S", 1793491200 + at),
                    reads, writes, reads * 16384, writes * 20480, reads * 0.00075, writes * 0.00075,
                    (reads + writes) * 0.00075 / step > file
            }
            close(file)
        }
    }'
}

echo "goal: $VOLUMES volumes in under a second; here: $(nproc) processors"
for days in "${DAYS[@]}"; do
    metrics "$WORK/$days" "$days" 300
    for _ in $(seq "$RUNS"); do
        began=$(date +%s%N) status=0
        "$EBBTIDE" size "$WORK/$days" --size 600GiB >"$WORK/said" || status=$?
        [ "$status" -le 1 ] || { echo "FAILED: size ended with $status"; exit 1; }
        echo $(($(date +%s%N) - began))
    done | sort -n | awk -v days="$days" -v volumes="$VOLUMES" '{ took[NR] = $1 / 1e9 } END {
        median = NR % 2 ? took[(NR + 1) / 2] : (took[NR / 2] + took[NR / 2 + 1]) / 2
        printf "%d volumes, %s days in steps of 5 min: median %.2f s (%.2f to %.2f s, %d runs)\n", volumes, days, median, took[1], took[NR], NR
    }'
done
