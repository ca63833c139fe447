//! Response time by percentile, arm by arm.

use ebbtide_load::Bucket;
use ebbtide_report::{Axis, Block, Chart, Format, Layer, Line, Plots, Scale, Section, Series, Width};

use super::PageContext;
use crate::record::Trial;

/// Points of the curve for each power of ten of the share above.
const STEPS: i32 = 12;
/// The curve ends at the percentile with five nines, or where the data do.
const DECADES: i32 = 5;

/// None where no trial has a histogram.
pub(super) fn section(page: &PageContext) -> Option<Section> {
    let most = trials(page).map(|(_, _, trial)| total(histogram(trial))).max()?;
    let x: Vec<f64> = axis().into_iter().filter(|above| *above <= most as f64).collect();
    if x.len() < 2 {
        return None;
    }
    let series = trials(page).map(|(group, layer, trial)| Series {
        label: String::new(),
        color: 0,
        line: Line::Solid,
        group: Some(group),
        layer: Some(layer),
        values: percentiles(histogram(trial), &x),
        intervals: Vec::new(),
    });
    let chart = Chart {
        title: "Response time by percentile".into(),
        unit: "log scale; how long the slowest share of the transactions took".into(),
        scale: Scale::Log,
        format: Format::Microseconds,
        width: Width::Full,
        at_least: 0.0,
        series: series.collect(),
    };
    let plots = Plots {
        heading: String::new(),
        lead: String::new(),
        axis: Axis::Percentile,
        x_label: "percentile".into(),
        x,
        charts: vec![chart],
        foot: String::new(),
        marks: Vec::new(),
    };
    Some(Section::new("Response time", vec![Block::Plots(plots)]).lead(lead(page)))
}

fn lead(page: &PageContext) -> String {
    let mut lead = "All transactions of a trial, from its first measured second to its last.".to_owned();
    let loads = || trials(page).filter_map(|(_, _, trial)| trial.load.as_ref());
    if loads().any(|load| load.open_loop().is_some()) {
        lead += " Response time counts from the moment at which a transaction was due.";
    }
    if loads().any(|load| load.omission().as_ref().is_some_and(|omission| omission.misleading)) {
        lead += " Connections wait for their answers here, so that a stall delays the transactions that would have \
                 come meanwhile without counting them: the true tail is longer than this.";
    }
    lead
}

/// The trials that count and have a histogram, each with its arm and its place in it.
fn trials<'a>(page: &'a PageContext) -> impl Iterator<Item = (usize, Layer, &'a Trial)> {
    page.arms.iter().enumerate().flat_map(|(group, view)| {
        view.trials.iter().enumerate().filter(|(_, trial)| total(histogram(trial)) > 0).map(
            move |(index, trial)| {
                (group, Layer { number: trial.repeat, typical: index == view.typical }, *trial)
            },
        )
    })
}

fn histogram(trial: &Trial) -> &[Bucket] {
    trial.load.as_ref().map_or(&[], |load| load.histogram().as_slice())
}

fn total(buckets: &[Bucket]) -> u64 {
    buckets.iter().map(|bucket| bucket.count).sum()
}

/// One divided by the share of the transactions above: even steps on a log axis, and the percentiles
/// that people name.
fn axis() -> Vec<f64> {
    let even = (0..=STEPS * DECADES).map(|step| 10_f64.powf(f64::from(step) / f64::from(STEPS)));
    let mut axis: Vec<f64> = even.chain([2.0, 4.0, 20.0]).collect();
    axis.sort_by(f64::total_cmp);
    axis
}

/// The response time at every point of the axis, us; none beyond the slowest transaction.
fn percentiles(buckets: &[Bucket], axis: &[f64]) -> Vec<Option<f64>> {
    let total = total(buckets) as f64;
    let mut below = 0.0;
    let mut buckets = buckets.iter();
    let mut reached = 0.0;
    let mut at = |above: f64| {
        if above > total {
            return None;
        }
        let wanted = total * (1.0 - 1.0 / above);
        while below < wanted.max(1.0) {
            let bucket = buckets.next()?;
            below += bucket.count as f64;
            reached = bucket.up_to_us;
        }
        Some(reached)
    };
    axis.iter().map(|above| at(*above)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_bucket_that_holds_it() {
        let bucket = |up_to_us, count| Bucket { up_to_us, count };
        let buckets = [bucket(100.0, 90), bucket(200.0, 9), bucket(5_000.0, 1)];
        let found = percentiles(&buckets, &[1.0, 2.0, 10.0, 20.0, 100.0, 1000.0]);
        assert_eq!(found, [Some(100.0), Some(100.0), Some(100.0), Some(200.0), Some(200.0), None]);
    }

    #[test]
    fn the_axis_rises_and_names_the_usual_percentiles() {
        let axis = axis();
        assert!(axis.windows(2).all(|pair| pair[0] < pair[1]));
        for above in [2.0, 20.0, 100.0, 1000.0] {
            assert!(axis.iter().any(|at: &f64| (at / above - 1.0).abs() < 1e-9), "{above}");
        }
    }
}
