#!/usr/bin/env bash
# A comment of an option file that is longer than 4,094 bytes sets an option.
#
#   option-file-long-comment.sh [SERVER]     without SERVER: MariaDB 10.11 of Debian 12, in a temporary folder
#
# Expected: a line that begins with `#` is a comment, whatever its length; or the file is refused.
# Seen (MariaDB 10.11.19 and 11.8.9, MySQL 8.0.15), without a message: lines are read in pieces of 4,094 bytes, and each piece is a line
#   of its own. What follows these bytes of a comment is an option, and wins over the line before. A value of that length is cut, and its
#   rest is an option, too. MySQL 9.7.4 reads whole lines.
# Where it matters: files that a program writes with long comments or lists, such as `binlog_do_db`, or a comment with a certificate.
#
# Exit codes: 0 as stated; 1 changed; 2 usage; 3 it could not be set up.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname -- "$0")/lib.sh"

usage_for "$@"
use_mariadb "${1-}"

# What the server is started with by a file that sets sync_binlog = 1, and has then a comment of $1 bytes, with its `#`, in front of
# the words `sync_binlog=0`.
started() {
    {
        printf '[mysqld]\nsync_binlog=1\n#'
        head -c "$(($1 - 1))" /dev/zero | tr '\0' x
        printf 'sync_binlog=0\n'
    } >"$WORK/my.cnf"
    "$SERVER" --defaults-file="$WORK/my.cnf" --print-defaults | tail -n 1
}

seen "a comment of 100 bytes, then sync_binlog=0 in the same line" "$(started 100)" "--sync_binlog=1"
seen "a comment of 4,093 bytes, then the same" "$(started 4093)" "--sync_binlog=1 --ync_binlog=0"
seen "a comment of 4,094 bytes, then the same" "$(started 4094)" "--sync_binlog=1 --sync_binlog=0"
conclude
