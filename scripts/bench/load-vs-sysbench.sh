#!/usr/bin/env bash
# Compares `ebbtide load` with sysbench on one server in one run, taking turns.
#
# usage: scripts/bench/load-vs-sysbench.sh [EBBTIDE]
# Settings by environment: SECONDS_EACH=8 REPEATS=3 CONNECTIONS="1 16 64 256"
#   ISOLATE=1 (root; see scripts/bench/load-server.sh)
#   WORKLOADS="oltp_point_select oltp_read_only oltp_read_write oltp_write_only" TABLES=4 ROWS=100000 TRANSPORT=socket|tcp
#   BENCH_TINY=1: one short run of each tool
#
# Prints for each cell the medians of both and ours / theirs: transactions a second, CPU per query of the client
# (user + system of the whole process, connecting included), and the client's largest memory.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/bench/load-server.sh
. scripts/bench/load-server.sh

EBBTIDE=${1:-target/release/ebbtide}
if [ "${BENCH_TINY:-0}" = 1 ]; then
    SECONDS_EACH=1 REPEATS=1 CONNECTIONS=1 WORKLOADS=oltp_point_select TABLES=1 ROWS=1000 POOL=64M LOG=32M
fi
SECONDS_EACH=${SECONDS_EACH:-8}
REPEATS=${REPEATS:-3}
CONNECTIONS=${CONNECTIONS:-1 16 64 256}
WORKLOADS=${WORKLOADS:-oltp_point_select oltp_read_only oltp_read_write oltp_write_only}
TABLES=${TABLES:-4}
ROWS=${ROWS:-100000}
need sysbench
[ -x /usr/bin/time ] || { echo "missing: /usr/bin/time (apt-get install time)" >&2; exit 3; }
[ -x "$EBBTIDE" ] || { echo "no program at $EBBTIDE: cargo build --release" >&2; exit 3; }

start_server
if [ "${TRANSPORT:-socket}" = tcp ]; then
    server=(--mysql-host=127.0.0.1 --mysql-port="$PORT")
    mariadb --no-defaults -uroot -S "$SOCKET" -e \
        "CREATE USER root@'127.0.0.1'; GRANT ALL ON *.* TO root@'127.0.0.1'" 2>/dev/null || true
else
    server=(--mysql-socket="$SOCKET")
fi
common=("${server[@]}" --mysql-user=root --mysql-db=sbtest --tables="$TABLES" --table-size="$ROWS")
echo "sysbench $(sysbench --version | cut -d' ' -f2), $("$EBBTIDE" --version), ${TRANSPORT:-socket}, $TABLES x $ROWS rows," \
    "$SECONDS_EACH s x $REPEATS, $(nproc) processors, load $(cut -d' ' -f1 /proc/loadavg)"
sysbench oltp_read_write "${common[@]}" --threads=2 prepare >/dev/null
results=$BENCH_DIR/results

# One run: appends "tool workload connections tps us_per_query rss_mib".
one() {
    local tool=$1 workload=$2 connections=$3 command
    if [ "$tool" = sysbench ]; then
        command=(sysbench "$workload" "${common[@]}" --threads="$connections" --time="$SECONDS_EACH" run)
    else
        command=("$EBBTIDE" load run "$workload" "${common[@]}" --threads="$connections" --time="$SECONDS_EACH")
    fi
    # 1 is a run with a finding, such as a generator that was late: its figures stand.
    (isolated /usr/bin/time -q -f 'USE %U %S %M' -o "$BENCH_DIR/use" "${command[@]}") >"$BENCH_DIR/out" 2>"$BENCH_DIR/err" ||
        [ $? = 1 ] || { cat "$BENCH_DIR/out" "$BENCH_DIR/err" >&2; exit 1; }
    awk -v tool="$tool" -v workload="$workload" -v connections="$connections" '
        /transactions:/ { gsub(/[(]/, ""); tps = $3 }
        / queries:/     { queries = $2 }
        /^USE/          { cpu = $2 + $3; rss = $4 / 1024 }
        END { print tool, workload, connections, tps, cpu * 1e6 / queries, rss }
    ' "$BENCH_DIR/out" "$BENCH_DIR/use" >>"$results"
}

breathe() {
    if [ "${ISOLATE:-0}" = 1 ]; then sleep "$SECONDS_EACH"; fi
}

for repeat in $(seq "$REPEATS"); do
    for workload in $WORKLOADS; do
        for connections in $CONNECTIONS; do
            # The one that went first goes second next time.
            if [ $((repeat % 2)) = 1 ]; then
                one ebbtide "$workload" "$connections"
                breathe
                one sysbench "$workload" "$connections"
            else
                one sysbench "$workload" "$connections"
                breathe
                one ebbtide "$workload" "$connections"
            fi
            breathe
        done
    done
done

printf '%-20s %5s | %9s %9s %6s | %7s %7s %6s | %7s %7s\n' workload conns 'tps' 'sysbench' ratio 'us/q' 'sysbench' \
    ratio 'MiB' 'sysbench'
sort -k2,2 -k3,3n -k1,1 "$results" | awk '
    function median(list, n,   i, j, t) {
        for (i = 2; i <= n; i++) for (j = i; j > 1 && list[j] < list[j-1]; j--) { t = list[j]; list[j] = list[j-1]; list[j-1] = t }
        return n % 2 ? list[(n+1)/2] : (list[n/2] + list[n/2+1]) / 2
    }
    function close_tool() {
        if (n) { m_tps[tool] = median(tps, n); m_cpu[tool] = median(cpu, n); m_rss[tool] = median(rss, n) }
        n = 0
    }
    function close_cell() {
        close_tool()
        if (cell) printf "%-20s %5d | %9.0f %9.0f %6.2f | %7.2f %7.2f %6.2f | %7.1f %7.1f\n", w, c,
            m_tps["ebbtide"], m_tps["sysbench"], m_tps["ebbtide"] / m_tps["sysbench"],
            m_cpu["ebbtide"], m_cpu["sysbench"], m_cpu["ebbtide"] / m_cpu["sysbench"],
            m_rss["ebbtide"], m_rss["sysbench"]
    }
    { key = $2 " " $3; if (key != cell) { close_cell(); cell = key; w = $2; c = $3; tool = "" } }
    $1 != tool { close_tool(); tool = $1 }
    { n++; tps[n] = $4; cpu[n] = $5; rss[n] = $6 }
    END { close_cell() }'
