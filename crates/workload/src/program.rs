//! A description made ready for execution: scripts as lists of instructions with jumps.

use std::ops::Range;

use crate::description::Description;
use crate::error::DescriptionError;
use crate::expr::{Expr, Register};
use crate::script::{Append, Call, Statement, Step};

/// A description whose scripts can be executed step by step.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    description: Description,
    pub(crate) instructions: Vec<Instruction>,
    /// Where each transaction begins.
    pub(crate) entries: Vec<usize>,
    calls: Vec<Call>,
    appends: Vec<Append>,
    /// The call of [`Description::undo`].
    undo: Option<usize>,
    /// Registers that scripts use.
    pub(crate) registers: usize,
    /// Counters of loops: one for each that lies in another.
    pub(crate) counters: usize,
    pub(crate) weights: u32,
}

/// What is done next. Numbers are places in the program's lists.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Instruction {
    Set(Register, Expr),
    SetElement(Register, Expr, Expr),
    Sort(Register, Expr),
    Reseed {
        complement: bool,
        stream: Expr,
    },
    Send(Range<usize>),
    Commit(usize),
    RollBack(usize),
    Append(usize),
    RetryFromHere,
    Jump(usize),
    JumpUnless(Expr, usize),
    /// Begins a loop: sets its counter, and jumps where it is to have no round.
    Rounds {
        counter: usize,
        rounds: Expr,
        end: usize,
    },
    /// Ends a round: jumps to the next one, if there is one.
    NextRound {
        counter: usize,
        top: usize,
    },
    End,
}

impl Program {
    /// Makes a description ready.
    ///
    /// # Errors
    /// [`Description::check`]'s.
    pub fn new(description: Description) -> Result<Self, DescriptionError> {
        description.check()?;
        let mut compiler = Compiler {
            instructions: Vec::new(),
            calls: Vec::new(),
            appends: Vec::new(),
            loops: 0,
            counters: 0,
        };
        let mut entries = Vec::new();
        for transaction in &description.transactions {
            entries.push(compiler.instructions.len());
            compiler.steps(&transaction.steps);
            compiler.instructions.push(Instruction::End);
        }
        let undo = description.undo.clone().map(|call| compiler.call(call));
        let weights = description.transactions.iter().map(|transaction| transaction.weight).sum();
        let Compiler { instructions, calls, appends, counters, .. } = compiler;
        let registers = usize::from(description.registers);
        Ok(Self { description, instructions, entries, calls, appends, undo, registers, counters, weights })
    }

    /// What it was made of.
    #[must_use]
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// A call, by its place.
    #[must_use]
    pub fn call(&self, at: usize) -> &Call {
        &self.calls[at]
    }

    /// An INSERT of many rows, by its place.
    #[must_use]
    pub fn append(&self, at: usize) -> &Append {
        &self.appends[at]
    }

    /// The statement of a call.
    #[must_use]
    pub fn statement(&self, call: &Call) -> &Statement {
        &self.description.statements[call.statement]
    }

    /// What is sent before a refused transaction is done again.
    #[must_use]
    pub fn undo(&self) -> Option<usize> {
        self.undo
    }

    /// The statements that are called, each once, in their order.
    #[must_use]
    pub fn called(&self) -> Vec<usize> {
        let mut called: Vec<usize> = self.calls.iter().map(|call| call.statement).collect();
        called.sort_unstable();
        called.dedup();
        called
    }
}

impl Program {
    /// Whether any call keeps values of what this statement returns.
    #[must_use]
    pub fn binds(&self, statement: usize) -> bool {
        let keeps = |call: &Call| !call.binds.is_empty() || !call.collect.is_empty();
        self.calls.iter().any(|call| call.statement == statement && keeps(call))
    }
}

struct Compiler {
    instructions: Vec<Instruction>,
    calls: Vec<Call>,
    appends: Vec<Append>,
    /// How many loops lie around the next step, and how many do at most.
    loops: usize,
    counters: usize,
}

impl Compiler {
    fn steps(&mut self, steps: &[Step]) {
        for step in steps {
            let instruction = match step {
                Step::Set(register, expr) => Instruction::Set(*register, expr.clone()),
                Step::SetElement(first, place, expr) => {
                    Instruction::SetElement(*first, place.clone(), expr.clone())
                }
                Step::Sort(first, count) => Instruction::Sort(*first, count.clone()),
                Step::Reseed { complement, stream } => {
                    Instruction::Reseed { complement: *complement, stream: stream.clone() }
                }
                Step::Send(calls) => {
                    let first = self.calls.len();
                    self.calls.extend(calls.iter().cloned());
                    Instruction::Send(first..self.calls.len())
                }
                Step::Commit(call) => Instruction::Commit(self.call(call.clone())),
                Step::RollBack(call) => Instruction::RollBack(self.call(call.clone())),
                Step::Append(append) => {
                    self.appends.push(append.clone());
                    Instruction::Append(self.appends.len() - 1)
                }
                Step::RetryFromHere => Instruction::RetryFromHere,
                Step::Repeat(count, body) => {
                    self.repeat(count, body);
                    continue;
                }
                Step::If(condition, then, otherwise) => {
                    self.choose(condition, then, otherwise);
                    continue;
                }
            };
            self.instructions.push(instruction);
        }
    }

    fn call(&mut self, call: Call) -> usize {
        self.calls.push(call);
        self.calls.len() - 1
    }

    /// Puts an instruction in whose jump is not known yet; answers with its place.
    fn reserve(&mut self) -> usize {
        self.instructions.push(Instruction::End);
        self.instructions.len() - 1
    }

    fn repeat(&mut self, rounds: &Expr, body: &[Step]) {
        let counter = self.loops;
        self.loops += 1;
        self.counters = self.counters.max(self.loops);
        let begin = self.reserve();
        let top = self.instructions.len();
        self.steps(body);
        self.instructions.push(Instruction::NextRound { counter, top });
        let end = self.instructions.len();
        self.instructions[begin] = Instruction::Rounds { counter, rounds: rounds.clone(), end };
        self.loops -= 1;
    }

    fn choose(&mut self, condition: &Expr, then: &[Step], otherwise: &[Step]) {
        let test = self.reserve();
        self.steps(then);
        let end = self.reserve();
        self.instructions[test] = Instruction::JumpUnless(condition.clone(), self.instructions.len());
        self.steps(otherwise);
        self.instructions[end] = Instruction::Jump(self.instructions.len());
    }
}
