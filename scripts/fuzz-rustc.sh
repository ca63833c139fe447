#!/usr/bin/env bash
# rustc for the crates of the workspace in the fuzzer's program: with libFuzzer's coverage, and fast. cargo calls it with rustc and its
# arguments (RUSTC_WORKSPACE_WRAPPER), so that outside crates are those of an ordinary build. All options are stable.
set -euo pipefail

exec "$@" -C opt-level=1 -C passes=sancov-module \
    -C llvm-args=-sanitizer-coverage-level=4 -C llvm-args=-sanitizer-coverage-inline-8bit-counters \
    -C llvm-args=-sanitizer-coverage-pc-table -C llvm-args=-sanitizer-coverage-trace-compares \
    -C llvm-args=-simplifycfg-branch-fold-threshold=0
