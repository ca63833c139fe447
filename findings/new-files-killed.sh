#!/usr/bin/env bash
# MariaDB 10.11 and 11.8: a server that made its own InnoDB files, and is killed before its first end, does not start again.
#
#   new-files-killed.sh [SERVER [OPTION...]]     SERVER: a mariadbd instead of the pinned one
#
# Expected: as the redo log is synced at each commit, the server recovers, and the committed row is there.
# Seen: InnoDB refuses ibdata1, "wrong space ID. It should be 0, but 0 was found", 10 s after the start as well as at once; the
# table is out of reach. A server that ended once, as that of mariadb-install-db has, recovers (the second case).
#
# Exit codes: 0 as stated; 1 it recovers, or the second case does not; 2 usage; 3 not set up.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname -- "$0")/lib.sh"

usage_for "$@"
use_mariadb "$@"
[ $# = 0 ] || shift
case $VERSION in *MariaDB*) ;; *) none "it is not MariaDB: $VERSION" ;; esac
EXTRA=("$@" --innodb-flush-log-at-trx-commit=1)

# Commits a row on the data directory $1, waits $2 seconds, kills the server and starts it again; sets FOUND.
commit_and_kill() {
    start_server "$1" "$1.log" "${EXTRA[@]}" || none "the server does not start: $(tail -n 3 "$1.log")"
    client -e "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY) ENGINE=InnoDB; INSERT INTO d.t VALUES (1)"
    sleep "$2"
    end_server KILL
    if start_server "$1" "$1.again.log" "${EXTRA[@]}"; then
        FOUND="$(client -e 'SELECT COUNT(*) FROM d.t' 2>&1) row"
    else
        FOUND=$(grep -o 'ibdata1. has the wrong space ID.*' "$1.again.log" | head -n 1 || true)
    fi
    end_server KILL
    printf '%-50s %s\n' "$3" "$FOUND"
}

new_data "$WORK/ended"
commit_and_kill "$WORK/ended" 0 'files of a server that ended once:'
AFTER_END=$FOUND
mkdir "$WORK/new" "$WORK/later"
commit_and_kill "$WORK/new" 0 'files that the killed server made, at once:'
AT_ONCE=$FOUND
commit_and_kill "$WORK/later" 10 'files that the killed server made, after 10 s:'
[ "$AFTER_END" = '1 row' ] || verdict no "not even a server that ended once recovers"
case "$AT_ONCE$FOUND" in
    *'wrong space ID'*'wrong space ID'*) verdict yes "a server killed before its first end does NOT start again" ;;
esac
verdict no "a server killed before its first end starts again"
