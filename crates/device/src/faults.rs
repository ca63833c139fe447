//! Faults on command: what a volume does wrong while a test watches. All can be switched while the
//! volume is in use.

use std::ops::Range;

use rand_core::Rng;

use crate::request::{Command, IoError};

/// Which requests a fault concerns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Affected {
    /// Reads alone.
    Reads,
    /// Writes and write-zeroes alone.
    Writes,
    /// Reads, writes and write-zeroes.
    #[default]
    All,
}

impl Affected {
    const fn includes(self, command: Command) -> bool {
        match command {
            Command::Read => matches!(self, Self::Reads | Self::All),
            Command::Write | Command::WriteZeroes => matches!(self, Self::Writes | Self::All),
            Command::Discard | Command::Flush => false,
        }
    }
}

/// Time added to every affected request, after the model's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct AddedLatency {
    /// The requests.
    pub affected: Affected,
    /// Microseconds.
    pub us: u32,
}

/// Requests that fail with an I/O error when the model completes them; they change nothing.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Errors {
    /// The requests.
    pub affected: Affected,
    /// How many of a million fail, chosen from the volume's seed; 1,000,000 fails them all.
    pub per_million: u32,
    /// Only requests that touch these bytes; none: anywhere.
    pub range: Option<Range<u64>>,
}

/// The faults in force. The default is none.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Faults {
    /// Added latency.
    pub latency: Vec<AddedLatency>,
    /// I/O errors.
    pub errors: Vec<Errors>,
    /// Nothing completes until this is lifted, as with the AWS fault injection action `pause-io`.
    /// Everything then completes at once that was due meanwhile.
    pub stalled: bool,
    /// The planted defect: writes are answered while they are in volatile memory only, where up to
    /// [`crate::engine::EARLY_BYTES`] of them stay. A power cut may lose them.
    pub answer_early: bool,
    /// Flushes are answered and do nothing. Matters where there is a volatile cache or
    /// `answer_early`.
    pub ignore_flush: bool,
}

/// Which faults are in force, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ActiveFaults {
    /// Latency is added to some requests.
    pub latency: bool,
    /// Some requests fail.
    pub errors: bool,
    /// Nothing completes.
    pub stalled: bool,
    /// Writes are answered before they are durable.
    pub answer_early: bool,
    /// Flushes do nothing.
    pub ignore_flush: bool,
}

/// Requests that injected faults have changed. The counters are never set back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InjectedFaults {
    /// Requests to which latency was added.
    pub delayed: u64,
    /// Requests that were made to fail.
    pub failed: u64,
}

impl Faults {
    /// Which of them are in force.
    #[must_use]
    pub fn active(&self) -> ActiveFaults {
        ActiveFaults {
            latency: !self.latency.is_empty(),
            errors: !self.errors.is_empty(),
            stalled: self.stalled,
            answer_early: self.answer_early,
            ignore_flush: self.ignore_flush,
        }
    }

    /// Latency added to a request, in nanoseconds.
    pub(crate) fn added_ns(&self, command: Command) -> u64 {
        let affected = self.latency.iter().filter(|latency| latency.affected.includes(command));
        affected.map(|latency| u64::from(latency.us) * 1_000).sum()
    }

    /// The error that a request is to fail with.
    pub(crate) fn error(
        &self,
        command: Command,
        offset: u64,
        len: u32,
        rng: &mut impl Rng,
    ) -> Option<IoError> {
        let end = offset + u64::from(len);
        let fails = |errors: &Errors| {
            errors.affected.includes(command)
                && errors.range.as_ref().is_none_or(|range| offset < range.end && range.start < end)
                && (u64::from(rng.next_u32()) * 1_000_000) >> 32 < u64::from(errors.per_million)
        };
        self.errors.iter().any(fails).then_some(IoError::Io)
    }
}
