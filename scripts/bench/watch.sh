#!/usr/bin/env bash
# What `ebbtide watch` costs: its processor time and memory, the processor time of the server that it watches, and its scrape beside
# those of mysqld_exporter and node_exporter on the same server.
#
# usage: scripts/bench/watch.sh [EBBTIDE]
# Settings by environment: SECONDS_WATCHED=60, of each turn; ROUNDS=3; SCRAPES=200; TABLES=20000, empty ones in the server.
#   BENCH_TINY=1: one short turn, few scrapes and tables.
#
# An idle server is watched and left alone in turns; the difference of its processor time is what watching costs it. Nothing is judged:
# on a machine with other work the parts differ. The goals are those of SPECIFICATION.md.
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/bench/load-server.sh

EBBTIDE=$(realpath -- "${1:-target/release/ebbtide}")
[ -x "$EBBTIDE" ] || { echo "no program at $EBBTIDE: cargo build --release" >&2; exit 3; }
SECONDS_WATCHED=${SECONDS_WATCHED:-60} ROUNDS=${ROUNDS:-3} SCRAPES=${SCRAPES:-200} TABLES=${TABLES:-20000}
if [ "${BENCH_TINY:-0}" = 1 ]; then
    SECONDS_WATCHED=3 ROUNDS=1 SCRAPES=5 TABLES=50
fi
need curl
TICKS=$(getconf CLK_TCK)
WATCH_PORT=33062 MYSQLD_PORT=33063 NODE_PORT=33064
STARTED=()

# Processor time of a process so far, ms.
processor_ms() { awk -v ticks="$TICKS" '{ sub(/.*\) /, ""); printf "%.0f", ($12 + $13) * 1000 / ticks }' "/proc/$1/stat"; }

stop_all() {
    local pid
    for pid in "${STARTED[@]}"; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    stop_server
}

start_watch() {
    "$EBBTIDE" watch --home "$BENCH_DIR/home" --mysql-socket="$SOCKET" --mysql-user=root --listen "$WATCH_PORT" \
        >"$BENCH_DIR/watch" 2>&1 </dev/null &
    WATCH=$!
    STARTED+=("$WATCH")
    await "$WATCH_PORT" "$BENCH_DIR/watch"
}

# Waits until a port answers with metrics; prints what its program said where it does not.
await() {
    local _
    for _ in $(seq 100); do
        curl -sf -o /dev/null "http://127.0.0.1:$1/metrics" && return
        sleep 0.1
    done
    cat "$2" >&2
    exit 3
}

# Median, lowest and highest of numbers, one a line.
spread() { sort -g | awk -v unit="$1" '{ v[NR] = $1 } END { printf "%.2f%s (%.2f to %.2f)\n", v[int((NR + 1) / 2)], unit, v[1], v[NR] }'; }

start_server
trap stop_all EXIT
for ((table = 1; table <= TABLES; table++)); do
    echo "CREATE TABLE sbtest.t$table (id INT PRIMARY KEY) ENGINE=InnoDB;"
done | mariadb --no-defaults -uroot -S "$SOCKET"
sleep "$((SECONDS_WATCHED > 10 ? 10 : 1))" # the server writes what it has made

echo "a server with $TABLES tables, idle; turns of $SECONDS_WATCHED s, $ROUNDS rounds; median (lowest to highest)"
for ((round = 1; round <= ROUNDS; round++)); do
    before=$(processor_ms "$SERVER_PID")
    sleep "$SECONDS_WATCHED"
    alone=$(($(processor_ms "$SERVER_PID") - before))
    start_watch
    # Its beginning is no part of what it costs in the long run.
    sleep 2
    before=$(processor_ms "$SERVER_PID") own=$(processor_ms "$WATCH")
    sleep "$SECONDS_WATCHED"
    watched=$(($(processor_ms "$SERVER_PID") - before)) own=$(($(processor_ms "$WATCH") - own))
    awk -v ms="$own" -v s="$SECONDS_WATCHED" 'BEGIN { print ms / 10 / s }' >>"$BENCH_DIR/own"
    awk -v ms="$((watched - alone))" -v s="$SECONDS_WATCHED" 'BEGIN { print ms / 10 / s }' >>"$BENCH_DIR/server"
    awk '/^VmRSS/ { print $2 / 1024 }' "/proc/$WATCH/status" >>"$BENCH_DIR/memory"
    kill "$WATCH"
    wait "$WATCH" 2>/dev/null || true
done
printf 'watch: %s' "$(spread '% of a core' <"$BENCH_DIR/own")"
printf '\nwatch: %s resident' "$(spread ' MiB' <"$BENCH_DIR/memory")"
printf '\nserver: %s more\n' "$(spread '% of a core' <"$BENCH_DIR/server")"

for tool in prometheus-mysqld-exporter prometheus-node-exporter; do
    command -v "$tool" >/dev/null || { echo "no scrape is compared: $tool is missing"; exit 0; }
done
DATA_SOURCE_NAME="root@unix($SOCKET)/" prometheus-mysqld-exporter --web.listen-address="127.0.0.1:$MYSQLD_PORT" \
    >"$BENCH_DIR/mysqld-exporter" 2>&1 &
MYSQLD_EXPORTER=$!
STARTED+=("$MYSQLD_EXPORTER")
prometheus-node-exporter --web.listen-address="127.0.0.1:$NODE_PORT" --collector.disable-defaults --collector.diskstats \
    --collector.filesystem --collector.pressure >"$BENCH_DIR/node-exporter" 2>&1 &
NODE_EXPORTER=$!
STARTED+=("$NODE_EXPORTER")
await "$MYSQLD_PORT" "$BENCH_DIR/mysqld-exporter"
await "$NODE_PORT" "$BENCH_DIR/node-exporter"
start_watch
sleep 3

# Scrapes one after the other: milliseconds of each into a file, and the processor time that they took together, ms a scrape.
scrape() {
    local name=$1 port=$2 pid=$3 own_ms=$4 before number began
    before=$(processor_ms "$pid") began=$EPOCHREALTIME
    for ((number = 0; number < SCRAPES; number++)); do
        curl -s -o "$BENCH_DIR/page" -w '%{time_total}\n' "http://127.0.0.1:$port/metrics"
    done | awk '{ print $1 * 1000 }' >"$BENCH_DIR/$name.ms"
    # What the program takes without scrapes is taken off.
    awk -v ms="$(($(processor_ms "$pid") - before))" -v own="$own_ms" -v n="$SCRAPES" -v a="$began" -v b="$EPOCHREALTIME" \
        'BEGIN { printf "%.3f", (ms - own * (b - a)) / n }' >"$BENCH_DIR/$name.cpu"
    sort -g "$BENCH_DIR/$name.ms" | awk -v name="$name" -v cpu="$(cat "$BENCH_DIR/$name.cpu")" -v bytes="$(wc -c <"$BENCH_DIR/page")" '
        { v[NR] = $1 } END { printf "%-16s p50 %.2f ms, p99 %.2f ms, %s ms of processor, %d KiB\n",
        name, v[int((NR + 1) / 2)], v[int(NR * 0.99 + 0.5)], cpu, bytes / 1024 }'
}
echo "$SCRAPES scrapes of each, one after the other"
scrape mysqld_exporter "$MYSQLD_PORT" "$MYSQLD_EXPORTER" 0
scrape node_exporter "$NODE_PORT" "$NODE_EXPORTER" 0
scrape watch "$WATCH_PORT" "$WATCH" "$(sort -g "$BENCH_DIR/own" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] * 10 }')"
awk -v a="$(cat "$BENCH_DIR/watch.cpu")" -v b="$(cat "$BENCH_DIR/mysqld_exporter.cpu")" -v c="$(cat "$BENCH_DIR/node_exporter.cpu")" \
    'BEGIN { if (b + c > 0) printf "processor time of a scrape: %.2f times that of both exporters together, goal 0.5\n", a / (b + c) }'
