//! The server's own cost, under the names that Prometheus's client libraries have.

use ebbtide_proc::process::OwnUsage;

use crate::exposition::{Exposition, Number};
use crate::names::{PROCESS_CPU, PROCESS_FDS, PROCESS_RESIDENT, PROCESS_START};

/// Adds what the process takes.
pub(crate) fn add(text: &mut Exposition, usage: &OwnUsage) {
    text.add(&PROCESS_CPU, &[], Number::Time(usage.cpu.into()));
    text.add(&PROCESS_RESIDENT, &[], Number::Whole(usage.resident_bytes));
    text.add(&PROCESS_START, &[], Number::Real(usage.started_unix_s));
    text.add(&PROCESS_FDS, &[], Number::Whole(usage.open_files));
}
