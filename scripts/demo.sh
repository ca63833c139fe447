#!/usr/bin/env bash
# The demonstration: a real server with its default settings and with four of them changed, on an
# emulated gp2 volume, with a report. Called by `./dev demo`, which has built the program; takes the
# directory for the results. `--tiny` before it: one trial of ten seconds for each of the two, which shows
# that the demonstration runs on this machine, and nothing else.
set -euo pipefail
cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.."

form=()
status=0
if [ "${1-}" = --tiny ]; then
    shift
    form=(--repeats 1 --measure 10s --set data.rows=20000 --set data.aged=false
        --set load.connections=4 --set warmup.lead_in=1s --set warmup.settle=1s)
fi
out=${1:-target/demo/tuned-vs-default-$(date +%Y%m%d-%H%M%S)}
run=("$EBBTIDE" --home "${EBBTIDE_HOME:-target/demo/home}" run tuned-vs-default --quick "${form[@]}" --out "$out")
if [ ${#form[@]} = 0 ]; then exec "${run[@]}"; fi

"${run[@]}" || status=$?
# 1: not every trial counts, which so short a one need not.
if [ "$status" -gt 1 ] || ! [ -s "$out/report.html" ]; then
    echo "demo: the tiny run ended with $status and left no report in $out" >&2
    exit 1
fi
