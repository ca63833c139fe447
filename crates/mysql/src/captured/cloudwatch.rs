//! What a volume carried minute by minute: the output of `aws cloudwatch get-metric-data` with metrics of AWS/EBS.

use std::collections::BTreeMap;

use ebbtide_observe::VolumePeaks;
use serde::Deserialize;

/// The word by which such a text is known.
const HEAD: &str = "\"MetricDataResults\"";
/// The metrics that are read, as the labels of the results end with them.
const METRICS: [&str; 4] = ["VolumeReadOps", "VolumeWriteOps", "VolumeReadBytes", "VolumeWriteBytes"];
/// Seconds of a minute: longer periods hide peaks.
const MINUTE: i64 = 60;

/// Sums of each minute, by metric and minute.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Minutes {
    sums: BTreeMap<(&'static str, i64), f64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    metric_data_results: Vec<Metric>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Metric {
    label: String,
    timestamps: Vec<jiff::Timestamp>,
    values: Vec<f64>,
}

/// Reads the results; None in another text.
pub(super) fn read(text: &str) -> Option<Minutes> {
    if !text.trim_start().starts_with('{') || !text.contains(HEAD) {
        return None;
    }
    let answer: Answer = serde_json::from_str(text).ok()?;
    let mut minutes = Minutes::default();
    for one in &answer.metric_data_results {
        let Some(name) = METRICS.into_iter().find(|name| one.label.ends_with(name)) else { continue };
        for (time, value) in one.timestamps.iter().zip(&one.values) {
            if value.is_finite() && *value >= 0.0 {
                minutes.sums.insert((name, time.as_second()), *value);
            }
        }
    }
    Some(minutes)
}

impl Minutes {
    pub(super) fn add(&mut self, other: Self) {
        self.sums.extend(other.sums);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sums.is_empty()
    }

    /// Sums of several metrics together, by minute.
    fn of(&self, metrics: [&str; 2]) -> BTreeMap<i64, f64> {
        let mut all = BTreeMap::new();
        for ((name, minute), value) in &self.sums {
            if metrics.contains(name) {
                *all.entry(*minute).or_insert(0.0) += value;
            }
        }
        all
    }

    /// The peaks; an error says why there are none.
    pub(super) fn peaks(&self) -> Result<VolumePeaks, String> {
        let ios = self.of(["VolumeReadOps", "VolumeWriteOps"]);
        let (Some((first, _)), Some((last, _))) = (ios.first_key_value(), ios.last_key_value()) else {
            return Err("the metrics have neither VolumeReadOps nor VolumeWriteOps".into());
        };
        let apart = ios.keys().zip(ios.keys().skip(1)).map(|(one, next)| next - one).min();
        if apart != Some(MINUTE) {
            return Err(
                "the figures are not of single minutes: ask with --period 60 and the statistic Sum".into()
            );
        }
        let bytes = self.of(["VolumeReadBytes", "VolumeWriteBytes"]);
        Ok(VolumePeaks {
            seconds: (last - first + MINUTE) as f64,
            minutes: ios.len() as u64,
            ios: peak(&ios),
            bytes: (!bytes.is_empty()).then(|| peak(&bytes)),
        })
    }
}

/// The rate a second of the minute that one in a thousand is above.
fn peak(minutes: &BTreeMap<i64, f64>) -> f64 {
    let mut values: Vec<f64> = minutes.values().copied().collect();
    values.sort_by(f64::total_cmp);
    let above = values.len() / 1_000;
    values[values.len() - 1 - above] / MINUTE as f64
}
