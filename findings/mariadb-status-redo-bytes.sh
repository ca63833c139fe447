#!/usr/bin/env bash
# MariaDB: Innodb_os_log_written is the growth of the LSN, not the bytes of the writes, and Innodb_data_written leaves the redo log out.
#
#   mariadb-status-redo-bytes.sh [SERVER]     without SERVER: MariaDB 10.11 of Debian 12, in a temporary folder. It needs strace
#
# Expected: Innodb_os_log_written has the bytes that are written to the redo log's file. Innodb_data_writes and Innodb_data_written have
#   these writes in them, as in MySQL.
# Seen (10.11.19, 11.8.9): each write is a whole number of blocks, of 4,096 bytes here, and begins with what is in the block
#   already. 100 commits of a small UPDATE one after the other wrote 434,176 bytes, and Innodb_os_log_written grew by 26,893, as
#   the LSN did: a sixteenth. Innodb_data_writes and Innodb_data_written did not change, while Innodb_data_fsyncs counted the
#   log's 100 syncs. In MySQL 9.7.4 the same commits' writes and syncs of the log are in all three.
# Where it matters: throughput and operations of a volume that are estimated from the status. Innodb_log_writes has the number of writes;
#   for the bytes look at the device.
#
# Exit codes: 0 as stated; 1 changed; 2 usage; 3 it could not be set up.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname -- "$0")/lib.sh"

usage_for "$@"
command -v strace >/dev/null || none "strace is missing"
use_mariadb "${1-}"
case $VERSION in *MariaDB*) ;; *) none "it is not MariaDB: $VERSION" ;; esac
new_data "$WORK/data"
start_server "$WORK/data" "$WORK/log" || none "the server does not start: $(tail -n 3 "$WORK/log")"
client -e 'CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v INT) ENGINE = InnoDB; INSERT INTO d.t VALUES (1, 0)'
# What the start and the CREATE TABLE left to do.
sleep 3

HOLDER=
# shellcheck disable=SC2317,SC2329 # called by `clean`
also_clean() { [ -z "$HOLDER" ] || kill "$HOLDER" 2>/dev/null || true; }
strace -f -q -p "$SERVER_PID" -P "$WORK/data/ib_logfile0" -e trace=pwrite64 -o "$WORK/strace" 2>"$WORK/strace.log" &
HOLDER=$!
for _ in $(seq 100); do
    if grep -q "^TracerPid:[[:space:]]*$HOLDER$" "/proc/$SERVER_PID/status"; then break; fi
    sleep 0.1
done
grep -q "^TracerPid:[[:space:]]*$HOLDER$" "/proc/$SERVER_PID/status" || none "strace does not attach to the server"

NAMES="'Innodb_lsn_current', 'Innodb_os_log_written', 'Innodb_log_writes', 'Innodb_data_writes', 'Innodb_data_written', 'Innodb_data_fsyncs'"
status() { client -e "SHOW GLOBAL STATUS WHERE Variable_name IN ($NAMES)" >"$1"; }
growth() { awk -v name="$1" '$1 == name { if (NR == FNR) before = $2; else print $2 - before }' "$WORK/before" "$WORK/after"; }
status "$WORK/before"
for _ in $(seq 100); do echo 'UPDATE d.t SET v = v + 1;'; done | client
status "$WORK/after"
kill "$HOLDER"
wait "$HOLDER" || true
HOLDER=

# A call that another thread interrupts has its result on a line of its own.
read -r calls bytes < <(awk '/ = [0-9]+$/ { calls++; bytes += $NF } END { print calls + 0, bytes + 0 }' "$WORK/strace")
[ "$calls" -ge 100 ] || none "strace saw $calls writes"
written=$(growth Innodb_os_log_written)
echo "100 commits: $calls writes of $bytes bytes to ib_logfile0; Innodb_os_log_written grew by $written"
holds() { if "$@"; then echo yes; else echo no; fi; }
seen "Innodb_os_log_written grew as the LSN" "$written" "$(growth Innodb_lsn_current)"
seen "the file got more than one and a half times as many bytes" "$(holds test "$((bytes * 2))" -gt "$((written * 3))")" yes
seen "Innodb_log_writes grew by the writes to the file" "$(growth Innodb_log_writes)" "$calls"
seen "Innodb_data_writes and Innodb_data_written grew by" "$(growth Innodb_data_writes) $(growth Innodb_data_written)" "0 0"
seen "Innodb_data_fsyncs grew by 100 at least" "$(holds test "$(growth Innodb_data_fsyncs)" -ge 100)" yes
conclude
