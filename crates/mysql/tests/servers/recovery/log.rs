//! What servers log of a recovery that goes well, and of one that does not.

use std::time::Instant;

use ebbtide_mysql::recovery::{self, LogEvidence};
use ebbtide_mysql::{Cause, Server, ServerError, ServerPlan};

use super::{PAGE, Pages, execute, files_below};
use crate::support::{Bench, PATIENCE, copy, count, fill, on_each_server, start};

fn evidence(server: &Server) -> LogEvidence {
    LogEvidence::read(&server.log_tail(usize::MAX))
}

/// A server with 5000 rows that are all on disk.
fn filled(bench: &Bench, settings: &[(&str, &str)]) -> (Server, ServerPlan) {
    let mut plan = bench.plan();
    for (name, value) in settings {
        plan.settings.set(name, value).unwrap();
    }
    let server = start(&plan);
    fill(&server, 5000);
    (server, plan)
}

/// Kills a server whose pages on disk are older than its redo log, and tears one of them: its first half
/// is of the version that the redo log leads to.
fn torn_without_doublewrite(bench: &Bench) -> ServerPlan {
    let (server, plan) = filled(bench, &[("doublewrite", "OFF")]);
    server.stop(PATIENCE).unwrap();
    let server = start(&plan);
    execute(&server, &["UPDATE test.t SET pad = REPEAT('z', 200)"]);
    server.kill().unwrap();
    let old = Pages::of_table(&plan.layout);

    let mut later = plan.clone();
    later.layout.data = bench.path("later");
    copy(&plan.layout.data, &later.layout.data);
    start(&later).stop(PATIENCE).unwrap();
    let new = Pages::of_table(&later.layout);

    let changed = |page: &u32| old.facts(*page).lsn_head != new.facts(*page).lsn_head;
    let page =
        old.leaves().into_iter().map(|(page, _)| page).rfind(changed).expect("a page that was not written");
    old.write((page as usize * PAGE) as u64, &new.page(page)[..PAGE / 2]);
    let torn = recovery::scan_pages(&plan.layout).unwrap().invalid;
    assert!(torn.iter().any(|bad| bad.page == page && bad.copy.is_none()), "{torn:?}");
    plan
}

/// The pages of `test.t` of which the doublewrite buffer has the version that is on disk.
fn in_doublewrite(plan: &ServerPlan) -> Vec<u32> {
    let table = Pages::of_table(&plan.layout);
    let name = |path: &std::path::Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let buffers = files_below(&plan.layout.data)
        .into_iter()
        .filter(|path| name(path) == "ibdata1" || name(path).ends_with(".dblwr"));
    let copies: Vec<Vec<u8>> = buffers
        .flat_map(|path| {
            std::fs::read(path).unwrap().chunks_exact(PAGE).map(<[u8]>::to_vec).collect::<Vec<_>>()
        })
        .collect();
    let leaves = table.leaves().into_iter().map(|(page, _)| page);
    leaves.filter(|page| copies.iter().any(|copy| copy == table.page(*page))).collect()
}

on_each_server! {
    fn a_recovery_that_goes_well_is_reported_and_is_no_corruption(bench) {
        let (server, plan) = filled(&bench, &[("log_bin", "ON")]);
        assert!(!evidence(&server).recovered);
        let mut session = server.session().unwrap();
        session.execute("BEGIN").unwrap();
        session.execute("DELETE FROM test.t WHERE id < 1000").unwrap();
        execute(&server, &["DELETE FROM test.t WHERE id = 4999"]);
        // What is not in the binary log takes what is before it to disk.
        execute(&server, &["SET sql_log_bin = 0", "DELETE FROM test.t WHERE id = 4998"]);
        server.kill().unwrap();
        let server = start(&plan);
        assert_eq!(count(&server), 4998);
        let found = evidence(&server);
        assert!(found.recovered, "{:#?}", server.log_tail(usize::MAX));
        assert_eq!((&found.corruption, &found.crash), (&Vec::new(), &Vec::new()));
        assert!(!found.binlog.is_empty(), "{:#?}", server.log_tail(usize::MAX));
        assert_eq!((found.unfinished, found.prepared), (1, 0), "{:#?}", server.log_tail(usize::MAX));
        server.stop(PATIENCE).unwrap();
        // The rest of the roll-back is in the log by now.
        let server = start(&plan);
        let found = evidence(&server);
        assert!(!found.recovered && found.corruption.is_empty() && found.crash.is_empty(), "{found:#?}");
        assert_eq!((found.unfinished, found.prepared, found.rolled_back), (0, 0, 0), "{found:#?}");
    }

    fn a_torn_page_without_a_doublewrite_buffer_is_corruption(bench) {
        let plan = torn_without_doublewrite(&bench);
        let began = Instant::now();
        let error = Server::start(&plan, &|_| {}).expect_err("no page of two versions is recovered");
        // MySQL would wait for the page for ever.
        assert!(began.elapsed() < plan.start_timeout / 2, "{error}");
        let corrupt = matches!(error, ServerError::DidNotStart { cause: Some(Cause::Corrupt), .. });
        assert!(corrupt, "{error}\n{}", error.log().join("\n"));
        let found = LogEvidence::read(error.log());
        assert!(!found.corruption.is_empty() && found.doublewrite.is_empty(), "{found:#?}");
    }

    fn a_torn_page_that_the_doublewrite_buffer_restores_is_reported_and_is_no_corruption(bench) {
        // A checkpoint may come between: no server restores a page that needs no redo log.
        let restored = (0..4).find_map(|_| torn_with_doublewrite(&bench));
        let (page, found) = restored.expect("a page that is restored, in one of four attempts");
        assert_eq!((&found.corruption, &found.crash), (&Vec::new(), &Vec::new()));
        let pages: Vec<u32> = found.doublewrite.iter().map(|page| page.page).collect();
        assert_eq!(pages, [page]);
    }
}

/// Kills a server that has just written pages through its doublewrite buffer, tears one of them, and
/// answers with its number and with what the next start logs; none where that start has not restored it.
fn torn_with_doublewrite(bench: &Bench) -> Option<(u32, LogEvidence)> {
    let _ = std::fs::remove_dir_all(bench.path("data"));
    let (server, plan) = filled(bench, &[("doublewrite", "ON")]);
    execute(
        &server,
        &["CREATE TABLE test.other (id INT PRIMARY KEY) ENGINE=InnoDB", "INSERT INTO test.other VALUES (1)"],
    );
    // Pages that are new since the last checkpoint need no doublewrite: the redo log makes them anew.
    server.stop(PATIENCE).unwrap();
    let server = start(&plan);
    let before = Pages::of_table(&plan.layout);
    // The first change stays in memory and keeps the checkpoint where it is; those of the table are
    // written through the doublewrite buffer at once.
    execute(
        &server,
        &[
            "UPDATE test.other SET id = id + 1",
            "UPDATE test.t SET pad = REPEAT('z', 200) WHERE id < 1000",
            "FLUSH TABLES test.t FOR EXPORT",
        ],
    );
    server.kill().unwrap();
    let table = Pages::of_table(&plan.layout);
    let changed = |page: &u32| table.facts(*page).lsn_head != before.facts(*page).lsn_head;
    let page = in_doublewrite(&plan).into_iter().rfind(changed).expect("pages that were written are there");
    let half = PAGE / 2;
    table.write((page as usize * PAGE + half) as u64, &before.page(page)[half..]);
    assert!(Pages::of_table(&plan.layout).facts(page).torn);
    let torn = recovery::scan_pages(&plan.layout).unwrap().invalid;
    let [bad] = torn.as_slice() else { panic!("{torn:?}") };
    assert_eq!((bad.page, bad.copy), (page, Some(table.facts(page).lsn_head)), "{bad:?}");
    // One that was never written has forgotten its name where its first unit is missing.
    let first = (page as usize * PAGE) as u64;
    table.write(first, &[0; 4096]);
    let torn = recovery::scan_pages(&plan.layout).unwrap().invalid;
    assert_eq!(torn[0].copy, bad.copy, "{torn:?}");
    table.write(first, &table.page(page)[..4096]);

    let server = start(&plan);
    let found = evidence(&server);
    if found.doublewrite.is_empty() {
        return None;
    }
    assert_eq!(count(&server), 5000);
    assert_eq!(found.doublewrite[0].space, table.facts(page).space);
    Some((page, found))
}
