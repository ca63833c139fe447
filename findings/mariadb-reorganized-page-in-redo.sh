#!/usr/bin/env bash
# MariaDB: UPDATE of a column from NULL to a value writes many times the redo of the same UPDATE of a value.
#
#   mariadb-reorganized-page-in-redo.sh [SERVER]     without SERVER: MariaDB 11.8 of Debian 13, in a temporary folder
#
# Expected: a DATETIME that was NULL makes its row 5 bytes longer, so that the row is written anew in its page. That is the row
#   of 60 bytes and its undo record: under 300 bytes of redo.
# Seen (10.11.19, 11.8.9): 1,000 bytes for each row. A page that was filled in the order of its key has a sixteenth free. After
#   some 9 rows that is used, and the page is reorganized, for each 9 rows again. Each time the redo log gets most of the page.
#   MySQL 8.0.15 and 9.7.4 reorganize as often, log that they did, and write 150 bytes for each row.
#   A delivery of TPC-C updates 100 rows like that (ol_delivery_d): 123 KB of redo, 26 KB with MySQL.
#   Known: MDEV-21725, "Optimize btr_page_reorganize_low() redo logging", of 2020, about 10.5.
#
# index_page_reorg_successful of INNODB_METRICS counts the pages.
# Exit codes: 0 as stated; 1 changed; 2 usage; 3 it could not be set up.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname -- "$0")/lib.sh"

ROWS=16384

usage_for "$@"
prepare mariadb-11.8 "${1-}"

lsn() { sql 'SHOW ENGINE INNODB STATUS' | sed 's/\\n/\n/g' | awk '/^Log sequence number/ { print $4 }'; }
reorganized() { sql "SELECT COUNT FROM information_schema.INNODB_METRICS WHERE NAME = 'index_page_reorg_successful'"; }

# Executes a statement; prints bytes of redo for each row, and pages reorganized.
redo_of() {
    local before pages answer
    before=$(lsn) pages=$(reorganized)
    answer=$(sql "$1")
    [ -z "$answer" ] || none "$1: $answer"
    echo $((($(lsn) - before) / ROWS)) $(($(reorganized) - pages))
}

# A table of rows whose last column is $1, in the order of their key.
fill() {
    sql "DROP TABLE IF EXISTS test.t; CREATE TABLE test.t (id INT PRIMARY KEY, info CHAR(24), d DATETIME) ENGINE=InnoDB"
    sql "INSERT INTO test.t SELECT a.n * 128 + b.n, REPEAT('i', 24), $1 FROM test.n a, test.n b ORDER BY 1"
}

start --innodb-monitor-enable=module_index
sql "CREATE DATABASE IF NOT EXISTS test; CREATE TABLE test.n (n INT PRIMARY KEY) ENGINE=InnoDB;
    INSERT INTO test.n WITH RECURSIVE s AS (SELECT 0 AS n UNION ALL SELECT n + 1 FROM s WHERE n < 127) SELECT n FROM s"
fill "'2026-01-01'"
[ "$(sql 'SELECT COUNT(*) FROM test.t')" = "$ROWS" ] || none "the rows were not inserted: $(sql 'SELECT COUNT(*) FROM test.t')"
read -r VALUE_BYTES VALUE_PAGES <<<"$(redo_of "UPDATE test.t SET d = '2026-02-02'")"
fill NULL
read -r NULL_BYTES NULL_PAGES <<<"$(redo_of "UPDATE test.t SET d = '2026-02-02'")"
end_server
echo "  from a value: $VALUE_BYTES bytes of redo a row, $VALUE_PAGES pages reorganized"
echo "  from NULL:    $NULL_BYTES bytes of redo a row, $NULL_PAGES pages reorganized"
((NULL_PAGES > ROWS / 20 && VALUE_PAGES == 0)) || none "the pages were not filled as expected"
seen "from a value: under 150 bytes a row" "$((VALUE_BYTES < 150))" 1
seen "from NULL: over 600 bytes a row" "$((NULL_BYTES > 600))" 1
conclude
