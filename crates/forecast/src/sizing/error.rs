//! Why nothing can be sized.

use std::error::Error as _;
use std::io;
use std::path::PathBuf;

use ebbtide_advisor::sizing::Contradiction;
use ebbtide_captured::RecordedError;
use ebbtide_catalog::CatalogError;
use ebbtide_lab::results::ResultsError;
use ebbtide_text::{count, figure, percent, size};
use ebbtide_twin::trace::{Format, TraceError};

use super::request::MOST_MEMBERS;
use crate::server::ServerError;
use crate::volumes::VolumesError;

/// A request that cannot be sized.
#[derive(Debug, thiserror::Error)]
pub enum SizingError {
    /// No prices of the region.
    #[error(transparent)]
    Region(CatalogError),
    /// Today's volume is none.
    #[error("{spec}: {cause}")]
    Today {
        /// Its text.
        spec: String,
        /// Why.
        cause: Box<VolumesError>,
    },
    /// Today's instance type is in no catalogue.
    #[error("{name}: {cause}")]
    Instance {
        /// Its name.
        name: String,
        /// Why.
        cause: Box<CatalogError>,
    },
    /// A file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file is empty.
    #[error("{} is empty", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// A file is a zip archive.
    #[error("{} is a zip archive, as workbooks of Excel (.xlsx) are", path.display())]
    Zip {
        /// The file.
        path: PathBuf,
    },
    /// A directory has nothing that is a load.
    #[error("{} has neither the results of a run nor the record of a load{}", path.display(), after_colon(refused.as_deref()))]
    NoRecord {
        /// The directory, or what the names of its files begin with.
        path: PathBuf,
        /// A record that cannot be used.
        refused: Option<Box<RecordedError>>,
    },
    /// Records that tell no load.
    #[error(transparent)]
    Recorded(#[from] RecordedError),
    /// An option of traces, for what is none.
    #[error("{} is {what}, and no trace of block I/O", path.display())]
    NotATrace {
        /// The option.
        option: TraceOption,
        /// The file.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// One of several files is no text.
    #[error("{}: several files have to be texts of one tool", path.display())]
    NotAText {
        /// The file.
        path: PathBuf,
    },
    /// The files have no device of the name.
    #[error("the files have no device {device}")]
    UnknownDevice {
        /// The name.
        device: String,
        /// The devices that there are.
        devices: Vec<String>,
    },
    /// The files have several devices, and none was named.
    #[error("the files have the load of several devices, among them {first} and {second}")]
    SeveralDevices {
        /// One of them.
        first: String,
        /// Another.
        second: String,
        /// All devices.
        devices: Vec<String>,
    },
    /// No device did anything.
    #[error("the files have no operation in {}", count(*intervals, "interval"))]
    Idle {
        /// Intervals of all devices.
        intervals: usize,
        /// The devices.
        devices: Vec<String>,
    },
    /// The results of a run cannot be read.
    #[error("{}: {error}", dir.display())]
    Run {
        /// Their directory.
        dir: PathBuf,
        /// Why.
        error: Box<ResultsError>,
    },
    /// The run has no arm of the name.
    #[error("the run in {} has no arm {arm}", dir.display())]
    UnknownArm {
        /// The name.
        arm: String,
        /// The directory of the run.
        dir: PathBuf,
        /// The arms that it has.
        arms: Vec<String>,
    },
    /// The run has several arms, and none was named.
    #[error("the run in {} has several arms", dir.display())]
    SeveralArms {
        /// The directory of the run.
        dir: PathBuf,
        /// The arms that it has.
        arms: Vec<String>,
    },
    /// The arm has no volume of the role.
    #[error("the arm {arm} has no volume {role}")]
    UnknownRole {
        /// The role that was named.
        role: String,
        /// The arm.
        arm: String,
        /// The roles that it has.
        roles: Vec<&'static str>,
    },
    /// Nothing was measured of the arm.
    #[error("the arm {arm} of the run in {} has no measured second", dir.display())]
    NotMeasured {
        /// The arm.
        arm: String,
        /// The directory of the run.
        dir: PathBuf,
    },
    /// A trace cannot be opened.
    #[error("cannot read {}", path.display())]
    TraceFile {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A trace cannot be read on.
    #[error("{}: {cause}{}{}", path.display(), cause_of(cause), read_before(*requests))]
    Trace {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: Box<TraceError>,
        /// Requests that were read before.
        requests: u64,
    },
    /// A trace without a request.
    #[error("{}: no request was taken of it ({format})", path.display())]
    NoRequest {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: Format,
    },
    /// A profile cannot be used.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// A profile is of a share of a machine.
    #[error(
        "{} is of a {divided_by}th of a machine and its volumes (machine.divided_by = {divided_by}): no volume to buy follows from it",
        path.display()
    )]
    Share {
        /// Its file.
        path: PathBuf,
        /// The share is one of so many.
        divided_by: u32,
    },
    /// A load of nothing.
    #[error("{source_words}: no operation was recorded")]
    NoOperation {
        /// What the load comes from, for people.
        source_words: String,
    },
    /// Figures that cannot be true.
    #[error("{source_words}: {cause}")]
    Contradiction {
        /// What the load comes from, for people.
        source_words: String,
        /// Which.
        cause: Contradiction,
    },
    /// Neither today's volume nor a size is known.
    #[error("the size that is needed is not known")]
    SizeUnknown,
    /// A size below what must lie on a profile's volume.
    #[error("{} do not hold what lies on the volume, {}: {stored}", size(*given_bytes), size(*least_bytes))]
    SizeTooSmall {
        /// Where the size comes from.
        origin: SizeOrigin,
        /// The size, bytes.
        given_bytes: u64,
        /// What must lie on the volume, bytes.
        least_bytes: u64,
        /// The same in words.
        stored: String,
    },
    /// Transactions a second that no load has.
    #[error("{tps} is out of range: expected more than 0, at most 1000000 transactions a second")]
    Tps {
        /// Transactions a second.
        tps: f64,
    },
    /// Transactions a second that no measurement has.
    #[error("{tps} is out of range: expected more than 0")]
    TpsMeasured {
        /// Transactions a second.
        tps: f64,
    },
    /// A rate is asked for, and the load does not say which one it had.
    #[error("the recorded load does not say how many transactions it was of")]
    TpsNotRecorded,
    /// A profile without a rate.
    #[error("the profile has no [[point]] that says how many transactions there are")]
    TpsNotInProfile,
    /// The server itself does not carry the rate.
    #[error(
        "no storage lets this server carry {} transactions a second: on a volume without limits it finishes {}, held back by {limiter} in {} \
         of the time",
        figure(*tps),
        figure(*finished),
        percent(*share)
    )]
    ServerOverloaded {
        /// Transactions a second that were asked for.
        tps: f64,
        /// Transactions a second that it finishes.
        finished: f64,
        /// What limits it, in words.
        limiter: &'static str,
        /// Share of the time in which that limits.
        share: f64,
    },
    /// The catalogue has no volume without limits of the size.
    #[error(transparent)]
    Ideal(VolumesError),
    /// More volumes in an array than there may be.
    #[error("{members} is out of range: expected 1 to {MOST_MEMBERS} volumes")]
    Members {
        /// Volumes.
        members: u16,
    },
}

/// An option that only a trace has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceOption {
    /// [`super::SizingRequest::trace_format`].
    Format,
    /// [`super::SizingRequest::trace_unit_ns`].
    Unit,
}

/// Where the size comes from that is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeOrigin {
    /// It was asked for.
    Asked,
    /// Today's volume has it.
    Today,
    /// The data and the redo log of a profile, with a fifth of the volume free.
    Profile,
}

fn after_colon(error: Option<&RecordedError>) -> String {
    error.map_or_else(String::new, |error| format!(": {error}"))
}

fn cause_of(error: &TraceError) -> String {
    error.source().map_or_else(String::new, |cause| format!(": {cause}"))
}

fn read_before(requests: u64) -> String {
    if requests == 0 { String::new() } else { format!("; read before it: {}", count(requests, "request")) }
}
