#!/usr/bin/env bash
# Holds what `ebbtide doctor --prove` says of a fix against what the same fix does to the server itself.
#
# usage: scripts/bench/proof.sh [EBBTIDE]
# Settings by environment: CASES=iops,redo,sync; WAREHOUSES=4 CONNECTIONS=8 SECONDS_EACH=30 REPEATS=3 LOOK=15 (s that the capture takes); KEEP=DIR keeps the
#   captures and the proofs; QUICK=1: the short form of the proof; BENCH_TINY=1: one case, short
#
# Needs root, FUSE and Debian's mariadb-server. A server has its data on an emulated gp3 and carries TPC-C. It is captured under
# this load. The fix is switched on and off on the running server, in turns of before, after, after, before, and New-Orders are
# counted each time. Then the capture alone is proved: --from FILE --prove CODE, in the lab, with its synthetic load.
#
#   iops  the volume of 3,000 IOPS is at its limit (E03)
#   redo  a redo log of 8 MiB (R01)
#   sync  sync_binlog = 0 (D03): the fix costs
#
# Prints both ratios with their spreads, and fails where the proof has the wrong sign: an interval above 1 where the server loses,
# or below 1 where it gains. Exit codes: 0, 1 a wrong sign, 2 no such case, 3 something is missing.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/bench/load-server.sh
. scripts/bench/load-server.sh

EBBTIDE=$(realpath -- "${1:-target/release/ebbtide}")
quick=()
if [ "${BENCH_TINY:-0}" = 1 ]; then
    CASES=sync WAREHOUSES=1 CONNECTIONS=2 SECONDS_EACH=2 REPEATS=1 LOOK=2
    quick=(--check)
fi
if [ "${QUICK:-0}" = 1 ]; then quick=(--quick); fi
CASES=${CASES:-iops,redo,sync}
WAREHOUSES=${WAREHOUSES:-4}
CONNECTIONS=${CONNECTIONS:-8}
SECONDS_EACH=${SECONDS_EACH:-30}
REPEATS=${REPEATS:-3}
LOOK=${LOOK:-15}
[ -x "$EBBTIDE" ] || { echo "no program at $EBBTIDE: cargo build --release" >&2; exit 3; }
need mariadbd mariadb-install-db mariadb jq
[ "$(id -u)" = 0 ] || { echo "missing: root, for the volume" >&2; exit 3; }
user=$(server_account) || exit 3

WORK=$(mktemp -d "${TMPDIR:-/tmp}/ebbtide-bench-proof.XXXXXX")
chmod 755 "$WORK"
export EBBTIDE_HOME=$WORK/home
KEEP=${KEEP:-$WORK/kept}
mkdir -p "$KEEP"
SERVER_PID=
volume() { "$EBBTIDE" volume "$@" >>"$WORK/log" 2>&1 || exit 3; }
stop() {
    [ -z "$SERVER_PID" ] || { kill "$SERVER_PID" 2>/dev/null || true; wait "$SERVER_PID" 2>/dev/null || true; }
    SERVER_PID=
    if [ -e "$WORK/attached" ]; then "$EBBTIDE" volume detach data >>"$WORK/log" 2>&1 || true; rm "$WORK/attached"; fi
}
# shellcheck disable=SC2317,SC2329 # called by a trap
finish() {
    local code=$?
    [ "$code" -le 1 ] || tail -n 20 "$WORK/log" >&2
    stop
    kill "$SERVE_PID" 2>/dev/null || true
    wait "$SERVE_PID" || true
    rm -rf "$WORK"
    exit "$code"
}
"$EBBTIDE" serve >"$WORK/log" 2>&1 &
SERVE_PID=$!
trap finish EXIT
for _ in $(seq 100); do
    if "$EBBTIDE" volume list >/dev/null 2>&1; then break; fi
    sleep 0.1
done

sql() { mariadb --no-defaults -uroot -S "$WORK/run/s" -N -B -e "$1"; }

# A server on a volume of its own, with these options, and the tables of TPC-C.
start() {
    # Tables are loaded at any speed. EC2 takes four modifications of a volume in 24 hours, so that REPEATS may be 3.
    volume create data gp3:size=100GiB,iops=16000,throughput=1000
    VOLUME=
    mkdir -p "$WORK/data" "$WORK/run"
    volume attach data --mount "$WORK/data" --fs ext4
    touch "$WORK/attached"
    mkdir "$WORK/data/mysql"
    chown "$user" "$WORK/data/mysql" "$WORK/run"
    mariadb-install-db --no-defaults --user="$user" --auth-root-authentication-method=normal --skip-test-db \
        --datadir="$WORK/data/mysql" >>"$WORK/log" 2>&1
    mariadbd --no-defaults --user="$user" --datadir="$WORK/data/mysql" --socket="$WORK/run/s" --skip-networking \
        --innodb-flush-method=O_DIRECT --log-bin=binlog --binlog-format=ROW --server-id=1 --performance-schema=OFF "$@" \
        >>"$WORK/log" 2>&1 &
    SERVER_PID=$!
    for _ in $(seq 300); do
        if sql 'CREATE DATABASE sbtest' 2>/dev/null; then break; fi
        kill -0 "$SERVER_PID" 2>/dev/null || exit 3
        sleep 0.1
    done
    "$EBBTIDE" load prepare tpcc --mysql-socket="$WORK/run/s" --mysql-user=root --warehouses="$WAREHOUSES" --threads=2 \
        >>"$WORK/log" 2>&1 || exit 3
    modify gp3:iops=3000,throughput=125
}

# New-Orders a minute of a run.
run_load() {
    "$EBBTIDE" load run tpcc --json --mysql-socket="$WORK/run/s" --mysql-user=root --warehouses="$WAREHOUSES" \
        --threads="$CONNECTIONS" --time="$1" --warmup-time="$2" | jq .tpmc
}

median() { sort -g | awk '{ all[NR] = $1 } END { print (all[int((NR + 1) / 2)] + all[int((NR + 2) / 2)]) / 2 }'; }

# What the server does in a case: the finding, the options, and the fix that is switched.
one() {
    local case=$1 code options before after
    case $case in
        iops) code=E03 options=(--innodb-buffer-pool-size=64M --innodb-log-file-size=512M --sync-binlog=1) ;;
        redo) code=R01 options=(--innodb-buffer-pool-size=512M --innodb-log-file-size=8M --sync-binlog=1) ;;
        sync) code=D03 options=(--innodb-buffer-pool-size=512M --innodb-log-file-size=512M --sync-binlog=0) ;;
        *) echo "CASES=$case: iops, redo or sync" >&2; exit 2 ;;
    esac
    start "${options[@]}"
    run_load "$SECONDS_EACH" 0 >/dev/null
    run_load "$((LOOK + 10))" 0 >/dev/null &
    local load=$!
    sleep 3
    "$EBBTIDE" doctor capture --mysql-socket="$WORK/run/s" --mysql-user=root --interval="${LOOK}s" \
        --volume=data=gp3:size=100GiB -o "$KEEP/$case.capture" >>"$WORK/log" 2>&1
    wait "$load"
    # Exit code 1 says that there are findings.
    "$EBBTIDE" doctor --from "$KEEP/$case.capture" --json >"$KEEP/$case.json" || [ $? = 1 ]
    local fix
    fix=$(jq -c --arg code "$code" '.findings[] | select(.code == $code and .verdict == "found") | .fix' "$KEEP/$case.json")
    [ -n "$fix" ] || { echo "$case: $code is not found" >&2; jq -c '[.findings[].code]' "$KEEP/$case.json" >&2; exit 3; }
    echo "$case: $code, $(jq -c 'if (.volumes | length) > 0 then .volumes else .statements end' <<<"$fix")"
    local ratios=() ours=() turn state figure first
    for turn in $(seq "$REPEATS"); do
        # Before and after take turns in being first.
        if [ $((turn % 2)) = 1 ]; then first=(before after); else first=(after before); fi
        local -A seen=()
        for state in "${first[@]}"; do
            switch "$case" "$state" "$fix"
            figure=$(run_load "$SECONDS_EACH" 10)
            seen[$state]=$figure
            ours+=("$state $figure")
        done
        ratios+=("$(jq -n "${seen[after]} / ${seen[before]}")")
    done
    printf '  on the server: %s New-Orders a minute\n' "$(printf '%s, ' "${ours[@]}" | sed 's/, $//')"
    stop
    volume delete data
    rm -rf "$WORK/data" "$WORK/run"
    prove "$case" "$code" "$(printf '%s\n' "${ratios[@]}" | sort -g | tr '\n' ' ')"
}

# EC2 refuses a modification that changes nothing.
modify() {
    [ "$VOLUME" = "$1" ] || volume modify data "$1"
    VOLUME=$1
}

# The state of the fix on the running server.
switch() {
    case $1/$2 in
        iops/before) modify gp3:iops=3000,throughput=125 ;;
        iops/after) modify "$(jq -r '.volumes[0].spec' <<<"$3")" ;;
        redo/before) sql 'SET GLOBAL innodb_log_file_size = 8388608' ;;
        sync/before) sql 'SET GLOBAL sync_binlog = 0' ;;
        */after) sql "$(jq -r '.statements | join("; ")' <<<"$3")" ;;
    esac
}

# Proves the capture and prints both.
prove() {
    local case=$1 code=$2 real=$3 measured
    rm -rf "$KEEP/$case.proof"
    "$EBBTIDE" doctor --from "$KEEP/$case.capture" --prove "$code" "${quick[@]}" --out "$KEEP/$case.proof" --json \
        >"$KEEP/$case.proof.json" 2>>"$WORK/log" || [ $? = 1 ] || exit 3
    [ "${quick[*]}" != --check ] || return 0
    measured=$(jq -c --arg code "$code" '.findings[] | select(.code == $code) | .measured' "$KEEP/$case.proof.json")
    case $measured in '' | null) echo "$case: $code was not measured" >&2; exit 3 ;; esac
    local low middle high
    middle=$(tr ' ' '\n' <<<"$real" | sed '/^$/d' | median)
    read -r low high <<<"$(tr ' ' '\n' <<<"$real" | sed '/^$/d' | sed -n '1p;$p' | tr '\n' ' ')"
    jq -nr --argjson proved "$measured" --argjson low "$low" --argjson middle "$middle" --argjson high "$high" '
        def two: . * 100 | round / 100;
        "  on the server \($middle | two) times (\($low | two) to \($high | two)); proved \($proved.times | two) times (95%: \($proved.low | two) to \($proved.high | two)); proved / server \($proved.times / $middle | two)"'
    if jq -ne --argjson proved "$measured" --argjson low "$low" --argjson high "$high" \
        '($proved.low > 1 and $high < 1) or ($proved.high < 1 and $low > 1)' >/dev/null; then
        echo '  WRONG SIGN'
        failed=1
    fi
}

failed=0
for case in ${CASES//,/ }; do one "$case"; done
exit "$failed"
