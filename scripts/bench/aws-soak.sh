#!/usr/bin/env bash
# Random valid calls of eight clients to the AWS endpoint, with kills: scripts/bench/aws-soak.py, with the boto3 of
# `./dev clients`.
#
# usage: scripts/bench/aws-soak.sh [EBBTIDE] [DURATION]
set -euo pipefail
cd "$(dirname "$0")/../.."
EBBTIDE=${1:-target/release/ebbtide}
[ -x "$EBBTIDE" ] || { echo "no program at $EBBTIDE: cargo build --release" >&2; exit 3; }
./dev clients
"${CARGO_TARGET_DIR:-target}/clients/bin/python" -B scripts/bench/aws-soak.py "$EBBTIDE" "${@:2}"
