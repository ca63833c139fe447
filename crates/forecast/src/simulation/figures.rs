//! Figures of a simulation: those of `ebbtide_text`, of the model's times, with a dash where there is none.

use std::time::Duration;

pub(super) use ebbtide_text::{rate, whole};
use ebbtide_volume::{MIB, Nanos};

/// What was done a second in a span; none where the span has no time, in which anything is done infinitely fast.
pub(super) fn per_second(done: f64, span: Nanos) -> Option<f64> {
    (span > Nanos::ZERO).then(|| done / span.as_secs_f64())
}

/// A rate of a whole run; a dash where it took no time.
pub(super) fn mean_rate(done: f64, span: Nanos) -> String {
    per_second(done, span).map_or_else(|| "-".to_owned(), rate)
}

/// A latency with three digits; a dash without one.
pub(super) fn latency(latency: Option<Nanos>) -> String {
    latency.map_or_else(|| "-".to_owned(), |Nanos(ns)| ebbtide_text::latency(ns as f64 / 1e3))
}

/// A span of virtual time.
pub fn span(span: Nanos) -> String {
    ebbtide_text::span(Duration::from_nanos(span.0))
}

/// Seconds with commas and the span next to them where it reads better: `2,000 s (33 min 20 s)`.
pub(super) fn seconds(at: Nanos) -> String {
    let text = format!("{} s", whole(at.as_secs_f64()));
    if at < Nanos::from_secs(120) {
        text
    } else {
        format!("{text} ({})", span(Nanos(at.0 / 1_000_000_000 * 1_000_000_000)))
    }
}

/// A share (0 to 1) as a percentage; a dash without one.
pub(super) fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), ebbtide_text::percent)
}

/// Bytes in MiB.
pub(super) fn mib(bytes: f64) -> f64 {
    bytes / MIB as f64
}

/// A value with its last digits dropped, so that a machine's output stays short: three decimals.
pub(super) fn short(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// Microseconds, to the nanosecond.
pub(super) fn us(latency: Nanos) -> f64 {
    latency.0 as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_well() {
        assert_eq!(whole(1_999_000.4), "1,999,000");
        assert_eq!((rate(300.0), rate(46.875)), ("300".into(), "46.9".into()));
        assert_eq!(latency(Some(Nanos::from_us(700))), "700 us");
        assert_eq!(latency(Some(Nanos::from_us(21_333))), "21.3 ms");
        assert_eq!(latency(Some(Nanos::from_us(1_365_000))), "1.36 s");
        assert_eq!(latency(None), "-");
        assert_eq!(
            (mean_rate(30.0, Nanos::from_secs(10)), mean_rate(30.0, Nanos::ZERO)),
            ("3.0".into(), "-".into())
        );
        assert_eq!(percent(Some(0.0999)), "10%");
        assert_eq!(seconds(Nanos::from_secs(2_000)), "2,000 s (33 min 20 s)");
        assert_eq!(
            (percent(Some(0.0)), percent(Some(0.021)), percent(None)),
            ("0%".into(), "2.1%".into(), "-".into())
        );
    }
}
