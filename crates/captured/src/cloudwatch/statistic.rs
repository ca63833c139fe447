//! CloudWatch's statistics and units, as files name them.

/// A statistic from which a value can be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Statistic {
    Sum,
    Average,
    Minimum,
    Maximum,
    SampleCount,
}

/// All of them, with the names that files have for them, in lower case.
const STATISTICS: [(Statistic, &str, &[&str]); 5] = [
    (Statistic::Sum, "Sum", &["sum"]),
    (Statistic::Average, "Average", &["average", "avg", "mean"]),
    (Statistic::Minimum, "Minimum", &["minimum", "min"]),
    (Statistic::Maximum, "Maximum", &["maximum", "max"]),
    (Statistic::SampleCount, "SampleCount", &["samplecount", "sample_count"]),
];

impl Statistic {
    /// The statistic with a name.
    pub(super) fn named(text: &str) -> Option<Self> {
        let lower: String = text.chars().filter(|c| *c != ' ').collect::<String>().to_ascii_lowercase();
        STATISTICS.iter().find(|(_, _, names)| names.contains(&lower.as_str())).map(|(known, ..)| *known)
    }

    /// The statistic with exactly AWS's name.
    pub(super) fn exactly(word: &str) -> Option<Self> {
        STATISTICS.iter().find(|(_, name, _)| *name == word).map(|(known, ..)| *known)
    }

    /// Whether a word is a percentile such as `p99.9`.
    pub(super) fn is_percentile(word: &str) -> bool {
        let rank =
            word.strip_prefix(['p', 'P']).filter(|rank| rank.starts_with(|c: char| c.is_ascii_digit()));
        rank.and_then(|rank| rank.parse::<f64>().ok()).is_some_and(|rank| rank >= 10.0)
    }

    /// Whether a word names a statistic that tells neither sum nor mean, such as `p99` and `TM(10%:90%)`.
    pub(super) fn is_other(word: &str) -> bool {
        let kinds = ["tm", "wm", "tc", "ts", "pr", "p"];
        let lower = word.to_ascii_lowercase();
        let ranked = kinds
            .iter()
            .filter_map(|kind| lower.strip_prefix(kind))
            .any(|rank| rank.starts_with(|c: char| c.is_ascii_digit()) && rank.parse::<f64>().is_ok());
        ranked || ["TM", "WM", "TC", "TS", "PR", "IQM"].contains(&word)
    }

    /// The name that AWS has for it.
    pub(super) const fn name(self) -> &'static str {
        STATISTICS[self as usize].1
    }
}

/// What is given of one period of a metric.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Given {
    /// By [`Statistic`].
    values: [Option<f64>; STATISTICS.len()],
    /// The value of which no statistic is named.
    pub(super) unnamed: Option<f64>,
    /// Statistics that tell neither sum nor mean, by their names.
    pub(super) others: Vec<String>,
}

impl Given {
    /// One value of a statistic.
    pub(super) fn one(statistic: Option<Statistic>, value: f64) -> Self {
        let mut given = Self::default();
        match statistic {
            Some(statistic) => given.values[statistic as usize] = Some(value),
            None => given.unnamed = Some(value),
        }
        given
    }

    /// Statistics that tell neither sum nor mean alone.
    pub(super) fn of_others(others: Vec<String>) -> Self {
        Self { others, ..Self::default() }
    }

    pub(super) const fn get(&self, statistic: Statistic) -> Option<f64> {
        self.values[statistic as usize]
    }

    pub(super) const fn set(&mut self, statistic: Statistic, value: Option<f64>) {
        self.values[statistic as usize] = value;
    }

    /// Multiplies all but the number of samples.
    pub(super) fn scale(&mut self, factor: f64) {
        for (place, value) in self.values.iter_mut().enumerate() {
            if place != Statistic::SampleCount as usize {
                *value = value.map(|value| value * factor);
            }
        }
        self.unnamed = self.unnamed.map(|value| value * factor);
    }

    /// Its values, each with the place that it is kept in.
    pub(super) fn slots(&self) -> impl Iterator<Item = (Option<Statistic>, f64)> + '_ {
        let named = STATISTICS.iter().filter_map(|(known, ..)| Some((Some(*known), self.get(*known)?)));
        named.chain(self.unnamed.map(|value| (None, value)))
    }

    /// Takes over what another has.
    pub(super) fn add(&mut self, other: &Self) {
        for (statistic, value) in other.slots() {
            match statistic {
                Some(statistic) => self.set(statistic, Some(value)),
                None => self.unnamed = Some(value),
            }
        }
        self.others.extend(
            other.others.iter().filter(|name| !self.others.contains(name)).cloned().collect::<Vec<_>>(),
        );
    }

    /// The value in one place.
    pub(super) const fn slot(&self, statistic: Option<Statistic>) -> Option<f64> {
        match statistic {
            Some(statistic) => self.get(statistic),
            None => self.unnamed,
        }
    }

    /// The names of the statistics, for people.
    pub(super) fn names(&self) -> Vec<String> {
        let named = self.slots().filter_map(|(statistic, _)| Some(statistic?.name().to_owned()));
        named.chain(self.others.iter().cloned()).collect()
    }
}

/// CloudWatch's units that figures of a volume may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Unitless,
    Count,
    Bytes,
    Bits,
    Percent,
    Seconds,
    Milliseconds,
    Microseconds,
    CountPerSecond,
    BytesPerSecond,
    BitsPerSecond,
}

const UNITS: [(Unit, &str); 11] = [
    (Unit::Unitless, "None"),
    (Unit::Count, "Count"),
    (Unit::Bytes, "Bytes"),
    (Unit::Bits, "Bits"),
    (Unit::Percent, "Percent"),
    (Unit::Seconds, "Seconds"),
    (Unit::Milliseconds, "Milliseconds"),
    (Unit::Microseconds, "Microseconds"),
    (Unit::CountPerSecond, "Count/Second"),
    (Unit::BytesPerSecond, "Bytes/Second"),
    (Unit::BitsPerSecond, "Bits/Second"),
];

impl Unit {
    /// The unit with CloudWatch's name. Kilobytes and larger ones are none: AWS does not say whether they are of 1,000 or 1,024.
    pub(super) fn named(text: &str) -> Option<Self> {
        UNITS.iter().find(|(_, name)| name.eq_ignore_ascii_case(text.trim())).map(|(unit, _)| *unit)
    }

    /// The name that AWS has for it.
    pub(super) const fn name(self) -> &'static str {
        UNITS[self as usize].1
    }

    /// Whether a word of a label is a unit that [`Self::named`] does not know.
    pub(super) fn is_like(word: &str) -> bool {
        let lower = word.to_ascii_lowercase();
        let lower = lower.split('/').next().unwrap_or(&lower);
        let long = ["kilo", "mega", "giga", "tera", "kibi", "mebi", "gibi"]
            .iter()
            .filter_map(|prefix| lower.strip_prefix(prefix))
            .any(|rest| ["bytes", "byte", "bits", "bit"].contains(&rest));
        let short = ["kb", "mb", "gb", "tb", "kib", "mib", "gib", "tib", "ms", "us", "iops"];
        long || short.contains(&lower) || word.ends_with("/s") || word.ends_with("/sec")
    }

    /// By what a value in this unit is multiplied to be in another; None where they measure different things.
    pub(super) fn times(self, other: Self) -> Option<f64> {
        let seconds = |unit: Self| match unit {
            Self::Seconds => Some(1e6),
            Self::Milliseconds => Some(1e3),
            Self::Microseconds => Some(1.0),
            _ => None,
        };
        match (self, other) {
            (own, other) if own == other => Some(1.0),
            (Self::Bits, Self::Bytes) | (Self::BitsPerSecond, Self::BytesPerSecond) => Some(0.125),
            (own, other) => Some(seconds(own)? / seconds(other)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_and_units_are_in_the_order_in_which_they_are_kept() {
        for (place, (statistic, ..)) in STATISTICS.iter().enumerate() {
            assert_eq!(*statistic as usize, place);
        }
        for (place, (unit, _)) in UNITS.iter().enumerate() {
            assert_eq!(*unit as usize, place);
        }
    }

    #[test]
    fn times_convert_exactly_and_other_units_do_not() {
        assert_eq!(Unit::Milliseconds.times(Unit::Seconds), Some(1e-3));
        assert_eq!(Unit::Seconds.times(Unit::Milliseconds), Some(1e3));
        assert_eq!(Unit::Bits.times(Unit::Bytes), Some(0.125));
        for (unit, own) in
            [(Unit::CountPerSecond, Unit::Count), (Unit::Percent, Unit::Count), (Unit::Seconds, Unit::Bytes)]
        {
            assert_eq!(unit.times(own), None, "{unit:?}");
        }
        for text in ["Kilobytes", "Megabytes/Second", "KB"] {
            assert_eq!(Unit::named(text), None, "{text}");
        }
    }
}
