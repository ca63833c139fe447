//! Is a server a candidate for running without the doublewrite buffer, on storage that does not tear pages
//! (torn-write prevention; RDS calls it Optimized Writes)?
//!
//! InnoDB writes a page twice: into the doublewrite buffer, and where it belongs. In bytes that is twice as
//! much; in I/Os it is far less, because the pages of a batch are adjacent there, and a volume counts up
//! to 256 KiB in a row as one. What can be gained thus depends on what the server lacks: [`judge`] counts both
//! with the buffer and without it, and gives the quotient: how many times the same work fits. It is a ceiling of the
//! gain as long as a transaction takes the pages that it takes now, and no promise.
//!
//! [`figures`] is what goes in, [`demand`] the arithmetic, [`judge`](mod@judge) the judgement, [`advice`] what to do, and `check`
//! takes an observation: `off` is check D04 and `on` check W01 of [`crate::checks`].

mod advice;
mod check;
mod conditions;
mod demand;
mod error;
mod figures;
mod judge;
mod sources;
mod verdict;

#[cfg(test)]
mod tests;

pub use advice::Action;
pub use check::{Examined, examine};
pub(crate) use check::{off, on};
pub use conditions::{Condition, Standing};
pub use demand::Demand;
pub use error::NotJudged;
pub use figures::{Doublewrite, PageWriteSettings, Release, Storage, Workload};
pub use judge::{
    BUSY, Candidate, Ceiling, FEWEST_PAGES, FEWEST_READS, FEWEST_STATEMENTS, FEWEST_WAITS, Gain, Limit,
    MOST_USED, SMALLEST_GAIN, WAITING_SHARE, judge,
};
pub use sources::SOURCES;
pub use verdict::Verdict;
