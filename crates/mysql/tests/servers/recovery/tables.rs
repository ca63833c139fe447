//! CHECK TABLE on tables that are whole, and on one that is not.

use ebbtide_mysql::recovery::check_tables;

use super::{Pages, execute};
use crate::support::{Bench, PATIENCE, fill, on_each_server, start};

on_each_server! {
    fn an_index_whose_leaves_are_not_linked_is_found_and_whole_tables_are_whole(bench) {
        let (server, plan) = bench.started();
        fill(&server, 1000);
        execute(&server, &["CREATE TABLE test.`other one` (id INT PRIMARY KEY) ENGINE=InnoDB", "CREATE INDEX k ON test.t (pad, id)"]);
        let checks = check_tables(&mut server.session().unwrap(), "test").unwrap();
        let results: Vec<_> = checks.iter().map(|check| (check.table.as_str(), check.ok)).collect();
        assert_eq!(results, [("test.other one", true), ("test.t", true)], "{checks:?}");
        server.stop(PATIENCE).unwrap();

        let table = Pages::of_table(&plan.layout);
        let leaves = table.leaves();
        let primary = leaves.iter().map(|(_, index)| *index).min().unwrap();
        let mut of_other = leaves.iter().filter(|(_, index)| *index != primary).map(|(page, _)| *page);
        let (first, third) = (of_other.next().unwrap(), of_other.nth(1).unwrap());
        // The leaf before it is another than it names.
        let mut bytes = table.page(third).to_vec();
        bytes[8..12].copy_from_slice(&first.to_be_bytes());
        table.write_sealed(third, bytes);
        let server = start(&plan);
        let checks = check_tables(&mut server.session().unwrap(), "test").unwrap();
        assert!(checks[0].ok && !checks[1].ok, "{checks:?}");
        assert!(checks[1].messages.iter().any(|line| line.contains("orrupt")), "{checks:?}");
        server.stop(PATIENCE).unwrap();
    }
}
