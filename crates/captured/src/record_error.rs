//! Why files tell no load.

use std::path::PathBuf;
use std::time::Duration;

use crate::Elsewhere;

/// Files that tell no load.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RecordedError {
    /// It is of no known kind.
    #[error("{} is no record of a volume's load", path.display())]
    Unknown {
        /// The file.
        path: PathBuf,
    },
    /// It lacks what is needed.
    #[error("{} lacks {what}", path.display())]
    Lacks {
        /// The file.
        path: PathBuf,
        /// What.
        what: MissingFigures,
    },
    /// It is damaged.
    #[error("{} is damaged: {cause}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        cause: RecordDamage,
    },
    /// Metrics of CloudWatch that are not those which are needed.
    #[error("{}: {cause}", path.display())]
    Metrics {
        /// The file, or the first of several.
        path: PathBuf,
        /// What is wrong.
        cause: WrongMetrics,
    },
    /// Output of a known program that tells no load.
    #[error("{} {why}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What it is.
        why: Unusable,
    },
    /// Two different loads of one device at one time.
    #[error(
        "{device} has two loads at one time ({at}): {ios:.1} and {other_ios:.1} operations a second",
        at = instant(*.at_s)
    )]
    Overlap {
        /// The device.
        device: String,
        /// The begin of the second one, s: since 1970, or since the record's own begin.
        at_s: f64,
        /// Operations a second of the first one.
        ios: f64,
        /// Those of the second one.
        other_ios: f64,
    },
    /// Files of different tools.
    #[error("{} is of {tool}, and the files before it are of {other}", path.display())]
    Mixed {
        /// The file.
        path: PathBuf,
        /// Its tool.
        tool: &'static str,
        /// That of the others.
        other: &'static str,
    },
}

/// A time for people: of clocks that begin elsewhere than in 1970 the seconds.
fn instant(at_s: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "float casts saturate")]
    let time = jiff::Timestamp::from_second(at_s as i64).ok();
    let is_date = at_s > 366.0 * 86_400.0;
    time.filter(|_| is_date).map_or_else(|| format!("after {at_s} s"), |time| format!("at {time}"))
}

/// Figures that a record needs and lacks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MissingFigures {
    /// Metrics of CloudWatch, by their names there.
    #[error("the metrics {}", .0.join(", "))]
    Metrics(Vec<&'static str>),
    /// The same of one of several volumes.
    #[error("the metrics {} of {volume}", .metrics.join(", "))]
    VolumeMetrics {
        /// The volume.
        volume: String,
        /// The metrics.
        metrics: Vec<&'static str>,
    },
    /// A report of iostat after the first.
    #[error("a second report: the first is the mean since the machine's start")]
    SecondReport,
    /// How long an interval of iostat is.
    #[error("the times of its reports")]
    ReportTimes,
    /// Two readings of the kernel's counters.
    #[error("two looks at the counters with their times")]
    TimedCounters,
}

impl MissingFigures {
    /// Where to get it, in words that follow a colon.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Metrics(_) | Self::VolumeMetrics { .. } => {
                "ask CloudWatch for them with the statistic Sum and --period 60 (docs/size.md has the whole command); several files \
                 may be given"
            }
            Self::SecondReport => "`iostat -x -t 10 360` prints one every 10 s for an hour",
            Self::ReportTimes => "run `iostat -x -t 10`, or give --interval with the seconds between them",
            Self::TimedCounters => "pt-stalk writes them as lines `TS 1700000000.5`",
        }
    }
}

/// Why output of sysstat tells no load. The words follow the name of the file.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Unusable {
    /// iostat without -x.
    #[error("is iostat's output without -x: it has no latency and no size of reads and writes")]
    NotExtended,
    /// sar, sadf or another program of sysstat without disks.
    #[error("is output of sysstat without its table of disks")]
    NoDisks,
    /// A form of sadf that is not read, by its option.
    #[error("is output of `sadf {0}`, which is not read")]
    OtherForm(&'static str),
    /// An answer of the AWS CLI in another form than JSON, by its name.
    #[error("is CloudWatch's answer as {0}, which is not read")]
    OtherOutput(&'static str),
    /// A text of another known kind.
    #[error("is {0}")]
    Elsewhere(Elsewhere),
    /// Points of `get-metric-statistics` without the label of the answer.
    #[error("has points of CloudWatch without the name of their metric")]
    NoMetricName,
    /// A time of a report that is not understood, as it was printed.
    #[error("has a time of a report that is not understood: '{0}'")]
    UnreadTime(String),
    /// Two reports whose distance is no interval of the others.
    #[error("has reports of '{first}' and '{second}', which are {} apart{}", span(*apart_s), others(*usual_s))]
    FarInterval {
        /// The time of the first report, as it was printed.
        first: String,
        /// That of the second.
        second: String,
        /// The distance, s.
        apart_s: f64,
        /// That of most reports, s; None where there are no others.
        usual_s: Option<f64>,
    },
    /// An interval that was given and is not that of the times.
    #[error("has reports that are {} apart, not {}", span(*usual_s), span(*given_s))]
    OtherInterval {
        /// The interval that was given, s.
        given_s: f64,
        /// That of most reports, s.
        usual_s: f64,
    },
}

/// That most reports have another distance.
fn others(usual_s: Option<f64>) -> String {
    usual_s.map_or(String::new(), |usual_s| format!(", and most others {}", span(usual_s)))
}

/// A time as people write it; one that goes back has a sign.
fn span(seconds: f64) -> String {
    let sign = if seconds < 0.0 { "-" } else { "" };
    let length = Duration::try_from_secs_f64(seconds.abs());
    length.map_or_else(|_| format!("{seconds} s"), |length| format!("{sign}{}", ebbtide_text::span(length)))
}

impl Unusable {
    /// What to do, in words that follow a colon.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::NotExtended => "record it with -x and -t: `iostat -x -t 10 > iostat.txt`".to_owned(),
            Self::NoDisks => "`sar -d` and `sadf -d FILE -- -d` print it, and `iostat -x -t 10`".to_owned(),
            Self::OtherForm(_) => "use `sadf -d FILE -- -d`".to_owned(),
            Self::OtherOutput(_) => "ask for it with --output json".to_owned(),
            Self::Elsewhere(kind) => kind.hint().to_owned(),
            Self::NoMetricName => "keep the whole answer, without --query".to_owned(),
            Self::UnreadTime(_) => {
                "record it with LC_ALL=C, or give --interval with the seconds between the reports".to_owned()
            }
            Self::FarInterval { usual_s, .. } => {
                let interval = usual_s.map_or("10s".to_owned(), |usual_s| format!("{usual_s:.0}s"));
                format!(
                    "give --interval {interval} if each report is of that time; else give the parts as files of their own"
                )
            }
            Self::OtherInterval { usual_s, .. } => {
                format!("leave --interval out, or give --interval {usual_s:.0}s")
            }
        }
    }
}

/// What is wrong with a damaged record. Lines count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordDamage {
    /// JSON that cannot be read: the words of its parser, with the place.
    #[error("{0}")]
    Json(String),
    /// A CSV export without a heading.
    #[error("it has no line with the names of metrics such as VolumeReadOps")]
    NoMetricNames,
    /// A line that does not have what its place asks for.
    #[error("line {line}: expected {expected}, found '{found}'")]
    Line {
        /// The line.
        line: usize,
        /// What would be right.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// A row of pt-diskstats that is of several samples or devices.
    #[error(
        "line {line}: several samples or devices in one row: expected a row of each, as --group-by all prints them, \
         found '{found}'"
    )]
    Grouped {
        /// The line.
        line: usize,
        /// The row.
        found: String,
    },
}

impl RecordDamage {
    /// A line, by its place from 0.
    pub(super) fn at(place: usize, expected: &'static str, found: &str) -> Self {
        Self::Line { line: place + 1, expected, found: found.to_owned() }
    }
}

/// Figures of CloudWatch that are there, and are not those which are needed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WrongMetrics {
    /// Statistics that do not tell what is needed.
    #[error("{}", said_statistics(.0))]
    Statistics(Vec<WrongStatistic>),
    /// A unit that cannot be converted.
    #[error("{metric} has the unit '{found}', and has to have {expected}")]
    Unit {
        /// The metric.
        metric: &'static str,
        /// The unit that the file names.
        found: String,
        /// The unit in which AWS publishes the metric.
        expected: &'static str,
    },
    /// A period that is no time.
    #[error("the period '{found}' of {metric} is no time: expected seconds such as 60, or 5 minutes")]
    Period {
        /// The metric.
        metric: &'static str,
        /// The period that the file names.
        found: String,
    },
    /// Values that are not as far apart as their period is long.
    #[error(
        "{metric} has the period {period_s} s by the file's own words, and its values are {apart_s} s apart"
    )]
    Spacing {
        /// The metric.
        metric: &'static str,
        /// The period that the file names, s.
        period_s: i64,
        /// Least time between two values, s.
        apart_s: i64,
    },
    /// Metrics of one time that are of different periods.
    #[error(
        "{} has a period of {} s and {} of {} s, of the same volume and time",
        .metrics[0], .periods_s[0], .metrics[1], .periods_s[1]
    )]
    TwoPeriods {
        /// The metrics.
        metrics: [&'static str; 2],
        /// Their periods, s.
        periods_s: [i64; 2],
    },
    /// Two values of one metric and time: they are of two volumes, or of two statistics.
    #[error("two values of {metric} at {time}: {} and {}", .values[0], .values[1])]
    TwoValues {
        /// The metric.
        metric: &'static str,
        /// The time.
        time: String,
        /// The values, each with its label and file.
        values: [String; 2],
    },
    /// Metrics that are not of the same periods.
    #[error("the metrics are not of the same periods: at {time} there is {there}, and no {missing}")]
    Torn {
        /// The first period.
        time: String,
        /// The metric that is there.
        there: &'static str,
        /// The metric that is missing.
        missing: &'static str,
    },
}

/// Metrics with a statistic that does not tell what is needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongStatistic {
    /// The file that has them first.
    pub path: PathBuf,
    /// The metrics.
    pub metrics: Vec<&'static str>,
    /// The statistics that the file names.
    pub found: String,
    /// The statistics that tell it.
    pub needed: &'static str,
}

fn said_statistics(wrong: &[WrongStatistic]) -> String {
    let said = wrong.iter().map(|WrongStatistic { metrics, found, needed, .. }| {
        let has = if metrics.len() == 1 { "has" } else { "have" };
        format!("{} {has} the statistic {found}: needed is {needed}", metrics.join(", "))
    });
    said.collect::<Vec<_>>().join("; ")
}

impl WrongMetrics {
    /// The file that is wrong, where that is known of one alone.
    pub(super) fn path(&self) -> Option<&PathBuf> {
        match self {
            Self::Statistics(wrong) => wrong.first().map(|wrong| &wrong.path),
            _ => None,
        }
    }

    /// What to do, in words that follow a colon.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Statistics(_) => {
                "export or ask for operations, bytes and times with the statistic Sum (or Average with SampleCount), for \
                 VolumeQueueLength, BurstBalance and the metrics of RDS with Average"
            }
            Self::Unit { .. } => "ask without --unit: CloudWatch answers in the unit that it keeps",
            Self::Period { .. } => "the row Period of an export has seconds",
            Self::Spacing { .. } => {
                "export again with the period that the graph shows, or mend the row Period"
            }
            Self::TwoPeriods { .. } => "ask for all metrics with one period: --period 60",
            Self::TwoValues { .. } => {
                "put the volume's id into each label, as the query of docs/size.md does, or give the files of one volume at a time"
            }
            Self::Torn { .. } => "ask for all metrics of the same time with one period",
        }
    }
}
