#!/usr/bin/env bash
# INNODB_CMPMEM.RELOCATION_TIME is in whole seconds. MySQL's manual says microseconds, and mysqld_exporter divides it by 1,000.
#
#   innodb-cmpmem-seconds.sh [SERVER]     without SERVER: MariaDB 10.11 of Debian 12, in a temporary folder. It needs a C compiler
#
# Expected: microseconds, as the manual of MySQL says; then mysql_info_schema_innodb_cmpmem_relocation_time_seconds_total of mysqld_exporter,
#   "Total time in seconds", is 1,000 times too large, as it is the column divided by 1,000.
# Seen (MariaDB 10.11.19, 11.8.9, MySQL 8.0.15, 9.7.4; mysqld_exporter 0.14.0): the servers count microseconds and show whole seconds, rounded
#   down (i_s_cmpmem_fill_low of i_s.cc). The knowledge base of MariaDB says seconds. The exporter's value is the 1,000th part of the time.
# What to do: multiply the exporter's metric by 1,000. Relocations are fast, so that both are 0 on most servers.
#
# To make relocations that take long, a library in LD_PRELOAD lets each copy of 1,024 bytes last 12 ms. Relocations of
# pages of 1 KiB are such copies. It takes 10 seconds with MariaDB, and a minute with MySQL.
#
# Exit codes: 0 as stated; 1 changed; 2 usage; 3 it could not be set up.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname -- "$0")/lib.sh"

usage_for "$@"
command -v cc >/dev/null || none "a C compiler (cc) is missing"
if [ -n "${1-}" ]; then prepare - "$1"; else use_mariadb "" && new_data "$WORK/data"; fi
packages prometheus-mysqld-exporter=0.14.0-3+b5

cat >"$WORK/slow.c" <<'C'
#include <stddef.h>
#include <time.h>
void *memcpy(void *to, const void *from, size_t size) {
    char *target = to;
    const char *source = from;
    if (size == 1024) nanosleep(&(struct timespec){.tv_nsec = 12000000}, NULL);
    while (size-- > 0) *target++ = *source++;
    return to;
}
C
cc -O2 -fno-builtin -fno-tree-loop-distribute-patterns -shared -fPIC -o "$WORK/slow.so" "$WORK/slow.c" || none "cc failed"

START_WITH=("LD_PRELOAD=$WORK/slow.so")
start_server "$WORK/data" "$WORK/log" --innodb-buffer-pool-size=6M --innodb-flush-log-at-trx-commit=0 --innodb-doublewrite=OFF ||
    none "the server does not start: $(tail -n 3 "$WORK/log")"
START_WITH=()
client <<'SQL' >"$WORK/tables.log" 2>&1 || none "no tables: $(tail -n 1 "$WORK/tables.log")"
CREATE DATABASE d;
USE d;
CREATE TABLE k8 (id INT PRIMARY KEY AUTO_INCREMENT, p VARBINARY(400)) ROW_FORMAT = COMPRESSED KEY_BLOCK_SIZE = 8;
CREATE TABLE k1 (id INT PRIMARY KEY, p VARBINARY(400)) ROW_FORMAT = COMPRESSED KEY_BLOCK_SIZE = 1;
INSERT INTO k8 (p) VALUES (REPEAT('ab', 100));
SQL
for _ in $(seq 13); do echo 'INSERT INTO d.k8 (p) SELECT p FROM d.k8;'; done | client
client -e 'INSERT INTO d.k1 SELECT * FROM d.k8'

# The row of the pages of 1 KiB: relocations, and their time as the column has it.
relocations() { client -e 'SELECT SUM(relocation_ops), SUM(relocation_time) FROM information_schema.innodb_cmpmem WHERE page_size = 1024'; }
for round in $(seq 120); do
    for table in k8 k1; do
        echo "SELECT COUNT(p) FROM d.$table; UPDATE d.$table SET p = REVERSE(p) WHERE id % 7 = $round % 7;"
    done | client >/dev/null
    read -r count column < <(relocations)
    if [ "$count" -ge 130 ]; then break; fi
done
[ "$count" -ge 130 ] || none "$count relocations were made"
echo "relocations of 1 KiB: $count, of 12 ms at least each; RELOCATION_TIME: $column"
between() { if [ "$1" -ge "$2" ] && [ "$1" -le "$3" ]; then echo yes; else echo "no: $1"; fi; }
seen "RELOCATION_TIME is from the relocations times 12 ms to 60, in seconds" "$(between "$column" $((count * 12 / 1000)) 60)" yes

DATA_SOURCE_NAME="root@unix($WORK/socket)/" prometheus-mysqld-exporter --collect.info_schema.innodb_cmpmem \
    --web.listen-address=127.0.0.1:19199 >"$WORK/exporter.log" 2>&1 &
EXPORTER=$!
# shellcheck disable=SC2317,SC2329 # called by `clean`
also_clean() { kill "$EXPORTER" 2>/dev/null || true; }
for _ in $(seq 100); do
    if curl -sf http://127.0.0.1:19199/metrics >"$WORK/metrics"; then break; fi
    sleep 0.1
done
metric=mysql_info_schema_innodb_cmpmem_relocation_time_seconds_total
value=$(awk -v name="$metric{" 'index($1, name) == 1 && /page_size="1024"/ { sum += $2; rows++ } END { if (rows) print sum * 1000 }' "$WORK/metrics")
[ -n "$value" ] || none "the exporter has no such metric: $(tail -n 1 "$WORK/exporter.log")"
read -r _ column < <(relocations)
seen "the exporter's seconds times 1,000 are the column" "$(if [ "$value" = "$column" ]; then echo yes; else echo "no: $value, $column"; fi)" yes
conclude
