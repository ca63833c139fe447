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

    /// The values of a point of another layout in this one. A column that the other one does not have has no value.
    #[must_use]
    pub fn translate(&self, from: &Self, values: &[Option<Value>]) -> Vec<Option<Value>> {
        let columns = self.columns.iter().enumerate();
        columns.map(|(guess, column)| from.value(values, guess, (&column.name, column.aggregate))).collect()
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
}
