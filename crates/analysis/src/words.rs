//! Figures in words, for the terminal, the findings and the page alike.

/// A time given in us as a figure of three digits and its unit: `s`, `ms` or `us`. What would be rounded
/// up to a thousand of a unit is one of the next.
#[must_use]
pub fn latency(us: f64) -> (String, &'static str) {
    match us {
        999_500.0.. => (three_digits(us / 1e6), "s"),
        999.5.. => (three_digits(us / 1e3), "ms"),
        _ => (format!("{us:.0}"), "us"),
    }
}

fn three_digits(value: f64) -> String {
    match value {
        99.95.. => format!("{value:.0}"),
        9.995.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_at_any_size_and_never_a_thousand_of_a_unit() {
        for (us, told) in [
            (83.4, "83 us"),
            (999.4, "999 us"),
            (999.6, "1.00 ms"),
            (1_234.0, "1.23 ms"),
            (9_996.0, "10.0 ms"),
            (12_345.0, "12.3 ms"),
            (99_960.0, "100 ms"),
            (123_456.0, "123 ms"),
            (999_400.0, "999 ms"),
            (999_600.0, "1.00 s"),
            (1_234_567.0, "1.23 s"),
            (95_885_040.0, "95.9 s"),
            (1.25e8, "125 s"),
        ] {
            let (figure, unit) = latency(us);
            assert_eq!(format!("{figure} {unit}"), told);
        }
    }
}
