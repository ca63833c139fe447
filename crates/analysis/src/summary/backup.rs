//! The figures of backups: how long they took, how large they are, and what of the volumes they used.

use super::group::Parted;
use super::model::{Across, BackupFigures};
use crate::record::BackupRecord;

/// Sums up the backups of the trials that count; none where none was made.
pub(super) fn figures(arm: &Parted<'_>) -> Option<BackupFigures> {
    let all: Vec<&BackupRecord> =
        arm.looked.iter().filter_map(|looked| looked.trial.backup.as_ref()).collect();
    if all.is_empty() {
        return None;
    }
    let across = |of: fn(&BackupRecord) -> f64| Across::of(all.iter().map(|one| of(one)).collect());
    let known = |of: fn(&BackupRecord) -> Option<f64>| {
        let values: Vec<f64> = all.iter().filter_map(|one| of(one)).collect();
        (!values.is_empty()).then(|| Across::of(values))
    };
    Some(BackupFigures {
        took_s: across(|one| one.ended_s - one.began_s),
        bytes: across(|one| one.bytes),
        read_bytes: across(|one| one.read_bytes),
        written_bytes: across(|one| one.written_bytes),
        credits_used: known(|one| one.credits_used),
        target_credits_used: known(|one| one.target_credits_used),
        restored_s: across(|one| one.restored_s),
    })
}
