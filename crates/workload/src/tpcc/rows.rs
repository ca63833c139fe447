//! The tables with their rows (clause 4.3.3.1). Columns, types and indexes are those of tpcc-mysql.

use super::constants::last_name;
use super::{DISTRICTS, Scale, TABLES, Tpcc};
use crate::LEDGER_TABLE;
use crate::description::{Fill, Index, Keep, Table};
use crate::expr::{Expr, Op, Register};
use crate::values::Alphabet;

const CREATE: &str = include_str!("tables.sql");
const FOREIGN_KEYS: &str = include_str!("foreign_keys.sql");

/// All dates that are loaded: the rows depend on the seed alone.
const LOADED_AT: &str = "2026-01-01 00:00:00";
/// Lines of an order: 5 to 15.
pub(super) const MOST_LINES: i64 = 15;
const LEAST_LINES: i64 = 5;
/// Rows that share a random stream.
const STREAM_ROWS: u32 = 1_000;
/// Keys of the numbers of lines are apart from those of the orders of customers.
const LINES_KEY: i64 = 1 << 40;

/// What a row's place gives: warehouse, district, number in the district.
const W: Register = Register(0);
const D: Register = Register(1);
const N: Register = Register(2);
/// Numbers that a row needs.
const A: Register = Register(3);
const B: Register = Register(4);

/// What the tables look like, for data that were kept.
pub(super) fn form() -> u32 {
    crc32fast::hash(CREATE.as_bytes())
}

pub(super) fn foreign_keys() -> Vec<String> {
    statements_of(FOREIGN_KEYS)
}

fn statements_of(text: &str) -> Vec<String> {
    text.split(';').map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned).collect()
}

impl Tpcc {
    /// In the order of [`TABLES`] turned around: loading begins with what takes longest.
    pub(super) fn tables(&self) -> Vec<Table> {
        let create = statements_of(CREATE);
        let of = |name: &str| {
            let at = TABLES.iter().position(|table| *table == name).expect("a table of ours");
            create[at].clone()
        };
        let mark = format!(" COMMENT='ebbtide tpcc c_last={}'", self.constants.last_name);
        let mut tables = vec![
            self.order_line(of("order_line")),
            self.stock(of("stock")),
            self.customer(of("customer")),
            self.orders(of("orders")),
            self.history(of("history")),
            self.item(of("item")),
            self.new_orders(of("new_orders")),
            self.district(of("district")),
            self.warehouse(of("warehouse") + &mark),
        ];
        if self.marks > 0 {
            tables.push(self.marks());
        }
        tables
    }

    /// The last transaction of each client.
    fn marks(&self) -> Table {
        let create = format!(
            "CREATE TABLE {LEDGER_TABLE} (client INT NOT NULL PRIMARY KEY, seq BIGINT UNSIGNED NOT NULL) ENGINE = InnoDB"
        );
        let values = vec![Expr::Row.plus(-1), Expr::Int(0)];
        table(LEDGER_TABLE, create, 50, fill(self.marks, 11, Vec::new(), values), "seq")
    }

    /// Rows of a table that has so many in each district.
    fn by_district(&self, rows: u32) -> u32 {
        self.warehouses * DISTRICTS * rows
    }

    fn warehouse(&self, create: String) -> Table {
        let Scale { customers, .. } = self.scale;
        let ytd = decimal(Expr::Int(i64::from(customers * DISTRICTS) * PAID));
        let values = [vec![Expr::Row, letters(6, 10)], address(), vec![tax(), ytd]].concat();
        table("warehouse", create, 200, fill(self.warehouses, 1, Vec::new(), values), "w_ytd")
    }

    fn district(&self, create: String) -> Table {
        let Scale { customers, .. } = self.scale;
        let ytd = decimal(Expr::Int(i64::from(customers) * PAID));
        let next = Expr::Int(i64::from(customers) + 1);
        let own = vec![Expr::Register(N), Expr::Register(W), letters(6, 10)];
        let values = [own, address(), vec![tax(), ytd, next]].concat();
        table("district", create, 200, fill(self.by_district(1), 2, in_warehouse(DISTRICTS), values), "d_ytd")
    }

    fn customer(&self, create: String) -> Table {
        let scale = self.scale;
        let n = || Expr::Register(N);
        let names = scale.last_names();
        let first_ones = n().op(Op::Less, Expr::Int(i64::from(names) + 1));
        let name = choose(first_ones, n().plus(-1), self.constants.last_name(names));
        let bad = Expr::up_to(100).op(Op::Less, Expr::Int(11));
        let who = vec![n(), Expr::Register(D), Expr::Register(W), letters(8, 16), text("OE"), last_name(A)];
        let account = vec![
            digits(16),
            text(LOADED_AT),
            choose(bad, text("BC"), text("GC")),
            Expr::Int(50_000),
            decimal(Expr::between(0, 50)),
            decimal(Expr::Int(-PAID)),
            decimal(Expr::Int(PAID)),
            Expr::Int(1),
            Expr::Int(0),
            letters(300, 500),
        ];
        let lets = [in_district(scale.customers), vec![(A, name)]].concat();
        let filled = fill(self.by_district(scale.customers), 3, lets, [who, address(), account].concat());
        let by_name = index("customer", "idx_customer", &["c_w_id", "c_d_id", "c_last", "c_first"]);
        Table { indexes: vec![by_name], ..table("customer", create, 640, filled, "c_balance") }
    }

    fn history(&self, create: String) -> Table {
        let [w, d, n] = [W, D, N].map(Expr::Register);
        let values =
            vec![n, d.clone(), w.clone(), d, w, text(LOADED_AT), decimal(Expr::Int(PAID)), letters(12, 24)];
        let customers = self.scale.customers;
        let filled = fill(self.by_district(customers), 4, in_district(customers), values);
        // Those that the foreign keys need: without them each key builds its own, after everything else.
        let indexes = match self.foreign_keys {
            true => vec![
                index("history", "fkey_history_1", &["h_c_w_id", "h_c_d_id", "h_c_id"]),
                index("history", "fkey_history_2", &["h_w_id", "h_d_id"]),
            ],
            false => Vec::new(),
        };
        Table {
            indexes,
            warm_up: vec!["SELECT COUNT(h_data) FROM history".into()],
            ..table("history", create, 90, filled, "h_amount")
        }
    }

    fn new_orders(&self, create: String) -> Table {
        let rows = self.scale.new_orders();
        let order = Expr::Register(N).plus(self.scale.delivered().into());
        let values = vec![order, Expr::Register(D), Expr::Register(W)];
        table("new_orders", create, 35, fill(self.by_district(rows), 5, in_district(rows), values), "no_o_id")
    }

    fn orders(&self, create: String) -> Table {
        let scale = self.scale;
        let n = || Expr::Register(N);
        let district = Expr::Row.plus(-1).op(Op::Div, Expr::Int(scale.customers.into()));
        let customer = Expr::Shuffled { number: n().into(), most: scale.customers, order: district.into() };
        let carrier = choose(self.is_delivered(), Expr::up_to(10), Expr::Null);
        let own = vec![n(), Expr::Register(D), Expr::Register(W), customer, text(LOADED_AT), carrier];
        let values = [own, vec![lines(Expr::Row), Expr::Int(1)]].concat();
        let filled = fill(self.by_district(scale.customers), 6, in_district(scale.customers), values);
        let by_customer = index("orders", "idx_orders", &["o_w_id", "o_d_id", "o_c_id", "o_id"]);
        Table { indexes: vec![by_customer], ..table("orders", create, 75, filled, "o_ol_cnt") }
    }

    /// Each order has room for the most lines; those that it does not have are left out.
    fn order_line(&self, create: String) -> Table {
        let scale = self.scale;
        let of_order = Expr::Row.plus(-1);
        let order = || of_order.clone().op(Op::Div, Expr::Int(MOST_LINES));
        let number = of_order.clone().op(Op::Rem, Expr::Int(MOST_LINES)).plus(1);
        let delivered = || self.is_delivered();
        let amount = choose(delivered(), Expr::Int(0), Expr::up_to(999_999));
        let place = || (order(), scale.customers);
        let lets =
            vec![(B, number), (W, warehouse_of(place())), (D, district_of(place())), (N, number_of(place()))];
        let values = vec![
            Expr::Register(N),
            Expr::Register(D),
            Expr::Register(W),
            Expr::Register(B),
            Expr::up_to(scale.items.into()),
            Expr::Register(W),
            choose(delivered(), text(LOADED_AT), Expr::Null),
            Expr::Int(5),
            decimal(amount),
            letters(24, 24),
        ];
        let condition = Expr::Register(B).op(Op::Less, lines(order().plus(1)).plus(1));
        let rows = self.by_district(scale.customers) * u32::try_from(MOST_LINES).expect("15");
        let keep = Some(Keep { condition, percent: 67 });
        let filled = Fill { keep, stream_rows: 15_000, ..fill(rows, 7, lets, values) };
        let by_stock = index("order_line", "fkey_order_line_2", &["ol_supply_w_id", "ol_i_id"]);
        Table { indexes: vec![by_stock], ..table("order_line", create, 120, filled, "ol_amount") }
    }

    fn item(&self, create: String) -> Table {
        let price = decimal(Expr::between(100, 10_000));
        let values = vec![Expr::Row, Expr::up_to(10_000), letters(14, 24), price, data()];
        table("item", create, 110, fill(self.scale.items, 8, data_lets(), values), "i_price")
    }

    fn stock(&self, create: String) -> Table {
        let items = self.scale.items;
        let own = vec![Expr::Register(N), Expr::Register(W), Expr::between(10, 100)];
        let districts = vec![letters(24, 24); 10];
        let counts = vec![Expr::Int(0), Expr::Int(0), Expr::Int(0), data()];
        let lets = [in_warehouse(items), data_lets()].concat();
        let filled = fill(self.warehouses * items, 9, lets, [own, districts, counts].concat());
        let by_item = index("stock", "fkey_stock_2", &["s_i_id"]);
        Table { indexes: vec![by_item], ..table("stock", create, 360, filled, "s_quantity") }
    }

    /// Whether the order whose number is in [`N`] was delivered before it was loaded.
    fn is_delivered(&self) -> Expr {
        Expr::Register(N).op(Op::Less, Expr::Int(i64::from(self.scale.delivered()) + 1))
    }
}

/// What each customer has paid when it is loaded: 10.00 (clause 4.3.3.1), in hundredths.
const PAID: i64 = 1_000;

/// The number of lines of an order, which its key decides alone.
fn lines(key: Expr) -> Expr {
    let most = u32::try_from(MOST_LINES - LEAST_LINES + 1).expect("11");
    Expr::Keyed { key: Box::new(key.plus(LINES_KEY)), most }.plus(LEAST_LINES - 1)
}

fn table(name: &str, create: String, row_bytes: u64, fill: Fill, read: &str) -> Table {
    Table {
        name: name.into(),
        count: 0,
        create,
        indexes: Vec::new(),
        fill,
        row_bytes,
        warm_up: vec![format!("SELECT COUNT({read}) FROM {name} FORCE INDEX (PRIMARY)")],
        ageing: None,
    }
}

fn index(table: &str, name: &str, columns: &[&'static str]) -> Index {
    let all = columns.join(", ");
    Index {
        name: name.into(),
        columns: columns.to_vec(),
        create: Some(format!("CREATE INDEX {name} ON {table} ({all})")),
        warm_up: Some(format!("SELECT COUNT({}) FROM {table} FORCE INDEX ({name})", columns[0])),
    }
}

fn fill(rows: u32, salt: u8, lets: Vec<(Register, Expr)>, values: Vec<Expr>) -> Fill {
    Fill { rows, lets, values, stream_rows: STREAM_ROWS, salt, ..Fill::none() }
}

/// A row's number from 0, and how many rows a district has.
type Placed = (Expr, u32);

fn number_of((row, rows): Placed) -> Expr {
    row.op(Op::Rem, Expr::Int(rows.into())).plus(1)
}

fn district_of((row, rows): Placed) -> Expr {
    row.op(Op::Div, Expr::Int(rows.into())).op(Op::Rem, Expr::Int(DISTRICTS.into())).plus(1)
}

fn warehouse_of((row, rows): Placed) -> Expr {
    row.op(Op::Div, Expr::Int(i64::from(rows) * i64::from(DISTRICTS))).plus(1)
}

/// Where a row belongs of which each district has so many.
fn in_district(rows: u32) -> Vec<(Register, Expr)> {
    let place = || (Expr::Row.plus(-1), rows);
    vec![(W, warehouse_of(place())), (D, district_of(place())), (N, number_of(place()))]
}

/// Where a row belongs of which each warehouse has so many.
fn in_warehouse(rows: u32) -> Vec<(Register, Expr)> {
    let row = || Expr::Row.plus(-1);
    vec![(W, row().op(Op::Div, Expr::Int(rows.into())).plus(1)), (N, number_of((row(), rows)))]
}

/// Streets, city, state, ZIP code (clause 4.3.2.7).
fn address() -> Vec<Expr> {
    let zip = Expr::Concat(vec![digits(4), text("11111")]);
    vec![letters(10, 20), letters(10, 20), letters(10, 20), letters(2, 2), zip]
}

/// 0.00 to 0.20: the column has two digits behind the point where the specification has four.
fn tax() -> Expr {
    decimal(Expr::between(0, 20))
}

/// The length of a text of 26 to 50 characters, and how many of them are before the word that one in ten has.
fn data_lets() -> Vec<(Register, Expr)> {
    let before = Expr::UpTo(Box::new(Expr::Register(A).plus(-ORIGINAL_LENGTH + 1))).plus(-1);
    let one_in_ten = Expr::up_to(10).op(Op::Equal, Expr::Int(1));
    vec![(A, Expr::between(26, 50)), (B, choose(one_in_ten, before, Expr::Null))]
}

const ORIGINAL: &str = "ORIGINAL";
const ORIGINAL_LENGTH: i64 = 8;

/// The text of [`data_lets`].
fn data() -> Expr {
    let rest = Expr::Register(A).op(Op::Sub, Expr::Register(B)).plus(-ORIGINAL_LENGTH);
    let random = |length: Expr| Expr::RandomText(Alphabet::Alphanumeric, Box::new(length));
    let with = Expr::Concat(vec![random(Expr::Register(B)), text(ORIGINAL), random(rest)]);
    // A place of 0 counts as one, NULL does not.
    let has = Expr::Int(-1).op(Op::Less, Expr::Register(B));
    choose(has, with, random(Expr::Register(A)))
}

fn letters(least: i64, most: i64) -> Expr {
    let length = if least == most { Expr::Int(least) } else { Expr::between(least, most) };
    Expr::RandomText(Alphabet::Alphanumeric, Box::new(length))
}

fn digits(length: i64) -> Expr {
    Expr::RandomText(Alphabet::Digits, Box::new(Expr::Int(length)))
}

fn decimal(hundredths: Expr) -> Expr {
    Expr::Decimal(Box::new(hundredths), 2)
}

fn text(text: &str) -> Expr {
    Expr::Text(text.into())
}

fn choose(condition: Expr, then: Expr, otherwise: Expr) -> Expr {
    Expr::Choose(Box::new(condition), Box::new(then), Box::new(otherwise))
}
