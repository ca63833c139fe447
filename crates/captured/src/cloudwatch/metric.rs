//! The metrics of CloudWatch that say what a volume carried: which statistic, unit and volume their figures have to be of.
//!
//! Names, units and statistics are those of the EBS user guide (`using_cloudwatch_ebs`) and of the RDS user guide
//! (`rds-metrics`).

use super::statistic::{Given, Statistic, Unit};

/// Seconds of the shortest period of EBS and RDS: their metrics have one value a minute.
pub(super) const MINUTE: i64 = 60;

/// What a metric says of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Quantity {
    Reads,
    Writes,
    ReadBytes,
    WrittenBytes,
    ReadTime,
    WriteTime,
    Queue,
    Credits,
    ReadLatency,
    WriteLatency,
    InstanceIops,
    InstanceThroughput,
    VolumeIops,
    VolumeThroughput,
    ReadRate,
    WriteRate,
    ReadByteRate,
    WrittenByteRate,
}

/// A metric that is read.
#[derive(Debug, PartialEq)]
pub(super) struct Metric {
    pub(super) name: &'static str,
    pub(super) quantity: Quantity,
    /// The unit in which values are kept.
    unit: Unit,
    /// What has to be known of a period.
    needs: Needs,
}

/// Which statistic of a period is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// The sum: what is counted.
    Sum,
    /// The mean: a gauge, or a rate.
    Mean,
    /// The mean of what has one value a minute, so that all statistics of a minute are the same.
    MeanOfMinutes,
    /// The mean, or the lowest value: burst credits.
    MeanOrLowest,
    /// Whether there was anything above zero: a check.
    Any,
}

const fn metric(name: &'static str, quantity: Quantity, unit: Unit, needs: Needs) -> Metric {
    Metric { name, quantity, unit, needs }
}

/// The metrics of `AWS/EBS`, and the checks of `AWS/EC2`. A word of a label may end with their name.
static EBS: [Metric; 14] = [
    metric("VolumeReadOps", Quantity::Reads, Unit::Count, Needs::Sum),
    metric("VolumeWriteOps", Quantity::Writes, Unit::Count, Needs::Sum),
    metric("VolumeReadBytes", Quantity::ReadBytes, Unit::Bytes, Needs::Sum),
    metric("VolumeWriteBytes", Quantity::WrittenBytes, Unit::Bytes, Needs::Sum),
    metric("VolumeTotalReadTime", Quantity::ReadTime, Unit::Seconds, Needs::Sum),
    metric("VolumeTotalWriteTime", Quantity::WriteTime, Unit::Seconds, Needs::Sum),
    metric("VolumeQueueLength", Quantity::Queue, Unit::Count, Needs::Mean),
    metric("BurstBalance", Quantity::Credits, Unit::Percent, Needs::MeanOrLowest),
    metric("VolumeAvgReadLatency", Quantity::ReadLatency, Unit::Milliseconds, Needs::MeanOfMinutes),
    metric("VolumeAvgWriteLatency", Quantity::WriteLatency, Unit::Milliseconds, Needs::MeanOfMinutes),
    metric("InstanceEBSIOPSExceededCheck", Quantity::InstanceIops, Unit::Unitless, Needs::Any),
    metric("InstanceEBSThroughputExceededCheck", Quantity::InstanceThroughput, Unit::Unitless, Needs::Any),
    metric("VolumeIOPSExceededCheck", Quantity::VolumeIops, Unit::Unitless, Needs::Any),
    metric("VolumeThroughputExceededCheck", Quantity::VolumeThroughput, Unit::Unitless, Needs::Any),
];

/// The metrics of `AWS/RDS`: rates of an instance's storage. Their names are whole words of a label, since names of EBS end like
/// them.
static RDS: [Metric; 7] = [
    metric("ReadIOPS", Quantity::ReadRate, Unit::CountPerSecond, Needs::Mean),
    metric("WriteIOPS", Quantity::WriteRate, Unit::CountPerSecond, Needs::Mean),
    metric("ReadThroughput", Quantity::ReadByteRate, Unit::BytesPerSecond, Needs::Mean),
    metric("WriteThroughput", Quantity::WrittenByteRate, Unit::BytesPerSecond, Needs::Mean),
    metric("ReadLatency", Quantity::ReadLatency, Unit::Seconds, Needs::Mean),
    metric("WriteLatency", Quantity::WriteLatency, Unit::Seconds, Needs::Mean),
    metric("DiskQueueDepth", Quantity::Queue, Unit::Count, Needs::Mean),
];

/// The four without which there is no load, as EBS and RDS name them.
pub(super) const CORE: [[Quantity; 4]; 2] = [
    [Quantity::Reads, Quantity::Writes, Quantity::ReadBytes, Quantity::WrittenBytes],
    [Quantity::ReadRate, Quantity::WriteRate, Quantity::ReadByteRate, Quantity::WrittenByteRate],
];

impl Quantity {
    /// Whether it is one of the four without which there is no load.
    pub(super) fn is_core(self) -> bool {
        CORE.as_flattened().contains(&self)
    }

    /// Whether it is of an instance of EC2, and so of all its volumes.
    pub(super) const fn is_of_instance(self) -> bool {
        matches!(self, Self::InstanceIops | Self::InstanceThroughput)
    }

    /// The name of the metric that has it first; of the figures that EBS and RDS name differently, that of EBS.
    pub(super) fn name(self) -> &'static str {
        let named = EBS.iter().chain(&RDS).find(|metric| metric.quantity == self);
        named.expect("each quantity is that of a metric").name
    }
}

impl Metric {
    /// The metric that a word names.
    fn of_word(word: &str) -> Option<&'static Self> {
        let ends = |name: &str| {
            let place = word.len().checked_sub(name.len());
            place.and_then(|place| word.get(place..)).is_some_and(|end| end.eq_ignore_ascii_case(name))
        };
        let ebs = EBS.iter().find(|metric| ends(metric.name));
        ebs.or_else(|| RDS.iter().find(|metric| word == metric.name))
    }

    /// The statistics that it may have, for people.
    pub(super) const fn needed(&self) -> &'static str {
        match self.needs {
            Needs::Sum => "Sum",
            Needs::Mean | Needs::MeanOfMinutes => "Average",
            Needs::MeanOrLowest => "Average or Minimum",
            Needs::Any => "Maximum, Average or Sum",
        }
    }

    /// The unit in which AWS publishes it.
    pub(super) const fn unit(&self) -> Unit {
        self.unit
    }

    /// By what a value of a unit is multiplied to be in the metric's own; None where it cannot be.
    pub(super) fn scale(&self, given: Unit) -> Option<f64> {
        match (given, self.unit) {
            // Data of no unit say nothing.
            (Unit::Unitless, _) | (Unit::Count, Unit::Unitless) => Some(1.0),
            // The latency of RDS is published in seconds, and kept in milliseconds as that of EBS.
            (_, own) => given.times(own),
        }
    }

    /// The value of a period from the statistics that are given of it; None where none of them tells it. `is_minute`: whether
    /// the period is a minute.
    pub(super) fn value(&self, given: &Given, is_minute: bool) -> Option<f64> {
        let get = |statistic| given.get(statistic);
        let sum =
            get(Statistic::Sum).or_else(|| Some(get(Statistic::Average)? * get(Statistic::SampleCount)?));
        let count = get(Statistic::SampleCount).filter(|count| *count > 0.0);
        let mean = get(Statistic::Average).or_else(|| Some(get(Statistic::Sum)? / count?));
        let (lowest, highest) = (get(Statistic::Minimum), get(Statistic::Maximum));
        let same = lowest.or(highest).filter(|_| is_minute);
        match self.needs {
            Needs::Sum => sum,
            Needs::Mean => mean,
            Needs::MeanOfMinutes => mean.or(same),
            Needs::MeanOrLowest => mean.or(lowest).or(same),
            Needs::Any => highest.or(get(Statistic::Average)).or(sum).or(same),
        }
    }

    /// The value as the quantity has it: latencies are in milliseconds.
    pub(super) fn kept(&self, value: f64) -> f64 {
        let is_latency = matches!(self.quantity, Quantity::ReadLatency | Quantity::WriteLatency);
        if is_latency && self.unit == Unit::Seconds { value * 1e3 } else { value }
    }
}

/// What the label of a metric says.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Label {
    pub(super) metric: &'static Metric,
    /// The volume; empty where it names none.
    pub(super) volume: String,
    pub(super) statistic: Option<Statistic>,
    /// Words such as those of a statistic of which the figures cannot be used.
    pub(super) other_statistic: Option<String>,
    pub(super) unit: Option<String>,
    /// Seconds of a period.
    pub(super) period: Option<i64>,
}

impl Label {
    /// Reads a label, such as `vol-0a1b VolumeReadOps Sum 60`; None where it names no metric, or several.
    pub(super) fn read(text: &str) -> Option<Self> {
        let words: Vec<&str> =
            text.split(|c: char| !c.is_ascii_alphanumeric() && !"%./_-".contains(c)).collect();
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        let mut named = words.iter().enumerate().filter_map(|(place, word)| {
            let (word, unit) = split_unit(word);
            let last = word.rsplit(['.', '/', '-']).next().unwrap_or(word);
            Some((place, Metric::of_word(last)?, unit))
        });
        let (place, metric, unit) = named.next()?;
        if named.any(|(_, other, _)| other != metric) {
            return None;
        }
        let mut label = Self {
            metric,
            volume: volume(text).to_owned(),
            statistic: None,
            other_statistic: None,
            unit: unit.map(str::to_owned),
            period: None,
        };
        label.read_words(&words, place);
        Some(label)
    }

    /// Statistic, unit and period are beside the metric's name; the full name of a statistic may be anywhere.
    fn read_words(&mut self, words: &[&str], place: usize) {
        let (before, after) = (&words[..place], &words[place + 1..]);
        let beside = before.iter().rev().find(|word| **word != "of");
        self.statistic = before.iter().chain(after).find_map(|word| Statistic::exactly(word));
        let short = || beside.into_iter().chain(after).find_map(|word| Statistic::named(word));
        self.statistic = self.statistic.or_else(short);
        let ranked =
            beside.filter(|word| Statistic::is_percentile(word) || word.eq_ignore_ascii_case("rate"));
        let other = ranked.or_else(|| after.iter().find(|word| Statistic::is_other(word)));
        self.other_statistic = other.map(|word| (*word).to_owned());
        let number = |word: &&str| word.parse().ok().filter(|period| *period > 0);
        self.period = after.iter().find_map(number).filter(|_| self.statistic.is_some());
        let is_unit = |word: &&&str| Unit::named(word).is_some() || Unit::is_like(word);
        self.unit = self.unit.take().or_else(|| Some((*after.iter().find(is_unit)?).to_owned()));
        let is_rate = |pair: &[&str]| {
            pair[0].eq_ignore_ascii_case("per") && pair[1].to_ascii_lowercase().starts_with("sec")
        };
        if after.windows(2).any(is_rate) {
            self.unit = Some("per second".to_owned());
        }
    }
}

/// A word such as `VolumeReadOps/s`, without and with what follows the stroke.
fn split_unit(word: &str) -> (&str, Option<&str>) {
    match word.rsplit_once('/') {
        Some((name, "s" | "sec" | "second" | "Second")) => (name, Some("per second")),
        _ => (word, None),
    }
}

/// The volume that a text names; empty where it names none.
pub(super) fn volume(text: &str) -> &str {
    let id = |word: &&str| word.starts_with("vol-");
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').find(id).unwrap_or("")
}
