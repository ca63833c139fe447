//! What the values of a point are: columns, and how two values of one become one.

use std::borrow::Cow;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

/// A value of a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// A count, bytes, nanoseconds.
    Whole(u64),
    /// A share, a mean.
    Real(f64),
}

/// What the values of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Number {
    /// [`Value::Whole`].
    Whole,
    /// [`Value::Real`].
    Real,
}

impl Value {
    /// The value as a real number; a whole one beyond 2^53 is rounded.
    #[must_use]
    pub const fn as_f64(self) -> f64 {
        match self {
            Self::Whole(number) => number as f64,
            Self::Real(number) => number,
        }
    }

    /// What it is.
    const fn number(self) -> Number {
        match self {
            Self::Whole(_) => Number::Whole,
            Self::Real(_) => Number::Real,
        }
    }

    /// The value as a number. The bits of a real one that change least are the highest.
    pub(crate) const fn bits(self) -> u64 {
        match self {
            Self::Whole(number) => number,
            Self::Real(number) => number.to_bits().swap_bytes(),
        }
    }
}

impl Number {
    /// The value that has [`Value::bits`].
    pub(crate) const fn value(self, bits: u64) -> Value {
        match self {
            Self::Whole => Value::Whole(bits),
            Self::Real => Value::Real(f64::from_bits(bits.swap_bytes())),
        }
    }
}

/// What two values of a column become where their intervals become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Aggregate {
    /// Their sum: the growth of a counter, the sum of samples.
    Sum,
    /// Their sum, too: how many samples there were.
    Count,
    /// The later one.
    Latest,
    /// The smaller one.
    Minimum,
    /// The larger one.
    Maximum,
}

impl Aggregate {
    /// What an earlier and a later value become. Sums end at the largest number. Of values of two kinds the later one stays.
    #[must_use]
    pub fn together(self, earlier: Value, later: Value) -> Value {
        use Value::{Real, Whole};
        match (self, earlier, later) {
            (Self::Sum | Self::Count, Whole(earlier), Whole(later)) => Whole(earlier.saturating_add(later)),
            (Self::Sum | Self::Count, Real(earlier), Real(later)) => Real(earlier + later),
            (Self::Minimum, Whole(earlier), Whole(later)) => Whole(earlier.min(later)),
            (Self::Minimum, Real(earlier), Real(later)) => Real(earlier.min(later)),
            (Self::Maximum, Whole(earlier), Whole(later)) => Whole(earlier.max(later)),
            (Self::Maximum, Real(earlier), Real(later)) => Real(earlier.max(later)),
            _ => later,
        }
    }
}

/// A column. A gauge with all that can be known of it has several columns of one name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// The name of the metric.
    pub name: Cow<'static, str>,
    /// How its values become one.
    pub aggregate: Aggregate,
    /// What they are.
    pub number: Number,
}

/// What is kept of a gauge in longer intervals.
const OF_GAUGE: [Aggregate; 4] = [Aggregate::Sum, Aggregate::Count, Aggregate::Minimum, Aggregate::Maximum];

/// The columns of points.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Layout {
    columns: Vec<Column>,
}

/// The layout of one real value that is taken as it is.
pub static GAUGE_LAYOUT: LazyLock<Layout> =
    LazyLock::new(|| Layout::new([("value", Aggregate::Latest, Number::Real)]));

impl Layout {
    /// A layout of columns, which do not change their order.
    pub fn new(columns: impl IntoIterator<Item = (&'static str, Aggregate, Number)>) -> Self {
        let column = |(name, aggregate, number)| Column { name: Cow::Borrowed(name), aggregate, number };
        Self { columns: columns.into_iter().map(column).collect() }
    }

    /// A layout of columns whose names are known only while the program runs, such as the status variables of a server.
    #[must_use]
    pub const fn from_columns(columns: Vec<Column>) -> Self {
        Self { columns }
    }

    /// The columns of longer intervals: in place of the latest value of a gauge the sum and the count of its values, which give the
    /// mean, the least and the greatest one. The others stay.
    #[must_use]
    pub fn rolled_up(&self) -> Self {
        let mut columns = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            if column.aggregate == Aggregate::Latest {
                columns.extend(OF_GAUGE.map(|aggregate| {
                    let number = if aggregate == Aggregate::Count { Number::Whole } else { column.number };
                    Column { name: column.name.clone(), aggregate, number }
                }));
            } else {
                columns.push(column.clone());
            }
        }
        Self { columns }
    }

    /// The values of a point of this layout in that of [`Self::rolled_up`].
    pub(crate) fn roll(&self, values: &[Option<Value>]) -> Vec<Option<Value>> {
        let mut rolled = Vec::with_capacity(values.len());
        for (column, value) in self.columns.iter().zip(values) {
            if column.aggregate == Aggregate::Latest {
                rolled.extend(OF_GAUGE.map(|aggregate| match aggregate {
                    Aggregate::Count => value.map(|_| Value::Whole(1)),
                    _ => *value,
                }));
            } else {
                rolled.push(*value);
            }
        }
        rolled
    }

    /// Adds the values of a later point of this layout to those of an earlier one.
    pub(crate) fn add(&self, earlier: &mut [Option<Value>], later: &[Option<Value>]) {
        for ((column, held), later) in self.columns.iter().zip(earlier).zip(later) {
            // A column may be of another kind than in the version of the server before.
            let Some(later) = later.filter(|later| later.number() == column.number) else { continue };
            *held = Some(match *held {
                Some(earlier) if earlier.number() == column.number => {
                    column.aggregate.together(earlier, later)
                }
                _ => later,
            });
        }
    }

    /// The columns.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The value of a column among the values of a point. `guess` is where it is in the layout that the caller knows.
    #[must_use]
    pub fn value(
        &self,
        values: &[Option<Value>],
        guess: usize,
        (name, aggregate): (&str, Aggregate),
    ) -> Option<Value> {
        let is_wanted = |column: &Column| column.name == name && column.aggregate == aggregate;
        let position = match self.columns.get(guess) {
            Some(column) if is_wanted(column) => guess,
            _ => self.columns.iter().position(is_wanted)?,
        };
        *values.get(position)?
    }

    /// The values of a point of another layout in this one. A column that the other one does not have, or
    /// has as another kind of number, has no value.
    #[must_use]
    pub fn translate(&self, from: &Self, values: &[Option<Value>]) -> Vec<Option<Value>> {
        let columns = self.columns.iter().enumerate();
        let value = |(guess, column): (usize, &Column)| {
            let found = from.value(values, guess, (&column.name, column.aggregate))?;
            // The bits of another kind of number would be read as a number of this one.
            (found.number() == column.number).then_some(found)
        };
        columns.map(value).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn whole(number: u64) -> Option<Value> {
        Some(Value::Whole(number))
    }

    #[test]
    fn values_of_another_layout_are_found_by_name_and_aggregate() {
        let old = Layout::new([
            ("a", Aggregate::Sum, Number::Whole),
            ("b", Aggregate::Minimum, Number::Whole),
            ("b", Aggregate::Maximum, Number::Whole),
        ]);
        let new = Layout::new([
            ("b", Aggregate::Maximum, Number::Whole),
            ("b", Aggregate::Minimum, Number::Whole),
            ("c", Aggregate::Sum, Number::Whole),
            ("a", Aggregate::Sum, Number::Whole),
        ]);
        let values = [whole(1), whole(2), whole(3)];
        assert_eq!(new.translate(&old, &values), [whole(3), whole(2), None, whole(1)]);
        let text = serde_json::to_string(&old).unwrap();
        assert_eq!(serde_json::from_str::<Layout>(&text).unwrap(), old);
    }
    #[test]
    fn values_become_one_by_their_aggregate() {
        use Aggregate::{Count, Latest, Maximum, Minimum, Sum};
        let whole = [Sum, Count, Latest, Minimum, Maximum]
            .map(|aggregate| aggregate.together(Value::Whole(7), Value::Whole(3)));
        assert_eq!(whole, [10, 10, 3, 3, 7].map(Value::Whole));
        let real = [Sum, Latest, Minimum, Maximum]
            .map(|aggregate| aggregate.together(Value::Real(0.5), Value::Real(2.0)));
        assert_eq!(real, [2.5, 2.0, 0.5, 2.0].map(Value::Real));
        assert_eq!(Sum.together(Value::Whole(u64::MAX), Value::Whole(1)), Value::Whole(u64::MAX));
        assert_eq!(Sum.together(Value::Real(0.5), Value::Whole(1)), Value::Whole(1), "another kind");
    }

    #[test]
    fn a_gauge_becomes_its_sum_count_least_and_greatest_and_a_counter_stays_one() {
        let layout = Layout::new([
            ("reads", Aggregate::Sum, Number::Whole),
            ("queue", Aggregate::Latest, Number::Real),
        ]);
        let rolled = layout.rolled_up();
        let mut values = layout.roll(&[whole(5), Some(Value::Real(2.0))]);
        rolled.add(&mut values, &layout.roll(&[None, Some(Value::Real(6.0))]));
        rolled.add(&mut values, &layout.roll(&[whole(1), None]));
        let real = |number| Some(Value::Real(number));
        assert_eq!(values, [whole(6), real(8.0), whole(2), real(2.0), real(6.0)]);
        let names: Vec<_> = rolled.columns().iter().map(|column| (&*column.name, column.aggregate)).collect();
        assert_eq!(names[1..3], [("queue", Aggregate::Sum), ("queue", Aggregate::Count)]);
        assert_eq!(rolled.rolled_up(), rolled, "once");
        // A value of another kind than its column is none.
        rolled.add(&mut values, &[real(1.0), whole(1), None, None, None]);
        assert_eq!(values[..2], [whole(6), real(8.0)]);
    }
}
