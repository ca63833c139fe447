#!/usr/bin/env bash
# mysqld_exporter takes the times of a replica's last events for UTC: MariaDB gives them in its own time zone.
#
#   mysqld-exporter-event-time.sh [SERVER]     without SERVER: MariaDB 11.8 of Debian 13, in a temporary folder
#
# Expected: mysql_slave_status_master_last_event_time and mysql_slave_status_slave_last_event_time are Unix times, so that
#   `time() - mysql_slave_status_slave_last_event_time` is the age of the last event.
# Seen (mysqld_exporter 0.14.0 with MariaDB 11.8.9): Master_last_event_time and Slave_last_event_time of SHOW ALL SLAVES STATUS are
#   in the time zone of the connection (time_zone), and the exporter reads them as UTC. West of Greenwich a fresh event is hours old. East
#   of it the age is below 0, and an alarm on the age comes hours late. mysql_slave_status_master_slave_time_diff has no zone.
# What to do: end the exporter's data source with /?time_zone=%27%2B00:00%27, or run the server with time_zone = '+00:00'.
#
# The server runs 5 hours west of Greenwich, and replicates from itself.
#
# Exit codes: 0 as stated; 1 changed; 2 usage; 3 it could not be set up.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname -- "$0")/lib.sh"

usage_for "$@"
prepare mariadb-11.8 "${1-}"
packages prometheus-mysqld-exporter=0.14.0-3+b5

PORT=19197
START_WITH=(TZ=EST+5)
start --skip-networking=0 --bind-address=127.0.0.1 --port=$PORT --log-bin=bin --server-id=1 --replicate-same-server-id --skip-slave-start
START_WITH=()
client <<SQL >"$WORK/replica.log" 2>&1 || none "no replication: $(tail -n 1 "$WORK/replica.log")"
CREATE DATABASE IF NOT EXISTS mysql;
CREATE TABLE IF NOT EXISTS mysql.gtid_slave_pos (domain_id INT UNSIGNED, sub_id BIGINT UNSIGNED, server_id INT UNSIGNED NOT NULL,
    seq_no BIGINT UNSIGNED NOT NULL, PRIMARY KEY (domain_id, sub_id)) ENGINE = InnoDB;
CREATE DATABASE IF NOT EXISTS d;
CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = $PORT, MASTER_USER = 'root', MASTER_LOG_FILE = 'bin.000001',
    MASTER_LOG_POS = 4, MASTER_USE_GTID = no, MASTER_SSL = 0, MASTER_CONNECT_RETRY = 1;
SQL
# Nothing is written to the binary log after this, so that the replica does not replicate its own.
client -e "CREATE OR REPLACE TABLE d.t (a INT); START SLAVE"
event=$(date +%s)

# The replica's value by its name.
replica() { client --column-names -e 'SHOW ALL SLAVES STATUS\G' | awk -v name="$1:" '$1 == name { $1 = ""; print substr($0, 2) }'; }
for _ in $(seq 100); do
    if [[ $(replica Slave_last_event_time) == *:* ]]; then break; fi
    sleep 0.1
done
# The events before the last one may still be on their way.
sleep 1
shown=$(replica Slave_last_event_time)
[[ $shown == *:* ]] || none "no event was replicated: $(replica Last_IO_Error) $(replica Last_SQL_Error)"
echo "the event: $(date -u -d "@$event" '+%F %T') UTC; Slave_last_event_time: $shown"

EXPORTER=''
# shellcheck disable=SC2317,SC2329 # called by `clean`
also_clean() { [ -z "$EXPORTER" ] || kill "$EXPORTER" 2>/dev/null || true; }
# Reads the exporter's metrics, with an end of its data source ($1).
scrape() {
    DATA_SOURCE_NAME="root@unix($WORK/socket)/$1" prometheus-mysqld-exporter --collect.slave_status \
        --web.listen-address=127.0.0.1:19199 >"$WORK/exporter.log" 2>&1 &
    EXPORTER=$!
    for _ in $(seq 100); do
        if curl -sf http://127.0.0.1:19199/metrics >"$WORK/metrics"; then break; fi
        sleep 0.1
    done
    kill "$EXPORTER" || none "the exporter ended: $(tail -n 1 "$WORK/exporter.log")"
    wait "$EXPORTER" || true
    EXPORTER=''
}
# How many hours before the event the exporter's time ($1) is, to the nearest minute.
hours_before() {
    awk -v name="mysql_slave_status_$1{" -v event="$event" \
        'index($1, name) == 1 { printf "%g\n", int((event - $2) / 60 + 0.5) / 60 }' "$WORK/metrics"
}
scrape ''
seen "hours between the event and master_last_event_time" "$(hours_before master_last_event_time)" 5
seen "hours between the event and slave_last_event_time" "$(hours_before slave_last_event_time)" 5
scrape '?time_zone=%27%2B00:00%27'
seen "the same with a data source that ends with time_zone = '+00:00'" "$(hours_before slave_last_event_time)" 0
conclude
