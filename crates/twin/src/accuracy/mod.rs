//! How sure a prediction is: from the residuals of its calibration, and from predictions that were compared with
//! measurements (data/comparisons.toml).

mod interval;

use std::fmt::Write as _;
use std::sync::OnceLock;

use serde::Deserialize;

pub use interval::{Basis, Interval, Uncertainty, uncertainty};

/// A figure of a prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Transactions a second.
    Tps,
    /// Median latency.
    P50,
    /// 95th percentile of the latency.
    P95,
    /// 99th percentile of the latency.
    P99,
    /// 99.9th percentile of the latency.
    P999,
    /// Operations a second.
    Iops,
    /// MiB a second.
    MibS,
    /// Operations and bytes of page reads a second.
    Reads,
    /// Operations and bytes of all that is written a second: pages, doublewrite, redo log and binary log.
    Writes,
    /// Processors busy.
    Cpu,
    /// When burst credits end.
    CreditsEnd,
}

impl Figure {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Tps,
        Self::P50,
        Self::P95,
        Self::P99,
        Self::P999,
        Self::Iops,
        Self::MibS,
        Self::Reads,
        Self::Writes,
        Self::Cpu,
        Self::CreditsEnd,
    ];

    /// Its name in the data and in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tps => "tps",
            Self::P50 => "p50",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::P999 => "p999",
            Self::Iops => "iops",
            Self::MibS => "mib_s",
            Self::Reads => "reads",
            Self::Writes => "writes",
            Self::Cpu => "cpu",
            Self::CreditsEnd => "credits_end",
        }
    }

    /// The figures whose comparisons stand for its own where there are too few, the nearest first.
    const fn like(self) -> &'static [Self] {
        match self {
            Self::Tps => &[Self::MibS, Self::Iops],
            Self::P50 => &[Self::P95, Self::P99],
            Self::P95 => &[Self::P99, Self::P50],
            Self::P99 => &[Self::P95, Self::P999],
            Self::P999 => &[Self::P99, Self::P95],
            Self::Iops => &[Self::MibS, Self::Tps],
            Self::MibS => &[Self::Iops, Self::Tps],
            Self::Reads | Self::Writes | Self::CreditsEnd => &[Self::MibS, Self::Iops, Self::Tps],
            Self::Cpu => &[Self::Tps],
        }
    }
}

/// What a prediction was based on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// The pages of a transaction were observed.
    Observed,
    /// The workload was described.
    Described,
    /// The workload was described, and nothing but its processor time calibrated.
    Uncalibrated,
}

impl Class {
    const fn name(self) -> &'static str {
        match self {
            Self::Observed => "observed",
            Self::Described => "described",
            Self::Uncalibrated => "uncalibrated",
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Observed => "workloads that are observed",
            Self::Described => "workloads that are described",
            Self::Uncalibrated => "predictions without calibration",
        }
    }
}

/// A prediction beside its measurement.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// What was measured.
    pub experiment: String,
    /// The arm or row of it.
    pub arm: String,
    /// What the prediction was based on.
    pub class: Class,
    /// The server, as a profile names it: `mysql-5.7`.
    pub flavour: String,
    /// The workload, as a profile names it: `tpcc`, `observed`, `oltp_read_write`.
    pub workload: String,
    /// Connections; None in an open loop.
    pub clients: Option<u32>,
    /// The buffer pool, times the data.
    pub pool: f64,
    /// The figure.
    pub figure: Figure,
    /// Its predicted value; percentiles in us, the end of credits in s, processors in percent.
    pub predicted: f64,
    /// Its measured value.
    pub measured: f64,
}

/// All comparisons.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Comparisons {
    row: Vec<Comparison>,
}

const COMPARISONS: &str = include_str!("../../data/comparisons.toml");
const HEADER: &str = "\
# Predictions beside measurements. The intervals of `ebbtide predict` are quantiles of these ratios (docs/accuracy.md).
# `./dev bench twin --write` writes the rows of published results, `./dev bench twin-lab --write` those of the lab.
";

/// The rows of a file of comparisons.
///
/// # Errors
/// Where the text is no file of comparisons.
pub fn parse(text: &str) -> Result<Vec<Comparison>, toml::de::Error> {
    toml::from_str::<Comparisons>(text).map(|comparisons| comparisons.row)
}

/// The file of comparisons with the rows of some experiments replaced by new ones; none of them is calibrated.
///
/// # Errors
/// Where the text is no file of comparisons.
pub fn replaced(text: &str, new: &[Comparison]) -> Result<String, toml::de::Error> {
    let old: Comparisons = toml::from_str(text)?;
    let kept = old.row.iter().filter(|row| new.iter().all(|one| one.experiment != row.experiment));
    let mut all: Vec<&Comparison> = kept.chain(new).collect();
    all.sort_by(|a, b| a.experiment.cmp(&b.experiment));
    let mut text = format!("{HEADER}row = [\n");
    for row in all {
        let clients = row.clients.map_or(String::new(), |clients| format!("clients = {clients}, "));
        let _ = writeln!(
            text,
            "  {{ experiment = {:?}, arm = {:?}, class = \"{}\", flavour = {:?}, workload = {:?}, {clients}pool = {:.3}, figure = \"{}\", \
             predicted = {:.2}, measured = {:.2} }},",
            row.experiment,
            row.arm,
            row.class.name(),
            row.flavour,
            row.workload,
            row.pool,
            row.figure.name(),
            row.predicted,
            row.measured,
        );
    }
    text.push_str("]\n");
    Ok(text)
}

/// The comparisons that this crate has.
///
/// # Panics
/// Where its data are damaged, which its tests exclude.
fn compared() -> &'static [Comparison] {
    static ROWS: OnceLock<Vec<Comparison>> = OnceLock::new();
    ROWS.get_or_init(|| parse(COMPARISONS).expect("the comparisons are TOML"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_of_an_experiment_are_replaced_and_the_others_stay() {
        let of = |experiment: &str, clients, measured| Comparison {
            experiment: experiment.into(),
            arm: "a \"quoted\" one".into(),
            class: Class::Observed,
            flavour: "mysql-5.7".into(),
            workload: "tpcc".into(),
            clients,
            pool: 0.125,
            figure: Figure::P95,
            predicted: 100.0,
            measured,
        };
        let first = replaced("row = []", &[of("b", None, 110.0), of("a", Some(16), 120.0)]).unwrap();
        let second = replaced(&first, &[of("b", None, 90.0)]).unwrap();
        let read: Comparisons = toml::from_str(&second).unwrap();
        assert_eq!(read.row, [of("a", Some(16), 120.0), of("b", None, 90.0)]);
    }
}
