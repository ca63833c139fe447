#!/usr/bin/env bash
# `read_only = yes` in an option file turns read_only off.
#
#   option-file-yes-is-off.sh [SERVER]     without SERVER: MariaDB 10.11 of Debian 12, in a temporary folder
#
# Expected: `yes` turns a switch on and `no` turns it off; or the server refuses the word, as SET GLOBAL does (error 1231).
# Seen (MariaDB 10.11.19 and 11.8.9, MySQL 8.0.15 and 9.7.4): switches know ON, OFF, TRUE, FALSE, 1 and 0. With another word most are
#   OFF, with a warning in the log alone (MariaDB: "boolean value 'yes' wasn't recognized. Set to OFF."). Some switches of InnoDB
#   ignore the line instead: `innodb_flush_sync = no` leaves it ON. Which of the two it is depends on how the variable is declared.
# Where it matters: read_only and super_read_only of replicas, relay_log_recovery, log_slave_updates. Compare with SHOW GLOBAL VARIABLES.
#
# Exit codes: 0 as stated; 1 changed; 2 usage; 3 it could not be set up.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname -- "$0")/lib.sh"

usage_for "$@"
use_mariadb "${1-}"

# What the server makes of a line ($1) of an option file, by its own --verbose --help.
made_of() {
    printf '[mysqld]\n%s\n' "$1" >"$WORK/my.cnf"
    local name=${1%% *}
    "$SERVER" --defaults-file="$WORK/my.cnf" ${OWN[@]+"${OWN[@]}"} --datadir="$WORK" --verbose --help 2>/dev/null |
        awk -v name="${name//_/-}" '$1 == name && NF == 2 { print $2; exit }'
}

while read -r name value stated; do
    seen "$name = $value" "$(made_of "$name = $value")" "$stated"
done <<'ROWS'
read_only on TRUE
read_only yes FALSE
relay_log_recovery yes FALSE
log_slave_updates yes FALSE
innodb_adaptive_hash_index yes FALSE
innodb_flush_sync off FALSE
innodb_flush_sync no TRUE
innodb_file_per_table no TRUE
ROWS
conclude
