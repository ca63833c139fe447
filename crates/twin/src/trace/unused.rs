//! Rows of a trace that are not replayed: why, and how many of each kind.

use super::stage::Stage;

/// Kinds of requests that are named apart, at most; further ones are counted together. No tool has so many.
const MOST_KINDS: usize = 32;

/// Why a line or an event is not replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unused<'a> {
    /// A heading or a summary. Behind it another recording may begin.
    Heading,
    /// Nothing: a blank line, a comment, a notice of the recorder.
    Remark,
    /// Another stage of a request on its way.
    Stage,
    /// An event of a request that is no read, write or flush: its stage, and what the trace calls it.
    Kind(Stage, &'a [u8]),
    /// Events that the recorder says that it lost: so many.
    Lost(u64),
    /// The last row, which the end of the file cut off.
    CutOff,
}

/// The name of requests that have no bytes.
pub(super) const NO_DATA: &[u8] = b"no data";
/// The name of commands that a program sent to the device itself.
pub(super) const PASSTHROUGH: &[u8] = b"passthrough";

/// Rows of one kind that are not replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotUsed {
    /// The kind, in words: `discards (DS)`.
    pub kind: String,
    /// How many rows.
    pub rows: u64,
    /// Whether the rows are requests that a replay should have, and not headings, other stages of the same requests, or the
    /// requests of devices that were not asked for.
    pub requests: bool,
}

/// Counts rows that are not replayed.
#[derive(Debug, Default)]
pub(super) struct Counter {
    headings: u64,
    remarks: u64,
    stages: u64,
    pub(super) other_devices: u64,
    lost: u64,
    cut_off: u64,
    kinds: Vec<(Vec<u8>, u64)>,
    further: u64,
}

impl Counter {
    /// Counts a row; requests are counted where they arrive.
    pub(super) fn add(&mut self, unused: Unused<'_>, arrival: Stage) {
        match unused {
            Unused::Heading => self.headings += 1,
            Unused::Remark => self.remarks += 1,
            Unused::Stage => self.stages += 1,
            Unused::Kind(stage, _) if stage != arrival => self.stages += 1,
            Unused::Kind(_, name) => self.add_kind(name),
            Unused::Lost(events) => self.lost = self.lost.saturating_add(events),
            Unused::CutOff => self.cut_off += 1,
        }
    }

    fn add_kind(&mut self, name: &[u8]) {
        if let Some((_, rows)) = self.kinds.iter_mut().find(|(known, _)| known == name) {
            *rows += 1;
        } else if self.kinds.len() < MOST_KINDS {
            self.kinds.push((name.to_vec(), 1));
        } else {
            self.further += 1;
        }
    }

    /// All rows that are not replayed.
    pub(super) fn total(&self) -> u64 {
        self.list().iter().fold(0, |sum, kind| sum.saturating_add(kind.rows))
    }

    /// The kinds that there are, requests first, the most frequent ones first.
    pub(super) fn list(&self) -> Vec<NotUsed> {
        let requests = self.kinds.iter().map(|(name, rows)| (kind_in_words(name), *rows));
        let requests = requests.chain([
            ("requests of further kinds".to_owned(), self.further),
            ("lost by the recorder".to_owned(), self.lost),
            ("cut off at the end of the file".to_owned(), self.cut_off),
        ]);
        let others = [
            ("other devices", self.other_devices),
            ("other stages of requests", self.stages),
            ("headings and summaries", self.headings),
            ("blank lines, comments and notices", self.remarks),
        ];
        let mut list: Vec<NotUsed> = requests
            .map(|(kind, rows)| NotUsed { kind, rows, requests: true })
            .chain(others.map(|(kind, rows)| NotUsed { kind: kind.into(), rows, requests: false }))
            .filter(|kind| kind.rows > 0)
            .collect();
        list.sort_by_key(|kind| (!kind.requests, std::cmp::Reverse(kind.rows)));
        list
    }
}

/// What a trace calls a kind of request, in words. The letters are those of the kernel's `blk_fill_rwbs`.
fn kind_in_words(name: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(name)
        .chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .take(16)
        .collect();
    if name == NO_DATA {
        return "requests without data".into();
    }
    if name == PASSTHROUGH {
        return "commands passed through to the device".into();
    }
    match name.first() {
        Some(b'D') => format!("discards ({text})"),
        Some(b'E') => format!("secure erases ({text})"),
        Some(b'N') => format!("requests without data ({text})"),
        Some(b'Z') => format!("operations on zones ({text})"),
        Some(b't') if name == b"trim" => "trims".into(),
        _ => format!("requests of kind '{text}'"),
    }
}
