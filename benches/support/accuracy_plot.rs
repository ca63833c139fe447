//! Predicted against measured throughput, as a picture of all comparisons.

use std::fmt::Write as _;

use ebbtide_twin::accuracy::{Comparison, Figure};

const SIZE: f64 = 520.0;
const LEFT: f64 = 64.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 52.0;
const LEGEND: f64 = 240.0;
/// The same rows as those of another experiment, once for each row that calibrates.
const REPEATED: &str = "Percona 2018, each row in turn";
/// Colours that stay apart for most who see few colours: those of Okabe and Ito first.
const COLOURS: [&str; 14] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8c6d31", "#999999",
    "#7b3294", "#a6611a", "#018571", "#ca0020", "#404040",
];

/// The picture: both axes logarithmic, with the line of equals and the band of a quarter around it. What was published is
/// drawn as squares, arms of the lab as circles. Arms that calibrated are no predictions, and in no comparison.
pub(crate) fn svg(rows: &[Comparison]) -> String {
    let shown = |row: &&Comparison| row.figure == Figure::Tps && row.experiment != REPEATED;
    let all: Vec<&Comparison> = rows.iter().filter(shown).collect();
    let values = || all.iter().flat_map(|one| [one.measured, one.predicted]).filter(|value| *value > 0.0);
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    let (low, high) = ((low * 0.8).log10(), (high * 1.25).log10());
    let place = |value: f64| (value.max(1e-9).log10() - low) / (high - low);
    let x = |value: f64| LEFT + place(value) * SIZE;
    let y = |value: f64| TOP + (1.0 - place(value)) * SIZE;
    let (width, height) = (LEFT + SIZE + LEGEND, TOP + SIZE + BOTTOM);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\" font-family=\"sans-serif\" font-size=\"12\">\n<title>Predicted against measured \
         transactions a second</title>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let _ = writeln!(
        text,
        "<clipPath id=\"area\"><rect x=\"{LEFT}\" y=\"{TOP}\" width=\"{SIZE}\" height=\"{SIZE}\"/></clipPath>"
    );
    let (from, to) = (10_f64.powf(low), 10_f64.powf(high));
    band(&mut text, (from, to), &x, &y);
    axes(&mut text, (from, to), &x, &y);
    let mut names: Vec<&str> = Vec::new();
    for one in all {
        let name = one.experiment.as_str();
        if !names.contains(&name) {
            names.push(name);
        }
        let colour = colour(&names, name);
        let (across, up) = (x(one.measured), y(one.predicted));
        let title = format!(
            "<title>{}, {}: measured {:.1}, predicted {:.1}</title>",
            one.experiment, one.arm, one.measured, one.predicted
        );
        let _ = writeln!(text, "{}", mark(name, (across, up), colour, &title));
    }
    for (n, name) in names.iter().enumerate() {
        let (at, colour) = (TOP + 16.0 + 20.0 * n as f64, colour(&names, name));
        let left = LEFT + SIZE + 16.0;
        let sign = mark(name, (left, at), colour, "");
        let _ = writeln!(text, "{sign}<text x=\"{}\" y=\"{}\">{name}</text>", left + 12.0, at + 4.0);
    }
    text.push_str("</svg>\n");
    text
}

/// The mark of an experiment.
fn mark(experiment: &str, (across, up): (f64, f64), colour: &str, inside: &str) -> String {
    if experiment.starts_with("lab,") {
        return format!(
            "<circle cx=\"{across:.1}\" cy=\"{up:.1}\" r=\"4\" fill=\"{colour}\">{inside}</circle>"
        );
    }
    let (left, top) = (across - 3.5, up - 3.5);
    format!("<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"7\" height=\"7\" fill=\"{colour}\">{inside}</rect>")
}

fn colour(names: &[&str], name: &str) -> &'static str {
    let place = names.iter().position(|one| *one == name).unwrap_or(0);
    COLOURS[place % COLOURS.len()]
}

/// The line of equals, and a quarter around it.
fn band(text: &mut String, (from, to): (f64, f64), x: &impl Fn(f64) -> f64, y: &impl Fn(f64) -> f64) {
    let _ = writeln!(
        text,
        "<polygon clip-path=\"url(#area)\" fill=\"#eeeeee\" points=\"{:.1},{:.1} {:.1},{:.1} {:.1},{:.1} {:.1},{:.1}\"/>",
        x(from),
        y(from * 0.75),
        x(to),
        y(to * 0.75),
        x(to),
        y(to * 1.25),
        x(from),
        y(from * 1.25)
    );
    let _ = writeln!(
        text,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"#888888\"/>",
        x(from),
        y(from),
        x(to),
        y(to)
    );
}

/// Ticks at 1, 2 and 5 of each decade, and what the axes are.
fn axes(text: &mut String, (from, to): (f64, f64), x: &impl Fn(f64) -> f64, y: &impl Fn(f64) -> f64) {
    let bottom = TOP + SIZE;
    let _ = writeln!(
        text,
        "<rect x=\"{LEFT}\" y=\"{TOP}\" width=\"{SIZE}\" height=\"{SIZE}\" fill=\"none\" stroke=\"black\"/>"
    );
    let mut decade = 10_f64.powf(from.log10().floor());
    while decade <= to {
        for tick in
            [1.0, 2.0, 5.0].map(|step| step * decade).into_iter().filter(|tick| (from..=to).contains(tick))
        {
            let (across, up) = (x(tick), y(tick));
            let _ = writeln!(
                text,
                "<line x1=\"{across:.1}\" y1=\"{bottom}\" x2=\"{across:.1}\" y2=\"{}\" stroke=\"black\"/><text \
                 x=\"{across:.1}\" y=\"{}\" text-anchor=\"middle\">{tick}</text><line x1=\"{}\" y1=\"{up:.1}\" x2=\"{LEFT}\" \
                 y2=\"{up:.1}\" stroke=\"black\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{tick}</text>",
                bottom + 5.0,
                bottom + 19.0,
                LEFT - 5.0,
                LEFT - 8.0,
                up + 4.0
            );
        }
        decade *= 10.0;
    }
    let _ = writeln!(
        text,
        "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\">measured, transactions a second</text><text \
         transform=\"translate(16 {:.0}) rotate(-90)\" text-anchor=\"middle\">predicted, transactions a second</text>",
        LEFT + SIZE / 2.0,
        bottom + 42.0,
        TOP + SIZE / 2.0
    );
}
