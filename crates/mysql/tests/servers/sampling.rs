//! Servers that are watched.

use std::process::Command;
use std::time::{Duration, Instant};

use ebbtide_load::Target;
use ebbtide_mysql::Server;
use ebbtide_mysql::sampling::{Collector, Reading, SampleError, Sampled, ServerSampler};

use crate::support::{Bench, PATIENCE, fill, on_each_server, start};

/// A server with a binary log and with its performance schema.
fn server(bench: &Bench) -> Server {
    let mut plan = bench.plan();
    for (name, text) in [("log_bin", "on"), ("performance_schema", "on"), ("buffer_pool_size", "16MiB")] {
        plan.settings.set(name, text).unwrap();
    }
    start(&plan)
}

/// A sampler and the clock of its caller.
struct Watch {
    sampler: ServerSampler,
    began: Instant,
}

impl Watch {
    fn new(target: Target) -> Self {
        Self { sampler: ServerSampler::new(target), began: Instant::now() }
    }

    fn sample(&mut self) -> Result<Sampled, SampleError> {
        self.sampler.sample(self.began.elapsed())
    }

    fn reading(&self) -> &Reading {
        self.sampler.reading()
    }

    /// Samples until the reading is as it should be.
    fn until(&mut self, wanted: impl Fn(&Reading) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let sampled = self.sample();
            if wanted(self.reading()) {
                return;
            }
            assert!(Instant::now() < deadline, "{sampled:?} {:?}", self.reading());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Samples until an attempt fails.
    fn error(&mut self) -> SampleError {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Err(error) = self.sample() {
                return error;
            }
            assert!(Instant::now() < deadline, "{:?}", self.reading());
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Whether every collector that runs on a server without a source has run.
fn is_complete(reading: &Reading) -> bool {
    let wanted = [
        Collector::Status,
        Collector::Variables,
        Collector::Replica,
        Collector::InnodbMetrics,
        Collector::PageCompression,
        Collector::CompressedPool,
        Collector::BinaryLogs,
    ];
    wanted.iter().all(|collector| reading.collectors.contains_key(collector))
}

/// A target with an account of no privilege.
fn looker(server: &Server) -> Target {
    server.session().unwrap().execute("CREATE USER looker IDENTIFIED BY 'of-the-test'").unwrap();
    let mut target = server.target();
    (target.user, target.password) = ("looker".into(), "of-the-test".into());
    target
}

fn signal(server: &Server, name: &str) {
    let sent = Command::new("kill").args([name, &server.pid().to_string()]).status().unwrap();
    assert!(sent.success());
}

on_each_server! {
    fn everything_that_a_server_gives_is_read_and_the_cost_is_counted(bench) {
        let server = server(&bench);
        fill(&server, 100);
        let mut watch = Watch::new(server.target());
        watch.until(is_complete);
        let reading = watch.reading();
        assert!(reading.collectors.values().all(|run| run.success), "{:?}", reading.collectors);
        assert_eq!(reading.release, Some(bench.binary.version));
        assert!(reading.status.as_ref().unwrap().value.get("uptime").is_some());
        assert!(reading.variables.as_ref().unwrap().value.get("innodb_page_size").is_some());
        assert!(reading.replica.as_ref().unwrap().value.is_empty(), "it has no source");
        assert!(!reading.collectors.contains_key(&Collector::Appliers));
        assert!(reading.innodb_metrics.as_ref().unwrap().value.len() > 20);
        assert!(!reading.page_compression.as_ref().unwrap().value.is_empty());
        assert!(!reading.compressed_pool.as_ref().unwrap().value.is_empty());
        let logs = &reading.binary_logs.as_ref().unwrap().value;
        assert!(logs.files > 0 && logs.bytes > 0 && logs.newest.is_some(), "{logs:?}");
        // root lacks nothing but the counters that are off.
        let enabled = reading.missing.iter().map(|missing| missing.enable.as_deref().unwrap());
        assert!(enabled.clone().count() > 0, "some counters are off by default");
        enabled.for_each(|enable| assert!(enable.starts_with("SET GLOBAL innodb_monitor_enable"), "{enable}"));
        let (first, theirs) = (reading.cost, server.cpu_time());
        assert!(first.connections == 1 && first.bytes > 20_000 && first.statements > 10, "{first:?}");
        watch.until(|reading| reading.cost.samples >= first.samples + 3);
        let cost = watch.reading().cost;
        println!("{}: {:?} of {cost:?}", bench.binary.name(), server.cpu_time() - theirs);
        assert_eq!((cost.connections, watch.reading().run), (1, 0), "one connection");
        server.kill().unwrap();
    }

    fn what_an_account_may_not_see_is_listed_with_the_grants_that_enable_it(bench) {
        let server = server(&bench);
        let target = looker(&server);
        let mut watch = Watch::new(target.clone());
        watch.until(is_complete);
        assert!(watch.reading().status.is_some() && watch.reading().variables.is_some());
        let grants = |reading: &Reading| -> Vec<String> {
            let enable = reading.missing.iter().filter_map(|missing| missing.enable.clone());
            enable.filter(|enable| enable.starts_with("GRANT")).collect()
        };
        let needed = grants(watch.reading());
        assert!(needed.len() >= 3, "{:?}", watch.reading().missing);
        let mut session = server.session().unwrap();
        for grant in &needed {
            session.execute(grant).unwrap();
        }
        let mut watch = Watch::new(target);
        watch.until(is_complete);
        assert_eq!(grants(watch.reading()), Vec::<String>::new(), "{:?}", watch.reading().missing);
        assert!(watch.reading().collectors.values().all(|run| run.success), "{:?}", watch.reading());
        server.kill().unwrap();
    }

    fn no_statement_of_the_sampling_is_in_the_slow_log(bench) {
        let server = server(&bench);
        let mut session = server.session().unwrap();
        for sql in [
            "SET GLOBAL log_output = 'TABLE'",
            "SET GLOBAL long_query_time = 0",
            "SET GLOBAL log_queries_not_using_indexes = ON",
            "SET GLOBAL slow_query_log = ON",
        ] {
            session.execute(sql).unwrap();
        }
        // A statement of a new session is in it.
        server.session().unwrap().rows("SELECT 'a statement of the test'").unwrap();
        let mut watch = Watch::new(server.target());
        watch.until(is_complete);
        let logged = session.rows("SELECT CONVERT(sql_text USING utf8mb4) FROM mysql.slow_log").unwrap();
        let logged: Vec<String> = logged.into_iter().flatten().flatten().collect();
        assert!(logged.iter().any(|sql| sql.contains("a statement of the test")), "{logged:?}");
        for part in ["SHOW", "INNODB_", "performance_schema"] {
            assert!(!logged.iter().any(|sql| sql.contains(part)), "{logged:?}");
        }
        server.kill().unwrap();
    }

    fn a_server_that_hangs_is_waited_for_and_not_asked_by_a_second_connection(bench) {
        let server = server(&bench);
        let mut watch = Watch::new(server.target());
        watch.until(is_complete);
        signal(&server, "-STOP");
        let lost = watch.error();
        assert!(matches!(lost, SampleError::Lost { .. }), "{lost:?}");
        assert!(!watch.reading().up && watch.reading().status.is_some(), "what was read is kept");
        let hangs = watch.error();
        assert!(matches!(hangs, SampleError::Hangs { .. }), "{hangs:?}");
        assert_eq!(watch.reading().cost.connections, 1);
        signal(&server, "-CONT");
        watch.until(|reading| reading.up);
        let reading = watch.reading();
        assert_eq!((reading.cost.connections, reading.run), (2, 0), "it was not started again");
        assert!(reading.cost.skipped > 0);
        server.kill().unwrap();
    }

    fn a_server_that_is_started_again_is_another_run(bench) {
        let mut plan = bench.plan();
        plan.settings.set("log_bin", "on").unwrap();
        let server = start(&plan);
        let target = looker(&server);
        let mut watch = Watch::new(target);
        watch.until(is_complete);
        // So that the uptime after the restart is less than before.
        std::thread::sleep(Duration::from_secs(4));
        watch.until(|reading| reading.cost.samples > 1);
        server.stop(PATIENCE).unwrap();
        let error = watch.error();
        assert!(matches!(error, SampleError::Lost { .. } | SampleError::Connect(_)), "{error:?}");
        assert!(!watch.reading().up);
        let server = start(&plan);
        watch.until(|reading| reading.up && reading.run == 1);
        watch.until(is_complete);
        assert!(watch.reading().cost.connections >= 2);
        server.kill().unwrap();
    }
}
