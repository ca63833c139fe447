//! Reading answers out of whatever bytes have come in, without copying rows.

use std::ops::ControlFlow;

use super::capture::Capture;
use super::command::MAX_PAYLOAD;
use super::packet::{Malformed, length_encoded, packet_at};
use crate::error::LoadError;

/// How a statement ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A result set with so many rows.
    Rows(u64),
    /// No result set; so many rows were changed.
    Done {
        /// The server's count of changed rows.
        affected: u64,
    },
    /// The server refused.
    Refused(Refusal),
}

/// A server error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: u16,
    pub(crate) state: String,
    pub(crate) message: String,
}

impl From<Refusal> for LoadError {
    fn from(refusal: Refusal) -> Self {
        let Refusal { code, state, message } = refusal;
        Self::Server { code, state, message, statement: None }
    }
}

/// Which parts of an answer were agreed on when the connection was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Dialect {
    /// Result sets end with an OK packet, and none stands between columns and rows.
    pub(crate) deprecate_eof: bool,
    /// MariaDB: repeated executions leave the columns out.
    pub(crate) cache_metadata: bool,
}

/// Follows one answer through its packets.
#[derive(Debug, Clone)]
pub(crate) struct AnswerReader {
    dialect: Dialect,
    state: AnswerPart,
    rows: u64,
    /// Values to keep of the answer.
    capture: Option<Box<Capture>>,
    capturing: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnswerPart {
    First,
    Columns(u64),
    AfterColumns,
    Rows,
}

const OK: u8 = 0x00;
pub(super) const LOCAL_INFILE: u8 = 0xFB;
const EOF: u8 = 0xFE;
const ERR: u8 = 0xFF;

impl AnswerReader {
    pub(crate) fn new(dialect: Dialect) -> Self {
        Self { dialect, state: AnswerPart::First, rows: 0, capture: None, capturing: false }
    }

    /// Has values kept of the next answer.
    pub(crate) fn capture(&mut self) -> &mut Capture {
        self.capturing = true;
        self.capture.get_or_insert_default()
    }

    /// What was kept of the last answer; none where nothing was wanted.
    pub(crate) fn captured(&mut self) -> Option<&Capture> {
        std::mem::take(&mut self.capturing).then_some(self.capture.as_deref()).flatten()
    }

    /// Takes in all whole packets at the front of `bytes`; answers with how many bytes they were, and
    /// with the answer once it is complete. The rest must be given again, with more behind it.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<(usize, Option<Answer>), Malformed> {
        let mut at = 0;
        loop {
            if self.state == AnswerPart::Rows && !self.capturing {
                at = self.skip_rows(bytes, at);
            }
            let Some((payload, end)) = packet_at(bytes, at)? else { break };
            at = end;
            if let ControlFlow::Break(answer) = self.packet(payload)? {
                self.state = AnswerPart::First;
                self.rows = 0;
                return Ok((at, Some(answer)));
            }
        }
        Ok((at, None))
    }

    /// Counts the whole rows from `at` on without a look into them; answers with where the first packet begins that
    /// may be something else.
    #[inline]
    fn skip_rows(&mut self, bytes: &[u8], mut at: usize) -> usize {
        while let Some(&[a, b, c, _sequence, first]) = bytes.get(at..at + 5) {
            let length = usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16;
            let end = at + 4 + length;
            let is_row = length > 0 && length < MAX_PAYLOAD && first != EOF && first != ERR;
            if !is_row || end > bytes.len() {
                break;
            }
            self.rows += 1;
            at = end;
        }
        at
    }

    /// Rows come first: they are most of the packets.
    #[inline]
    fn packet(&mut self, payload: &[u8]) -> Result<ControlFlow<Answer>, Malformed> {
        let first = *payload.first().ok_or(Malformed("an empty packet"))?;
        match self.state {
            AnswerPart::Rows => match first {
                EOF if self.ends_rows(payload) => Ok(ControlFlow::Break(Answer::Rows(self.rows))),
                ERR => Ok(ControlFlow::Break(Answer::Refused(refusal(payload)?))),
                _ => {
                    if self.capturing {
                        let number = self.rows;
                        self.capture().row(number, payload)?;
                    }
                    self.rows += 1;
                    Ok(ControlFlow::Continue(()))
                }
            },
            AnswerPart::Columns(left) => {
                if self.capturing {
                    self.capture().column(payload)?;
                }
                self.state = match left {
                    1 if self.dialect.deprecate_eof => AnswerPart::Rows,
                    1 => AnswerPart::AfterColumns,
                    _ => AnswerPart::Columns(left - 1),
                };
                Ok(ControlFlow::Continue(()))
            }
            AnswerPart::AfterColumns => {
                self.state = AnswerPart::Rows;
                Ok(ControlFlow::Continue(()))
            }
            AnswerPart::First => self.first(first, payload),
        }
    }

    fn ends_rows(&self, payload: &[u8]) -> bool {
        // Without the dialect, a longer packet that starts with 0xFE is a row with a huge value.
        self.dialect.deprecate_eof || payload.len() < 9
    }

    fn first(&mut self, first: u8, payload: &[u8]) -> Result<ControlFlow<Answer>, Malformed> {
        match first {
            OK => {
                let (affected, _) = length_encoded(&payload[1..]).ok_or(Malformed("a short OK packet"))?;
                Ok(ControlFlow::Break(Answer::Done { affected }))
            }
            ERR => Ok(ControlFlow::Break(Answer::Refused(refusal(payload)?))),
            LOCAL_INFILE => Err(Malformed("a request for a local file")),
            _ => {
                let (columns, read) = length_encoded(payload).ok_or(Malformed("a short column count"))?;
                if columns == 0 {
                    return Err(Malformed("rows without columns"));
                }
                let left_out = self.dialect.cache_metadata && payload.get(read) == Some(&0);
                if self.capturing && !left_out {
                    self.capture().renew_columns();
                }
                self.state = match (left_out, self.dialect.deprecate_eof) {
                    (true, true) => AnswerPart::Rows,
                    (true, false) => AnswerPart::AfterColumns,
                    (false, _) => AnswerPart::Columns(columns),
                };
                Ok(ControlFlow::Continue(()))
            }
        }
    }
}

/// The error of an ERR packet.
pub(super) fn refused(payload: &[u8]) -> LoadError {
    refusal(payload).map_or_else(LoadError::from, LoadError::from)
}

/// Reads an ERR packet.
fn refusal(payload: &[u8]) -> Result<Refusal, Malformed> {
    let [_, low, high, rest @ ..] = payload else { return Err(Malformed("a short ERR packet")) };
    let code = u16::from_le_bytes([*low, *high]);
    let (state, message) = match rest {
        [b'#', a, b, c, d, e, message @ ..] => {
            (String::from_utf8_lossy(&[*a, *b, *c, *d, *e]).into(), message)
        }
        message => ("HY000".into(), message),
    };
    Ok(Refusal { code, state, message: String::from_utf8_lossy(message).into() })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::command::packet;

    const NEW: Dialect = Dialect { deprecate_eof: true, cache_metadata: true };
    const OLD: Dialect = Dialect { deprecate_eof: false, cache_metadata: false };

    fn stream(payloads: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        for (at, payload) in payloads.iter().enumerate() {
            packet(&mut out, u8::try_from(at).unwrap(), |out| out.extend_from_slice(payload));
        }
        out
    }

    fn rows(dialect: Dialect) -> Vec<u8> {
        match (dialect.cache_metadata, dialect.deprecate_eof) {
            (true, true) => stream(&[&[1, 0], b"\0\0row one", b"\0\0row two", &[EOF, 0, 0, 2, 0, 0, 0]]),
            _ => stream(&[
                &[1],
                b"column",
                &[EOF, 0, 0, 2, 0],
                b"\0\0row one",
                b"\0\0row two",
                &[EOF, 0, 0, 2, 0],
            ]),
        }
    }

    proptest! {
        #[test]
        fn an_answer_is_the_same_however_it_is_cut(cuts in proptest::collection::vec(1_usize..7, 1..40)) {
            for dialect in [NEW, OLD] {
                let bytes = rows(dialect);
                let mut reader = AnswerReader::new(dialect);
                let (mut held, mut given, mut answer) = (Vec::new(), 0, None);
                let mut cuts = cuts.iter().cycle();
                while given < bytes.len() {
                    let more = (*cuts.next().unwrap()).min(bytes.len() - given);
                    held.extend_from_slice(&bytes[given..given + more]);
                    given += more;
                    let (used, got) = reader.feed(&held).unwrap();
                    held.drain(..used);
                    prop_assert!(answer.is_none() || got.is_none());
                    answer = answer.or(got);
                }
                prop_assert_eq!(answer, Some(Answer::Rows(2)));
                prop_assert!(held.is_empty());
            }
        }

        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = AnswerReader::new(NEW).feed(&bytes);
            let _ = AnswerReader::new(OLD).feed(&bytes);
        }
    }

    /// A text row may begin with the byte that ends the rows of the old dialect.
    #[test]
    fn rows_that_nobody_wants_are_counted_as_those_that_somebody_looks_at() {
        let huge = [&[EOF, 2, 0, 0, 0, 0, 0, 0, 0][..], b"xy"].concat();
        let rows = stream(&[b"\x01a", &huge, b"\x01b", &[EOF, 0, 0, 2, 0]]);
        for capturing in [false, true] {
            let mut reader = AnswerReader::new(OLD);
            reader.state = AnswerPart::Rows;
            if capturing {
                reader.capture().begin(false, &[]);
            }
            assert_eq!(reader.feed(&rows), Ok((rows.len(), Some(Answer::Rows(3)))), "{capturing}");
        }
    }

    #[test]
    fn an_error_in_the_middle_of_the_rows_ends_the_answer() {
        let mut err = vec![ERR, 0xBD, 0x04, b'#'];
        err.extend_from_slice(b"40001Deadlock found");
        let bytes = stream(&[&[1, 0], b"\0\0row", &err]);
        let (used, answer) = AnswerReader::new(NEW).feed(&bytes).unwrap();
        assert_eq!(used, bytes.len());
        let Some(Answer::Refused(refusal)) = answer else { panic!("{answer:?}") };
        assert_eq!((refusal.code, refusal.state.as_str()), (1213, "40001"));
        assert_eq!(refusal.message, "Deadlock found");
    }

    #[test]
    fn a_write_reports_how_many_rows_it_changed() {
        let bytes = stream(&[&[OK, 0xFC, 0x10, 0x27, 0, 2, 0, 0, 0]]);
        let (_, answer) = AnswerReader::new(OLD).feed(&bytes).unwrap();
        assert_eq!(answer, Some(Answer::Done { affected: 10_000 }));
    }

    #[test]
    fn columns_that_are_sent_are_skipped_in_the_cached_dialect_too() {
        let bytes = stream(&[&[2, 1], b"one", b"two", b"\0\0row", &[EOF, 0, 0, 2, 0, 0, 0]]);
        let (_, answer) = AnswerReader::new(NEW).feed(&bytes).unwrap();
        assert_eq!(answer, Some(Answer::Rows(1)));
    }
}
