//! A server's life: made, started, asked, stopped, killed, and started again.

use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use ebbtide_load::{Cancel, Target};
use ebbtide_mysql::{Binary, Flavour, GivenUp, ProcessEnd, Server, ServerError, ServerPlan, initialize};

use crate::support::{Bench, PATIENCE, count, death, fill, lives, on_each_server, start};

on_each_server! {
    fn a_server_is_made_started_and_asked_without_privileges(bench) {
        let plan = bench.empty_plan();
        let steps = std::cell::RefCell::new(Vec::new());
        initialize(&plan, &|line| steps.borrow_mut().push(line.to_owned())).unwrap();
        assert!(!steps.borrow().is_empty());
        let server = start(&plan);
        let version = server.session().unwrap().value("SELECT VERSION()").unwrap().unwrap();
        assert!(version.starts_with(&bench.binary.version.to_string()), "{version}");
        let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
        let uid = status.lines().find(|line| line.starts_with("Uid:")).unwrap();
        assert!(!uid.split_whitespace().any(|word| word == "0"), "{uid}");
        let off = server.session().unwrap().value("SELECT @@skip_networking, @@log_bin").unwrap().unwrap();
        assert_eq!(off, "1");
        assert!(server.cpu_time() > Duration::ZERO);
        server.stop(PATIENCE).unwrap();
    }

    fn a_server_has_a_password_of_its_own_start_and_no_rights_on_the_machine(bench) {
        let plan = ServerPlan { tcp: true, ..bench.plan() };
        let mut passwords = Vec::new();
        for _ in 0..2 {
            let server = start(&plan);
            let target = server.target();
            assert_eq!(target.endpoints.len(), 2);
            for endpoint in &target.endpoints {
                ebbtide_load::Session::open_without_database(&target, endpoint).unwrap();
                for password in ["", "wrong"] {
                    let stranger = Target { password: password.into(), ..target.clone() };
                    let refused = ebbtide_load::Session::open_without_database(&stranger, endpoint);
                    let error = refused.map(drop).unwrap_err();
                    assert!(error.to_string().contains("Access denied"), "{endpoint}: {error}");
                }
            }
            let mut session = server.session().unwrap();
            let open = "SELECT COUNT(*) FROM mysql.user WHERE user = 'root' AND authentication_string = ''";
            assert_eq!(session.value(open).unwrap().as_deref(), Some("0"), "no root without a password");
            let files = session.value("SELECT CONCAT(COALESCE(@@secure_file_priv, 'NULL'), ' ', @@local_infile)");
            let files = files.unwrap().unwrap();
            let (secure, infile) = files.rsplit_once(' ').unwrap();
            assert!(["0", "OFF"].contains(&infile), "{infile}");
            assert!(secure == "NULL" || std::fs::read_dir(secure).unwrap().count() == 0, "{secure}");
            let own = plan.work.dir.join("own");
            for private in [&own, &plan.layout.data] {
                let mode = std::fs::metadata(private).unwrap().permissions().mode();
                assert_eq!(mode & 0o777, 0o700, "{}", private.display());
            }
            let process = std::path::PathBuf::from(format!("/proc/{}", server.pid()));
            let status = std::fs::read_to_string(process.join("status")).unwrap();
            let value = |name: &str| {
                let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
                line.trim_start_matches(':').trim().to_owned()
            };
            assert_eq!(value("NoNewPrivs"), "1");
            if rustix::process::geteuid().is_root() {
                for set in ["CapInh", "CapPrm", "CapEff", "CapBnd"] {
                    assert_eq!(value(set).trim_start_matches('0'), "", "{set}");
                }
                assert_eq!(value("Groups"), "");
            }
            let environment = std::fs::read(process.join("environ")).unwrap();
            let names = String::from_utf8_lossy(&environment);
            let names: Vec<&str> = names.split('\0').filter_map(|line| Some(line.split_once('=')?.0)).collect();
            // Wrappers of unpacked servers are shells, and their loader takes libraries by a variable.
            assert!(names.iter().all(|name| ["PATH", "PWD", "SHLVL", "_", "OLDPWD"].contains(name)), "{names:?}");
            passwords.push(target.password);
            server.stop(PATIENCE).unwrap();
            let left = |name: &str| plan.work.dir.join(name).exists();
            assert!(!left("init.sql") && !left("client.cnf") && !left("own"), "nothing is left of it");
        }
        assert_ne!(passwords[0], passwords[1]);
    }

    fn rows_outlive_a_clean_stop_and_a_kill(bench) {
        let (server, plan) = bench.started();
        fill(&server, 2000);
        let pid = server.pid();
        server.stop(PATIENCE).unwrap();
        assert!(!lives(pid));
        let server = start(&plan);
        assert_eq!(count(&server), 2000);
        server.session().unwrap().execute("DELETE FROM test.t WHERE id < 500").unwrap();
        server.kill().unwrap();
        let server = start(&plan);
        assert_eq!(count(&server), 1500);
        let log = server.log_tail(1000).join("\n");
        assert!(log.to_lowercase().contains("recovery"), "{log}");
        server.stop(PATIENCE).unwrap();
    }
}

on_each_server! {
    fn a_server_that_is_killed_by_someone_else_has_died_with_its_log(bench) {
        let (server, _plan) = bench.started();
        assert!(server.died().is_none());
        let pid = rustix::process::Pid::from_raw(i32::try_from(server.pid()).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::ABORT).unwrap();
        let died = death(&server);
        // MySQL catches the signal and ends by itself.
        let how = if bench.binary.is_mariadb() { "it aborted (signal 6)" } else { "it ended with exit status 2" };
        assert_eq!(died.to_string(), format!("the server died: {how}"));
        let ServerError::Died { end, cause: None, .. } = &died else { panic!("{died:?}") };
        assert!(end.by_itself() && *end == server.end(), "{end:?}");
        assert!(died.log().iter().any(|line| line.contains("signal 6")), "{:?}", died.log());
        let error = server.stop(PATIENCE).unwrap_err();
        assert!(matches!(error, ServerError::Died { .. }), "{error:?}");
    }

    fn a_server_that_someone_else_asks_to_end_has_exit_status_0_and_did_not_end_by_itself(bench) {
        let (server, _plan) = bench.started();
        let pid = rustix::process::Pid::from_raw(i32::try_from(server.pid()).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let ServerError::Died { end, .. } = death(&server) else { panic!("it died") };
        assert_eq!(end, ProcessEnd::Exited { code: 0 });
        assert!(!end.by_itself());
    }
}

#[test]
fn data_are_served_as_the_user_that_owns_them_and_a_failed_start_names_the_user_and_the_first_error() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: root, who runs a server as another user");
        return;
    }
    let Some(bench) = Bench::of("system") else { return };
    // A user that this machine does not have, as `nobody` is another one once `mysql` exists.
    let give = |path: &std::path::Path, owner: &str| {
        let given = std::process::Command::new("chown").args(["-R", owner]).arg(path).status().unwrap();
        assert!(given.success());
    };
    let plan = bench.plan();
    give(&plan.layout.data, "4000001:4000002");
    let server = start(&plan);
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let uid = status.lines().find(|line| line.starts_with("Uid:")).unwrap();
    assert_eq!(uid.split_whitespace().nth(1), Some("4000001"), "{uid}");
    server.stop(PATIENCE).unwrap();

    // Files of root in its directory stay closed to it.
    let tablespace = plan.layout.data.join("ibdata1");
    give(&tablespace, "0:0");
    std::fs::set_permissions(&tablespace, std::fs::Permissions::from_mode(0o600)).unwrap();
    let error = Server::start(&plan, &|_| {}).unwrap_err();
    let words = error.to_string();
    assert!(words.starts_with("the server, as user 'uid 4000001', did not start: "), "{words}");
    assert!(words.contains("; its first error: [ERROR] ") && words.contains("ibdata1"), "{words}");
    assert!(error.hint().is_some_and(|hint| hint.contains("must own its files")), "{error:?}");
}

/// A program in a server's place that ends at once, as the words of a shell specify.
fn ends(bench: &Bench, how: &str) -> Binary {
    let path = bench.path("ends");
    std::fs::write(&path, format!("#!/bin/sh\n{how}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    Binary { path, ..bench.binary.clone() }
}

#[test]
fn how_a_server_ended_that_did_not_start_is_a_type() {
    let Some(bench) = Bench::of("system") else { return };
    let mut plan = bench.plan();
    for (how, expected) in [
        ("exit 3", ProcessEnd::Exited { code: 3 }),
        ("kill -s ABRT $$", ProcessEnd::Signaled { signal: 6 }),
        ("kill -s SEGV $$", ProcessEnd::Signaled { signal: 11 }),
        ("kill -s KILL $$", ProcessEnd::OutOfMemory { counted: false }),
    ] {
        plan.binary = ends(&bench, how);
        let error = Server::start(&plan, &|_| ()).unwrap_err();
        let ServerError::DidNotStart { end, cause: None, initializing: false, .. } = &error else {
            panic!("{how}: {error:?}")
        };
        assert_eq!(*end, expected, "{how}");
    }
    let frozen = ServerPlan { binary: slow(&bench, bench.binary.flavour), ..plan };
    let error = Server::start(&ServerPlan { start_timeout: Duration::from_millis(20), ..frozen }, &|_| ());
    let Err(ServerError::DidNotStart { end, .. }) = error else { panic!("{error:?}") };
    assert!(matches!(end, ProcessEnd::GivenUp(GivenUp::NotReady { .. })), "{end:?}");
}

#[test]
fn a_server_that_someone_else_kills_with_signal_9_was_killed_for_memory_and_by_us_it_was_not() {
    let Some(bench) = Bench::of("system") else { return };
    let (server, _plan) = bench.started();
    assert_eq!(server.end(), ProcessEnd::Running);
    let pid = rustix::process::Pid::from_raw(i32::try_from(server.pid()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let died = death(&server);
    assert_eq!(died.to_string(), "the server died: it was killed (signal 9)");
    let ServerError::Died { end, .. } = died else { panic!("{died:?}") };
    assert_eq!(end, ProcessEnd::OutOfMemory { counted: false });
}

#[test]
fn a_server_that_does_not_stop_in_time_is_killed() {
    let Some(bench) = Bench::of("system") else { return };
    let (server, plan) = bench.started();
    let pid = server.pid();
    let process = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::STOP).unwrap();
    let error = server.stop(Duration::from_millis(200)).unwrap_err();
    assert!(matches!(error, ServerError::DidNotStop { .. }), "{error:?}");
    assert!(!lives(pid));
    start(&plan).stop(PATIENCE).unwrap();
}

#[test]
fn a_server_that_is_never_ready_is_given_up_and_killed() {
    let Some(bench) = Bench::of("system") else { return };
    let mut plan = bench.plan();
    plan.start_timeout = Duration::ZERO;
    let error = Server::start(&plan, &|_| {}).unwrap_err();
    assert!(error.to_string().contains("it was not ready after 0 s"), "{error}");
    let ServerError::DidNotStart { end, .. } = error else { panic!("{error:?}") };
    assert!(matches!(end, ProcessEnd::GivenUp(GivenUp::NotReady { seconds: 0, .. })), "{end:?}");
    plan.start_timeout = PATIENCE;
    start(&plan).stop(PATIENCE).unwrap();
}

/// Cancels a moment after something has begun that would take minutes, and sees it end long before.
fn ends_when_cancelled(cancel: &Cancel, work: impl FnOnce() -> Result<(), ServerError>) {
    let began = Instant::now();
    let ended = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(200));
            cancel.cancel();
        });
        work()
    });
    assert!(matches!(ended, Err(ServerError::Cancelled)), "{ended:?}");
    assert!(began.elapsed() < Duration::from_secs(60), "it took {:?}", began.elapsed());
}

/// A program in a server's place that takes ten minutes to do nothing.
fn slow(bench: &Bench, flavour: Flavour) -> Binary {
    let path = bench.path("slow");
    std::fs::write(&path, "#!/bin/sh\nexec sleep 600\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    Binary { path, flavour, ..bench.binary.clone() }
}

#[test]
fn a_start_that_is_cancelled_ends_with_its_server() {
    let Some(bench) = Bench::of("system") else { return };
    let mut plan = bench.plan();
    plan.binary = slow(&bench, bench.binary.flavour);
    ends_when_cancelled(&plan.cancel, || Server::start(&plan, &|_| ()).map(drop));
    assert!(!ebbtide_mysql::is_recorded(&plan.work), "nothing of it is left");
}

#[test]
fn a_data_directory_whose_making_is_cancelled_is_taken_away() {
    let Some(bench) = Bench::of("system") else { return };
    let mut plan = bench.empty_plan();
    // MySQL makes one by itself; MariaDB needs files that are next to its program.
    plan.binary = slow(&bench, Flavour::MySql);
    ends_when_cancelled(&plan.cancel, || initialize(&plan, &|_| ()));
    assert_eq!(std::fs::read_dir(&plan.layout.data).unwrap().count(), 0);
}

#[test]
fn a_stop_that_is_cancelled_ends_the_server_at_once() {
    let Some(bench) = Bench::of("system") else { return };
    let (server, plan) = bench.started();
    let pid = server.pid();
    let frozen = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(frozen, rustix::process::Signal::STOP).unwrap();
    ends_when_cancelled(&plan.cancel, || server.stop(PATIENCE));
    assert!(!lives(pid));
}
