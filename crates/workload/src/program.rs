//! A description made ready for execution: scripts as lists of instructions with jumps.

use std::ops::Range;

use crate::description::Description;
use crate::error::DescriptionError;
use crate::expr::{Expr, Op, Register};
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
    /// Registers, those of loops included.
    pub(crate) registers: usize,
    pub(crate) weights: u32,
}

/// What is done next. Numbers are places in the program's lists.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Instruction {
    Set(Register, Expr),
    Reseed { complement: bool, stream: Expr },
    Send(Range<usize>),
    Commit(usize),
    RollBack(usize),
    Append(usize),
    RetryFromHere,
    Jump(usize),
    JumpUnless(Expr, usize),
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
            free: description.registers,
            most: description.registers,
        };
        let mut entries = Vec::new();
        for transaction in &description.transactions {
            entries.push(compiler.instructions.len());
            compiler.steps(&transaction.steps);
            compiler.instructions.push(Instruction::End);
        }
        let undo = description.undo.clone().map(|call| compiler.call(call));
        let weights = description.transactions.iter().map(|transaction| transaction.weight).sum();
        let Compiler { instructions, calls, appends, most, .. } = compiler;
        let registers = usize::from(most);
        Ok(Self { description, instructions, entries, calls, appends, undo, registers, weights })
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
        self.calls.iter().any(|call| call.statement == statement && !call.binds.is_empty())
    }
}

struct Compiler {
    instructions: Vec<Instruction>,
    calls: Vec<Call>,
    appends: Vec<Append>,
    /// The next register for a loop, and how many were ever needed.
    free: u16,
    most: u16,
}

impl Compiler {
    fn steps(&mut self, steps: &[Step]) {
        for step in steps {
            let instruction = match step {
                Step::Set(register, expr) => Instruction::Set(*register, expr.clone()),
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

    fn repeat(&mut self, count: &Expr, body: &[Step]) {
        let left = Register(self.free);
        self.free += 1;
        self.most = self.most.max(self.free);
        self.instructions.push(Instruction::Set(left, count.clone()));
        let top = self.reserve();
        self.steps(body);
        self.instructions.push(Instruction::Set(left, Expr::Register(left).plus(-1)));
        self.instructions.push(Instruction::Jump(top));
        let some_left = Expr::Int(0).op(Op::Less, Expr::Register(left));
        self.instructions[top] = Instruction::JumpUnless(some_left, self.instructions.len());
        self.free -= 1;
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
