//! The thread that hands what was read to the watcher, and passes on what that says.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ebbtide_load::Cancel;

use super::history::HistoryWriter;
use super::notify::Notifier;
use super::sources::Sources;
use super::voice::Voice;
use super::worker::wait_until;
use crate::live::{Tick, Watcher};

/// The watcher with those who are told by it.
#[derive(Debug)]
pub(super) struct Ticker {
    pub(super) watcher: Watcher,
    pub(super) sources: Arc<Sources>,
    // Dropped in this order also by a panic: the history first, since what alarms wait for may take long.
    pub(super) writer: HistoryWriter,
    pub(super) notifier: Notifier,
    pub(super) voice: Arc<dyn Voice>,
}

/// Asks for the end of the program when the thread ends, whatever ends it: a watch that has stopped by a panic must not look alive.
struct EndsAll(Cancel);

impl Drop for EndsAll {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl Ticker {
    /// Begins to watch. The thread ends with `stop`, after what it has to say is said; a panic of it cancels `stop`.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(super) fn start(mut self, interval: Duration, stop: &Cancel) -> io::Result<JoinHandle<()>> {
        let stop = stop.clone();
        let run = move || {
            let _ends_all = EndsAll(stop.clone());
            let mut next = Instant::now();
            while !stop.is_cancelled() {
                let tick = self.watcher.tick(self.sources.clock().moment(), self.sources.looks());
                self.pass_on(tick);
                next = (next + interval).max(Instant::now());
                wait_until(next, &stop);
            }
            self.end();
        };
        thread::Builder::new().name("watch".to_owned()).spawn(run)
    }

    /// Hands over what waits: to the history, and then to those who are told of alarms.
    fn end(self) {
        let Self { writer, notifier, voice, .. } = self;
        let left_out = writer.left_out();
        drop(writer);
        if left_out > 0 {
            voice.note(&format!("warning: the history lacks {left_out} s, in which its disk took nothing"));
        }
        drop(notifier);
    }

    fn pass_on(&mut self, tick: Tick) {
        tick.notices.iter().for_each(|notice| self.voice.note(notice));
        for event in &tick.events {
            if event.is_news() {
                self.voice.alarm(&event.line());
            }
            if let Some(left_out) = self.notifier.send(event) {
                self.voice.note(&left_out);
            }
        }
        // Also without samples: the upkeep of the history goes on.
        self.writer.write(tick.samples);
    }
}
