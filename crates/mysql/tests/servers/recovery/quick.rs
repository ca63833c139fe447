//! The server that looks at an image in a hurry.

use std::time::{Duration, Instant};

use ebbtide_mysql::recovery::{LogEvidence, scan_pages};

use super::value;
use crate::support::{Bench, PATIENCE, copy, count, fill, on_each_server, start};

on_each_server! {
    fn a_quick_server_recovers_what_its_plans_server_would_and_says_how_long_it_took(bench) {
        let mut plan = bench.plan();
        plan.settings.set("log_bin", "ON").unwrap();
        plan.settings.set("flush_log_at_trx_commit", "1").unwrap();
        let server = start(&plan);
        fill(&server, 5000);
        server.session().unwrap().execute("DELETE FROM test.t WHERE id < 100").unwrap();
        server.kill().unwrap();

        let mut layout = plan.layout.clone();
        layout.data = bench.path("image");
        copy(&plan.layout.data, &layout.data);
        let quick = plan.for_recovery(layout.clone(), bench.path("q"));
        let began = Instant::now();
        let server = start(&quick);
        assert!(server.ready_after() > Duration::from_millis(10) && server.ready_after() <= began.elapsed());
        println!("MEASURED {}: ready after {:?}, {:?} of CPU", bench.binary.name(), server.ready_after(), server.cpu_time());
        assert_eq!(count(&server), 4900);
        let usual = start(&plan);
        for variable in ["innodb_flush_log_at_trx_commit", "sync_binlog", "log_bin", "innodb_doublewrite"] {
            let asked = format!("SELECT @@{variable}");
            assert_eq!(value(&server, &asked), value(&usual, &asked), "{variable}");
        }
        usual.stop(PATIENCE).unwrap();
        assert_eq!(value(&server, "SELECT @@performance_schema"), "0");
        assert!(LogEvidence::read(&server.log_tail(usize::MAX)).recovered);
        let began = Instant::now();
        server.stop(PATIENCE).unwrap();
        println!("MEASURED {}: stopped after {:?}", bench.binary.name(), began.elapsed());
        assert_eq!(scan_pages(&layout).unwrap().invalid, []);
        let server = start(&quick);
        assert_eq!(count(&server), 4900);
        server.kill().unwrap();
    }
}
