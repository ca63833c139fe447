//! TPC-C as page classes: the tables, the keys and the mix that `ebbtide load run tpcc` executes.
//!
//! Everything follows from the specification (revision 5.11) and from the sizes of InnoDB's rows. Pages and insertion
//! points grow with the warehouses, so a pool that holds half of the data does the same for any number of them.

use ebbtide_workload::log_bytes::{self, LogMaker};

use super::pages::{PageClass, PageKind};
use super::shape::{Shape, TransactionType};

/// How customers and items are drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Keys {
    /// NURand of clause 2.1.6: the low bits of a number are ones more often than not.
    #[default]
    Nurand,
    /// All alike.
    Uniform,
}

/// The program that sends the transactions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Kit {
    /// tpcc-mysql, and `ebbtide load run tpcc`.
    #[default]
    TpccMysql,
    /// sysbench-tpcc. Its mix is 10:10:1:1:1. It draws the constant of NURand anew for each number, which makes all numbers
    /// alike. Its Stock-Levels read no stock that is not cached: the published logs of runs from a cold pool have no
    /// reads left for them (docs/accuracy.md).
    SysbenchTpcc,
}

impl Kit {
    /// How it draws its keys.
    #[must_use]
    pub const fn keys(self) -> Keys {
        match self {
            Self::TpccMysql => Keys::Nurand,
            Self::SysbenchTpcc => Keys::Uniform,
        }
    }

    /// Shares of New-Order, Payment, Order-Status, Delivery and Stock-Level.
    const fn mix(self) -> [f64; 5] {
        match self {
            Self::TpccMysql => [0.45, 0.43, 0.04, 0.04, 0.04],
            Self::SysbenchTpcc => [10.0 / 23.0, 10.0 / 23.0, 1.0 / 23.0, 1.0 / 23.0, 1.0 / 23.0],
        }
    }
}

const NEW_ORDER: usize = 0;
const PAYMENT: usize = 1;
const ORDER_STATUS: usize = 2;
const DELIVERY: usize = 3;
const STOCK_LEVEL: usize = 4;

/// Order lines of an order on average, and of the orders that Stock-Level looks at.
const LINES: f64 = 10.0;
const STOCK_LEVEL_ORDERS: f64 = 20.0;

/// Rows of a leaf page of 16 KiB, filled to 15/16: what a row takes with its header, by the column types.
mod rows_per_page {
    pub(super) const STOCK: f64 = 46.0;
    pub(super) const CUSTOMER: f64 = 26.0;
    pub(super) const ORDER_LINE: f64 = 215.0;
    pub(super) const ORDERS: f64 = 320.0;
    pub(super) const HISTORY: f64 = 220.0;
    pub(super) const NEW_ORDERS: f64 = 450.0;
    /// Secondary indexes grow at random places and are two thirds full: entries of 40, 18, 19, 20 and 11 bytes.
    pub(super) const CUSTOMER_NAME: f64 = 280.0;
    pub(super) const ORDERS_CUSTOMER: f64 = 620.0;
    pub(super) const HISTORY_CUSTOMER: f64 = 580.0;
    pub(super) const ORDER_LINE_STOCK: f64 = 550.0;
    pub(super) const STOCK_ITEM: f64 = 1_000.0;
}

/// Leaf pages that the optimizer reads to estimate the rows of a range: ten from its begin, and its last one
/// (`N_PAGES_READ_LIMIT` of `btr0cur.cc`). It does so for each index that could serve a statement, the one that it takes or not,
/// unless all columns of a unique key are given to a SELECT.
const ESTIMATED: f64 = 11.0;
/// The same of the entries of an item, which are on one page and now and then on two.
const ESTIMATED_OF_ITEM: f64 = 1.1;
const CUSTOMERS: f64 = 3_000.0;
const DISTRICTS: f64 = 10.0;
/// The part of the redo that describes undo records. Rows and their undo records are the same on every server, so that the lesser redo
/// of both makers counts: MariaDB's of Delivery is mostly pages that are reorganized, which it logs whole
/// (findings/mariadb-reorganized-page-in-redo.sh).
const UNDO_OF_REDO: f64 = 0.3;

/// TPC-C with so many warehouses, with the logs of a maker's server.
#[must_use]
pub fn shape(warehouses: u32, kit: Kit, keys: Keys, maker: LogMaker) -> Shape {
    let mut shape = Shape::new("tpcc", types(kit, maker));
    let tables = Tables { warehouses: f64::from(warehouses), kit, keys };
    tables.stock(&mut shape);
    tables.customer(&mut shape);
    tables.ends_of_districts(&mut shape);
    tables.orders(&mut shape);
    tables.upper_levels(&mut shape);
    shape.undo(UNDO_OF_REDO);
    let both = log_bytes::tpcc(LogMaker::MariaDb).into_iter().zip(log_bytes::tpcc(LogMaker::MySql));
    for (kind, (mariadb, mysql)) in shape.types.iter_mut().zip(both) {
        kind.undo_bytes = mariadb.redo.min(mysql.redo) * UNDO_OF_REDO;
    }
    shape
}

/// The mix and its sizes. Statements: sysbench-tpcc sends BEGIN, tpcc-mysql has turned autocommit off. Both change the same rows.
fn types(kit: Kit, maker: LogMaker) -> Vec<TransactionType> {
    let all = [
        ("new-order", 46.0),
        ("payment", 9.0),
        ("order-status", 5.0),
        ("delivery", 71.0),
        // A look-up for each item of the last orders.
        ("stock-level", 3.0 + STOCK_LEVEL_ORDERS * LINES),
    ];
    let begin = f64::from(u8::from(kit == Kit::SysbenchTpcc));
    let logs = log_bytes::tpcc(maker);
    all.into_iter()
        .zip(kit.mix())
        .zip(logs)
        .map(|(((name, statements), share), logs)| TransactionType {
            name: name.into(),
            share,
            statements: statements + begin,
            redo_bytes: logs.redo,
            binlog_bytes: logs.binlog,
            ..TransactionType::default()
        })
        .collect()
}

/// Statements of the five transactions where they are batched: those of `--statements=batched` of `ebbtide load run tpcc`.
/// The pages are the same. A Stock-Level is one join, a Delivery finds ten orders and changes ten customers one by one.
const BATCHED: [f64; 5] = [19.0, 9.0, 5.0, 26.0, 3.0];

/// Has the transactions send batched statements.
pub fn batch(shape: &mut Shape) {
    for (of, statements) in shape.types.iter_mut().zip(BATCHED) {
        of.statements = statements;
    }
}

struct Tables {
    warehouses: f64,
    kit: Kit,
    keys: Keys,
}

impl Tables {
    fn districts(&self) -> f64 {
        self.warehouses * DISTRICTS
    }

    /// Stock rows are updated by order lines, and read again by Stock-Level for the last 20 orders of a district.
    fn stock(&self, shape: &mut Shape) {
        let rows = self.warehouses * 100_000.0;
        let share = |of: usize, shape: &Shape| shape.types[of].share;
        let window = STOCK_LEVEL_ORDERS * self.districts() / share(NEW_ORDER, shape);
        let interval = self.districts() / share(STOCK_LEVEL, shape);
        // Of NURand(8191)'s 13 bits, those above the rows of one page tell pages apart.
        for (pages, references) in self.levels(7) {
            let kind = PageKind::Reused { pages: rows / rows_per_page::STOCK * pages, revisits: None };
            let class = shape.class("stock", kind, &[(NEW_ORDER, LINES * references, 1.0)]);
            if self.kit == Kit::TpccMysql {
                let revisited = STOCK_LEVEL_ORDERS * LINES * references;
                shape.revisit(class, STOCK_LEVEL, revisited, window, interval);
            }
        }
        // An update by item and warehouse could be served by the index on the item: its rows are estimated.
        for (pages, references) in self.levels(10) {
            let kind = PageKind::Reused { pages: rows / rows_per_page::STOCK_ITEM * pages, revisits: None };
            let touches = [(NEW_ORDER, LINES * ESTIMATED_OF_ITEM * references, 0.0)];
            shape.class("stock, by item", kind, &touches);
        }
    }

    /// Customers by NURand(1023), and by last name or order, which spreads over all of them.
    fn customer(&self, shape: &mut Shape) {
        let rows = self.warehouses * DISTRICTS * CUSTOMERS;
        // The begin of each district is read by estimates, too.
        let begins = self.districts() * ESTIMATED;
        let all = rows / rows_per_page::CUSTOMER;
        let rest = 1.0 - begins / all;
        for (pages_share, references) in self.levels(5) {
            let by_id =
                |each: f64, by_id: f64| rest * each * (by_id * references + (1.0 - by_id) * pages_share);
            let kind = PageKind::Reused { pages: all * rest * pages_share, revisits: None };
            let touches = [
                (NEW_ORDER, by_id(1.0, 1.0), 0.0),
                (PAYMENT, by_id(1.0, 0.4), 1.0),
                // Of a name it reads all customers, three on average.
                (ORDER_STATUS, by_id(0.4 + 0.6 * 3.0, 0.2), 0.0),
                (DELIVERY, by_id(DISTRICTS, 0.0), 1.0),
            ];
            shape.class("customer", kind, &touches);
        }
        // A look-up by name could be served by the primary key, whose first columns are given.
        let kind = PageKind::Reused { pages: begins, revisits: None };
        let of_rest = 1.0 - rest;
        let touches = [
            (NEW_ORDER, of_rest, 0.0),
            (PAYMENT, of_rest, 1.0),
            (PAYMENT, 0.6 * ESTIMATED, 0.0),
            (ORDER_STATUS, 0.6 * ESTIMATED, 0.0),
            (DELIVERY, DISTRICTS * of_rest, 1.0),
        ];
        shape.class("customer, begin of districts", kind, &touches);
        // And an update by the primary key by the index on names.
        let kind = PageKind::Reused { pages: rows / rows_per_page::CUSTOMER_NAME, revisits: None };
        let of_district = ESTIMATED.min(CUSTOMERS / rows_per_page::CUSTOMER_NAME + 1.0);
        let touches = [
            (PAYMENT, of_district + 0.6, 0.0),
            (ORDER_STATUS, 0.6, 0.0),
            (DELIVERY, DISTRICTS * of_district, 0.0),
        ];
        shape.class("customer, by name", kind, &touches);
    }

    /// The pages at which each district grows, and at which its deliveries take place.
    fn ends_of_districts(&self, shape: &mut Shape) {
        let points = |pages| PageKind::Reused { pages, revisits: None };
        let districts = self.districts();
        let tails = [(NEW_ORDER, 1.0, 1.0), (STOCK_LEVEL, 1.0, 0.0)];
        shape.class("order_line, last", points(districts), &tails);
        for table in ["orders, last", "new_orders, last"] {
            shape.class(table, points(districts), &[(NEW_ORDER, 1.0, 1.0)]);
        }
        for table in ["order_line, undelivered", "orders, undelivered"] {
            shape.class(table, points(districts), &[(DELIVERY, DISTRICTS, 1.0)]);
        }
        // A delivery marks the new order of each district as deleted.
        let first = shape.class("new_orders, first", points(districts), &[(DELIVERY, DISTRICTS, 1.0)]);
        shape.purge(first, DELIVERY, DISTRICTS);
        // Payments of a district are one after the other in the index on districts.
        shape.secondary("history, by district", points(districts), &[(PAYMENT, 1.0, 1.0)]);
        // Pages that are filled, and those that deliveries come to, are left behind for good.
        let filled =
            LINES / rows_per_page::ORDER_LINE + 1.0 / rows_per_page::ORDERS + 1.0 / rows_per_page::NEW_ORDERS;
        let grown = [(NEW_ORDER, filled, 1.0), (PAYMENT, 1.0 / rows_per_page::HISTORY, 1.0)];
        shape.class("filled", PageKind::Once { read: false }, &grown);
        let delivered = DISTRICTS * (LINES / rows_per_page::ORDER_LINE + 1.0 / rows_per_page::ORDERS);
        shape.class("delivered", PageKind::Once { read: true }, &[(DELIVERY, delivered, 1.0)]);
        // Warehouses, districts and items: referenced by everything.
        let warm = self.warehouses / 70.0 + districts / 130.0 + 100_000.0 / 150.0;
        let hot = [
            (NEW_ORDER, 2.0 + LINES, 0.2),
            (PAYMENT, 2.0, 1.0),
            (ORDER_STATUS, 1.0, 0.0),
            (DELIVERY, 1.0, 0.0),
        ];
        shape.class("warehouse, district, item", points(warm), &hot);
    }

    /// Orders and what follows from them, and payments, by customer and by stock.
    fn orders(&self, shape: &mut Shape) {
        let rows = self.warehouses * DISTRICTS * CUSTOMERS;
        let kind = |per_page: f64| PageKind::Reused { pages: rows / per_page, revisits: None };
        // The update of a delivered order could be served by this index.
        let of_district = ESTIMATED.min(CUSTOMERS / rows_per_page::ORDERS_CUSTOMER + 1.0);
        let touches =
            [(NEW_ORDER, 1.0, 1.0), (ORDER_STATUS, 1.0, 0.0), (DELIVERY, DISTRICTS * of_district, 0.0)];
        shape.secondary("orders, by customer", kind(rows_per_page::ORDERS_CUSTOMER), &touches);
        shape.secondary(
            "history, by customer",
            kind(rows_per_page::HISTORY_CUSTOMER),
            &[(PAYMENT, 1.0, 1.0)],
        );
        // Lines are in the order of warehouses and items: three of an item, 183 items on a page.
        for (pages, references) in self.levels(6) {
            let pages = rows * LINES / rows_per_page::ORDER_LINE_STOCK * pages;
            let kind = PageKind::Reused { pages, revisits: None };
            let touches = [(NEW_ORDER, LINES * references, 1.0)];
            shape.secondary("order_line, by stock", kind, &touches);
        }
        // The last order of a customer, and its lines.
        shape.class("orders, old", kind(rows_per_page::ORDERS), &[(ORDER_STATUS, 1.0, 0.0)]);
        if self.kit == Kit::TpccMysql {
            let lines = kind(rows_per_page::ORDER_LINE / LINES);
            shape.class("order_line, old", lines, &[(ORDER_STATUS, 1.0, 0.0)]);
        }
    }

    /// Upper levels of all trees.
    fn upper_levels(&self, shape: &mut Shape) {
        let leaves: f64 = shape.classes.iter().map(PageClass::pages).sum();
        let kind = PageKind::Reused { pages: (leaves / 700.0).max(1.0), revisits: None };
        shape.class("upper levels", kind, &[(NEW_ORDER, 4.0 * LINES, 0.0), (PAYMENT, 6.0, 0.0)]);
    }

    /// Shares of pages and of references, by how many of a page's skewed bits are ones. OR of two random bits is one
    /// with probability 3/4.
    fn levels(&self, bits: u32) -> Vec<(f64, f64)> {
        if self.keys == Keys::Uniform {
            return vec![(1.0, 1.0)];
        }
        let total = f64::from(bits);
        let level = |ones: u32| {
            let ways = (0..ones).fold(1.0, |ways, n| ways * (total - f64::from(n)) / f64::from(n + 1));
            let (ones, zeros) = (f64::from(ones), total - f64::from(ones));
            (ways * 0.5_f64.powf(total), ways * 0.75_f64.powf(ones) * 0.25_f64.powf(zeros))
        };
        (0..=bits).map(level).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::pages::{Pool, Residence, pages_per_transaction, residence};
    use super::*;

    /// Leaves the pool with its midpoint and the change buffer of MySQL 5.7.
    fn pool(gib: f64) -> Pool {
        Pool { old_share: 0.37, buffered: 1.0, per_merge: 50.0, ..Pool::plain(gib * 65_536.0 * 0.96) }
    }

    fn reads(warehouses: u32, kit: Kit, keys: Keys, gib: f64) -> (f64, f64) {
        pages_per_transaction(&shape(warehouses, kit, keys, LogMaker::MariaDb).classes, &pool(gib))
    }

    #[test]
    fn the_shares_of_levels_and_types_add_up() {
        let tables = Tables { warehouses: 1.0, kit: Kit::TpccMysql, keys: Keys::Nurand };
        let sums =
            tables.levels(7).iter().fold((0.0, 0.0), |sums, level| (sums.0 + level.0, sums.1 + level.1));
        assert!((sums.0 - 1.0_f64).abs() < 1e-9 && (sums.1 - 1.0_f64).abs() < 1e-9, "{sums:?}");
        for kit in [Kit::TpccMysql, Kit::SysbenchTpcc] {
            assert!(
                (types(kit, LogMaker::MariaDb).iter().map(|of| of.share).sum::<f64>() - 1.0).abs() < 1e-9
            );
        }
    }

    /// Percona's logs of March 2018 (sysbench-tpcc, 1000 warehouses, Percona Server 5.7, pool of 25 GiB, cold): pages that vmstat
    /// had seen read after so many transactions, until the pool was full.
    const READ_FROM_COLD: [(f64, f64); 6] =
        [(16e3, 386e3), (32e3, 597e3), (64e3, 856e3), (91e3, 1_017e3), (128e3, 1_212e3), (181e3, 1_451e3)];

    #[test]
    fn a_cold_pool_is_filled_as_published_runs_filled_it() {
        let classes = shape(1_000, Kit::SysbenchTpcc, Keys::Uniform, LogMaker::MariaDb).classes;
        for (transactions, published) in READ_FROM_COLD {
            let stay = Residence::plain(transactions);
            let cached: f64 = classes
                .iter()
                .filter(|class| class.kind != PageKind::Once { read: false })
                .map(|class| class.state(stay, &pool(25.0)).cached)
                .sum();
            assert!(
                (cached / published - 1.0).abs() < 0.15,
                "{cached} pages after {transactions} transactions, not {published}"
            );
        }
    }

    #[test]
    fn pools_of_all_sizes_read_what_published_runs_read() {
        // KiB of a transaction as vmstat saw them on a volume of 1200 GiB, by 16.
        for (gib, published) in [(5.0, 14.25), (10.0, 6.88), (15.0, 5.44), (20.0, 4.81), (25.0, 4.25)] {
            let (reads, _) = reads(1_000, Kit::SysbenchTpcc, Keys::Uniform, gib);
            assert!((reads / published - 1.0).abs() < 0.15, "{gib} GiB: {reads} reads, not {published}");
        }
    }

    #[test]
    fn without_estimates_of_ranges_a_small_pool_would_read_half() {
        let mut classes = shape(1_000, Kit::SysbenchTpcc, Keys::Uniform, LogMaker::MariaDb).classes;
        classes.retain(|class| {
            !["customer, by name", "stock, by item", "customer, begin of districts"]
                .contains(&class.name.as_str())
        });
        let (reads, _) = pages_per_transaction(&classes, &pool(5.0));
        assert!(reads < 9.0, "{reads}");
    }

    #[test]
    fn pools_that_hold_the_same_share_of_the_data_do_the_same() {
        let of = |warehouses, gib| reads(warehouses, Kit::TpccMysql, Keys::Uniform, gib);
        let (large, small) = (of(1_000, 20.0), of(100, 2.0));
        assert!((large.0 / small.0 - 1.0).abs() < 0.05, "{large:?} {small:?}");
    }

    #[test]
    fn stock_level_reads_again_what_has_left_the_pool() {
        let shape = shape(1_000, Kit::TpccMysql, Keys::Uniform, LogMaker::MariaDb);
        let pool = pool(10.0);
        let stay = residence(&shape.classes, &pool).expect("not all fits");
        let stock = shape.classes.iter().find(|class| class.name == "stock").expect("a class");
        assert!(stock.state(stay, &pool).revisit_miss > 0.1);
        let (with, _) = reads(1_000, Kit::TpccMysql, Keys::Uniform, 10.0);
        let (without, _) = reads(1_000, Kit::SysbenchTpcc, Keys::Uniform, 10.0);
        assert!(with > without + 2.0, "{with} and {without}");
    }
}
