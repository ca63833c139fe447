//! What a transaction does, statement by statement: the workload's list and a cursor through it.

use crate::distribution::{Drawer, Random};
use crate::options::{RunOptions, Workload};
use crate::sql::{C_GROUPS, PAD_GROUPS, Stmt};

/// A parameter of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Param {
    /// A 32-bit INTEGER.
    Int(i32),
    /// A 64-bit BIGINT.
    Long(u64),
    /// Random text of so many groups of digits.
    Digits(usize),
}

/// The parameters of one statement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Params {
    list: [Param; 4],
    count: usize,
}

impl Params {
    fn new<const N: usize>(given: [Param; N]) -> Self {
        let mut list = [Param::Int(0); 4];
        list[..N].copy_from_slice(&given);
        Self { list, count: N }
    }

    pub(crate) fn as_slice(&self) -> &[Param] {
        &self.list[..self.count]
    }
}

/// One statement, ready to be sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Command {
    pub(crate) stmt: Stmt,
    /// From 1; 0 where the statement has no table.
    pub(crate) table: u32,
    pub(crate) params: Params,
}

/// A line of a transaction.
#[derive(Debug, Clone, Copy)]
enum Step {
    Once(Stmt),
    /// The same statement several times, on one table.
    Repeat(Stmt, u32),
    /// A delete and an insert of the same id, several times, on one table.
    DeleteInsert(u32),
    /// The single insert of `oltp_insert`, with an id of its own.
    FreshInsert,
}

/// What every transaction of a run does.
#[derive(Debug)]
pub(crate) struct Plan {
    steps: Vec<Step>,
    pub(crate) tables: u32,
    table_size: u32,
    range_size: u32,
    auto_inc: bool,
    drawer: Drawer,
    /// Whether the transaction's end is a commit that a ledger records.
    pub(crate) commits: bool,
    base: [Option<usize>; Stmt::ALL.len()],
    slots: usize,
}

impl Plan {
    pub(crate) fn new(options: &RunOptions) -> Self {
        let steps = steps(options);
        let mut plan = Self {
            steps,
            tables: options.schema.tables,
            table_size: options.schema.table_size,
            range_size: options.mix.range_size,
            auto_inc: options.schema.auto_inc,
            drawer: Drawer::new(options.distribution),
            commits: options.workload.writes(),
            base: [None; Stmt::ALL.len()],
            slots: 0,
        };
        if options.prepared {
            plan.number_the_statements();
        }
        plan
    }

    fn number_the_statements(&mut self) {
        let mut kinds: Vec<Stmt> = self.steps.iter().flat_map(|step| step.prepared()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        for kind in kinds {
            self.base[kind.index()] = Some(self.slots);
            self.slots += if kind.is_per_table() { count(self.tables) } else { 1 };
        }
    }

    /// The texts to prepare on each connection, in the order of their slots.
    pub(crate) fn texts(&self) -> Vec<String> {
        let mut texts = vec![String::new(); self.slots];
        for stmt in Stmt::ALL {
            let Some(base) = self.base[stmt.index()] else { continue };
            let tables = if stmt.is_per_table() { self.tables } else { 1 };
            for table in 1..=tables {
                texts[base + count(table) - 1] = stmt.text(table);
            }
        }
        texts
    }

    /// The slot of a statement, where it is prepared.
    pub(crate) fn slot(&self, command: &Command) -> Option<usize> {
        let base = self.base[command.stmt.index()]?;
        Some(base + count(command.table.saturating_sub(1)))
    }

    fn id(&self, random: &mut Random) -> i32 {
        int(self.drawer.id(random, self.table_size))
    }
}

impl Step {
    fn prepared(self) -> impl Iterator<Item = Stmt> {
        let (first, second) = match self {
            Self::Once(stmt) | Self::Repeat(stmt, _) => (Some(stmt), None),
            Self::DeleteInsert(_) => (Some(Stmt::Deletes), Some(Stmt::Inserts)),
            // sysbench sends this one as text.
            Self::FreshInsert => (None, None),
        };
        first.into_iter().chain(second)
    }
}

fn steps(options: &RunOptions) -> Vec<Step> {
    let mix = &options.mix;
    let mut steps = match options.workload {
        Workload::PointSelect => vec![Step::Repeat(Stmt::PointSelects, 1)],
        Workload::ReadOnly => reads(options),
        Workload::ReadWrite => [reads(options), writes(options)].concat(),
        Workload::WriteOnly => writes(options),
        Workload::Insert => vec![Step::FreshInsert],
        Workload::Delete => vec![Step::Repeat(Stmt::Deletes, 1)],
        Workload::UpdateIndex => vec![Step::Repeat(Stmt::IndexUpdates, mix.index_updates)],
        Workload::UpdateNonIndex => vec![Step::Repeat(Stmt::NonIndexUpdates, mix.non_index_updates)],
        Workload::BulkInsert => Vec::new(),
    };
    steps.retain(|step| !matches!(step, Step::Repeat(_, 0) | Step::DeleteInsert(0)));
    let marked = options.ledger.as_ref().is_some_and(|ledger| ledger.marks);
    if marked {
        steps.push(Step::Once(Stmt::Mark));
    }
    if marked || (options.workload.is_transaction() && !mix.skip_trx) {
        steps.insert(0, Step::Once(Stmt::Begin));
        steps.push(Step::Once(Stmt::Commit));
    }
    steps
}

fn reads(options: &RunOptions) -> Vec<Step> {
    let mix = &options.mix;
    let mut steps = vec![Step::Repeat(Stmt::PointSelects, mix.point_selects)];
    if mix.range_selects {
        steps.extend([
            Step::Repeat(Stmt::SimpleRanges, mix.simple_ranges),
            Step::Repeat(Stmt::SumRanges, mix.sum_ranges),
            Step::Repeat(Stmt::OrderRanges, mix.order_ranges),
            Step::Repeat(Stmt::DistinctRanges, mix.distinct_ranges),
        ]);
    }
    steps
}

fn writes(options: &RunOptions) -> Vec<Step> {
    let mix = &options.mix;
    vec![
        Step::Repeat(Stmt::IndexUpdates, mix.index_updates),
        Step::Repeat(Stmt::NonIndexUpdates, mix.non_index_updates),
        Step::DeleteInsert(mix.delete_inserts),
    ]
}

fn int(id: u32) -> i32 {
    i32::try_from(id).unwrap_or(i32::MAX)
}

fn count(number: u32) -> usize {
    usize::try_from(number).expect("a u32 fits")
}

/// Where a connection stands in its transaction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cursor {
    step: usize,
    done: u32,
    table: u32,
    /// The id whose delete was sent and whose insert is next.
    deleted: Option<i32>,
}

/// What a command needs besides the plan.
pub(crate) struct Draw<'a> {
    pub(crate) random: &'a mut Random,
    pub(crate) client: u32,
    /// The ledger's number of this transaction.
    pub(crate) sequence: u64,
    /// Ids for `oltp_insert` without AUTO_INCREMENT.
    pub(crate) unique: &'a UniqueIds,
}

impl Cursor {
    /// Back to the transaction's beginning.
    pub(crate) fn restart(&mut self) {
        *self = Self::default();
    }

    /// The next statement, or none at the transaction's end.
    pub(crate) fn next(&mut self, plan: &Plan, draw: &mut Draw<'_>) -> Option<Command> {
        let step = *plan.steps.get(self.step)?;
        let (command, last) = match step {
            Step::Once(stmt) => (once(stmt, draw), true),
            Step::FreshInsert => (fresh_insert(plan, draw), true),
            Step::Repeat(stmt, times) => {
                self.choose_table(plan, draw);
                self.done += 1;
                (repeated(plan, stmt, self.table, draw), self.done == times)
            }
            Step::DeleteInsert(times) => {
                self.choose_table(plan, draw);
                self.delete_or_insert(plan, times, draw)
            }
        };
        if last {
            self.step += 1;
            self.done = 0;
        }
        Some(command)
    }

    /// sysbench stays on one table for all repetitions of a line.
    fn choose_table(&mut self, plan: &Plan, draw: &mut Draw<'_>) {
        if self.done == 0 && self.deleted.is_none() {
            self.table = draw.random.up_to(plan.tables);
        }
    }

    fn delete_or_insert(&mut self, plan: &Plan, times: u32, draw: &mut Draw<'_>) -> (Command, bool) {
        let table = self.table;
        let Some(id) = self.deleted.take() else {
            let id = plan.id(draw.random);
            self.deleted = Some(id);
            return (Command { stmt: Stmt::Deletes, table, params: Params::new([Param::Int(id)]) }, false);
        };
        self.done += 1;
        let k = plan.id(draw.random);
        (insert(table, id, k), self.done == times)
    }
}

fn once(stmt: Stmt, draw: &Draw<'_>) -> Command {
    let params = if stmt == Stmt::Mark {
        Params::new([Param::Long(draw.sequence), Param::Int(int(draw.client))])
    } else {
        Params::new([])
    };
    Command { stmt, table: 0, params }
}

fn repeated(plan: &Plan, stmt: Stmt, table: u32, draw: &mut Draw<'_>) -> Command {
    let id = plan.id(draw.random);
    let params = match stmt {
        Stmt::SimpleRanges | Stmt::SumRanges | Stmt::OrderRanges | Stmt::DistinctRanges => {
            let end = id.saturating_add(int(plan.range_size) - 1);
            Params::new([Param::Int(id), Param::Int(end)])
        }
        Stmt::NonIndexUpdates => Params::new([Param::Digits(C_GROUPS), Param::Int(id)]),
        _ => Params::new([Param::Int(id)]),
    };
    Command { stmt, table, params }
}

fn fresh_insert(plan: &Plan, draw: &mut Draw<'_>) -> Command {
    let table = draw.random.up_to(plan.tables);
    let id = if plan.auto_inc { 0 } else { draw.unique.next() };
    insert(table, id, plan.id(draw.random))
}

fn insert(table: u32, id: i32, k: i32) -> Command {
    let params =
        Params::new([Param::Int(id), Param::Int(k), Param::Digits(C_GROUPS), Param::Digits(PAD_GROUPS)]);
    Command { stmt: Stmt::Inserts, table, params }
}

/// Each 32-bit integer once, in an order that looks random: squares modulo a prime are a permutation
/// (the public-domain construction of github.com/preshing/RandomSequence, which sysbench uses too).
#[derive(Debug)]
pub(crate) struct UniqueIds {
    index: std::sync::atomic::AtomicU32,
    offset: u32,
}

impl UniqueIds {
    pub(crate) fn new(seed: u64) -> Self {
        let bits = Random::new(seed, u64::MAX).bits().to_le_bytes();
        let word = |at: usize| u32::from_le_bytes([bits[at], bits[at + 1], bits[at + 2], bits[at + 3]]);
        let start = permute(permute(word(0)).wrapping_add(0x682F_0161));
        let offset = permute(permute(word(4)).wrapping_add(0x4679_0905));
        Self { index: start.into(), offset }
    }

    fn next(&self) -> i32 {
        let index = self.index.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let value = permute(permute(index).wrapping_add(self.offset) ^ 0x5BF0_3635);
        value.wrapping_sub(1 << 31).cast_signed()
    }
}

fn permute(x: u32) -> u32 {
    /// The largest prime below 2^32 that leaves 3 when divided by 4.
    const PRIME: u32 = 4_294_967_291;
    if x >= PRIME {
        return x;
    }
    let residue = u32::try_from(u64::from(x) * u64::from(x) % u64::from(PRIME)).expect("below a u32 prime");
    if x <= PRIME / 2 { residue } else { PRIME - residue }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::options::{LedgerOptions, Mix};

    fn transaction(options: &RunOptions) -> Vec<Command> {
        let plan = Plan::new(options);
        let mut random = Random::new(options.seed, 0);
        let unique = UniqueIds::new(1);
        let mut cursor = Cursor::default();
        let mut draw = Draw { random: &mut random, client: 7, sequence: 42, unique: &unique };
        std::iter::from_fn(|| cursor.next(&plan, &mut draw)).collect()
    }

    fn kinds(options: &RunOptions) -> Vec<&'static str> {
        transaction(options).iter().map(|command| command.stmt.name()).collect()
    }

    #[test]
    fn read_write_is_sysbenchs_twenty_statements_in_its_order() {
        let mut expected = vec!["begin"];
        expected.extend(["point_selects"; 10]);
        expected.extend(["simple_ranges", "sum_ranges", "order_ranges", "distinct_ranges"]);
        expected.extend(["index_updates", "non_index_updates", "deletes", "inserts", "commit"]);
        assert_eq!(kinds(&RunOptions::new(Workload::ReadWrite)), expected);
    }

    #[test]
    fn the_point_selects_of_a_transaction_share_a_table_and_a_delete_its_id_with_the_insert() {
        let mut options = RunOptions::new(Workload::ReadWrite);
        options.schema.tables = 1_000;
        options.mix.delete_inserts = 3;
        let commands = transaction(&options);
        let of = |stmt| commands.iter().filter(move |command| command.stmt == stmt);
        assert_eq!(of(Stmt::PointSelects).map(|command| command.table).collect::<BTreeSet<_>>().len(), 1);
        let deleted: Vec<_> = of(Stmt::Deletes).map(|command| command.params.as_slice()[0]).collect();
        let inserted: Vec<_> = of(Stmt::Inserts).map(|command| command.params.as_slice()[0]).collect();
        assert_eq!(deleted.len(), 3);
        assert_eq!(deleted, inserted);
        let all: BTreeSet<_> = commands.iter().map(|command| command.table).collect();
        assert!(all.len() > 3, "lines choose their tables by themselves: {all:?}");
    }

    #[test]
    fn a_range_covers_as_many_ids_as_asked() {
        let mut options = RunOptions::new(Workload::ReadOnly);
        options.mix = Mix { range_size: 25, skip_trx: true, ..Mix::default() };
        let commands = transaction(&options);
        assert_eq!(commands.len(), 14);
        let [Param::Int(from), Param::Int(to)] = commands[11].params.as_slice() else { panic!() };
        assert_eq!(to - from, 24);
    }

    #[test]
    fn a_marked_ledger_wraps_a_single_statement_in_a_transaction() {
        let mut options = RunOptions::new(Workload::UpdateIndex);
        options.ledger = Some(LedgerOptions { path: "x".into(), marks: true });
        assert_eq!(kinds(&options), ["begin", "index_updates", "ledger_marks", "commit"]);
        let mark = transaction(&options)[2];
        assert_eq!(mark.params.as_slice(), [Param::Long(42), Param::Int(7)]);
    }

    #[test]
    fn every_statement_has_a_slot_of_its_own_text() {
        let mut options = RunOptions::new(Workload::ReadWrite);
        options.schema.tables = 3;
        let plan = Plan::new(&options);
        let texts = plan.texts();
        assert_eq!(texts.len(), 9 * 3 + 2);
        for command in transaction(&options) {
            let slot = plan.slot(&command).unwrap();
            assert_eq!(texts[slot], command.stmt.text(command.table));
        }
    }

    #[test]
    fn unique_ids_do_not_repeat() {
        println!("seed 3");
        let unique = UniqueIds::new(3);
        let ids: BTreeSet<i32> = (0..100_000).map(|_| unique.next()).collect();
        assert_eq!(ids.len(), 100_000);
        assert!(ids.first() < Some(&-2_000_000_000) && ids.last() > Some(&2_000_000_000));
    }
}
