//! Root works in directories of a server's user: a stand-in for a server leaves links to somebody else's files in the
//! place of every name there, and nothing of that is followed, written or given away.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use ebbtide_mysql::recovery::{binlog_tail, own_binlog_index, scan_pages};
use ebbtide_mysql::replication::{Position, ReplicationPart};
use ebbtide_mysql::{
    Binary, Cleared, Flavour, Layout, Server, ServerError, ServerPlan, Version, WorkPaths, clear_leftovers,
    initialize,
};

use crate::support::open_dir;

/// What is in a directory: of each path its owner, mode, size, inode, time of its last change, and contents.
fn facts(dir: &Path) -> BTreeMap<PathBuf, (Vec<u64>, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut left = vec![dir.to_owned()];
    while let Some(path) = left.pop() {
        let facts = std::fs::symlink_metadata(&path).unwrap();
        let numbers =
            [facts.uid().into(), facts.gid().into(), facts.mode().into(), facts.size(), facts.ino()];
        let times = [facts.ctime().unsigned_abs(), facts.ctime_nsec().unsigned_abs()];
        let mut contents = Vec::new();
        if facts.is_dir() {
            left.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            contents = std::fs::read(&path).unwrap();
        }
        found.insert(path, ([&numbers[..], &times[..]].concat(), contents));
    }
    found
}

/// Files of root's that a server must not reach, and a stand-in that puts links to one of them everywhere.
struct StandIn {
    dir: tempfile::TempDir,
    before: BTreeMap<PathBuf, (Vec<u64>, Vec<u8>)>,
}

impl StandIn {
    fn new() -> Self {
        let dir = open_dir();
        let victims = dir.path().join("victims");
        std::fs::create_dir_all(victims.join("dir")).unwrap();
        std::fs::write(victims.join("file"), "root's").unwrap();
        std::fs::write(victims.join("dir/file"), "root's").unwrap();
        std::fs::set_permissions(&victims, std::fs::Permissions::from_mode(0o755)).unwrap();
        let before = facts(&victims);
        Self { dir, before }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The stand-in for links to a victim, which leaves some names alone.
    fn server(&self, victim: &str, keep: &str) -> Binary {
        let victim = self.path("victims").join(victim);
        let script =
            include_str!("stand_in.sh").replace("@VICTIM@", victim.to_str().unwrap()).replace("@KEEP@", keep);
        let path = self.path("stand-in");
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        Binary { path, flavour: Flavour::MySql, version: Version::new(8, 0, 36), text: String::new() }
    }

    fn assert_nothing_changed(&self, after: &str) {
        assert_eq!(facts(&self.path("victims")), self.before, "after {after}");
    }
}

/// Removes the links that would have to be copied.
fn remove_logs(data: &Path) {
    for entry in std::fs::read_dir(data).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if name.starts_with("ib_logfile") || name.starts_with("#innodb_redo") {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
}

fn is_link(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|facts| facts.is_symlink())
}

/// Makes data with the stand-in, starts it on them with directories of its own, and looks at what it left.
fn goes_through_its_life(victim: &str, other_file_system: &Path) {
    let stand_in = StandIn::new();
    let work = WorkPaths { dir: stand_in.path("w"), records: stand_in.path("records") };
    let data = stand_in.path("data");
    let layout = Layout {
        redo: Some(other_file_system.join("redo")),
        undo: Some(stand_in.path("undo")),
        tmp: Some(stand_in.path("tmp")),
        ..Layout::single(&data)
    };
    let single = ServerPlan::new(stand_in.server(victim, ""), Layout::single(&data), work.clone());
    initialize(&single, &|_| ()).unwrap();
    stand_in.assert_nothing_changed("making data");
    assert!(is_link(&data.join("auto.cnf")), "the stand-in has done its work");
    assert!(!is_link(&data.join(".ebbtide-server.json")), "the sign has taken the place of a link");

    let part = ReplicationPart { server_id: 1, replica: false, position: Position::Gtid };
    let keep = ".ebbtide-server.json";
    let binary = stand_in.server(victim, keep);
    let plan = ServerPlan { part: Some(part), binary, layout: layout.clone(), ..single.clone() };
    // A link is not copied to another file system.
    Server::start(&plan, &|_| ()).unwrap_err();
    stand_in.assert_nothing_changed("moving a link");
    remove_logs(&data);
    for _ in 0..2 {
        let error = Server::start(&plan, &|_| ()).unwrap_err();
        stand_in.assert_nothing_changed("a start");
        remove_logs(&data);
        let started = matches!(error, ServerError::DidNotStart { .. });
        assert!(started, "it came as far as the start: {error:?}");
    }

    own_binlog_index(&Layout { binlog: Some(data.clone()), ..layout.clone() }).unwrap_err();
    binlog_tail(&layout, 1).unwrap_err();
    scan_pages(&layout).unwrap_err();
    stand_in.assert_nothing_changed("looking at what it left");

    let all = ServerPlan { binary: stand_in.server(victim, ""), ..plan };
    Server::start(&all, &|_| ()).unwrap_err();
    let error = Server::start(&all, &|_| ()).unwrap_err();
    assert!(error.to_string().contains("read"), "a link in the place of the sign: {error}");
    stand_in.assert_nothing_changed("a start on links alone");

    assert_eq!(clear_leftovers(&work.records), Cleared::default());
    let names: Vec<_> = std::fs::read_dir(&work.dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!names.iter().any(|path| is_link(path)), "it cannot change its work directory: {names:?}");
    assert!(initialize(&single, &|_| ()).is_err(), "the data directory holds something");
    stand_in.assert_nothing_changed("the clean-up");
}

#[test]
fn links_in_every_place_of_a_servers_directories_are_not_followed() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: root, who has what another user must not reach");
        return;
    }
    // Files are moved to a volume of their own by copying them.
    let other = tempfile::tempdir_in("/dev/shm").unwrap();
    std::fs::set_permissions(other.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    for victim in ["file", "dir"] {
        goes_through_its_life(victim, other.path());
        let _ = Command::new("rm").arg("-rf").arg(other.path().join("redo")).status();
    }
}
