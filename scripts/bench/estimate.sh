#!/usr/bin/env bash
# Whether `run --check` and `crash --check` say how long a run takes: the estimate before each run, its real time, and their ratio.
#
# usage: scripts/bench/estimate.sh [EBBTIDE]
# Settings by environment: RUNS=2, of each experiment one after the other in one home, which learns from the first;
#   EXPERIMENTS='run:tuned-vs-default crash:durability-matrix'; OPTIONS, further options of all of them.
#   BENCH_TINY=1: one run of each, with one short trial or few cuts.
#
# Nothing is judged: on a machine with other work the parts differ. The goal is a ratio of 0.75 to 1.33.
set -euo pipefail
cd "$(dirname "$0")/../.."

EBBTIDE=$(realpath -- "${1:-target/release/ebbtide}")
[ -x "$EBBTIDE" ] || { echo "no program at $EBBTIDE: cargo build --release" >&2; exit 3; }
RUNS=${RUNS:-2}
read -ra EXPERIMENTS <<<"${EXPERIMENTS:-run:tuned-vs-default crash:durability-matrix}"
read -ra OPTIONS <<<"${OPTIONS:-}"
TINY_TRIALS=() TINY_CUTS=()
if [ "${BENCH_TINY:-0}" = 1 ]; then
    RUNS=1
    TINY_TRIALS=(--repeats 1 --measure 5s --set data.rows=20000 --set data.aged=false --set load.connections=4
        --set warmup.lead_in=1s --set warmup.settle=1s)
    TINY_CUTS=(--set crash.cuts=2 --set trial.measure=2s --set warmup.settle=1s --no-gain)
fi

WORK=$(mktemp -d "${TMPDIR:-/tmp}/ebbtide-bench-estimate.XXXXXX")
trap 'rm -rf "$WORK"' EXIT
export EBBTIDE_HOME=${EBBTIDE_HOME:-$WORK/home}

# The seconds of an estimate: those of the experiment, and of what it measures after its cuts.
estimated() {
    "$EBBTIDE" "$@" --check --json | grep -o '"estimate_s":[ ]*[0-9]*' | awk -F: '{ sum += $2 } END { print sum }'
}

echo 'goal: an estimate right within a third (0.75 to 1.33); real seconds of each, and real time / estimate'
for one in "${EXPERIMENTS[@]}"; do
    command=${one%%:*} name=${one#*:}
    words=("$command" "$name" --quick "${OPTIONS[@]}")
    if [ "$command" = run ]; then words+=("${TINY_TRIALS[@]}"); else words+=("${TINY_CUTS[@]}"); fi
    for run in $(seq "$RUNS"); do
        estimate=$(estimated "${words[@]}")
        began=$(date +%s.%N) status=0
        "$EBBTIDE" "${words[@]}" --out "$WORK/$name-$run" >"$WORK/said" 2>&1 || status=$?
        # 1: a trial does not count, or a cut did harm.
        [ "$status" -le 1 ] || { tail -n 20 "$WORK/said"; echo "FAILED: $name ended with $status"; exit 1; }
        awk -v name="$name" -v run="$run" -v estimate="$estimate" -v began="$began" -v ended="$(date +%s.%N)" 'BEGIN {
            took = ended - began
            printf "%-20s run %d: estimate %d s, took %.0f s, ratio %.2f\n", name, run, estimate, took, took / estimate
        }' | tee -a "$WORK/ratios"
    done
done
awk '{ ratio = $NF; sum += ratio; if (!n || ratio < low) low = ratio; if (ratio > high) high = ratio; n++ }
    END { printf "real time / estimate: mean %.2f (%.2f to %.2f, %d runs)\n", sum / n, low, high, n }' "$WORK/ratios"
