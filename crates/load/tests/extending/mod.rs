//! The workload of docs/extending.md, made as that page describes and executed on real servers.

mod counters;

use counters::counters;
use ebbtide_load::{Cancel, Ended, Execution, Loading, execute, load};
use ebbtide_workload::Program;

use crate::support::on_each;

const CLIENTS: u32 = 4;

#[test]
fn the_workload_of_the_page_runs_and_its_commits_are_in_the_table() {
    on_each(&[], |server| {
        let loading = Loading { seed: 1, connections: 2 };
        load(&server.target(), &counters(CLIENTS), loading, &Cancel::default(), &mut |_| ()).unwrap();
        let program = Program::new(counters(CLIENTS)).unwrap();
        let execution = Execution { connections: CLIENTS, events: Some(200), ..Execution::default() };
        let outcome =
            execute(&server.target(), &program, &execution, &Cancel::default(), &(), &mut |_| ()).unwrap();
        assert_eq!((outcome.ended, outcome.commits), (Ended::Events, 200), "{:?}", outcome.errors);
        let mut session = server.session();
        let mut number = |sql: &str| session.value(sql).unwrap().unwrap().parse::<u64>().unwrap();
        assert_eq!(number("SELECT CAST(SUM(value) AS UNSIGNED) FROM counter"), 200);
        assert_eq!(number("SELECT COUNT(*) FROM counter WHERE value > 0"), u64::from(CLIENTS));
    });
}

#[test]
fn a_model_can_read_what_a_transaction_of_the_page_changes() {
    let description = counters(CLIENTS);
    assert_eq!((description.rows(), description.data_bytes()), (4, 160));
    let changed: Vec<_> = description.statements.iter().filter_map(|one| one.access.as_ref()).collect();
    assert_eq!(changed.len(), 1);
    assert_eq!((changed[0].table, changed[0].rows, changed[0].changes.as_slice()), (0, 1, &["value"][..]));
}
