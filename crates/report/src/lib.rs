//! Reports: series in, one HTML file out that opens offline.
//!
//! A [`Report`] is plain data; [`Report::to_html`] puts it as JSON into a page that carries its own
//! styles, script and chart library (`assets/report`, `assets/uplot`). Every text enters the page
//! as a text node, so no value can become markup.

#![forbid(unsafe_code)]

use serde::Serialize;

const PAGE: &str = include_str!("../assets/report/page.html");
const STYLES: &str = include_str!("../assets/report/page.css");
const SCRIPT: &str = include_str!("../assets/report/page.js");
const LIBRARY: &str = include_str!("../assets/uplot/uPlot.iife.min.js");
const LIBRARY_STYLES: &str = include_str!("../assets/uplot/uPlot.min.css");
const LIBRARY_LICENCE: &str = include_str!("../assets/uplot/LICENSE");

/// A whole page.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The heading and the window's title.
    pub title: String,
    /// One line under the heading.
    pub subtitle: String,
    /// What the reader should know first, one sentence each.
    pub findings: Vec<String>,
    /// Labels and values, in two columns.
    pub facts: Vec<Fact>,
    /// Charts and tables.
    pub sections: Vec<Section>,
    /// Remarks at the end.
    pub notes: Vec<String>,
    /// Texts that the command reads, under their names.
    pub listings: Vec<Fact>,
    /// The command that makes this report again.
    pub command: String,
    /// The last line.
    pub footer: String,
}

/// A label and its value.
#[derive(Debug, Clone, Serialize)]
pub struct Fact {
    /// What it is.
    pub label: String,
    /// The value with its unit.
    pub value: String,
}

impl Fact {
    /// A label and its value.
    pub fn new(label: impl Into<String>, value: impl Into<String>) -> Self {
        Self { label: label.into(), value: value.into() }
    }
}

/// Charts over one common time axis, and a table.
#[derive(Debug, Clone, Serialize)]
pub struct Section {
    /// Its heading.
    pub heading: String,
    /// A sentence on how to read it.
    pub lead: Option<String>,
    /// What the axis counts, for the legend.
    pub x_label: String,
    /// The axis, in seconds, rising.
    pub x: Vec<f64>,
    /// The charts; their cursors move together.
    pub charts: Vec<Chart>,
    /// A table under them.
    pub table: Option<Table>,
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
    /// The lines.
    pub series: Vec<Series>,
    /// Moments to point out.
    pub marks: Vec<Mark>,
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
}

/// One line of a chart.
#[derive(Debug, Clone, Serialize)]
pub struct Series {
    /// Its name in the legend.
    pub label: String,
    /// The number of its colour; lines that belong together share it.
    pub color: usize,
    /// Whether it is dashed, to tell it from another line of its colour.
    pub dashed: bool,
    /// A value for every point of the section's axis; none leaves a gap.
    pub values: Vec<Option<f64>>,
}

/// A moment to point out.
#[derive(Debug, Clone, Serialize)]
pub struct Mark {
    /// When, in the unit of the axis.
    pub x: f64,
    /// What happened.
    pub label: String,
}

/// A table of ready texts.
#[derive(Debug, Clone, Serialize)]
pub struct Table {
    /// The headings, with units.
    pub columns: Vec<String>,
    /// The rows, as wide as the headings.
    pub rows: Vec<Vec<String>>,
}

impl Report {
    /// The page.
    pub fn to_html(&self) -> String {
        let data = serde_json::to_string(self).expect("a report is plain data with finite numbers");
        let styles = format!("{LIBRARY_STYLES}\n{STYLES}");
        fill(PAGE, |name| match name {
            "title" => escape_text(&self.title),
            "styles" => styles.clone(),
            "licence" => format!("uPlot, embedded below:\n\n{LIBRARY_LICENCE}"),
            "library" => LIBRARY.to_owned(),
            "data" => escape_json(&data),
            "script" => SCRIPT.to_owned(),
            _ => unreachable!("the page names only the parts above: {name}"),
        })
    }
}

/// Replaces every `{{name}}` of a page once, so that no inserted text is searched again.
fn fill(page: &str, part: impl Fn(&str) -> String) -> String {
    let mut filled = String::new();
    let mut rest = page;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, tail) = after.split_once("}}").expect("the page closes its placeholders");
        filled.push_str(before);
        filled.push_str(&part(name));
        rest = tail;
    }
    filled + rest
}

fn escape_text(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// JSON that may stand inside a script element. These characters only occur inside its strings,
/// where the escape means the same.
fn escape_json(json: &str) -> String {
    json.replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(title: &str) -> Report {
        Report {
            title: title.into(),
            subtitle: String::new(),
            findings: Vec::new(),
            facts: vec![Fact::new("spec", title)],
            sections: Vec::new(),
            notes: Vec::new(),
            listings: Vec::new(),
            command: format!("ebbtide simulate --volume '{title}'"),
            footer: String::new(),
        }
    }

    #[test]
    fn no_value_can_end_the_script_or_open_a_comment() {
        let nasty = "</script><script>alert(1)</script><!-- {{script}} & co";
        let html = report(nasty).to_html();
        assert!(!html.contains("alert(1)</script>"));
        let start = html.find(r#"id="data">"#).expect("the data") + r#"id="data">"#.len();
        let data = &html[start..];
        let data = &data[..data.find("</script>").expect("the data end")];
        let parsed: serde_json::Value = serde_json::from_str(data).expect("the data are JSON");
        assert_eq!(parsed["title"], nasty);
        assert_eq!(html.matches("</script>").count(), 3, "the three of the page itself");
    }

    #[test]
    fn a_page_loads_nothing_from_elsewhere_and_carries_the_licence_of_its_library() {
        let html = report("plain").to_html();
        for loader in ["<link", "src=\"", "@import", "url("] {
            assert!(!html.contains(loader), "{loader}");
        }
        assert!(html.contains("default-src 'none'") && html.contains("Copyright (c) 2022 Leon Sorokin"));
        assert!(!html.contains("{{title}}") && html.contains("<title>plain</title>"));
    }
}
