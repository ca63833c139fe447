#!/usr/bin/env bash
# MariaDB: a SET GLOBAL innodb_log_file_size that is killed while it waits answers success, and changes nothing.
#
#   mariadb-killed-resize-answers-success.sh [SERVER]     without SERVER: MariaDB 11.8 of Debian 13, in a temporary folder
#
# Expected: a killed statement ends with an error (1317, interrupted), as others do; success means the new size.
# Seen (10.11.19, 11.8.9): Query OK, and innodb_log_file_size is the old one. A script that checks the exit code of
#   its client takes the log for larger than it is: read the variable back.
# A resize waits for a checkpoint, about a second on an idle server. TRIES (10) resizes are killed; one is enough.
#
# Exit codes: 0 as stated; 1 changed; 2 usage; 3 it could not be set up.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname -- "$0")/lib.sh"

usage_for "$@"
prepare mariadb-11.8 "${1-}"
SIZE='SELECT @@GLOBAL.innodb_log_file_size'
WAITING="SELECT id FROM information_schema.processlist WHERE info LIKE 'SET GLOBAL innodb_log%'"

# Resizes to $1 MiB and kills that as soon as it is seen; sets CODE to the exit code of its client, OLD and NEW to the sizes.
killed_resize() {
    local client id=
    OLD=$(sql "$SIZE")
    sql "SET GLOBAL innodb_log_file_size = $1 * 1048576" >"$WORK/answer" &
    client=$!
    for _ in $(seq 100); do
        id=$(sql "$WAITING" | head -n 1)
        if [ -n "$id" ]; then break; fi
        kill -0 "$client" 2>/dev/null || break
    done
    [ -z "$id" ] || sql "KILL QUERY $id" >"$WORK/kill" || true
    if wait "$client"; then CODE=0; else CODE=$?; fi
    NEW=$(sql "$SIZE")
}

start --innodb-log-file-size=16M
for try in $(seq "${TRIES:-10}"); do
    killed_resize $((400 + 16 * try))
    if [ "$OLD" = "$NEW" ]; then
        seen "a resize from $OLD to $(((400 + 16 * try) * 1048576)) bytes, killed" "exit code $CODE, $NEW bytes$(cat "$WORK/answer")" \
            "exit code 0, $OLD bytes"
        end_server
        conclude
    fi
done
none "no resize of ${TRIES:-10} was killed before it was done"
