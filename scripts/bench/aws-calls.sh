#!/usr/bin/env bash
# Measures how many calls a second the AWS endpoint answers on one core: scripts/bench/aws-calls.py, with the botocore of
# `./dev clients`.
#
# usage: scripts/bench/aws-calls.sh [EBBTIDE]
set -euo pipefail
cd "$(dirname "$0")/../.."
EBBTIDE=${1:-target/release/ebbtide}
[ -x "$EBBTIDE" ] || { echo "no program at $EBBTIDE: cargo build --release" >&2; exit 3; }
./dev clients
"${CARGO_TARGET_DIR:-target}/clients/bin/python" -B scripts/bench/aws-calls.py "$EBBTIDE"
