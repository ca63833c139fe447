//! The page: a template, its styles and script, and the report as markup and as JSON.

use crate::{Report, plain};

const PAGE: &str = include_str!("../assets/report/page.html");
const STYLES: &str = include_str!("../assets/report/page.css");
const SCRIPTS: [&str; 5] = [
    include_str!("../assets/report/text.js"),
    include_str!("../assets/report/plots.js"),
    include_str!("../assets/report/estimates.js"),
    include_str!("../assets/report/blocks.js"),
    include_str!("../assets/report/page.js"),
];
const LIBRARY: &str = include_str!("../assets/uplot/uPlot.iife.min.js");
const LIBRARY_STYLES: &str = include_str!("../assets/uplot/uPlot.min.css");
const LIBRARY_LICENCE: &str = include_str!("../assets/uplot/LICENSE");

/// The files of a page with charts, for pages of other crates that look like reports. They load nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageFiles {
    /// The styles of the pages, with their colours for light and dark.
    pub styles: &'static str,
    /// The script with elements, colours and figures: statements for the beginning of a function.
    pub text_script: &'static str,
    /// The chart library, uPlot: a script that defines one function. Its origin is in `assets/uplot/PROVENANCE.md`.
    pub chart_script: &'static str,
    /// The styles of the chart library.
    pub chart_styles: &'static str,
    /// The licence of the chart library, which goes wherever its script goes.
    pub chart_licence: &'static str,
}

/// The files that every report has inside.
pub const PAGE_FILES: PageFiles = PageFiles {
    styles: STYLES,
    text_script: SCRIPTS[0],
    chart_script: LIBRARY,
    chart_styles: LIBRARY_STYLES,
    chart_licence: LIBRARY_LICENCE,
};

impl Report {
    /// The page.
    pub fn to_html(&self) -> String {
        let data = serde_json::to_string(self).expect("a report is plain data");
        let styles = format!("{LIBRARY_STYLES}\n{STYLES}");
        fill(PAGE, |name| match name {
            "title" => plain::escaped(&self.title),
            "content" => plain::markup(self),
            "styles" => styles.clone(),
            "licence" => format!("uPlot, embedded below:\n\n{LIBRARY_LICENCE}"),
            "library" => LIBRARY.to_owned(),
            "data" => escape_json(&data),
            "script" => SCRIPTS.concat(),
            _ => unreachable!("the page names only the parts above: {name}"),
        })
    }
}

/// Replaces every `{{name}}` of a page once, so that no inserted text is searched again.
///
/// # Panics
/// The page opens a placeholder and does not close it.
#[must_use]
pub fn fill(page: &str, part: impl Fn(&str) -> String) -> String {
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

/// JSON that is allowed inside a script element. These characters only occur inside its strings,
/// where the escape means the same.
fn escape_json(json: &str) -> String {
    json.replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Block, Fact, Listing, Section};

    fn report(title: &str) -> Report {
        let command = Listing { label: String::new(), text: format!("ebbtide simulate --volume '{title}'") };
        Report {
            title: title.into(),
            sections: vec![Section::new(
                title,
                vec![Block::Facts(vec![Fact::new("spec", title)]), Block::Listing(command)],
            )],
            ..Report::default()
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
