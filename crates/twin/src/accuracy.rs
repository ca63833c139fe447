//! How sure a prediction is: from the residuals of its calibration, and from predictions that were compared with
//! measurements (data/comparisons.toml).

use std::fmt::Write as _;

use serde::Deserialize;

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
    /// Operations a second.
    Iops,
    /// MiB a second.
    MibS,
}

impl Figure {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Tps, Self::P50, Self::P95, Self::P99, Self::Iops, Self::MibS];

    /// Its name in the data and in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tps => "tps",
            Self::P50 => "p50",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::Iops => "iops",
            Self::MibS => "mib_s",
        }
    }

    /// The figures whose comparisons stand for its own where there are too few, the nearest first.
    const fn like(self) -> &'static [Self] {
        match self {
            Self::Tps => &[],
            Self::P50 | Self::P99 => &[Self::P95],
            Self::P95 => &[Self::P99, Self::P50],
            Self::Iops => &[Self::MibS, Self::Tps],
            Self::MibS => &[Self::Iops, Self::Tps],
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
    /// The figure.
    pub figure: Figure,
    /// Its predicted value; percentiles in us.
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

const COMPARISONS: &str = include_str!("../data/comparisons.toml");
const HEADER: &str = "\
# Predictions beside measurements. The intervals of `ebbtide predict` are quantiles of these ratios (docs/accuracy.md).
# `./dev bench twin --write` writes the rows of published results, `./dev bench twin-lab --write` those of the lab.
";

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
        let _ = writeln!(
            text,
            "  {{ experiment = {:?}, arm = {:?}, class = \"{}\", figure = \"{}\", predicted = {:.2}, measured = {:.2} }},",
            row.experiment,
            row.arm,
            row.class.name(),
            row.figure.name(),
            row.predicted,
            row.measured,
        );
    }
    text.push_str("]\n");
    Ok(text)
}

/// What a prediction is based on.
#[derive(Debug, Clone, Copy)]
pub struct Basis<'a> {
    /// Whether results of this kind of server and workload were compared with the model's.
    pub validated: bool,
    /// Whether the pages of a transaction were observed; else they follow from a description of the workload.
    pub observed: bool,
    /// Of each calibrated point, the model's throughput divided by the measured one. Empty without calibration.
    pub residuals: &'a [f64],
}

/// The interval of a figure, relative to its prediction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Its lower end, at most 1.
    pub low: f64,
    /// Its upper end, at least 1.
    pub high: f64,
    /// Comparisons that it rests on.
    pub rows: usize,
    /// The figure that was compared: another one where there are too few comparisons of its own.
    pub of: Figure,
    /// Whether it is wider than those comparisons are: they are of another figure, or of other servers and workloads.
    pub wider: bool,
}

/// The intervals of a prediction.
#[derive(Debug, Clone, PartialEq)]
pub struct Uncertainty {
    intervals: [Interval; 6],
    /// The class that was compared, and whether it is not the prediction's own.
    class: Class,
    borrowed: bool,
    validated: bool,
    residual: f64,
}

impl Uncertainty {
    /// The interval of a figure.
    #[must_use]
    pub const fn of(&self, figure: Figure) -> Interval {
        self.intervals[figure as usize]
    }

    /// The least and the most to expect of a figure.
    #[must_use]
    pub const fn around(&self, figure: Figure, value: f64) -> (f64, f64) {
        let interval = self.of(figure);
        (value * interval.low, value * interval.high)
    }

    /// Where they come from, for people.
    #[must_use]
    pub fn words(&self) -> String {
        let one = |figure: Figure| {
            let Interval { low, high, rows, of, wider } = self.of(figure);
            let from = if of == figure { String::new() } else { format!(" of {}", of.name()) };
            let wider = if wider && of != figure { ", twice as wide" } else { "" };
            format!("{} {low:.2} to {high:.2} times ({rows} comparisons{from}{wider})", figure.name())
        };
        let mut words = format!(
            "90% of the comparisons of {} with measurements: {}",
            self.class.words(),
            Figure::ALL.map(one).join(", ")
        );
        if self.residual > 0.0 {
            let _ =
                write!(words, "; the calibration itself is off by {:.0}%", self.residual.exp_m1() * 100.0);
        }
        if self.borrowed {
            words.push_str("; twice as wide, since nothing was calibrated");
        }
        if !self.validated {
            words.push_str(
                "; twice as wide, since no results of this kind of server and workload were compared",
            );
        }
        words
    }
}

/// Share of the comparisons that an interval holds.
const HELD: f64 = 0.9;
/// How much wider an interval is, on a logarithmic scale, where no results were compared.
const UNVALIDATED: f64 = 2.0;
/// Fewer comparisons say too little of a figure.
const FEW: usize = 5;
/// The interval of a figure without any comparison, natural logarithm: a factor of two.
const UNKNOWN: f64 = std::f64::consts::LN_2;

/// The intervals of predictions on this basis.
///
/// # Panics
/// Where the data of this crate are damaged, which its tests exclude.
#[must_use]
pub fn uncertainty(basis: &Basis<'_>) -> Uncertainty {
    let comparisons: Comparisons = toml::from_str(COMPARISONS).expect("the comparisons are TOML");
    of_comparisons(&comparisons.row, basis)
}

fn of_comparisons(rows: &[Comparison], basis: &Basis<'_>) -> Uncertainty {
    let class = match (basis.residuals.is_empty(), basis.observed) {
        (true, _) => Class::Uncalibrated,
        (false, false) => Class::Described,
        (false, true) => Class::Observed,
    };
    // Without comparisons of its class: those of described workloads, wider.
    let own = rows.iter().filter(|row| row.class == class && row.figure == Figure::Tps).count();
    let (class, borrowed) =
        if class == Class::Uncalibrated && own < FEW { (Class::Described, true) } else { (class, false) };
    let validated = basis.validated && !borrowed;
    let worst = basis.residuals.iter().map(|one| one.ln().abs()).fold(0.0, f64::max);
    let intervals = Figure::ALL.map(|figure| interval(rows, class, figure, validated, worst));
    // It is said where it decides.
    let compared = interval(rows, class, Figure::Tps, true, 0.0);
    let decides = worst > compared.high.ln().max(-compared.low.ln());
    let residual = if decides { worst } else { 0.0 };
    Uncertainty { intervals, class, validated: basis.validated, borrowed, residual }
}

fn interval(rows: &[Comparison], class: Class, figure: Figure, validated: bool, residual: f64) -> Interval {
    let logs = |of: Figure| {
        let same = rows.iter().filter(|row| row.class == class && row.figure == of);
        let ratio = |row: &Comparison| (row.measured / row.predicted).ln();
        let mut logs: Vec<f64> = same.map(ratio).filter(|log| log.is_finite()).collect();
        logs.sort_by(f64::total_cmp);
        logs
    };
    let own = logs(figure);
    let (of, logs) = if own.len() >= FEW {
        (figure, own)
    } else {
        let others = figure.like().iter().map(|other| (*other, logs(*other)));
        others
            .max_by_key(|(_, logs)| logs.len())
            .filter(|(_, logs)| logs.len() > own.len())
            .unwrap_or((figure, own))
    };
    let (low, high) = match logs.as_slice() {
        [] => (-UNKNOWN, UNKNOWN),
        logs => (quantile(logs, (1.0 - HELD) / 2.0), quantile(logs, f64::midpoint(1.0, HELD))),
    };
    let borrowed = of != figure || logs.is_empty();
    let wider = if borrowed { UNVALIDATED } else { 1.0 } * if validated { 1.0 } else { UNVALIDATED };
    Interval {
        low: (low.min(0.0).min(-residual) * wider).exp(),
        high: (high.max(0.0).max(residual) * wider).exp(),
        rows: logs.len(),
        of,
        wider: wider > 1.0,
    }
}

/// A quantile of rising values: of the two beside its place, the one that is farther from the median.
fn quantile(rising: &[f64], share: f64) -> f64 {
    let last = rising.len() - 1;
    let place = share * last as f64;
    // What is a whole number but for its rounding is taken as one.
    let place = if share < 0.5 { (place + 1e-9).floor() } else { (place - 1e-9).ceil() };
    rising[usize::try_from(crate::innodb::whole(place)).map_or(last, |at| at.min(last))]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(figure: Figure, ratio: f64) -> Comparison {
        Comparison {
            experiment: "e".into(),
            arm: "a \"quoted\" one".into(),
            class: Class::Observed,
            figure,
            predicted: 100.0,
            measured: 100.0 * ratio,
        }
    }

    const FIT: Basis<'_> = Basis { validated: true, observed: true, residuals: &[1.0] };

    fn rows(figure: Figure) -> Vec<Comparison> {
        (0..21).map(|n| row(figure, 0.8 + 0.02 * f64::from(n))).collect()
    }

    #[test]
    fn an_interval_holds_nine_tenths_of_the_ratios_of_its_figure() {
        let rows = [rows(Figure::Tps), rows(Figure::P95)].concat();
        let interval = of_comparisons(&rows, &FIT).of(Figure::Tps);
        assert_eq!((interval.rows, interval.of, interval.wider), (21, Figure::Tps, false));
        assert!((interval.low - 0.82).abs() < 1e-9 && (interval.high - 1.18).abs() < 1e-9, "{interval:?}");
        let held = rows.iter().filter(|row| row.figure == Figure::Tps);
        let held =
            held.filter(|row| (interval.low..=interval.high).contains(&(row.measured / row.predicted)));
        assert!(held.count() >= 19);
    }

    #[test]
    fn a_figure_without_comparisons_has_those_of_one_like_it_twice_as_wide() {
        let intervals = of_comparisons(&rows(Figure::P95), &FIT);
        let (own, like) = (intervals.of(Figure::P95), intervals.of(Figure::P99));
        assert_eq!((like.of, like.rows, like.wider), (Figure::P95, 21, true));
        assert!((like.high - own.high * own.high).abs() < 1e-9, "{like:?} {own:?}");
        let none = intervals.of(Figure::Tps);
        assert!(none.rows == 0 && none.high > 2.0 && none.low < 0.5, "{none:?}");
        assert!(
            intervals.words().contains("p99")
                && intervals.words().contains("21 comparisons of p95, twice as wide")
        );
    }

    #[test]
    fn an_interval_is_wider_where_nothing_was_compared_or_the_calibration_is_off() {
        let rows = rows(Figure::Tps);
        let of = |basis: &Basis<'_>| of_comparisons(&rows, basis).of(Figure::Tps);
        assert!(of(&Basis { validated: false, ..FIT }).high > of(&FIT).high * 1.1);
        assert!((of(&Basis { residuals: &[1.0, 1.4], ..FIT }).high - 1.4).abs() < 1e-9);
        let described = Comparison { class: Class::Described, ..row(Figure::Tps, 1.2) };
        let uncalibrated = of_comparisons(&vec![described; 9], &Basis { residuals: &[], ..FIT });
        assert!((uncalibrated.of(Figure::Tps).high - 1.44).abs() < 1e-9, "{uncalibrated:?}");
        assert!(uncalibrated.words().contains("nothing was calibrated"));
    }

    #[test]
    fn the_words_say_why_an_interval_is_wide() {
        let basis = Basis { validated: false, residuals: &[1.6], ..FIT };
        let words = of_comparisons(&rows(Figure::Tps), &basis).words();
        assert!(
            words.contains("no results of this kind of server") && words.contains("calibration"),
            "{words}"
        );
    }

    #[test]
    fn the_rows_of_an_experiment_are_replaced_and_the_others_stay() {
        let of =
            |experiment: &str, ratio| Comparison { experiment: experiment.into(), ..row(Figure::P95, ratio) };
        let first = replaced("row = []", &[of("b", 1.1), of("a", 1.2)]).unwrap();
        let second = replaced(&first, &[of("b", 0.9)]).unwrap();
        let read: Comparisons = toml::from_str(&second).unwrap();
        assert_eq!(read.row, [of("a", 1.2), of("b", 0.9)]);
    }

    #[test]
    fn the_data_of_this_crate_have_comparisons_of_each_class() {
        for (observed, residuals) in [(true, &[1.0][..]), (false, &[1.0]), (false, &[])] {
            let interval = uncertainty(&Basis { validated: true, observed, residuals }).of(Figure::Tps);
            assert!(interval.rows >= 15 && interval.high < 2.5 && interval.low > 0.25, "{interval:?}");
        }
    }
}
