#!/usr/bin/env bash
# The demonstration: the gp2 cliff on live volumes, with a report. Called by `./dev demo`, which has
# built the program; takes the report's directory.
set -euo pipefail
cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.."
exec cargo run --quiet --release --example gp2_cliff -- "$@"
