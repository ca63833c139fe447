#!/usr/bin/env bash
# MariaDB: after an online resize the redo log is written through the page cache, although innodb_log_file_buffering is OFF.
#
#   mariadb-resized-redo-log-is-buffered.sh [SERVER]     without SERVER: MariaDB 11.8 of Debian 13, in a temporary folder
#
# Expected: SET GLOBAL innodb_log_file_size changes the size alone.
# Seen (10.11.19, 11.8.9): the new ib_logfile0 is open without O_DIRECT until the next start, and
#   innodb_log_file_buffering reads OFF. SET GLOBAL innodb_log_file_buffering = OFF does not bring O_DIRECT back; after ON it
#   answers success, and the variable stays ON.
#
# Linux only: it reads the flags in /proc/PID/fdinfo. The folder must be on a file system that takes O_DIRECT (TMPDIR).
# Exit codes: 0 as stated; 1 changed; 2 usage; 3 it could not be set up.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname -- "$0")/lib.sh"

usage_for "$@"
prepare mariadb-11.8 "${1-}"
BUFFERING='SELECT @@GLOBAL.innodb_log_file_buffering'
# O_DIRECT as this machine has it.
DIRECT=$(python3 -c 'import os; print(os.O_DIRECT)') || none "python3 is missing"

# Whether the server has its redo log open with O_DIRECT.
redo_log() {
    local file flags
    for file in "/proc/$SERVER_PID/fd"/*; do
        if [[ $(readlink "$file") == */data/ib_logfile0 ]]; then
            flags=$(awk '$1 == "flags:" { print $2 }' "/proc/$SERVER_PID/fdinfo/${file##*/}")
            if (((8#$flags & DIRECT) != 0)); then echo direct; else echo buffered; fi
            return
        fi
    done
    echo 'not open'
}

start --innodb-log-file-size=16M --innodb-flush-method=O_DIRECT
[ "$(redo_log)" = direct ] || none "the redo log is $(redo_log) after the start: the file system takes no O_DIRECT"
seen "after the start: innodb_log_file_buffering, ib_logfile0" "$(sql "$BUFFERING") $(redo_log)" "0 direct"
sql 'SET GLOBAL innodb_log_file_size = 33554432'
seen "after SET GLOBAL innodb_log_file_size = 33554432" "$(sql "$BUFFERING") $(redo_log)" "0 buffered"
sql 'SET GLOBAL innodb_log_file_buffering = OFF'
seen "after SET GLOBAL innodb_log_file_buffering = OFF" "$(sql "$BUFFERING") $(redo_log)" "0 buffered"
sql 'SET GLOBAL innodb_log_file_buffering = ON'
seen "after SET GLOBAL innodb_log_file_buffering = ON" "$(sql "$BUFFERING") $(redo_log)" "1 buffered"
seen "SET GLOBAL innodb_log_file_buffering = OFF answers" "$(sql 'SET GLOBAL innodb_log_file_buffering = OFF' && echo success)" success
seen "after it" "$(sql "$BUFFERING") $(redo_log)" "1 buffered"
end_server
start --innodb-log-file-size=32M --innodb-flush-method=O_DIRECT
seen "after a restart" "$(sql "$BUFFERING") $(redo_log)" "0 direct"
end_server
conclude
