//! Events in the form of EventBridge, as lines of JSON.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::input;

/// Takes events. As in AWS, an event that cannot be delivered is lost.
pub trait EventSink: std::fmt::Debug + Send + Sync {
    /// Takes one.
    fn publish(&self, event: &Value);
}

/// Where a file of events is, and how it is opened there.
pub trait EventPlace: std::fmt::Debug + Send + Sync {
    /// The path of the file, for messages.
    fn path(&self) -> PathBuf;
    /// Opens the file to append to it. A missing file is made.
    ///
    /// # Errors
    /// The error of the host.
    fn open(&self) -> io::Result<File>;
    /// Renames the file to `FILE.1`, over the earlier one.
    ///
    /// # Errors
    /// The error of the host.
    fn put_aside(&self) -> io::Result<()>;
}

/// A file to which events are appended, one a line. When it has become too large, it is renamed to `FILE.1`, and the
/// earlier `FILE.1` is gone.
#[derive(Debug)]
pub struct EventFile {
    place: Box<dyn EventPlace>,
    most_bytes: u64,
    /// Held while a line is written.
    writing: Mutex<()>,
}

impl EventFile {
    /// How large the file may become.
    pub const MOST_BYTES: u64 = 64 << 20;

    /// Events go to a file, which is created with the first of them.
    #[must_use]
    pub fn new(place: Box<dyn EventPlace>, most_bytes: u64) -> Self {
        Self { place, most_bytes, writing: Mutex::new(()) }
    }

    fn append(&self, line: &str) -> io::Result<()> {
        let _alone = self.writing.lock();
        let mut file = self.place.open()?;
        let size = file.metadata()?.len();
        if size > 0 && size + line.len() as u64 > self.most_bytes {
            self.place.put_aside()?;
            file = self.place.open()?;
        }
        file.write_all(line.as_bytes())
    }
}

impl EventSink for EventFile {
    fn publish(&self, event: &Value) {
        if let Err(error) = self.append(&format!("{event}\n")) {
            tracing::warn!(file = %self.place.path().display(), %error, "an event is lost");
        }
    }
}

/// What differs between events.
#[derive(Debug)]
pub(crate) struct Envelope<'a> {
    pub(crate) source: &'a str,
    pub(crate) detail_type: &'a str,
    pub(crate) owner: &'a str,
    pub(crate) region: &'a str,
    pub(crate) at_ms: u64,
    pub(crate) resources: Vec<String>,
    pub(crate) detail: Value,
}

impl Envelope<'_> {
    /// The event, with an id that is a checksum of its content.
    pub(crate) fn event(&self) -> Value {
        let time = input::stamp(self.at_ms, "%Y-%m-%dT%H:%M:%SZ");
        let mut event = json!({
            "version": "0",
            "detail-type": self.detail_type,
            "source": self.source,
            "account": self.owner,
            "time": time,
            "region": self.region,
            "resources": self.resources,
            "detail": self.detail,
        });
        let content = format!("{event}{}", self.at_ms);
        event["id"] = Value::from(uuid(&content));
        event
    }
}

/// A name-based UUID (version 8) of a text.
pub(super) fn uuid(text: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    let mut digits: Vec<char> = digest.as_ref()[..16]
        .iter()
        .flat_map(|byte| format!("{byte:02x}").chars().collect::<Vec<_>>())
        .collect();
    (digits[12], digits[16]) = ('8', 'a');
    let part = |from: usize, to: usize| digits[from..to].iter().collect::<String>();
    [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-")
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::path::Path;

    use super::*;

    #[derive(Debug)]
    struct Place(PathBuf);

    impl EventPlace for Place {
        fn path(&self) -> PathBuf {
            self.0.clone()
        }

        fn open(&self) -> io::Result<File> {
            OpenOptions::new().create(true).append(true).open(&self.0)
        }

        fn put_aside(&self) -> io::Result<()> {
            fs::rename(&self.0, self.0.with_extension("jsonl.1"))
        }
    }

    fn file(folder: &Path) -> EventFile {
        EventFile::new(Box::new(Place(folder.join("events.jsonl"))), 40)
    }

    #[test]
    fn events_are_lines_and_a_full_file_is_put_aside() {
        let dir = tempfile::tempdir().unwrap();
        let file = file(dir.path());
        for number in 0..5 {
            file.publish(&json!({"number": number, "text": "abc"}));
        }
        let lines = |name: &str| {
            let text = fs::read_to_string(dir.path().join(name)).unwrap();
            text.lines()
                .map(|line| serde_json::from_str::<Value>(line).unwrap()["number"].clone())
                .collect::<Vec<_>>()
        };
        assert_eq!((lines("events.jsonl.1"), lines("events.jsonl")), (vec![json!(3)], vec![json!(4)]));
    }

    #[test]
    fn an_event_larger_than_the_file_may_be_is_not_lost() {
        let dir = tempfile::tempdir().unwrap();
        file(dir.path()).publish(&json!({"text": "a".repeat(50)}));
        assert!(fs::read_to_string(dir.path().join("events.jsonl")).unwrap().len() > 50);
    }
}
