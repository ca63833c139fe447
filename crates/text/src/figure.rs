//! Numbers, percentages and ratios.

/// From this ratio on, people say "times" and not "percent more".
const TIMES: f64 = 2.0;

/// A number with so many decimals, half of the last one rounded away from zero, as people and JavaScript do it. The
/// formatting of the standard library rounds such a half to the even digit.
#[must_use]
pub fn fixed(value: f64, decimals: usize) -> String {
    let size = value.abs();
    // 40 decimals are exact enough: a half of the fourth decimal ends at the fifth.
    let exact = format!("{size:.40}");
    let rest = exact.split_once('.').and_then(|(_, places)| places.get(decimals..)).unwrap_or_default();
    let is_half = rest.starts_with('5') && rest[1..].bytes().all(|digit| digit == b'0');
    let text = format!("{:.decimals$}", if is_half { size.next_up() } else { size });
    let is_zero = text.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    if value < 0.0 && !is_zero { format!("-{text}") } else { text }
}

/// A whole number with commas between thousands: `1,999`.
#[must_use]
pub fn whole(value: f64) -> String {
    grouped(&fixed(value, 0))
}

/// A rate: whole from 100 on, with one decimal below, so that the rows of a table line up: `1,234`, `56.7`.
#[must_use]
pub fn rate(value: f64) -> String {
    if value >= 99.95 { whole(value) } else { fixed(value, 1) }
}

/// Three significant digits, two below 1, and all digits before the point: `1,234`, `56.7`, `1.00`, `0.089`.
#[must_use]
pub fn figure(value: f64) -> String {
    let size = value.abs();
    if size >= 99.95 || size == 0.0 || !size.is_finite() {
        return whole(value);
    }
    grouped(&fixed(value, decimals(size)))
}

/// How many decimals leave the digits of a figure, of a number below 100 and above 0.
fn decimals(size: f64) -> usize {
    // The power of ten after rounding: 9.996 has two digits before the point.
    let power = |digits: usize| {
        let text = format!("{size:.*e}", digits - 1);
        text.split_once('e').and_then(|(_, power)| power.parse::<i32>().ok()).unwrap_or(0)
    };
    let decimals = if size >= 0.995 { 2 - power(3).max(0) } else { 1 - power(2) };
    usize::try_from(decimals).unwrap_or(0)
}

/// A figure without the zeros at its end, for the ticks of an axis: `1`, `0.5`, `12.3`.
#[must_use]
pub fn without_zeros(figure: &str) -> &str {
    if figure.contains('.') { figure.trim_end_matches('0').trim_end_matches('.') } else { figure }
}

/// Commas between thousands.
fn grouped(text: &str) -> String {
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    let mut out = sign.to_owned();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + rest
}

/// A share, of which 1 is all, as a percentage with two digits: `61%`, `2.1%`, `0.05%`; `<0.01%` where it is less and
/// not zero.
#[must_use]
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    let decimals = match value.abs() {
        9.95.. | 0.0 => 0,
        0.095.. => 1,
        0.0095.. => 2,
        _ if value.is_nan() => 0,
        _ => return format!("{}<0.01%", if value < 0.0 { "-" } else { "" }),
    };
    format!("{}%", fixed(value, decimals))
}

/// A ratio as a change: `12.6x` from twice on, `+4.2%` and `-37%` below.
#[must_use]
pub fn change(ratio: f64) -> String {
    if ratio >= TIMES { format!("{}x", figure(ratio)) } else { signed_percent(ratio) }
}

/// Both ends of a ratio's interval in the form that [`change`] gives its middle: `1.60 to 3.90 times`, `-3.0% to +5.0%`.
#[must_use]
pub fn change_interval(mid: f64, low: f64, high: f64) -> String {
    if mid >= TIMES {
        format!("{} to {} times", figure(low), figure(high))
    } else {
        format!("{} to {}", signed_percent(low), signed_percent(high))
    }
}

/// How far a ratio is from 1: `+4.2%`, `-37%`.
fn signed_percent(ratio: f64) -> String {
    let share = ratio - 1.0;
    format!("{}{}", if share < 0.0 { "-" } else { "+" }, percent(share.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_half_is_rounded_away_from_zero_and_nothing_else_is_touched() {
        for (value, decimals, text) in [
            (2.5, 0, "3"),
            (1234.5, 0, "1235"),
            (-2.5, 0, "-3"),
            (0.25, 1, "0.3"),
            (0.125, 2, "0.13"),
            // Below a half in binary, whatever their decimals look like.
            (1.005, 2, "1.00"),
            (1.115, 2, "1.11"),
            (2.499_999_999, 0, "2"),
            (-0.04, 1, "0.0"),
            (1e15, 0, "1000000000000000"),
        ] {
            assert_eq!(fixed(value, decimals), text, "{value}");
        }
    }

    #[test]
    fn figures_have_the_digits_that_they_carry() {
        for (value, text) in [
            (12_345.6, "12,346"),
            (1_999_000.4, "1,999,000"),
            (-1234.0, "-1,234"),
            (99.97, "100"),
            (99.94, "99.9"),
            (12.34, "12.3"),
            (9.996, "10.0"),
            (1.0, "1.00"),
            (0.996, "1.00"),
            (0.72, "0.72"),
            (0.089, "0.089"),
            (0.0042, "0.0042"),
            (0.0, "0"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(figure(value), text);
        }
        let trims = [0.0, 0.0345, 0.5, 1.0, 9.996, 12.34, 99.94, 100.0, 1234.5, -0.25]
            .map(|value| without_zeros(&figure(value)).to_owned());
        assert_eq!(trims, ["0", "0.035", "0.5", "1", "10", "12.3", "99.9", "100", "1,235", "-0.25"]);
    }

    #[test]
    fn shares_have_two_digits_and_are_never_called_zero() {
        let texts = [0.994, 0.0995, 0.0994, 0.021, 0.000_95, 0.000_5, 0.000_09, 0.0, -0.37].map(percent);
        assert_eq!(texts, ["99%", "10%", "9.9%", "2.1%", "0.1%", "0.05%", "<0.01%", "0%", "-37%"]);
    }

    #[test]
    fn ratios_are_written_as_people_speak_them() {
        let texts = [125.4, 12.64, 9.47, 1.042, 0.63, 1.0].map(change);
        assert_eq!(texts, ["125x", "12.6x", "9.47x", "+4.2%", "-37%", "+0%"]);
        assert_eq!(change_interval(1.0, 0.97, 1.05), "-3.0% to +5.0%");
        assert_eq!(change_interval(2.5, 0.84, 3.9), "0.84 to 3.90 times");
        assert_eq!(change_interval(1.8, 0.84, 3.9), "-16% to +290%");
    }
}
