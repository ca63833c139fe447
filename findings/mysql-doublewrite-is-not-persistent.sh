#!/usr/bin/env bash
# MySQL: innodb_doublewrite changes between ON and DETECT_ONLY by SET GLOBAL, never from or to OFF, and SET PERSIST refuses it.
#
#   mysql-doublewrite-is-not-persistent.sh [SERVER]     without SERVER: MySQL 9.7 of Debian sid, in a temporary folder
#
# Expected: a global variable that SET GLOBAL changes takes SET PERSIST too, and either all of its values can be set or none.
# Seen (9.7.4): error 1238 (non persistent variable) of SET PERSIST and SET PERSIST_ONLY; error 1210 of SET GLOBAL from
#   and to OFF. The option file has to keep the value.
#
# Exit codes: 0 as stated; 1 changed; 2 usage; 3 it could not be set up.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname -- "$0")/lib.sh"

usage_for "$@"
prepare mysql-9.7 "${1-}"

# The number of the error of a statement, or the value after it.
answer() {
    local text
    if text=$(sql "$1"); then sql 'SELECT @@GLOBAL.innodb_doublewrite'; else grep -oE 'ERROR [0-9]+' <<<"$text" | head -n 1; fi
}

start --innodb-doublewrite=DETECT_ONLY
seen "from DETECT_ONLY: SET GLOBAL innodb_doublewrite = ON" "$(answer 'SET GLOBAL innodb_doublewrite = ON')" ON
seen "from ON: SET GLOBAL innodb_doublewrite = DETECT_ONLY" "$(answer 'SET GLOBAL innodb_doublewrite = DETECT_ONLY')" DETECT_ONLY
seen "SET PERSIST innodb_doublewrite = ON" "$(answer 'SET PERSIST innodb_doublewrite = ON')" "ERROR 1238"
seen "SET PERSIST_ONLY innodb_doublewrite = ON" "$(answer 'SET PERSIST_ONLY innodb_doublewrite = ON')" "ERROR 1238"
seen "from DETECT_ONLY: SET GLOBAL innodb_doublewrite = OFF" "$(answer 'SET GLOBAL innodb_doublewrite = OFF')" "ERROR 1210"
end_server
start --innodb-doublewrite=OFF
seen "from OFF: SET GLOBAL innodb_doublewrite = ON" "$(answer 'SET GLOBAL innodb_doublewrite = ON')" "ERROR 1210"
end_server
conclude
