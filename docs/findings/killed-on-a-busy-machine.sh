#!/usr/bin/env bash
# Kills a server (SIGKILL) under sysbench's write load, starts it again on the same files, and checks all rows and indexes;
# again and again. It needs the server program, its client, sysbench, and busy processors: without other load nothing was seen.
#
#   killed-on-a-busy-machine.sh [SERVER [OPTION...]]        SERVER: mariadbd (default) or a mysqld
#
# KILLS=12: kills, with the same files. BUSY=4: processes that keep processors busy meanwhile. A private data directory in
# $TMPDIR (default /tmp) is removed at the end; KEEP=1 keeps it, with the files as the last kill left them as data.killed.
#
# Exit codes: 0 every start recovered; 1 one did not, or a check found a damaged index; 2 usage; 3 no verdict: a program is
# missing, or the server does not start at all.
set -euo pipefail

case "${1-}" in -*) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" >&2 && exit 2 ;; esac
SERVER=${1:-mariadbd}
[ $# = 0 ] || shift
EXTRA=("$@")
KILLS=${KILLS:-12}
PID=
BUSY_PIDS=()
WORK=$(mktemp -d "${TMPDIR:-/tmp}/killed.XXXXXX")

cleanup() {
    [ -z "$PID" ] || kill -9 "$PID" 2>/dev/null || true
    [ ${#BUSY_PIDS[@]} = 0 ] || kill "${BUSY_PIDS[@]}" 2>/dev/null || true
    wait 2>/dev/null || true
    if [ -n "${KEEP-}" ]; then echo "kept: $WORK"; else rm -rf "$WORK"; fi
}
trap cleanup EXIT
none() { echo "verdict: none: $*" && exit 3; }

for program in "$SERVER" mariadb sysbench; do
    command -v "$program" >/dev/null || none "$program is missing"
done
VERSION=$("$SERVER" --no-defaults ${EXTRA[@]+"${EXTRA[@]}"} --version) || none "$SERVER --version failed"

client() { mariadb --no-defaults -u root -S "$WORK/socket" -BN "$@"; }

serve() {
    "$SERVER" --no-defaults --datadir="$WORK/data" --user="$(id -un)" --socket="$WORK/socket" --skip-networking \
        --pid-file="$WORK/pid" --skip-log-bin --loose-mysqlx=0 --innodb-flush-log-at-trx-commit=1 \
        ${EXTRA[@]+"${EXTRA[@]}"} >>"$WORK/log" 2>&1 &
    PID=$!
    for _ in $(seq 600); do
        if client -e 'DO 1' 2>/dev/null; then return; fi
        if ! kill -0 "$PID" 2>/dev/null; then break; fi
        sleep 0.1
    done
    return 1
}

load() {
    sysbench oltp_write_only --db-driver=mysql --mysql-socket="$WORK/socket" --mysql-user=root --tables=2 --table-size=500 \
        --threads=8 "$@" >/dev/null 2>&1
}

# What the last recovery reported, without times and the directory.
reported() {
    tail -n +"$1" "$WORK/log" | sed -E "s/^[-0-9:T .Z]+ //; s|$WORK/||g" |
        grep -iE 'orrupt|rolled back|\[ERROR\]' | cut -c1-200 | head -n 8 || true
}

case $VERSION in
    *MariaDB*)
        command -v mariadb-install-db >/dev/null || none "mariadb-install-db is missing"
        mariadb-install-db --no-defaults --auth-root-authentication-method=normal --skip-test-db --user="$(id -un)" \
            --datadir="$WORK/data" >>"$WORK/log" 2>&1 || none "mariadb-install-db failed"
        ;;
    *) "$SERVER" --no-defaults ${EXTRA[@]+"${EXTRA[@]}"} --user="$(id -un)" --datadir="$WORK/data" --initialize-insecure \
        >>"$WORK/log" 2>&1 || none "--initialize-insecure failed" ;;
esac
echo "server: $VERSION"
serve || none "the server does not start: $(tail -n 3 "$WORK/log")"
client -e 'CREATE DATABASE sbtest'
load prepare || none "sysbench cannot prepare its tables"
for _ in $(seq "${BUSY:-4}"); do
    { while :; do :; done; } &
    BUSY_PIDS+=($!)
done

for ((number = 1; number <= KILLS; number++)); do
    load --time=30 run &
    LOAD=$!
    sleep "0.$((RANDOM % 6 + 3))"
    kill -9 "$PID"
    wait "$PID" 2>/dev/null || true
    wait "$LOAD" || true
    if [ -n "${KEEP-}" ]; then
        rm -rf "$WORK/data.killed"
        cp -a "$WORK/data" "$WORK/data.killed"
    fi
    lines=$(($(wc -l <"$WORK/log") + 1))
    if ! serve; then
        PID=
        echo "kill $number: the server does not start"
        reported "$lines"
        echo "verdict: recovery NOT whole"
        exit 1
    fi
    found=$(client sbtest -e 'CHECK TABLE sbtest1 EXTENDED; CHECK TABLE sbtest2 EXTENDED' 2>&1 | grep -v 'status.OK' || true)
    if [ -n "$found" ]; then
        echo "kill $number: $found" | cut -c1-300
        reported "$lines"
        echo "verdict: recovery NOT whole"
        exit 1
    fi
done
echo "verdict: each of $KILLS recoveries was whole"
