//! Writes the history, on a thread of its own: a slow or full disk delays nothing.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::{fs, io, thread};

use ebbtide_history::{Sample, SampleOptions, Samples};
use ebbtide_text::rough;

use super::error::RunError;
use super::faults::Faults;
use super::worker::unix_ms;
use crate::live::{Complaints, SUBJECTS, SourceFault};

/// Seconds of samples that wait for a disk that does not answer.
const MOST_WAITING: usize = 120;
const SUBJECT: &str = "history";
/// What is said of the seconds in it.
const SECONDS: &str = "history of seconds";

/// Opens the history of a directory.
///
/// # Errors
/// It cannot be opened or made.
pub fn open_history(directory: &Path) -> Result<Arc<Samples>, RunError> {
    fs::create_dir_all(directory)
        .map_err(|source| RunError::Directory { directory: directory.to_owned(), source })?;
    let samples = Samples::open(directory, SampleOptions::new(SUBJECTS));
    samples.map(Arc::new).map_err(|source| RunError::History { directory: directory.to_owned(), source })
}

/// Writes samples. What waits is written before it is gone.
#[derive(Debug)]
pub(super) struct HistoryWriter {
    samples: Option<SyncSender<(u64, Vec<Sample>)>>,
    thread: Option<thread::JoinHandle<()>>,
    left_out: u64,
}

impl HistoryWriter {
    /// One of a history; without one, what is written goes nowhere. Troubles are told `say`, once each, and are in `faults` while they
    /// last.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub(super) fn start(
        history: Option<Arc<Samples>>,
        faults: Faults,
        say: impl Fn(&str) + Send + 'static,
    ) -> io::Result<Self> {
        let Some(history) = history else { return Ok(Self { samples: None, thread: None, left_out: 0 }) };
        let (samples, waiting) = sync_channel(MOST_WAITING);
        let work = move || write_all(&history, &waiting, &faults, say);
        let thread = thread::Builder::new().name("history".to_owned()).spawn(work)?;
        Ok(Self { samples: Some(samples), thread: Some(thread), left_out: 0 })
    }

    /// Hands samples over. Where the disk has not taken those of two minutes, they are left out.
    pub(super) fn write(&mut self, samples: Vec<Sample>) {
        let Some(sender) = &self.samples else { return };
        if sender.try_send((unix_ms(), samples)).is_err() {
            self.left_out += 1;
        }
    }

    /// Ticks whose samples were left out.
    pub(super) const fn left_out(&self) -> u64 {
        self.left_out
    }
}

impl Drop for HistoryWriter {
    fn drop(&mut self) {
        self.samples = None;
        if let Some(thread) = self.thread.take() {
            // A panic there was printed there.
            let _ = thread.join();
        }
    }
}

fn write_all(history: &Samples, waiting: &Receiver<(u64, Vec<Sample>)>, faults: &Faults, say: impl Fn(&str)) {
    let mut complaints = Complaints::default();
    let mut note = |outcome: Result<(), String>| {
        faults.set(SUBJECT, fault(outcome.as_ref().err(), history.lost()));
        faults.set(SECONDS, limit(history.limited_to_ms(unix_ms())));
        complaints.take(SUBJECT, outcome).iter().for_each(|line| say(line));
    };
    while let Ok((now_ms, samples)) = waiting.recv() {
        let written = history.record(now_ms, samples).and_then(|()| history.keep_up(now_ms));
        note(written.map_err(|error| chain(&error)));
    }
    note(history.flush().map_err(|error| chain(&error)));
}

/// An error with its causes.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut texts = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(error) = cause {
        texts.push(error.to_string());
        cause = error.source();
    }
    texts.dedup();
    texts.join(": ")
}

/// That the history is not written, for as long as that is so, or what was given up, which stays so; None where neither is.
fn fault(error: Option<&String>, lost: u64) -> Option<SourceFault> {
    if error.is_none() && lost > 0 {
        return Some(SourceFault {
            subject: SUBJECT.to_owned(),
            figure: format!("{lost} points that were given up"),
            reason: "the history could not be written, or not soon enough".to_owned(),
            remedy: String::new(),
        });
    }
    error.map(|error| SourceFault {
        subject: SUBJECT.to_owned(),
        figure: format!("what happens now; {lost} points were given up so far"),
        reason: error.clone(),
        remedy: "make room on its disk, or name another directory with --history".to_owned(),
    })
}

/// That seconds were deleted before their day was over, where more series are recorded than the limit of bytes has room for.
fn limit(kept_ms: Option<u64>) -> Option<SourceFault> {
    kept_ms.map(|kept_ms| SourceFault {
        subject: SECONDS.to_owned(),
        figure: format!("seconds that are older than {}", rough(kept_ms as f64 / 1_000.0)),
        reason: "so many are recorded that 2 GiB have no room for a day of them; minutes are kept".to_owned(),
        remedy: "watch fewer servers with one history: --history names another directory".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_that_is_not_written_is_a_fault_with_what_was_given_up() {
        let full = "database or disk is full".to_owned();
        let shown = fault(Some(&full), 4).unwrap();
        assert!(shown.figure.contains("4 points") && shown.reason == full);
        let lost = fault(None, 4).unwrap();
        assert!(lost.figure.contains("4 points"), "what was lost stays shown");
        assert_eq!(fault(None, 0), None);
        assert_eq!(limit(Some(5 * 3_600_000)).unwrap().figure, "seconds that are older than 5 h");
        assert_eq!(limit(None), None);
    }

    #[test]
    fn what_was_handed_over_is_written_before_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let history = open_history(dir.path()).unwrap();
        let mut writer = HistoryWriter::start(Some(history), Faults::default(), |_| {}).unwrap();
        writer.write(Vec::new());
        drop(writer);
        assert!(dir.path().join(ebbtide_history::FILE).is_file());
        let error = open_history(&dir.path().join("history.db/below")).unwrap_err().to_string();
        assert!(error.contains("cannot be opened"), "{error}");
    }
}
