//! One client on its way through a program.

use std::ops::Range;

use crate::distribution::Random;
use crate::expr::{Datum, Expr, Register, Scope, Slot, element};
use crate::program::{Instruction, Program};
use crate::script::Transaction;
use crate::unique::UniqueIds;

/// What a script may refer to besides what its client knows.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    /// The client's number, from 0.
    pub client: u32,
    /// The number of its next commit, from 1.
    pub sequence: u64,
    /// The numbers that all clients share.
    pub unique: &'a UniqueIds,
}

/// What a client does next. Numbers are those of [`Program::call`] and [`Program::append`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Sends these calls in one go and waits for all answers.
    Send(Range<usize>),
    /// Sends the call that commits.
    Commit(usize),
    /// Sends the call that rolls back on purpose.
    RollBack(usize),
    /// Sends an INSERT of many rows.
    Append(usize),
    /// Nothing: the transaction is through.
    Done,
}

/// A client: its random source, its registers, and its place in the script.
#[derive(Debug, Clone)]
pub struct Play {
    seed: u64,
    random: Random,
    registers: Vec<Slot>,
    /// Rounds that are left of each loop.
    counters: Vec<i64>,
    transaction: usize,
    at: usize,
    retry: usize,
    scratch: Vec<u8>,
}

impl Play {
    /// A client whose draws are stream `stream` of `seed`.
    #[must_use]
    pub fn new(program: &Program, seed: u64, stream: u64) -> Self {
        Self {
            seed,
            random: Random::new(seed, stream),
            registers: vec![Slot::default(); program.registers],
            counters: vec![0; program.counters],
            transaction: 0,
            at: 0,
            retry: 0,
            scratch: Vec::new(),
        }
    }

    /// Chooses the next transaction by the weights of the mix.
    pub fn choose(&mut self, program: &Program) {
        if program.entries.len() > 1 {
            let mut drawn = self.random.up_to(program.weights);
            let weights = program.description().transactions.iter().map(|transaction| transaction.weight);
            for (at, weight) in weights.enumerate() {
                if drawn <= weight {
                    self.transaction = at;
                    break;
                }
                drawn -= weight;
            }
        }
        self.restart(program);
    }

    /// Goes back to the beginning of the transaction that was chosen.
    pub fn restart(&mut self, program: &Program) {
        self.at = program.entries[self.transaction];
        self.retry = self.at;
    }

    /// Goes back to where a refused transaction is done again.
    pub fn retry(&mut self) {
        self.at = self.retry;
    }

    /// The place of the chosen transaction in [`crate::Description::transactions`].
    #[must_use]
    pub fn transaction(&self) -> usize {
        self.transaction
    }

    /// How long the client waits before the chosen transaction, us.
    pub fn keying_us(&mut self, program: &Program, situation: &Situation<'_>) -> u64 {
        self.pause(program, situation, |transaction| transaction.keying_us.as_ref())
    }

    /// How long it waits after it, us.
    pub fn thinking_us(&mut self, program: &Program, situation: &Situation<'_>) -> u64 {
        self.pause(program, situation, |transaction| transaction.thinking_us.as_ref())
    }

    fn pause<'p>(
        &mut self,
        program: &'p Program,
        situation: &Situation<'_>,
        of: impl Fn(&'p Transaction) -> Option<&'p Expr>,
    ) -> u64 {
        let pause = of(&program.description().transactions[self.transaction]);
        pause
            .and_then(|pause| self.number(pause, situation))
            .and_then(|us| u64::try_from(us).ok())
            .unwrap_or(0)
    }

    /// Goes on to the next thing that the server or the caller must know of.
    pub fn next(&mut self, program: &Program, situation: &Situation<'_>) -> Next {
        loop {
            let instruction = &program.instructions[self.at];
            if matches!(instruction, Instruction::End) {
                return Next::Done;
            }
            self.at += 1;
            match instruction {
                Instruction::Set(register, expr) => self.assign(*register, expr, situation),
                Instruction::SetElement(first, place, expr) => {
                    let place = self.number(place, situation);
                    let at =
                        element(*first, place, self.registers.len()).and_then(|at| u16::try_from(at).ok());
                    if let Some(at) = at {
                        self.assign(Register(at), expr, situation);
                    }
                }
                Instruction::Sort(first, count) => {
                    let count = self.number(count, situation).and_then(|count| usize::try_from(count).ok());
                    self.sort(usize::from(first.0), count.unwrap_or(0));
                }
                Instruction::Reseed { complement, stream } => {
                    let seed = if *complement { !self.seed } else { self.seed };
                    let stream = self.number(stream, situation).unwrap_or(0);
                    self.random = Random::new(seed, stream.cast_unsigned());
                }
                Instruction::RetryFromHere => self.retry = self.at,
                Instruction::Jump(to) => self.at = *to,
                Instruction::JumpUnless(condition, to) => {
                    if self.number(condition, situation).is_none_or(|number| number == 0) {
                        self.at = *to;
                    }
                }
                Instruction::Rounds { counter, rounds, end } => {
                    let rounds = self.number(rounds, situation).unwrap_or(0);
                    self.counters[*counter] = rounds;
                    if rounds < 1 {
                        self.at = *end;
                    }
                }
                Instruction::NextRound { counter, top } => {
                    let left = &mut self.counters[*counter];
                    *left -= 1;
                    if *left > 0 {
                        self.at = *top;
                    }
                }
                Instruction::Send(calls) => return Next::Send(calls.clone()),
                Instruction::Commit(call) => return Next::Commit(*call),
                Instruction::RollBack(call) => return Next::RollBack(*call),
                Instruction::Append(append) => return Next::Append(*append),
                Instruction::End => unreachable!("looked at before"),
            }
        }
    }

    /// A value: that of a parameter, of a table's number, of the row that a bind wants.
    #[inline]
    pub fn value(&mut self, expr: &Expr, situation: &Situation<'_>) -> Datum<'_> {
        // What is there already is not copied.
        match expr {
            Expr::Int(value) => Datum::Int(*value),
            Expr::Register(register) => self.register(*register),
            _ => self.work_out(expr, situation),
        }
    }

    fn work_out(&mut self, expr: &Expr, situation: &Situation<'_>) -> Datum<'_> {
        self.scratch.clear();
        let mut scope = scope(&self.registers, self.seed, &mut self.random, situation);
        expr.evaluate(&mut scope, &mut self.scratch).datum(&self.scratch)
    }

    /// A value as a whole number; none where it is no number.
    #[inline]
    pub fn number(&mut self, expr: &Expr, situation: &Situation<'_>) -> Option<i64> {
        if let Expr::Int(value) = expr {
            return Some(*value);
        }
        if let Expr::Register(register) = expr
            && let Datum::Int(value) = self.register(*register)
        {
            return Some(value);
        }
        self.scratch.clear();
        let mut scope = scope(&self.registers, self.seed, &mut self.random, situation);
        expr.number(&mut scope, &mut self.scratch)
    }

    /// What a register holds.
    #[must_use]
    pub fn register(&self, register: Register) -> Datum<'_> {
        self.registers[usize::from(register.0)].datum()
    }

    /// Keeps what the server returned.
    pub fn set(&mut self, register: Register, value: Datum<'_>) {
        self.registers[usize::from(register.0)].set(value);
    }

    fn sort(&mut self, first: usize, count: usize) {
        let last = first.saturating_add(count).min(self.registers.len());
        let number = |slot: &Slot| match slot.datum() {
            Datum::Int(number) => Some(number),
            Datum::Null | Datum::Text(_) => None,
        };
        self.registers[first..last].sort_by_key(number);
    }

    fn assign(&mut self, register: Register, expr: &Expr, situation: &Situation<'_>) {
        self.scratch.clear();
        let mut scope = scope(&self.registers, self.seed, &mut self.random, situation);
        let value = expr.evaluate(&mut scope, &mut self.scratch).datum(&self.scratch);
        self.registers[usize::from(register.0)].set(value);
    }
}

fn scope<'a>(
    registers: &'a [Slot],
    seed: u64,
    random: &'a mut Random,
    situation: &Situation<'a>,
) -> Scope<'a> {
    let Situation { client, sequence, unique } = *situation;
    Scope { registers, seed, random, client, sequence, row: 0, unique }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::Description;
    use crate::script::{Call, Statement, Step};

    #[test]
    fn loops_within_loops_have_the_rounds_that_they_began_with() {
        let [outer, inner] = [Register(0), Register(1)];
        let send = || Step::Send(vec![Call::new(0, Vec::new())]);
        let rounds = |outer_rounds, inner_rounds| {
            let steps = vec![
                Step::Set(outer, outer_rounds),
                send(),
                Step::Repeat(
                    Expr::Register(outer),
                    vec![
                        // A loop that is under way does not end later for it.
                        Step::Set(outer, Expr::Int(9)),
                        Step::Set(inner, inner_rounds),
                        Step::Repeat(Expr::Register(inner), vec![send(), Step::Set(inner, Expr::Null)]),
                        Step::Repeat(Expr::Int(2), vec![send()]),
                    ],
                ),
            ];
            let description = Description {
                name: "loops".into(),
                form: String::new(),
                tables: Vec::new(),
                statements: vec![Statement::plain("do", "DO 1")],
                transactions: vec![Transaction::alone("loops", steps)],
                session: Vec::new(),
                opening: Vec::new(),
                undo: None,
                finish: Vec::new(),
                registers: 2,
            };
            crate::sent::transaction(description, 1, 0, 1).len()
        };
        assert_eq!(rounds(Expr::Int(3), Expr::Int(4)), 1 + 3 * (4 + 2));
        for none in [Expr::Null, Expr::Int(0), Expr::Int(-1), Expr::Text("x".into())] {
            assert_eq!(rounds(none.clone(), Expr::Int(4)), 1);
            assert_eq!(rounds(Expr::Int(2), none), 1 + 2 * 2);
        }
    }
}
