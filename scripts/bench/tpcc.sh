#!/usr/bin/env bash
# Compares TPC-C of `ebbtide load` with go-tpc and tpcc-mysql on one server in one run, taking turns.
#
# usage: scripts/bench/tpcc.sh [EBBTIDE]
# Settings by environment: WAREHOUSES=10 CONNECTIONS=16 SECONDS_EACH=15 REPEATS=3 LOADS=1 POOL=3G LOG=1G
#   LOAD_CONNECTIONS=2: connections that load; one for each processor where nothing is said
#   GO_TPC=go-tpc TPCC_START=tpcc_start: the programs of the others, by name or path. go-tpc is built with Go from the Go
#     module proxy where it is not there; tpcc-mysql from TPCC_MYSQL, a checkout of github.com/Percona-Lab/tpcc-mysql, with
#     gcc and mariadb_config (package libmariadb-dev): no registry has it. One that is not there is left out
#   ISOLATE=1 (root; see scripts/bench/load-server.sh)
#   BENCH_TINY=1: one warehouse and one short run of each tool
#
# Prints the time that loading takes, and for each kit the medians with the range: commits and rollbacks a second, New-Orders
# a minute, statements for one of these, and CPU of the client for a statement (user + system of the whole process,
# connecting included). All are counted by the server, the same way for all: the sum of d_next_o_id, Com_commit +
# Com_rollback, and Questions. tpcc-mysql runs on our tables; go-tpc has its own.
#
# ebbtide runs twice in each turn: with single statements, as tpcc-mysql sends them, and with batched ones, as go-tpc does.
# Both run on the tables that it has loaded, with their foreign keys.
#
# Then it judges its ratios by medians (16 connections on two processors keep the server busy: it is the limit). New-Orders a
# minute: single ones at least those of tpcc-mysql, batched ones at least those of go-tpc. Commits are no measure: tpcc-mysql
# commits each of the ten districts of a Delivery. Client CPU for a statement at most 0.7 of go-tpc's, single and batched; tables
# loaded at least twice as fast as by go-tpc. Exit codes: 0 all hold, 1 one fell short, 3 something is missing.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/bench/load-server.sh
. scripts/bench/load-server.sh

EBBTIDE=${1:-target/release/ebbtide}
if [ "${BENCH_TINY:-0}" = 1 ]; then
    WAREHOUSES=1 CONNECTIONS=2 SECONDS_EACH=2 REPEATS=1 LOADS=1 POOL=256M LOG=128M
fi
WAREHOUSES=${WAREHOUSES:-10}
CONNECTIONS=${CONNECTIONS:-16}
SECONDS_EACH=${SECONDS_EACH:-15}
REPEATS=${REPEATS:-3}
LOADS=${LOADS:-1}
LOAD_CONNECTIONS=${LOAD_CONNECTIONS:-$(nproc)}
POOL=${POOL:-3G}
GO_TPC=${GO_TPC:-go-tpc}
TPCC_START=${TPCC_START:-tpcc_start}
[ -x /usr/bin/time ] || { echo "missing: /usr/bin/time (apt-get install time)" >&2; exit 3; }
[ -x "$EBBTIDE" ] || { echo "no program at $EBBTIDE: cargo build --release" >&2; exit 3; }

# Builds what is missing and can be had, below target; prints the program's path, or nothing.
GO_TPC_VERSION=v1.0.12
built_go_tpc() {
    local bin="$PWD/target/bench-tools/go-tpc-$GO_TPC_VERSION"
    [ "${BENCH_TINY:-0}" != 1 ] && command -v go >/dev/null || return 0
    if [ ! -x "$bin/go-tpc" ]; then
        echo "building go-tpc $GO_TPC_VERSION from the Go module proxy" >&2
        GOBIN="$bin" go install "github.com/pingcap/go-tpc/cmd/go-tpc@$GO_TPC_VERSION" >&2 || return 0
    fi
    echo "$bin/go-tpc"
}
built_tpcc_mysql() {
    local bin="$PWD/target/bench-tools/tpcc_start" src="${TPCC_MYSQL:-}/src"
    [ -n "${TPCC_MYSQL:-}" ] && command -v mariadb_config gcc >/dev/null || return 0
    mkdir -p "$(dirname "$bin")"
    # The linker of its Makefile is told neither of the client library nor of libm.
    # shellcheck disable=SC2046
    gcc -w -O2 -fcommon -o "$bin" -I"$src" $(mariadb_config --cflags) "$src"/{main,spt_proc,driver,support,sequence,rthist,sb_percentile,neword,payment,ordstat,delivery,slev}.c \
        $(mariadb_config --libs) -lm -lpthread >&2 || return 0
    echo "$bin"
}

command -v "$GO_TPC" >/dev/null || GO_TPC=$(built_go_tpc)
command -v "$TPCC_START" >/dev/null || TPCC_START=$(built_tpcc_mysql)
KITS=(ebbtide batched)
if [ -n "$GO_TPC" ]; then
    KITS+=(go-tpc)
else
    echo "left out: go-tpc (it is built where 'go' is installed and the Go module proxy answers, or named with GO_TPC)" >&2
fi
if [ -n "$TPCC_START" ]; then
    KITS+=(tpcc-mysql)
else
    echo "left out: tpcc-mysql (clone github.com/Percona-Lab/tpcc-mysql and name the directory with TPCC_MYSQL; it needs gcc and libmariadb-dev)" >&2
fi

start_server
sql() { mariadb --no-defaults -uroot -S "$SOCKET" -N -B -e "$1"; }
sql "CREATE USER IF NOT EXISTS root@'127.0.0.1'; GRANT ALL ON *.* TO root@'127.0.0.1'"
sql 'CREATE DATABASE ours; CREATE DATABASE gotpc'
ours=(--mysql-host=127.0.0.1 --mysql-port="$PORT" --mysql-user=root --mysql-db=ours --warehouses="$WAREHOUSES")
theirs=(-H 127.0.0.1 -P "$PORT" -U root -D gotpc --warehouses "$WAREHOUSES")
echo "$("$EBBTIDE" --version | head -1), ${KITS[*]:2}, $WAREHOUSES warehouses, $CONNECTIONS connections, $SECONDS_EACH s x $REPEATS," \
    "$(nproc) processors, load $(cut -d' ' -f1 /proc/loadavg)"

# Runs a command and shows its output where it fails. 1 of our own program is a finding, such as a generator that was late.
quietly() {
    local status=0
    "$@" >"$BENCH_DIR/out" 2>&1 || status=$?
    case "$status $kit" in
        '0 '* | '1 ebbtide' | '1 batched') ;;
        *)
            cat "$BENCH_DIR/out" >&2
            echo "$kit failed with exit code $status" >&2
            exit 1
            ;;
    esac
}

# Loads the tables of a kit; prints the seconds.
load_tables() {
    local kit=$1
    if [ "$kit" = ebbtide ]; then
        sql 'DROP DATABASE ours; CREATE DATABASE ours'
        quietly isolated_time "$EBBTIDE" load prepare tpcc "${ours[@]}" --threads="$LOAD_CONNECTIONS"
    else
        sql 'DROP DATABASE gotpc; CREATE DATABASE gotpc'
        quietly isolated_time "$GO_TPC" tpcc prepare "${theirs[@]}" -T "$LOAD_CONNECTIONS" --no-check
    fi
    awk -v kit="$kit" '/^TOOK/ { print "load", kit, $2, $3 + $4 }' "$BENCH_DIR/use" >>"$BENCH_DIR/results"
}

# Commits and rollbacks, statements, and orders of a database so far.
counts() {
    sql "SELECT SUM(IF(variable_name = 'QUESTIONS', 0, variable_value)), SUM(IF(variable_name = 'QUESTIONS', variable_value, 0))
         FROM information_schema.global_status WHERE variable_name IN ('COM_COMMIT', 'COM_ROLLBACK', 'QUESTIONS')"
    sql "SELECT SUM(d_next_o_id) FROM $1.district"
}

# One run: appends "run kit tps tpmc statements us_per_statement".
one() {
    local kit=$1 database=ours command before after
    case $kit in
        ebbtide) command=("$EBBTIDE" load run tpcc "${ours[@]}" --threads="$CONNECTIONS" --time="$SECONDS_EACH") ;;
        batched) command=("$EBBTIDE" load run tpcc "${ours[@]}" --threads="$CONNECTIONS" --time="$SECONDS_EACH" --statements=batched) ;;
        go-tpc)
            database=gotpc
            command=("$GO_TPC" tpcc run "${theirs[@]}" -T "$CONNECTIONS" --time "${SECONDS_EACH}s" --silence)
            ;;
        tpcc-mysql)
            command=("$TPCC_START" -h127.0.0.1 -P"$PORT" -dours -uroot -w"$WAREHOUSES" -c"$CONNECTIONS" -r1 -l"$SECONDS_EACH")
            ;;
    esac
    : >"$BENCH_DIR/use"
    before=$(counts "$database")
    quietly isolated_time "${command[@]}"
    after=$(counts "$database")
    echo "$before" "$after" "$(cat "$BENCH_DIR/use")" | tr '\n' ' ' | awk -v kit="$kit" '{
        transactions = $4 - $1; statements = $5 - $2; orders = $6 - $3; took = $8; cpu = $9 + $10
        if (transactions <= 0) { print kit ": no transaction was counted" > "/dev/stderr"; exit 1 }
        print "run", kit, transactions / took, 60 * orders / took, statements / transactions, cpu * 1e6 / statements
    }' >>"$BENCH_DIR/results"
}

isolated_time() { (isolated /usr/bin/time -q -f 'TOOK %e %U %S' -o "$BENCH_DIR/use" "$@"); }

for _ in $(seq "$LOADS"); do
    load_tables ebbtide
    [[ " ${KITS[*]} " != *" go-tpc "* ]] || load_tables go-tpc
done
for repeat in $(seq "$REPEATS"); do
    # The one that went first goes last next time.
    if [ $((repeat % 2)) = 1 ]; then turns=("${KITS[@]}"); else mapfile -t turns < <(printf '%s\n' "${KITS[@]}" | tac); fi
    for kit in "${turns[@]}"; do one "$kit"; done
done

awk '
    function text(kind, kit, column,   list, n, i, j, t, m) {
        for (i = 1; i <= count[kind, kit]; i++) list[++n] = value[kind, kit, i, column]
        if (!n) return "-"
        for (i = 2; i <= n; i++) for (j = i; j > 1 && list[j] < list[j-1]; j--) { t = list[j]; list[j] = list[j-1]; list[j-1] = t }
        m = n % 2 ? list[(n+1)/2] : (list[n/2] + list[n/2+1]) / 2
        median[kind, kit, column] = m
        return sprintf("%.4g [%.4g-%.4g]", m, list[1], list[n])
    }
    function ratio(kind, own, kit, column) {
        return median[kind, kit, column] ? sprintf("%.2f", median[kind, own, column] / median[kind, kit, column]) : "-"
    }
    # Whether a ratio keeps its bound: at least it, or at most it.
    function judge(kit, what, figure, bound, at_most) {
        if (tiny || figure == "-") return
        if (at_most ? figure + 0 <= bound : figure + 0 >= bound) { printf "holds: %s: %s: %s\n", kit, what, figure; return }
        printf "FELL SHORT: %s: %s: %s\n", kit, what, figure
        fell_short = 1
    }
    {
        if (!seen[$2]++) kits[++all] = $2
        n = ++count[$1, $2]
        for (i = 3; i <= NF; i++) value[$1, $2, n, i - 2] = $i
    }
    END {
        printf "%-12s %-22s %-22s %-24s %-26s %-20s %-20s\n", "kit", "load s", "load client CPU s", "commit+rollback/s", \
            "New-Orders/min", "statements for one", "client us/statement"
        for (k = 1; k <= all; k++) printf "%-12s %-22s %-22s %-24s %-26s %-20s %-20s\n", kits[k], text("load", kits[k], 1), \
            text("load", kits[k], 2), text("run", kits[k], 1), text("run", kits[k], 2), text("run", kits[k], 3), text("run", kits[k], 4)
        for (k = 1; k <= all; k++) {
            kit = kits[k]
            if (kit == "ebbtide" || kit == "batched") continue
            others++
            for (own = 1; own <= all; own++) if (kits[own] == "ebbtide" || kits[own] == "batched")
                printf "%s / %s: New-Orders/min %s, client us/statement %s\n", kits[own], kit, \
                    ratio("run", kits[own], kit, 2), ratio("run", kits[own], kit, 4)
            if (kit == "tpcc-mysql") judge(kit, "New-Orders a minute, at least as many", ratio("run", "ebbtide", kit, 2), 1, 0)
            if (kit == "go-tpc") {
                judge(kit, "New-Orders a minute with batched statements, at least as many", ratio("run", "batched", kit, 2), 1, 0)
                judge(kit, "client CPU for a statement, at most 0.7", ratio("run", "ebbtide", kit, 4), 0.7, 1)
                judge(kit, "client CPU for a batched statement, at most 0.7", ratio("run", "batched", kit, 4), 0.7, 1)
                judge(kit, "time to load, at most half", ratio("load", "ebbtide", kit, 1), 0.5, 1)
            }
        }
        if (!tiny && !others) print "no other kit was measured: nothing is judged"
        exit fell_short ? 1 : 0
    }' tiny="${BENCH_TINY:-0}" "$BENCH_DIR/results"
