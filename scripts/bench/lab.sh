#!/usr/bin/env bash
# The lab's own benches: whether it repeats itself, sees nothing where there is nothing, and costs little.
#
# usage: scripts/bench/lab.sh ratio|same|sampling [EBBTIDE]
# Settings by environment: RUNS=3 FORM=full|quick EXPERIMENT=tuned-vs-default ARMS=gp2,writes (ratio); FORM=full|quick
#   (same); KEEP=DIR keeps the results, and EBBTIDE_HOME the data that runs share.
#   BENCH_TINY=1: one trial of ten seconds, the shortest, in each arm; what such trials show is printed and not judged.
#
# ratio: RUNS runs of tuned against default on gp2, each with a ratio and its interval, held against each other.
# same: two equal arms must show no difference, and an arm with a tenth more IOPS one.
# sampling: what a second's sample takes of a core, by the lab's own record and on the server's side.
set -euo pipefail
cd "$(dirname "$0")/../.."

WHICH=${1:-}
EBBTIDE=$(realpath -- "${2:-target/release/ebbtide}")
TINY=${BENCH_TINY:-0}
FORM=${FORM:-full}
if [ "$TINY" = 1 ]; then FORM=quick RUNS=1; fi
[ -x "$EBBTIDE" ] || { echo "no program at $EBBTIDE: cargo build --release" >&2; exit 3; }
case $FORM in full | quick) ;; *) echo "FORM=$FORM: full or quick" >&2; exit 2 ;; esac

WORK=$(mktemp -d "${TMPDIR:-/tmp}/ebbtide-bench-lab.XXXXXX")
trap 'rm -rf "$WORK"' EXIT
RESULTS=${KEEP:-$WORK}
mkdir -p "$RESULTS"
export EBBTIDE_HOME=${EBBTIDE_HOME:-$WORK/home}

# Runs an experiment ($2, with its options) into the results ($1). Fails where a trial does not count.
measured() {
    local out=$RESULTS/$1
    shift
    if [ "$TINY" = 1 ]; then
        "$EBBTIDE" run "$@" "${TINY_TRIALS[@]}" --out "$out" | tee "$WORK/said"
        # 1: a trial does not count, as such short ones may not.
        [ "${PIPESTATUS[0]}" -le 1 ] && [ -s "$out/results.json" ]
        return
    fi
    "$EBBTIDE" run "$@" --out "$out" | tee "$WORK/said" && return
    echo "FAILED: not every trial counts: $out"
    return 1
}

readonly TINY_TRIALS=(--repeats 1 --measure 10s --set data.rows=20000 --set data.aged=false
    --set load.connections=4 --set warmup.lead_in=1s --set warmup.settle=1s)

form() { if [ "$FORM" = quick ]; then echo --quick; fi; }

bench_ratio() {
    echo 'promised: the tuned server carries 12.8 times the transactions on an eighth of a gp2, and three runs agree'
    local run dirs=() experiment=${EXPERIMENT:-tuned-vs-default}
    for run in $(seq "${RUNS:-3}"); do
        echo "-- run $run of ${RUNS:-3}"
        # shellcheck disable=SC2046 # no word or one
        measured "ratio-$run" "$experiment" --arms "${ARMS:-gp2,writes}" $(form)
        dirs+=("$RESULTS/ratio-$run")
    done
    [ "$TINY" = 1 ] || "$EBBTIDE" run --compare "${dirs[@]}"
}

# Every arm reads at its volume's limit, which leaves little noise: the planted tenth is far above it.
planted() {
    cat <<'TOML'
title = "Two equal arms, and one on a volume with a tenth more IOPS"
equal_arms = true
[data]
rows = 1_250_000
aged = true
[instance]
divided_by = 8
memory = "1GiB"
[settings]
buffer_pool_size = "16MiB"
flush_method = "O_DIRECT"
[load]
workload = "point_select"
connections = 32
[trial]
repeats = 3
measure = "20s"
[warmup]
read_tables = false
lead_in = "5s"
settle = "5s"
[volumes]
data = "gp3:size=500GiB,iops=3000"
[arms.one]
[arms.two]
[arms.planted.volumes]
data = "gp3:size=500GiB,iops=3300"
TOML
}

bench_same() {
    echo 'promised: two equal arms show no difference, and the smallest one that would have been seen is told'
    local failed=0
    # shellcheck disable=SC2046 # no word or one
    measured same same-twice $(form)
    says 'no difference seen between two and one, which are equal' || failed=1
    echo '-- the canary: two equal arms, and one on a volume with a tenth more IOPS'
    planted >"$WORK/planted.toml"
    measured planted "$WORK/planted.toml"
    says 'no difference seen between two and one, which are equal' || failed=1
    says 'planted carries .* more transactions than one' || failed=1
    return $failed
}

says() {
    if [ "$TINY" = 1 ] || grep -q -- "$1" "$WORK/said"; then return; fi
    echo "FAILED: it does not say '$1'"
    return 1
}

bench_sampling() {
    echo 'promised: sampling takes less than 1% of a core'
    local repeats=(--repeats 2)
    if [ "$TINY" = 1 ]; then repeats=(); fi # one, as TINY_TRIALS says
    measured sampling same-twice --quick "${repeats[@]}"
    # One figure for each measured second: what sampling took of a core on this side.
    sed 's/"summary":.*//; s/[,{]/\n/g' "$RESULTS/sampling/results.json" | awk -F: -v tiny="$TINY" '
        /^"sampler_cpus":/ { n++; sum += $2; if ($2 > most) most = $2 }
        END {
            if (!n) { print "FAILED: no second has a figure"; exit 1 }
            printf "the lab: %.3f%% of a core, %.3f%% in the worst second (of %d)\n", 100 * sum / n, 100 * most, n
            exit tiny != 1 && sum / n >= 0.01
        }'
    if [ "$TINY" = 1 ]; then return; fi
    # The same statements on every server that is here, against its processor time; fails from 1% of a core on.
    cargo test --quiet --package ebbtide-mysql --test servers for_under_a_hundredth_of_a_core -- --nocapture \
        --test-threads=1 >"$WORK/servers" 2>&1 || { cat "$WORK/servers"; return 1; }
    grep 'a sample takes' "$WORK/servers"
}

case $WHICH in
    ratio | same | sampling) "bench_$WHICH" ;;
    *) echo "usage: scripts/bench/lab.sh ratio|same|sampling [EBBTIDE]" >&2; exit 2 ;;
esac
