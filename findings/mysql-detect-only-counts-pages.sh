#!/usr/bin/env bash
# MySQL: with innodb_doublewrite = DETECT_ONLY, Innodb_dblwr_pages_written counts pages that are not written twice.
#
#   mysql-detect-only-counts-pages.sh [SERVER]     without SERVER: MySQL 9.7 of Debian sid, in a temporary folder
#
# Expected: pages written times the size of a page are the bytes of the doublewrite files.
# Seen (9.7.4): the counter grows as with ON, and the doublewrite files get less than a tenth of the bytes: the numbers
#   of the pages, and not what is in them.
#
# Exit codes: 0 as stated; 1 changed; 2 usage; 3 it could not be set up.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname -- "$0")/lib.sh"

usage_for "$@"
prepare mysql-9.7 "${1-}"

status() { sql "SELECT VARIABLE_VALUE FROM performance_schema.global_status WHERE VARIABLE_NAME = '$1'"; }
# Bytes of the doublewrite files that were written, as the performance schema has them.
copied() {
    sql "SELECT SUM_NUMBER_OF_BYTES_WRITE FROM performance_schema.file_summary_by_event_name
        WHERE EVENT_NAME = 'wait/io/file/innodb/innodb_dblwr_file'"
}

# Lets the page cleaner write all dirty pages, in batches: pages that are written one at a time (FLUSH TABLES) are not counted.
write_pages() {
    sql 'SET GLOBAL innodb_max_dirty_pages_pct_lwm = 0; SET GLOBAL innodb_max_dirty_pages_pct = 0'
    for _ in $(seq 100); do
        if [ "$(status Innodb_buffer_pool_pages_dirty)" = 0 ]; then break; fi
        sleep 0.1
    done
    sql 'SET GLOBAL innodb_max_dirty_pages_pct = 90'
}

# Changes all rows and has their pages written; prints the pages that are counted, and bytes of the doublewrite files.
pages_and_bytes() {
    local pages bytes
    pages=$(status Innodb_dblwr_pages_written) bytes=$(copied)
    sql 'UPDATE test.t SET b = a + b'
    write_pages
    echo $(($(status Innodb_dblwr_pages_written) - pages)) $(($(copied) - bytes))
}

start --innodb-doublewrite=ON --performance-schema=ON
sql 'CREATE DATABASE test; CREATE TABLE test.t (a INT PRIMARY KEY AUTO_INCREMENT, b BIGINT, c CHAR(250)) ENGINE=InnoDB'
sql "INSERT INTO test.t (b, c) VALUES (1, 'row')"
for _ in $(seq 13); do sql 'INSERT INTO test.t (b, c) SELECT b, c FROM test.t'; done
write_pages
read -r ON_PAGES ON_BYTES <<<"$(pages_and_bytes)"
sql 'SET GLOBAL innodb_doublewrite = DETECT_ONLY'
read -r PAGES BYTES <<<"$(pages_and_bytes)"
end_server
echo "  ON: $ON_PAGES pages are counted, $ON_BYTES bytes of doublewrite files; DETECT_ONLY: $PAGES pages, $BYTES bytes"
((ON_PAGES > 100 && ON_BYTES > ON_PAGES * 16384 / 2)) || none "with ON too few pages were written twice"
seen "DETECT_ONLY counts over 100 pages" "$((PAGES > 100))" 1
seen "DETECT_ONLY writes less than a tenth of their bytes" "$((BYTES < PAGES * 16384 / 10))" 1
conclude
