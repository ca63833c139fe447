//! What a volume carried minute by minute: metrics of AWS/EBS and AWS/RDS as `aws cloudwatch get-metric-data` and
//! `get-metric-statistics` print them, as metric streams deliver them, or as the console exports them (CSV).
//!
//! [`json`] and [`table`] (with [`numbers`]) read files into [`Series`]; [`metric`] says which statistic and unit each needs, [`values`] puts the
//! series of a volume together, and [`periods`] finds how long their intervals are. [`loads`] is what `size` needs of them,
//! [`minutes`] what the doctor needs.

mod json;
mod loads;
mod metric;
mod minutes;
mod numbers;
mod pages;
mod periods;
mod statistic;
mod table;
#[cfg(test)]
mod tests;
mod values;

use std::path::{Path, PathBuf};

use metric::Label;
use pages::Page;
use statistic::{Given, Statistic, Unit};

use super::Input;
use super::record_error::{RecordedError, Unusable, WrongMetrics};
pub(super) use loads::{NoLoads, loads};
pub(super) use minutes::{Minutes, read};

/// The figures of a file.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Figures {
    series: Vec<Series>,
    pages: Vec<Page>,
    /// What has to be known of them, for people.
    notes: Vec<String>,
}

/// Values of a metric, from one place of a file.
#[derive(Debug, Clone, PartialEq)]
struct Series {
    place: Place,
    label: Label,
    /// Seconds of a period, where the file says it.
    period: Option<i64>,
    /// By the start of the period, s since 1970.
    points: Vec<(i64, Given)>,
}

/// Where values are, for people.
#[derive(Debug, Clone, PartialEq)]
struct Place {
    path: PathBuf,
    /// Id or column, and the label.
    words: String,
}

/// What a file says of a metric beside its label, in the file's words.
#[derive(Debug, Default)]
struct Declared {
    statistic: Option<String>,
    unit: Option<String>,
    period: Option<String>,
}

impl Place {
    fn new(path: &Path, id: Option<&str>, label: Option<&str>) -> Self {
        let quoted = label.map(|label| format!("'{label}'"));
        let words: Vec<String> = id.map(str::to_owned).into_iter().chain(quoted).collect();
        Self { path: path.to_owned(), words: words.join(" ") }
    }

    /// The place in words that follow a value.
    fn said(&self) -> String {
        format!("{} in {}", self.words, self.path.display())
    }
}

impl Series {
    /// A series of statistics, in the unit of its metric.
    fn new(
        place: Place,
        label: Label,
        declared: Declared,
        mut points: Vec<(i64, Given)>,
    ) -> Result<Self, RecordedError> {
        let name = label.metric.name;
        let refuse = |cause| RecordedError::Metrics { path: place.path.clone(), cause };
        if let Some(unit) = declared.unit.or_else(|| label.unit.clone()) {
            let scale = Unit::named(&unit).and_then(|unit| label.metric.scale(unit)).ok_or_else(|| {
                let expected = label.metric.unit().name();
                refuse(WrongMetrics::Unit { metric: name, found: unit, expected })
            })?;
            points.iter_mut().for_each(|(_, given)| given.scale(scale));
        }
        let period = match declared.period {
            Some(text) => {
                Some(seconds(&text).ok_or(refuse(WrongMetrics::Period { metric: name, found: text }))?)
            }
            None => label.period,
        };
        Ok(Self { place, label, period, points })
    }

    /// A series of one statistic: that which the file names, or the label.
    fn of_values(
        place: Place,
        label: Label,
        declared: Declared,
        values: Vec<(i64, f64)>,
    ) -> Result<Self, RecordedError> {
        let words = declared.statistic.as_deref().map(str::trim).filter(|word| !word.is_empty());
        let (statistic, other) = match words {
            Some(word) => (Statistic::named(word), Some(word.to_owned())),
            None => {
                (label.statistic.filter(|_| label.other_statistic.is_none()), label.other_statistic.clone())
            }
        };
        let given = |value: f64| match (statistic, &other) {
            (None, Some(other)) => Given::of_others(vec![other.clone()]),
            (statistic, _) => Given::one(statistic, value),
        };
        let points = values.into_iter().map(|(time, value)| (time, given(value))).collect();
        Self::new(place, label, declared, points)
    }

    /// Times of its values in their order, each once.
    fn times(&self) -> Vec<i64> {
        let mut times: Vec<i64> = self.points.iter().map(|(time, _)| *time).collect();
        times.sort_unstable();
        times.dedup();
        times
    }
}

impl Figures {
    /// Adds a record of a metric stream to the series that it belongs to.
    fn add_streamed(&mut self, series: Series) {
        let same = |known: &&mut Series| {
            (known.label.metric, &known.label.volume) == (series.label.metric, &series.label.volume)
        };
        match self.series.iter_mut().find(same) {
            Some(known) => known.points.extend(series.points),
            None => self.series.push(series),
        }
    }
}

/// Seconds that a period's words come to, such as `300`, `5 minutes` and `1h`.
fn seconds(text: &str) -> Option<i64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: i64 = text[..end].parse().ok()?;
    let factor = match text[end..].trim().to_ascii_lowercase().as_str() {
        "" | "s" | "sec" | "second" | "seconds" | ".0" => 1,
        "m" | "min" | "minute" | "minutes" => 60,
        "h" | "hour" | "hours" => 3_600,
        "d" | "day" | "days" => 86_400,
        _ => return None,
    };
    number.checked_mul(factor).filter(|seconds| *seconds > 0)
}

/// A text without its byte order mark, and without blanks before it.
fn bare(text: &str) -> &str {
    text.trim_start_matches('\u{feff}').trim_start()
}

/// Why an answer of the AWS CLI, in another form than JSON or without the names of its metrics, is not read; None of another text.
pub(super) fn other_form(text: &str) -> Option<Unusable> {
    let text = bare(text);
    let lines = || text.lines().take(MOST_BEFORE_FORM);
    let begins = |words: [&str; 2]| lines().any(|line| words.iter().any(|word| line.starts_with(word)));
    if begins(["METRICDATARESULTS\t", "DATAPOINTS\t"]) {
        return Some(Unusable::OtherOutput("text"));
    }
    if begins(["MetricDataResults:", "Datapoints:"]) {
        return Some(Unusable::OtherOutput("yaml"));
    }
    let heads = ["GetMetricData", "GetMetricStatistics"];
    if lines().any(|line| line.starts_with('|') && heads.iter().any(|head| line.contains(head))) {
        return Some(Unusable::OtherOutput("table"));
    }
    let has = |word: &str| text.contains(word);
    let is_points = json::is_json(text)
        && has("\"Timestamp\"")
        && ["\"Sum\"", "\"Average\"", "\"Maximum\"", "\"Minimum\""].into_iter().any(has);
    is_points.then_some(Unusable::NoMetricName)
}

/// Lines of an answer before that by which its form is known.
const MOST_BEFORE_FORM: usize = 20;

/// Whether a text is meant to hold metrics, damaged or not.
pub(super) fn is_meant(text: &str) -> bool {
    let text = bare(text);
    json::is_meant(text) || (!json::is_json(text) && table::is_meant(text) && other_form(text).is_none())
}

/// Reads the figures of a file; an error says what is wrong with it, and where.
pub(super) fn figures(input: &Input) -> Result<Figures, RecordedError> {
    // Blank lines before a table count as lines.
    let text = input.text.trim_start_matches('\u{feff}');
    if json::is_json(bare(text)) { json::read(input, bare(text)) } else { table::read(input, text) }
}
