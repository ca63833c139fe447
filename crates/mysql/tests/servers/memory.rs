//! The bound on a server's memory, which holds its page cache too.

use ebbtide_mysql::{Cause, ProcessEnd, Server, ServerError, ServerPlan};

use crate::support::{Bench, PATIENCE, start};

const LIMIT: u64 = 320 << 20;
/// More than the limit, so that the page cache has to give way.
const WRITTEN_MIB: u32 = 400;

fn cgroups_are_missing(error: &ServerError) -> bool {
    if let ServerError::Cgroup { why, .. } = error {
        println!("SKIPPED: memory cgroups ({why})");
    }
    matches!(error, ServerError::Cgroup { .. })
}

fn bounded(bench: &Bench) -> Option<(Server, ServerPlan)> {
    let mut plan = bench.plan();
    plan.memory_bytes = Some(LIMIT);
    plan.settings.set("innodb_buffer_pool_size", "32MiB").unwrap();
    plan.settings.set("performance_schema", "OFF").unwrap();
    match Server::start(&plan, &|_| {}) {
        Ok(server) => Some((server, plan)),
        Err(error) if cgroups_are_missing(&error) => None,
        Err(error) => panic!("{error}\n{}", error.log().join("\n")),
    }
}

/// Writes files through the page cache: MyISAM has no cache of its own for rows.
fn write_through_the_page_cache(server: &Server) {
    let mut session = server.session().unwrap();
    session.execute("CREATE DATABASE test").unwrap();
    session.execute("CREATE TABLE test.big (id INT, pad LONGBLOB) ENGINE=MyISAM").unwrap();
    for id in 0..WRITTEN_MIB {
        session.execute(&format!("INSERT INTO test.big VALUES ({id}, REPEAT('x', 1048576))")).unwrap();
    }
}

fn check_the_bound(bench: &Bench) {
    let Some((server, plan)) = bounded(bench) else { return };
    let before = server.memory();
    write_through_the_page_cache(&server);
    let after = server.memory();
    assert!(before.bytes > 0 && before.bytes < LIMIT, "{before:?}");
    assert!(after.page_cache_bytes > 50 << 20, "{after:?}");
    assert!(after.bytes <= LIMIT && after.peak_bytes <= LIMIT, "{after:?}");
    // It has met the bound, rather than never having come near it.
    assert!(after.peak_bytes > LIMIT * 9 / 10, "{after:?}");
    assert_eq!(server.end(), ProcessEnd::Running, "{:?}", server.died());
    server.stop(PATIENCE).unwrap();
    start(&ServerPlan { memory_bytes: None, ..plan }).kill().unwrap();
}

#[test]
fn the_page_cache_of_mariadb_stays_within_the_instances_memory() {
    if let Some(bench) = Bench::of("system") {
        check_the_bound(&bench);
    }
}

#[test]
fn the_page_cache_of_mysql_stays_within_the_instances_memory() {
    if let Some(bench) = Bench::of("mysql-9.7") {
        check_the_bound(&bench);
    }
}

#[test]
fn a_server_that_needs_more_memory_than_there_is_is_refused_with_that_reason() {
    let Some(bench) = Bench::of("system") else { return };
    let mut plan = bench.plan();
    plan.memory_bytes = Some(24 << 20);
    let error = Server::start(&plan, &|_| {}).unwrap_err();
    if !cgroups_are_missing(&error) {
        assert!(error.to_string().contains("it needs more memory than it may have"), "{error}");
        let ServerError::DidNotStart { end, cause, .. } = error else { panic!("{error:?}") };
        assert_eq!(end, ProcessEnd::OutOfMemory { counted: true });
        assert_eq!(cause, Some(Cause::Memory));
    }
}
