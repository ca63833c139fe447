#!/usr/bin/env bash
# MariaDB 10.11 and 11.x: a checkpoint counts pages as written whose file was not synced since.
#
#   unsynced-checkpoint.sh [--cut] [SERVER [OPTION...]]     SERVER: a mariadbd, 10.8 or later, or a mysqld, 8.0 or later
#
# Expected: the file is synced before the checkpoint counts its pages.
# Seen: checkpoints ahead of the synced pages in each run: MariaDB 10.11.5, 10.11.19, 11.4.5, 11.8.6; none on MySQL 8.0.15 and
# 9.7.4. Cause and remedy: unsynced-checkpoint.md. It needs a C compiler (cc).
#
# Four clients fill a table for $SECONDS_OF_LOAD (20) while unsynced-checkpoint.c, loaded into the server,
# follows writes and syncs. DELAY=MS (20) makes every fsync() of the table's file return later; 0 is
# the machine's own speed. --cut ends the server at the first such checkpoint as a power cut may, and
# starts it again.
#
# Exit codes: 0 such a checkpoint was seen, as stated; 1 none was; 2 usage; 3 not set up: no checkpoint or no page write was seen.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname -- "$0")/lib.sh"

HERE=$(dirname -- "$(readlink -f -- "$0")")
CUT=
if [ "${1-}" = --cut ]; then CUT=1 && shift; fi
usage_for "$@"
command -v cc >/dev/null || none "cc is missing"
use_mariadb "$@"
[ $# = 0 ] || shift
EXTRA=("$@")
SHIM=()
case $VERSION in
    *MariaDB*) OWN+=(--skip-grant-tables --loose-skip-ssl) ;;
    *) SHIM=(MYSQL=1) OWN+=(--mysqlx=OFF --secure-file-priv=) ;;
esac
cc -O2 -shared -fPIC -o "$WORK/follow.so" "$HERE/unsynced-checkpoint.c" -ldl -lpthread || none "cc failed"

# Starts the server, its words into the file $1, with what env(1) is given in the rest.
start() {
    local log=$1
    shift
    START_WITH=("$@")
    start_server "$WORK/data" "$log" --skip-log-bin --innodb-use-native-aio=0 --innodb-buffer-pool-size=24M \
        --loose-innodb-log-file-size=8M --loose-innodb-redo-log-capacity=16M --innodb-io-capacity=2000 \
        --innodb-flush-log-at-trx-commit=2 --innodb-doublewrite=OFF ${EXTRA[@]+"${EXTRA[@]}"}
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
end_server KILL
grep -E '^(UNSYNCED|CUT)' "$WORK/log" | head -n 8 || true
ALL=$(sed -n 's/^CHECKPOINT \([0-9]*\)$/\1/p' "$WORK/log" | tail -n 1)
BAD=$(grep -c '^UNSYNCED: checkpoint' "$WORK/log" || true)
[ "${ALL:-0}" -gt 0 ] || none "no checkpoint was seen"
grep -q '^WATCHED' "$WORK/log" || none "no page of the table was written while it was watched"

if [ -n "$CUT" ] && [ "$BAD" -gt 0 ]; then
    printf '\nstarted again after the cut:\n'
    if start "$WORK/log2" A=; then client -e 'CHECK TABLE test.t; SELECT COUNT(*) FROM test.t' 2>&1 || true; fi
    end_server KILL
    sed -E "s/^[-0-9:T .Z]+ //; s|$WORK/||g" "$WORK/log2" |
        grep -E 'checkpoint LSN|orrupt|test/t\.ibd' | cut -c1-160 | head -n 8 || true
fi
printf '\n%s of %s checkpoints counted pages as written that had not been synced\n' "$BAD" "$ALL"
[ "$BAD" = 0 ] || verdict yes "checkpoint AHEAD of the synced pages"
verdict no "no checkpoint ahead of the synced pages was seen"
