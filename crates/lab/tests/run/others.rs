//! What is not the lab's stays as it is: files that a server of it reaches for, and the machine's own server.

use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ebbtide_catalog::Catalog;
use ebbtide_lab::record::Outcome;
use ebbtide_lab::run::{self, Event, RunError};
use ebbtide_load::Cancel;
use ebbtide_mysql::Binary;

use crate::support::{Bench, TWO_ARMS, left_of, needs, options, parse, server, servers_of};

/// A server that puts links to a file and a directory of root's in the place of names in its directories, where that
/// does not keep it from starting itself.
const WRAPPER: &str = r#"#!/bin/sh
case $1 in
--defaults-file=*)
    options=${1#--defaults-file=}
    value() { sed -n "s/^$1=\"\(.*\)\"\$/\1/p" "$options"; }
    data=$(value datadir) socket=$(value socket) work=${options%/*}
    [ -e "$data/.ebbtide-server.json" ] || ln -s '@FILE@' "$data/.ebbtide-server.json"
    ln -sf '@FILE@' "$data/ib_buffer_pool"
    ln -sf '@DIR@' "$data/.new"
    for dir in "${socket%/*}" "$work" "${work%/*}"; do
        for name in server.json server.lock server.log server.cnf init.sql client.cnf sock files.run; do
            # What it starts from itself is root's, so that this fails there.
            ln -sf '@FILE@' "$dir/$name" 2>/dev/null
        done
        ln -sf '@DIR@' "$dir/links.run" 2>/dev/null
    done
    ;;
esac
exec '@SERVER@' "$@"
"#;

/// The distribution's server behind the wrapper, with its other files where it looks for them.
fn wrapped(dir: &Path, victims: &Path) -> Option<Binary> {
    let real = server().unwrap();
    if !real.is_mariadb() || !real.path.starts_with("/usr") {
        println!("SKIPPED: MariaDB in the distribution's directories");
        return None;
    }
    std::fs::create_dir_all(dir.join("sbin")).unwrap();
    for name in ["share", "lib"] {
        symlink(Path::new("/usr").join(name), dir.join(name)).unwrap();
    }
    let path = dir.join("sbin/mariadbd");
    let script = WRAPPER
        .replace("@FILE@", victims.join("file").to_str().unwrap())
        .replace("@DIR@", victims.join("dir").to_str().unwrap())
        .replace("@SERVER@", real.path.to_str().unwrap());
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    Some(Binary { path, ..real })
}

/// Each path below a directory with its owner, mode, inode and the time of its last change.
fn facts(dir: &Path) -> Vec<(PathBuf, [i64; 5])> {
    let mut found = Vec::new();
    let mut left = vec![dir.to_owned()];
    while let Some(path) = left.pop() {
        let facts = std::fs::symlink_metadata(&path).unwrap();
        if facts.is_dir() {
            left.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        let inode = facts.ino().cast_signed();
        found.push((
            path,
            [facts.uid().into(), facts.mode().into(), inode, facts.ctime(), facts.ctime_nsec()],
        ));
    }
    found.sort();
    found
}

fn open_dir() -> tempfile::TempDir {
    let dir = tempfile::Builder::new().prefix("ebbtide-others-").tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

#[test]
fn a_server_that_leaves_links_in_its_directories_changes_nothing_outside_of_them() {
    needs!();
    let bench = Bench::apart();
    let dir = open_dir();
    let victims = dir.path().join("victims");
    std::fs::create_dir_all(victims.join("dir")).unwrap();
    for name in ["file", "dir/file"] {
        std::fs::write(victims.join(name), "root's").unwrap();
    }
    let before = facts(&victims);
    let Some(server) = wrapped(&dir.path().join("server"), &victims) else { return };
    for resume in [false, true] {
        let plan = run::plan(parse(TWO_ARMS), &Catalog::builtin(), &server).unwrap();
        let options = options(&bench.home(), &bench.out(), resume);
        let cancel = Cancel::default();
        let mut on_event = |event: Event| {
            println!("{event:?}");
            if matches!(event, Event::TrialEnded { .. }) && !resume {
                cancel.cancel();
            }
        };
        let done = run::run(plan, options, &cancel, &mut on_event);
        assert_eq!(facts(&victims), before, "resumed: {resume}");
        assert_eq!(left_of(&bench.home()), Vec::<String>::new());
        if resume {
            let run = done.unwrap();
            let failed = run.trials.iter().find(|trial| matches!(trial.outcome, Outcome::Failed { .. }));
            assert!(failed.is_none() && run.trials.len() == 2, "{failed:?}");
        } else {
            let error = done.map(drop).unwrap_err();
            assert!(matches!(error, RunError::Cancelled { done: 1, .. }), "{error}");
        }
    }
    assert_eq!(std::fs::read(victims.join("file")).unwrap(), b"root's");
}

/// The machine's own server: it runs as `mysql`, or as `nobody` where there is none, and is ended with this value.
struct MachineServer {
    process: Child,
    dir: PathBuf,
}

impl Drop for MachineServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl MachineServer {
    /// Starts one with data of its own in a directory.
    fn start(dir: &Path, server: &Binary) -> Self {
        let passwd = std::fs::read_to_string("/etc/passwd").unwrap();
        let user = ["mysql", "nobody"].into_iter().find(|user| passwd.contains(&format!("\n{user}:")));
        let user = user.expect("a machine has the user nobody");
        let run = |program: &str, arguments: &[String]| {
            let mut command = Command::new("setpriv");
            command.args([&format!("--reuid={user}"), "--clear-groups", program]).args(arguments);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command
        };
        let own = dir.join("machine");
        std::fs::create_dir(&own).unwrap();
        let given = Command::new("chown").arg(user).arg(&own).status().unwrap();
        assert!(given.success());
        let data = format!("--datadir={}", own.join("data").display());
        let words = ["--no-defaults".to_owned(), data, "--skip-test-db".to_owned()];
        assert!(run("mariadb-install-db", &words).status().unwrap().success());
        let [defaults, data, _] = words;
        let socket = own.join("sock");
        let words = [defaults, data, "--skip-networking".into(), format!("--socket={}", socket.display())];
        let process = run(server.path.to_str().unwrap(), &words).spawn().unwrap();
        let started = Self { process, dir: own };
        let give_up = Instant::now() + Duration::from_secs(60);
        while !started.answers() {
            assert!(Instant::now() < give_up, "the machine's server does not start");
            std::thread::sleep(Duration::from_millis(50));
        }
        started
    }

    /// Whether it greets a client: its own files are made by then.
    fn answers(&self) -> bool {
        let connected = std::os::unix::net::UnixStream::connect(self.dir.join("sock"));
        connected.is_ok_and(|mut socket| socket.read_exact(&mut [0]).is_ok())
    }

    fn uid(&self) -> u32 {
        std::fs::metadata(&self.dir).unwrap().uid()
    }

    /// Its files without the times, which it changes itself, and without those that come and go.
    fn files(&self) -> Vec<(PathBuf, [i64; 3])> {
        let all = facts(&self.dir).into_iter();
        let kept = all.filter(|(path, _)| !path.to_string_lossy().contains("ib_buffer_pool"));
        kept.map(|(path, [uid, mode, inode, ..])| (path, [uid, mode, inode])).collect()
    }
}

#[test]
fn a_lab_beside_the_machines_own_server_leaves_its_files_socket_and_process_alone() {
    needs!();
    let server = server().unwrap();
    if !server.is_mariadb() || !Path::new("/usr/bin/mariadb-install-db").exists() {
        return println!("SKIPPED: the distribution's MariaDB, with mariadb-install-db");
    }
    // Prepared data would keep the user that they were made as.
    let bench = Bench::apart();
    let dir = open_dir();
    let mut machine = MachineServer::start(dir.path(), &server);
    let before = machine.files();
    let home = bench.home();
    let mut users = Vec::new();
    let mut on_event = |event: Event| {
        if matches!(event, Event::Tick { .. }) && users.is_empty() {
            users = servers_of(&home)
                .iter()
                .filter_map(|process| std::fs::metadata(format!("/proc/{process}")).ok())
                .map(|facts| facts.uid())
                .collect();
        }
    };
    let end = TWO_ARMS.find("[arms.two.settings]").unwrap();
    bench.run(&TWO_ARMS[..end], false, &Cancel::default(), &mut on_event).unwrap();
    assert!(!users.is_empty() && !users.contains(&machine.uid()), "as {users:?}");
    assert_eq!(machine.files(), before);
    assert!(machine.process.try_wait().unwrap().is_none() && machine.answers());
}
