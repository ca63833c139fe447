//! What programs read: views and graphs as JSON, and each new view as an event.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
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

/// So many requests for graphs are answered at a time: each reads the history and keeps one of the four threads of the pages, of which
/// a scrape needs one, too.
const MOST_AT_ONCE: usize = 2;

/// Graphs of a subject.
pub(super) struct GraphData {
    source: Arc<dyn ViewSource>,
    /// Requests that are being answered.
    answering: AtomicUsize,
}

impl GraphData {
    pub(super) fn new(source: Arc<dyn ViewSource>) -> Self {
        Self { source, answering: AtomicUsize::new(0) }
    }
}

/// A place among the requests that are being answered.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    /// None where all are taken.
    fn take(answering: &'a AtomicUsize) -> Option<Self> {
        // One that is not given is dropped, and is no longer counted.
        let place = Self(answering);
        (answering.fetch_add(1, Ordering::Relaxed) < MOST_AT_ONCE).then_some(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

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
        let Some(_place) = Place::take(&self.answering) else {
            let reason = format!(
                "{MOST_AT_ONCE} requests for graphs are being answered, and that is the most: try again"
            );
            return Answer::refused(AnswerStatus::Unavailable, &reason);
        };
        let view = self.source.view();
        let graphs = self.source.graphs(&subject, range);
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

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::view::{Range, Subject};

    /// A source whose history is read for as long as somebody holds the lock.
    #[derive(Default)]
    struct Slow(Mutex<()>);

    impl ViewSource for Slow {
        fn view(&self) -> Arc<View> {
            Arc::default()
        }

        fn graphs(&self, _: &Subject, _: Range) -> Vec<Graph> {
            drop(self.0.lock().unwrap());
            Vec::new()
        }
    }

    #[test]
    fn beyond_two_requests_for_graphs_the_next_is_told_to_come_again() {
        let source = Arc::new(Slow::default());
        let shown: Arc<dyn ViewSource> = Arc::<Slow>::clone(&source);
        let data = GraphData::new(shown);
        let query = [("subject", "server:shop"), ("from", "100"), ("to", "200")];
        let query = query.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let request = ResourceRequest { below: String::new(), query };
        let held = source.0.lock().unwrap();
        thread::scope(|scope| {
            for _ in 0..MOST_AT_ONCE {
                scope.spawn(|| assert_eq!(data.answer(&request).status, AnswerStatus::Missing));
            }
            while data.answering.load(Ordering::Relaxed) < MOST_AT_ONCE {
                thread::sleep(Duration::from_millis(1));
            }
            let refused = data.answer(&request);
            assert_eq!(refused.status, AnswerStatus::Unavailable);
            assert!(refused.body.contains("try again"), "{}", refused.body);
            drop(held);
        });
        assert_eq!(data.answer(&request).status, AnswerStatus::Missing, "there is room again");
    }
}
