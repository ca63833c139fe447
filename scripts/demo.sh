#!/usr/bin/env bash
# The demonstration: a real server with its default settings and with four of them changed, on an
# emulated gp2 volume, with a report. Called by `./dev demo`, which has built the program; takes the
# directory for the results.
set -euo pipefail
cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.."
out=${1:-target/demo/tuned-vs-default-$(date +%Y%m%d-%H%M%S)}
exec "$EBBTIDE" --home "${EBBTIDE_HOME:-target/demo/home}" \
    run tuned-vs-default --quick --out "$out"
