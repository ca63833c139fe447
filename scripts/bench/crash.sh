#!/usr/bin/env bash
# The crash lab's bench: how many cuts it judges in a minute, whether it sees its canaries, and whether a server with
# durable settings comes to harm.
#
# usage: scripts/bench/crash.sh [EBBTIDE]
# Settings by environment: CUTS=200 of each of the two arms, MOMENTS=random,page,... (docs/crash.md says which find what
#   in which server), SERVER=PATH|NAME, SEED=N, KEEP=DIR keeps the results, EBBTIDE_HOME the data that runs share;
#   CHECKERS=N images are judged side by side (default: one for each processor);
#   without KEEP and EBBTIDE_HOME both are in a temporary folder, which stays where a cut did harm: its images are in it;
#   BENCH_TINY=1: two cuts of each arm.
#
# The arms: doublewrite on where storage tears pages, and off where it does not. Fails where a canary was missed, a cut did
# harm, or a cut took more than $MOST_STARTS times as long as the start of the server in it: what the lab adds to a start is its
# own, on fast and slow machines. The pace itself is printed and fails nothing, since it is the machine's too. Two tables say
# where a cut's time goes, step by step, and who used the processors while it was cutting.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [ "${BENCH_TINY:-0}" = 1 ]; then CUTS=2; fi
CUTS=${CUTS:-200}
EBBTIDE=$(realpath -- "${1:-target/release/ebbtide}")
readonly MOST_STARTS=5
command -v jq >/dev/null || { echo 'jq is missing' >&2; exit 3; }
[ -x "$EBBTIDE" ] || { echo "no program at $EBBTIDE: cargo build --release" >&2; exit 3; }
[[ $CUTS =~ ^[1-9][0-9]*$ ]] || { echo "CUTS=$CUTS: a number from 1 on" >&2; exit 2; }

WORK=$(mktemp -d "${TMPDIR:-/tmp}/ebbtide-bench-crash.XXXXXX")
# What a cut did must be looked at: only a clean run is thrown away.
# shellcheck disable=SC2317,SC2329 # called by the trap
end() {
    local status=$?
    if [ "$status" = 0 ]; then
        rm -rf "$WORK"
    else
        echo "kept: $WORK; the images of bad cuts are in it. Judge one again: EBBTIDE_HOME=$EBBTIDE_HOME $EBBTIDE crash --replay SEED" >&2
        "$EBBTIDE" crash --kept >&2 || true
    fi
}
trap end EXIT
export EBBTIDE_HOME=${EBBTIDE_HOME:-$WORK/home}

echo "promised: canaries caught, no harm to a server with durable settings, and a cut in $MOST_STARTS times the start of its server"
options=(--set "crash.cuts=$CUTS" --out "${KEEP:-$WORK}/crash")
if [ "${BENCH_TINY:-0}" = 1 ]; then options+=(--no-gain); fi
[ -z "${SERVER:-}" ] || options+=(--server "$SERVER")
[ -z "${MOMENTS:-}" ] || options+=(--set "crash.moments=$MOMENTS")
[ -z "${SEED:-}" ] || options+=(--seed "$SEED")
[ -z "${CHECKERS:-}" ] || options+=(--checkers "$CHECKERS")
status=0
"$EBBTIDE" crash durability-matrix "${options[@]}" \
    --arms 'durable / doublewrite-on / units-4k,durable / doublewrite-off / units-16k' || status=$?

results=${KEEP:-$WORK}/crash/results.json
# Medians of each step over all cuts of the arms, without the canaries'; means of processor time for a cut.
tables() {
    jq -r '
        def median: sort | if length == 0 then 0 else .[(length - 1) / 2 | floor] end;
        def cell: . * 1000 | round;
        def asked: map(select(.arm | startswith("canary ") | not));
        (.run.cuts | asked) as $cuts | (.run.stints | asked) as $stints
        | ($cuts | map(.took)) as $took | ($took | map(.total) | median) as $total
        | ([$stints[].cutting_s] | add) as $cutting | ([$stints[].verified] | add) as $verified
        | ($stints | map(.cutting_cpu // empty)) as $cpu | ($cpu | map(.seconds * .cpus) | add // 0) as $all
        | ($took | map(.cpu // empty | .start + .ask) | add // 0) as $recovered
        | if ($cutting // 0) == 0 then empty else
          "\($verified * 60 / $cutting | floor) verified cuts a minute; a cut in the median, ms, and its share:",
          ((["image", "attach", "pages", "start", "ask", "resume", "file_system", "clear"]) as $steps
            | ($took | map(. + {rest: (.total - ([.[$steps[]]] | add))})) as $took
            | ($steps + ["rest", "total"])[] as $step
            | ($took | map(.[$step]) | median) as $ms
            | "  \($step)\t\($ms | cell)\t\(if $total > 0 then 100 * $ms / $total | round else 0 end)%"),
          ($took | map(.awaited // empty) | select(length > 0) | "  awaited before\t\(median | cell)\t"),
          if $all == 0 then empty else
            ($cpu | map(.busy_s) | add) as $busy
            | ({
                "server under load": ($cpu | map(.servers_s) | add),
                "the load": ($cpu | map(.load_s) | add),
                "servers that recover": $recovered,
                "volumes and checkers": ($cpu | map(.tester_s) | add)
              } | . + {"tools, kernel, others": ([$busy - ([.[]] | add), 0] | max)}
                + {"idle": ([$all - $busy, 0] | max)}) as $parts
            | "processors while it was cutting: ms for a cut, and the share of all:",
              ($parts | to_entries[]
                | "  \(.key)\t\(.value / ($cuts | length) | cell)\t\(100 * .value / $all | round)%")
          end
          end' "$1" | awk -F '\t' 'NF == 3 { printf "%-25s %6s %5s\n", $1, $2, $3; next } { print }'
}
if [ -e "$results" ]; then tables "$results"; fi
if [ "${BENCH_TINY:-0}" != 1 ] && [ -e "$results" ]; then
    starts=$(jq '.summary.pace.took | .total / .start' "$results")
    printf 'a cut took %.1f times as long as the start of the server in it; promised: %s at most\n' "$starts" "$MOST_STARTS"
    if jq -e -n "$starts > $MOST_STARTS" >/dev/null; then [ "$status" != 0 ] || status=1; fi
fi
exit "$status"
