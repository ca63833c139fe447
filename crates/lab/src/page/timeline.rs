//! Series over the seconds of the measurement, one for every arm and trial.

use ebbtide_report::{Axis, Chart, Format, Layer, Line, Mark, Plots, Scale, Series, Width};

use super::{ArmView, PageContext, text};
use crate::record::{Second, Trial};
use crate::summary::{Cause, TrialWindow};

/// More points than this are more than a chart has pixels for: neighbours are averaged.
const POINTS: usize = 600;

/// Points of all trials together in a chart: with more, a page of hundreds of trials could not be mailed.
const ALL_POINTS: usize = 12_000;

/// A trial has so many points in any case.
const FEWEST: usize = 30;

/// A figure of a second; none where it was not measured.
pub(super) type Figure<'a> = &'a dyn Fn(&Second) -> Option<f64>;

/// What an arm was allowed in a second; none without a limit.
pub(super) type Allowed<'a> = &'a dyn Fn(usize, &Second) -> Option<f64>;

/// A limit this many times above everything measured shows that it did not matter.
const FLATTENS: f64 = 2.5;

/// A warm-up from this length on is pointed out, s.
const CUT: f64 = 3.0;

/// The common axis of all charts over time.
pub(super) struct Timeline<'a> {
    page: &'a PageContext<'a>,
    x: Vec<f64>,
    /// Seconds in a point.
    step: usize,
}

/// Charts that are being gathered, and what was zero in all of them.
pub(super) struct Panel<'a> {
    timeline: &'a Timeline<'a>,
    charts: Vec<Chart>,
    zero: Vec<String>,
}

impl<'a> Timeline<'a> {
    pub(super) fn new(page: &'a PageContext<'a>) -> Self {
        let trials = page.arms.iter().flat_map(|view| &view.trials);
        let points = (ALL_POINTS / trials.clone().count().max(1)).clamp(FEWEST, POINTS);
        let length = trials.flat_map(|trial| &trial.seconds).map(position).max().map_or(0, |last| last + 1);
        let step = length.div_ceil(points).max(1);
        let x = (1..=length.div_ceil(step)).map(|point| (point * step) as f64).collect();
        Self { page, x, step }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.x.is_empty()
    }

    /// Seconds in a point, where it is more than one.
    pub(super) fn averaged(&self) -> Option<usize> {
        (self.step > 1).then_some(self.step)
    }

    pub(super) fn panel(&'a self) -> Panel<'a> {
        Panel { timeline: self, charts: Vec::new(), zero: Vec::new() }
    }

    /// The trials that count, each with its arm and its place in it.
    fn trials(&self) -> impl Iterator<Item = (usize, Layer, &'a Trial)> {
        self.page.arms.iter().enumerate().flat_map(|(group, view)| {
            view.trials.iter().enumerate().map(move |(index, trial)| {
                (group, Layer { number: trial.repeat, typical: index == view.typical }, *trial)
            })
        })
    }

    /// The values of a trial at the points of the axis.
    fn values(&self, trial: &Trial, figure: Figure) -> Vec<Option<f64>> {
        let mut sums = vec![(0.0, 0.0); self.x.len()];
        for second in &trial.seconds {
            if let (Some(value), Some(sum)) = (figure(second), sums.get_mut(position(second) / self.step)) {
                *sum = (sum.0 + value, sum.1 + 1.0);
            }
        }
        sums.into_iter().map(|(sum, count)| (count > 0.0).then(|| sum / count)).collect()
    }

    /// A line for every arm and trial; none for those that never measured it.
    fn series(
        &self,
        label: &str,
        line: Line,
        figure: &dyn Fn(&Trial, &Second) -> Option<f64>,
    ) -> Vec<Series> {
        let all = self.trials().map(|(group, layer, trial)| Series {
            label: label.to_owned(),
            color: 0,
            line,
            group: Some(group),
            layer: Some(layer),
            values: self.values(trial, &|second| figure(trial, second)),
            intervals: Vec::new(),
        });
        all.filter(|series| series.values.iter().any(Option::is_some)).collect()
    }

    /// Moments at which the conditions of an arm changed, in its typical trial; those that all arms have
    /// in common only once.
    fn marks(&self) -> Vec<Mark> {
        let arms = self.page.arms.iter().enumerate().filter(|(_, view)| !view.trials.is_empty());
        let changes: Vec<(usize, f64, Cause)> = arms
            .flat_map(|(group, view)| {
                changes(self.page, view).into_iter().map(move |(at, why)| (group, at, why))
            })
            .collect();
        let measured = self.page.arms.iter().filter(|view| !view.trials.is_empty()).count();
        let everywhere = |at: f64, why: Cause| {
            let same = |change: &&(usize, f64, Cause)| (change.1 - at).abs() < 1.5 && change.2 == why;
            changes.iter().filter(same).count() >= measured
        };
        let mark = |&(group, at, why): &(usize, f64, Cause)| {
            if everywhere(at, why) {
                return Mark { x: at.round(), label: text::cause(why).to_owned(), group: None };
            }
            let label = format!("{}: {}", self.page.arms[group].name, text::cause(why));
            Mark { x: at, label, group: Some(group) }
        };
        let begins = self.page.arms.iter().enumerate().filter_map(|(group, view)| {
            let from = typical_window(self.page, view)?.from_s;
            let label = format!("{}: counted from here", view.name);
            (from >= CUT).then_some(Mark { x: from, label, group: Some(group) })
        });
        changes.iter().map(mark).chain(begins).collect()
    }
}

fn changes(page: &PageContext, view: &ArmView) -> Vec<(f64, Cause)> {
    typical_window(page, view)
        .map_or(Vec::new(), |window| window.changes.iter().map(|one| (one.t_s, one.cause)).collect())
}

fn typical_window<'a>(page: &PageContext<'a>, view: &ArmView) -> Option<&'a TrialWindow> {
    page.window(view.trials.get(view.typical)?)
}

/// Which second of the measurement it is, from 0.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to what fits")]
fn position(second: &Second) -> usize {
    (second.t_s.round() - 1.0).clamp(0.0, 1e7) as usize
}

impl Panel<'_> {
    /// Adds a chart with the lines that anything is known of. Figures that were zero throughout are
    /// named and not drawn.
    pub(super) fn chart(&mut self, about: About, lines: &[(&str, Line, Figure)]) {
        let of_line = |(label, line, figure): &(&str, Line, Figure)| {
            self.timeline.series(label, *line, &|_, second| figure(second))
        };
        let series = lines.iter().flat_map(of_line).collect();
        self.add(about, series);
    }

    /// As [`Self::chart`], with one line that depends on the trial besides.
    pub(super) fn chart_of_trials(&mut self, about: About, figure: &dyn Fn(&Trial, &Second) -> Option<f64>) {
        let series = self.timeline.series("", Line::Solid, figure);
        self.add(about, series);
    }

    fn add(&mut self, about: About, series: Vec<Series>) {
        let (title, unit, scale, format, width) = about;
        let measured = |series: &&Series| series.line != Line::Limit;
        if !series.iter().any(|series| measured(&series)) {
            return;
        }
        let mut values = series.iter().filter(measured).flat_map(|series| series.values.iter().flatten());
        if values.all(|value| *value == 0.0) {
            self.zero.push(title.to_lowercase());
            return;
        }
        let (title, unit, at_least) = (title.into(), unit.into(), 0.0);
        self.charts.push(Chart { title, unit, scale, format, width, at_least, series });
    }

    /// Has all linear axes so far reach at least this.
    pub(super) fn at_least(&mut self, value: f64) {
        for chart in &mut self.charts {
            chart.at_least = value;
        }
    }

    /// Adds to the chart of this name what each arm was allowed, second by second. Left out where it is
    /// so far above everything measured that it would flatten the picture.
    pub(super) fn limit(&mut self, title: &str, allowed: Allowed) {
        let Some(chart) = self.charts.iter_mut().find(|chart| chart.title == title) else { return };
        let highest = |series: &[Series]| {
            series.iter().flat_map(|series| series.values.iter().flatten()).copied().fold(0.0, f64::max)
        };
        let typical = self.timeline.trials().filter(|(_, layer, _)| layer.typical);
        let lines: Vec<Series> = typical
            .map(|(group, _, trial)| Series {
                label: "limit".to_owned(),
                color: 0,
                line: Line::Limit,
                group: Some(group),
                layer: None,
                values: self.timeline.values(trial, &|second| allowed(group, second)),
                intervals: Vec::new(),
            })
            .filter(|series| series.values.iter().any(Option::is_some))
            .collect();
        if lines.is_empty() || highest(&lines) > FLATTENS * highest(&chart.series) {
            return;
        }
        chart.unit += "; dotted: the limit";
        chart.series.extend(lines);
    }

    /// The charts; none where nothing was measured.
    pub(super) fn plots(self, heading: &str) -> Option<Plots> {
        if self.charts.is_empty() && self.zero.is_empty() {
            return None;
        }
        let foot = match self.zero.is_empty() {
            true => String::new(),
            false => format!("Zero throughout: {}.", text::list(&self.zero)),
        };
        Some(Plots {
            heading: heading.into(),
            lead: String::new(),
            axis: Axis::Time,
            x_label: "time".into(),
            x: self.timeline.x.clone(),
            charts: self.charts,
            foot,
            marks: self.timeline.marks(),
        })
    }
}

/// What a chart shows: title, unit, scale, format and width.
pub(super) type About = (&'static str, &'static str, Scale, Format, Width);
