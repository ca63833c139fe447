//! Bytes of a database server: its answers on a connection, its binary log, its pages and its error log.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixListener;
use std::thread;

use ebbtide_load::{Endpoint, Session, Target};
use ebbtide_mysql::Layout;
use ebbtide_mysql::recovery::page::inspect;
use ebbtide_mysql::recovery::{LogEvidence, binlog_tail};
use tempfile::TempDir;

use crate::text;

thread_local! {
    static DIR: TempDir = tempfile::tempdir().expect("a folder can be made");
}

/// What a client reads after it has connected, then the end.
pub(super) fn mysql(bytes: &[u8]) {
    DIR.with(|dir| {
        let path = dir.path().join("mysql.sock");
        let _ = fs::remove_file(&path);
        let listener = UnixListener::bind(&path).expect("a socket can be made");
        thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = listener.accept().expect("the client connects");
                let _ = stream.write_all(bytes);
                let _ = stream.shutdown(Shutdown::Write);
                let _ = stream.read_to_end(&mut Vec::new());
            });
            let target = Target {
                endpoints: vec![Endpoint::Unix(path.clone())],
                user: "root".into(),
                password: "secret".into(),
                database: "d".into(),
                tls: None,
            };
            if let Ok(mut session) = Session::open(&target, &target.endpoints[0]) {
                let _ = session.rows("SELECT 1");
            }
        });
    });
}

/// The last file of a binary log.
pub(super) fn binlog(bytes: &[u8]) {
    DIR.with(|dir| {
        fs::write(dir.path().join("binlog.000001"), bytes).expect("a file can be written");
        let _ = binlog_tail(&Layout::single(dir.path()), 4);
    });
}

/// A page of InnoDB, and lines of the error log.
pub(super) fn page(bytes: &[u8]) {
    let _ = inspect(bytes);
    if let Some(text) = text(bytes) {
        drop(LogEvidence::read(&text.lines().map(str::to_owned).collect::<Vec<_>>()));
    }
}
