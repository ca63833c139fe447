//! Values of a script: constants, registers, random draws, and arithmetic on them.

use std::io::Write as _;
use std::ops::RangeInclusive;

use crate::distribution::{Drawer, Random, whole};
use crate::unique::UniqueIds;
use crate::values::{self, Alphabet};

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

    /// The range of the result of two ranges; none where that is not known.
    fn bounds(self, a: &RangeInclusive<i64>, b: &RangeInclusive<i64>) -> Option<RangeInclusive<i64>> {
        let both = |low, high| Some(self.apply(*a.start(), low)?..=self.apply(*a.end(), high)?);
        match self {
            Self::Add | Self::Min | Self::Max => both(*b.start(), *b.end()),
            Self::Sub => both(*b.end(), *b.start()),
            Self::Rem if *a.start() >= 0 && *b.start() > 0 => Some(0..=*a.end().min(&(b.end() - 1))),
            Self::Equal | Self::Less => Some(0..=1),
            Self::Mul | Self::Div | Self::Rem | Self::BitOr => None,
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
    /// What the register so many places behind this one holds; NULL where there is none. Registers in a row are an
    /// array, counted from 0.
    Element(Register, Box<Self>),
    /// The place, from 0, of the first of so many elements of an array that holds this number; NULL where none does.
    Place {
        /// The array's first register.
        array: Register,
        /// How many elements are looked at.
        count: Box<Self>,
        /// The number.
        number: Box<Self>,
    },
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
    /// Random characters, as many as the number; none where it is no number.
    RandomText(Alphabet, Box<Self>),
    /// An exponentially distributed whole number with this mean, and not over the limit.
    Exponential {
        /// The mean.
        mean: u32,
        /// The limit.
        most: u32,
    },
    /// A uniform draw from 1 to a number that the seed and the key decide alone: the same key gives the same draw
    /// wherever it is made.
    Keyed {
        /// The key; NULL gives NULL.
        key: Box<Self>,
        /// The number, 1 or more.
        most: u32,
    },
    /// The place of a number in a random order of 1 to `most`; the seed and the order's number decide which order
    /// it is. NULL where the number is not 1 to `most`.
    Shuffled {
        /// The number.
        number: Box<Self>,
        /// How many numbers the order has, 1 to 2147483647.
        most: u32,
        /// Which order.
        order: Box<Self>,
    },
    /// An operation.
    Op(Op, Box<Self>, Box<Self>),
    /// The second where the first is a number other than 0, else the third.
    Choose(Box<Self>, Box<Self>, Box<Self>),
    /// The text at a place of the list, from 0; NULL where there is none.
    Pick(Box<Self>, Vec<String>),
    /// The first bytes of a text, so many at most.
    Left(Box<Self>, u32),
    /// A whole number as a decimal whose last digits, so many, are behind the point: 1234 with 2 is 12.34. At most 18.
    Decimal(Box<Self>, u8),
    /// A decimal as a whole number of units of that digit behind its point: 12.34 with 2 is 1234. NULL where it has
    /// more digits, or is none.
    Units(Box<Self>, u8),
    /// 1 where the value, as text, is this one, else 0; NULL for NULL.
    Is(Box<Self>, String),
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
            Self::UpTo(of)
            | Self::Element(_, of)
            | Self::RandomText(_, of)
            | Self::Keyed { key: of, .. }
            | Self::Pick(of, _)
            | Self::Left(of, _)
            | Self::Is(of, _)
            | Self::Decimal(of, _)
            | Self::Units(of, _) => of.visit(visit),
            Self::Shuffled { number, order: other, .. } | Self::Place { number, count: other, .. } => {
                [number, other].into_iter().for_each(|part| part.visit(visit))
            }
            Self::Op(_, a, b) => [a, b].into_iter().for_each(|part| part.visit(visit)),
            Self::Choose(a, b, c) => [a, b, c].into_iter().for_each(|part| part.visit(visit)),
            Self::Concat(parts) | Self::Crc32(parts) => parts.iter().for_each(|part| part.visit(visit)),
            _ => {}
        }
    }

    /// The least and the greatest number that it can be; none where that is not known. NULL is left out: a draw or an
    /// operation may be NULL besides.
    pub(crate) fn bounds(
        &self,
        of: &dyn Fn(Register) -> Option<RangeInclusive<i64>>,
    ) -> Option<RangeInclusive<i64>> {
        match self {
            Self::Int(value) => Some(*value..=*value),
            Self::Register(register) => of(*register),
            Self::UpTo(most) => most.bounds(of).map(|most| 1..=*most.end()),
            Self::Id(_, most) | Self::Keyed { most, .. } | Self::Shuffled { most, .. } => {
                Some(1..=i64::from(*most))
            }
            Self::Op(op, a, b) => op.bounds(&a.bounds(of)?, &b.bounds(of)?),
            Self::Choose(_, then, otherwise) => {
                let (a, b) = (then.bounds(of)?, otherwise.bounds(of)?);
                Some(*a.start().min(b.start())..=*a.end().max(b.end()))
            }
            _ => None,
        }
    }

    /// Works the value out. A text is appended to `out`, and nothing else is.
    pub(crate) fn evaluate(&self, scope: &mut Scope<'_>, out: &mut Vec<u8>) -> Evaluated {
        match self {
            Self::Null => Evaluated::Null,
            Self::Int(value) => Evaluated::Int(*value),
            Self::Text(text) => Evaluated::text(out, |out| out.extend_from_slice(text.as_bytes())),
            Self::Register(register) => held(&scope.registers[usize::from(register.0)], out),
            Self::Element(first, place) => {
                let place = place.number(scope, out);
                element(*first, place, scope.registers.len())
                    .map_or(Evaluated::Null, |at| held(&scope.registers[at], out))
            }
            Self::Place { array, count, number } => {
                let (count, number) = (count.number(scope, out), number.number(scope, out));
                let count = count.and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
                let mut elements = scope.registers[usize::from(array.0)..].iter().take(count);
                let place =
                    number.and_then(|number| elements.position(|slot| slot.datum() == Datum::Int(number)));
                Evaluated::int(place.and_then(|place| i64::try_from(place).ok()))
            }
            Self::Client => Evaluated::Int(scope.client.into()),
            Self::Sequence => Evaluated::Int(i64::try_from(scope.sequence).unwrap_or(i64::MAX)),
            Self::Row => Evaluated::Int(scope.row.into()),
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
            Self::UpTo(_)
            | Self::Id(..)
            | Self::Unique
            | Self::Digits(_)
            | Self::RandomText(..)
            | Self::Exponential { .. }
            | Self::Keyed { .. }
            | Self::Shuffled { .. } => self.draw(scope, out),
            Self::Pick(..) | Self::Is(..) | Self::Left(..) | Self::Decimal(..) | Self::Units(..) => {
                self.convert(scope, out)
            }
        }
    }

    /// [`Self::evaluate`] of what is random.
    fn draw(&self, scope: &mut Scope<'_>, out: &mut Vec<u8>) -> Evaluated {
        match self {
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
            Self::RandomText(alphabet, length) => {
                let length = length.number(scope, out).and_then(|length| usize::try_from(length).ok());
                Evaluated::text(out, |out| {
                    values::random_text(scope.random, *alphabet, length.unwrap_or(0), out);
                })
            }
            Self::Exponential { mean, most } => {
                let drawn = scope.random.exponential() * f64::from(*mean);
                Evaluated::Int(i64::from(whole(drawn).min(*most)))
            }
            Self::Keyed { key, most } => {
                let key = key.number(scope, out);
                Evaluated::int(key.map(|key| values::keyed(scope.seed, key).up_to(*most).into()))
            }
            Self::Shuffled { number, most, order } => {
                let number = number.number(scope, out).and_then(|number| u32::try_from(number).ok());
                let order = order.number(scope, out);
                let both = number.filter(|number| (1..=*most).contains(number)).zip(order);
                Evaluated::int(
                    both.map(|(number, order)| values::shuffled(scope.seed, number, *most, order).into()),
                )
            }
            _ => unreachable!("not random"),
        }
    }

    /// [`Self::evaluate`] of what reads or writes texts.
    fn convert(&self, scope: &mut Scope<'_>, out: &mut Vec<u8>) -> Evaluated {
        match self {
            Self::Pick(place, texts) => {
                let place = place.number(scope, out).and_then(|place| usize::try_from(place).ok());
                let text = place.and_then(|place| texts.get(place));
                text.map_or(Evaluated::Null, |text| {
                    Evaluated::text(out, |out| out.extend_from_slice(text.as_bytes()))
                })
            }
            Self::Is(of, text) => {
                let start = append_text(of, scope, out);
                Evaluated::int(start.map(|start| {
                    let same = &out[start..] == text.as_bytes();
                    out.truncate(start);
                    same.into()
                }))
            }
            Self::Left(of, length) => {
                let length = usize::try_from(*length).expect("a u32 fits");
                let start = append_text(of, scope, out);
                start.map_or(Evaluated::Null, |start| {
                    out.truncate(start.saturating_add(length).min(out.len()));
                    Evaluated::Text(start)
                })
            }
            Self::Decimal(of, digits) => {
                let units = of.number(scope, out);
                units.map_or(Evaluated::Null, |units| {
                    Evaluated::text(out, |out| values::write_decimal(units, *digits, out))
                })
            }
            Self::Units(of, digits) => {
                let start = append_text(of, scope, out);
                Evaluated::int(start.and_then(|start| {
                    let units = values::units(&out[start..], *digits);
                    out.truncate(start);
                    units
                }))
            }
            _ => unreachable!("no conversion"),
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

/// The place of an array's element among all registers.
pub(crate) fn element(first: Register, place: Option<i64>, registers: usize) -> Option<usize> {
    let place = place.and_then(|place| usize::try_from(place).ok())?;
    usize::from(first.0).checked_add(place).filter(|at| *at < registers)
}

fn held(slot: &Slot, out: &mut Vec<u8>) -> Evaluated {
    match slot.datum() {
        Datum::Null => Evaluated::Null,
        Datum::Int(value) => Evaluated::Int(value),
        Datum::Text(text) => Evaluated::text(out, |out| out.extend_from_slice(text)),
    }
}

/// Appends a value as text, and answers with where it begins; none for NULL.
fn append_text(of: &Expr, scope: &mut Scope<'_>, out: &mut Vec<u8>) -> Option<usize> {
    match of.evaluate(scope, out) {
        Evaluated::Null => None,
        Evaluated::Text(start) => Some(start),
        Evaluated::Int(value) => {
            let start = out.len();
            write!(out, "{value}").expect("a Vec takes everything");
            Some(start)
        }
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
    pub(crate) seed: u64,
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
    /// Appends it as a field of a file for LOAD DATA with the default of its FIELDS and LINES.
    pub fn write_field(self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.extend_from_slice(b"\\N"),
            Self::Int(value) => write!(out, "{value}").expect("a Vec takes everything"),
            Self::Text(text) => {
                for byte in text {
                    match byte {
                        b'\\' | b'\t' | b'\n' => out.extend_from_slice(&[b'\\', *byte]),
                        0 => out.extend_from_slice(b"\\0"),
                        byte => out.push(*byte),
                    }
                }
            }
        }
    }

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
            seed: 3,
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
    fn elements_texts_and_decimals_are_read_and_written() {
        let boxed = |expr: Expr| Box::new(expr);
        let element = |place| Expr::Element(Register(0), boxed(Expr::Int(place)));
        assert_eq!(value(&element(1)), "'41'");
        assert_eq!(value(&element(2)), "NULL", "there are two registers");
        assert_eq!(value(&element(-1)), "NULL");
        let place = |count, number| {
            let (count, number) = (boxed(Expr::Int(count)), boxed(number));
            value(&Expr::Place { array: Register(0), count, number })
        };
        assert_eq!(place(9, Expr::Int(41)), "NULL", "a text is no number");
        assert_eq!(place(9, Expr::Null), "NULL", "and a NULL none that is looked for");
        let pick = |place| Expr::Pick(boxed(Expr::Int(place)), vec!["BAR".into(), "OUGHT".into()]);
        assert_eq!((value(&pick(1)), value(&pick(2))), ("'OUGHT'".into(), "NULL".into()));
        assert_eq!(value(&Expr::Left(boxed(Expr::Text("abc".into())), 2)), "'ab'");
        assert_eq!(value(&Expr::Left(boxed(Expr::Int(12_345)), 3)), "'123'");
        assert_eq!(value(&Expr::Left(boxed(Expr::Null), 3)), "NULL");
        let is = |expr: Expr| value(&Expr::Is(boxed(expr), "41".into()));
        assert_eq!(
            (is(element(1)), is(Expr::Int(41)), is(Expr::Int(4))),
            ("1".into(), "1".into(), "0".into())
        );
        assert_eq!(is(Expr::Null), "NULL");
        let units = Expr::Units(boxed(Expr::Text("12.30".into())), 2);
        assert_eq!(value(&units.clone().plus(4)), "1234");
        assert_eq!(value(&Expr::Decimal(boxed(units.plus(4)), 2)), "'12.34'");
        assert_eq!(value(&Expr::Units(boxed(Expr::Text("x".into())), 2)), "NULL");
    }

    #[test]
    fn a_keyed_draw_and_an_exponential_one_follow_their_definitions() {
        println!("seed 3");
        let keyed = |key| Expr::Keyed { key: Box::new(Expr::Int(key)), most: 11 };
        assert_eq!(value(&keyed(4)), value(&keyed(4)));
        let seen: std::collections::BTreeSet<String> = (0..200).map(|key| value(&keyed(key))).collect();
        assert_eq!(seen.len(), 11);
        let unique = UniqueIds::new(1);
        let mut random = Random::new(3, 5);
        let mut scope = Scope {
            registers: &[],
            seed: 3,
            random: &mut random,
            client: 0,
            sequence: 1,
            row: 0,
            unique: &unique,
        };
        let expr = Expr::Exponential { mean: 12_000, most: 36_000 };
        let drawn: Vec<i64> =
            (0..50_000).map(|_| expr.number(&mut scope, &mut Vec::new()).unwrap()).collect();
        let mean = drawn.iter().sum::<i64>() as f64 / drawn.len() as f64;
        // What is cut off beyond three times the mean is a share of e^-3 of it.
        assert!((mean / (12_000.0 * (1.0 - (-3_f64).exp())) - 1.0).abs() < 0.02, "{mean}");
        let at_most = drawn.iter().filter(|us| **us == 36_000).count();
        assert!(
            drawn.iter().all(|us| (0..=36_000).contains(us)) && (2_200..2_800).contains(&at_most),
            "{at_most}"
        );
    }

    #[test]
    fn a_draw_between_two_numbers_takes_in_both() {
        let unique = UniqueIds::new(1);
        let mut random = Random::new(5, 5);
        let mut scope = Scope {
            registers: &[],
            seed: 5,
            random: &mut random,
            client: 0,
            sequence: 1,
            row: 0,
            unique: &unique,
        };
        let expr = Expr::between(-1, 1);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..200 {
            seen.insert(expr.number(&mut scope, &mut Vec::new()).unwrap());
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [-1, 0, 1]);
        assert_eq!(value(&Expr::up_to(0)), "NULL");
    }
}
