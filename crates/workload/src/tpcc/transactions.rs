//! The five transactions as scripts (clauses 2.4 to 2.8), their mix and their waits (clause 5.2).

use super::constants::last_name;
use super::rows::MOST_LINES;
use super::statements::Stmt;
use super::{DISTRICTS, Tpcc, WaitMode};
use crate::expr::{Expr, Op, Register};
use crate::script::{Bind, Call, Collect, Step, Transaction};

pub(super) const W: Register = Register(0);
pub(super) const D: Register = Register(1);
pub(super) const C: Register = Register(2);
/// The warehouse and the district of the customer who pays.
const C_W: Register = Register(3);
const C_D: Register = Register(4);
/// Lines of the order; whether its last item is unused; whether all its stock is of its warehouse.
pub(super) const LINES: Register = Register(5);
pub(super) const UNUSED: Register = Register(6);
const ALL_LOCAL: Register = Register(7);
/// A place in an array, from 0.
pub(super) const PLACE: Register = Register(8);
pub(super) const O_ID: Register = Register(9);
pub(super) const KEY: Register = Register(10);
pub(super) const ITEM: Register = Register(11);
pub(super) const SUPPLY: Register = Register(12);
pub(super) const QUANTITY: Register = Register(13);
pub(super) const PRICE: Register = Register(14);
pub(super) const STOCK: Register = Register(15);
/// How many rows there were.
pub(super) const FOUND: Register = Register(16);
const BY_NAME: Register = Register(17);
const LAST: Register = Register(18);
/// The number of a last name, from 0.
const NAME: Register = Register(19);
/// Hundredths.
const AMOUNT: Register = Register(20);
const W_NAME: Register = Register(21);
const D_NAME: Register = Register(22);
const CREDIT: Register = Register(23);
const BALANCE: Register = Register(24);
const PAID: Register = Register(25);
const DATA: Register = Register(26);
pub(super) const CARRIER: Register = Register(27);
pub(super) const TOTAL: Register = Register(28);
pub(super) const THRESHOLD: Register = Register(29);
/// Arrays: s_dist_01 to s_dist_10; the order's lines; the items of the last twenty orders.
const DISTRICT_INFO: Register = Register(30);
pub(super) const ORDER: Register = Register(40);
pub(super) const ITEMS: Register = Register(55);
const MOST_ITEMS: u16 = 20 * 15;
pub(super) const REGISTERS: u16 = ITEMS.0 + MOST_ITEMS;

/// A line is kept as one number, so that lines can be sorted by warehouse and item: what comes behind the quantity, and
/// behind the item.
pub(super) const BEHIND_QUANTITY: i64 = 16;
pub(super) const BEHIND_ITEM: i64 = 1 << 20;

const SECOND_US: i64 = 1_000_000;

impl Tpcc {
    /// In the mix of clause 5.2.3, with New-Order taking what the others leave.
    pub(super) fn transactions(&self) -> Vec<Transaction> {
        vec![
            self.transaction("new_order", 45, self.new_order(), (18, 12)),
            self.transaction("payment", 43, self.payment(), (3, 12)),
            self.transaction("order_status", 4, self.order_status(), (2, 10)),
            self.transaction("delivery", 4, self.delivery(), (2, 5)),
            self.transaction("stock_level", 4, self.stock_level(), (2, 5)),
        ]
    }

    /// `waits`: the keying time and the mean think time, s (clause 5.2.5.7). No think time is longer than ten times
    /// the mean (clause 5.2.5.4).
    fn transaction(
        &self,
        name: &'static str,
        weight: u32,
        steps: Vec<Step>,
        (keying, thinking): (i64, u32),
    ) -> Transaction {
        let alone = Transaction { weight, ..Transaction::alone(name, steps) };
        match self.wait {
            WaitMode::None => alone,
            WaitMode::Spec => {
                let mean = thinking * 1_000_000;
                Transaction {
                    keying_us: Some(Expr::Int(keying * SECOND_US)),
                    thinking_us: Some(Expr::Exponential { mean, most: 10 * mean }),
                    ..alone
                }
            }
        }
    }

    /// The warehouse of the transaction.
    pub(super) fn home(&self) -> Step {
        let warehouses = i64::from(self.warehouses);
        let of_client = || Expr::Client.op(Op::Div, Expr::Int(DISTRICTS.into()));
        Step::Set(
            W,
            match self.wait {
                WaitMode::None => Expr::up_to(warehouses),
                WaitMode::Spec => of_client().op(Op::Rem, Expr::Int(warehouses)).plus(1),
            },
        )
    }

    /// A warehouse other than that of the transaction, each with the same chance; that one where there is one alone.
    fn other_warehouse(&self) -> Expr {
        let warehouses = i64::from(self.warehouses);
        if warehouses == 1 {
            return of(W);
        }
        of(W).plus(-1).op(Op::Add, Expr::up_to(warehouses - 1)).op(Op::Rem, Expr::Int(warehouses)).plus(1)
    }

    /// The end of a transaction that stays.
    pub(super) fn commit(&self) -> Vec<Step> {
        let mark = Stmt::Mark.call(vec![Expr::Sequence, Expr::Client]);
        let mark = (self.marks > 0).then(|| send(one(mark)));
        mark.into_iter().chain([Step::Commit(Stmt::Commit.call(Vec::new()))]).collect()
    }

    fn any_customer(&self) -> Step {
        Step::Set(C, self.constants.customer(self.scale.customers))
    }

    /// 60% of the customers are given by their last names, 40% by their ids (clauses 2.5.1.2, 2.6.1.2).
    fn customer_of_60_and_40(&self) -> Vec<Step> {
        vec![
            Step::Set(BY_NAME, percent(60)),
            Step::Set(NAME, self.constants.last_name(self.scale.last_names())),
            Step::Set(LAST, last_name(NAME)),
            self.any_customer(),
        ]
    }

    fn new_order(&self) -> Vec<Step> {
        let unused = vec![
            send(Stmt::Item.call(vec![self.unused_item()])),
            Step::RollBack(Stmt::RollBack.call(Vec::new())),
        ];
        [
            self.order_input(),
            order_head(),
            vec![
                Step::Set(PLACE, Expr::Int(0)),
                Step::Repeat(sound_lines(), order_line()),
                Step::If(of(UNUSED), unused, self.commit()),
            ],
        ]
        .concat()
    }

    /// An item that no one has.
    pub(super) fn unused_item(&self) -> Expr {
        Expr::Int(i64::from(self.scale.items) + 1)
    }

    /// Clause 2.4.1: 5 to 15 lines, one in a hundred from another warehouse, one in a hundred orders with an unused
    /// item at its end. The lines are sorted, as in tpcc-mysql, so that orders lock the stock in one order.
    pub(super) fn order_input(&self) -> Vec<Step> {
        let key = |item: Expr| {
            let both = of(SUPPLY).op(Op::Mul, Expr::Int(BEHIND_ITEM)).op(Op::Add, item);
            both.op(Op::Mul, Expr::Int(BEHIND_QUANTITY)).op(Op::Add, Expr::up_to(10))
        };
        let mut line = vec![Step::Set(SUPPLY, of(W))];
        if self.warehouses > 1 {
            let remote = vec![Step::Set(SUPPLY, self.other_warehouse()), Step::Set(ALL_LOCAL, Expr::Int(0))];
            line.push(Step::If(percent(1), remote, Vec::new()));
        }
        line.extend([
            Step::SetElement(ORDER, of(PLACE), key(self.constants.item(self.scale.items))),
            Step::Set(PLACE, of(PLACE).plus(1)),
        ]);
        vec![
            self.home(),
            Step::Set(D, Expr::up_to(DISTRICTS.into())),
            self.any_customer(),
            Step::Set(LINES, Expr::between(5, MOST_LINES)),
            Step::Set(UNUSED, percent(1)),
            Step::Set(ALL_LOCAL, Expr::Int(1)),
            Step::Set(PLACE, Expr::Int(0)),
            Step::Repeat(of(LINES), line),
            // The unused item takes the place of the last line.
            Step::Sort(ORDER, of(LINES).op(Op::Sub, of(UNUSED))),
        ]
    }

    fn payment(&self) -> Vec<Step> {
        let input = [
            vec![
                self.home(),
                Step::Set(D, Expr::up_to(DISTRICTS.into())),
                Step::Set(AMOUNT, Expr::between(100, 500_000)),
                Step::Set(C_W, of(W)),
                Step::Set(C_D, of(D)),
                // Clause 2.5.1.2: 15% of the customers are of another warehouse.
                Step::If(
                    percent(15),
                    vec![
                        Step::Set(C_W, self.other_warehouse()),
                        Step::Set(C_D, Expr::up_to(DISTRICTS.into())),
                    ],
                    Vec::new(),
                ),
            ],
            self.customer_of_60_and_40(),
        ];
        let amount = || decimal(of(AMOUNT));
        let named = |stmt: Stmt| stmt.call(vec![of(C_W), of(C_D), of(LAST)]);
        let by_name = vec![
            send(Call { binds: vec![bind(0, FOUND)], ..named(Stmt::NameCount) }),
            send(Call { binds: vec![middle(0, C)], ..named(Stmt::NameIds) }),
        ];
        let key = || vec![of(C_W), of(C_D), of(C)];
        let names = |stmt: Stmt, params, into| send(Call { binds: vec![bind(5, into)], ..stmt.call(params) });
        let lock = Call {
            binds: vec![bind(9, CREDIT), bind(12, BALANCE), bind(13, PAID)],
            ..Stmt::CustomerLock.call(key())
        };
        let changed = |of: Register, op| decimal(cents(of).op(op, Expr::Register(AMOUNT)));
        let new_values = || vec![changed(BALANCE, Op::Sub), changed(PAID, Op::Add)];
        let bad_credit = vec![
            send(Call { binds: vec![bind(0, DATA)], ..Stmt::CustomerData.call(key()) }),
            send(one(Stmt::CustomerPaidData.call([new_values(), vec![credit_data()], key()].concat()))),
        ];
        let good_credit = vec![send(one(Stmt::CustomerPaid.call([new_values(), key()].concat())))];
        let history = vec![of(C_D), of(C_W), of(C), of(D), of(W), amount(), history_data()];
        let work = vec![
            Step::RetryFromHere,
            send(one(Stmt::WarehousePaid.call(vec![amount(), of(W)]))),
            names(Stmt::Warehouse, vec![of(W)], W_NAME),
            send(one(Stmt::DistrictPaid.call(vec![amount(), of(W), of(D)]))),
            names(Stmt::District, vec![of(W), of(D)], D_NAME),
            Step::If(of(BY_NAME), by_name, Vec::new()),
            send(lock),
            Step::If(Expr::Is(Box::new(of(CREDIT)), "BC".into()), bad_credit, good_credit),
            send(Stmt::HistoryInsert.call(history)),
        ];
        [input.concat(), work, self.commit()].concat()
    }

    fn order_status(&self) -> Vec<Step> {
        let input = [
            vec![self.home(), Step::Set(D, Expr::up_to(DISTRICTS.into()))],
            self.customer_of_60_and_40(),
            vec![Step::RetryFromHere],
        ];
        let named = |stmt: Stmt| stmt.call(vec![of(W), of(D), of(LAST)]);
        let by_name = vec![
            send(Call { binds: vec![bind(0, FOUND)], ..named(Stmt::NameCount) }),
            send(Call { binds: vec![middle(3, C)], ..named(Stmt::NameBalances) }),
        ];
        let key = || vec![of(W), of(D), of(C)];
        let by_id = vec![send(Stmt::CustomerBalance.call(key()))];
        let last = Stmt::LastOrder.call([key(), key()].concat());
        let work = vec![
            Step::If(of(BY_NAME), by_name, by_id),
            send(Call { binds: vec![bind(0, O_ID)], ..last }),
            send(Stmt::OrderLines.call(vec![of(W), of(D), of(O_ID)])),
        ];
        [input.concat(), work, self.commit()].concat()
    }

    /// The oldest new order of each district (clause 2.7.4.2), all in one transaction of the database.
    fn delivery(&self) -> Vec<Step> {
        let key = || vec![of(O_ID), of(D), of(W)];
        let keep = |stmt: Stmt, into| send(Call { binds: vec![bind(0, into)], ..stmt.call(key()) });
        let oldest = Call {
            binds: vec![bind(0, O_ID)],
            count: Some(FOUND),
            ..Stmt::OldestLock.call(vec![of(D), of(W)])
        };
        let deliver = vec![
            send(one(Stmt::OldestDelete.call(key()))),
            keep(Stmt::OrderCustomer, C),
            send(one(Stmt::OrderCarrier.call([vec![of(CARRIER)], key()].concat()))),
            send(Stmt::LinesDelivered.call(key())),
            keep(Stmt::LinesTotal, TOTAL),
            send(one(Stmt::CustomerDelivered.call(vec![of(TOTAL), of(C), of(D), of(W)]))),
        ];
        let district =
            vec![send(oldest), Step::If(of(FOUND), deliver, Vec::new()), Step::Set(D, of(D).plus(1))];
        let steps = vec![
            self.home(),
            Step::Set(CARRIER, Expr::up_to(10)),
            Step::RetryFromHere,
            Step::Set(D, Expr::Int(1)),
            Step::Repeat(Expr::Int(DISTRICTS.into()), district),
        ];
        [steps, self.commit()].concat()
    }

    fn stock_level(&self) -> Vec<Step> {
        let recent = Call {
            collect: vec![Collect { column: Expr::Int(0), into: ITEMS, most: MOST_ITEMS }],
            count: Some(FOUND),
            ..Stmt::RecentItems.call(vec![of(W), of(D), of(O_ID), of(O_ID)])
        };
        let item = Expr::Element(ITEMS, Box::new(of(PLACE)));
        let below = vec![
            send(Stmt::StockBelow.call(vec![of(W), item, of(THRESHOLD)])),
            Step::Set(PLACE, of(PLACE).plus(1)),
        ];
        let steps = vec![
            send(recent),
            Step::Set(PLACE, Expr::Int(0)),
            Step::Repeat(of(FOUND).op(Op::Min, Expr::Int(MOST_ITEMS.into())), below),
        ];
        [self.stock_level_head(), steps, self.commit()].concat()
    }

    /// The input of a Stock-Level, and the next order of its district.
    pub(super) fn stock_level_head(&self) -> Vec<Step> {
        let district = match self.wait {
            WaitMode::None => Expr::up_to(DISTRICTS.into()),
            // Clause 2.8.1.1: that of the terminal.
            WaitMode::Spec => Expr::Client.op(Op::Rem, Expr::Int(DISTRICTS.into())).plus(1),
        };
        vec![
            self.home(),
            Step::Set(D, district),
            Step::Set(THRESHOLD, Expr::between(10, 20)),
            Step::RetryFromHere,
            send(Call { binds: vec![bind(0, O_ID)], ..Stmt::DistrictOrders.call(vec![of(D), of(W)]) }),
        ]
    }
}

/// The statements of a New-Order before its lines.
pub(super) fn order_head() -> Vec<Step> {
    let customer = Stmt::CustomerWarehouse.call(vec![of(W), of(D), of(C)]);
    let lock = Call { binds: vec![bind(0, O_ID)], ..Stmt::DistrictLock.call(vec![of(D), of(W)]) };
    let next = one(Stmt::DistrictNext.call(vec![of(O_ID), of(D), of(W)]));
    let order = vec![of(O_ID), of(D), of(W), of(C), of(LINES), of(ALL_LOCAL)];
    let new = Stmt::NewOrderInsert.call(vec![of(O_ID), of(D), of(W)]);
    vec![
        Step::RetryFromHere,
        send(customer),
        send(lock),
        send(next),
        send(Stmt::OrderInsert.call(order)),
        send(new),
    ]
}

/// How many lines of an order have an item that is used.
pub(super) fn sound_lines() -> Expr {
    of(LINES).op(Op::Sub, of(UNUSED))
}

/// The next line of an order: its item, its stock, itself (clause 2.4.2.2).
fn order_line() -> Vec<Step> {
    let price = Call { binds: vec![bind(0, PRICE)], ..Stmt::Item.call(vec![of(ITEM)]) };
    let information = (0..10_u16).map(|at| bind(2 + at, Register(DISTRICT_INFO.0 + at)));
    let binds = std::iter::once(bind(0, STOCK)).chain(information).collect();
    let lock = Call { binds, ..Stmt::StockLock.call(vec![of(ITEM), of(SUPPLY)]) };
    let own = Expr::Element(DISTRICT_INFO, Box::new(of(D).plus(-1)));
    let line = vec![
        of(O_ID),
        of(D),
        of(W),
        of(PLACE).plus(1),
        of(ITEM),
        of(SUPPLY),
        of(QUANTITY),
        line_amount(),
        own,
    ];
    let work = vec![
        send(price),
        send(lock),
        Step::Set(STOCK, stock_left()),
        send(one(Stmt::StockUpdate.call(stock_values()))),
        send(Stmt::LineInsert.call(line)),
        Step::Set(PLACE, of(PLACE).plus(1)),
    ];
    [line_key(), work].concat()
}

/// The parts of the line at the present place.
pub(super) fn line_key() -> Vec<Step> {
    let behind = |register, by| of(register).op(Op::Div, Expr::Int(by));
    let item = behind(KEY, BEHIND_QUANTITY).op(Op::Rem, Expr::Int(BEHIND_ITEM));
    vec![
        Step::Set(KEY, Expr::Element(ORDER, Box::new(of(PLACE)))),
        Step::Set(QUANTITY, of(KEY).op(Op::Rem, Expr::Int(BEHIND_QUANTITY))),
        Step::Set(ITEM, item),
        Step::Set(SUPPLY, behind(KEY, BEHIND_QUANTITY * BEHIND_ITEM)),
    ]
}

/// What an order leaves of the stock of its line (clause 2.4.2.2).
pub(super) fn stock_left() -> Expr {
    let left = || of(STOCK).op(Op::Sub, of(QUANTITY));
    let enough = Expr::Int(9).op(Op::Less, left());
    choose(enough, left(), left().plus(91))
}

/// The parameters of the update of a line's stock.
pub(super) fn stock_values() -> Vec<Expr> {
    let remote = Expr::Int(1).op(Op::Sub, of(SUPPLY).op(Op::Equal, of(W)));
    vec![of(STOCK), of(QUANTITY), remote, of(ITEM), of(SUPPLY)]
}

pub(super) fn line_amount() -> Expr {
    decimal(cents(PRICE).op(Op::Mul, of(QUANTITY)))
}

/// What is put in front of the data of a customer with bad credit; 500 characters stay (clause 2.5.2.2).
fn credit_data() -> Expr {
    let mut parts = Vec::new();
    for part in [of(C), of(C_D), of(C_W), of(D), of(W), decimal(of(AMOUNT))] {
        parts.extend([part, Expr::Text(" ".into())]);
    }
    parts.push(of(DATA));
    Expr::Left(Box::new(Expr::Concat(parts)), 500)
}

fn history_data() -> Expr {
    Expr::Concat(vec![of(W_NAME), Expr::Text("    ".into()), of(D_NAME)])
}

/// 1 in so many percent of the draws, else 0.
fn percent(of: i64) -> Expr {
    Expr::up_to(100).op(Op::Less, Expr::Int(of + 1))
}

pub(super) fn of(register: Register) -> Expr {
    Expr::Register(register)
}

fn cents(register: Register) -> Expr {
    Expr::Units(Box::new(of(register)), 2)
}

fn decimal(cents: Expr) -> Expr {
    Expr::Decimal(Box::new(cents), 2)
}

fn choose(condition: Expr, then: Expr, otherwise: Expr) -> Expr {
    Expr::Choose(Box::new(condition), Box::new(then), Box::new(otherwise))
}

pub(super) fn send(call: Call) -> Step {
    Step::Send(vec![call])
}

/// A call that must change one row.
pub(super) fn one(call: Call) -> Call {
    Call { changes: Some(Expr::Int(1)), ..call }
}

/// A column of the first row.
pub(super) fn bind(column: u16, into: Register) -> Bind {
    Bind { row: Expr::Int(0), column, into }
}

/// A column of the row in the middle, of the lower half where there are two (clause 2.5.2.2: n/2 rounded up).
fn middle(column: u16, into: Register) -> Bind {
    Bind { row: of(FOUND).plus(-1).op(Op::Div, Expr::Int(2)), column, into }
}
