#!/usr/bin/env bash
# MariaDB 10.11 and 11.x: a torn first page (page 0) of a table's file is not restored from the doublewrite buffer.
#
#   torn-first-page.sh [--grow] [SERVER [OPTION...]]     SERVER: a mariadbd or mysqld instead of the pinned one
#
# Expected: a page with a valid copy in the doublewrite buffer is restored, whichever page it is.
# Seen: the root page of the table is restored, its first page is not: MariaDB 10.11.19, 11.4.5, 11.8.6. Cause and
# remedy: torn-first-page.md.
#
# --grow extends the table's file after the page was written, so that the log has its new size.
# The state is made anew, TRIES (5) times at most, where another page write came in between.
# The server is killed after page 0 and its doublewrite copy were written. Each case then starts it
# on a copy of that directory. A torn page is the new page with one of its four 4 KiB units old, as
# on storage that writes 4 KiB at a time.
#
# Exit codes: 0 not restored although a valid copy was there, as stated; 1 restored; 2 usage; 3 not set up.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname -- "$0")/lib.sh"

GROW=
if [ "${1-}" = --grow ]; then GROW=1 && shift; fi
usage_for "$@"
PAGE=16384 # bytes: the default innodb_page_size
UNIT=4096  # bytes: what the storage writes at a time
use_mariadb "$@"
[ $# = 0 ] || shift
EXTRA=("$@" --skip-log-bin --loose-innodb-log-file-size=32M)
case $VERSION in
    *MariaDB*) MAKE=mariadb ROOT=3 EXTRA+=(--skip-grant-tables --loose-skip-ssl) ;;
    *) MAKE=mysql ROOT=4 EXTRA+=(--mysqlx=OFF --secure-file-priv= --innodb-io-capacity=2000) ;;
esac

sql() { client -e "$1"; }

# Starts the server on the directory $1 of $WORK; its log is $1.log.
start() {
    start_server "$WORK/$1" "$WORK/$1.log" --innodb-fast-shutdown=0 --innodb-buffer-pool-dump-at-shutdown=0 \
        --innodb-buffer-pool-load-at-startup=0 "${EXTRA[@]}"
}

# Bytes $2 to $2 + $3 of a file, in hexadecimal.
hex() { od -An -v -tx1 -j "$2" -N "$3" "$1" | tr -d ' \n'; }
lsn() { echo $((16#$(hex "$1" $(($2 + 16)) 8))); }

# Prints FILE OFFSET of a doublewrite copy that equals page $1 of the table's file.
copy_of() {
    local file offset
    for file in "$WORK"/data/ibdata1 "$WORK"/data/*.dblwr; do
        [ -f "$file" ] || continue
        for ((offset = 0; offset < $(stat -c %s "$file"); offset += PAGE)); do
            if cmp -s -n $PAGE -i "$offset:$(($1 * PAGE))" "$file" "$WORK/data/test/t.ibd"; then
                echo "$file $offset" && return
            fi
        done
    done
    return 1
}

# Lets the page cleaner write all dirty pages. MySQL before 8.0.20 has its doublewrite buffer in ibdata1: FLUSH TABLES
# writes one page at a time, and keeps the copies of the last eight; a batch keeps those of 120 pages.
write_in_a_batch() {
    local dirty="SELECT VARIABLE_VALUE FROM performance_schema.global_status WHERE VARIABLE_NAME = 'Innodb_buffer_pool_pages_dirty'"
    sql 'SET GLOBAL innodb_max_dirty_pages_pct_lwm = 0, GLOBAL innodb_max_dirty_pages_pct = 0'
    for _ in $(seq 100); do
        if [ "$(sql "$dirty")" = 0 ]; then break; fi
        sleep 0.1
    done
    sql 'SET GLOBAL innodb_max_dirty_pages_pct = 90'
}

# Makes $WORK/data as a crash leaves it, and $WORK/before.ibd: the file at the last checkpoint.
make_state() {
    rm -rf "$WORK/data" "$WORK/data.log"
    if [ $MAKE = mysql ]; then
        "$SERVER" --no-defaults ${OWN[@]+"${OWN[@]}"} --datadir="$WORK/data" --user="$(id -un)" --initialize-insecure "${EXTRA[@]}" \
            >"$WORK/data.log" 2>&1 || none "--initialize-insecure failed: $(tail -n 3 "$WORK/data.log")"
    else
        mkdir -p "$WORK/data"
    fi
    start data || none "the server does not start: $(tail -n 3 "$WORK/data.log")"
    # 4,096 rows, of which one in eight stays: their pages are free after the purge of a slow end.
    sql 'CREATE DATABASE IF NOT EXISTS test'
    sql 'CREATE TABLE test.t (a INT AUTO_INCREMENT PRIMARY KEY, b CHAR(200)) ENGINE=InnoDB CHARSET=latin1'
    sql "INSERT INTO test.t (b) VALUES ('row')"
    for _ in $(seq 12); do sql 'INSERT INTO test.t (b) SELECT b FROM test.t'; done
    sql 'DELETE FROM test.t ORDER BY a DESC LIMIT 3584'
    end_server TERM
    cp "$WORK/data/test/t.ibd" "$WORK/before.ibd"

    start data || none "the server does not start: $(tail -n 3 "$WORK/data.log")"
    # Pages are taken from the free ones: page 0 changes, and the file's size does not.
    sql 'INSERT INTO test.t (b) SELECT b FROM test.t'
    # Writes the table's pages, through the doublewrite buffer, and no checkpoint.
    if [ $MAKE = mysql ] && ! compgen -G "$WORK/data/*.dblwr" >/dev/null; then
        write_in_a_batch
    else
        sql 'FLUSH TABLES test.t FOR EXPORT; UNLOCK TABLES'
    fi
    cp "$WORK/data/test/t.ibd" "$WORK/written.ibd"
    # Committed and in the log; the page that it is in is not written again.
    sql "UPDATE test.t SET b = 'in the log only' ORDER BY a LIMIT 1"
    if [ -n "$GROW" ]; then
        for _ in 1 2 3 4; do sql 'INSERT INTO test.t (b) SELECT b FROM test.t'; done
    fi
    ROWS=$(sql "SELECT COUNT(*), SUM(b = 'in the log only') FROM test.t")
    end_server KILL
}

# Whether the state is what it has to be, with the torn copies page-0 and page-$ROOT. Says why not.
check_state() {
    local page
    for page in 0 $ROOT; do
        cmp -s -n $PAGE -i $((page * PAGE)) "$WORK/written.ibd" "$WORK/data/test/t.ibd" ||
            { echo "retry: page $page was written again" && return 1; }
        copy_of "$page" >/dev/null || { echo "retry: no doublewrite copy equals page $page" && return 1; }
        tear "$page" || return 1
    done
    rm -rf "$WORK/intact" && cp -a "$WORK/data" "$WORK/intact"
}

# Makes a copy of the directory with page $1 torn: the new page with its last unit old.
tear() {
    local last=$((($1 + 1) * PAGE / UNIT - 1)) torn=$WORK/page-$1/test/t.ibd file
    rm -rf "$WORK/page-$1" && cp -a "$WORK/data" "$WORK/page-$1"
    dd if="$WORK/before.ibd" of="$torn" bs=$UNIT skip=$last seek=$last count=1 conv=notrunc status=none
    for file in "$WORK/data/test/t.ibd" "$WORK/before.ibd"; do
        if cmp -s -n $PAGE -i $(($1 * PAGE)) "$torn" "$file"; then
            echo "retry: page $1 did not change in its last 4 KiB and elsewhere" && return 1
        fi
    done
}

# Puts the doublewrite copy of page 0 into the file of directory $1 by hand.
put_back() {
    local from
    read -r -a from <<<"$(copy_of 0)"
    dd if="${from[0]}" of="$WORK/$1/test/t.ibd" bs=$PAGE skip=$((from[1] / PAGE)) count=1 conv=notrunc status=none
}

# Starts the server on the directory $1, prints what it finds, and sets FOUND to whether that is all.
recover() {
    local found
    if start "$1"; then
        found=$(sql "SELECT COUNT(*), SUM(b = 'in the log only') FROM test.t" 2>&1) || true
    else
        found="the server does not start"
    fi
    end_server TERM
    FOUND=no
    if [ "$found" = "$ROWS" ]; then FOUND=all; fi
    printf '\n%s: %s\n    %s\n' "$1" "$2" "$(grep -v '^-*$\|^SELECT' <<<"$found" | tr '\t\n' '  ')"
    { grep -E 'first page of file|[Dd]oublewrite buffer|dblwr|DBLWR|orrupt|checkpoint[ _](LSN|lsn) *=' "$WORK/$1.log" || true; } |
        sed -E "s/^[-0-9:T .Z]+ //; s|$WORK/||g" | cut -c1-180 | uniq -c | head -n 8
}

TRIES=${TRIES:-5}
for try in $(seq "$TRIES"); do
    make_state
    if check_state; then break; fi
    [ "$try" != "$TRIES" ] || none "precondition not met: no valid copy of page 0 in the doublewrite buffer"
done
read -r -a COPY <<<"$(copy_of 0)"
NEW=$(lsn "$WORK/data/test/t.ibd" 0)
echo "page 0 of space $((16#$(hex "$WORK/before.ibd" 34 4))): LSN $NEW in the file, and the same page in" \
    "${COPY[0]##*/} at page $((COPY[1] / PAGE)); LSN $(lsn "$WORK/before.ibd" 0) in the file before"
echo "committed: ${ROWS/$'\t'/ } (rows, and rows changed after the table's pages were written)"

recover intact "nothing is torn"
[ $FOUND = all ] || none "the server does not recover the untouched directory"
CHECKPOINT=$(grep -oiE 'checkpoint[ _]lsn *= *[0-9]+' "$WORK/intact.log" | grep -oE '[0-9]+$' | head -n 1 || true)
[ "$NEW" -ge "${CHECKPOINT:-$NEW}" ] || none "precondition not met: a checkpoint ($CHECKPOINT) came after page 0"
recover page-$ROOT "page $ROOT, the root of the table, is torn: its last 4 KiB are old"
OTHER=$FOUND
cp -a "$WORK/page-0" "$WORK/by-hand" && put_back by-hand
recover page-0 "page 0 is torn: its last 4 KiB are old"
FIRST=$FOUND
recover by-hand "page 0 was torn, and the doublewrite copy put back by hand before the start"
[ $FOUND = all ] || none "precondition not met: the copy of page 0 is not valid"
cp -a "$WORK/page-0" "$WORK/too-late" && put_back too-late
if [ $FIRST != all ]; then recover too-late "as page-0, and the copy put back by hand after that start"; fi

printf '\npage %s restored: %s; page 0 restored: %s\n' $ROOT "${OTHER/all/yes}" "${FIRST/all/yes}"
if [ $FIRST != all ]; then
    verdict yes "torn first page NOT restored, a valid copy was in the doublewrite buffer"
fi
verdict no "torn first page restored from the doublewrite buffer"
