#!/usr/bin/env bash
# `[ mysqld ]` in an option file is a group that no server reads; `[mysqld ]` is read.
#
#   option-file-blank-in-group.sh [SERVER]     without SERVER: MariaDB 10.11 of Debian 12, in a temporary folder
#
# Expected: blanks around the name of a group do not matter, as those around the name of an option do not; or the file is refused.
# Seen (MariaDB 10.11.19 and 11.8.9, MySQL 8.0.15 and 9.7.4): a blank before `]` is left out, one behind `[` is a part of the name. All
#   options below it are passed over without a message, such as those of a file that a program with such a style has written.
#
# Exit codes: 0 as stated; 1 changed; 2 usage; 3 it could not be set up.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname -- "$0")/lib.sh"

usage_for "$@"
use_mariadb "${1-}"

# What the server is started with by an option below a heading ($1).
started() {
    printf '%s\nsync_binlog=1\n' "$1" >"$WORK/my.cnf"
    "$SERVER" --defaults-file="$WORK/my.cnf" --print-defaults | tail -n 1
}

seen "[mysqld]" "$(started '[mysqld]')" "--sync_binlog=1"
seen "[mysqld ]" "$(started '[mysqld ]')" "--sync_binlog=1"
seen "[MySQLd]" "$(started '[MySQLd]')" "--sync_binlog=1"
seen "[ mysqld ]" "$(started '[ mysqld ]')" ""
conclude
