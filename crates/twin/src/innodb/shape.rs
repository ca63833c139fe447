//! What transactions do, as the model sees it: pages of classes, processor time, bytes of logs.

use super::pages::{PageClass, PageKind, Revisits};

/// The name of the class of undo pages.
const UNDO: &str = "undo";
/// Undo pages that are in use when purge keeps up: of each of 128 rollback segments its header, and one page for inserts and
/// one for other changes (`trx0rseg.cc`, `trx0undo.cc`).
const UNDO_PAGES: f64 = 3.0 * 128.0;
/// Of them a transaction changes the header and a page.
const UNDO_REFERENCES: f64 = 2.0;

/// A workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    /// Its name.
    pub name: String,
    /// The classes of pages.
    pub classes: Vec<PageClass>,
    /// The kinds of transactions.
    pub types: Vec<TransactionType>,
}

/// A kind of transaction.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TransactionType {
    /// Its name.
    pub name: String,
    /// Its share of all transactions, 0 to 1.
    pub share: f64,
    /// The pages that it references.
    pub touches: Vec<Touch>,
    /// Statements, BEGIN and COMMIT included. Processor time and round trips are distributed by them.
    pub statements: f64,
    /// Bytes of redo; 0 where it changes nothing.
    pub redo_bytes: f64,
    /// Bytes of binary log.
    pub binlog_bytes: f64,
    /// Bytes of undo records that purge reads once nobody needs the old rows.
    pub undo_bytes: f64,
    /// Pages from which purge then removes what is marked as deleted: the class, and pages of a transaction.
    pub purged: Vec<(usize, f64)>,
}

/// References to pages of a class.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Touch {
    /// The class, by its place in [`Shape::classes`].
    pub class: usize,
    /// References of a transaction on average.
    pub references: f64,
    /// Share of them that change the page, 0 to 1.
    pub modified: f64,
    /// Whether they follow earlier references of the class: see [`Revisits`].
    pub revisits: bool,
    /// Pages that are referenced one after the other, in the order of the table.
    pub run: f64,
}

/// Pages of an extent.
pub(crate) const EXTENT: f64 = 64.0;

impl Touch {
    /// The share of its pages that linear read-ahead reads: whole extents after the first, once 56 of its 64 pages were
    /// read in order (`buf0rea.cc`).
    pub(crate) fn read_ahead(&self) -> f64 {
        (1.0 - EXTENT / self.run.max(EXTENT)).max(0.0)
    }
}

impl Shape {
    /// A workload without classes; [`Self::class`] adds them.
    #[must_use]
    pub fn new(name: &str, types: Vec<TransactionType>) -> Self {
        Self { name: name.into(), classes: Vec::new(), types }
    }

    /// Adds a class of pages with what each type (by its place) references of it: references of a transaction, and
    /// the share of them that change the page.
    pub fn class(&mut self, name: &str, kind: PageKind, touches: &[(usize, f64, f64)]) -> usize {
        let class = self.classes.len();
        let (mut references, mut changes) = (0.0, 0.0);
        for &(of, each, modified) in touches {
            let share = self.types[of].share;
            references += share * each;
            changes += share * each * modified;
            let touch = Touch { class, references: each, modified, revisits: false, run: 1.0 };
            self.types[of].touches.push(touch);
        }
        let modified = if references > 0.0 { changes / references } else { 0.0 };
        self.classes.push(PageClass { name: name.into(), kind, references, modified, secondary: false });
        class
    }

    /// Adds leaf pages of a secondary index that is not unique.
    pub fn secondary(&mut self, name: &str, kind: PageKind, touches: &[(usize, f64, f64)]) -> usize {
        let class = self.class(name, kind, touches);
        self.classes[class].secondary = true;
        class
    }

    /// Has a type read runs of so many pages of a class in their order.
    pub fn scan(&mut self, class: usize, of: usize, references: f64, run: f64) {
        let share = self.types[of].share;
        self.types[of].touches.push(Touch { class, references, modified: 0.0, revisits: false, run });
        let class = &mut self.classes[class];
        let all = class.references + share * references;
        class.modified *= if all > 0.0 { class.references / all } else { 0.0 };
        class.references = all;
    }

    /// Purge removes rows that a type has marked as deleted from so many pages of a class.
    pub fn purge(&mut self, class: usize, of: usize, pages: f64) {
        if pages > 0.0 {
            self.types[of].purged.push((class, pages));
        }
    }

    /// Adds the undo pages: each transaction that changes anything writes the header of a rollback segment and a page of its
    /// undo log. Both are used again by the next transactions, since purge gives undo pages back at once. `share_of_redo` is
    /// the part of the redo that describes undo records.
    pub fn undo(&mut self, share_of_redo: f64) {
        let writing = self.types.iter().enumerate().filter(|(_, of)| of.redo_bytes > 0.0);
        let touches: Vec<_> = writing.map(|(n, _)| (n, UNDO_REFERENCES, 1.0)).collect();
        if touches.is_empty() {
            return;
        }
        self.class(UNDO, PageKind::Reused { pages: UNDO_PAGES, revisits: None }, &touches);
        for of in &mut self.types {
            of.undo_bytes = of.redo_bytes * share_of_redo;
        }
    }

    /// The class of undo pages; none where nothing is changed.
    #[must_use]
    pub fn undo_class(&self) -> Option<usize> {
        self.classes.iter().position(|class| class.name == UNDO)
    }

    /// Has a type reference pages of a class again a while after they were referenced.
    pub fn revisit(&mut self, class: usize, of: usize, references: f64, window: f64, interval: f64) {
        let share = self.types[of].share;
        let touch = Touch { class, references, modified: 0.0, revisits: true, run: 1.0 };
        self.types[of].touches.push(touch);
        if let PageKind::Reused { revisits, .. } = &mut self.classes[class].kind {
            *revisits = Some(Revisits { window, interval, references: share * references });
        }
    }

    /// Statements of a transaction on average.
    #[must_use]
    pub fn statements(&self) -> f64 {
        self.mean(|of| of.statements)
    }

    /// Bytes of redo of a transaction on average.
    #[must_use]
    pub fn redo_bytes(&self) -> f64 {
        self.mean(|of| of.redo_bytes)
    }

    /// Bytes of binary log of a transaction on average.
    #[must_use]
    pub fn binlog_bytes(&self) -> f64 {
        self.mean(|of| of.binlog_bytes)
    }

    /// Changes the bytes of redo and binary log to these means of a transaction.
    pub fn scale_logs(&mut self, redo_bytes: Option<f64>, binlog_bytes: Option<f64>) {
        let (redo, binlog) = (self.redo_bytes(), self.binlog_bytes());
        let factor =
            |wanted: Option<f64>, now: f64| wanted.filter(|_| now > 0.0).map_or(1.0, |wanted| wanted / now);
        let (redo, binlog) = (factor(redo_bytes, redo), factor(binlog_bytes, binlog));
        for of in &mut self.types {
            of.redo_bytes *= redo;
            of.undo_bytes *= redo;
            of.binlog_bytes *= binlog;
        }
    }

    fn mean(&self, of: impl Fn(&TransactionType) -> f64) -> f64 {
        self.types.iter().map(|one| one.share * of(one)).sum()
    }
}
