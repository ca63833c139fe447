# Sourced by the load's benches: a MariaDB of their own on a Unix socket and a loopback port.
# shellcheck shell=bash
# Sets SOCKET, PORT and SERVER_PID; the server and its data go when the shell exits.

need() {
    local missing=0 tool
    for tool in "$@"; do
        command -v "$tool" >/dev/null || { echo "missing: $tool" >&2; missing=1; }
    done
    if [ "$missing" = 1 ]; then
        echo "on Debian: apt-get install mariadb-server sysbench time" >&2
        exit 3
    fi
}

# The user without privileges that a server runs as: mysql, else nobody, as the program chooses (crates/mysql).
server_account() {
    local user
    for user in mysql nobody; do
        if getent passwd "$user" >/dev/null; then
            echo "$user"
            return
        fi
    done
    echo "no user mysql or nobody in the user database: a server does not run as root; add one (useradd --system mysql)" >&2
    return 1
}

# Runs a command, with ISOLATE=1 (root) ahead of everything else on the machine: real-time round robin for the server
# and for both clients alike. On a crowded machine, one event loop otherwise gets one thread's share, and a client with a
# thread per connection gets as many. Other programs stand still meanwhile, so keep such runs short.
isolated() {
    if [ "${ISOLATE:-0}" = 1 ]; then exec chrt -r 1 "$@"; else exec "$@"; fi
}

start_server() {
    need mariadbd mariadb-install-db mariadb
    local account=() user
    BENCH_DIR=$(mktemp -d "${TMPDIR:-/tmp}/ebbtide-bench-load.XXXXXX")
    chmod 755 "$BENCH_DIR"
    mkdir "$BENCH_DIR/data"
    if [ "$(id -u)" = 0 ]; then
        user=$(server_account) || exit 3
        account=(--user="$user")
        chown "$user" "$BENCH_DIR/data"
    fi
    mariadb-install-db --no-defaults "${account[@]}" --auth-root-authentication-method=normal --skip-test-db \
        --datadir="$BENCH_DIR/data" >"$BENCH_DIR/log" 2>&1 || { cat "$BENCH_DIR/log" >&2; exit 3; }
    SOCKET=$BENCH_DIR/data/s
    PORT=${PORT:-33061}
    isolated mariadbd --no-defaults "${account[@]}" --datadir="$BENCH_DIR/data" --socket="$SOCKET" --port="$PORT" \
        --bind-address=127.0.0.1 --max-connections=1200 --max-prepared-stmt-count=200000 \
        --innodb-buffer-pool-size="${POOL:-2G}" --innodb-log-file-size="${LOG:-1G}" --innodb-flush-method=O_DIRECT \
        >>"$BENCH_DIR/log" 2>&1 &
    SERVER_PID=$!
    trap stop_server EXIT
    local _
    for _ in $(seq 300); do
        mariadb --no-defaults -uroot -S "$SOCKET" -e 'CREATE DATABASE IF NOT EXISTS sbtest' 2>/dev/null && return
        kill -0 "$SERVER_PID" 2>/dev/null || break
        sleep 0.1
    done
    cat "$BENCH_DIR/log" >&2
    exit 3
}

stop_server() {
    kill -CONT "$SERVER_PID" 2>/dev/null || true
    kill "$SERVER_PID" 2>/dev/null || true
    wait "$SERVER_PID" 2>/dev/null || true
    rm -rf "$BENCH_DIR"
}
