//! What makes a description one that cannot be executed.

use std::ops::RangeInclusive;

use crate::description::{Description, Opening};
use crate::error::DescriptionError;
use crate::expr::{Expr, Register};
use crate::script::{Access, Append, Call, Key, Path, Statement, Step};

impl Description {
    /// Checks that the scripts can be executed: each transaction sends something, whatever its values are, and what
    /// they refer to exists. Numbers of tables are compared with [`Statement::tables`] where their range is known
    /// without executing anything; that of a client's number, for one, is not.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn check(&self) -> Result<(), DescriptionError> {
        if self.transactions.iter().all(|transaction| transaction.weight == 0) {
            return Err(DescriptionError::NoTransaction(self.name.clone()));
        }
        self.statements.iter().try_for_each(|statement| self.check_access(statement))?;
        let checker = Checker { description: self, transaction: "before the first one" };
        self.opening.iter().try_for_each(|opening| checker.opening(opening))?;
        for transaction in &self.transactions {
            let checker = Checker { description: self, transaction: transaction.name };
            for pause in transaction.keying_us.iter().chain(&transaction.thinking_us) {
                checker.expr(pause)?;
            }
            checker.steps(&transaction.steps)?;
            if !sends(&transaction.steps) {
                return Err(DescriptionError::SendsNothing(transaction.name.to_owned()));
            }
        }
        let checker = Checker { description: self, transaction: "before a retry" };
        self.undo.as_ref().map_or(Ok(()), |call| checker.call(call))
    }

    /// What a statement declares of the rows that it touches.
    fn check_access(&self, statement: &Statement) -> Result<(), DescriptionError> {
        let Some(Access { table, path, key, .. }) = &statement.access else { return Ok(()) };
        let refuse = |what, at, count| {
            let statement = statement.name.to_owned();
            Err(DescriptionError::Access { statement, what, at, count })
        };
        let Some(of) = self.tables.get(*table) else { return refuse("table", *table, self.tables.len()) };
        if let Path::Index(at) = path
            && *at >= of.indexes.len()
        {
            return refuse("index", *at, of.indexes.len());
        }
        if let Key::Param(at) = key
            && *at >= statement.params.len()
        {
            return refuse("parameter", *at, statement.params.len());
        }
        if statement.tables > of.count {
            let (statement, tables) = (statement.name.to_owned(), statement.tables);
            return Err(DescriptionError::TooManyTables { statement, tables, count: of.count });
        }
        Ok(())
    }

    /// The least and the greatest number that a register can hold in a transaction; none where that is not known.
    fn bounds_of(&self, register: Register) -> Option<RangeInclusive<i64>> {
        let mut found = Known::Never;
        for transaction in &self.transactions {
            widen(&transaction.steps, register, &mut found);
        }
        let opened = self.opening.iter().any(|opening| opening.into == register);
        match found {
            Known::Within(range) if !opened => Some(range),
            _ => None,
        }
    }
}

/// What is known of a register's numbers.
enum Known {
    /// Nothing sets it.
    Never,
    Within(RangeInclusive<i64>),
    /// Something sets it to any number.
    Any,
}

impl Known {
    fn widen(&mut self, more: Option<RangeInclusive<i64>>) {
        *self = match (&self, more) {
            (Self::Any, _) | (_, None) => Self::Any,
            (Self::Never, Some(more)) => Self::Within(more),
            (Self::Within(range), Some(more)) => {
                Self::Within(*range.start().min(more.start())..=*range.end().max(more.end()))
            }
        };
    }
}

/// Takes in what the steps set a register to.
fn widen(steps: &[Step], register: Register, found: &mut Known) {
    let binds = |call: &Call| {
        let collects = call.collect.iter().any(|collect| collect.into.0 <= register.0);
        collects || call.count == Some(register) || call.binds.iter().any(|bind| bind.into == register)
    };
    for step in steps {
        match step {
            // A value that depends on registers counts as any number.
            Step::Set(into, expr) if *into == register => found.widen(expr.bounds(&|_| None)),
            // An array may reach up to the last register.
            Step::SetElement(first, ..) | Step::Sort(first, _) if first.0 <= register.0 => found.widen(None),
            Step::Send(calls) if calls.iter().any(binds) => found.widen(None),
            Step::Commit(call) | Step::RollBack(call) if binds(call) => found.widen(None),
            Step::Append(append) if append.counter == register => found.widen(None),
            Step::Repeat(_, body) => widen(body, register, found),
            Step::If(_, then, otherwise) => {
                widen(then, register, found);
                widen(otherwise, register, found);
            }
            _ => {}
        }
    }
}

/// Whether the steps send something on every way through them.
fn sends(steps: &[Step]) -> bool {
    steps.iter().any(|step| match step {
        Step::Send(_) | Step::Commit(_) | Step::RollBack(_) | Step::Append(_) => true,
        Step::Repeat(Expr::Int(count), body) => *count > 0 && sends(body),
        Step::If(_, then, otherwise) => sends(then) && sends(otherwise),
        Step::Repeat(..)
        | Step::Set(..)
        | Step::SetElement(..)
        | Step::Sort(..)
        | Step::Reseed { .. }
        | Step::RetryFromHere => false,
    })
}

struct Checker<'a> {
    description: &'a Description,
    transaction: &'a str,
}

impl Checker<'_> {
    fn steps(&self, steps: &[Step]) -> Result<(), DescriptionError> {
        steps.iter().try_for_each(|step| match step {
            Step::Set(register, expr) => self.register(*register).and_then(|()| self.expr(expr)),
            Step::SetElement(first, place, expr) => {
                self.register(*first)?;
                self.expr(place)?;
                self.expr(expr)
            }
            Step::Sort(first, count) => self.register(*first).and_then(|()| self.expr(count)),
            Step::Reseed { stream, .. } => self.expr(stream),
            Step::Send(calls) if calls.is_empty() => {
                Err(DescriptionError::NothingToSend(self.transaction.to_owned()))
            }
            Step::Send(calls) => calls.iter().try_for_each(|call| self.call(call)),
            Step::Commit(call) | Step::RollBack(call) => self.call(call),
            Step::Append(append) => self.append(append),
            Step::Repeat(count, body) => self.expr(count).and_then(|()| self.steps(body)),
            Step::If(condition, then, otherwise) => {
                self.expr(condition)?;
                self.steps(then)?;
                self.steps(otherwise)
            }
            Step::RetryFromHere => Ok(()),
        })
    }

    fn call(&self, call: &Call) -> Result<(), DescriptionError> {
        let statement = self.statement(call.statement)?;
        let (kinds, values) = (statement.params.len(), call.params.len());
        let marks = if kinds == 0 { 0 } else { statement.text.matches('?').count() };
        if marks != kinds || kinds != values {
            let statement = statement.name.to_owned();
            return Err(DescriptionError::Parameters { statement, marks, kinds, values });
        }
        call.params.iter().chain(&call.table).try_for_each(|expr| self.expr(expr))?;
        self.table(statement.name, statement.tables, call.table.as_ref())?;
        call.count.map_or(Ok(()), |register| self.register(register))?;
        call.changes.as_ref().map_or(Ok(()), |changes| self.expr(changes))?;
        for collect in &call.collect {
            self.expr(&collect.column)?;
            self.register(collect.into)?;
            self.register(Register(collect.into.0.saturating_add(collect.most.saturating_sub(1))))?;
        }
        call.binds.iter().try_for_each(|bind| self.register(bind.into).and_then(|()| self.expr(&bind.row)))
    }

    fn append(&self, append: &Append) -> Result<(), DescriptionError> {
        let statement = self.statement(append.statement)?;
        self.register(append.counter)?;
        append.values.iter().chain([&append.table]).try_for_each(|expr| self.expr(expr))?;
        self.table(statement.name, statement.tables, Some(&append.table))
    }

    fn opening(&self, opening: &Opening) -> Result<(), DescriptionError> {
        self.register(opening.into)?;
        self.expr(&opening.table)?;
        let most = self.description.tables.iter().map(|table| table.count).max().unwrap_or(0);
        if opening.text.contains("{}") {
            return self.table("before the first transaction", most, Some(&opening.table));
        }
        Ok(())
    }

    /// Compares the number of a table with how many there are.
    fn table(&self, statement: &str, tables: u32, number: Option<&Expr>) -> Result<(), DescriptionError> {
        let refuse = |given| {
            let (transaction, statement) = (self.transaction.to_owned(), statement.to_owned());
            Err(DescriptionError::NoTable { transaction, statement, given, tables })
        };
        let Some(number) = number else {
            return if tables == 0 { Ok(()) } else { refuse("no number of a table".to_owned()) };
        };
        match number.bounds(&|register| self.description.bounds_of(register)) {
            _ if tables == 0 => refuse("the number of a table".to_owned()),
            Some(range) if *range.start() < 1 || *range.end() > i64::from(tables) => {
                refuse(format!("table {} to {}", range.start(), range.end()))
            }
            _ => Ok(()),
        }
    }

    fn statement(&self, at: usize) -> Result<&Statement, DescriptionError> {
        let statements = &self.description.statements;
        statements.get(at).ok_or_else(|| DescriptionError::NoStatement {
            transaction: self.transaction.to_owned(),
            statement: at,
            statements: statements.len(),
        })
    }

    fn register(&self, register: Register) -> Result<(), DescriptionError> {
        if register.0 < self.description.registers {
            return Ok(());
        }
        Err(DescriptionError::NoRegister {
            transaction: self.transaction.to_owned(),
            register: register.0,
            registers: self.description.registers,
        })
    }

    fn expr(&self, expr: &Expr) -> Result<(), DescriptionError> {
        let mut found = Ok(());
        expr.visit(&mut |part| {
            if let (
                Expr::Register(register) | Expr::Element(register, _) | Expr::Place { array: register, .. },
                Ok(()),
            ) = (part, &found)
            {
                found = self.register(*register);
            }
        });
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::{Fill, Table};
    use crate::expr::Op;
    use crate::script::{AccessKind, Bind, Collect, ParamKind, Transaction};

    const R0: Register = Register(0);

    /// A read of one of three tables by its key, on the table of `number`.
    fn description(number: Option<Expr>) -> Description {
        let access = Access {
            table: 0,
            kind: AccessKind::Read,
            path: Path::Primary,
            key: Key::Param(0),
            rows: 1,
            changes: Vec::new(),
        };
        let read = Statement {
            tables: 3,
            params: vec![ParamKind::Int],
            access: Some(access),
            ..Statement::plain("read", "SELECT c FROM t{} WHERE id=?")
        };
        let call = Call { table: number, ..Call::new(0, vec![Expr::Int(1)]) };
        Description {
            name: "test".into(),
            form: String::new(),
            tables: vec![Table {
                name: "t{}".into(),
                count: 3,
                create: "CREATE TABLE t{} (id INT PRIMARY KEY, c INT)".into(),
                indexes: Vec::new(),
                fill: Fill::none(),
                row_bytes: 8,
                warm_up: Vec::new(),
                ageing: None,
            }],
            statements: vec![read],
            transactions: vec![Transaction::alone("one", vec![Step::Send(vec![call])])],
            session: Vec::new(),
            opening: Vec::new(),
            undo: None,
            finish: Vec::new(),
            registers: 1,
        }
    }

    fn refused(description: &Description) -> String {
        description.check().unwrap_err().to_string()
    }

    #[test]
    fn a_transaction_that_can_end_without_a_statement_is_refused() {
        let base = description(Some(Expr::Int(1)));
        let send = base.transactions[0].steps.clone();
        let with = |steps| {
            Description { transactions: vec![Transaction::alone("one", steps)], ..base.clone() }.check()
        };
        for steps in [
            Vec::new(),
            vec![Step::Set(R0, Expr::Int(1))],
            vec![Step::Repeat(Expr::Int(0), send.clone())],
            vec![Step::Repeat(Expr::up_to(3), send.clone())],
            vec![Step::If(Expr::Client, send.clone(), Vec::new())],
        ] {
            assert_eq!(with(steps), Err(DescriptionError::SendsNothing("one".into())));
        }
        for steps in [
            vec![Step::Repeat(Expr::Int(2), send.clone())],
            vec![Step::If(Expr::Client, send.clone(), send.clone())],
            vec![Step::If(Expr::Client, Vec::new(), Vec::new()), send[0].clone()],
        ] {
            assert_eq!(with(steps), Ok(()));
        }
    }

    #[test]
    fn a_call_on_a_table_that_is_not_there_is_refused() {
        for number in [
            Expr::Int(1),
            Expr::up_to(3),
            Expr::between(2, 3),
            Expr::up_to(9).op(Op::Rem, Expr::Int(3)).plus(1),
            Expr::up_to(9).op(Op::Min, Expr::Int(3)),
            // The number of clients is not the description's.
            Expr::Client.plus(1),
        ] {
            assert_eq!(description(Some(number)).check(), Ok(()));
        }
        for (number, words) in [
            (None, "no number of a table"),
            (Some(Expr::Int(0)), "table 0 to 0, and there are 3"),
            (Some(Expr::Int(4)), "table 4 to 4, and there are 3"),
            (Some(Expr::up_to(4)), "table 1 to 4, and there are 3"),
            (Some(Expr::up_to(3).plus(-1)), "table 0 to 2, and there are 3"),
            (Some(Expr::Choose(Expr::Client.into(), Expr::Int(3).into(), Expr::Int(7).into())), "3 to 7"),
        ] {
            let error = refused(&description(number));
            assert!(error.contains(words), "{error}");
        }
        let mut plain = description(Some(Expr::Int(1)));
        plain.statements[0].tables = 0;
        assert!(refused(&plain).contains("the number of a table, and there are 0"));
    }

    #[test]
    fn the_number_in_a_register_is_that_of_all_steps_that_set_it() {
        let set = |expr| {
            let mut of = description(Some(Expr::Register(R0)));
            let steps = &mut of.transactions[0].steps;
            steps.insert(0, Step::If(Expr::Client, vec![Step::Set(R0, expr)], Vec::new()));
            steps.insert(0, Step::Set(R0, Expr::up_to(2)));
            of
        };
        assert_eq!(set(Expr::Int(3)).check(), Ok(()));
        assert!(refused(&set(Expr::Int(4))).contains("table 1 to 4"));
        // What the server answers is known when it has answered.
        let mut bound = set(Expr::Int(4));
        let Step::Send(calls) = &mut bound.transactions[0].steps[2] else { panic!("{bound:?}") };
        calls[0].binds.push(Bind { row: Expr::Int(0), column: 0, into: R0 });
        assert_eq!(bound.check(), Ok(()));
    }

    #[test]
    fn an_array_lies_within_the_registers_and_its_elements_are_any_number() {
        let with = |steps: Vec<Step>| {
            let mut of = description(Some(Expr::Register(R0)));
            of.transactions[0].steps.splice(0..0, steps);
            of
        };
        let element = Step::SetElement(R0, Expr::Int(0), Expr::Int(4));
        assert_eq!(with(vec![element, Step::Sort(R0, Expr::Int(1))]).check(), Ok(()));
        assert!(refused(&with(vec![Step::Sort(Register(1), Expr::Int(1))])).contains("register 1"));
        let mut collected = with(Vec::new());
        let Step::Send(calls) = &mut collected.transactions[0].steps[0] else { panic!("{collected:?}") };
        calls[0].collect = vec![Collect { column: Expr::Int(0), into: R0, most: 2 }];
        assert!(refused(&collected).contains("register 1"), "two rows need two registers");
    }

    #[test]
    fn an_opening_is_checked_as_a_call_is() {
        let with = |text: &str, table, into| Description {
            opening: vec![Opening { text: text.into(), table, into }],
            ..description(Some(Expr::Int(1)))
        };
        let text = "SELECT MAX(id) FROM t{}";
        assert_eq!(with(text, Expr::Client.plus(1), R0).check(), Ok(()));
        assert_eq!(with("SELECT 1", Expr::Int(0), R0).check(), Ok(()));
        assert!(refused(&with(text, Expr::Int(4), R0)).contains("table 4 to 4, and there are 3"));
        assert!(refused(&with(text, Expr::Int(1), Register(1))).contains("register 1"));
        assert!(refused(&with(text, Expr::Register(Register(7)), R0)).contains("register 7"));
    }

    #[test]
    fn rows_of_tables_that_are_not_there_are_refused() {
        let with = |change: &dyn Fn(&mut Statement)| {
            let mut of = description(Some(Expr::Int(1)));
            change(&mut of.statements[0]);
            refused(&of)
        };
        let access = |change: &dyn Fn(&mut Access)| with(&|of| change(of.access.as_mut().unwrap()));
        assert!(access(&|of| of.table = 1).contains("table 1, and there are 1"));
        assert!(access(&|of| of.path = Path::Index(0)).contains("index 0, and there are 0"));
        assert!(access(&|of| of.key = Key::Param(1)).contains("parameter 1, and there are 1"));
        assert!(with(&|of| of.tables = 4).contains("is for 4 tables, and there are 3"));
    }
}
