#!/usr/bin/env bash
# MariaDB 10.11 and 11.8: a table survives a power cut in a statement that rebuilds it, and is gone after the next restart.
#
#   lost-at-the-second-start.sh [SERVER]     SERVER: a mariadbd, 10.6 or later, instead of the pinned one
#
# Expected: a table that a recovered server reads and writes is there after a clean stop and another start.
# Seen (10.11.19, 11.8.9; ext4): recovery leaves the table's file under the name that the statement gave it at first
#   (#sql-alter-*.ibd). The server reads and writes it there, without a message. The next start opens t.ibd, which is the table
#   before the statement, and calls the table corrupted. Everything is synced as it should be: innodb_flush_log_at_trx_commit = 1, sync_binlog = 1, the binary log in the
#   data directory. Causes and remedies: lost-at-the-second-start.md. It needs root, a loop device, mkfs and strace.
#
# The server runs on a new file system in a file; everything is synced; the statement is run. strace holds it before it syncs
# the binary log, so that it has not answered, and the file is copied: what is in it is what reached the disk. The copy is
# mounted, and the server is started on it, stopped, and started again. FS=xfs makes it XFS (ext4). STATEMENT is another one, for
# example 'OPTIMIZE TABLE d.t'.
#
# Exit codes: 0 as stated; 1 changed; 2 usage; 3 not set up.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname -- "$0")/lib.sh"

usage_for "$@"
FS=${FS:-ext4}
STATEMENT=${STATEMENT:-ALTER TABLE d.t ADD COLUMN w INT NOT NULL DEFAULT 7, ALGORITHM=COPY}
# ext4 writes its journal by itself within this time, s: longer than the script takes, so that nothing depends on it.
OPTIONS=loop
[ "$FS" != ext4 ] || OPTIONS=loop,commit=300
HOLDER=
# shellcheck disable=SC2317,SC2329 # called by `clean`
also_clean() {
    local image
    for image in live cut; do
        if mountpoint -q "$WORK/$image"; then umount "$WORK/$image"; fi
    done
}

# What strace holds ends with strace, and the server cannot end before.
trap '[ -z "$HOLDER" ] || kill -KILL "$HOLDER" 2>/dev/null; clean' EXIT

[ "$(id -u)" = 0 ] || none "only root can mount"
for program in "mkfs.$FS" losetup strace; do
    command -v "$program" >/dev/null || none "$program is missing"
done
use_mariadb "$@"
echo "statement: $STATEMENT, on $FS"
case $VERSION in *MariaDB*) ;; *) none "it is not MariaDB: $VERSION" ;; esac

# Starts the server on the file system at $1.
start() {
    local image=$1
    shift
    start_server "$WORK/$image/data" "$WORK/$image.log" --innodb-buffer-pool-size=32M \
        --innodb-flush-log-at-trx-commit=1 "$@" || none "the server does not start: $(tail -n 3 "$WORK/$image.log")"
}
rows() { client -e 'SELECT COUNT(*) FROM d.t' 2>&1 | tail -n 1; }
files() { (cd "$WORK/cut/data/d" && echo *.ibd); }

# Has strace hold each sync of the binary log of the server for a minute.
hold_binlog() {
    local log
    log=$(client -e 'SHOW MASTER STATUS' | cut -f 1)
    strace -f -q -p "$SERVER_PID" -P "$WORK/live/data/$log" -e trace=fdatasync -e inject=fdatasync:delay_enter=60000000 \
        -o "$WORK/strace" &
    HOLDER=$!
    for _ in $(seq 100); do
        if grep -q "^TracerPid:[[:space:]]*$HOLDER$" "/proc/$SERVER_PID/status"; then return; fi
        sleep 0.1
    done
    none "strace does not attach to the server"
}

mkdir "$WORK/live" "$WORK/cut"
truncate -s 400M "$WORK/live.img"
"mkfs.$FS" -q "$WORK/live.img"
mount -o "$OPTIONS" "$WORK/live.img" "$WORK/live" || none "this machine does not mount"
OWN+=(--loose-innodb-log-file-size=8M)
new_data "$WORK/live/data"
OWN+=(--log-bin=b --sync-binlog=1)
start live
client -e "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(200)) ENGINE=InnoDB;
    INSERT INTO d.t VALUES (1, 'a'), (2, 'b')"
end_server
# A redo log that was written once all through, as that of each server is after a while: its syncs do not change the file
# system's metadata, and so do not write its journal.
dd if="$WORK/live/data/ib_logfile0" of="$WORK/live/data/ib_logfile0" bs=1M conv=notrunc,fsync status=none
start live
sync -f "$WORK/live/data"

hold_binlog
client -e "$STATEMENT" >"$WORK/answer" 2>&1 &
ASKED=$!
# The new table's files come, and go: all files have their last names then, and only the binary log is to be synced.
wait_for_files() {
    for _ in $(seq 1000); do
        if ! compgen -G "$WORK/live/data/d/#sql*" >/dev/null; then
            [ "$1" = come ] || return 0
        elif [ "$1" = come ]; then
            return 0
        fi
        sleep 0.01
    done
    none "the files of the statement do not $1"
}
wait_for_files come
wait_for_files go
kill -0 "$ASKED" 2>/dev/null || none "the statement was not held: $(cat "$WORK/answer")"
kill -STOP "$SERVER_PID"
cp --sparse=always "$WORK/live.img" "$WORK/cut.img"
kill "$HOLDER"
wait "$HOLDER" 2>/dev/null || true
HOLDER=
end_server KILL
umount "$WORK/live"

mount -o "$OPTIONS" "$WORK/cut.img" "$WORK/cut"
start cut
seen 'after recovery, SELECT COUNT(*)' "$(rows)" 2
client -e "INSERT INTO d.t (id, v) VALUES (3, 'c')" || true
FILES=$(files)
seen 'its files' "${FILES//sql-alter-*.ibd/sql-alter.ibd t.ibd}" '#sql-alter.ibd t.ibd'
end_server
start cut
seen 'after one row more, a clean stop and another start' "$(rows)" \
    "ERROR 1877 (HY000) at line 1: Table \`d\`.\`t\` is corrupted. Please drop the table and recreate."
end_server
# By hand: the file with the rows gets the name that the server looks for.
for file in "$WORK"/cut/data/d/#sql-alter-*.ibd; do
    [ ! -e "$file" ] || mv -- "$file" "$WORK/cut/data/d/t.ibd"
done
start cut
seen 'after that file was renamed to t.ibd by hand, and a start' "$(rows)" 3
end_server
umount "$WORK/cut"
conclude
