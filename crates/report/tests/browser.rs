//! Every kind of block, in a real browser.

#![allow(clippy::unwrap_used, reason = "helpers of tests too")]

use ebbtide_report::{
    Axis, Band, Bands, Block, Cell, Chart, Estimate, Estimates, Fact, Fold, Format, Group, Layer, Line, Link,
    Listing, Mark, Note, Plots, Report, Scale, Section, Series, Table, Tone, Verdict, Width,
};
use ebbtide_testing::browser::{browse, without_scripts};

fn plots(axis: Axis, scale: Scale) -> Plots {
    let series = |group: usize, number: u32| Series {
        label: String::new(),
        color: 0,
        line: Line::Solid,
        group: Some(group),
        layer: Some(Layer { number, typical: number == 0 }),
        values: vec![Some(1.0), None, Some(f64::NAN), Some(0.0), Some(40.0)],
        intervals: Vec::new(),
    };
    let chart = Chart {
        title: "A chart".into(),
        unit: "units".into(),
        scale,
        format: Format::Microseconds,
        width: Width::Half,
        at_least: 0.0,
        series: vec![series(0, 0), series(0, 1), series(1, 0)],
    };
    Plots {
        heading: "Plots".into(),
        lead: String::new(),
        axis,
        x_label: "time".into(),
        x: vec![1.0, 2.0, 10.0, 100.0, 1000.0],
        charts: vec![chart],
        foot: "A foot".into(),
        marks: vec![Mark { x: 2.0, label: "a mark".into(), group: None }],
    }
}

/// Measurements at counts, with an interval, without one, and with one that reaches far.
fn curve() -> Plots {
    let mut curve = plots(Axis::Count, Scale::Ratio);
    let chart = &mut curve.charts[0];
    chart.width = Width::Full;
    chart.format = Format::Number;
    chart.series.truncate(1);
    let line = &mut chart.series[0];
    (line.group, line.layer, line.label) = (None, None, "a curve".into());
    line.values = vec![Some(1.5), None, Some(f64::NAN), Some(1.0), Some(2.5)];
    line.intervals = vec![Some((1.4, 1.6)), None, None, Some((f64::NAN, 1.0)), Some((0.5, 4.0))];
    curve
}

fn estimates(mid: Option<f64>, interval: Option<(f64, f64)>) -> Estimates {
    let row = Estimate {
        label: "a row".into(),
        detail: String::new(),
        group: Some(1),
        mid,
        interval,
        points: mid.into_iter().collect(),
        text: "its text".into(),
        text_detail: String::new(),
    };
    Estimates {
        title: "Estimates".into(),
        unit: "ratio".into(),
        scale: Scale::Log,
        suffix: "x".into(),
        reference: Some((1.0, "equal".into())),
        band: Some((0.98, 1.02)),
        band_label: "noise".into(),
        points_label: "one".into(),
        mid_label: "mean".into(),
        rows_label: "Row".into(),
        texts_label: "Text".into(),
        rows: vec![row],
    }
}

fn blocks() -> Vec<Block> {
    let barred = Cell { bar: Some(0.25), ..Cell::from("a share") };
    let cell = Cell { spark: vec![Some(1.0), None, Some(3.0)], ..Cell::default() };
    let verdict = Verdict {
        figure: "12x".into(),
        context: "here".into(),
        headline: "a headline".into(),
        details: vec!["a detail".into()],
        tone: Tone::Good,
    };
    vec![
        Block::Verdicts(vec![verdict]),
        Block::Findings(vec!["a finding".into()]),
        Block::Heading("a heading".into()),
        Block::Text("a paragraph".into()),
        Block::Facts(vec![Fact::new("a label", "a value")]),
        Block::Table(Table {
            caption: "a caption".into(),
            columns: vec!["Name".into(), "Share".into(), "Shape".into()],
            rows: vec![vec![Cell { group: Some(0), ..Cell::from("a name") }, barred, cell]],
            sortable: true,
            prose: false,
            words: false,
            ..Table::default()
        }),
        Block::Estimates(estimates(Some(12.0), Some((0.1, 1e9)))),
        Block::Estimates(estimates(None, None)),
        Block::Listing(Listing { label: "a listing".into(), text: "its lines".into() }),
        Block::Notes(vec![Note::plain("a note"), Note::caution("a warning")]),
        Block::Plots(plots(Axis::Time, Scale::Linear)),
        Block::Plots(plots(Axis::Percentile, Scale::Log)),
        Block::Plots(curve()),
        Block::Link(Link { text: "a neighbour".into(), file: "gain/report.html".into() }),
        Block::Link(Link { text: "a stranger".into(), file: "https://example.com/".into() }),
        Block::Bands(Bands {
            title: "a torn page".into(),
            filled_label: "written".into(),
            empty_label: "left".into(),
            rows: vec![Band {
                label: "a version".into(),
                start: "a head".into(),
                end: "a tail".into(),
                parts: vec![true, false],
                tone: Tone::Bad,
            }],
        }),
        Block::Fold(Fold { summary: "a fold".into(), blocks: vec![Block::Text("inside".into())] }),
    ]
}

#[test]
fn every_kind_of_block_is_drawn_without_a_complaint() {
    let group = |label: &str, style| Group { label: label.into(), style, shown: true };
    let report = Report {
        title: "All blocks".into(),
        groups: vec![group("one", 0), group("two", 9)],
        groups_label: "Arms".into(),
        layers_label: "trial".into(),
        sections: vec![Section::new("A section", blocks()).lead("a lead")],
        ..Report::default()
    };
    let Some((dom, console)) = browse(&report.to_html()) else { return };
    assert_eq!(console, "");
    for text in [
        "12x",
        "a headline",
        "a detail",
        "a finding",
        "<h3>a heading</h3>",
        "a paragraph",
        "a value",
        "a caption",
        "a name",
        "its text",
        "its lines",
        "a warning",
        "A foot",
        "a fold",
        "inside",
        "a lead",
        "a torn page",
        "a version",
        "a head",
        "a tail",
        r#"aria-label="written, left""#,
    ] {
        assert!(dom.contains(text), "'{text}' is missing");
    }
    assert_eq!(dom.matches(r#"class="bar""#).count(), 1, "a bar for the share");
    assert_eq!(dom.matches("<canvas").count(), 3, "a canvas for every chart");
    assert!(dom.contains("a curve"), "its name");
    assert!(dom.contains(r#"<a href="gain/report.html">a neighbour</a>"#), "a link");
    assert!(dom.contains("a stranger") && !dom.contains("example.com\">"), "no link leads out");
    assert!(dom.contains("every trial"), "the choice of layers");
    let main = dom.split_once("<main").unwrap().1.split_once("</main>").unwrap().0;
    let notes: Vec<&str> = main.split("An arrow: ").collect();
    let hidden = notes.iter().filter(|before| before.ends_with(r#"hidden="">"#)).count();
    assert_eq!((notes.len() - 1, hidden), (3, 2), "said of the one interval that reaches beyond its chart");
    assert!(!main.contains("NaN") && !main.contains("undefined"), "no value went wrong: {main}");
}

#[test]
fn spans_on_an_axis_have_the_form_that_they_have_in_a_sentence() {
    let html = Report { title: "Spans".into(), ..Report::default() }.to_html();
    // Within the page's own function, once all of it has run.
    let ask = r#"(function () {addEventListener("load", () =>
        document.body.append("spans: " + [0, 0.5, 90, 3605, 5400].map(duration).join("; ")));"#;
    let Some((dom, console)) = browse(&html.replacen("(function () {\n\"use strict\";", ask, 1)) else {
        return;
    };
    assert_eq!(console, "");
    let dom = dom.replace("&nbsp;", " ").replace('\u{a0}', " ");
    assert!(dom.contains("spans: 0; 0.5 s; 1 min 30 s; 1 h 5 s; 1 h 30 min"), "{dom}");
}

#[test]
fn without_javascript_the_page_has_all_but_the_charts_and_their_main_figures() {
    let group = |label: &str, style| Group { label: label.into(), style, shown: true };
    let report = Report {
        title: "All blocks".into(),
        subtitle: "a subtitle".into(),
        groups: vec![group("one", 0), group("two", 9)],
        sections: vec![Section::new("A section", blocks()).lead("a lead")],
        footer: "the end".into(),
        ..Report::default()
    };
    let (page, text) = without_scripts(&report.to_html());
    let all = "All blocks|a subtitle|draws its charts with JavaScript|A section|a lead|12x|a headline|a detail|\
               a finding|a heading|a paragraph|a label a value|a caption Name Share|a name a share|\
               Estimates (ratio) Row Text a row its text|a listing its lines|a note a warning|a foot|\
               a neighbour|a stranger|a torn page|a version a head written, left a tail|a fold inside|the end";
    for part in all.split('|').map(str::trim) {
        assert!(text.to_lowercase().contains(&part.to_lowercase()), "'{part}' is missing in: {text}");
    }
    // Over time: 0, 40 and what is between; over counts: the value at each point, with its interval.
    assert!(text.contains("Lowest Mean Highest Last"), "{text}");
    assert!(text.contains("a curve 1.5 1.4 to 1.6 \u{2013} \u{2013} 1 2.5 0.5 to 4"), "{text}");
    assert!(text.contains("at 2 s: a mark"), "{text}");
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    assert!(page.contains(r#"<a href="gain/report.html">a neighbour</a>"#), "a link next to the page");
    assert!(!page.contains("href=\"https:"), "no link leads out");
    let Some((dom, console)) = browse(&page) else { return };
    assert_eq!(console, "");
    assert!(
        dom.contains("<details class=\"fold\">") && dom.contains("<footer>the end</footer>"),
        "well formed"
    );
    assert!(dom.trim_end().ends_with("</html>") && !dom.contains("<canvas"));
}

#[test]
fn the_script_writes_figures_as_the_program_does() {
    use ebbtide_text::{bytes, figure, latency, typeset, without_zeros};

    let mut values =
        vec![0.0, 0.5, 2.5, 9.995, 99.95, 999.4, 999.5, 999.6, 1023.4, 1234.5, 12.25, 0.125, 999_600.0];
    // Three values of each power of ten and of two, near where digits and units change.
    for power in -4..13 {
        values.extend([1.004, 3.456, 9.996].map(|digit| digit * 10_f64.powi(power)));
    }
    for power in 0..45 {
        values.extend([0.9994, 0.9996, 1.5].map(|part| part * 2_f64.powi(power)));
    }
    let plain = |text: &str| match text.split_once(' ') {
        Some((figure, unit)) => typeset(&format!("{} {unit}", without_zeros(figure))),
        None => without_zeros(text).to_owned(),
    };
    let expected = values
        .iter()
        .map(|&value| [figure(value), latency(value), bytes(value)].map(|text| plain(&text)).join("|"));
    let expected: Vec<String> = expected.collect();
    let html = format!(
        "<!doctype html><meta charset=\"utf-8\"><body><pre></pre><script>{}\nconst values = {values:?};\n\
         document.querySelector('pre').textContent = values.map((value) => \
         [short(value), microseconds(value), bytes(value)].join('|')).join('\\n');</script></body>",
        include_str!("../assets/report/text.js")
    );
    let Some((dom, console)) = browse(&html) else { return };
    assert_eq!(console, "");
    let text = dom.split_once("<pre>").unwrap().1.split_once("</pre>").unwrap().0.replace("&nbsp;", "\u{a0}");
    let written: Vec<&str> = text.split('\n').collect();
    assert_eq!(written.len(), values.len());
    let lines = values.iter().zip(&expected).zip(written);
    let unlike: Vec<_> = lines.filter(|((_, expected), written)| *expected != written).collect();
    assert!(unlike.is_empty(), "value and what the program writes, then what the script writes: {unlike:?}");
}
