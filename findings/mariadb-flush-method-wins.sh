#!/usr/bin/env bash
# MariaDB from 11.0 on: the deprecated option innodb_flush_method decides innodb_data_file_buffering at each start.
#
#   mariadb-flush-method-wins.sh [SERVER]     without SERVER: MariaDB 11.8 of Debian 13, in a temporary folder
#
# Expected: innodb_data_file_buffering = OFF in the option file beside innodb_flush_method = fsync turns the page cache off: it is
#   the newer variable, and SET GLOBAL changes it while the server runs.
# Seen (11.8.9): SET GLOBAL works until the next start. Then innodb_flush_method wins over the other option, whatever
#   their order, and without a message. O_DIRECT does not win: innodb_data_file_buffering = ON holds beside it.
# What to do: remove innodb_flush_method from the option files.
#
# Exit codes: 0 as stated; 1 changed; 2 usage; 3 it could not be set up.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname -- "$0")/lib.sh"

usage_for "$@"
prepare mariadb-11.8 "${1-}"
BUFFERING='SELECT @@GLOBAL.innodb_data_file_buffering'

start --innodb-flush-method=fsync
seen "innodb-flush-method=fsync" "$(sql "$BUFFERING")" 1
sql 'SET GLOBAL innodb_data_file_buffering = OFF'
seen "after SET GLOBAL innodb_data_file_buffering = OFF" "$(sql "$BUFFERING")" 0
end_server
start --innodb-flush-method=fsync --innodb-data-file-buffering=OFF
seen "innodb-flush-method=fsync, innodb-data-file-buffering=OFF" "$(sql "$BUFFERING")" 1
end_server
start --innodb-data-file-buffering=OFF --innodb-flush-method=fsync
seen "the same in the other order" "$(sql "$BUFFERING")" 1
end_server
start --innodb-flush-method=O_DIRECT --innodb-data-file-buffering=ON
seen "innodb-flush-method=O_DIRECT, innodb-data-file-buffering=ON" "$(sql "$BUFFERING")" 1
end_server
start --innodb-data-file-buffering=OFF
seen "innodb-data-file-buffering=OFF alone" "$(sql "$BUFFERING")" 0
end_server
conclude
