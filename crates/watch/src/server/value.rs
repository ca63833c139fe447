//! The number that a server's word stands for, as mysqld_exporter reads it (`parseStatus` in its `collector.go`).

/// Months as OpenSSL prints them.
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The number of a word; None for one that stands for none, such as the name of a file.
///
/// Switches are 1 and 0, states of replication and of a cluster alike; times are seconds since 1970.
pub(super) fn number(text: &str) -> Option<f64> {
    let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if is(&["yes", "on", "primary"]) {
        return Some(1.0);
    }
    if is(&["no", "off", "disabled", "connecting", "non-primary", "disconnected"]) {
        return Some(0.0);
    }
    if let Some(seconds) = certificate_time(text).or_else(|| date_time(text)) {
        return Some(seconds as f64);
    }
    let value: f64 = text.parse().ok()?;
    // A number that is too large is none; a word for infinity is one.
    let is_too_large = value.is_infinite() && text.bytes().any(|byte| byte.is_ascii_digit());
    (!is_too_large).then_some(value)
}

/// `Nov  9 15:04:05 2036 GMT`, the form of the times of certificates, in seconds since 1970.
fn certificate_time(text: &str) -> Option<i64> {
    let mut words = text.split_ascii_whitespace();
    let month = words.next()?;
    let month = MONTHS.iter().position(|name| name.eq_ignore_ascii_case(month))?;
    let day: u8 = words.next().filter(|day| day.len() <= 2)?.parse().ok()?;
    let time = words.next()?;
    let year: i64 = words.next().filter(|year| year.len() == 4)?.parse().ok()?;
    let zone = words.next()?;
    let is_zone = (3..=4).contains(&zone.len()) && zone.bytes().all(|byte| byte.is_ascii_uppercase());
    if !is_zone || words.next().is_some() {
        return None;
    }
    Some(days(year, month + 1, day)? * 86_400 + seconds_of_day(time)?)
}

/// `2026-11-29 06:00:01`, with or without a fraction, in seconds since 1970 as if it were UTC.
fn date_time(text: &str) -> Option<i64> {
    let (date, time) = text.split_once(' ')?;
    let mut parts = date.split('-');
    let mut part = |length: usize| parts.next().filter(|part| part.len() == length && is_digits(part));
    let (year, month, day) = (part(4)?, part(2)?, part(2)?);
    if parts.next().is_some() {
        return None;
    }
    let days = days(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?)?;
    Some(days * 86_400 + seconds_of_day(time)?)
}

/// Seconds since midnight of `15:04:05`; a fraction behind is left out.
fn seconds_of_day(text: &str) -> Option<i64> {
    let (time, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let mut parts = time.split(':').map(|part| part.parse::<i64>().ok().filter(|_| is_digits(part)));
    let mut part = |below: i64| parts.next()?.filter(|number| (0..below).contains(number));
    let (hours, minutes, seconds) = (part(24)?, part(60)?, part(60)?);
    (parts.next().is_none() && is_digits(fraction)).then_some(hours * 3_600 + minutes * 60 + seconds)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Days since 1970 of a date of the Gregorian calendar; None for a date that does not exist.
fn days(year: i64, month: usize, day: u8) -> Option<i64> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let lengths = [31, if is_leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let length = *lengths.get(month.checked_sub(1)?)?;
    if day == 0 || day > length {
        return None;
    }
    // Leap days until the end of the year before, since the year 0.
    let leaps = |year: i64| year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let of_years = (year - 1_970) * 365 + leaps(year - 1) - leaps(1_969);
    let of_months: i64 = lengths[..month - 1].iter().map(|length| i64::from(*length)).sum();
    Some(of_years + of_months + i64::from(day) - 1)
}

/// A name as Prometheus takes it: small letters, digits and underscores.
pub(super) fn valid_name(name: &str) -> String {
    let valid = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c.to_ascii_lowercase() } else { '_' };
    name.chars().map(valid).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_the_numbers_that_mysqld_exporter_gives_them() {
        for (text, value) in [
            ("0", Some(0.0)),
            ("28800", Some(28_800.0)),
            ("-1", Some(-1.0)),
            ("0.000227664", Some(0.000_227_664)),
            ("1e3", Some(1_000.0)),
            ("18446744073709551615", Some(18_446_744_073_709_551_615.0)),
            ("ON", Some(1.0)),
            ("on", Some(1.0)),
            ("Yes", Some(1.0)),
            ("Primary", Some(1.0)),
            ("OFF", Some(0.0)),
            ("No", Some(0.0)),
            ("DISABLED", Some(0.0)),
            ("Connecting", Some(0.0)),
            ("non-Primary", Some(0.0)),
            ("Disconnected", Some(0.0)),
            ("Nov 26 10:00:00 2036 GMT", Some(2_111_306_400.0)),
            ("Jan  2 15:04:05 2006 UTC", Some(1_136_214_245.0)),
            ("2006-01-02 15:04:05", Some(1_136_214_245.0)),
            ("2006-01-02 15:04:05.999999", Some(1_136_214_245.0)),
            ("2024-02-29 00:00:00", Some(1_709_164_800.0)),
            ("1970-01-01 00:00:00", Some(0.0)),
            // A number, and not the end of a log's name.
            ("10.5", Some(10.5)),
            ("binlog.000001", None),
            ("8.0.36", None),
            ("10.11.19-MariaDB", None),
            ("0-1-4711", None),
            ("2026-02-29 00:00:00", None),
            ("0000-00-00 00:00:00", None),
            ("2026-11-29", None),
            ("Nov 31 10:00:00 2036 GMT", None),
            ("Nov 26 24:00:00 2036 GMT", None),
            ("Buffer pool(s) load completed at 261122 23:17:49", None),
            ("1e999", None),
            ("0x10", None),
            ("", None),
            (" 1", None),
            ("REPEATABLE-READ", None),
            ("é\u{2028}", None),
        ] {
            assert_eq!(number(text), value, "{text:?}");
        }
        assert!(number("NaN").unwrap().is_nan());
        assert_eq!(number("inf"), Some(f64::INFINITY));
    }

    #[test]
    fn a_name_of_a_plugin_is_a_name_of_prometheus() {
        assert_eq!(
            valid_name("validate_password.dictionary_file_words_count"),
            "validate_password_dictionary_file_words_count"
        );
        assert_eq!(valid_name("Ünï-x"), "_n__x");
    }
}
