//! The check of a server that has recovered: the rules, one after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use ebbtide_workload::invariant::{
    ABORTED, ABORTED_PAYLOAD, ACCOUNT, BALLAST, CheckedTable, HISTORY, INITIAL_BALANCE, Index, Schema,
};

use crate::error::LoadError;
use crate::wire::Session;

use super::findings::{Finding, Findings, Lost, Mark, Rule, SHOWN};
use super::journal::Expected;
use super::read::{Range, Scan, TableContents, marks};

/// Checks a server without load against what its clients knew when it was cut off.
///
/// Reads in one snapshot and writes nothing. Transactions that the server is still rolling back after its
/// recovery are not seen, as they must not be.
///
/// # Errors
/// The server's. They mean that the tables could not be read, which is no finding: a lost connection
/// (2013) may be a server that a damaged page has brought down, 1146 a table that is gone, 1034, 1712, 1815, 1877 and
/// the like a damaged one; only the caller, who has the server's log, can distinguish them. [`LoadError::Tables`] is damage
/// in any case: a value was found that no load wrote.
pub fn check(session: &mut Session, schema: &Schema, expected: &[Expected]) -> Result<Findings, LoadError> {
    schema.check()?;
    let began = Instant::now();
    session.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
    session.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")?;
    let judged = judge(session, schema, expected);
    let ended = session.execute("ROLLBACK");
    let mut findings = judged?;
    ended?;
    findings.took_ms = began.elapsed().as_secs_f64() * 1e3;
    Ok(findings)
}

/// Checks the marks of a server against what the clients knew.
///
/// # Errors
/// Those of [`check`].
pub(crate) fn check_marks(session: &mut Session, expected: &[Expected]) -> Result<Findings, LoadError> {
    Ok(marks_against(&marks(session)?, expected))
}

/// What marks say against what the clients knew.
fn marks_against(marks: &BTreeMap<u32, u64>, expected: &[Expected]) -> Findings {
    let mark = |client| marks.get(&client).copied();
    let lost: Vec<Lost> = expected
        .iter()
        .map(|e| (e, mark(e.client).unwrap_or(0)))
        .filter(|(e, recovered)| *recovered < e.acknowledged)
        .map(|(e, recovered)| Lost {
            client: e.client,
            acknowledged: e.acknowledged,
            recovered,
            span_ms: None,
        })
        .collect();
    let mut findings = Vec::new();
    if !lost.is_empty() {
        let commits: u64 = lost.iter().map(Lost::commits).sum();
        let found = format!("{commits} commits of {} lost", counted(lost.len(), "client"));
        let text = |lost: &Lost| {
            format!(
                "client {}: acknowledged {}, recovered {}",
                lost.client, lost.acknowledged, lost.recovered
            )
        };
        let rows = lost.iter().take(SHOWN).map(text).collect();
        let expected = "every acknowledged commit".into();
        findings.push(Finding { rule: Rule::LostCommits, subject: String::new(), expected, found, rows });
    }
    findings.extend(of_clients(Rule::Phantom, expected, |e| {
        let recovered = mark(e.client).unwrap_or(0);
        let text = || format!("client {}: sent {}, recovered {recovered}", e.client, e.sent);
        (recovered > e.sent).then(text)
    }));
    findings.extend(of_clients(Rule::Marks, expected, |e| {
        mark(e.client).is_none().then(|| format!("client {}: no mark", e.client))
    }));
    let recovered = marks.iter().map(|(&client, &seq)| Mark { client, seq }).collect();
    Findings { recovered, lost, findings, took_ms: 0.0 }
}

/// A rule about clients: what `breach` says about each that breaks it.
fn of_clients<T>(
    rule: Rule,
    clients: impl IntoIterator<Item = T>,
    breach: impl Fn(T) -> Option<String>,
) -> Option<Finding> {
    let breaches: Vec<String> = clients.into_iter().filter_map(breach).collect();
    (!breaches.is_empty()).then(|| Finding {
        rule,
        subject: String::new(),
        expected: "it to hold for every client".into(),
        found: format!("{} where it does not hold", counted(breaches.len(), "client")),
        rows: breaches.into_iter().take(SHOWN).collect(),
    })
}

fn judge(session: &mut Session, schema: &Schema, expected: &[Expected]) -> Result<Findings, LoadError> {
    let seen = TableContents::read(session)?;
    let mut judge = Judge { session, schema, expected, seen: &seen, lost: Vec::new(), findings: Vec::new() };
    judge.commits();
    judge.sums()?;
    judge.histories();
    judge.aborted()?;
    judge.checksums()?;
    judge.indexes()?;
    let Judge { lost, findings, .. } = judge;
    let recovered = seen.marks.iter().map(|(&client, &seq)| Mark { client, seq }).collect();
    Ok(Findings { recovered, lost, findings, took_ms: 0.0 })
}

struct Judge<'a> {
    session: &'a mut Session,
    schema: &'a Schema,
    expected: &'a [Expected],
    seen: &'a TableContents,
    lost: Vec<Lost>,
    findings: Vec<Finding>,
}

impl Judge<'_> {
    fn finding(&mut self, rule: Rule, subject: &str, expected: String, found: String, rows: Vec<String>) {
        self.findings.push(Finding { rule, subject: subject.into(), expected, found, rows });
    }

    /// A rule about clients: what `breach` returns about each that breaks it.
    fn clients<T>(
        &mut self,
        rule: Rule,
        clients: impl IntoIterator<Item = T>,
        breach: impl Fn(T) -> Option<String>,
    ) {
        self.findings.extend(of_clients(rule, clients, breach));
    }

    fn mark(&self, client: u32) -> u64 {
        self.seen.marks.get(&client).copied().unwrap_or(0)
    }

    /// Marks against what the clients knew.
    fn commits(&mut self) {
        let Findings { lost, findings, .. } = marks_against(&self.seen.marks, self.expected);
        self.lost = lost;
        self.findings.extend(findings);
    }

    /// What adds up over whole tables.
    fn sums(&mut self) -> Result<(), LoadError> {
        let seen = self.seen;
        for (table, scan, loaded) in
            [(&ACCOUNT, &seen.account, self.schema.accounts), (&BALLAST, &seen.ballast, self.schema.rows)]
        {
            if scan.rows != i128::from(loaded) {
                let rows = self.missing(table)?;
                let (expected, found) = (format!("{loaded} rows"), format!("{} rows", scan.rows));
                self.finding(Rule::Rows, table.name, expected, found, rows);
            }
        }
        let marked: i128 = seen.marks.values().copied().map(i128::from).sum();
        let balance = i128::from(self.schema.accounts) * i128::from(INITIAL_BALANCE);
        for (rule, expected, found) in [
            (Rule::Versions, 2 * marked, seen.versions),
            (Rule::Hits, marked, seen.hits),
            (Rule::Balance, balance, seen.balance),
        ] {
            if expected != found {
                self.finding(rule, "", expected.to_string(), found.to_string(), Vec::new());
            }
        }
        Ok(())
    }

    /// The first ids that a loaded table lacks: each one whose successor is there and which is not.
    fn missing(&mut self, table: &CheckedTable) -> Result<Vec<String>, LoadError> {
        let name = table.name;
        let gap = format!(
            "FROM {name} t FORCE INDEX (PRIMARY) LEFT JOIN {name} p FORCE INDEX (PRIMARY) ON p.id=t.id-1 \
             WHERE t.id>1 AND p.id IS NULL"
        );
        self.rows("missing before", "t.id", &gap)
    }

    /// The window of history of each client that has a mark or a history.
    fn histories(&mut self) {
        let (seen, schema) = (self.seen, self.schema);
        let clients: BTreeSet<u32> = seen.marks.keys().chain(seen.clients.keys()).copied().collect();
        let of: Vec<(u32, u64, Range)> = clients
            .into_iter()
            .map(|client| (client, self.mark(client), seen.clients.get(&client).copied().unwrap_or_default()))
            .collect();
        self.clients(Rule::HistoryEnd, &of, |(client, mark, range)| {
            let text = || format!("client {client}: mark {mark}, newest row {}", range.newest);
            (range.newest != *mark).then(text)
        });
        self.clients(
            Rule::HistoryGap,
            of.iter().filter(|(.., range)| range.rows > 0),
            |(client, _, range)| {
                let Range { rows, oldest, newest } = range;
                let whole = newest.abs_diff(*oldest).saturating_add(1);
                let text =
                    || format!("client {client}: rows {oldest} to {newest} are {whole}, there are {rows}");
                (*rows != whole).then(text)
            },
        );
        // Without a row, the end shows it.
        self.clients(
            Rule::HistoryStart,
            of.iter().filter(|(.., range)| range.rows > 0),
            |(client, mark, range)| {
                let oldest = schema.oldest(*mark);
                let text =
                    || format!("client {client}: mark {mark}, oldest row {}, not {oldest}", range.oldest);
                (range.oldest != oldest).then(text)
            },
        );
    }

    fn aborted(&mut self) -> Result<(), LoadError> {
        let (markers, rows) = (self.seen.aborted_markers, self.seen.aborted_rows);
        if markers == 0 && rows == 0 {
            return Ok(());
        }
        let mut shown = self.rows("marker", "client,seq", &format!("FROM {ABORTED}"))?;
        let of_history = format!("FROM {} WHERE payload LIKE '{ABORTED_PAYLOAD}%'", HISTORY.name);
        shown.extend(self.rows("history", "client,seq,payload", &of_history)?);
        let found = format!("{markers} markers and {rows} rows of history");
        self.finding(Rule::Aborted, "", "nothing".into(), found, shown);
        Ok(())
    }

    fn scans(&self) -> [(&'static CheckedTable, &Scan); 3] {
        [(&ACCOUNT, &self.seen.account), (&BALLAST, &self.seen.ballast), (&HISTORY, &self.seen.history)]
    }

    fn checksums(&mut self) -> Result<(), LoadError> {
        for (table, bad) in self.scans().map(|(table, scan)| (table, scan.bad)) {
            if bad == 0 {
                continue;
            }
            let (columns, crc) = (format!("{},crc", table.summed), table.crc());
            let wrong = format!("FROM {} FORCE INDEX (PRIMARY) WHERE crc<>{crc}", table.name);
            let rows = self.rows("row", &columns, &wrong)?;
            let found = format!("{bad} rows that do not");
            self.finding(Rule::Checksum, table.name, "every row to fit".into(), found, rows);
        }
        Ok(())
    }

    fn indexes(&mut self) -> Result<(), LoadError> {
        let seen = self.seen;
        for (table, scan) in [(&ACCOUNT, &seen.account), (&BALLAST, &seen.ballast), (&HISTORY, &seen.history)]
        {
            for (index, (should, has)) in table.indexes.iter().zip(&scan.indexes) {
                if should == has {
                    continue;
                }
                let rows = self.disagreeing(table, index)?;
                let text =
                    |print: &super::read::Print| format!("{} entries, sum {}", print.entries, print.sum);
                let subject = format!("{}.{}", table.name, index.name);
                self.finding(Rule::Index, &subject, text(should), text(has), rows);
            }
        }
        Ok(())
    }

    /// Entries without a row that fits them, and rows without an entry.
    fn disagreeing(&mut self, table: &CheckedTable, index: &Index) -> Result<Vec<String>, LoadError> {
        let (name, by) = (table.name, index.name);
        let list = |of: &str| {
            let columns = table.key.iter().chain(index.columns).map(|column| format!("{of}.{column}"));
            columns.collect::<Vec<_>>().join(",")
        };
        let equal = |columns: &[&str]| {
            let each = columns.iter().map(|column| format!("entry.{column}=line.{column}"));
            each.collect::<Vec<_>>().join(" AND ")
        };
        let (key, value) = (equal(table.key), equal(index.columns));
        let stray = format!(
            "FROM {name} entry FORCE INDEX ({by}) LEFT JOIN {name} line FORCE INDEX (PRIMARY) ON {key} \
             WHERE line.{} IS NULL OR NOT ({value})",
            table.key[0]
        );
        let missing = format!(
            "FROM {name} line FORCE INDEX (PRIMARY) LEFT JOIN {name} entry FORCE INDEX ({by}) ON {value} AND {key} \
             WHERE entry.{} IS NULL",
            table.key[0]
        );
        let mut rows = self.rows("entry without its row", &list("entry"), &stray)?;
        rows.extend(self.rows("row without its entry", &list("line"), &missing)?);
        Ok(rows)
    }

    /// The first rows of a query, each with the names of its columns.
    fn rows(&mut self, what: &str, columns: &str, rest: &str) -> Result<Vec<String>, LoadError> {
        let found = self.session.rows(&format!("SELECT {columns} {rest} LIMIT {SHOWN}"))?;
        let text = |row: &Vec<Option<String>>| {
            let named = columns.split(',').zip(row);
            let cells = named.map(|(name, value)| format!("{name}={}", value.as_deref().unwrap_or("NULL")));
            format!("{what}: {}", cells.collect::<Vec<_>>().join(", "))
        };
        Ok(found.iter().map(text).collect())
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
