//! The statements: those of tpcc-mysql, and the columns of clauses 2.4 to 2.8 that it leaves out.
//!
//! A row that the transaction changes later is read with a lock. At REPEATABLE READ a plain read would see it as it was at
//! the transaction's first read: no order that was made since then, for one.

use crate::LEDGER_TABLE;
use crate::expr::Expr;
use crate::script::{Access, AccessKind, Call, Key, ParamKind, Path, Statement};

use AccessKind::{Delete, Insert, Read, Update};
use ParamKind::{Decimal, Int, Long, Text};

/// The statements, in the order of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stmt {
    // New-Order.
    CustomerWarehouse,
    DistrictLock,
    DistrictNext,
    OrderInsert,
    NewOrderInsert,
    Item,
    StockLock,
    StockUpdate,
    LineInsert,
    // Payment.
    WarehousePaid,
    Warehouse,
    DistrictPaid,
    District,
    NameCount,
    NameIds,
    CustomerLock,
    CustomerData,
    CustomerPaidData,
    CustomerPaid,
    HistoryInsert,
    // Order-Status.
    NameBalances,
    CustomerBalance,
    LastOrder,
    OrderLines,
    // Delivery.
    OldestLock,
    OldestDelete,
    OrderCustomer,
    OrderCarrier,
    LinesDelivered,
    LinesTotal,
    CustomerDelivered,
    // Stock-Level.
    DistrictOrders,
    RecentItems,
    StockBelow,
    // All.
    Commit,
    RollBack,
    /// Where transactions are marked.
    Mark,
}

/// The places of the tables in the description.
pub(super) const ORDER_LINE: usize = 0;
pub(super) const STOCK: usize = 1;
const CUSTOMER: usize = 2;
pub(super) const ORDERS: usize = 3;
const HISTORY: usize = 4;
pub(super) const ITEM: usize = 5;
pub(super) const NEW_ORDERS: usize = 6;
const DISTRICT: usize = 7;
const WAREHOUSE: usize = 8;
const MARKS: usize = 9;

/// What an order changes of a stock.
pub(super) const STOCK_CHANGES: &[&str] = &["s_quantity", "s_ytd", "s_order_cnt", "s_remote_cnt"];

/// Customers of a district with one last name, about.
const SAME_NAME: u32 = 3;
/// Lines of an order, on average, and of the last twenty.
pub(super) const LINES: u32 = 10;
pub(super) const RECENT: u32 = 200;

impl Stmt {
    pub(super) fn call(self, params: Vec<Expr>) -> Call {
        Call::new(self as usize, params)
    }
}

/// `marked`: with the one that marks a transaction.
pub(super) fn all(marked: bool) -> Vec<Statement> {
    let mark = if marked { vec![mark()] } else { Vec::new() };
    [new_order(), payment(), paying_customer(), order_status(), delivery(), stock_level(), ends(), mark]
        .concat()
}

fn new_order() -> Vec<Statement> {
    vec![
        read(
            "customer_warehouse",
            "SELECT c_discount, c_last, c_credit, w_tax FROM customer, warehouse \
             WHERE w_id = ? AND c_w_id = w_id AND c_d_id = ? AND c_id = ?",
            &[Int, Int, Int],
            (CUSTOMER, 1),
        ),
        read(
            "district_lock",
            "SELECT d_next_o_id, d_tax FROM district WHERE d_id = ? AND d_w_id = ? FOR UPDATE",
            &[Int, Int],
            (DISTRICT, 1),
        ),
        change(
            "district_next",
            "UPDATE district SET d_next_o_id = ? + 1 WHERE d_id = ? AND d_w_id = ?",
            &[Int, Int, Int],
            (DISTRICT, Update, &["d_next_o_id"]),
        ),
        change(
            "order_insert",
            "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
             VALUES (?, ?, ?, ?, NOW(), ?, ?)",
            &[Int, Int, Int, Int, Int, Int],
            (ORDERS, Insert, &[]),
        ),
        change(
            "new_order_insert",
            "INSERT INTO new_orders (no_o_id, no_d_id, no_w_id) VALUES (?, ?, ?)",
            &[Int, Int, Int],
            (NEW_ORDERS, Insert, &[]),
        ),
        read("item", "SELECT i_price, i_name, i_data FROM item WHERE i_id = ?", &[Int], (ITEM, 1)),
        read(
            "stock_lock",
            "SELECT s_quantity, s_data, s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, s_dist_06, s_dist_07, \
             s_dist_08, s_dist_09, s_dist_10 FROM stock WHERE s_i_id = ? AND s_w_id = ? FOR UPDATE",
            &[Int, Int],
            (STOCK, 1),
        ),
        change(
            "stock_update",
            "UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, \
             s_remote_cnt = s_remote_cnt + ? WHERE s_i_id = ? AND s_w_id = ?",
            &[Int, Int, Int, Int, Int],
            (STOCK, Update, STOCK_CHANGES),
        ),
        change(
            "line_insert",
            "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, \
             ol_amount, ol_dist_info) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            &[Int, Int, Int, Int, Int, Int, Int, Decimal, Text],
            (ORDER_LINE, Insert, &[]),
        ),
    ]
}

fn payment() -> Vec<Statement> {
    vec![
        change(
            "warehouse_paid",
            "UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?",
            &[Decimal, Int],
            (WAREHOUSE, Update, &["w_ytd"]),
        ),
        read(
            "warehouse",
            "SELECT w_street_1, w_street_2, w_city, w_state, w_zip, w_name FROM warehouse WHERE w_id = ?",
            &[Int],
            (WAREHOUSE, 1),
        ),
        change(
            "district_paid",
            "UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?",
            &[Decimal, Int, Int],
            (DISTRICT, Update, &["d_ytd"]),
        ),
        read(
            "district",
            "SELECT d_street_1, d_street_2, d_city, d_state, d_zip, d_name FROM district WHERE d_w_id = ? AND d_id = ?",
            &[Int, Int],
            (DISTRICT, 1),
        ),
    ]
}

fn paying_customer() -> Vec<Statement> {
    vec![
        by_name(
            "name_count",
            "SELECT COUNT(c_id) FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ?",
        ),
        by_name(
            "name_ids",
            "SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first",
        ),
        read(
            "customer_lock",
            "SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_credit, \
             c_credit_lim, c_discount, c_balance, c_ytd_payment, c_since FROM customer \
             WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? FOR UPDATE",
            &[Int, Int, Int],
            (CUSTOMER, 1),
        ),
        read(
            "customer_data",
            "SELECT c_data FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? FOR UPDATE",
            &[Int, Int, Int],
            (CUSTOMER, 1),
        ),
        change(
            "customer_paid_data",
            "UPDATE customer SET c_balance = ?, c_ytd_payment = ?, c_payment_cnt = c_payment_cnt + 1, c_data = ? \
             WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
            &[Decimal, Decimal, Text, Int, Int, Int],
            (CUSTOMER, Update, &["c_balance", "c_ytd_payment", "c_payment_cnt", "c_data"]),
        ),
        change(
            "customer_paid",
            "UPDATE customer SET c_balance = ?, c_ytd_payment = ?, c_payment_cnt = c_payment_cnt + 1 \
             WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
            &[Decimal, Decimal, Int, Int, Int],
            (CUSTOMER, Update, &["c_balance", "c_ytd_payment", "c_payment_cnt"]),
        ),
        change(
            "history_insert",
            "INSERT INTO history (h_c_d_id, h_c_w_id, h_c_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
             VALUES (?, ?, ?, ?, ?, NOW(), ?, ?)",
            &[Int, Int, Int, Int, Int, Decimal, Text],
            (HISTORY, Insert, &[]),
        ),
    ]
}

fn order_status() -> Vec<Statement> {
    vec![
        by_name(
            "name_balances",
            "SELECT c_balance, c_first, c_middle, c_id FROM customer \
             WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first",
        ),
        read(
            "customer_balance",
            "SELECT c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
            &[Int, Int, Int],
            (CUSTOMER, 1),
        ),
        Statement {
            access: Some(Access { path: Path::Index(0), ..access(ORDERS, Read, 1, 0) }),
            ..read(
                "last_order",
                "SELECT o_id, o_entry_d, COALESCE(o_carrier_id, 0) FROM orders \
                 WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? AND o_id = \
                 (SELECT MAX(o_id) FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ?)",
                &[Int, Int, Int, Int, Int, Int],
                (ORDERS, 1),
            )
        },
        read(
            "order_lines",
            "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
             WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
            &[Int, Int, Int],
            (ORDER_LINE, LINES),
        ),
    ]
}

fn delivery() -> Vec<Statement> {
    vec![
        read(
            "oldest_lock",
            "SELECT no_o_id FROM new_orders WHERE no_d_id = ? AND no_w_id = ? ORDER BY no_o_id ASC LIMIT 1 FOR UPDATE",
            &[Int, Int],
            (NEW_ORDERS, 1),
        ),
        change(
            "oldest_delete",
            "DELETE FROM new_orders WHERE no_o_id = ? AND no_d_id = ? AND no_w_id = ?",
            &[Int, Int, Int],
            (NEW_ORDERS, Delete, &[]),
        ),
        read(
            "order_customer",
            "SELECT o_c_id FROM orders WHERE o_id = ? AND o_d_id = ? AND o_w_id = ? FOR UPDATE",
            &[Int, Int, Int],
            (ORDERS, 1),
        ),
        change(
            "order_carrier",
            "UPDATE orders SET o_carrier_id = ? WHERE o_id = ? AND o_d_id = ? AND o_w_id = ?",
            &[Int, Int, Int, Int],
            (ORDERS, Update, &["o_carrier_id"]),
        ),
        Statement {
            access: Some(Access { changes: vec!["ol_delivery_d"], ..access(ORDER_LINE, Update, LINES, 0) }),
            ..read(
                "lines_delivered",
                "UPDATE order_line SET ol_delivery_d = NOW() WHERE ol_o_id = ? AND ol_d_id = ? AND ol_w_id = ?",
                &[Int, Int, Int],
                (ORDER_LINE, LINES),
            )
        },
        read(
            "lines_total",
            "SELECT SUM(ol_amount) FROM order_line WHERE ol_o_id = ? AND ol_d_id = ? AND ol_w_id = ?",
            &[Int, Int, Int],
            (ORDER_LINE, LINES),
        ),
        change(
            "customer_delivered",
            "UPDATE customer SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1 \
             WHERE c_id = ? AND c_d_id = ? AND c_w_id = ?",
            &[Decimal, Int, Int, Int],
            (CUSTOMER, Update, &["c_balance", "c_delivery_cnt"]),
        ),
    ]
}

fn stock_level() -> Vec<Statement> {
    vec![
        read(
            "district_orders",
            "SELECT d_next_o_id FROM district WHERE d_id = ? AND d_w_id = ?",
            &[Int, Int],
            (DISTRICT, 1),
        ),
        read(
            "recent_items",
            "SELECT DISTINCT ol_i_id FROM order_line \
             WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id < ? AND ol_o_id >= (? - 20)",
            &[Int, Int, Int, Int],
            (ORDER_LINE, RECENT),
        ),
        read(
            "stock_below",
            "SELECT COUNT(*) FROM stock WHERE s_w_id = ? AND s_i_id = ? AND s_quantity < ?",
            &[Int, Int, Int],
            (STOCK, 1),
        ),
    ]
}

fn ends() -> Vec<Statement> {
    vec![Statement::plain("commit", "COMMIT"), Statement::plain("rollback", "ROLLBACK")]
}

/// The text is what a binary log is searched for.
fn mark() -> Statement {
    let text = format!("UPDATE {LEDGER_TABLE} SET seq=? WHERE client=?");
    Statement { prepare: false, ..change("mark", &text, &[Long, Int], (MARKS, Update, &["seq"])) }
}

/// A statement that reads so many rows of a table by its primary key.
fn read(name: &'static str, text: &str, params: &[ParamKind], (table, rows): (usize, u32)) -> Statement {
    Statement {
        params: params.to_vec(),
        access: Some(access(table, Read, rows, 0)),
        ..Statement::plain(name, text)
    }
}

/// A statement that changes one row of a table.
fn change(
    name: &'static str,
    text: &str,
    params: &[ParamKind],
    (table, kind, changes): (usize, AccessKind, &[&'static str]),
) -> Statement {
    let key = if kind == Update { params.len() - 1 } else { 0 };
    let access = Access { changes: changes.to_vec(), ..access(table, kind, 1, key) };
    Statement { params: params.to_vec(), access: Some(access), ..Statement::plain(name, text) }
}

/// A statement that reads the customers of a last name.
fn by_name(name: &'static str, text: &str) -> Statement {
    let access = Access { path: Path::Index(0), ..access(CUSTOMER, Read, SAME_NAME, 0) };
    Statement { params: vec![Int, Int, Text], access: Some(access), ..Statement::plain(name, text) }
}

pub(super) fn access(table: usize, kind: AccessKind, rows: u32, key: usize) -> Access {
    Access { table, kind, path: Path::Primary, key: Key::Param(key), rows, changes: Vec::new() }
}
