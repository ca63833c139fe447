#!/usr/bin/env bash
# Of a number in an option file, the servers read the first letter behind the digits, and pass over the rest.
#
#   option-file-number-suffix.sh [SERVER]     without SERVER: MariaDB 10.11 of Debian 12, in a temporary folder
#
# Expected: `1G512M`, `300ms` and `1e3` are refused, as `1.5G` and `8 G` are ("Unknown suffix"), or mean what they say.
# Seen, without a message (MariaDB 10.11.19 and 11.8.9, MySQL 8.0.15 and 9.7.4): 1G512M is 1 GiB, 64Mx is 64 MiB, `300ms` is 300 MiB,
#   and `4kb` 4,096. The e of `1e3` is exbi: 2^60, which is then cut down to the most that the variable may have.
#
# Exit codes: 0 as stated; 1 changed; 2 usage; 3 it could not be set up.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname -- "$0")/lib.sh"

usage_for "$@"
use_mariadb "${1-}"

# What the server makes of a value ($2) of a variable ($1), by its own --verbose --help; the first error where it refuses it.
made_of() {
    printf '[mysqld]\n%s = %s\n' "$1" "$2" >"$WORK/my.cnf"
    "$SERVER" --defaults-file="$WORK/my.cnf" ${OWN[@]+"${OWN[@]}"} --datadir="$WORK" --verbose --help >"$WORK/help" 2>"$WORK/errors" || true
    if grep -q 'Unknown suffix' "$WORK/errors"; then
        echo refused
    else
        awk -v name="${1//_/-}" '$1 == name { print $2; exit }' "$WORK/help"
    fi
}

while read -r name value stated; do
    value=${value//_/ }
    seen "$name = $value" "$(made_of "$name" "$value")" "$stated"
done <<'ROWS'
innodb_buffer_pool_size 1G 1073741824
innodb_buffer_pool_size 1G512M 1073741824
innodb_buffer_pool_size 10GB 10737418240
innodb_buffer_pool_size 1.5G refused
innodb_buffer_pool_size 8_G refused
innodb_io_capacity 4kb 4096
innodb_io_capacity 300ms 314572800
max_allowed_packet 1e3 1073741824
ROWS
conclude
