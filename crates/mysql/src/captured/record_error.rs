//! Why files tell no load.

use std::path::PathBuf;

/// Files that tell no load.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
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

/// Figures that a record needs and lacks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MissingFigures {
    /// Metrics of CloudWatch, by their names there.
    #[error("the metrics {}", .0.join(", "))]
    Metrics(Vec<&'static str>),
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
            Self::Metrics(_) => {
                "ask CloudWatch for them with the statistic Sum and --period 60 (docs/size.md has the whole command); several files \
                 may be given"
            }
            Self::SecondReport => "`iostat -x -t 10 360` prints one every 10 s for an hour",
            Self::ReportTimes => "run `iostat -x -t 10`, or give --interval with the seconds between them",
            Self::TimedCounters => "pt-stalk writes them as lines `TS 1700000000.5`",
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
