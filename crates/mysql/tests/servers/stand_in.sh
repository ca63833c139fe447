#!/bin/sh
# A stand-in for a server, which ends at once. As far as its user may, it puts a link to a file or a directory of somebody
# else in the place of every name in its directories that may be opened after it. The test replaces @VICTIM@, and @KEEP@ by
# the names that it is to leave.
set -f
options=${1#--defaults-file=}
value() {
    sed -n "s/^$1=\"\\(.*\\)\"\$/\\1/p" "$options"
}
work=${options%/*}
socket=$(value socket)
names='.ebbtide-server.json ..ebbtide-server.json.new auto.cnf .auto.cnf.new ibdata1 ibtmp1 ib_buffer_pool
    ib_logfile0 ib_logfile0.moving ib_logfile1 #innodb_redo undo_001 undo_002 undo001 binlog.index .binlog.index.new
    binlog.000001 t.ibd #ib_16384_0.dblwr sbtest dump.sql sock server.pid server.json server.lock server.cnf
    .server.cnf.new server.log init.sql .init.sql.new client.cnf .client.cnf.new own empty'
for dir in "$(value datadir)" $(value innodb-log-group-home-dir) $(value innodb-undo-directory) $(value tmpdir) \
    "${socket%/*}" "$work" "${work%/*}"; do
    for name in $names; do
        case ' @KEEP@ ' in *" $name "*) continue ;; esac
        rm -rf "${dir:?}/$name" 2>/dev/null
        ln -s '@VICTIM@' "$dir/$name" 2>/dev/null
    done
done
exit 0
