//! The axis of values of a graph: its bounds, its labels, and where a value is drawn.

use super::figures::in_unit;
use crate::view::Graph;

/// The decades that an axis can have: what is smaller or larger is drawn on its edge.
const LEAST_DECADE: i32 = -9;
const LARGEST_DECADE: i32 = 18;

/// The axis of values of a graph.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Axis {
    /// Where it begins and ends: values, or their decimal logarithms.
    pub(super) bounds: [f64; 2],
    /// Its labels at equal distances, the lowest first; two or more.
    pub(super) labels: Vec<String>,
    logarithmic: bool,
}

impl Axis {
    /// The axis of a graph on so many lines of a terminal; None where nothing can be drawn.
    pub(super) fn new(graph: &Graph, lines: usize) -> Option<Self> {
        let values = graph.lines.iter().flat_map(|line| &line.values).copied().flatten();
        let drawn = values.filter(|value| value.is_finite() && (*value > 0.0 || !graph.logarithmic));
        let (least, largest) = drawn.fold(None, |bounds: Option<(f64, f64)>, value| {
            Some(bounds.map_or((value, value), |(least, largest)| (least.min(value), largest.max(value))))
        })?;
        Some(if graph.logarithmic {
            Self::logarithmic(least, largest, graph.unit, lines)
        } else {
            Self::linear(largest, graph.unit, lines)
        })
    }

    /// Where a value is drawn; None where it cannot be, as zero on a logarithmic axis.
    pub(super) fn position(&self, value: f64) -> Option<f64> {
        let position = match self.logarithmic {
            true if value > 0.0 => value.log10(),
            true => return None,
            false => value,
        };
        position.is_finite().then(|| position.clamp(self.bounds[0], self.bounds[1]))
    }

    fn logarithmic(least: f64, largest: f64, unit: &str, lines: usize) -> Self {
        let mut low = LEAST_DECADE;
        while low < LARGEST_DECADE && 10_f64.powi(low + 1) <= least {
            low += 1;
        }
        let mut high = low + 1;
        while high < LARGEST_DECADE && 10_f64.powi(high) < largest {
            high += 1;
        }
        // A label on each second line at most. Labels are on whole decades, so that the axis may end higher than its values.
        let most = i32::try_from(lines.saturating_sub(1) / 2).unwrap_or(4).clamp(1, 4);
        let step = (high - low + most - 1) / most;
        let intervals = (high - low + step - 1) / step;
        let labels = (0..=intervals).map(|interval| decade(low + interval * step, unit)).collect();
        let bounds = [f64::from(low), f64::from(low + intervals * step)];
        Self { bounds, labels, logarithmic: true }
    }

    fn linear(largest: f64, unit: &str, lines: usize) -> Self {
        let end = if unit.starts_with("bytes") { power_of_two(largest) } else { round_figure(largest) };
        let shares: &[f64] = if lines >= 5 { &[0.0, 0.5, 1.0] } else { &[0.0, 1.0] };
        let labels = shares.iter().map(|share| tick(share * end, unit)).collect();
        Self { bounds: [0.0, end], labels, logarithmic: false }
    }
}

/// A power of ten in a unit: `100 us`, `1 ms`, `10 ms`.
fn decade(power: i32, unit: &str) -> String {
    if unit != "s" {
        return tick(10_f64.powi(power), unit);
    }
    let (name, base) = match power {
        ..-6 => ("ns", -9),
        -6..-3 => ("us", -6),
        -3..0 => ("ms", -3),
        0.. => ("s", 0),
    };
    format!("{} {name}", ebbtide_text::whole(10_f64.powi(power - base)))
}

/// A value at an axis: short, as the title has the unit.
fn tick(value: f64, unit: &str) -> String {
    match unit {
        "/s" | "" => ebbtide_text::without_zeros(&ebbtide_text::figure(value)).to_owned(),
        "s" if value == 0.0 => "0 s".to_owned(),
        _ => in_unit(value, unit),
    }
}

/// 1, 2 or 5 times a power of ten that is not less.
fn round_figure(value: f64) -> f64 {
    let mut figures = (LEAST_DECADE..=LARGEST_DECADE)
        .flat_map(|power| [1.0, 2.0, 5.0].map(|factor| factor * 10_f64.powi(power)));
    if value <= 0.0 { 1.0 } else { figures.find(|figure| *figure >= value).unwrap_or(value) }
}

/// A power of two that is not less.
fn power_of_two(value: f64) -> f64 {
    (10..=62).map(|power| 2_f64.powi(power)).find(|size| *size >= value).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::GraphLine;

    fn graph(unit: &'static str, logarithmic: bool, values: &[Option<f64>]) -> Graph {
        let line = GraphLine { label: "reads".into(), values: values.to_vec() };
        Graph { key: "key", title: "title", unit, logarithmic, start_s: 0, step_s: 1, lines: vec![line] }
    }

    #[test]
    fn decades_of_a_latency_are_labelled() {
        let axis = Axis::new(&graph("s", true, &[Some(0.000_3), None, Some(0.08)]), 9).unwrap();
        assert_eq!(axis.labels, ["100 us", "1 ms", "10 ms", "100 ms"]);
        assert_eq!(axis.bounds, [-4.0, -1.0]);
        assert!((axis.position(0.01).unwrap() + 2.0).abs() < 1e-9);
        assert_eq!([axis.position(0.0), axis.position(-1.0), axis.position(f64::NAN)], [None; 3]);
        assert_eq!(axis.position(10.0), Some(-1.0), "what is outside is drawn on the edge");
    }

    #[test]
    fn few_lines_have_few_labels_at_equal_distances() {
        let axis = Axis::new(&graph("s", true, &[Some(1e-6), Some(3.0)]), 4).unwrap();
        assert_eq!(axis.labels, ["1 us", "10 s"]);
        let axis = Axis::new(&graph("s", true, &[Some(1e-6), Some(3.0)]), 7).unwrap();
        assert_eq!(axis.labels, ["1 us", "1 ms", "1 s", "1,000 s"]);
    }

    #[test]
    fn a_linear_axis_ends_at_a_round_figure_and_begins_at_zero() {
        let labels = |unit, value| Axis::new(&graph(unit, false, &[Some(value)]), 6).unwrap().labels;
        assert_eq!(labels("/s", 2_950.0), ["0", "2,500", "5,000"]);
        assert_eq!(labels("bytes/s", 3e8), ["0 B/s", "256 MiB/s", "512 MiB/s"]);
        assert_eq!(labels("share", 0.0), ["0%", "50%", "100%"]);
        assert_eq!(labels("s", 0.004), ["0 s", "2.50 ms", "5.00 ms"]);
    }

    #[test]
    fn what_has_no_value_has_no_axis() {
        assert_eq!(Axis::new(&graph("s", true, &[Some(0.0), None]), 9), None);
        assert_eq!(Axis::new(&graph("/s", false, &[Some(f64::NAN), Some(f64::INFINITY)]), 9), None);
        for value in [f64::MIN_POSITIVE, f64::MAX] {
            assert!(Axis::new(&graph("s", true, &[Some(value)]), 9).is_some());
            assert!(Axis::new(&graph("/s", false, &[Some(value)]), 9).is_some());
        }
    }
}
