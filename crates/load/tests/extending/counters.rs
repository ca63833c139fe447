//! One counter for each client, which its transactions raise.

use ebbtide_workload::{
    Access, AccessKind, Call, Description, Expr, Fill, Key, Op, ParamKind, Path, Statement, Step, Table,
    Transaction,
};

/// Places in the list of statements.
const RAISE: usize = 0;
const BEGIN: usize = 1;
const COMMIT: usize = 2;

/// The workload for so many clients.
pub(crate) fn counters(clients: u32) -> Description {
    // Clients are numbered from 0, rows from 1.
    let own = Expr::Client.op(Op::Add, Expr::Int(1));
    let raise = vec![
        Step::Send(vec![Call::new(BEGIN, Vec::new())]),
        Step::Send(vec![Call { changes: Some(Expr::Int(1)), ..Call::new(RAISE, vec![own]) }]),
        Step::Commit(Call::new(COMMIT, Vec::new())),
    ];
    Description {
        name: "counters".into(),
        form: "counters".into(),
        tables: vec![counter(clients)],
        statements: statements(),
        transactions: vec![Transaction::alone("raise", raise)],
        session: Vec::new(),
        opening: Vec::new(),
        undo: None,
        finish: Vec::new(),
        registers: 0,
    }
}

fn counter(rows: u32) -> Table {
    Table {
        name: "counter".into(),
        count: 0,
        create: "CREATE TABLE counter (id INT PRIMARY KEY, value BIGINT NOT NULL) ENGINE=InnoDB".into(),
        indexes: Vec::new(),
        fill: Fill {
            rows,
            columns: "",
            lets: Vec::new(),
            values: vec![Expr::Row, Expr::Int(0)],
            stream_rows: 1000,
            salt: 0,
            keep: None,
        },
        row_bytes: 40,
        warm_up: vec!["SELECT SUM(value) FROM counter".into()],
        ageing: None,
    }
}

fn statements() -> Vec<Statement> {
    let access = Access {
        table: 0,
        kind: AccessKind::Update,
        path: Path::Primary,
        key: Key::Param(0),
        rows: 1,
        changes: vec!["value"],
    };
    let raise = Statement {
        params: vec![ParamKind::Int],
        access: Some(access),
        ..Statement::plain("raise", "UPDATE counter SET value = value + 1 WHERE id = ?")
    };
    vec![raise, Statement::plain("begin", "BEGIN"), Statement::plain("commit", "COMMIT")]
}
