//! A workload that is known from what a server was measured to do.

use super::pages::{MissCurve, PageKind};
use super::shape::{Shape, TransactionType};

/// What a transaction was measured to do.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// Pages read and written, by the size of the pool.
    pub curve: MissCurve,
    /// Bytes of redo.
    pub redo_bytes: f64,
    /// Bytes of binary log.
    pub binlog_bytes: f64,
    /// Statements.
    pub statements: f64,
    /// Kinds of transactions: share of all, and pages, time and bytes relative to the others. Empty: all are alike.
    pub types: Vec<ObservedType>,
}

/// A kind of transaction.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedType {
    /// Its name.
    pub name: String,
    /// Its share of all transactions, 0 to 1.
    pub share: f64,
    /// What it does, relative to the others: 2 reads and writes twice as many pages and bytes as 1.
    pub size: f64,
}

/// The workload.
#[must_use]
pub fn shape(observed: &Observed) -> Shape {
    let alone = [ObservedType { name: "transaction".into(), share: 1.0, size: 1.0 }];
    let types = if observed.types.is_empty() { &alone[..] } else { &observed.types };
    let mean: f64 = types.iter().map(|of| of.share * of.size).sum();
    let kinds = types.iter().map(|of| TransactionType {
        name: of.name.clone(),
        share: of.share,
        statements: observed.statements * of.size / mean,
        redo_bytes: observed.redo_bytes * of.size / mean,
        binlog_bytes: observed.binlog_bytes * of.size / mean,
        ..TransactionType::default()
    });
    let mut shape = Shape::new("observed", kinds.collect());
    let touches: Vec<_> = types.iter().enumerate().map(|(n, of)| (n, of.size / mean, 1.0)).collect();
    shape.class("pages", PageKind::Observed(observed.curve.clone()), &touches);
    shape
}
