//! What a metric is, and how its value follows from what a server counts.

use std::collections::BTreeMap;

/// One row of the table [`METRICS`](crate::METRICS).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metric {
    /// Name of the field of [`Rates`](crate::Rates), of the column in SQLite, and of the key in JSON.
    pub name: &'static str,
    /// What is counted.
    pub unit: Unit,
    /// How the value relates to time.
    pub kind: MetricKind,
    /// What it means, as a sentence.
    pub meaning: &'static str,
    /// How to compute it from what a server counts.
    pub formula: Formula,
}

/// What a metric counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Pages of InnoDB.
    Pages,
    /// Events: statements, waits, writes, syncs.
    Events,
    /// Threads: time that threads spent over the time that passed.
    Threads,
    /// Microseconds.
    Microseconds,
}

/// How a metric relates to time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// The server counts up. The value is the growth a second.
    Counter,
    /// The value at the end of the interval.
    Gauge,
    /// Growth over the growth of something else, such as the mean time of a sync.
    Mean,
}

/// A number that a server keeps, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counter {
    /// A variable of SHOW GLOBAL STATUS, in lower case.
    Status(&'static str),
    /// `COUNT` of a row of INFORMATION_SCHEMA.INNODB_METRICS.
    InnodbMetric(&'static str),
    /// A line of SHOW ENGINE INNODB STATUS that ends with a number; its beginning, as the server spells it.
    EngineStatus(&'static str),
    /// A column of an instrument in performance_schema.file_summary_by_event_name.
    FileIo(&'static str, FileColumn),
    /// Picoseconds that threads waited for an instrument of
    /// performance_schema.events_waits_summary_global_by_event_name.
    Wait(&'static str),
    /// Bytes of all files of SHOW BINARY LOGS.
    BinaryLogs,
}

/// A column of performance_schema.file_summary_by_event_name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileColumn {
    /// Picoseconds that threads spent in I/O (`SUM_TIMER_WAIT`).
    Time,
    /// Operations that neither read nor write (`COUNT_MISC`): syncs, and few openings.
    MiscCount,
    /// Picoseconds of these (`SUM_TIMER_MISC`).
    MiscTime,
    /// Bytes written (`SUM_NUMBER_OF_BYTES_WRITE`).
    BytesWritten,
}

/// Whose server it is, as far as counters differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maker {
    /// MariaDB.
    MariaDb,
    /// MySQL, or Percona Server, which keeps MySQL's counters.
    MySql,
}

/// Servers that keep a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Servers {
    /// Whose; None: everyone's.
    pub maker: Option<Maker>,
    /// The first version with it; None: every version that is read here.
    pub since: Option<(u32, u32, u32)>,
    /// The first version without it; None: no version is known to lack it.
    pub until: Option<(u32, u32, u32)>,
}

impl Servers {
    /// All of them.
    pub const EVERY: Self = Self { maker: None, since: None, until: None };
    /// MariaDB.
    pub const MARIADB: Self = Self { maker: Some(Maker::MariaDb), ..Self::EVERY };
    /// MySQL and Percona Server.
    pub const MYSQL: Self = Self { maker: Some(Maker::MySql), ..Self::EVERY };

    /// Whether a maker's servers are asked for the counter. The version does not decide: a server does not answer to
    /// names that it does not have.
    #[must_use]
    pub fn include(self, maker: Maker) -> bool {
        self.maker.is_none_or(|included| included == maker)
    }
}

/// One way to read a value: the sum of the counters that the server has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source(pub Servers, pub &'static [Counter]);

/// How a metric is computed. It is None where the server does not have a counter that is needed. Where there are several
/// sources, the first that the server has is taken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Formula {
    /// Growth a second.
    Rate(&'static [Source]),
    /// The value at the end.
    Last(&'static [Source]),
    /// Growth of the first over growth of the second; None without growth of the second.
    Mean(&'static [Source], &'static [Source]),
    /// A value over a number.
    Over(&'static Formula, f64),
    /// The sum of all.
    Sum(&'static [Formula]),
    /// The first less the second, and not below 0: the server's counters are not read all at once.
    Less(&'static Formula, &'static Formula),
    /// The value less a number, and not below 0.
    LessNumber(&'static Formula, f64),
    /// The first that is known.
    FirstOf(&'static [Formula]),
}

impl Formula {
    /// Calls `see` with every source that the formula may read.
    pub fn each_source(&self, see: &mut impl FnMut(&'static Source)) {
        match *self {
            Self::Rate(sources) | Self::Last(sources) => sources.iter().for_each(see),
            Self::Mean(total, count) => total.iter().chain(count).for_each(see),
            Self::Over(inner, _) | Self::LessNumber(inner, _) => inner.each_source(see),
            Self::Less(all, part) => {
                all.each_source(see);
                part.each_source(see);
            }
            Self::Sum(parts) | Self::FirstOf(parts) => {
                for part in parts {
                    part.each_source(see);
                }
            }
        }
    }
}

/// The counters of a server at one moment. A counter that the server does not have is not in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Readings(BTreeMap<Counter, u64>);

/// The largest value of a status variable that is a number. A server that counts below 0, as
/// `Innodb_buffer_pool_pages_misc` is counted of others that are read one after the other, prints 2^64 less a few.
pub(crate) const LARGEST_STATUS: u64 = u64::MAX >> 1;

impl Readings {
    /// Notes a counter; a later value replaces an earlier one. A status variable below 0, which servers print near 2^64,
    /// is no number.
    pub fn insert(&mut self, counter: Counter, value: u64) {
        if !matches!(counter, Counter::Status(_)) || value <= LARGEST_STATUS {
            self.0.insert(counter, value);
        }
    }

    /// The value of a counter.
    #[must_use]
    pub fn get(&self, counter: Counter) -> Option<u64> {
        self.0.get(&counter).copied()
    }

    /// The sum of those counters of a source that are known; None if none is.
    fn sum(&self, source: &Source) -> Option<u64> {
        let mut known = source.1.iter().filter_map(|counter| self.get(*counter)).peekable();
        known.peek()?;
        Some(known.sum())
    }
}

impl FromIterator<(Counter, u64)> for Readings {
    fn from_iter<I: IntoIterator<Item = (Counter, u64)>>(readings: I) -> Self {
        let mut all = Self::default();
        readings.into_iter().for_each(|(counter, value)| all.insert(counter, value));
        all
    }
}

/// Two readings of one server, and the time between them.
#[derive(Debug, Clone, Copy)]
pub struct Interval<'a> {
    /// The readings at its beginning.
    pub before: &'a Readings,
    /// The readings at its end.
    pub after: &'a Readings,
    /// Its length, s; nothing is a rate where it is 0.
    pub seconds: f64,
}

impl Interval<'_> {
    /// The value of a formula. A counter that went back, because the server was started again or its status flushed, is
    /// not known.
    #[must_use]
    pub fn value(&self, formula: &Formula) -> Option<f64> {
        match *formula {
            Formula::Rate(sources) => (self.seconds > 0.0).then_some(self.grown(sources)? / self.seconds),
            Formula::Last(sources) => {
                sources.iter().find_map(|source| self.after.sum(source)).map(|value| value as f64)
            }
            Formula::Mean(total, count) => {
                let (total, count) = (self.grown(total)?, self.grown(count)?);
                (count > 0.0).then_some(total / count)
            }
            Formula::Over(inner, number) => self.value(inner).map(|value| value / number),
            Formula::Sum(parts) => parts.iter().map(|part| self.value(part)).sum(),
            Formula::Less(all, part) => Some((self.value(all)? - self.value(part)?).max(0.0)),
            Formula::LessNumber(inner, number) => self.value(inner).map(|value| (value - number).max(0.0)),
            Formula::FirstOf(ways) => ways.iter().find_map(|way| self.value(way)),
        }
    }

    fn grown(&self, sources: &[Source]) -> Option<f64> {
        let of = |source: &Source| Some((self.before.sum(source)?, self.after.sum(source)?));
        let (before, after) = sources.iter().find_map(of)?;
        after.checked_sub(before).map(|grown| grown as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_variable_below_zero_which_is_printed_near_two_to_the_64_is_no_number() {
        let pages = Counter::Status("innodb_buffer_pool_pages_dirty");
        let readings = |value| Readings::from_iter([(pages, value)]);
        assert_eq!(readings(u64::MAX - 1).get(pages), None);
        assert_eq!(readings(LARGEST_STATUS).get(pages), Some(LARGEST_STATUS));
        // Times of the performance schema are picoseconds, and pass 2^63 after 107 days.
        let time = Counter::InnodbMetric("a_sum_of_times");
        assert_eq!(Readings::from_iter([(time, u64::MAX - 1)]).get(time), Some(u64::MAX - 1));
    }
}
