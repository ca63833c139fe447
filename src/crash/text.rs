//! The kept images of bad cuts, for people.

use ebbtide_crash::KeptCut;
use ebbtide_crash::page::found;
use ebbtide_text::seed;

use crate::text::{TextTable, size, timestamp};

/// The kept images of bad cuts.
pub(super) fn kept(all: &[KeptCut]) {
    let mut table = TextTable::new(&["SEED", "EXPERIMENT", "ARM", "FOUND", "DISK", "KEPT", "SERVER"]);
    for one in all {
        let created = i64::try_from(one.created_unix_s).unwrap_or(i64::MAX);
        table.row([
            seed::hex(one.seed),
            one.experiment.clone(),
            one.arm.clone(),
            found(&one.verdicts),
            size(one.allocated_bytes),
            timestamp(created),
            one.server.trim().to_owned(),
        ]);
    }
    table.print("no images are kept");
}
