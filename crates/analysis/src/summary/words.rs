//! Figures and conditions in words.

use super::model::{Bottleneck, Limiter, Regime};
use crate::record::Role;

/// Conditions, as a heading: `with the batch job, after the credits`; empty where none is special.
pub(super) fn regime(regime: Regime, batch_matters: bool) -> String {
    let batch = match (batch_matters, regime.batch) {
        (false, _) => None,
        (true, true) => Some("with the batch job".to_owned()),
        (true, false) => Some("without the batch job".to_owned()),
    };
    let credits = regime
        .credits_gone
        .map(|gone| if gone { "credits used up".to_owned() } else { "credits left".to_owned() });
    let phase = (regime.phase > 0).then(|| "after the limit changed".to_owned());
    [batch, credits, phase].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The conditions of both sides of a comparison; `batch` is whether there is a batch job at all.
pub(super) fn both(arm: Regime, baseline: Regime, batch: bool) -> String {
    let (a, b) = (regime(arm, batch), regime(baseline, batch));
    if arm == baseline || b.is_empty() {
        return a;
    }
    let plain = Regime { credits_gone: None, phase: 0, ..arm };
    let shared = regime(plain, batch);
    // What only one side has is said once: an arm without credits has nothing to say about them.
    if baseline == plain {
        a
    } else if arm == plain {
        if b == shared { b } else { format!("{b} (baseline)") }
    } else {
        format!("{a} against {b}")
    }
}

/// A figure with three digits, and all digits before the point.
pub(super) fn figure(value: f64) -> String {
    let size = value.abs();
    let text = if size >= 99.95 {
        format!("{value:.0}")
    } else if size >= 9.995 {
        format!("{value:.1}")
    } else if size >= 0.0995 {
        format!("{value:.2}")
    } else {
        return if size == 0.0 { "0".to_owned() } else { format!("{value:.4}") };
    };
    grouped(&text)
}

/// A whole number, with commas between thousands.
pub(super) fn whole(number: u32) -> String {
    grouped(&number.to_string())
}

/// Commas between thousands.
fn grouped(text: &str) -> String {
    let (whole, rest) = text.split_once('.').map_or((text, None), |(whole, rest)| (whole, Some(rest)));
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    rest.map_or_else(|| format!("{sign}{out}"), |rest| format!("{sign}{out}.{rest}"))
}

/// A share as percent.
pub(super) fn percent(share: f64) -> String {
    let value = 100.0 * share;
    if value.abs() >= 9.95 || value == 0.0 { format!("{value:.0}%") } else { format!("{value:.1}%") }
}

/// A time, from us, in the unit that suits it.
pub(super) fn time(us: f64) -> String {
    let (figure, unit) = crate::words::latency(us);
    format!("{figure} {unit}")
}

/// What held an arm back, to go behind its name or behind "both"; `verb` is "waits" or "wait".
pub(super) fn limiter(limiter: Limiter, plural: bool) -> Option<String> {
    let (wait, are) = if plural { ("wait", "are") } else { ("waits", "is") };
    let volume = match limiter.volume {
        None | Some(Role::Data) => "the volume's",
        Some(Role::Redo) => "the redo volume's",
        Some(Role::Binlog) => "the binary log volume's",
        Some(Role::Undo) => "the undo volume's",
        Some(Role::Tmp) => "the temporary volume's",
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

/// Items as a sentence lists them.
pub(super) fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_three_digits() {
        for (value, text) in [
            (12_345.6, "12,346"),
            (-1234.0, "-1,234"),
            (99.97, "100"),
            (12.34, "12.3"),
            (1.0, "1.00"),
            (0.72, "0.72"),
            (0.0042, "0.0042"),
            (0.0, "0"),
        ] {
            assert_eq!(figure(value), text);
        }
        assert_eq!(
            (time(850.0).as_str(), time(12_300.0).as_str(), time(2.5e6).as_str()),
            ("850 us", "12.3 ms", "2.50 s")
        );
        assert_eq!((percent(0.994).as_str(), percent(0.021).as_str()), ("99%", "2.1%"));
    }

    #[test]
    fn conditions_that_one_side_lacks_are_said_once() {
        let gone = Regime { batch: true, credits_gone: Some(true), phase: 0 };
        let none = Regime { batch: true, credits_gone: None, phase: 0 };
        assert_eq!(both(gone, none, true), "with the batch job, credits used up");
        assert_eq!(both(gone, gone, true), "with the batch job, credits used up");
        assert_eq!(both(Regime::default(), Regime::default(), false), "");
    }
}
