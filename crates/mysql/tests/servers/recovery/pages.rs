//! Pages that are valid, and pages that are not.

use std::process::Command;

use ebbtide_mysql::recovery::page::Checksum;
use ebbtide_mysql::recovery::{PageCheck, Unverified, check_pages, scan_pages};
use ebbtide_mysql::{Layout, ServerPlan};

use super::{PAGE, Pages, execute, write_dirty_pages};
use crate::support::{Bench, PATIENCE, fill, on_each_server};

/// A stopped server's data, with a table of some pages that went through the doublewrite buffer.
fn stopped(bench: &Bench) -> ServerPlan {
    bench.plan_of_stopped("written-back", || {
        let (server, plan) = bench.started();
        fill(&server, 5000);
        write_dirty_pages(&server);
        execute(&server, &["UPDATE test.t SET pad = REPEAT('y', 150)"]);
        server.stop(PATIENCE).unwrap();
        plan
    })
}

/// File name and page of what a check found.
fn found(check: &PageCheck) -> Vec<(String, u32)> {
    let name = |path: &std::path::Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    check.invalid.iter().map(|bad| (name(&bad.file), bad.page)).collect()
}

/// What both looks find, which is the same.
fn both(bench: &Bench, layout: &Layout) -> PageCheck {
    let theirs = check_pages(&bench.binary, layout).unwrap_or_else(|error| panic!("{error}"));
    let ours = scan_pages(layout).unwrap();
    assert_eq!(found(&theirs), found(&ours), "{theirs:#?}\n{ours:#?}");
    assert_eq!((theirs.files, theirs.pages), (ours.files, ours.pages));
    theirs
}

on_each_server! {
    fn both_checks_find_a_healthy_servers_pages_valid_and_the_same_damage(bench) {
        let plan = stopped(&bench);
        let check = both(&bench, &plan.layout);
        assert_eq!(found(&check), []);
        assert!(check.files > 1 && check.pages > 768 + 60, "{check:?}");

        let (table, system) = (Pages::of_table(&plan.layout), Pages::system(&plan.layout));
        table.damage(3, 8000);
        table.damage(20, 10);
        // In an empty page, and in one that is in use.
        system.damage(system.count() - 1, 5000);
        system.damage(5, 300);
        let expected = [("ibdata1", 5), ("ibdata1", system.count() - 1), ("t.ibd", 3), ("t.ibd", 20)];
        let expected: Vec<_> = expected.iter().map(|(name, page)| ((*name).to_owned(), *page)).collect();
        let check = both(&bench, &plan.layout);
        assert_eq!(found(&check), expected, "{check:#?}");
        let facts = check.invalid[2].facts.as_ref().unwrap();
        assert_eq!((facts.page, facts.torn), (3, false));
        assert!(matches!(facts.checksum, Checksum::Differs { .. }), "{facts:?}");
        assert!(check.invalid[2].reason.starts_with("innochecksum: Fail"), "{}", check.invalid[2].reason);
    }

    fn a_page_of_two_versions_is_found_and_named_torn(bench) {
        let plan = stopped(&bench);
        let old = Pages::of_table(&plan.layout);
        let server = crate::support::start(&plan);
        execute(&server, &["UPDATE test.t SET pad = REPEAT('z', 150)"]);
        server.stop(PATIENCE).unwrap();
        let new = Pages::of_table(&plan.layout);
        let page = new.leaves()[3].0;
        let half = PAGE / 2;
        new.write((page as usize * PAGE + half) as u64, &old.page(page)[half..]);
        let check = both(&bench, &plan.layout);
        assert_eq!(found(&check), [("t.ibd".to_owned(), page)]);
        let facts = check.invalid[0].facts.clone().unwrap();
        assert!(facts.torn, "{facts:?}");
        assert_eq!(facts.lsn_head, new.facts(page).lsn_head);
        assert_eq!(facts.lsn_tail, old.facts(page).lsn_tail);
    }

    fn a_file_without_its_first_page_or_with_a_cut_one_is_found(bench) {
        let plan = stopped(&bench);
        let table = Pages::of_table(&plan.layout);
        table.damage(0, 9000);
        let check = both_any(&bench, &plan.layout);
        assert_eq!(check, ([("t.ibd".to_owned(), 0)].to_vec(), [("t.ibd".to_owned(), 0)].to_vec()));
        table.write(0, table.page(0));
        let file = std::fs::File::options().write(true).open(&table.path).unwrap();
        file.set_len((table.bytes.len() - PAGE + 4096) as u64).unwrap();
        let last = [("t.ibd".to_owned(), table.count() - 1)].to_vec();
        assert_eq!(both_any(&bench, &plan.layout), (last.clone(), last));
    }

    fn pages_of_a_server_that_runs_are_unverified_and_never_clean(bench) {
        let (server, plan) = bench.started();
        let error = check_pages(&bench.binary, &plan.layout).unwrap_err();
        assert!(matches!(&error, Unverified::Tool { message, .. } if message.contains("lock")), "{error}");
        server.stop(PATIENCE).unwrap();
        let mut binary = bench.binary.clone();
        binary.path = "/nowhere/mysqld".into();
        binary.version.major = 90;
        let error = check_pages(&binary, &plan.layout).unwrap_err();
        assert!(matches!(error, Unverified::NoTool { .. }), "{error}");
        let empty = Layout::single(bench.path("empty"));
        std::fs::create_dir(&empty.data).unwrap();
        assert!(check_pages(&bench.binary, &empty).is_err() && scan_pages(&empty).is_err());
    }
}

type Found = Vec<(String, u32)>;

/// What each look finds.
fn both_any(bench: &Bench, layout: &Layout) -> (Found, Found) {
    let theirs = check_pages(&bench.binary, layout).unwrap_or_else(|error| panic!("{error}"));
    (found(&theirs), found(&scan_pages(layout).unwrap()))
}

#[test]
fn the_doublewrite_area_fails_on_a_healthy_server_and_damage_next_to_it_is_still_found() {
    let Some(bench) = Bench::of("system") else { return };
    if !bench.binary.is_mariadb() {
        println!("SKIPPED: MariaDB as the system's server");
        return;
    }
    let plan = stopped(&bench);
    let system = Pages::system(&plan.layout);
    let output = Command::new("innochecksum").arg(&system.path).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && stderr.contains("Fail: page::64 invalid"),
        "the trap is gone: {stderr}"
    );
    assert_eq!(found(&both(&bench, &plan.layout)), []);

    // Those right next to the area, and one inside of it.
    for page in [63, 100, 192] {
        system.damage(page, 5000);
    }
    let expected = [("ibdata1".to_owned(), 63), ("ibdata1".to_owned(), 192)];
    assert_eq!(found(&both(&bench, &plan.layout)), expected);
}
