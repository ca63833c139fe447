//! A server's life: made, started, asked, stopped, killed, and started again.

use std::time::Duration;

use ebbtide_mysql::initialize;

use crate::support::{Bench, PATIENCE, count, fill, lives, on_each_server, start};

on_each_server! {
    fn a_server_is_made_started_and_asked_without_privileges(bench) {
        let plan = bench.empty_plan();
        let told = std::cell::RefCell::new(Vec::new());
        initialize(&plan, &|line| told.borrow_mut().push(line.to_owned())).unwrap();
        assert!(!told.borrow().is_empty());
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
