//! Conditions in words.

use ebbtide_text::percent;

use super::model::{Bottleneck, Limiter};
use super::regime::{Around, Regime};
use crate::record::Role;

/// Conditions, as a heading: `with the batch job, after the credits`; empty where none is special.
pub(super) fn regime(regime: Regime, batch_matters: bool) -> String {
    let batch = match (batch_matters, regime.batch) {
        (false, _) => None,
        (true, true) => Some("with the batch job".to_owned()),
        (true, false) => Some("without the batch job".to_owned()),
    };
    let backup = regime.backup.map(|around| {
        match around {
            Around::Before => "before the backup",
            Around::During => "during the backup",
            Around::After => "after the backup",
        }
        .to_owned()
    });
    let credits = regime
        .credits_gone
        .map(|gone| if gone { "credits used up".to_owned() } else { "credits left".to_owned() });
    let phase = (regime.phase > 0).then(|| "after the limit changed".to_owned());
    [batch, backup, credits, phase].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The conditions of both sides of a comparison; `batch` is whether there is a batch job at all.
pub(super) fn both(arm: Regime, baseline: Regime, batch: bool) -> String {
    // The side without a backup is held against each part of the other's.
    let arm = Regime { backup: arm.backup.or(baseline.backup), ..arm };
    let baseline = Regime { backup: baseline.backup.or(arm.backup), ..baseline };
    let (a, b) = (regime(arm, batch), regime(baseline, batch));
    if arm == baseline || b.is_empty() {
        return a;
    }
    let plain = Regime { credits_gone: None, phase: 0, ..arm };
    let shared = regime(plain, batch);
    // What only one side has is written once: an arm without credits has no condition of credits.
    if baseline == plain {
        a
    } else if arm == plain {
        if b == shared { b } else { format!("{b} (baseline)") }
    } else {
        format!("{a} against {b}")
    }
}

/// What held an arm back, to go behind its name or behind "both"; `verb` is "waits" or "wait".
pub(super) fn limiter(limiter: Limiter, plural: bool) -> Option<String> {
    let (wait, are) = if plural { ("wait", "are") } else { ("waits", "is") };
    let volume = match limiter.volume {
        None | Some(Role::Data) => "the volume's",
        Some(Role::Redo) => "the redo volume's",
        Some(Role::Binlog) => "the binary log volume's",
        Some(Role::Logs) => "the redo and binary log volume's",
        Some(Role::Undo) => "the undo volume's",
        Some(Role::Tmp) => "the temporary volume's",
        Some(Role::Relay) => "the relay log volume's",
        Some(Role::Backup) => "the backup target's",
    };
    let share = percent(limiter.share);
    Some(match limiter.what {
        Bottleneck::VolumeIops => format!("{wait} for {volume} IOPS limit {share} of the time"),
        Bottleneck::VolumeThroughput => format!("{wait} for {volume} throughput limit {share} of the time"),
        Bottleneck::InstanceIops => format!("{wait} for the instance's IOPS limit {share} of the time"),
        Bottleneck::InstanceThroughput => {
            format!("{wait} for the instance's throughput limit {share} of the time")
        }
        Bottleneck::Processors => format!("{are} held back by this machine's processors ({share} busy)"),
        Bottleneck::Checkpoint => {
            format!("{wait} for flushing, the redo log being {share} full, below the volume's limits")
        }
        Bottleneck::RowLocks => format!("{wait} for row locks"),
        Bottleneck::VolumeLatency => format!("{wait} for {volume} latency, below its limits"),
        Bottleneck::OfferedRate => {
            format!("{} all that is asked for", if plural { "carry" } else { "carries" })
        }
        Bottleneck::Unknown => return None,
    })
}

/// A small number in a word.
pub(super) fn count(number: usize) -> String {
    const WORDS: [&str; 11] =
        ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    WORDS.get(number).map_or_else(|| number.to_string(), |word| (*word).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_that_one_side_lacks_are_written_once() {
        let gone = Regime { batch: true, credits_gone: Some(true), ..Regime::default() };
        let none = Regime { batch: true, ..Regime::default() };
        assert_eq!(both(gone, none, true), "with the batch job, credits used up");
        assert_eq!(both(gone, gone, true), "with the batch job, credits used up");
        assert_eq!(both(Regime::default(), Regime::default(), false), "");
        let during = Regime { backup: Some(Around::During), ..Regime::default() };
        assert_eq!(both(during, Regime::default(), false), "during the backup");
    }
}
