#!/usr/bin/env bash
# MariaDB 10.11 and 11.8: a table is lost by a power cut that follows an ALTER TABLE which has answered.
#
#   unsynced-rename.sh [SERVER [OPTION...]]     SERVER: a mariadbd, 10.6 or later, instead of the pinned one
#
# Expected: what a server has answered survives, as DDL is atomic in MariaDB from 10.6 on.
# Seen: 3 of 3 altered tables are gone, with SERVER 10.11.19 and 11.8.9, on ext4 and XFS. Causes and remedies:
# unsynced-rename.md. It needs root, a loop device and mkfs.
#
# For each statement: the server runs on a new file system in a file, everything is synced, the statement is
# run, and when it has answered, the file is copied: what is in it is what reached the disk. The copy is
# mounted, and a server recovers and reads the table. SERVER and OPTION are those of both starts, for example
# --log-bin=b --sync-binlog=1. FS=xfs makes it XFS (ext4), MOUNT=OPTIONS adds mount options, for example
# dirsync.
#
# Exit codes: 0 tables were lost, as stated; 1 none was; 2 usage; 3 not set up.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname -- "$0")/lib.sh"

usage_for "$@"
FS=${FS:-ext4}
# shellcheck disable=SC2317,SC2329 # called by `clean`
also_clean() {
    local image
    for image in live cut; do
        if mountpoint -q "$WORK/$image"; then umount "$WORK/$image"; fi
    done
}

[ "$(id -u)" = 0 ] || none "only root can mount"
for program in "mkfs.$FS" losetup; do
    command -v "$program" >/dev/null || none "$program is missing"
done
use_mariadb "$@"
[ $# = 0 ] || shift
EXTRA=("$@")
case $VERSION in *MariaDB*) ;; *) none "it is not MariaDB: $VERSION" ;; esac

# Starts the server on the file system at $1; fails where it does not answer.
start() {
    start_server "$WORK/$1/data" "$WORK/$1.log" \
        --innodb-buffer-pool-size=32M \
        --loose-innodb-log-file-size=8M --innodb-flush-log-at-trx-commit=1 ${EXTRA[@]+"${EXTRA[@]}"}
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
    kill -STOP "$SERVER_PID"
    cp --sparse=always "$WORK/live.img" "$WORK/cut.img"
    end_server
    umount "$WORK/live"
    mount -o loop "$WORK/cut.img" "$WORK/cut"
    if start cut; then
        said=$(client -e "SELECT COUNT(*) FROM d.$table" 2>&1 | tail -n 1) || true
    else
        said="the server does not start: $(grep ERROR "$WORK/cut.log" | tail -n 1)"
    fi
    end_server
    umount "$WORK/cut"
    printf '%-42s %s\n' "$statement" "${said/#2/2 rows}"
    [ "$said" = 2 ] || LOST=$((LOST + 1))
}

echo "options: ${EXTRA[*]-none}, on $FS${MOUNT:+ with $MOUNT}"
mkdir "$WORK/live" "$WORK/cut"
truncate -s 400M "$WORK/new"
"mkfs.$FS" -q "$WORK/new"
mount -o loop "$WORK/new" "$WORK/live" || none "this machine does not mount"
new_data "$WORK/live/data"
umount "$WORK/live"
LOST=0
cut_after 'ALTER TABLE d.t ADD COLUMN w INT' t
cut_after 'ALTER TABLE d.t DROP COLUMN v' t
cut_after 'ALTER TABLE d.t RENAME TO d.u' u
[ "$LOST" = 0 ] || verdict yes "$LOST of 3 tables LOST by a power cut after the statement had answered"
verdict no "no table was lost"
