//! Tables with numbers in their names, as sysbench-tpcc has them: several sets of the nine, each with warehouses of its
//! own. A transaction draws a set, and stays in it.

use super::TABLES;
use super::transactions::REGISTERS;
use crate::description::{Description, Index, Table};
use crate::expr::{Expr, Register};
use crate::script::{Call, Statement, Step, numbered};

/// The number of a transaction's set.
const SET: Register = Register(REGISTERS);
/// Foreign keys have names of the whole database, and begin with this.
const KEYS: &str = "fkey_";

/// The same workload on so many sets of tables, numbered from 1.
pub(super) fn in_sets(plain: Description, sets: u32) -> Description {
    let tables: Vec<Table> = plain.tables.into_iter().map(|of| table(of, sets)).collect();
    let statements: Vec<Statement> = plain.statements.into_iter().map(|of| statement(of, sets)).collect();
    let mut transactions = plain.transactions;
    for transaction in &mut transactions {
        on_set(&mut transaction.steps, &statements);
        transaction.steps.insert(0, Step::Set(SET, Expr::up_to(sets.into())));
    }
    let finish: Vec<String> = plain.finish.iter().map(|text| key_names(&table_names(text))).collect();
    Description {
        tables,
        statements,
        transactions,
        finish: (1..=sets).flat_map(|set| finish.iter().map(move |text| numbered(text, set))).collect(),
        registers: REGISTERS + 1,
        ..plain
    }
}

/// A text with the place of a number behind each name of a table.
pub(super) fn table_names(text: &str) -> String {
    words(text, |word| TABLES.contains(&word), "{}")
}

fn key_names(text: &str) -> String {
    words(text, |word| word.starts_with(KEYS), "_{}")
}

/// A text with something behind each word that is meant. A word is made of letters, digits and underscores.
fn words(text: &str, is_meant: impl Fn(&str) -> bool, behind: &str) -> String {
    let is_inside = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(start) = rest.find(is_inside) {
        let length = rest[start..].find(|character| !is_inside(character)).unwrap_or(rest.len() - start);
        let (before, word) = (&rest[..start], &rest[start..start + length]);
        out.push_str(before);
        out.push_str(word);
        if is_meant(word) {
            out.push_str(behind);
        }
        rest = &rest[start + length..];
    }
    out + rest
}

fn table(plain: Table, sets: u32) -> Table {
    if !TABLES.contains(&plain.name.as_str()) {
        return plain;
    }
    let names = |text: Option<String>| text.map(|text| table_names(&text));
    let index = |of: Index| Index { create: names(of.create), warm_up: names(of.warm_up), ..of };
    Table {
        name: table_names(&plain.name),
        count: sets,
        create: table_names(&plain.create),
        indexes: plain.indexes.into_iter().map(index).collect(),
        warm_up: plain.warm_up.iter().map(|text| table_names(text)).collect(),
        ..plain
    }
}

fn statement(plain: Statement, sets: u32) -> Statement {
    let text = table_names(&plain.text);
    if text == plain.text { plain } else { Statement { text, tables: sets, ..plain } }
}

/// Puts the calls of these steps on the transaction's set.
fn on_set(steps: &mut [Step], statements: &[Statement]) {
    let put = |call: &mut Call| {
        if statements[call.statement].tables > 0 {
            call.table = Some(Expr::Register(SET));
        }
    };
    for step in steps {
        match step {
            Step::Send(calls) => calls.iter_mut().for_each(put),
            Step::Commit(call) | Step::RollBack(call) => put(call),
            Step::Repeat(_, steps) => on_set(steps, statements),
            Step::If(_, then, otherwise) => {
                on_set(then, statements);
                on_set(otherwise, statements);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tables_get_a_number_and_columns_do_not() {
        assert_eq!(
            table_names("SELECT d_w_id FROM warehouse, orders WHERE o_w_id=stock.s_w_id ORDER BY order_line"),
            "SELECT d_w_id FROM warehouse{}, orders{} WHERE o_w_id=stock{}.s_w_id ORDER BY order_line{}"
        );
        assert_eq!(key_names("ADD CONSTRAINT fkey_stock_1 x"), "ADD CONSTRAINT fkey_stock_1_{} x");
        assert_eq!(table_names(""), "");
    }
}
