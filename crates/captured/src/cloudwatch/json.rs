//! What CloudWatch answers in JSON: `get-metric-data` and `get-metric-statistics` as the AWS CLI prints them, and the records of
//! metric streams. Several documents may follow each other, as scripts write the pages of an answer.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::Unexpected;

use super::metric::{Label, volume};
use super::pages::{Page, PageResult};
use super::statistic::{Given, Statistic};
use super::{Declared, Figures, Place, Series};
use crate::Input;
use crate::record_error::{RecordDamage, RecordedError};

/// The words by which such texts are known: one set of them is there.
const HEADS: [&[&str]; 4] = [
    &["\"MetricDataResults\""],
    &["\"Datapoints\""],
    &["\"metric_name\"", "\"dimensions\"", "\"value\""],
    // The results alone: `--query MetricDataResults`.
    &["\"Id\"", "\"Timestamps\"", "\"Values\""],
];

/// The dimensions that name a volume, or the instance of RDS that has it.
const NAMING: [&str; 2] = ["VolumeId", "DBInstanceIdentifier"];

/// One document of either kind.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Document {
    #[serde(default)]
    metric_data_results: Option<Vec<Answered>>,
    /// The queries of the answer, where a script keeps both.
    #[serde(default)]
    metric_data_queries: Vec<Query>,
    #[serde(default)]
    messages: Vec<Message>,
    #[serde(default)]
    next_token: Option<String>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    label: Option<String>,
    #[serde(default)]
    timestamps: Option<Vec<Second>>,
    #[serde(default)]
    values: Option<Vec<f64>>,
    #[serde(default)]
    status_code: Option<String>,
    #[serde(default)]
    datapoints: Option<Vec<Datapoint>>,
    #[serde(default, rename = "metric_name")]
    streamed_name: Option<String>,
    #[serde(default, rename = "dimensions")]
    streamed_dimensions: BTreeMap<String, String>,
    #[serde(default, rename = "timestamp")]
    streamed_ms: Option<i64>,
    #[serde(default, rename = "value")]
    streamed_value: Option<StreamedValue>,
    #[serde(default, rename = "unit")]
    streamed_unit: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answered {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    label: Option<String>,
    timestamps: Vec<Second>,
    values: Vec<f64>,
    #[serde(default)]
    status_code: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Query {
    id: String,
    #[serde(default)]
    metric_stat: Option<MetricStat>,
    #[serde(default)]
    expression: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct MetricStat {
    metric: QueriedMetric,
    period: i64,
    stat: String,
    #[serde(default)]
    unit: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct QueriedMetric {
    metric_name: String,
    #[serde(default)]
    dimensions: Vec<Dimension>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Dimension {
    name: String,
    value: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Message {
    #[serde(default)]
    code: String,
    #[serde(default)]
    value: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Datapoint {
    timestamp: Second,
    sum: Option<f64>,
    average: Option<f64>,
    minimum: Option<f64>,
    maximum: Option<f64>,
    sample_count: Option<f64>,
    #[serde(default)]
    extended_statistics: BTreeMap<String, f64>,
    unit: Option<String>,
}

#[derive(Debug, Deserialize)]
struct StreamedValue {
    sum: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
    count: Option<f64>,
}

/// A time as the AWS CLI prints it, s since 1970: ISO 8601 (version 2), or a number of seconds, whole or with a fraction, which
/// is cut off (version 1, with services that answer in JSON or CBOR).
#[derive(Debug, Clone, Copy, PartialEq)]
struct Second(i64);

impl<'de> Deserialize<'de> for Second {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SecondVisitor)
    }
}

struct SecondVisitor;

impl serde::de::Visitor<'_> for SecondVisitor {
    type Value = Second;

    fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("a time such as 2026-11-22T10:00:00Z, or seconds since 1970 such as 1795341600")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Second, E> {
        let time = text.parse::<jiff::Timestamp>();
        time.map(|time| Second(time.as_second())).map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
    }

    fn visit_i64<E: serde::de::Error>(self, seconds: i64) -> Result<Second, E> {
        let time = jiff::Timestamp::from_second(seconds);
        time.map(|_| Second(seconds)).map_err(|_| E::invalid_value(Unexpected::Signed(seconds), &self))
    }

    fn visit_u64<E: serde::de::Error>(self, seconds: u64) -> Result<Second, E> {
        let signed = i64::try_from(seconds);
        signed
            .map_err(|_| E::invalid_value(Unexpected::Unsigned(seconds), &self))
            .and_then(|signed| self.visit_i64(signed))
    }

    fn visit_f64<E: serde::de::Error>(self, seconds: f64) -> Result<Second, E> {
        #[expect(clippy::cast_possible_truncation, reason = "float casts saturate, and the range is checked")]
        self.visit_i64(seconds.floor() as i64)
    }
}

/// Whether a text is meant to hold such answers, damaged or not.
pub(super) fn is_meant(text: &str) -> bool {
    let has = |head: &&[&str]| head.iter().all(|word| text.contains(word));
    is_json(text) && HEADS.iter().any(has)
}

/// Whether a text is JSON and no CSV.
pub(super) fn is_json(text: &str) -> bool {
    text.starts_with(['{', '['])
}

/// Reads all documents of a file, whose text has no byte order mark.
pub(super) fn read(input: &Input, text: &str) -> Result<Figures, RecordedError> {
    let mut figures = Figures::default();
    let mut left_out = Vec::new();
    for (number, document) in documents(text).map_err(|cause| damaged(input, cause))?.into_iter().enumerate()
    {
        if !document.add_to(&mut figures, input)? {
            left_out.push((number + 1).to_string());
        }
    }
    if !left_out.is_empty() {
        figures.notes.push(format!(
            "{}: the JSON documents {} (from 1) are no answer of CloudWatch, and were left out",
            input.path.display(),
            left_out.join(", ")
        ));
    }
    Ok(figures)
}

fn damaged(input: &Input, cause: RecordDamage) -> RecordedError {
    RecordedError::Damaged { path: input.path.clone(), cause }
}

/// The documents that follow each other, or that lists hold.
fn documents(text: &str) -> Result<Vec<Document>, RecordDamage> {
    let damage = |error: serde_json::Error| RecordDamage::Json(error.to_string());
    if text.starts_with('[') {
        let lists: Result<Vec<Vec<Document>>, _> =
            serde_json::Deserializer::from_str(text).into_iter().collect();
        return Ok(lists.map_err(damage)?.into_iter().flatten().collect());
    }
    serde_json::Deserializer::from_str(text).into_iter().collect::<Result<_, _>>().map_err(damage)
}

impl Document {
    /// Adds its figures; false where it is of another kind.
    fn add_to(mut self, figures: &mut Figures, input: &Input) -> Result<bool, RecordedError> {
        if let Some((timestamps, values)) = self.timestamps.take().zip(self.values.take()) {
            // A result without the answer that it was in.
            let result = Answered {
                id: self.id.take(),
                label: self.label.take(),
                timestamps,
                values,
                status_code: self.status_code.take(),
            };
            self.metric_data_results = Some(vec![result]);
        }
        if let Some(results) = self.metric_data_results {
            let mut page = Page::new(&input.path, self.next_token.is_some_and(|token| !token.is_empty()));
            for result in results {
                page.results.push(PageResult::new(
                    result.id.as_deref(),
                    result.label.as_deref(),
                    result.status_code.as_deref(),
                ));
                figures.series.extend(result.series(&self.metric_data_queries, input)?);
            }
            figures.pages.push(page);
            figures.notes.extend(self.messages.iter().filter(|message| !message.code.is_empty()).map(
                |message| {
                    format!("{}: CloudWatch says {}: {}", input.path.display(), message.code, message.value)
                },
            ));
            return Ok(true);
        }
        if let Some(points) = self.datapoints {
            if let Some(label) = self.label.as_deref().and_then(Label::read) {
                let place = Place::new(&input.path, None, self.label.as_deref());
                figures.series.extend(of_datapoints(points, &label, &place)?);
            }
            return Ok(true);
        }
        let (Some(name), Some(ms), Some(value)) = (self.streamed_name, self.streamed_ms, self.streamed_value)
        else {
            return Ok(false);
        };
        let Some(mut label) = Label::read(&name) else { return Ok(true) };
        let name_of = NAMING.iter().find_map(|name| self.streamed_dimensions.get(*name));
        // RDS streams the same metrics by cluster, class and engine too.
        if name_of.is_none() && !label.metric.quantity.is_of_instance() {
            return Ok(true);
        }
        label.volume = name_of.cloned().unwrap_or_default();
        let mut given = Given::default();
        given.set(Statistic::Sum, value.sum);
        given.set(Statistic::SampleCount, value.count);
        given.set(Statistic::Minimum, value.min);
        given.set(Statistic::Maximum, value.max);
        let average = value.sum.zip(value.count.filter(|count| *count > 0.0)).map(|(sum, count)| sum / count);
        given.set(Statistic::Average, average);
        let place = Place::new(&input.path, None, Some(&name));
        let declared = Declared { unit: self.streamed_unit, ..Declared::default() };
        figures.add_streamed(Series::new(place, label, declared, vec![(ms.div_euclid(1_000), given)])?);
        Ok(true)
    }
}

impl Answered {
    /// Its figures; None of a metric that is not read.
    fn series(self, queries: &[Query], input: &Input) -> Result<Option<Series>, RecordedError> {
        let query = queries.iter().find(|query| self.id.as_ref() == Some(&query.id));
        let metric = query.and_then(|query| query.metric_stat.as_ref());
        let named = self.label.as_deref().and_then(Label::read);
        let queried = || Label::read(&metric?.metric.metric_name);
        // The name of a query begins with a small letter: `volumeReadOps`.
        let of_id = || {
            let label = Label::read(self.id.as_deref()?)?;
            Some(Label { volume: volume(self.label.as_deref().unwrap_or_default()).to_owned(), ..label })
        };
        let Some(mut label) = named.or_else(queried).or_else(of_id) else {
            return Ok(None);
        };
        let mut declared = Declared::default();
        if let Some(queried) = metric {
            declared = Declared {
                statistic: Some(queried.stat.clone()),
                unit: queried.unit.clone(),
                period: Some(queried.period.to_string()),
            };
            let names = |dimension: &&Dimension| NAMING.contains(&dimension.name.as_str());
            let volume = queried.metric.dimensions.iter().find(names);
            if let Some(volume) = volume.filter(|_| label.volume.is_empty()) {
                label.volume.clone_from(&volume.value);
            }
        } else if let Some(expression) = query.and_then(|query| query.expression.clone()) {
            declared.statistic = Some(expression);
        }
        let place = Place::new(&input.path, self.id.as_deref(), self.label.as_deref());
        let times = self.timestamps.iter().map(|time| time.0);
        Series::of_values(place, label, declared, times.zip(self.values).collect()).map(Some)
    }
}

/// The figures of `get-metric-statistics`: a series for each unit.
fn of_datapoints(points: Vec<Datapoint>, label: &Label, place: &Place) -> Result<Vec<Series>, RecordedError> {
    let mut by_unit: BTreeMap<Option<String>, Vec<(i64, Given)>> = BTreeMap::new();
    for point in points {
        let mut given = Given::of_others(point.extended_statistics.into_keys().collect());
        given.set(Statistic::Sum, point.sum);
        given.set(Statistic::Average, point.average);
        given.set(Statistic::Minimum, point.minimum);
        given.set(Statistic::Maximum, point.maximum);
        given.set(Statistic::SampleCount, point.sample_count);
        by_unit.entry(point.unit).or_default().push((point.timestamp.0, given));
    }
    // The label of such an answer is the metric's name: its statistics are those of the points.
    let label = Label { statistic: None, other_statistic: None, ..label.clone() };
    let series = |(unit, points)| {
        Series::new(place.clone(), label.clone(), Declared { unit, ..Declared::default() }, points)
    };
    by_unit.into_iter().map(series).collect()
}
