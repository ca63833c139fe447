//! What is refused, before a server is started or in its own words.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use ebbtide_mysql::{Binary, Layout, ProcessEnd, Server, ServerError, ServerPlan, initialize};

use crate::support::{Bench, PATIENCE, on_each_server, open_dir, start};

fn refusal(plan: &ServerPlan) -> ServerError {
    Server::start(plan, &|_| {}).expect_err("the start is refused")
}

on_each_server! {
    fn a_setting_that_the_server_does_not_list_by_its_whole_name_or_whose_value_is_a_place_is_refused_before_the_start(bench) {
        let mark = bench.path("mark");
        for (name, value, words) in [
            ("raw.innodb_nonsense", "1", "lists no option of this whole name"),
            // Servers take an unambiguous beginning for the option.
            ("raw.event_sched", "ON", "did you mean 'event_scheduler'?"),
            ("raw.general_log_fil", mark.to_str().unwrap(), "lists no option of this whole name"),
            ("raw.general_log_file", mark.to_str().unwrap(), "the name of a file"),
            ("raw.loose_plugin_load_add", "x", "a library"),
            ("raw.init_connect", "../x", "is a path"),
        ] {
            let mut plan = bench.plan();
            plan.settings.set(name, value).unwrap();
            let error = refusal(&plan);
            assert!(matches!(&error, ServerError::Setting(_)), "{error:?}");
            assert!(error.to_string().contains(words), "{error}");
            assert!(!error.is_environment());
        }
        assert!(!mark.exists());
    }

    fn a_value_that_a_server_does_not_take_is_refused_in_its_words(bench) {
        let mut plan = bench.plan();
        plan.settings.set("raw.event_scheduler", "nonsense").unwrap();
        let error = refusal(&plan);
        let ServerError::SettingRefused { words } = &error else { panic!("{error:?}") };
        assert!(words.iter().any(|line| line.contains("nonsense")), "{words:?}");
    }

    fn a_server_that_cannot_read_its_data_ends_with_its_own_lines(bench) {
        let plan = bench.plan();
        fs::write(plan.layout.data.join("ibdata1"), "rubbish").unwrap();
        let error = refusal(&plan);
        assert!(matches!(error, ServerError::DidNotStart { .. }), "{error:?}");
        assert!(error.log().iter().any(|line| line.contains("[ERROR]")), "{:?}", error.log());
        assert!(error.is_environment());
    }

    fn data_that_a_server_uses_are_not_given_to_another(bench) {
        let (server, mut plan) = bench.started();
        let error = refusal(&plan);
        assert!(matches!(error, ServerError::InUse { .. }), "{error:?}");
        plan.work = bench.work("other");
        let error = refusal(&plan);
        let pid = server.pid().to_string();
        assert!(matches!(&error, ServerError::InUse { pid: by, .. } if *by == pid), "{error:?}");
        assert_eq!(server.end(), ProcessEnd::Running);
        server.stop(PATIENCE).unwrap();
    }
}

#[test]
fn a_setting_that_mariadb_only_warns_of_is_refused_too() {
    let Some(bench) = Bench::of("mariadb-11.8") else { return };
    let mut plan = bench.plan();
    // The server has no such option any more, and takes it with a warning.
    plan.settings.set("raw.innodb_defragment", "ON").unwrap();
    let error = refusal(&plan).to_string();
    assert!(error.contains("raw.innodb_defragment") && error.contains("lists no option"), "{error}");
}

#[test]
fn nothing_is_made_in_a_directory_that_holds_something_and_nothing_started_on_a_strange_one() {
    let Some(bench) = Bench::of("system") else { return };
    let plan = bench.empty_plan();
    fs::create_dir(&plan.layout.data).unwrap();
    fs::write(plan.layout.data.join("mine"), "precious").unwrap();
    let error = initialize(&plan, &|_| {}).unwrap_err();
    assert!(matches!(error, ServerError::NotEmpty { .. }), "{error:?}");
    let error = refusal(&plan);
    assert!(matches!(error, ServerError::NotOurs { .. }), "{error:?}");
    assert_eq!(fs::read_to_string(plan.layout.data.join("mine")).unwrap(), "precious");
}

#[test]
fn a_directory_that_the_servers_user_cannot_enter_is_named() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: root, who runs a server as another user");
        return;
    }
    let Some(bench) = Bench::of("system") else { return };
    let closed = bench.path("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    let mut plan = bench.empty_plan();
    plan.layout = Layout::single(closed.join("data"));
    let error = initialize(&plan, &|_| {}).unwrap_err();
    assert!(matches!(&error, ServerError::NotReachable { parent, .. } if *parent == closed), "{error:?}");
    assert!(error.hint().is_some());
}

#[test]
fn a_program_that_is_not_a_server_is_named_as_what_it_is() {
    let detect = |path: &Path| Binary::detect(Some(path)).unwrap_err();
    for (path, expected) in [
        ("/no/such/program", "/no/such/program does not exist"),
        ("/bin/cat", "/bin/cat is not a MySQL or MariaDB server"),
        ("/etc/passwd", "cannot be run: Permission denied"),
        ("/etc", "/etc holds neither mariadbd nor mysqld"),
    ] {
        let error = detect(Path::new(path));
        assert!(error.to_string().contains(expected), "{error}");
        assert!(error.is_environment() && error.hint().is_some(), "{error}");
    }
    let dir = open_dir();
    let old = dir.path().join("mysqld");
    fs::write(&old, "#!/bin/sh\necho 'mysqld  Ver 5.6.24 for Linux on x86_64 (MySQL)'\n").unwrap();
    fs::set_permissions(&old, fs::Permissions::from_mode(0o755)).unwrap();
    let error = detect(dir.path());
    assert!(error.to_string().contains("MySQL 5.6.24 is too old"), "{error}");
}

#[test]
fn a_server_listens_on_a_free_port_where_that_is_asked_for() {
    let Some(bench) = Bench::of("system") else { return };
    let mut plan = bench.plan();
    plan.tcp = true;
    let server = start(&plan);
    let target = server.target();
    let mut session = ebbtide_load::Session::open_without_database(&target, &target.endpoints[1]).unwrap();
    let port = session.value("SELECT @@port").unwrap().unwrap();
    assert_eq!(target.endpoints[1].to_string(), format!("127.0.0.1:{port}"));
    server.stop(PATIENCE).unwrap();
}
