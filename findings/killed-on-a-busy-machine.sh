#!/usr/bin/env bash
# MariaDB 10.11 and 11.8: a server that is killed (SIGKILL) on a busy machine loses a part of a committed transaction.
#
#   killed-on-a-busy-machine.sh [SERVER [OPTION...]]        SERVER: a mariadbd or a mysqld instead of the pinned one
#
# Expected: what is committed is whole after each recovery.
# Seen: a damaged index or a start that fails, once in some hundred kills, and only where other work keeps the processors
# busy: MariaDB 10.11.19, 11.8.6. The cause is not known: killed-on-a-busy-machine.md. It needs sysbench's package.
#
# It kills a server under sysbench's write load, starts it again on the same files, and checks all rows and indexes.
# KILLS=12: kills, with the same files. BUSY=4: processes that keep processors busy meanwhile. With KEEP=1 the files as the
# last kill left them are data.killed.
#
# Exit codes: 0 a recovery was not whole, as stated; 2 usage; 3 no verdict: not set up, or each of the kills was recovered from.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname -- "$0")/lib.sh"

usage_for "$@"
KILLS=${KILLS:-12}
BUSY_PIDS=()
also_clean() {
    [ ${#BUSY_PIDS[@]} = 0 ] || kill "${BUSY_PIDS[@]}" 2>/dev/null || true
    wait 2>/dev/null || true
}
use_mariadb "$@"
[ $# = 0 ] || shift
EXTRA=("$@")
command -v sysbench >/dev/null || packages sysbench=1.0.20+ds-5

serve() {
    start_server "$WORK/data" "$WORK/log" --skip-log-bin --loose-mysqlx=0 --innodb-flush-log-at-trx-commit=1 \
        ${EXTRA[@]+"${EXTRA[@]}"}
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

new_data "$WORK/data"
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
    end_server KILL
    wait "$LOAD" || true
    if [ -n "${KEEP-}" ]; then
        rm -rf "$WORK/data.killed"
        cp -a "$WORK/data" "$WORK/data.killed"
    fi
    lines=$(($(wc -l <"$WORK/log") + 1))
    if ! serve; then
        SERVER_PID=
        echo "kill $number: the server does not start"
        reported "$lines"
        verdict yes "recovery NOT whole"
    fi
    found=$(client sbtest -e 'CHECK TABLE sbtest1 EXTENDED; CHECK TABLE sbtest2 EXTENDED' 2>&1 | grep -v 'status.OK' || true)
    if [ -n "$found" ]; then
        echo "kill $number: $found" | cut -c1-300
        reported "$lines"
        verdict yes "recovery NOT whole"
    fi
done
none "each of $KILLS recoveries was whole, as most are"
