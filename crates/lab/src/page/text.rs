//! Figures and names as the page writes them: those of `ebbtide_text`, with the signs and spaces of print.

use crate::experiment::Role;
use crate::summary::{Bottleneck, Cause, Limiter};
use ebbtide_analysis::stats::Interval;
use ebbtide_text::typeset;
pub use ebbtide_text::{count, list, percent};

/// A text with a capital first letter.
#[must_use]
pub fn capital(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or(String::new(), |first| first.to_uppercase().chain(characters).collect())
}

/// A whole number with commas: `1,999`.
#[must_use]
pub fn whole(value: f64) -> String {
    typeset(&ebbtide_text::whole(value))
}

/// Three significant digits: `1,234`, `56.7`, `0.089`.
#[must_use]
pub fn short(value: f64) -> String {
    typeset(&ebbtide_text::figure(value))
}

/// A time given in microseconds, in the unit that suits it; a dash for none at all.
#[must_use]
pub fn latency(us: f64) -> String {
    if us <= 0.0 { "\u{2013}".into() } else { typeset(&ebbtide_text::latency(us)) }
}

/// Bytes in the unit that suits them.
#[must_use]
pub fn bytes(bytes: f64) -> String {
    typeset(&ebbtide_text::bytes(bytes))
}

/// A ratio as a figure: `12.6x`, `+4.2%`, `-37%`, with the signs of print.
#[must_use]
pub fn change(ratio: f64) -> String {
    typeset(&ebbtide_text::change(ratio))
}

/// Both ends of a ratio's interval in the form that [`change`] gives its middle.
#[must_use]
pub fn change_interval(interval: &Interval) -> String {
    ebbtide_text::change_interval(interval.mid, interval.low, interval.high).replace('-', "\u{2212}")
}

/// A text of several lines as one.
#[must_use]
pub fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What holds an arm back, to follow its name and a colon.
#[must_use]
pub fn limiter(limiter: &Limiter) -> String {
    let volume = match limiter.volume {
        None | Some(Role::Data) => "the volume".to_owned(),
        Some(other) => format!("the volume of the {}", other.holds()),
    };
    let share = percent(limiter.share);
    match limiter.what {
        Bottleneck::VolumeIops => format!("held back by the IOPS limit of {volume} for {share} of the time"),
        Bottleneck::VolumeThroughput => {
            format!("held back by the throughput limit of {volume} for {share} of the time")
        }
        Bottleneck::InstanceIops => {
            format!("held back by the instance's IOPS limit for {share} of the time")
        }
        Bottleneck::InstanceThroughput => {
            format!("held back by the instance's throughput limit for {share} of the time")
        }
        Bottleneck::Processors => "held back by the processors of this machine, not by the volume".into(),
        Bottleneck::Checkpoint => {
            format!("held back by flushing: the redo log was {share} full, and the volume below its limits")
        }
        Bottleneck::RowLocks => "held back by row locks".into(),
        Bottleneck::VolumeLatency => {
            format!(
                "held back by the latency of {volume}; no limit was reached, more connections would carry more"
            )
        }
        Bottleneck::OfferedRate => "carried the whole offered rate".into(),
        Bottleneck::Unknown => "no single cause was found for its limit".into(),
    }
}

/// What holds an arm back, in a word or two for a table; none where nothing was found.
#[must_use]
pub fn limiter_short(what: Bottleneck) -> &'static str {
    match what {
        Bottleneck::VolumeIops => "volume's IOPS",
        Bottleneck::VolumeThroughput => "volume's MiB/s",
        Bottleneck::InstanceIops => "instance's IOPS",
        Bottleneck::InstanceThroughput => "instance's MiB/s",
        Bottleneck::Processors => "processors",
        Bottleneck::Checkpoint => "full redo log",
        Bottleneck::RowLocks => "row locks",
        Bottleneck::VolumeLatency => "volume's latency",
        Bottleneck::OfferedRate => "offered rate",
        Bottleneck::Unknown => "",
    }
}

/// Why conditions changed, as the label of a moment.
#[must_use]
pub fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::CreditsEnded => "burst credits gone",
        Cause::CreditsBack => "burst credits back",
        Cause::BatchJoined => "batch job joins",
        Cause::BatchLeft => "batch job leaves",
        Cause::BackupBegan => "backup begins",
        Cause::BackupEnded => "backup ends",
        Cause::CeilingChanged => "limit changed",
        Cause::Unknown => "level changed",
    }
}

/// The day and the minute of a time in ns since 1970, in UTC.
#[must_use]
pub fn moment(ns: u64) -> String {
    jiff::Timestamp::from_nanosecond(i128::from(ns))
        .map(|time| time.strftime("%-d %B %Y, %H:%M UTC").to_string())
        .unwrap_or_default()
}

/// A stretch of time, in whole seconds.
#[must_use]
pub fn span(seconds: f64) -> String {
    typeset(&ebbtide_text::seconds(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_written_in_plain_words() {
        assert_eq!(change(12.64), "12.6\u{d7}");
        assert_eq!(change(1.042), "+4.2%");
        assert_eq!(change(0.63), "\u{2212}37%");
        assert_eq!(change(1.0), "+0%");
        let interval = Interval { mid: 1.0, low: 0.97, high: 1.05 };
        assert_eq!(change_interval(&interval), "\u{2212}3.0% to +5.0%");
        let wide = |mid| change_interval(&Interval { mid, low: 0.84, high: 3.9 });
        assert_eq!([wide(2.5), wide(1.8)], ["0.84 to 3.90 times", "\u{2212}16% to +290%"]);
    }

    #[test]
    fn figures_have_the_digits_that_they_carry() {
        assert_eq!(short(1234.6), "1,235");
        assert_eq!(short(56.74), "56.7");
        assert_eq!(short(0.0), "0");
        assert_eq!(latency(312_400.0), "312\u{a0}ms");
        assert_eq!(latency(4_120_000.0), "4.12\u{a0}s");
        assert_eq!(latency(850.0), "850\u{a0}\u{b5}s");
        assert_eq!(latency(0.0), "\u{2013}");
        assert_eq!(bytes(16.0 * 1_048_576.0), "16\u{a0}MiB");
        assert_eq!(span(3_605.0), "1\u{a0}h\u{a0}5\u{a0}s");
        assert_eq!(percent(0.983), "98%");
        assert_eq!(whole(-1234.0), "\u{2212}1,234");
    }

    #[test]
    fn a_moment_is_a_date_in_utc() {
        assert_eq!(moment(1_000_000_000_000_000_000), "9 September 2001, 01:46 UTC");
    }
}
