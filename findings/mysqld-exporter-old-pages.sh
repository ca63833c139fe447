#!/usr/bin/env bash
# mysqld_exporter on MariaDB: the states of mysql_global_status_buffer_pool_pages add up to more than the buffer pool.
#
#   mysqld-exporter-old-pages.sh [SERVER]     without SERVER: MariaDB 10.11 of Debian 12, in a temporary folder
#
# Expected: "Innodb buffer pool pages by state": a page has one state, and the sum over `state` is the pool. The exporter leaves out
#   Innodb_buffer_pool_pages_total for that reason, and dirty pages have a metric of their own.
# Seen (mysqld_exporter 0.14.0 with MariaDB 10.11.19, 11.8.9): `old` is a state beside data, free and misc. Old pages are a part of the data
#   pages, about three eighths, so that a full pool is a third larger in the sum, and the share of free pages too small. MySQL has no such
#   variable.
# What to do: state=~"data|free|misc" in queries that add up.
#
# Exit codes: 0 as stated; 1 changed; 2 usage; 3 it could not be set up.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname -- "$0")/lib.sh"

usage_for "$@"
use_mariadb "${1-}"
case $VERSION in *MariaDB*) ;; *) none "it is not MariaDB: $VERSION" ;; esac
packages prometheus-mysqld-exporter=0.14.0-3+b5
new_data "$WORK/data"
start_server "$WORK/data" "$WORK/log" --innodb-buffer-pool-size=16M --innodb-lru-scan-depth=100 || none "the server does not start: $(tail -n 3 "$WORK/log")"
client -e "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, p CHAR(250)) ENGINE = InnoDB; INSERT INTO d.t (p) VALUES ('a')"
for _ in $(seq 16); do echo 'INSERT INTO d.t (p) SELECT p FROM d.t;'; done | client

DATA_SOURCE_NAME="root@unix($WORK/socket)/" prometheus-mysqld-exporter --web.listen-address=127.0.0.1:19199 >"$WORK/exporter.log" 2>&1 &
EXPORTER=$!
# shellcheck disable=SC2317,SC2329 # called by `clean`
also_clean() { kill "$EXPORTER" 2>/dev/null || true; }
for _ in $(seq 100); do
    if curl -sf http://127.0.0.1:19199/metrics >"$WORK/metrics"; then break; fi
    sleep 0.1
done
# The pages in the states that match $1.
pages() {
    awk -v states="^($1)$" -F '["} ]+' '$1 == "mysql_global_status_buffer_pool_pages{state=" && $2 ~ states { sum += $3 }
        END { print sum + 0 }' "$WORK/metrics"
}
[ "$(pages '.*')" -gt 0 ] || none "the exporter has no such metric: $(tail -n 1 "$WORK/exporter.log")"

total=$(client -e "SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_pages_total'" | cut -f 2)
echo "pages: data $(pages data), free $(pages free), misc $(pages misc), old $(pages old); Innodb_buffer_pool_pages_total: $total"
seen "data, free and misc are the pool" "$(pages 'data|free|misc')" "$total"
seen "the sum over all states is a quarter larger at least" "$(if [ "$(pages '.*')" -ge $((total * 5 / 4)) ]; then echo yes; else echo no; fi)" yes
conclude
