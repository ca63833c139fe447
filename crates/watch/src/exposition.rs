//! The text format of Prometheus, version 0.0.4: families with their help and type, and a line for each value.
//!
//! <https://prometheus.io/docs/instrumenting/exposition_formats/>

use std::fmt::{self, Write as _};

use ebbtide_volume::{LatencyHistogram, Nanos};

use crate::family::{Family, FamilyKind};

/// The media type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    /// A count, or a number of bytes.
    Whole(u64),
    /// A time, which is written in seconds, to the nanosecond.
    Time(Nanos),
    /// Any other.
    Real(f64),
}

impl Number {
    /// 1 for true, 0 for false.
    pub(crate) fn flag(is_true: bool) -> Self {
        Self::Whole(is_true.into())
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Whole(number) => number.fmt(f),
            Self::Time(Nanos(ns)) => {
                let (seconds, rest) = (ns / Nanos::SECOND.0, ns % Nanos::SECOND.0);
                if rest == 0 {
                    return seconds.fmt(f);
                }
                // As many digits as it needs: a float has too few for a time of years in nanoseconds.
                let digits = format!("{rest:09}");
                write!(f, "{seconds}.{}", digits.trim_end_matches('0'))
            }
            Self::Real(number) if number.is_nan() => f.write_str("NaN"),
            Self::Real(number) if number.is_infinite() => {
                f.write_str(if number > 0.0 { "+Inf" } else { "-Inf" })
            }
            Self::Real(number) => number.fmt(f),
        }
    }
}

/// Latencies with their sum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Distribution {
    pub(crate) bins: LatencyHistogram,
    pub(crate) sum: Nanos,
}

/// A label with its value.
pub(crate) type Label<'a> = (&'a str, &'a str);

/// The text, family by family.
#[derive(Debug, Default)]
pub(crate) struct Exposition {
    text: String,
    /// The family whose lines follow.
    current: Option<String>,
}

impl Exposition {
    /// The whole text.
    pub(crate) fn into_text(self) -> String {
        self.text
    }

    /// Adds a value. The lines of a family must follow each other.
    pub(crate) fn add(&mut self, family: &Family, labels: &[Label<'_>], number: Number) {
        self.begin(family.name, family.kind.name(), family.help);
        self.line(family.name, "", labels, None, number);
    }

    /// Adds a histogram: buckets that each count all below their bound, sum and count.
    pub(crate) fn add_distribution(&mut self, family: &Family, labels: &[Label<'_>], added: &Distribution) {
        self.begin(family.name, family.kind.name(), family.help);
        let mut count = 0;
        for (bin, in_bin) in added.bins.bins.iter().enumerate() {
            count += in_bin;
            let bound = match LatencyHistogram::bounds_us(bin) {
                (_, Some(us)) => Number::Time(Nanos::from_us(us)).to_string(),
                (_, None) => "+Inf".to_owned(),
            };
            self.line(family.name, "_bucket", labels, Some(&bound), Number::Whole(count));
        }
        self.line(family.name, "_sum", labels, None, Number::Time(added.sum));
        self.line(family.name, "_count", labels, None, Number::Whole(count));
    }

    /// Writes help and type before the first line of a family, which may have a name and a type that no [`Family`] has.
    pub(crate) fn begin(&mut self, name: &str, kind: &str, help: &str) {
        if self.current.as_deref() == Some(name) {
            return;
        }
        self.current = Some(name.to_owned());
        let help = escaped(help, false);
        write_all(&mut self.text, format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    /// Writes a line of the family that has begun. A line of a histogram has a suffix, and a bucket its upper bound.
    pub(crate) fn line(
        &mut self,
        name: &str,
        suffix: &str,
        labels: &[Label<'_>],
        bound: Option<&str>,
        number: Number,
    ) {
        write_all(&mut self.text, format_args!("{name}{suffix}"));
        let bound = bound.map(|bound| ("le", bound));
        for (place, (label, value)) in labels.iter().copied().chain(bound).enumerate() {
            let opened = if place == 0 { '{' } else { ',' };
            write_all(&mut self.text, format_args!("{opened}{label}=\"{}\"", escaped(value, true)));
        }
        let closed = if labels.is_empty() && bound.is_none() { "" } else { "}" };
        write_all(&mut self.text, format_args!("{closed} {number}\n"));
    }
}

fn write_all(text: &mut String, added: fmt::Arguments<'_>) {
    text.write_fmt(added).expect("a text takes whatever is written to it");
}

/// A text with what would end it as escapes: a help text has no quotes, a label's value has.
fn escaped(text: &str, is_quoted: bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => escaped.push_str("\\\\"),
            '\n' => escaped.push_str("\\n"),
            '"' if is_quoted => escaped.push_str("\\\""),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Whether a family is written with [`Exposition::add_distribution`].
pub(crate) const fn is_distribution(family: &Family) -> bool {
    matches!(family.kind, FamilyKind::Histogram)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Family = Family {
        name: "e_things",
        kind: FamilyKind::Gauge,
        unit: "things",
        labels: &["volume"],
        help: "All \"things\",\nback\\slashes too.",
        source: "a test",
    };

    #[test]
    fn help_and_type_are_written_once_and_what_would_end_a_text_is_escaped() {
        let mut text = Exposition::default();
        text.add(&PLAIN, &[("volume", "a\"b\\c\nd é")], Number::Whole(u64::MAX));
        text.add(&PLAIN, &[], Number::Real(0.5));
        let expected = "# HELP e_things All \"things\",\\nback\\\\slashes too.\n# TYPE e_things gauge\n\
                        e_things{volume=\"a\\\"b\\\\c\\nd é\"} 18446744073709551615\ne_things 0.5\n";
        assert_eq!(text.into_text(), expected);
    }

    #[test]
    fn numbers_are_written_as_prometheus_reads_them() {
        for (number, text) in [
            (Number::Real(f64::NAN), "NaN"),
            (Number::Real(f64::INFINITY), "+Inf"),
            (Number::Real(f64::NEG_INFINITY), "-Inf"),
            (Number::Real(1e-7), "0.0000001"),
            (Number::Real(3.0), "3"),
            (Number::Time(Nanos(1)), "0.000000001"),
            (Number::Time(Nanos(1_780_000_000_123_456_700)), "1780000000.1234567"),
            (Number::Time(Nanos::from_secs(60)), "60"),
            (Number::Time(Nanos::ZERO), "0"),
            (Number::flag(true), "1"),
        ] {
            assert_eq!(number.to_string(), text);
        }
    }

    #[test]
    fn buckets_of_a_histogram_count_all_below_their_bound_and_the_sum_is_that_of_all_values() {
        let mut bins = LatencyHistogram::default();
        for us in [0, 1, 300, 300, 90_000_000] {
            bins.record(Nanos::from_us(us));
        }
        let family = Family { name: "e_seconds", kind: FamilyKind::Histogram, help: "H.", ..PLAIN };
        let mut text = Exposition::default();
        let sum = Nanos::from_us(90_000_601);
        text.add_distribution(&family, &[("volume", "db")], &Distribution { bins, sum });
        let text = text.into_text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2 + 28 + 2, "{text}");
        for line in [
            "e_seconds_bucket{volume=\"db\",le=\"0.000001\"} 1",
            "e_seconds_bucket{volume=\"db\",le=\"0.000002\"} 2",
            "e_seconds_bucket{volume=\"db\",le=\"0.000256\"} 2",
            "e_seconds_bucket{volume=\"db\",le=\"0.000512\"} 4",
            "e_seconds_bucket{volume=\"db\",le=\"67.108864\"} 4",
            "e_seconds_bucket{volume=\"db\",le=\"+Inf\"} 5",
            "e_seconds_sum{volume=\"db\"} 90.000601",
            "e_seconds_count{volume=\"db\"} 5",
        ] {
            assert!(lines.contains(&line), "{line} is not in\n{text}");
        }
    }
}
