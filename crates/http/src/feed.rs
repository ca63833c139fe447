//! Server-sent events: what is pushed to browsers while their pages are open.

use std::convert::Infallible;
use std::fmt;
use std::fmt::Write as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use hyper::body::{Bytes, Frame};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::timeout;

use crate::resource::{Answer, AnswerStatus, RULES, respond};

/// How many clients have events at a time; more are refused with 503. Each takes a connection for as long as its page is open, and
/// the other connections must serve the rest.
pub(crate) const MAX_STREAMS: usize = 16;
/// How often a feed is asked for its last event.
const INTERVAL: Duration = Duration::from_secs(1);
/// After so many intervals without an event the client gets a comment, so that a dead connection is noticed.
const HEARTBEAT_INTERVALS: u32 = 10;
/// Sent first: for how many milliseconds a browser waits before it connects again.
const RETRY: &str = "retry: 2000\n\n";

/// Where events come from. It is asked each second for each client, on a thread that may wait.
pub trait Feed: fmt::Debug + Send + Sync + 'static {
    /// The last event.
    fn latest(&self) -> FeedEvent;
}

/// An event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedEvent {
    /// What tells it from the event before: the same number is not sent twice in a row.
    pub number: u64,
    /// Its text.
    pub data: Arc<str>,
}

/// What the streams of a feed have in common.
#[derive(Debug, Clone)]
pub(crate) struct Streams {
    pub(crate) feed: Arc<dyn Feed>,
    /// The places for clients.
    pub(crate) places: Arc<Semaphore>,
    /// Changes, or loses its sender, when the server stops.
    pub(crate) stopped: watch::Receiver<bool>,
}

impl Streams {
    /// Answers with the events from now on, until the client leaves or the server stops.
    pub(crate) fn open(self) -> Response {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            let reason =
                format!("{MAX_STREAMS} clients have events already, and that is the most: close a page");
            return respond(Answer::refused(AnswerStatus::Unavailable, &reason));
        };
        // One event waits for the client at most: a slow one gets the newest when it is ready.
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(self.push(sender, place));
        (RULES, [(CONTENT_TYPE, "text/event-stream")], Body::new(Events(receiver))).into_response()
    }

    async fn push(mut self, sender: mpsc::Sender<Bytes>, place: OwnedSemaphorePermit) {
        let mut sent = None;
        let mut silent = 0;
        loop {
            let feed = Arc::clone(&self.feed);
            let Ok(event) = tokio::task::spawn_blocking(move || feed.latest()).await else { break };
            let text = match sent {
                Some(number) if number == event.number => {
                    silent += 1;
                    (silent >= HEARTBEAT_INTERVALS).then(|| ":\n\n".to_owned())
                }
                Some(_) => Some(event_text(&event.data)),
                None => Some(format!("{RETRY}{}", event_text(&event.data))),
            };
            if let Some(text) = text {
                match sender.try_send(text.into()) {
                    Ok(()) => (sent, silent) = (Some(event.number), 0),
                    Err(TrySendError::Full(_)) => {}
                    Err(TrySendError::Closed(_)) => break,
                }
            }
            if sender.is_closed() || timeout(INTERVAL, self.stopped.changed()).await.is_ok() {
                break;
            }
        }
        drop(place);
    }
}

/// An event as the stream has it: each line of its text is a field, and an empty line ends it.
fn event_text(data: &str) -> String {
    let mut text = String::with_capacity(data.len() + 16);
    for line in data.lines() {
        let _ = writeln!(text, "data: {line}");
    }
    text.push('\n');
    text
}

/// The body of an answer that goes on.
#[derive(Debug)]
struct Events(mpsc::Receiver<Bytes>);

impl hyper::body::Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_an_event_can_become_another_field() {
        assert_eq!(event_text("{}"), "data: {}\n\n");
        assert_eq!(event_text("a\nevent: b\r\nc"), "data: a\ndata: event: b\ndata: c\n\n");
    }
}
