#!/usr/bin/env bash
# Shows whether a table is lost by a power cut that follows a finished ALTER TABLE. It needs root, a loop
# device, mkfs, and the server program with its client and mariadb-install-db.
#
#   unsynced-rename.sh [SERVER [OPTION...]]     SERVER: mariadbd (default), 10.6 or later
#
# For each statement: the server runs on a new file system in a file, everything is synced, the statement is
# run, and when it has answered, the file is copied: what is in it is what reached the disk. The copy is
# mounted, and a server recovers and reads the table. SERVER and OPTION are those of both starts, for example
# --log-bin=b --sync-binlog=1. FS=xfs makes it XFS (ext4), MOUNT=OPTIONS adds mount options, for example
# dirsync. Everything is in a directory of $TMPDIR (default /tmp), which is removed at the end; KEEP=1 keeps it.
#
# Exit codes: 0 each table was there; 1 one was lost; 2 usage; 3 no verdict: a program is missing, or this
# machine lets nobody mount.
set -euo pipefail

case "${1-}" in -*) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" >&2 && exit 2 ;; esac
SERVER=${1:-mariadbd}
[ $# = 0 ] || shift
EXTRA=("$@")
FS=${FS:-ext4}
PID=
WORK=$(mktemp -d "${TMPDIR:-/tmp}/unsynced-rename.XXXXXX")

end() {
    [ -n "$PID" ] || return 0
    kill -CONT "$PID" 2>/dev/null || true
    kill "-${1:-TERM}" "$PID" 2>/dev/null || true
    wait "$PID" 2>/dev/null || true
    PID=
}
cleanup() {
    end KILL
    for one in live cut; do
        if mountpoint -q "$WORK/$one"; then umount "$WORK/$one"; fi
    done
    if [ -n "${KEEP-}" ]; then echo "kept: $WORK"; else rm -rf --one-file-system "$WORK"; fi
}
trap cleanup EXIT
none() { echo "verdict: none: $*" && exit 3; }

for program in "$SERVER" mariadb mariadb-install-db "mkfs.$FS" losetup; do
    command -v "$program" >/dev/null || none "$program is missing"
done
[ "$(id -u)" = 0 ] || none "only root can mount"
SERVER=$(command -v "$SERVER")
VERSION=$("$SERVER" --no-defaults ${EXTRA[@]+"${EXTRA[@]}"} --version) || none "$SERVER --version failed"
case $VERSION in *MariaDB*) ;; *) none "it is not MariaDB: $VERSION" ;; esac

client() { mariadb --no-defaults -u root -S "$WORK/socket" -BN "$@"; }

# Starts the server on the file system at $1; fails where it does not answer.
start() {
    "$SERVER" --no-defaults --datadir="$WORK/$1/data" --user="$(id -un)" --socket="$WORK/socket" \
        --skip-networking --pid-file="$WORK/pid" --skip-grant-tables --loose-skip-ssl --innodb-buffer-pool-size=32M \
        --loose-innodb-log-file-size=8M --innodb-flush-log-at-trx-commit=1 \
        ${EXTRA[@]+"${EXTRA[@]}"} >>"$WORK/$1.log" 2>&1 &
    PID=$!
    for _ in $(seq 300); do
        if client -e 'DO 1' 2>/dev/null; then return; fi
        if ! kill -0 "$PID" 2>/dev/null; then break; fi
        sleep 0.1
    done
    return 1
}

# Runs a statement, cuts the power, and says what became of table t.
cut_after() {
    local statement=$1 table=$2 said
    rm -f "$WORK"/*.img "$WORK"/*.log
    cp --sparse=always "$WORK/new" "$WORK/live.img"
    mount -o "loop${MOUNT:+,$MOUNT}" "$WORK/live.img" "$WORK/live" || none "this machine does not mount"
    start live || none "the server does not start: $(tail -n 3 "$WORK/live.log")"
    client -e "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(200)) ENGINE=InnoDB;
        INSERT INTO d.t VALUES (1, 'a'), (2, 'b')"
    sync -f "$WORK/live/data"
    client -e "$statement"
    kill -STOP "$PID"
    cp --sparse=always "$WORK/live.img" "$WORK/cut.img"
    end
    umount "$WORK/live"
    mount -o loop "$WORK/cut.img" "$WORK/cut"
    if start cut; then
        said=$(client -e "SELECT COUNT(*) FROM d.$table" 2>&1 | tail -n 1) || true
    else
        said="the server does not start: $(grep ERROR "$WORK/cut.log" | tail -n 1)"
    fi
    end
    umount "$WORK/cut"
    printf '%-42s %s\n' "$statement" "${said/#2/2 rows}"
    [ "$said" = 2 ] || LOST=$((LOST + 1))
}

echo "server: $VERSION"
echo "options: ${EXTRA[*]-none}, on $FS${MOUNT:+ with $MOUNT}"
mkdir "$WORK/live" "$WORK/cut"
truncate -s 400M "$WORK/new"
"mkfs.$FS" -q "$WORK/new"
mount -o loop "$WORK/new" "$WORK/live" || none "this machine does not mount"
mariadb-install-db --no-defaults --datadir="$WORK/live/data" --user="$(id -un)" --auth-root-authentication-method=normal \
    >"$WORK/log" 2>&1 || none "mariadb-install-db failed: $(tail -n 3 "$WORK/log")"
umount "$WORK/live"
LOST=0
cut_after 'ALTER TABLE d.t ADD COLUMN w INT' t
cut_after 'ALTER TABLE d.t DROP COLUMN v' t
cut_after 'ALTER TABLE d.t RENAME TO d.u' u
if [ "$LOST" -gt 0 ]; then
    echo "verdict: $LOST of 3 tables LOST by a power cut after the statement had answered"
    exit 1
fi
echo "verdict: no table was lost"
