//! Transactions with fewer and larger statements, as go-tpc sends them: the items, the stock and the lines of an order in
//! one statement each, the orders of a Delivery together, and Stock-Level as one join.
//!
//! The lines of an order have a statement for each number of them. The server returns rows in any order and each row
//! once, so that a line finds its item and its stock by their keys. Two lines may have one item: the second one takes what
//! the first one has left.

use std::ops::RangeInclusive;

use super::statements::{self, LINES as LINES_OF_ORDER, RECENT, STOCK_CHANGES, Stmt};
use super::transactions::{
    BEHIND_ITEM, BEHIND_QUANTITY, C, CARRIER, D, FOUND, ITEM, ITEMS, KEY, LINES, O_ID, PLACE, PRICE,
    QUANTITY, STOCK, SUPPLY, THRESHOLD, TOTAL, UNUSED, W, bind, line_amount, line_key, of, one, order_head,
    send, sound_lines, stock_left, stock_values,
};
use super::{DISTRICTS, Tpcc};
use crate::expr::{Expr, Op, Register};
use crate::script::{Access, AccessKind, Call, Collect, ParamKind, Statement, Step, Transaction};

use AccessKind::{Delete, Insert, Read, Update};
use ParamKind::{Decimal, Int, Text};

/// The optimizer takes the index on the item otherwise (MariaDB 10.11), which has the whole key too: it reads and locks two
/// entries of a row in place of one.
const BY_KEY: &str = "FORCE INDEX (PRIMARY)";

/// Lines of an order: with its unused item, and without.
const ALL_LINES: RangeInclusive<usize> = 5..=15;
const SOUND_LINES: RangeInclusive<usize> = 4..=15;
const MOST_LINES: u16 = 15;
/// Orders of a Delivery: one of each district.
const MOST_ORDERS: u16 = 10;

/// Arrays of the lines of an order.
const LINE_ITEMS: Register = after(0);
const LINE_SUPPLIES: Register = after(15);
const LINE_QUANTITIES: Register = after(30);
const LINE_AMOUNTS: Register = after(45);
const LINE_INFO: Register = after(60);
/// What the server returned of items and of stock: as many rows as [`PRICED`] and [`FOUND`].
const PRICE_ITEMS: Register = after(75);
const PRICES: Register = after(90);
const STOCK_KEYS: Register = after(105);
const STOCK_ITEMS: Register = after(120);
const STOCK_QUANTITIES: Register = after(135);
const STOCK_INFO: Register = after(150);
const PRICED: Register = after(165);
/// The place of the line's stock among the rows.
const AT: Register = after(166);
/// The oldest order of each district, 0 where it has none; how many have one.
const OLDEST: Register = after(167);
const DELIVERED: Register = after(177);
/// What the server returned of these orders.
const CUSTOMER_DISTRICTS: Register = after(178);
const CUSTOMERS: Register = after(188);
const TOTAL_DISTRICTS: Register = after(198);
const TOTALS: Register = after(208);
const CUSTOMER_ROWS: Register = after(218);
const TOTAL_ROWS: Register = after(219);

/// The registers of Stock-Level's items, which are not collected here.
const fn after(place: u16) -> Register {
    Register(ITEMS.0 + place)
}

/// The statements that the single ones do not have. Those with a number have so many lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Batch {
    Items(usize),
    StockLock(usize),
    StockUpdate,
    LineInsert(usize),
    OldestDelete,
    OrderCarrier,
    OrderCustomers,
    LinesDelivered,
    LinesTotals,
    StockCount,
}

impl Batch {
    /// All of them, in the order of a report.
    fn all() -> Vec<Self> {
        let others = [
            Self::StockUpdate,
            Self::OldestDelete,
            Self::OrderCarrier,
            Self::OrderCustomers,
            Self::LinesDelivered,
            Self::LinesTotals,
            Self::StockCount,
        ];
        let items = ALL_LINES.map(Self::Items).chain(SOUND_LINES.map(Self::StockLock));
        items.chain(SOUND_LINES.map(Self::LineInsert)).chain(others).collect()
    }

    fn statement(self) -> Statement {
        let text = self.text();
        let params = match self {
            Self::LineInsert(lines) => [Int, Int, Int, Int, Int, Int, Int, Decimal, Text].repeat(lines),
            _ => vec![Int; text.matches('?').count()],
        };
        Statement { params, access: Some(self.access()), ..Statement::plain(self.name(), &text) }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Items(_) => "items",
            Self::StockLock(_) => "stock_locks",
            Self::StockUpdate => "stock_update",
            Self::LineInsert(_) => "line_inserts",
            Self::OldestDelete => "oldest_deletes",
            Self::OrderCarrier => "order_carriers",
            Self::OrderCustomers => "order_customers",
            Self::LinesDelivered => "lines_delivered",
            Self::LinesTotals => "lines_totals",
            Self::StockCount => "stock_count",
        }
    }

    fn text(self) -> String {
        match self {
            Self::Items(lines) => {
                format!("SELECT i_id, i_price, i_name, i_data FROM item WHERE i_id IN ({})", list("?", lines))
            }
            Self::StockLock(lines) => format!(
                "SELECT s_w_id, s_i_id, s_quantity, s_data, s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, \
                 s_dist_06, s_dist_07, s_dist_08, s_dist_09, s_dist_10 FROM stock {BY_KEY} \
                 WHERE (s_w_id, s_i_id) IN ({}) FOR UPDATE",
                list("(?, ?)", lines)
            ),
            Self::StockUpdate => {
                let single = &statements::all(false)[Stmt::StockUpdate as usize].text;
                single.replace("UPDATE stock", &format!("UPDATE stock {BY_KEY}"))
            }
            Self::LineInsert(lines) => {
                let single = &statements::all(false)[Stmt::LineInsert as usize].text;
                let (head, line) = single.split_once(" VALUES ").expect("an INSERT of one line");
                format!("{head} VALUES {}", list(line, lines))
            }
            Self::OldestDelete => {
                format!("DELETE FROM new_orders WHERE {}", orders("no_w_id, no_d_id, no_o_id"))
            }
            Self::OrderCarrier => {
                format!("UPDATE orders SET o_carrier_id = ? WHERE {}", orders("o_w_id, o_d_id, o_id"))
            }
            Self::OrderCustomers => {
                format!("SELECT o_d_id, o_c_id FROM orders WHERE {}", orders("o_w_id, o_d_id, o_id"))
            }
            Self::LinesDelivered => {
                format!(
                    "UPDATE order_line SET ol_delivery_d = NOW() WHERE {}",
                    orders("ol_w_id, ol_d_id, ol_o_id")
                )
            }
            Self::LinesTotals => {
                format!(
                    "SELECT ol_d_id, SUM(ol_amount) FROM order_line WHERE {} GROUP BY ol_d_id",
                    orders("ol_w_id, ol_d_id, ol_o_id")
                )
            }
            Self::StockCount => "SELECT COUNT(DISTINCT s_i_id) FROM order_line, stock \
                 WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id < ? AND ol_o_id >= (? - 20) \
                 AND s_w_id = ? AND s_i_id = ol_i_id AND s_quantity < ?"
                .into(),
        }
    }

    fn access(self) -> Access {
        use statements::{ITEM, NEW_ORDERS, ORDER_LINE, ORDERS, STOCK, access};
        let all_lines = DISTRICTS * LINES_OF_ORDER;
        let (of, changes) = match self {
            Self::Items(lines) => (access(ITEM, Read, count(lines), 0), vec![]),
            Self::StockLock(lines) => (access(STOCK, Read, count(lines), 0), vec![]),
            Self::StockUpdate => (access(STOCK, Update, 1, 4), STOCK_CHANGES.to_vec()),
            Self::LineInsert(lines) => (access(ORDER_LINE, Insert, count(lines), 0), vec![]),
            Self::OldestDelete => (access(NEW_ORDERS, Delete, DISTRICTS, 0), vec![]),
            Self::OrderCarrier => (access(ORDERS, Update, DISTRICTS, 1), vec!["o_carrier_id"]),
            Self::OrderCustomers => (access(ORDERS, Read, DISTRICTS, 0), vec![]),
            Self::LinesDelivered => (access(ORDER_LINE, Update, all_lines, 0), vec!["ol_delivery_d"]),
            Self::LinesTotals => (access(ORDER_LINE, Read, all_lines, 0), vec![]),
            Self::StockCount => (access(STOCK, Read, RECENT, 4), vec![]),
        };
        Access { changes, ..of }
    }
}

fn count(lines: usize) -> u32 {
    u32::try_from(lines).expect("15 at most")
}

/// A text so many times, with commas between.
fn list(text: &str, times: usize) -> String {
    vec![text; times].join(", ")
}

/// An order of each district, by the columns of warehouse, district and order.
fn orders(columns: &str) -> String {
    format!("({columns}) IN ({})", list("(?, ?, ?)", MOST_ORDERS.into()))
}

/// The batched statements.
pub(super) fn statements() -> Vec<Statement> {
    Batch::all().into_iter().map(Batch::statement).collect()
}

impl Tpcc {
    /// The transactions of the mix with batched statements. Payment and Order-Status have nothing to batch.
    pub(super) fn batched_transactions(&self) -> Vec<Transaction> {
        let mut all = self.transactions();
        for transaction in &mut all {
            match transaction.name {
                "new_order" => transaction.steps = self.batched_new_order(),
                "delivery" => transaction.steps = self.batched_delivery(),
                "stock_level" => transaction.steps = self.batched_stock_level(),
                _ => {}
            }
        }
        all
    }

    /// A call of a batched statement: they come behind the single ones, and behind the mark.
    fn batch(&self, batch: Batch, params: Vec<Expr>) -> Call {
        let place = Batch::all().iter().position(|of| *of == batch).expect("all are in the list");
        let first = Stmt::Mark as usize + usize::from(self.marks > 0);
        Call::new(first + place, params)
    }

    fn batched_new_order(&self) -> Vec<Step> {
        let unused = Step::SetElement(LINE_ITEMS, of(LINES).plus(-1), self.unused_item());
        let end = vec![Step::RollBack(Stmt::RollBack.call(Vec::new()))];
        let input = vec![
            Step::Set(PLACE, Expr::Int(0)),
            Step::Repeat(of(LINES), take_apart()),
            Step::If(of(UNUSED), vec![unused], Vec::new()),
        ];
        let work = vec![
            by_count(of(LINES), ALL_LINES, &|lines| send(self.items(lines))),
            by_count(sound_lines(), SOUND_LINES, &|lines| send(self.stock_lock(lines))),
            Step::Set(PLACE, Expr::Int(0)),
            Step::Repeat(of(FOUND), stock_key()),
            Step::Set(PLACE, Expr::Int(0)),
            Step::Repeat(sound_lines(), self.batched_line()),
            by_count(sound_lines(), SOUND_LINES, &|lines| send(self.line_insert(lines))),
            Step::If(of(UNUSED), end, self.commit()),
        ];
        [self.order_input(), input, order_head(), work].concat()
    }

    /// The next line of an order: its stock, its price, and what is inserted of it.
    fn batched_line(&self) -> Vec<Step> {
        let key = of(KEY).op(Op::Div, Expr::Int(BEHIND_QUANTITY));
        let at = Expr::Place { array: STOCK_KEYS, count: Box::new(of(FOUND)), number: Box::new(key) };
        let priced =
            Expr::Place { array: PRICE_ITEMS, count: Box::new(of(PRICED)), number: Box::new(of(ITEM)) };
        let of_stock = |array| Expr::Element(array, Box::new(of(AT)));
        let work = vec![
            Step::Set(AT, at),
            Step::Set(STOCK, of_stock(STOCK_QUANTITIES)),
            Step::Set(STOCK, stock_left()),
            Step::SetElement(STOCK_QUANTITIES, of(AT), of(STOCK)),
            send(one(self.batch(Batch::StockUpdate, stock_values()))),
            Step::Set(PRICE, Expr::Element(PRICES, Box::new(priced))),
            Step::SetElement(LINE_AMOUNTS, of(PLACE), line_amount()),
            Step::SetElement(LINE_INFO, of(PLACE), of_stock(STOCK_INFO)),
            Step::Set(PLACE, of(PLACE).plus(1)),
        ];
        [line_key(), work].concat()
    }

    fn items(&self, lines: usize) -> Call {
        Call {
            collect: vec![collect(0, PRICE_ITEMS, MOST_LINES), collect(1, PRICES, MOST_LINES)],
            count: Some(PRICED),
            ..self.batch(Batch::Items(lines), (0..lines).map(|at| item(LINE_ITEMS, at)).collect())
        }
    }

    fn stock_lock(&self, lines: usize) -> Call {
        let keys = (0..lines).flat_map(|at| [item(LINE_SUPPLIES, at), item(LINE_ITEMS, at)]);
        let information = Collect { column: of(D).plus(3), into: STOCK_INFO, most: MOST_LINES };
        Call {
            collect: vec![
                collect(0, STOCK_KEYS, MOST_LINES),
                collect(1, STOCK_ITEMS, MOST_LINES),
                collect(2, STOCK_QUANTITIES, MOST_LINES),
                information,
            ],
            count: Some(FOUND),
            ..self.batch(Batch::StockLock(lines), keys.collect())
        }
    }

    fn line_insert(&self, lines: usize) -> Call {
        let line = |at: usize| {
            let own = [LINE_ITEMS, LINE_SUPPLIES, LINE_QUANTITIES, LINE_AMOUNTS, LINE_INFO];
            let number = Expr::Int(i64::from(count(at + 1)));
            [of(O_ID), of(D), of(W), number].into_iter().chain(own.map(|array| item(array, at)))
        };
        Call {
            changes: Some(Expr::Int(i64::from(count(lines)))),
            ..self.batch(Batch::LineInsert(lines), (0..lines).flat_map(line).collect())
        }
    }

    /// The oldest new order of each district, and then all of them together.
    fn batched_delivery(&self) -> Vec<Step> {
        let oldest = Call {
            binds: vec![bind(0, O_ID)],
            count: Some(FOUND),
            ..Stmt::OldestLock.call(vec![of(D), of(W)])
        };
        let found = Expr::Choose(Box::new(of(FOUND)), Box::new(of(O_ID)), Box::new(Expr::Int(0)));
        let district = vec![
            send(oldest),
            Step::SetElement(OLDEST, of(D).plus(-1), found),
            Step::Set(DELIVERED, of(DELIVERED).op(Op::Add, of(FOUND))),
            Step::Set(D, of(D).plus(1)),
        ];
        let steps = vec![
            self.home(),
            Step::Set(CARRIER, Expr::up_to(10)),
            Step::RetryFromHere,
            Step::Set(DELIVERED, Expr::Int(0)),
            Step::Set(D, Expr::Int(1)),
            Step::Repeat(Expr::Int(DISTRICTS.into()), district),
            Step::If(of(DELIVERED), self.deliver_all(), Vec::new()),
        ];
        [steps, self.commit()].concat()
    }

    fn deliver_all(&self) -> Vec<Step> {
        let keys = || -> Vec<Expr> {
            let key = |at: usize| [of(W), Expr::Int(i64::from(count(at + 1))), item(OLDEST, at)];
            (0..MOST_ORDERS.into()).flat_map(key).collect()
        };
        let all = |call: Call| Call { changes: Some(of(DELIVERED)), ..call };
        let by_district = |batch, districts, into, rows| Call {
            collect: vec![collect(0, districts, MOST_ORDERS), collect(1, into, MOST_ORDERS)],
            count: Some(rows),
            ..self.batch(batch, keys())
        };
        let of_district = |districts, values, rows| {
            let place = Expr::Place { array: districts, count: Box::new(of(rows)), number: Box::new(of(D)) };
            Expr::Element(values, Box::new(place))
        };
        let customer = vec![
            Step::Set(C, of_district(CUSTOMER_DISTRICTS, CUSTOMERS, CUSTOMER_ROWS)),
            Step::Set(TOTAL, of_district(TOTAL_DISTRICTS, TOTALS, TOTAL_ROWS)),
            send(one(Stmt::CustomerDelivered.call(vec![of(TOTAL), of(C), of(D), of(W)]))),
        ];
        let has_order = Expr::Element(OLDEST, Box::new(of(D).plus(-1)));
        let customers = vec![Step::If(has_order, customer, Vec::new()), Step::Set(D, of(D).plus(1))];
        vec![
            send(all(self.batch(Batch::OldestDelete, keys()))),
            send(all(self.batch(Batch::OrderCarrier, [vec![of(CARRIER)], keys()].concat()))),
            send(by_district(Batch::OrderCustomers, CUSTOMER_DISTRICTS, CUSTOMERS, CUSTOMER_ROWS)),
            send(self.batch(Batch::LinesDelivered, keys())),
            send(by_district(Batch::LinesTotals, TOTAL_DISTRICTS, TOTALS, TOTAL_ROWS)),
            Step::Set(D, Expr::Int(1)),
            Step::Repeat(Expr::Int(DISTRICTS.into()), customers),
        ]
    }

    fn batched_stock_level(&self) -> Vec<Step> {
        let params = vec![of(W), of(D), of(O_ID), of(O_ID), of(W), of(THRESHOLD)];
        let count = send(self.batch(Batch::StockCount, params));
        [self.stock_level_head(), vec![count], self.commit()].concat()
    }
}

/// The step for the number of lines, of one for each number.
fn by_count(lines: Expr, counts: RangeInclusive<usize>, step: &dyn Fn(usize) -> Step) -> Step {
    let (first, last) = (*counts.start(), *counts.end());
    let of_more = (first + 1..=last).rev().fold(Vec::new(), |otherwise, number| {
        let is_it = lines.clone().op(Op::Equal, Expr::Int(i64::from(count(number))));
        vec![Step::If(is_it, vec![step(number)], otherwise)]
    });
    let is_first = lines.clone().op(Op::Equal, Expr::Int(i64::from(count(first))));
    Step::If(is_first, vec![step(first)], of_more)
}

/// Keeps the parts of the next line in arrays.
fn take_apart() -> Vec<Step> {
    let keep = |array, value| Step::SetElement(array, of(PLACE), of(value));
    let parts = vec![
        keep(LINE_ITEMS, ITEM),
        keep(LINE_SUPPLIES, SUPPLY),
        keep(LINE_QUANTITIES, QUANTITY),
        Step::Set(PLACE, of(PLACE).plus(1)),
    ];
    [line_key(), parts].concat()
}

/// Makes one number of the key of the next row of the stock, as the lines have it.
fn stock_key() -> Vec<Step> {
    let part = |array| Expr::Element(array, Box::new(of(PLACE)));
    let key = part(STOCK_KEYS).op(Op::Mul, Expr::Int(BEHIND_ITEM)).op(Op::Add, part(STOCK_ITEMS));
    vec![Step::SetElement(STOCK_KEYS, of(PLACE), key), Step::Set(PLACE, of(PLACE).plus(1))]
}

/// An element of an array at a place that is known.
fn item(array: Register, at: usize) -> Expr {
    of(Register(array.0 + u16::try_from(at).expect("15 at most")))
}

fn collect(column: i64, into: Register, most: u16) -> Collect {
    Collect { column: Expr::Int(column), into, most }
}
