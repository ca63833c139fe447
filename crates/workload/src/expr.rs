//! Values of a script: constants, registers, random draws, and arithmetic on them.

use std::io::Write as _;

use crate::distribution::{Drawer, Random};
use crate::unique::UniqueIds;

/// A place where a client keeps a value, from 0. It keeps it from one transaction to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Register(pub u16);

/// An operation on two whole numbers. NULL, text that is no whole number, a result beyond 64 bits and a division by
/// zero make NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Quotient, towards zero.
    Div,
    /// Remainder, with the sign of the first.
    Rem,
    /// The smaller one.
    Min,
    /// The larger one.
    Max,
    /// Bitwise or.
    BitOr,
    /// 1 where both are equal, else 0.
    Equal,
    /// 1 where the first is smaller, else 0.
    Less,
}

impl Op {
    fn apply(self, a: i64, b: i64) -> Option<i64> {
        match self {
            Self::Add => a.checked_add(b),
            Self::Sub => a.checked_sub(b),
            Self::Mul => a.checked_mul(b),
            Self::Div => a.checked_div(b),
            Self::Rem => a.checked_rem(b),
            Self::Min => Some(a.min(b)),
            Self::Max => Some(a.max(b)),
            Self::BitOr => Some(a | b),
            Self::Equal => Some((a == b).into()),
            Self::Less => Some((a < b).into()),
        }
    }
}

/// How a value comes about.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// NULL.
    Null,
    /// A number.
    Int(i64),
    /// A text.
    Text(String),
    /// What a register holds; NULL before it was set.
    Register(Register),
    /// The client's number, from 0.
    Client,
    /// The number that the client's next commit will have, from 1.
    Sequence,
    /// The number of the row that is being loaded, from 1; 0 in a transaction.
    Row,
    /// A uniform draw from 1 to a number; NULL where that is not 1 to 4294967295.
    UpTo(Box<Self>),
    /// A draw from 1 to a number.
    Id(Drawer, u32),
    /// A number that no other client of the run gets, over the range of a 32-bit INTEGER.
    Unique,
    /// Random groups of eleven digits, joined by dashes.
    Digits(u32),
    /// An operation.
    Op(Op, Box<Self>, Box<Self>),
    /// The second where the first is a number other than 0, else the third.
    Choose(Box<Self>, Box<Self>, Box<Self>),
    /// The texts, one after the other.
    Concat(Vec<Self>),
    /// CRC-32 of the texts joined by bars, as SQL's `CRC32(CONCAT_WS('|', ...))` computes it of values without NULL.
    Crc32(Vec<Self>),
}

impl Expr {
    /// A uniform draw from `least` to `most`.
    #[must_use]
    pub fn between(least: i64, most: i64) -> Self {
        Self::up_to(most - least + 1).plus(least - 1)
    }

    /// A uniform draw from 1 to `most`.
    #[must_use]
    pub fn up_to(most: i64) -> Self {
        Self::UpTo(Box::new(Self::Int(most)))
    }

    /// This and a number more.
    #[must_use]
    pub fn plus(self, more: i64) -> Self {
        self.op(Op::Add, Self::Int(more))
    }

    /// An operation on this and another one.
    #[must_use]
    pub fn op(self, op: Op, other: Self) -> Self {
        Self::Op(op, Box::new(self), Box::new(other))
    }

    /// Calls `visit` with this and everything in it.
    pub(crate) fn visit(&self, visit: &mut dyn FnMut(&Self)) {
        visit(self);
        match self {
            Self::UpTo(of) => of.visit(visit),
            Self::Op(_, a, b) => [a, b].into_iter().for_each(|part| part.visit(visit)),
            Self::Choose(a, b, c) => [a, b, c].into_iter().for_each(|part| part.visit(visit)),
            Self::Concat(parts) | Self::Crc32(parts) => parts.iter().for_each(|part| part.visit(visit)),
            _ => {}
        }
    }

    /// Works the value out. A text is appended to `out`, and nothing else is.
    pub(crate) fn evaluate(&self, scope: &mut Scope<'_>, out: &mut Vec<u8>) -> Evaluated {
        match self {
            Self::Null => Evaluated::Null,
            Self::Int(value) => Evaluated::Int(*value),
            Self::Text(text) => Evaluated::text(out, |out| out.extend_from_slice(text.as_bytes())),
            Self::Register(register) => match scope.registers[usize::from(register.0)].datum() {
                Datum::Null => Evaluated::Null,
                Datum::Int(value) => Evaluated::Int(value),
                Datum::Text(text) => Evaluated::text(out, |out| out.extend_from_slice(text)),
            },
            Self::Client => Evaluated::Int(scope.client.into()),
            Self::Sequence => Evaluated::Int(i64::try_from(scope.sequence).unwrap_or(i64::MAX)),
            Self::Row => Evaluated::Int(scope.row.into()),
            Self::UpTo(most) => {
                let most = most.number(scope, out).and_then(|most| u32::try_from(most).ok());
                Evaluated::int(most.filter(|most| *most > 0).map(|most| scope.random.up_to(most).into()))
            }
            Self::Id(drawer, most) => Evaluated::Int(drawer.id(scope.random, *most).into()),
            Self::Unique => Evaluated::Int(scope.unique.next().into()),
            Self::Digits(groups) => {
                let groups = usize::try_from(*groups).expect("a u32 fits");
                Evaluated::text(out, |out| scope.random.digit_groups(groups, out))
            }
            Self::Op(op, a, b) => {
                let (a, b) = (a.number(scope, out), b.number(scope, out));
                Evaluated::int(a.zip(b).and_then(|(a, b)| op.apply(a, b)))
            }
            Self::Choose(condition, then, otherwise) => {
                let chosen = if condition.holds(scope, out) { then } else { otherwise };
                chosen.evaluate(scope, out)
            }
            Self::Concat(parts) => Evaluated::text(out, |out| append(parts, b"", scope, out)),
            Self::Crc32(parts) => {
                let start = out.len();
                append(parts, b"|", scope, out);
                let crc = crc32fast::hash(&out[start..]);
                out.truncate(start);
                Evaluated::Int(crc.into())
            }
        }
    }

    /// As a whole number. Leaves `out` as it was.
    pub(crate) fn number(&self, scope: &mut Scope<'_>, out: &mut Vec<u8>) -> Option<i64> {
        // The most frequent case, without the general one's room for texts.
        if let Self::Int(value) = self {
            return Some(*value);
        }
        match self.evaluate(scope, out) {
            Evaluated::Null => None,
            Evaluated::Int(value) => Some(value),
            Evaluated::Text(start) => {
                let number = std::str::from_utf8(&out[start..]).ok().and_then(|text| text.parse().ok());
                out.truncate(start);
                number
            }
        }
    }

    /// Whether it is a number other than 0.
    pub(crate) fn holds(&self, scope: &mut Scope<'_>, out: &mut Vec<u8>) -> bool {
        self.number(scope, out).is_some_and(|number| number != 0)
    }
}

/// Appends the parts as text; NULL appends nothing.
fn append(parts: &[Expr], between: &[u8], scope: &mut Scope<'_>, out: &mut Vec<u8>) {
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            out.extend_from_slice(between);
        }
        if let Evaluated::Int(value) = part.evaluate(scope, out) {
            write!(out, "{value}").expect("a Vec takes everything");
        }
    }
}

/// What an expression has become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Evaluated {
    Null,
    Int(i64),
    /// What was appended, from there on.
    Text(usize),
}

impl Evaluated {
    fn text(out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) -> Self {
        let start = out.len();
        fill(out);
        Self::Text(start)
    }

    fn int(value: Option<i64>) -> Self {
        value.map_or(Self::Null, Self::Int)
    }

    pub(crate) fn datum(self, out: &[u8]) -> Datum<'_> {
        match self {
            Self::Null => Datum::Null,
            Self::Int(value) => Datum::Int(value),
            Self::Text(start) => Datum::Text(&out[start..]),
        }
    }
}

/// What an expression depends on.
#[derive(Debug)]
pub(crate) struct Scope<'a> {
    pub(crate) registers: &'a [Slot],
    pub(crate) random: &'a mut Random,
    pub(crate) client: u32,
    pub(crate) sequence: u64,
    pub(crate) row: u32,
    pub(crate) unique: &'a UniqueIds,
}

/// A value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Datum<'a> {
    /// NULL.
    Null,
    /// A whole number.
    Int(i64),
    /// Text, or bytes.
    Text(&'a [u8]),
}

impl Datum<'_> {
    /// Appends it as a literal of SQL.
    pub fn write_sql(self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.extend_from_slice(b"NULL"),
            Self::Int(value) => write!(out, "{value}").expect("a Vec takes everything"),
            Self::Text(text) => {
                out.push(b'\'');
                for byte in text {
                    if matches!(byte, b'\'' | b'\\') {
                        out.push(*byte);
                    }
                    out.push(*byte);
                }
                out.push(b'\'');
            }
        }
    }
}

/// A register's content. Text stays allocated, so that a register that is set again allocates nothing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slot {
    kind: Kind,
    int: i64,
    text: Vec<u8>,
}

#[derive(Debug, Clone, Copy, Default)]
enum Kind {
    #[default]
    Null,
    Int,
    Text,
}

impl Slot {
    pub(crate) fn datum(&self) -> Datum<'_> {
        match self.kind {
            Kind::Null => Datum::Null,
            Kind::Int => Datum::Int(self.int),
            Kind::Text => Datum::Text(&self.text),
        }
    }

    pub(crate) fn set(&mut self, value: Datum<'_>) {
        self.kind = match value {
            Datum::Null => Kind::Null,
            Datum::Int(value) => {
                self.int = value;
                Kind::Int
            }
            Datum::Text(text) => {
                self.text.clear();
                self.text.extend_from_slice(text);
                Kind::Text
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(expr: &Expr) -> String {
        let mut registers = vec![Slot::default(); 2];
        registers[1].set(Datum::Text(b"41"));
        let (mut random, unique) = (Random::new(3, 3), UniqueIds::new(3));
        let mut scope = Scope {
            registers: &registers,
            random: &mut random,
            client: 7,
            sequence: 9,
            row: 0,
            unique: &unique,
        };
        let mut out = b"before".to_vec();
        let evaluated = expr.evaluate(&mut scope, &mut out);
        match evaluated.datum(&out) {
            Datum::Null => "NULL".into(),
            Datum::Int(value) => value.to_string(),
            Datum::Text(text) => format!("'{}'", String::from_utf8_lossy(text)),
        }
    }

    #[test]
    fn arithmetic_is_exact_or_null() {
        let one = || Expr::Int(1);
        assert_eq!(value(&Expr::Register(Register(1)).plus(1)), "42", "text that is a number counts as one");
        assert_eq!(value(&Expr::Register(Register(0)).plus(1)), "NULL");
        assert_eq!(value(&Expr::Text("x".into()).plus(1)), "NULL");
        assert_eq!(value(&one().op(Op::Div, Expr::Int(0))), "NULL");
        assert_eq!(value(&Expr::Int(i64::MAX).plus(1)), "NULL");
        assert_eq!(value(&Expr::Int(-7).op(Op::Rem, Expr::Int(3))), "-1");
        assert_eq!(value(&Expr::Int(5).op(Op::BitOr, Expr::Int(2)).op(Op::Equal, Expr::Int(7))), "1");
    }

    #[test]
    fn texts_are_joined_and_summed_as_sql_does() {
        let parts = vec![Expr::Client, Expr::Text("x".into()), Expr::Register(Register(1))];
        assert_eq!(value(&Expr::Concat(parts.clone())), "'7x41'");
        assert_eq!(value(&Expr::Crc32(parts)), crc32fast::hash(b"7|x|41").to_string());
        // SELECT CRC32('MySQL') in the manual of the function.
        assert_eq!(value(&Expr::Crc32(vec![Expr::Text("MySQL".into())])), "3259397556");
    }

    #[test]
    fn a_condition_chooses_and_evaluates_one_side_alone() {
        let choose = |condition| {
            Expr::Choose(Box::new(condition), Box::new(Expr::Text("yes".into())), Box::new(Expr::Null))
        };
        assert_eq!(value(&choose(Expr::Int(2))), "'yes'");
        assert_eq!(value(&choose(Expr::Null)), "NULL");
        let mut random = Random::new(3, 3);
        let drawn =
            Expr::Choose(Box::new(Expr::Int(0)), Box::new(Expr::up_to(9)), Box::new(Expr::up_to(900)));
        assert_eq!(value(&drawn), random.up_to(900).to_string());
    }

    #[test]
    fn a_draw_between_two_numbers_takes_in_both() {
        let unique = UniqueIds::new(1);
        let mut random = Random::new(5, 5);
        let mut scope =
            Scope { registers: &[], random: &mut random, client: 0, sequence: 1, row: 0, unique: &unique };
        let expr = Expr::between(-1, 1);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..200 {
            seen.insert(expr.number(&mut scope, &mut Vec::new()).unwrap());
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [-1, 0, 1]);
        assert_eq!(value(&Expr::up_to(0)), "NULL");
    }
}
