//! The rows of a table of errors, compared with what calls answer.

use std::fmt::Debug;

use http::Response;

use crate::wire::{Protocol, refusal};

/// The rows that are answered otherwise than they say.
#[derive(Default)]
pub(crate) struct Mismatches(Vec<String>);

impl Mismatches {
    /// Compares the answer of a row's call with the refusal that the row has.
    pub(crate) fn check<F: Debug + PartialEq>(
        &mut self,
        row: &str,
        found: Result<impl Debug, F>,
        expected: &F,
    ) {
        match found {
            Ok(answer) => self.0.push(format!("{row}\n  answers {answer:?}\n  not {expected:?}")),
            Err(found) if found != *expected => {
                self.0.push(format!("{row}\n  is {found:?}\n  not {expected:?}"));
            }
            Err(_) => {}
        }
    }

    /// The same of an answer over the wire. The refusal is code, message and status.
    pub(crate) fn check_wire(
        &mut self,
        row: &str,
        protocol: Protocol,
        response: &Response<Vec<u8>>,
        expected: (&str, &str, u16),
    ) {
        match refusal(protocol, response) {
            Some(found) if found.is(protocol, expected) => {}
            found => self.0.push(format!("{protocol:?}: {row}\n  is {found:?}\n  not {expected:?}")),
        }
    }

    /// Fails if there are any.
    #[track_caller]
    pub(crate) fn end(self) {
        assert!(self.0.is_empty(), "{} rows:\n{}", self.0.len(), self.0.join("\n"));
    }
}
