#!/usr/bin/env bash
# Shows whether a server writes a checkpoint that counts pages as written whose file was not
# synced since. It needs the server program, its client, and a C compiler (cc).
#
#   unsynced-checkpoint.sh [--cut] [SERVER [OPTION...]]     SERVER: mariadbd (default), 10.8 or later, or mysqld, 8.0 or later
#
# Four clients fill a table for $SECONDS_OF_LOAD (20) while unsynced-checkpoint.c, loaded into the server,
# follows writes and syncs. DELAY=MS (20) makes every fsync() of the table's file return later; 0 is
# the machine's own speed. --cut ends the server at the first such checkpoint as a power cut may, and
# starts it again. A private data directory in $TMPDIR (default /tmp) is removed at the end; KEEP=1
# keeps it.
#
# Exit codes: 0 no such checkpoint was seen; 1 one was; 2 usage; 3 no verdict: a program is missing,
# or no checkpoint or no page write was seen.
set -euo pipefail

HERE=$(dirname -- "$(readlink -f -- "$0")")
CUT=
if [ "${1-}" = --cut ]; then CUT=1 && shift; fi
case "${1-}" in -*) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" >&2 && exit 2 ;; esac
SERVER=${1:-mariadbd}
[ $# = 0 ] || shift
EXTRA=("$@")
PID=
WORK=$(mktemp -d "${TMPDIR:-/tmp}/unsynced-checkpoint.XXXXXX")

cleanup() {
    [ -z "$PID" ] || kill -9 "$PID" 2>/dev/null || true
    if [ -n "${KEEP-}" ]; then echo "kept: $WORK"; else rm -rf "$WORK"; fi
}
trap cleanup EXIT
none() { echo "verdict: none: $*" && exit 3; }

for program in "$SERVER" mariadb cc; do
    command -v "$program" >/dev/null || none "$program is missing"
done
VERSION=$("$SERVER" --no-defaults ${EXTRA[@]+"${EXTRA[@]}"} --version) || none "$SERVER --version failed"
SHIM=() OWN=(--skip-grant-tables --loose-skip-ssl)
case $VERSION in
    *MariaDB*) ;;
    *) SHIM=(MYSQL=1) OWN=(--mysqlx=OFF --secure-file-priv=) ;;
esac
cc -O2 -shared -fPIC -o "$WORK/follow.so" "$HERE/unsynced-checkpoint.c" -ldl -lpthread || none "cc failed"

client() { mariadb --no-defaults -u root -S "$WORK/socket" -BN "$@"; }

# Starts the server, its words into the file $1, with what env(1) is given in the rest.
start() {
    local log=$1
    shift
    env "$@" "$SERVER" --no-defaults --datadir="$WORK/data" --user="$(id -un)" --socket="$WORK/socket" \
        --skip-networking --pid-file="$WORK/pid" "${OWN[@]}" --skip-log-bin \
        --innodb-use-native-aio=0 --innodb-buffer-pool-size=24M --loose-innodb-log-file-size=8M --loose-innodb-redo-log-capacity=16M \
        --innodb-io-capacity=2000 --innodb-flush-log-at-trx-commit=2 --innodb-doublewrite=OFF \
        ${EXTRA[@]+"${EXTRA[@]}"} >>"$log" 2>&1 &
    PID=$!
    for _ in $(seq 300); do
        if client -e 'DO 1' 2>/dev/null; then return; fi
        if ! kill -0 "$PID" 2>/dev/null; then break; fi
        sleep 0.1
    done
    return 1
}

end() {
    kill -9 "$PID" 2>/dev/null || true
    wait "$PID" 2>/dev/null || true
    PID=
}

load() {
    local insert='INSERT INTO test.t (b, c) SELECT b, FLOOR(RAND() * 1000000) FROM test.t LIMIT'
    client -e "CREATE TABLE test.t (a INT AUTO_INCREMENT PRIMARY KEY, b CHAR(250), c INT, KEY (c))
        ENGINE=InnoDB CHARSET=latin1; INSERT INTO test.t (b, c) VALUES ('row', 1)"
    for _ in $(seq 9); do client -e "$insert 256"; done
    local clients=()
    for _ in 1 2 3 4; do
        { while echo "$insert 200;"; do :; done | timeout "${SECONDS_OF_LOAD}" mariadb --no-defaults \
            -u root -S "$WORK/socket" >/dev/null 2>&1 || true; } &
        clients+=($!)
    done
    wait "${clients[@]}" || true
}

SECONDS_OF_LOAD=${SECONDS_OF_LOAD:-20}
echo "server: $VERSION"
if [ ${#SHIM[@]} -gt 0 ]; then
    "$SERVER" --no-defaults --datadir="$WORK/data" --user="$(id -un)" --initialize-insecure "${OWN[@]}" \
        >"$WORK/log" 2>&1 || none "--initialize-insecure failed: $(tail -n 3 "$WORK/log")"
else
    mkdir -p "$WORK/data"
fi
SHIM+=("LD_PRELOAD=$WORK/follow.so" WATCH=/test/t.ibd "DELAY=${DELAY:-20}")
[ -z "$CUT" ] || SHIM+=(CUT=1)
start "$WORK/log" "${SHIM[@]}" || none "the server does not start: $(tail -n 3 "$WORK/log")"
client -e 'CREATE DATABASE IF NOT EXISTS test'
client -e "SELECT CONCAT_WS(', ', CONCAT('flush method ', @@innodb_flush_method), CONCAT('doublewrite ', @@innodb_doublewrite))"
load 2>/dev/null || true
end
grep -E '^(UNSYNCED|CUT)' "$WORK/log" | head -n 8 || true
ALL=$(sed -n 's/^CHECKPOINT \([0-9]*\)$/\1/p' "$WORK/log" | tail -n 1)
BAD=$(grep -c '^UNSYNCED: checkpoint' "$WORK/log" || true)
[ "${ALL:-0}" -gt 0 ] || none "no checkpoint was seen"
grep -q '^WATCHED' "$WORK/log" || none "no page of the table was written while it was watched"

if [ -n "$CUT" ] && [ "$BAD" -gt 0 ]; then
    printf '\nstarted again after the cut:\n'
    if start "$WORK/log2" A=; then client -e 'CHECK TABLE test.t; SELECT COUNT(*) FROM test.t' 2>&1 || true; fi
    end
    sed -E "s/^[-0-9:T .Z]+ //; s|$WORK/||g" "$WORK/log2" |
        grep -E 'checkpoint LSN|orrupt|test/t\.ibd' | cut -c1-160 | head -n 8 || true
fi
printf '\n%s of %s checkpoints counted pages as written that had not been synced\n' "$BAD" "$ALL"
if [ "$BAD" -gt 0 ]; then
    echo "verdict: checkpoint AHEAD of the synced pages"
    exit 1
fi
echo "verdict: no checkpoint ahead of the synced pages was seen"
