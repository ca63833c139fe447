//! The history as a source of views: what a screen showed then.

use std::ops::Range as TimeRange;
use std::sync::Arc;

use ebbtide_history::{DEVICE, FILE_SYSTEM, HistoryError, Replayed, SERVER, Samples, Selector, Tier};
use parking_lot::{Mutex, RwLock};

use super::columns::{STORAGE, gauge, server_of, storage_of};
use super::gone::with_gone;
use super::graphs::{History, graphs};
use crate::view::{FileSystemView, Graph, NotSeenView, Range, Subject, View, ViewSource};

/// The most intervals that are played; a longer span has longer intervals.
const MOST_INTERVALS: u64 = 86_400;

/// Plays a span of the history. The caller moves it: it has no clock.
#[derive(Debug)]
pub struct ReplaySource {
    samples: Arc<Samples>,
    machine: String,
    tier: Tier,
    /// Numbers of the intervals.
    numbers: TimeRange<u64>,
    next: Mutex<u64>,
    view: RwLock<Arc<View>>,
}

impl ReplaySource {
    /// One of a span of time, in milliseconds since 1970, which shows its first interval. `now_ms` is the present time: older seconds
    /// than those of a day are kept as minutes, and older minutes as hours.
    ///
    /// # Errors
    /// The history cannot be read.
    pub fn new(
        samples: Arc<Samples>,
        machine: String,
        span_ms: &TimeRange<u64>,
        now_ms: u64,
    ) -> Result<Self, HistoryError> {
        let tier = Tier::for_span(span_ms, now_ms, MOST_INTERVALS);
        let numbers =
            tier.number(span_ms.start)..tier.number(span_ms.end).max(tier.number(span_ms.start) + 1);
        let source = Self {
            samples,
            machine,
            tier,
            next: Mutex::new(numbers.start),
            numbers,
            view: RwLock::default(),
        };
        source.advance()?;
        Ok(source)
    }

    /// Seconds of an interval.
    #[must_use]
    pub const fn step_s(&self) -> u64 {
        self.tier.seconds()
    }

    /// Shows the last interval, without those before it.
    ///
    /// # Errors
    /// The history cannot be read.
    pub fn seek_end(&self) -> Result<(), HistoryError> {
        *self.next.lock() = self.numbers.end - 1;
        self.advance().map(|_| ())
    }

    /// Shows the next interval. Returns false at the end, which stays shown.
    ///
    /// # Errors
    /// The history cannot be read.
    pub fn advance(&self) -> Result<bool, HistoryError> {
        let mut next = self.next.lock();
        if *next >= self.numbers.end {
            return Ok(false);
        }
        let (start_ms, end_ms) = (self.tier.start_ms(*next), self.tier.start_ms(*next + 1));
        let mut view = View {
            unix_s: i64::try_from(start_ms / 1_000).unwrap_or(i64::MAX),
            not_seen: vec![NotSeenView {
                subject: "history".to_owned(),
                figure: "alarms and what lies where".to_owned(),
                reason: "this is a replay: the history has figures alone".to_owned(),
                remedy: String::new(),
            }],
            ..View::default()
        };
        self.samples.store().replay(self.tier, Selector::default(), &(start_ms..end_ms), |_, points| {
            points.iter().for_each(|point| show(&mut view, point));
        })?;
        // Space is recorded once a minute: until the next time it is shown as it was.
        if self.tier == Tier::Second && view.file_systems.is_empty() {
            view.file_systems.clone_from(&self.view.read().file_systems);
        }
        *next += 1;
        *self.view.write() = Arc::new(view);
        Ok(true)
    }
}

/// Adds a point to a view.
fn show(view: &mut View, point: &Replayed) {
    match point.key.subject() {
        SERVER => view.servers.extend(server_of(point)),
        STORAGE | DEVICE => view.storage.extend(storage_of(point)),
        FILE_SYSTEM => view.file_systems.extend(file_system_of(point)),
        _ => {}
    }
}

fn file_system_of(point: &Replayed) -> Option<FileSystemView> {
    Some(FileSystemView {
        mount: point.key.label("mountpoint")?.to_owned(),
        device: String::new(),
        size_bytes: gauge(point, "size_bytes")?,
        free_bytes: gauge(point, "available_bytes")?,
        full_s: None,
    })
}

impl ViewSource for ReplaySource {
    fn view(&self) -> Arc<View> {
        Arc::clone(&self.view.read())
    }

    fn graphs(&self, subject: &Subject, range: Range) -> Vec<Graph> {
        let store = self.samples.store();
        let view = with_gone(&store, &self.machine, self.view(), subject);
        graphs(&History { store: &store, machine: &self.machine, view: &view }, subject, range)
    }
}
