//! The page without JavaScript: everything but the charts as markup, and the main figures of each chart as a table.
//!
//! The script replaces all of it as soon as it runs. What it draws and what is here come from the same blocks.

use std::fmt::Write as _;

use crate::{
    Axis, Block, Cell, Chart, Fact, Fold, Format, Group, Line as LineStyle, Link, Listing, Medium, Note,
    Plots, Report, Section, Series, Table, Verdict,
    number::{bytes, duration, microseconds, short},
};

/// Percentiles of a chart over percentiles that its table has, as the axis counts them and by name.
const PERCENTILES: [(f64, &str); 4] = [(2.0, "p50"), (20.0, "p95"), (100.0, "p99"), (1000.0, "p99.9")];

/// Where there is no value.
const NONE: &str = "\u{2013}";

/// The content of the page's `main` element.
pub(crate) fn markup(report: &Report) -> String {
    let mut page = Plain { groups: &report.groups, out: String::new() };
    page.element("h1", "", &report.title);
    page.element("p", "subtitle", &report.subtitle);
    page.out.push_str(
        "<p class=\"lead\">This page draws its charts with JavaScript, which does not run here. The main figures of \
         each chart are in a table instead.</p>\n",
    );
    let shown: Vec<&Section> =
        report.sections.iter().filter(|section| section.is_for(Medium::Page)).collect();
    page.contents(&shown);
    for (index, section) in shown.into_iter().enumerate() {
        let _ = writeln!(page.out, "<section id=\"s{index}\">");
        page.element("h2", "", &section.heading);
        page.element("p", "lead", &section.lead);
        page.blocks(&section.blocks);
        page.out.push_str("</section>\n");
    }
    page.element("footer", "", &report.footer);
    page.out
}

/// Text as a text node or the value of an attribute in double quotes.
#[must_use]
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

struct Plain<'a> {
    groups: &'a [Group],
    out: String,
}

impl Plain<'_> {
    /// An element with a text; nothing where there is none.
    fn element(&mut self, name: &str, class: &str, text: &str) {
        if text.is_empty() {
            return;
        }
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        let _ = writeln!(self.out, "<{name}{class}>{}</{name}>", escaped(text));
    }

    fn contents(&mut self, sections: &[&Section]) {
        let named = || sections.iter().enumerate().filter(|(_, section)| !section.heading.is_empty());
        if named().count() < 4 {
            return;
        }
        self.out.push_str("<nav aria-label=\"Contents\">");
        for (index, section) in named() {
            let _ = write!(self.out, "<a href=\"#s{index}\">{}</a> ", escaped(&section.heading));
        }
        self.out.push_str("</nav>\n");
    }

    fn blocks(&mut self, blocks: &[Block]) {
        for block in blocks {
            match block {
                Block::Verdicts(verdicts) => self.verdicts(verdicts),
                Block::Findings(findings) => {
                    self.out.push_str("<div class=\"findings\">");
                    findings.iter().for_each(|text| self.element("p", "", text));
                    self.out.push_str("</div>\n");
                }
                Block::Heading(text) => self.element("h3", "", text),
                Block::Text(text) => self.element("p", "text", text),
                Block::Facts(facts) => self.facts(facts),
                Block::Table(table) => self.table(table),
                Block::Estimates(estimates) => self.table(&estimates.table()),
                Block::Plots(plots) => self.plots(plots),
                Block::Bands(bands) => self.table(&bands.table()),
                Block::Listing(listing) => self.listing(listing),
                Block::Notes(notes) => self.notes(notes),
                Block::Fold(fold) => self.fold(fold),
                Block::Link(link) => self.link(link),
            }
        }
    }

    fn verdicts(&mut self, verdicts: &[Verdict]) {
        self.out.push_str("<div class=\"verdicts\">");
        for verdict in verdicts {
            let tone = format!("{:?}", verdict.tone).to_lowercase();
            let _ = write!(self.out, "<div class=\"verdict {tone}\">");
            self.element("div", "figure", &verdict.figure);
            self.out.push_str("<div>");
            self.element("p", "context", &verdict.context);
            self.element("p", "headline", &verdict.headline);
            verdict.details.iter().for_each(|detail| self.element("p", "detail", detail));
            self.out.push_str("</div></div>\n");
        }
        self.out.push_str("</div>\n");
    }

    fn facts(&mut self, facts: &[Fact]) {
        self.out.push_str("<dl class=\"facts\">");
        for fact in facts {
            let _ = writeln!(self.out, "<dt>{}</dt><dd>{}</dd>", escaped(&fact.label), escaped(&fact.value));
        }
        self.out.push_str("</dl>\n");
    }

    fn table(&mut self, table: &Table) {
        let prose = if table.prose { " prose" } else { "" };
        let words = if table.words { " words" } else { "" };
        // A column of pictures alone has no text here.
        let drawn = |column: usize| {
            !table.rows.is_empty() && table.rows.iter().all(|row| !row[column].spark.is_empty())
        };
        let columns: Vec<usize> = (0..table.columns.len()).filter(|column| !drawn(*column)).collect();
        let heads: Vec<&str> = columns.iter().map(|column| table.columns[*column].as_str()).collect();
        let rows = table
            .rows
            .iter()
            .map(|row| columns.iter().filter_map(|column| row.get(*column)).map(cell).collect());
        self.rows(&format!("rows{prose}{words}"), &table.caption, &heads, rows.collect());
    }

    /// A table whose cells are markup already.
    fn rows(&mut self, class: &str, caption: &str, heads: &[&str], rows: Vec<Vec<String>>) {
        let _ = write!(self.out, "<div class=\"table-box\"><table class=\"{class}\">");
        self.element("caption", "", caption);
        self.out.push_str("<thead><tr>");
        for head in heads {
            let _ = write!(self.out, "<th scope=\"col\">{}</th>", escaped(head));
        }
        self.out.push_str("</tr></thead><tbody>\n");
        for row in rows {
            self.out.push_str("<tr>");
            for (index, cell) in row.iter().enumerate() {
                let _ = match index {
                    0 => write!(self.out, "<th scope=\"row\">{cell}</th>"),
                    _ => write!(self.out, "<td>{cell}</td>"),
                };
            }
            self.out.push_str("</tr>\n");
        }
        self.out.push_str("</tbody></table></div>\n");
    }

    fn plots(&mut self, plots: &Plots) {
        self.element("h3", "", &plots.heading);
        self.element("p", "lead", &plots.lead);
        plots.charts.iter().for_each(|chart| self.chart(plots, chart));
        let moment = |x: f64| match plots.axis {
            Axis::Time => format!("at {}", duration(x)),
            Axis::Percentile | Axis::Count => format!("at {}", short(x)),
        };
        for mark in &plots.marks {
            self.element("p", "foot", &format!("{}: {}", moment(mark.x), mark.label));
        }
        self.element("p", "foot", &plots.foot);
    }

    /// The main figures of a chart: of what runs over time its range and mean, otherwise the values at the points that
    /// people ask for.
    fn chart(&mut self, plots: &Plots, chart: &Chart) {
        let points: Vec<(usize, String)> = match plots.axis {
            Axis::Time => Vec::new(),
            Axis::Count => plots.x.iter().enumerate().map(|(index, x)| (index, short(*x))).collect(),
            Axis::Percentile => PERCENTILES
                .iter()
                .filter_map(|(at, name)| {
                    let index = plots.x.iter().position(|x| (x / at - 1.0).abs() < 0.01)?;
                    Some((index, (*name).to_owned()))
                })
                .collect(),
        };
        let mut heads = vec![if plots.axis == Axis::Count { plots.x_label.as_str() } else { "" }];
        match plots.axis {
            Axis::Time => heads.extend(["Lowest", "Mean", "Highest", "Last"]),
            Axis::Count | Axis::Percentile => heads.extend(points.iter().map(|(_, name)| name.as_str())),
        }
        let lines = chart.series.iter().filter(|line| line.layer.is_none_or(|layer| layer.typical));
        // Where an area is says when something was so, not how much.
        let lines = lines.filter(|line| line.line != LineStyle::Shade);
        let row = |line: &Series| {
            let mut cells = vec![escaped(&self.name(line))];
            let texts = match plots.axis {
                Axis::Time => range(line, chart.format)?,
                Axis::Count | Axis::Percentile => {
                    points.iter().map(|(index, _)| value(line, *index, chart.format)).collect()
                }
            };
            cells.extend(texts);
            Some(cells)
        };
        let rows: Vec<Vec<String>> = lines.filter_map(row).collect();
        if rows.is_empty() {
            return;
        }
        let unit = if chart.unit.is_empty() { String::new() } else { format!(" ({})", chart.unit) };
        self.rows("rows", &format!("{}{unit}", chart.title), &heads, rows);
    }

    /// What a line is called: its group, and its own name.
    fn name(&self, line: &Series) -> String {
        match line.group.and_then(|group| self.groups.get(group)) {
            None => line.label.clone(),
            Some(group) if line.label.is_empty() => group.label.clone(),
            Some(group) => format!("{}, {}", group.label, line.label),
        }
    }

    fn listing(&mut self, listing: &Listing) {
        self.element("p", "lead", &listing.label);
        let _ = writeln!(self.out, "<div class=\"command\"><pre>{}</pre></div>", escaped(&listing.text));
    }

    fn notes(&mut self, notes: &[Note]) {
        self.out.push_str("<ul class=\"notes\">");
        for note in notes {
            let tone = format!("{:?}", note.tone).to_lowercase();
            self.element("li", &tone, &note.text);
        }
        self.out.push_str("</ul>\n");
    }

    fn fold(&mut self, fold: &Fold) {
        self.out.push_str("<details class=\"fold\">");
        self.element("summary", "", &fold.summary);
        self.blocks(&fold.blocks);
        self.out.push_str("</details>\n");
    }

    /// Only files next to this one: a colon would make it a scheme.
    fn link(&mut self, link: &Link) {
        let text = escaped(&link.text);
        let inside = !link.file.contains(':') && !link.file.starts_with('/');
        let _ = if inside {
            writeln!(self.out, "<p class=\"text\"><a href=\"{}\">{text}</a></p>", escaped(&link.file))
        } else {
            writeln!(self.out, "<p class=\"text\">{text}</p>")
        };
    }
}

fn cell(cell: &Cell) -> String {
    two_lines(&cell.text, &cell.detail)
}

fn two_lines(text: &str, detail: &str) -> String {
    if detail.is_empty() {
        escaped(text)
    } else {
        format!("{} <small>{}</small>", escaped(text), escaped(detail))
    }
}

/// Lowest, mean, highest and last value of a line; none where it has no value.
fn range(line: &Series, format: Format) -> Option<Vec<String>> {
    let values: Vec<f64> = line.values.iter().flatten().copied().filter(|value| value.is_finite()).collect();
    let last = *values.last()?;
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Some([lowest, mean, highest, last].map(|value| formatted(value, format)).to_vec())
}

/// The value of a line at a point, with its interval.
fn value(line: &Series, index: usize, format: Format) -> String {
    let finite = |value: &f64| value.is_finite();
    let Some(value) = line.values.get(index).copied().flatten().filter(finite) else { return NONE.into() };
    let interval = line.intervals.get(index).copied().flatten();
    let interval = interval.filter(|(low, high)| low.is_finite() && high.is_finite());
    let interval =
        interval.map(|(low, high)| format!("{} to {}", formatted(low, format), formatted(high, format)));
    two_lines(&formatted(value, format), &interval.unwrap_or_default())
}

fn formatted(value: f64, format: Format) -> String {
    match format {
        Format::Number => short(value),
        Format::Microseconds => microseconds(value),
        Format::Percent => format!("{}%", short(value)),
        Format::Bytes => bytes(value),
    }
}
