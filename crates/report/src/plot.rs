//! Charts over a common axis.

use serde::Serialize;

use crate::number;

/// Charts over one common axis; their cursors move together.
#[derive(Debug, Clone, Serialize)]
pub struct Plots {
    /// What they show together; empty for none.
    pub heading: String,
    /// A sentence on how to read them; empty for none.
    pub lead: String,
    /// What the axis counts.
    pub axis: Axis,
    /// What the axis counts, in a word.
    pub x_label: String,
    /// The axis, rising.
    #[serde(serialize_with = "number::axis")]
    pub x: Vec<f64>,
    /// The charts.
    pub charts: Vec<Chart>,
    /// A remark under them; empty for none.
    pub foot: String,
    /// Moments to point out in all of them.
    pub marks: Vec<Mark>,
}

/// What an axis counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Axis {
    /// Seconds.
    Time,
    /// Percentiles, as one divided by the share above: 2 is the median, 100 the 99th percentile.
    Percentile,
    /// A count of which each point is a measurement of its own, such as connections: on a log axis of base two,
    /// with the points marked and named.
    Count,
}

/// What belongs together in all plots, such as an arm.
#[derive(Debug, Clone, Serialize)]
pub struct Group {
    /// Its name.
    pub label: String,
    /// The number of its colour and, beyond the last colour, of its dashes.
    pub style: usize,
    /// Whether it is drawn until the reader chooses.
    pub shown: bool,
}

/// One chart.
#[derive(Debug, Clone, Serialize)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// The unit and, where needed, the kind of axis, for people.
    pub unit: String,
    /// How the values are spread over the axis.
    pub scale: Scale,
    /// How values are written.
    pub format: Format,
    /// How much room it has.
    pub width: Width,
    /// How far a linear axis reaches at least, so that noise near zero does not fill the picture; 0 for
    /// as far as the values do.
    pub at_least: f64,
    /// The lines.
    pub series: Vec<Series>,
}

/// How much room a chart has.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Width {
    /// All of the page's width.
    Full,
    /// Half of it, where the screen allows.
    Half,
}

/// How values are spread over an axis.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// From zero.
    Linear,
    /// By powers of ten.
    Log,
    /// From 0 to 100.
    Percent,
    /// As far as the values and their intervals reach, with 1 among them: for ratios.
    Ratio,
}

/// How values are written.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// A plain number.
    Number,
    /// A time given in microseconds.
    Microseconds,
    /// A percentage.
    Percent,
    /// A size given in bytes, written in KiB, MiB, GiB.
    Bytes,
}

/// One line of a chart.
#[derive(Debug, Clone, Serialize)]
pub struct Series {
    /// Its name in the legend.
    pub label: String,
    /// The number of its colour; lines that belong together share it. The group's, where it has one.
    pub color: usize,
    /// How it is drawn.
    pub line: Line,
    /// The number of the group that it belongs to.
    pub group: Option<usize>,
    /// Which repeat of the group it is; none for what is drawn with every one of them.
    pub layer: Option<Layer>,
    /// A value for every point of the axis; none leaves a gap.
    #[serde(serialize_with = "number::rounded_options")]
    pub values: Vec<Option<f64>>,
    /// The interval around each value, drawn as a bar; empty where none has one.
    #[serde(serialize_with = "number::rounded_pairs", skip_serializing_if = "Vec::is_empty")]
    pub intervals: Vec<Option<(f64, f64)>>,
}

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Line {
    /// Solid.
    Solid,
    /// Dashed, to distinguish it from another line of its colour.
    Dashed,
    /// Thin and dotted: a limit, not a measurement.
    Limit,
    /// The area below it, without a line: the times in which something was so.
    Shade,
}

/// Which repeat of its group a line is.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Layer {
    /// Its number, from 0.
    pub number: u32,
    /// Whether it represents its group where only one is drawn.
    pub typical: bool,
}

/// A moment to point out.
#[derive(Debug, Clone, Serialize)]
pub struct Mark {
    /// When, in the unit of the axis.
    pub x: f64,
    /// What happened.
    pub label: String,
    /// The number of the group that it concerns; none for all.
    pub group: Option<usize>,
}
