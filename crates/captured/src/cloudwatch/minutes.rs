//! The busiest minutes of a volume, for the doctor.

use std::collections::BTreeMap;

use ebbtide_observe::{Exceeded, VolumePeaks};

use super::metric::{MINUTE, Quantity};
use super::values::{OfVolume, values};
use super::{Figures, Series, figures, is_meant, pages};
use crate::Input;
use crate::record_error::WrongMetrics;

/// Metrics of a volume that files have together.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Minutes {
    series: Vec<Series>,
    pages: Vec<super::Page>,
    /// Why a file's metrics were left out.
    refused: Option<NoPeaks>,
    notes: Vec<String>,
}

/// Why metrics tell no peaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoPeaks {
    #[error("the metrics have neither VolumeReadOps nor VolumeWriteOps")]
    NoOperations,
    #[error("the metrics are of several volumes ({0}): give those of the volume of the data alone")]
    SeveralVolumes(String),
    #[error("{0} has two values of one minute: give the metrics of one volume, each once")]
    Twice(&'static str),
    #[error("the figures are not of single minutes: ask with --period 60 and the statistic Sum")]
    NotMinutes,
    #[error("{cause}: {}", .cause.hint())]
    Wrong {
        /// What is wrong.
        cause: WrongMetrics,
    },
}

impl From<WrongMetrics> for NoPeaks {
    fn from(cause: WrongMetrics) -> Self {
        match cause {
            WrongMetrics::TwoValues { metric, .. } => Self::Twice(metric),
            cause => Self::Wrong { cause },
        }
    }
}

/// Reads the metrics that the doctor looks at; None in another text, and in one that is damaged.
pub(crate) fn read(input: &Input) -> Option<Minutes> {
    use crate::record_error::RecordedError;
    if !is_meant(&input.text) {
        return None;
    }
    match figures(input) {
        Ok(Figures { series, pages, notes }) => Some(Minutes { series, pages, refused: None, notes }),
        Err(RecordedError::Metrics { cause, .. }) => {
            Some(Minutes { refused: Some(NoPeaks::from(cause)), ..Minutes::default() })
        }
        Err(_) => None,
    }
}

impl Minutes {
    pub(crate) fn add(&mut self, other: Self) {
        self.series.extend(other.series);
        self.pages.extend(other.pages);
        self.refused = self.refused.take().or(other.refused);
        self.notes.extend(other.notes);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.refused.is_none() && self.series.iter().all(|series| series.points.is_empty())
    }

    /// What was left out or is missing, for people.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.notes.iter().cloned().chain(pages::missing(&self.pages)).collect()
    }

    /// The peaks.
    pub(crate) fn peaks(&self) -> Result<VolumePeaks, NoPeaks> {
        if let Some(refused) = &self.refused {
            return Err(refused.clone());
        }
        let volumes = values(&self.series.iter().collect::<Vec<_>>())?;
        let names: Vec<&str> = volumes.keys().map(String::as_str).filter(|name| !name.is_empty()).collect();
        if names.len() > 1 {
            return Err(NoPeaks::SeveralVolumes(names.join(", ")));
        }
        let volume = together(volumes)?;
        let ios = summed(&volume, [Quantity::Reads, Quantity::Writes]);
        let (Some((first, _)), Some((last, _))) = (ios.first_key_value(), ios.last_key_value()) else {
            return Err(NoPeaks::NoOperations);
        };
        let apart = ios.keys().zip(ios.keys().skip(1)).map(|(one, next)| next - one).min();
        let said = volume.values().flat_map(|by_time| by_time.values()).find_map(|value| value.period);
        if apart != Some(MINUTE) || said.is_some_and(|period| period != MINUTE) {
            return Err(NoPeaks::NotMinutes);
        }
        let bytes = summed(&volume, [Quantity::ReadBytes, Quantity::WrittenBytes]);
        Ok(VolumePeaks {
            seconds: (last - first + MINUTE) as f64,
            minutes: ios.len() as u64,
            ios: peak(&ios),
            bytes: (!bytes.is_empty()).then(|| peak(&bytes)),
            burst_balance: figures_of(&volume, Quantity::Credits)
                .reduce(f64::min)
                .map(|percent| percent / 100.0),
            exceeded: exceeded(&volume),
        })
    }
}

/// The values of the one volume that labels name, and of those that name none.
fn together(volumes: BTreeMap<String, OfVolume>) -> Result<OfVolume, NoPeaks> {
    let mut all = OfVolume::new();
    for (quantity, by_time) in volumes.into_values().flatten() {
        let known = all.entry(quantity).or_default();
        for (time, value) in by_time {
            // What is no number of operations, bytes or percent is left out.
            if !(value.value.is_finite() && value.value >= 0.0) {
                continue;
            }
            if known.insert(time, value).is_some_and(|before| before.value != value.value) {
                return Err(NoPeaks::Twice(quantity.name()));
            }
        }
    }
    all.retain(|_, by_time| !by_time.is_empty());
    Ok(all)
}

/// Sums of several metrics together, by minute.
fn summed(volume: &OfVolume, quantities: [Quantity; 2]) -> BTreeMap<i64, f64> {
    let mut sums = BTreeMap::new();
    for by_time in quantities.iter().filter_map(|quantity| volume.get(quantity)) {
        for (minute, value) in by_time {
            *sums.entry(*minute).or_insert(0.0) += value.value;
        }
    }
    sums
}

/// The values of one metric.
fn figures_of(volume: &OfVolume, quantity: Quantity) -> impl Iterator<Item = f64> + '_ {
    volume.get(&quantity).into_iter().flat_map(|by_time| by_time.values().map(|value| value.value))
}

/// Shares of the minutes over each limit; None where no check is among the metrics.
fn exceeded(volume: &OfVolume) -> Option<Exceeded> {
    let share = |quantity: Quantity| {
        let minutes = figures_of(volume, quantity).count();
        let over = figures_of(volume, quantity).filter(|value| *value > 0.0).count();
        (minutes > 0).then(|| over as f64 / minutes as f64)
    };
    let shares = [
        Quantity::VolumeIops,
        Quantity::VolumeThroughput,
        Quantity::InstanceIops,
        Quantity::InstanceThroughput,
    ]
    .map(share);
    shares.iter().any(Option::is_some).then(|| {
        let [volume_iops, volume_throughput, instance_iops, instance_throughput] =
            shares.map(|share| share.unwrap_or(0.0));
        Exceeded { volume_iops, volume_throughput, instance_iops, instance_throughput }
    })
}

/// The rate a second of the minute that one in a thousand is above.
fn peak(minutes: &BTreeMap<i64, f64>) -> f64 {
    let mut values: Vec<f64> = minutes.values().copied().collect();
    values.sort_by(f64::total_cmp);
    let above = values.len() / 1_000;
    values[values.len() - 1 - above] / MINUTE as f64
}
