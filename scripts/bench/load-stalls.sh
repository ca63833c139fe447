#!/usr/bin/env bash
# The stall probes: what each tool reports when the server, or the client itself, stands still for two seconds,
# and when more arrives than the server can carry.
#
# usage: scripts/bench/load-stalls.sh [EBBTIDE]
# Settings by environment: SECONDS_EACH=15 RATE=5000 OVERLOAD=200000 THREADS=16 ROWS=100000
#   BENCH_TINY=1: one short probe of each tool
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/bench/load-server.sh
. scripts/bench/load-server.sh

EBBTIDE=${1:-target/release/ebbtide}
TINY=${BENCH_TINY:-0}
if [ "$TINY" = 1 ]; then SECONDS_EACH=4 RATE=200 THREADS=2 ROWS=1000 POOL=64M LOG=32M; fi
SECONDS_EACH=${SECONDS_EACH:-15}
RATE=${RATE:-5000}
OVERLOAD=${OVERLOAD:-200000}
THREADS=${THREADS:-16}
ROWS=${ROWS:-100000}
need sysbench
[ -x "$EBBTIDE" ] || { echo "no program at $EBBTIDE: cargo build --release" >&2; exit 3; }

start_server
common=(--mysql-socket="$SOCKET" --mysql-user=root --mysql-db=sbtest --tables=4 --table-size="$ROWS" --threads="$THREADS"
    --time="$SECONDS_EACH" --percentile=99)
sysbench oltp_read_write "${common[@]}" prepare >/dev/null

# probe NAME TOOL FROZEN ARGUMENT...: runs, stands FROZEN (server, client, none) still for two seconds, prints a line.
probe() {
    local name=$1 tool=$2 frozen=$3 pid victim status=0
    shift 3
    if [ "$tool" = sysbench ]; then
        sysbench oltp_point_select "${common[@]}" "$@" run >"$BENCH_DIR/out" 2>&1 &
    else
        "$EBBTIDE" load run oltp_point_select "${common[@]}" "$@" >"$BENCH_DIR/out" 2>&1 &
    fi
    pid=$!
    if [ "$frozen" != none ]; then
        victim=$pid
        [ "$frozen" = server ] && victim=$SERVER_PID
        sleep $((SECONDS_EACH / 2))
        kill -STOP "$victim"
        sleep 2
        kill -CONT "$victim"
    fi
    wait "$pid" || status=$?
    awk -v name="$name" -v tool="$tool" -v status="$status" '
        /99th percentile:/      { p99 = $NF }
        / max:/ && !max         { max = $NF }
        /total number of events:/ { events = $NF }
        /omission corrected/    { corrected = $6 }
        /own lag/               { lag = $7 " ms" }
        /DISQUALIFIED/          { note = note " disqualified;" }
        /OVERLOAD/              { note = note " " $2 " shed;" }
        /WARNING: coordinated/  { note = note " warns;" }
        /queue is full/         { note = note " aborts: queue full;" }
        END {
            printf "%-34s %-9s exit %d  %9s done  p99 %9s  max %9s  corrected p99 %9s  own lag p99 %11s %s\n", name, tool,
                status, events ? events : "-", p99 ? p99 : "-", max ? max : "-", corrected ? corrected : "-",
                lag ? lag : "-", note
        }' "$BENCH_DIR/out"
}

for tool in ebbtide sysbench; do
    if [ "$TINY" = 1 ]; then
        probe "rate $RATE, server frozen 2 s" "$tool" server --rate="$RATE"
        continue
    fi
    probe 'closed loop' "$tool" none
    probe 'closed loop, server frozen 2 s' "$tool" server
    probe "rate $RATE" "$tool" none --rate="$RATE"
    probe "rate $RATE, server frozen 2 s" "$tool" server --rate="$RATE"
    probe "rate $RATE, client frozen 2 s" "$tool" client --rate="$RATE"
    probe "rate $OVERLOAD (overload)" "$tool" none --rate="$OVERLOAD"
done
