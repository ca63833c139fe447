//! Every rule is seen to fire: tables damaged by hand break that rule, and what follows from it.

use std::fs;
use std::path::Path;
use std::process::Command;

use ebbtide_load::Session;
use ebbtide_load::invariant::{Evidence, Expected, Rule, Schema};

use super::{assert_clean, checked, on_each_server, options, prepared, small, worked};
use crate::support::Server;

/// A damage: what it does, how it is undone, and which rules it breaks.
struct Damage {
    name: &'static str,
    done: Vec<String>,
    undone: Vec<String>,
    breaks: &'static [Rule],
    /// Words that the findings must have.
    text: String,
}

const ACCOUNT_CRC: &str = "crc=CRC32(CONCAT_WS('|',id,balance,version))";
const BALLAST_CRC: &str = "crc=CRC32(CONCAT_WS('|',id,k,c,pad,hits))";
const HISTORY_CRC: &str = "crc=CRC32(CONCAT_WS('|',client,seq,a,b,amount,payload))";

fn change(table: &str, set: &str, back: &str, condition: &str) -> (Vec<String>, Vec<String>) {
    let update = |set| vec![format!("UPDATE ebbtide_{table} SET {set} WHERE {condition}")];
    (update(set), update(back))
}

/// Takes rows out of the way, and puts them back.
fn removal(table: &str, condition: &str) -> (Vec<String>, Vec<String>) {
    let done = vec![
        format!("CREATE TABLE kept AS SELECT * FROM ebbtide_{table} WHERE {condition}"),
        format!("DELETE FROM ebbtide_{table} WHERE {condition}"),
    ];
    (done, vec![format!("INSERT INTO ebbtide_{table} SELECT * FROM kept"), "DROP TABLE kept".into()])
}

fn damage(
    name: &'static str,
    (done, undone): (Vec<String>, Vec<String>),
    breaks: &'static [Rule],
    text: impl Into<String>,
) -> Damage {
    Damage { name, done, undone, breaks, text: text.into() }
}

/// Rows of accounts and ballast.
fn damages_of_rows(schema: &Schema) -> Vec<Damage> {
    let swap = |by: &str| format!("balance=balance{by},{ACCOUNT_CRC}");
    let version = |by: &str| format!("version=version{by},{ACCOUNT_CRC}");
    let hits = |by: &str| format!("hits=hits{by},{BALLAST_CRC}");
    let k = |by: &str| format!("k=k{by}");
    vec![
        damage(
            "money from nowhere",
            change("account", &swap("+1"), &swap("-1"), "id=3"),
            &[Rule::Balance],
            format!("expected {}, found {}", schema.accounts * 1_000, schema.accounts * 1_000 + 1),
        ),
        damage(
            "half a transfer",
            change("account", &version("+1"), &version("-1"), "id=3"),
            &[Rule::Versions],
            "versions",
        ),
        damage("a lost hit", change("ballast", &hits("-1"), &hits("+1"), "id=5"), &[Rule::Hits], "hits"),
        damage(
            "a row of ballast with another k",
            change("ballast", &k("+9"), &k("-9"), "id IN (5,6)"),
            &[Rule::Checksum],
            "2 rows that do not\n  row: id=5, k=",
        ),
        damage(
            "an account with another balance and version",
            change(
                "account",
                "balance=balance+1,version=version+2",
                "balance=balance-1,version=version-2",
                "id=3",
            ),
            &[Rule::Versions, Rule::Balance, Rule::Checksum],
            "ebbtide_account",
        ),
        damage(
            "a row of ballast that nothing had hit",
            removal("ballast", &format!("id={}", schema.rows)),
            &[Rule::Rows],
            format!("expected {} rows, found {} rows", schema.rows, schema.rows - 1),
        ),
        damage(
            "an account that is gone",
            removal("account", "id=7"),
            &[Rule::Rows, Rule::Versions, Rule::Balance],
            "missing before: t.id=8",
        ),
    ]
}

/// The history of client 2, and markers.
fn damages_of_history(mark: u64, window: u64) -> Vec<Damage> {
    let row = |seq: u64| format!("client=2 AND seq={seq}");
    let above = |seq: u64| {
        let values = format!("2,{seq},1,2,3,'x',CRC32('2|{seq}|1|2|3|x')");
        let insert = format!("INSERT INTO ebbtide_history VALUES ({values})");
        (vec![insert], vec![format!("DELETE FROM ebbtide_history WHERE client=2 AND seq={seq}")])
    };
    let payload = |set: &str| format!("payload={set},{HISTORY_CRC}");
    let marked = payload("CONCAT('aborted-',payload)");
    let plain = payload("REPLACE(payload,'aborted-','')");
    let marker = ["INSERT INTO ebbtide_aborted VALUES (1,55)", "DELETE FROM ebbtide_aborted"];
    let [put, taken] = marker.map(|sql| vec![sql.to_owned()]);
    let oldest = mark - window + 1;
    vec![
        damage("the newest row is gone", removal("history", &row(mark)), &[Rule::HistoryEnd], "newest row"),
        damage(
            "a row without its mark",
            above(mark + 1),
            &[Rule::HistoryEnd],
            format!("client 2: mark {mark}, newest row {}", mark + 1),
        ),
        damage("a gap", removal("history", &row(mark - 3)), &[Rule::HistoryGap], "client 2: rows"),
        damage(
            "the oldest row is gone",
            removal("history", &row(oldest)),
            &[Rule::HistoryStart],
            format!("oldest row {}, not {oldest}", oldest + 1),
        ),
        damage(
            "a row that was deleted",
            above(oldest - 1),
            &[Rule::HistoryStart],
            format!("oldest row {}, not {oldest}", oldest - 1),
        ),
        damage(
            "a client's history is gone",
            removal("history", "client=2"),
            &[Rule::HistoryEnd],
            "newest row 0",
        ),
        damage(
            "another amount",
            change("history", "amount=amount+1", "amount=amount-1", &row(mark - 2)),
            &[Rule::Checksum],
            format!("row: client=2, seq={}", mark - 2),
        ),
        damage("a marker", (put, taken), &[Rule::Aborted], "marker: client=1, seq=55"),
        damage(
            "a row of what was rolled back",
            change("history", &marked, &plain, &row(mark - 2)),
            &[Rule::Aborted],
            "1 rows of history",
        ),
    ]
}

/// The mark of client 2.
fn damages_of_marks(mark: u64) -> Vec<Damage> {
    let seq = |seq: u64| format!("seq={seq}");
    let set = |to| change("ledger", &seq(to), &seq(mark), "client=2");
    vec![
        damage(
            "a mark that is behind",
            set(mark - 4),
            &[Rule::LostCommits, Rule::Versions, Rule::Hits, Rule::HistoryEnd, Rule::HistoryStart],
            format!("client 2: acknowledged {mark}, recovered {}", mark - 4),
        ),
        damage(
            "a mark that is ahead",
            set(mark + 1),
            &[Rule::Phantom, Rule::Versions, Rule::Hits, Rule::HistoryEnd, Rule::HistoryStart],
            format!("client 2: sent {mark}, recovered {}", mark + 1),
        ),
        damage(
            "no mark",
            removal("ledger", "client=2"),
            &[
                Rule::LostCommits,
                Rule::Marks,
                Rule::Versions,
                Rule::Hits,
                Rule::HistoryEnd,
                Rule::HistoryStart,
            ],
            "client 2: no mark",
        ),
    ]
}

fn execute(session: &mut Session, statements: &[String]) {
    for statement in statements {
        session.execute(statement).unwrap();
    }
}

#[test]
fn every_damage_breaks_its_rule_and_what_follows_from_it() {
    on_each_server(&[], |server| {
        // The last row of the ballast is never drawn: loaded for one row more than the load knows.
        let schema = small();
        let loaded = Schema { rows: schema.rows + 1, ..schema.clone() };
        prepared(server, &loaded, 4);
        let (_, expected) = worked(&options(server, &schema, 4), 400);
        let mark = expected[2].acknowledged;
        assert!(mark > u64::from(schema.window) + 5, "the history moves: {mark}");
        let mut damages = damages_of_rows(&loaded);
        damages.extend(damages_of_history(mark, schema.window.into()));
        damages.extend(damages_of_marks(mark));
        let mut session = server.session();
        assert_clean(&checked(server, &loaded, &expected));
        let mut seen = Vec::new();
        for damage in damages {
            execute(&mut session, &damage.done);
            let findings = checked(server, &loaded, &expected);
            let text = findings.findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
            assert_eq!(findings.rules(), damage.breaks, "{}: {text}", damage.name);
            assert!(text.contains(&damage.text), "{}: {text}", damage.name);
            seen.extend(findings.rules());
            execute(&mut session, &damage.undone);
            let findings = checked(server, &loaded, &expected);
            assert!(findings.is_clean(), "{} is undone: {:#?}", damage.name, findings.findings);
        }
        seen.sort_unstable();
        seen.dedup();
        let all = [
            Rule::LostCommits,
            Rule::Phantom,
            Rule::Marks,
            Rule::Rows,
            Rule::Versions,
            Rule::Hits,
            Rule::Balance,
            Rule::HistoryEnd,
            Rule::HistoryGap,
            Rule::HistoryStart,
            Rule::Aborted,
            Rule::Checksum,
        ];
        assert_eq!(seen, all, "the index has a test of its own");
    });
}

/// A whole transaction taken out or put in by hand is no half one.
#[test]
fn a_whole_transaction_that_is_gone_is_lost_and_one_too_many_is_a_phantom() {
    on_each_server(&[], |server| {
        let schema = Schema { window: 100_000, ..small() };
        prepared(server, &schema, 4);
        let (_, expected) = worked(&options(server, &schema, 4), 100);
        let mark = expected[1].acknowledged;
        let mut session = server.session();
        let of_last = format!("client=1 AND seq={mark}");
        let row = session.rows(&format!("SELECT a,b,amount FROM ebbtide_history WHERE {of_last}")).unwrap();
        let cell = |at: usize| row[0][at].clone().unwrap();
        let (from, to, amount) = (cell(0), cell(1), cell(2));
        let moved = |id: &str, by: &str, step: &str| {
            format!(
                "UPDATE ebbtide_account SET balance=balance{by},version=version{step},{ACCOUNT_CRC} WHERE id={id}"
            )
        };
        let hit = |step: &str| {
            format!("UPDATE ebbtide_ballast SET k=k{step},hits=hits{step},{BALLAST_CRC} WHERE id=9")
        };
        execute(
            &mut session,
            &[
                moved(&from, &format!("+{amount}"), "-1"),
                moved(&to, &format!("-{amount}"), "-1"),
                hit("-1"),
                format!("DELETE FROM ebbtide_history WHERE {of_last}"),
                format!("UPDATE ebbtide_ledger SET seq={} WHERE client=1", mark - 1),
            ],
        );
        let findings = checked(server, &schema, &expected);
        assert_eq!(findings.rules(), [Rule::LostCommits], "{:#?}", findings.findings);
        assert_eq!((findings.lost.len(), findings.lost_commits()), (1, 1));
        assert!(!findings.shows(Evidence::PhantomOrPartial) && !findings.shows(Evidence::Corrupt));
        // To clients that had not sent it, it was never there; with what came back, one more is.
        let unsent = |e: &Expected| {
            let last = if e.client == 1 { mark - 2 } else { e.sent };
            Expected { acknowledged: last, sent: last, ..*e }
        };
        let unsent: Vec<Expected> = expected.iter().map(unsent).collect();
        let findings = checked(server, &schema, &unsent);
        assert_eq!(findings.rules(), [Rule::Phantom], "{:#?}", findings.findings);
        assert!(findings.shows(Evidence::PhantomOrPartial) && findings.lost.is_empty());
    });
}

/// Two indexes of a table, each with its first column.
#[derive(Clone, Copy)]
struct Pair {
    table: &'static str,
    indexes: [(&'static str, &'static str); 2],
    /// Columns of the second index after the first.
    rest: &'static str,
}

/// Gives two indexes each other's values in their first columns, of the same type: in a twin of the table
/// the indexes are built over the other column, and the twin's file is imported with the names in its
/// description exchanged back. No statement can damage an index.
fn exchange(server: &Server, session: &mut Session, pair: Pair) {
    let Pair { table, indexes: [(first, x), (second, y)], rest } = pair;
    let rebuild = |table: &str, x: &str, y: &str| {
        format!(
            "ALTER TABLE {table} DROP INDEX {first}, DROP INDEX {second}, ADD INDEX {first} ({x}), \
             ADD INDEX {second} ({y}{rest})"
        )
    };
    let twin = [
        format!("CREATE TABLE twin LIKE {table}"),
        rebuild("twin", y, x),
        format!("INSERT INTO twin SELECT * FROM {table}"),
        rebuild(table, x, y),
        "FLUSH TABLES twin FOR EXPORT".into(),
    ];
    execute(session, &twin);
    let kept = |end: &str| server.path(&format!("twin.{end}"));
    let copied = |from: &Path, to: &Path| {
        assert!(Command::new("cp").arg("-p").args([from, to]).status().unwrap().success());
    };
    for end in ["ibd", "cfg"] {
        copied(&server.tables().join(format!("twin.{end}")), &kept(end));
    }
    let description = fs::read(kept("cfg")).unwrap();
    // The indexes come last, in their order: the last two places of these names are their first columns.
    let description = renamed(&renamed(&description, x, "?"), y, x);
    fs::write(kept("cfg"), renamed(&description, "?", y)).unwrap();
    execute(session, &["UNLOCK TABLES".into(), "DROP TABLE twin".into()]);
    session.execute(&format!("ALTER TABLE {table} DISCARD TABLESPACE")).unwrap();
    for end in ["ibd", "cfg"] {
        copied(&kept(end), &server.tables().join(format!("{table}.{end}")));
    }
    session.execute(&format!("ALTER TABLE {table} IMPORT TABLESPACE")).unwrap();
}

/// Exchanges the last place of a name in the description of an exported table.
fn renamed(description: &[u8], from: &str, to: &str) -> Vec<u8> {
    let field = |name: &str| {
        let length = u32::try_from(name.len() + 1).unwrap();
        [&length.to_be_bytes(), name.as_bytes(), b"\0"].concat()
    };
    let (from, to) = (field(from), field(to));
    let at = description.windows(from.len()).rposition(|window| window == from).unwrap();
    [&description[..at], &to, &description[at + from.len()..]].concat()
}

#[test]
fn an_index_that_disagrees_with_its_rows_is_found_and_nothing_else_is() {
    on_each_server(&[], |server| {
        prepared(server, &small(), 4);
        let (_, expected) = worked(&options(server, &small(), 4), 200);
        let mut session = server.session();
        session.execute("ALTER TABLE ebbtide_ballast ADD INDEX other (crc)").unwrap();
        let history = Pair {
            table: "ebbtide_history",
            indexes: [("by_a", "a"), ("by_b_amount", "b")],
            rest: ",amount",
        };
        let ballast = Pair { table: "ebbtide_ballast", indexes: [("by_k", "k"), ("other", "crc")], rest: "" };
        let subjects =
            [&["ebbtide_history.by_a", "ebbtide_history.by_b_amount"][..], &["ebbtide_ballast.by_k"]];
        for (pair, subjects) in [history, ballast].into_iter().zip(subjects) {
            exchange(server, &mut session, pair);
            let findings = checked(server, &small(), &expected);
            let found: Vec<&str> = findings.findings.iter().map(|finding| finding.subject.as_str()).collect();
            assert_eq!(found, subjects, "{:#?}", findings.findings);
            assert_eq!(findings.rules(), [Rule::Index]);
            assert!(findings.shows(Evidence::Corrupt));
            for finding in &findings.findings {
                for kind in ["entry without its row: entry.", "row without its entry: line."] {
                    assert!(finding.rows.iter().any(|row| row.starts_with(kind)), "{kind}: {finding}");
                }
            }
            // Built again, the indexes agree. In two statements: one would find nothing to do.
            let Pair { table, indexes: [(first, x), (second, y)], rest } = pair;
            for change in [
                format!("DROP INDEX {first}, DROP INDEX {second}"),
                format!("ADD INDEX {first} ({x}), ADD INDEX {second} ({y}{rest})"),
            ] {
                session.execute(&format!("ALTER TABLE {table} {change}")).unwrap();
            }
            assert_clean(&checked(server, &small(), &expected));
        }
    });
}
