//! The frame of every page: its head, its links, the answer in one sentence, and the place of the graphs.

use super::figures::{UNKNOWN, local_time, share, zone};
use super::links;
use super::markup::{Cell, Markup, Table};
use crate::view::{AlarmView, NotSeenView, StorageView, Subject, View};

const FRAME: &str = include_str!("../../assets/page/page.html");

/// A part of a page that the script brings up to date with each view.
const LIVE: (&str, &str) = ("data-live", "");

/// A page without its frame.
#[derive(Debug)]
pub(super) struct Sheet {
    /// Its title.
    pub(super) title: String,
    /// Its own path, for the mark in the links.
    pub(super) path: String,
    /// What it shows.
    pub(super) content: Markup,
    /// Whether there is nothing of this name.
    pub(super) is_missing: bool,
}

impl Sheet {
    /// An empty page.
    pub(super) fn new(title: &str, path: String) -> Self {
        Self { title: title.to_owned(), path, content: Markup::default(), is_missing: false }
    }

    /// The page of a subject that the view does not have.
    pub(super) fn absent(subject: &Subject, has_history: bool) -> Self {
        let (Subject::Server(name) | Subject::Storage(name)) = subject;
        let mut sheet = Self::new(name, links::path(subject));
        sheet.is_missing = !has_history;
        if has_history {
            sheet.content.element(
                "p",
                &[("class", "bad")],
                "It is not watched any more. Its history is below.",
            );
            sheet.graphs(std::slice::from_ref(subject));
        } else {
            let reason =
                "Nothing of this name is watched, and its history is empty: the overview has all names.";
            sheet.content.element("p", &[("class", "bad")], reason);
        }
        sheet
    }

    /// Adds the place of the graphs of a subject; of several, one is chosen on the page, the first by default.
    pub(super) fn graphs(&mut self, subjects: &[Subject]) {
        let Some(first) = subjects.first() else { return };
        let key = links::query_key(first);
        let markup = &mut self.content;
        markup.open(
            "section",
            &[("id", "graphs"), ("aria-labelledby", "graphs-title"), ("data-subject", key.as_str())],
        );
        markup.element("h2", &[("id", "graphs-title")], "Graphs");
        if subjects.len() > 1 {
            markup.open("label", &[("class", "choice"), ("hidden", "")]);
            markup.text("Of ");
            markup.open("select", &[("id", "subject")]);
            for subject in subjects {
                let (Subject::Server(name) | Subject::Storage(name)) = subject;
                markup.element("option", &[("value", links::query_key(subject).as_str())], name);
            }
            markup.close("select");
            markup.close("label");
        }
        markup.open("noscript", &[]);
        markup.element("p", &[], "The graphs need JavaScript. The figures of now are below.");
        markup.close("noscript");
        markup.close("section");
    }

    /// Begins a section that follows the views.
    pub(super) fn begin(&mut self, name: &str, title: &str) {
        self.content.open("section", &[("id", name), LIVE]);
        self.content.element("h2", &[], title);
    }

    /// Ends a section.
    pub(super) fn end(&mut self) {
        self.content.close("section");
    }

    /// Adds names with their figures.
    pub(super) fn facts(&mut self, facts: &[(&str, String)]) {
        self.content.open("dl", &[("class", "facts")]);
        for (name, figure) in facts {
            self.content.element("dt", &[], name);
            self.content.element("dd", &[], if figure.is_empty() { UNKNOWN } else { figure.as_str() });
        }
        self.content.close("dl");
    }

    /// Adds a section with a table, or with a sentence where the table has no rows.
    pub(super) fn table(&mut self, name: &str, table: &Table<'_>, without_rows: &str) {
        self.begin(name, table.caption);
        if table.rows.is_empty() {
            self.content.element("p", &[], without_rows);
        } else {
            self.content.table(table);
        }
        self.end();
    }

    /// The whole page.
    pub(super) fn to_html(&self, view: &View) -> String {
        let title = if self.path == "/" {
            "Ebbtide watch".to_owned()
        } else {
            format!("{} - Ebbtide watch", self.title)
        };
        ebbtide_report::fill(FRAME, |name| match name {
            "title" => text(&title),
            "links" => self.links(),
            "answer" => answer(view),
            "moment" => text(&moment(view)),
            "offset" => view.utc_offset_s.to_string(),
            "now" => view.unix_s.to_string(),
            "heading" => text(&self.title),
            "content" => self.content.as_str().to_owned(),
            _ => unreachable!("the frame names only the parts above: {name}"),
        })
    }

    fn links(&self) -> String {
        let mut markup = Markup::default();
        for (path, name) in [("/", "Overview"), ("/alarms", "Alarms")] {
            let current = (self.path == path).then_some(("aria-current", "page"));
            let attributes: Vec<(&str, &str)> = [("href", path)].into_iter().chain(current).collect();
            markup.element("a", &attributes, name);
        }
        markup.into_string()
    }
}

fn text(text: &str) -> String {
    let mut markup = Markup::default();
    markup.text(text);
    markup.into_string()
}

/// The answer in one sentence. It has no figure that changes with every view: a screen reader reads it out when it changes.
fn answer(view: &View) -> String {
    let raised: Vec<&AlarmView> = view
        .alarms
        .iter()
        .filter(|alarm| alarm.state == "ALARM" && alarm.silenced_until_s.is_none())
        .collect();
    let mut markup = Markup::default();
    match raised.first() {
        Some(worst) => {
            let count = ebbtide_text::count(raised.len(), "alarm");
            let sentence = format!(
                "{count}. The most severe is {} of {} ({}).",
                worst.rule, worst.subject, worst.severity
            );
            let tone = severity_tone(&worst.severity);
            markup.element("a", &[("href", "/alarms"), ("class", tone)], &sentence);
        }
        None => markup.element("span", &[("class", "good")], no_alarm(view)),
    }
    let silenced = view.alarms.iter().filter(|alarm| alarm.silenced_until_s.is_some()).count();
    if silenced > 0 {
        markup.text(&format!(" {silenced} silenced."));
    }
    let without_data = view.alarms.iter().filter(|alarm| alarm.state == "INSUFFICIENT_DATA").count();
    if without_data > 0 {
        markup.text(&format!(" {without_data} without enough data."));
    }
    let down = view.servers.iter().filter(|server| server.down.is_some()).count();
    if down > 0 {
        markup.text(&format!(" {} cannot be read.", ebbtide_text::count(down, "server")));
    }
    markup.into_string()
}

/// That nothing alarms. It has no figure that changes with every view, as [`answer`].
pub(super) fn no_alarm(view: &View) -> &'static str {
    match view.just_begun_s() {
        Some(_) => "No alarm yet: watched for less than 2 min, and most rules wait for so long.",
        None => "No alarm.",
    }
}

/// When the figures were read, and what watching costs.
fn moment(view: &View) -> String {
    let own = &view.own;
    let memory = own.resident_bytes.map_or_else(|| UNKNOWN.to_owned(), ebbtide_text::size);
    let mut sentence = format!(
        "Read at {} {}. Watching takes {} of a core and {memory} here, and {} of the servers' time.",
        local_time(view.unix_s, view.utc_offset_s),
        zone(view.utc_offset_s),
        share(own.processor_share),
        share(own.server_share),
    );
    if own.skipped > 0 {
        sentence.push_str(&format!(" {} left out.", ebbtide_text::count(own.skipped, "sample")));
    }
    sentence
}

/// The tone of a severity.
pub(super) fn severity_tone(severity: &str) -> &'static str {
    match severity {
        "critical" | "high" => "bad",
        _ => "caution",
    }
}

/// A cell with the name of a subject, which leads to its page where it has one.
pub(super) fn subject_cell(view: &View, name: &str) -> Cell {
    match links::named(view, name) {
        Some(subject) => Cell::link(name, links::path(&subject)),
        None => Cell::from(name.to_owned()),
    }
}

/// What lies on a volume, for a table.
pub(super) fn roles(storage: &StorageView) -> String {
    if storage.roles.is_empty() { UNKNOWN.to_owned() } else { storage.roles.join("; ") }
}

/// The table of what could not be read.
pub(super) fn not_seen(view: &View, wanted: impl Fn(&NotSeenView) -> bool) -> Table<'static> {
    let row = |item: &NotSeenView| {
        let remedy = if item.remedy.is_empty() { "nothing makes it readable" } else { item.remedy.as_str() };
        vec![
            subject_cell(view, &item.subject),
            Cell::words(&item.figure),
            Cell::words(&item.reason),
            Cell::words(remedy),
        ]
    };
    Table {
        caption: "Not seen",
        columns: &["Subject", "Figure", "Why", "What would make it readable"],
        rows: view.not_seen.iter().filter(|item| wanted(item)).map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_nothing_alarms_is_said_with_its_limit_in_the_first_two_minutes() {
        let said = |watched_s| no_alarm(&View { watched_s, ..View::default() });
        assert!(said(Some(119.0)).starts_with("No alarm yet: watched for less than 2 min"));
        assert_eq!([said(Some(120.0)), said(None)], ["No alarm."; 2], "a replay has no beginning");
    }
}
