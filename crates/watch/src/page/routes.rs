//! The paths of the page.

use std::fmt;
use std::sync::Arc;

use ebbtide_http::{Answer, AnswerStatus, Resource, ResourceRequest, Site};
use ebbtide_report::PAGE_FILES;

use super::data::{GraphData, ViewData, ViewFeed};
use super::layout::Sheet;
use super::{alarms, overview, server, storage};
use crate::view::{Range, Subject, View, ViewSource};

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLES: &str = "text/css; charset=utf-8";
const PICTURE: &str = "image/svg+xml";

const OWN_SCRIPT: &str = include_str!("../../assets/page/watch.js");
const OWN_STYLES: &str = include_str!("../../assets/page/watch.css");
const ICON: &str = include_str!("../../assets/page/icon.svg");

/// How far back a subject is looked for that is not in the view: its history is shown for as long as there is some.
const KNOWN_S: i64 = 24 * 3_600;

/// A site with the page of a source: `/`, `/server/NAME`, `/volume/NAME`, `/alarms`, `/api/view`, `/api/graphs`, `/events`, and the files
/// below `/static/`.
#[must_use]
pub fn pages(site: Site, source: &Arc<dyn ViewSource>) -> Site {
    let page = |kind| HtmlPage { kind, source: Arc::clone(source) };
    let site = site
        .with_resource("/", page(PageKind::Overview))
        .with_resource("/alarms", page(PageKind::Alarms))
        .with_resource("/server/", page(PageKind::Server))
        .with_resource("/volume/", page(PageKind::Storage))
        .with_resource("/api/view", ViewData(Arc::clone(source)))
        .with_resource("/api/graphs", GraphData::new(Arc::clone(source)))
        .with_feed("/events", ViewFeed::new(Arc::clone(source)));
    with_files(site)
}

/// The files of the program that the pages name.
fn with_files(site: Site) -> Site {
    let library = format!("/*\n{}*/\n{}", PAGE_FILES.chart_licence, PAGE_FILES.chart_script);
    let script = format!("(function () {{\n\"use strict\";\n{}{OWN_SCRIPT}}})();\n", PAGE_FILES.text_script);
    let styles = format!("{}{OWN_STYLES}", PAGE_FILES.styles);
    site.with_resource("/static/uplot.js", StaticFile { content_type: SCRIPT, text: library })
        .with_resource(
            "/static/uplot.css",
            StaticFile { content_type: STYLES, text: PAGE_FILES.chart_styles.to_owned() },
        )
        .with_resource("/static/watch.js", StaticFile { content_type: SCRIPT, text: script })
        .with_resource("/static/watch.css", StaticFile { content_type: STYLES, text: styles })
        .with_resource("/static/icon.svg", StaticFile { content_type: PICTURE, text: ICON.to_owned() })
}

/// Which page it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageKind {
    Overview,
    Alarms,
    Server,
    Storage,
}

/// A page for people.
pub(super) struct HtmlPage {
    pub(super) kind: PageKind,
    pub(super) source: Arc<dyn ViewSource>,
}

impl fmt::Debug for HtmlPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HtmlPage").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl Resource for HtmlPage {
    fn answer(&self, request: &ResourceRequest) -> Answer {
        let view = self.source.view();
        let sheet = match self.kind {
            PageKind::Overview => overview::sheet(&view),
            PageKind::Alarms => alarms::sheet(&view),
            PageKind::Server => {
                let subject = Subject::Server(named(request));
                self.subject_sheet(&view, &subject, server::sheet(&view, subject_name(&subject)))
            }
            PageKind::Storage => {
                let subject = Subject::Storage(named(request));
                self.subject_sheet(&view, &subject, storage::sheet(&view, subject_name(&subject)))
            }
        };
        let status = if sheet.is_missing { AnswerStatus::Missing } else { AnswerStatus::Found };
        Answer { status, ..Answer::found(HTML, sheet.to_html(&view)) }
    }
}

impl HtmlPage {
    /// The sheet of a subject that is in the view; else its graphs alone, where its history has some, and else that it is missing.
    fn subject_sheet(&self, view: &View, subject: &Subject, present: Option<Sheet>) -> Sheet {
        present.unwrap_or_else(|| {
            let range =
                Range { from_s: view.unix_s.saturating_sub(KNOWN_S), to_s: view.unix_s, most_points: 2 };
            let has_history = !self.source.graphs(subject, range).is_empty();
            Sheet::absent(subject, has_history)
        })
    }
}

/// The name that a request means: what is below the path, or the parameter `name`, for names that a browser takes out of a path.
fn named(request: &ResourceRequest) -> String {
    match request.below.as_str() {
        "" => request.parameter("name").unwrap_or_default().to_owned(),
        name => name.to_owned(),
    }
}

fn subject_name(subject: &Subject) -> &str {
    match subject {
        Subject::Server(name) | Subject::Storage(name) => name,
    }
}

/// A file of the program.
#[derive(Debug)]
struct StaticFile {
    content_type: &'static str,
    text: String,
}

impl Resource for StaticFile {
    fn answer(&self, _: &ResourceRequest) -> Answer {
        Answer::found(self.content_type, self.text.clone())
    }
}
