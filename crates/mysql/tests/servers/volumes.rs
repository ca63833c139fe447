//! Files on volumes of their own, and volumes that are full.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use ebbtide_mysql::{Layout, Server, ServerError, initialize};
use tempfile::TempDir;

use crate::support::{Bench, PATIENCE, count, death, fill, on_each_server, start};

/// A directory on another file system than the others.
fn elsewhere() -> TempDir {
    let dir = tempfile::Builder::new().prefix("ebbtide-mysql-").tempdir_in("/dev/shm").unwrap();
    std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    dir
}

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn holds(dir: &Path, start: &str) -> bool {
    names(dir).iter().any(|name| name.starts_with(start))
}

on_each_server! {
    fn redo_binary_log_and_temporary_files_move_to_volumes_of_their_own(bench) {
        // As an experiment does it: rows are loaded on one volume, and the arm has more.
        let (server, mut plan) = bench.started();
        fill(&server, 1000);
        server.stop(PATIENCE).unwrap();
        let other = elsewhere();
        let at = |name: &str| Some(other.path().join(name));
        plan.layout =
            Layout { redo: at("redo"), binlog: at("binlog"), tmp: at("tmp"), ..plan.layout.clone() };
        plan.settings.set("log_bin", "ON").unwrap();

        let server = start(&plan);
        server.session().unwrap().execute("DELETE FROM test.t WHERE id < 100").unwrap();
        let asked = |what: &str| server.session().unwrap().value(what).unwrap().unwrap();
        assert_eq!(asked("SELECT @@log_bin"), "1");
        assert_eq!(Path::new(&asked("SELECT @@tmpdir")), other.path().join("tmp"));
        let redo = if holds(&other.path().join("redo"), "#innodb_redo") { "#innodb_redo" } else { "ib_logfile" };
        assert!(holds(&other.path().join("redo"), redo) && !holds(&plan.layout.data, redo));
        assert!(holds(&other.path().join("binlog"), "binlog.0") && !holds(&plan.layout.data, "binlog."));
        assert!(holds(&other.path().join("tmp"), "ibtmp1") && !holds(&plan.layout.data, "ibtmp1"));
        server.kill().unwrap();

        let server = start(&plan);
        assert_eq!(count(&server), 900);
        server.stop(PATIENCE).unwrap();
    }

    fn undo_tablespaces_move_to_a_volume_of_their_own(bench) {
        let mut plan = bench.empty_plan();
        let mariadb = bench.binary.is_mariadb();
        if mariadb {
            plan.settings.set("undo_tablespaces", "3").unwrap();
        }
        initialize(&plan, &|_| {}).unwrap();
        let server = start(&plan);
        fill(&server, 1000);
        server.stop(PATIENCE).unwrap();
        let other = elsewhere();
        plan.layout.undo = Some(other.path().join("undo"));

        let server = start(&plan);
        let mut session = server.session().unwrap();
        session.execute("BEGIN").unwrap();
        session.execute("DELETE FROM test.t").unwrap();
        assert!(holds(&other.path().join("undo"), "undo") && !holds(&plan.layout.data, "undo"));
        server.kill().unwrap();
        let server = start(&plan);
        assert_eq!(count(&server), 1000, "what was not committed is undone, from the undo volume");
        server.stop(PATIENCE).unwrap();
    }
}

#[test]
fn data_without_undo_tablespaces_cannot_have_a_volume_for_them() {
    let Some(bench) = Bench::of("system") else { return };
    let mut plan = bench.plan();
    if holds(&plan.layout.data, "undo0") {
        println!("SKIPPED: a server that makes no undo tablespaces by itself (MariaDB before 11)");
        return;
    }
    plan.layout.undo = Some(bench.path("undo"));
    let error = Server::start(&plan, &|_| {}).unwrap_err();
    assert!(matches!(error, ServerError::NothingToMove { .. }), "{error:?}");
}

/// A mounted file system of a certain size; none without root.
struct Small(PathBuf);

impl Small {
    fn mount(dir: PathBuf, mib: u32) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            println!("SKIPPED: root, who mounts a small file system");
            return None;
        }
        std::fs::create_dir(&dir).unwrap();
        let options = format!("size={mib}m,mode=755");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "none"]).arg(&dir).status();
        assert!(mounted.unwrap().success());
        Some(Self(dir))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        // The kernel lets go of a killed server's files a little after its end.
        let deadline = Instant::now() + PATIENCE;
        while !Command::new("umount").arg(&self.0).status().unwrap().success() {
            if Instant::now() > deadline {
                println!("{} stays mounted", self.0.display());
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

on_each_server! {
    fn a_volume_too_small_for_a_server_is_reported_as_full_and_left_empty(bench) {
        let Some(small) = Small::mount(bench.path("small"), 24) else { return };
        let mut plan = bench.empty_plan();
        plan.layout = Layout::single(small.0.join("data"));
        let error = initialize(&plan, &|_| {}).unwrap_err();
        assert!(error.to_string().contains("no space is left on its file system"), "{error}\n{:?}", error.log());
        assert!(error.hint().unwrap().contains("larger"));
        assert_eq!(names(&plan.layout.data), Vec::<String>::new());
    }

    fn a_volume_that_gets_full_is_reported_as_such(bench) {
        let mut plan = bench.plan();
        let Some(small) = Small::mount(bench.path("small"), used_mib(&plan.layout.data) + 120) else { return };
        // With all blocks in place, as a server makes its redo log.
        let mut copied = Command::new("cp");
        copied.args(["-a", "--sparse=never"]).arg(&plan.layout.data).arg(&small.0);
        assert!(copied.status().unwrap().success());
        plan.layout = Layout::single(small.0.join("data"));
        let server = start(&plan);
        fill(&server, 1000);
        let mut session = server.session().unwrap();
        session.execute("CREATE TABLE test.big (id INT PRIMARY KEY AUTO_INCREMENT, pad LONGTEXT)").unwrap();
        let refused = (0..400).find_map(|_| {
            session.execute("INSERT INTO test.big (pad) VALUES (REPEAT('x', 1048576))").err()
        });
        let refused = refused.expect("it gets full");
        // Either the statement fails (ER_RECORD_FILE_FULL), or the server finds no room to roll it back and
        // ends itself: its log has the reason.
        if refused.code() == Some(1114) {
            assert_eq!(count(&server), 1000);
        } else {
            let died = death(&server);
            assert!(died.to_string().ends_with("no space is left on its file system"), "{died}");
            assert!(died.log().iter().any(|line| line.contains("[FATAL]")), "{:?}", died.log());
        }
        server.kill().unwrap();
    }
}

fn used_mib(dir: &Path) -> u32 {
    let output = Command::new("du").args(["-sm", "--apparent-size"]).arg(dir).output().unwrap();
    String::from_utf8(output.stdout).unwrap().split_whitespace().next().unwrap().parse().unwrap()
}
