//! TPC-C as page classes: the tables, the keys and the mix that `ebbtide load run tpcc` executes.
//!
//! Everything follows from the specification (revision 5.11) and from the sizes of InnoDB's rows. Pages and insertion
//! points grow with the warehouses, so a pool that holds half of the data does the same for any number of them.

use super::pages::PageKind;
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
    /// Secondary indexes grow at random places and are two thirds full.
    pub(super) const CUSTOMER_NAME: f64 = 350.0;
    pub(super) const ORDERS_CUSTOMER: f64 = 450.0;
    pub(super) const HISTORY_CUSTOMER: f64 = 450.0;
}

/// The part of the redo that describes undo records.
const UNDO_OF_REDO: f64 = 0.3;

/// TPC-C with so many warehouses.
#[must_use]
pub fn shape(warehouses: u32, keys: Keys) -> Shape {
    let mut shape = Shape::new("tpcc", types());
    let tables = Tables { warehouses: f64::from(warehouses), keys };
    tables.stock(&mut shape);
    tables.customer(&mut shape);
    tables.ends_of_districts(&mut shape);
    tables.indexes(&mut shape);
    shape.undo(UNDO_OF_REDO);
    shape
}

/// The mix and its sizes. Redo and binary log: 10 KiB and 8 KiB (full row images) of a transaction on average, by the
/// rows that each type changes (measured of sysbench-tpcc: docs/decisions/twin.md).
fn types() -> Vec<TransactionType> {
    let of = |name: &str, share, statements, redo_kib: f64, binlog_kib: f64| TransactionType {
        name: name.into(),
        share,
        statements,
        redo_bytes: redo_kib * 1024.0,
        binlog_bytes: binlog_kib * 1024.0,
        ..TransactionType::default()
    };
    vec![
        of("new-order", 0.45, 47.0, 14.0, 9.0),
        of("payment", 0.43, 10.0, 4.0, 4.5),
        of("order-status", 0.04, 6.0, 0.0, 0.0),
        of("delivery", 0.04, 72.0, 50.0, 50.0),
        of("stock-level", 0.04, 4.0, 0.0, 0.0),
    ]
}

struct Tables {
    warehouses: f64,
    keys: Keys,
}

impl Tables {
    fn districts(&self) -> f64 {
        self.warehouses * 10.0
    }

    /// Stock rows are updated by order lines, and read again by Stock-Level for the last 20 orders of a district.
    fn stock(&self, shape: &mut Shape) {
        let pages = self.warehouses * 100_000.0 / rows_per_page::STOCK;
        let share = |of: usize, shape: &Shape| shape.types[of].share;
        let window = STOCK_LEVEL_ORDERS * self.districts() / share(NEW_ORDER, shape);
        let interval = self.districts() / share(STOCK_LEVEL, shape);
        // Of NURand(8191)'s 13 bits, those above the rows of one page tell pages apart.
        for (pages_share, references) in self.levels(7) {
            let kind = PageKind::Reused { pages: pages * pages_share, revisits: None };
            let class = shape.class("stock", kind, &[(NEW_ORDER, LINES * references, 1.0)]);
            let revisited = STOCK_LEVEL_ORDERS * LINES * references;
            shape.revisit(class, STOCK_LEVEL, revisited, window, interval);
        }
    }

    /// Customers by NURand(1023), and by last name or order, which spreads over all of them.
    fn customer(&self, shape: &mut Shape) {
        let pages = self.warehouses * 30_000.0 / rows_per_page::CUSTOMER;
        for (pages_share, references) in self.levels(5) {
            let by_id = |each: f64, by_id: f64| each * (by_id * references + (1.0 - by_id) * pages_share);
            let kind = PageKind::Reused { pages: pages * pages_share, revisits: None };
            let touches = [
                (NEW_ORDER, by_id(1.0, 1.0), 0.0),
                (PAYMENT, by_id(1.0, 0.4), 1.0),
                (ORDER_STATUS, by_id(1.0, 0.4), 0.0),
                (DELIVERY, by_id(10.0, 0.0), 1.0),
            ];
            shape.class("customer", kind, &touches);
        }
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
            shape.class(table, points(districts), &[(DELIVERY, 10.0, 1.0)]);
        }
        // A delivery marks the new order of each district as deleted.
        let first = shape.class("new_orders, first", points(districts), &[(DELIVERY, 10.0, 1.0)]);
        shape.purge(first, DELIVERY, 10.0);
        // Pages that are filled, and those that deliveries come to, are left behind for good.
        let filled =
            LINES / rows_per_page::ORDER_LINE + 1.0 / rows_per_page::ORDERS + 1.0 / rows_per_page::NEW_ORDERS;
        let grown = [(NEW_ORDER, filled, 1.0), (PAYMENT, 1.0 / rows_per_page::HISTORY, 1.0)];
        shape.class("filled", PageKind::Once { read: false }, &grown);
        let delivered = 10.0 * (LINES / rows_per_page::ORDER_LINE + 1.0 / rows_per_page::ORDERS);
        shape.class("delivered", PageKind::Once { read: true }, &[(DELIVERY, delivered, 1.0)]);
        // Warehouses, districts, items and upper levels of all trees: referenced by everything.
        let warm = self.warehouses / 70.0 + districts / 130.0 + 100_000.0 / 150.0;
        let upper = self.warehouses * 100_000.0 / rows_per_page::STOCK / 700.0;
        let hot = [
            (NEW_ORDER, 2.0 + LINES, 0.2),
            (PAYMENT, 2.0, 1.0),
            (ORDER_STATUS, 1.0, 0.0),
            (DELIVERY, 1.0, 0.0),
        ];
        shape.class("warehouse, district, item", points(warm), &hot);
        shape.class("upper levels", points(upper), &[(NEW_ORDER, 3.0 * LINES, 0.0), (PAYMENT, 6.0, 0.0)]);
    }

    fn indexes(&self, shape: &mut Shape) {
        let rows = self.warehouses * 30_000.0;
        for (pages_share, references) in self.levels(4) {
            let pages = rows / rows_per_page::CUSTOMER_NAME * pages_share;
            let kind = PageKind::Reused { pages, revisits: None };
            let touches = [(PAYMENT, 0.6 * references, 0.0), (ORDER_STATUS, 0.6 * references, 0.0)];
            shape.class("customer, by name", kind, &touches);
        }
        let kind = |per_page: f64| PageKind::Reused { pages: rows / per_page, revisits: None };
        let touches = [(NEW_ORDER, 1.0, 1.0), (ORDER_STATUS, 1.0, 0.0)];
        shape.secondary("orders, by customer", kind(rows_per_page::ORDERS_CUSTOMER), &touches);
        shape.secondary("history, by customer", kind(rows_per_page::HISTORY_CUSTOMER), &[(PAYMENT, 1.0, 1.0)]);
        let lines = PageKind::Reused { pages: rows * LINES / rows_per_page::ORDER_LINE, revisits: None };
        shape.class("order_line, old", lines, &[(ORDER_STATUS, 1.0, 0.0)]);
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
    use super::super::pages::{Pool, pages_per_transaction};
    use super::*;

    fn reads(warehouses: u32, keys: Keys, gib: f64) -> (f64, f64) {
        pages_per_transaction(&shape(warehouses, keys).classes, &Pool::plain(gib * 65_536.0 * 0.96))
    }

    #[test]
    fn the_shares_of_levels_and_types_add_up() {
        let tables = Tables { warehouses: 1.0, keys: Keys::Nurand };
        let sums =
            tables.levels(7).iter().fold((0.0, 0.0), |sums, level| (sums.0 + level.0, sums.1 + level.1));
        assert!((sums.0 - 1.0_f64).abs() < 1e-9 && (sums.1 - 1.0_f64).abs() < 1e-9, "{sums:?}");
        assert!((types().iter().map(|of| of.share).sum::<f64>() - 1.0).abs() < 1e-9);
    }

    /// A program that keeps every page of 20 warehouses in an LRU list, with the transactions of the specification
    /// drawn row by row, gave these (docs/decisions/twin.md); pools are those of 1000 warehouses.
    #[test]
    fn classes_read_and_write_what_an_lru_list_of_all_pages_does() {
        for (gib, reads_of_list, writes_of_list) in [(5.0, 10.4, 5.0), (10.0, 6.8, 3.8), (25.0, 2.0, 1.5)] {
            let (reads, writes) = reads(1_000, Keys::Nurand, gib);
            assert!(
                (reads / reads_of_list - 1.0).abs() < 0.2,
                "{gib} GiB: {reads} reads, not {reads_of_list}"
            );
            assert!(
                (writes / writes_of_list - 1.0).abs() < 0.2,
                "{gib} GiB: {writes} writes, not {writes_of_list}"
            );
        }
    }

    #[test]
    fn pools_that_hold_the_same_share_of_the_data_do_the_same() {
        let (large, small) = (reads(1_000, Keys::Uniform, 20.0), reads(100, Keys::Uniform, 2.0));
        assert!((large.0 / small.0 - 1.0).abs() < 0.05, "{large:?} {small:?}");
    }
}
