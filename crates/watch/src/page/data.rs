//! What programs read: views and graphs as JSON, and each new view as an event.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use ebbtide_http::{Answer, AnswerStatus, Feed, FeedEvent, Resource, ResourceRequest};
use serde::Serialize;

use super::{links, query};
use crate::view::{Graph, View, ViewSource};

const JSON: &str = "application/json";

/// The view of now.
pub(super) struct ViewData(pub(super) Arc<dyn ViewSource>);

impl fmt::Debug for ViewData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ViewData").finish_non_exhaustive()
    }
}

impl Resource for ViewData {
    fn answer(&self, _: &ResourceRequest) -> Answer {
        Answer::found(JSON, json(&*self.0.view()))
    }
}

/// Graphs of a subject.
pub(super) struct GraphData(pub(super) Arc<dyn ViewSource>);

impl fmt::Debug for GraphData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GraphData").finish_non_exhaustive()
    }
}

/// The answer to a query for graphs.
#[derive(Debug, Serialize)]
struct GraphSet {
    /// The span that was asked for, seconds since 1970.
    from_s: i64,
    /// Its end.
    to_s: i64,
    /// What local time is ahead of UTC, seconds.
    utc_offset_s: i64,
    /// The graphs, those of the first row first.
    graphs: Vec<Graph>,
}

impl Resource for GraphData {
    fn answer(&self, request: &ResourceRequest) -> Answer {
        let (subject, range) = match query::parse(request) {
            Ok(asked) => asked,
            Err(error) => return Answer::refused(AnswerStatus::BadRequest, &error.to_string()),
        };
        let view = self.0.view();
        let graphs = self.0.graphs(&subject, range);
        if graphs.is_empty() && !links::has(&view, &subject) {
            let reason = "nothing of this name is watched, and its history is empty: /api/view has all names";
            return Answer::refused(AnswerStatus::Missing, reason);
        }
        let set =
            GraphSet { from_s: range.from_s, to_s: range.to_s, utc_offset_s: view.utc_offset_s, graphs };
        Answer::found(JSON, json(&set))
    }
}

/// Each new view, as JSON.
pub(super) struct ViewFeed {
    source: Arc<dyn ViewSource>,
    /// The view of the last event: all clients get the same text, which is made once.
    last: Mutex<Option<(Arc<View>, FeedEvent)>>,
}

impl ViewFeed {
    pub(super) fn new(source: Arc<dyn ViewSource>) -> Self {
        Self { source, last: Mutex::default() }
    }
}

impl fmt::Debug for ViewFeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ViewFeed").finish_non_exhaustive()
    }
}

impl Feed for ViewFeed {
    fn latest(&self) -> FeedEvent {
        let view = self.source.view();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let number = match &*last {
            Some((known, event)) if *known == view => return event.clone(),
            Some((_, event)) => event.number + 1,
            None => 0,
        };
        let event = FeedEvent { number, data: json(&*view).into() };
        *last = Some((view, event.clone()));
        event
    }
}

fn json(data: &impl Serialize) -> String {
    serde_json::to_string(data).expect("views and graphs are plain data")
}
