//! The difference to UTC at the end of a time, as programs print it.

/// A time without and with its difference to UTC in s: `Z` behind a digit, `+0100`, `+01:00` or `+01`.
pub(super) fn split(text: &str) -> (&str, Option<i32>) {
    if let Some(time) =
        text.strip_suffix('Z').filter(|time| time.ends_with(|last: char| last.is_ascii_digit()))
    {
        return (time, Some(0));
    }
    // A date has a '-' too: the difference is the first sign after the hour's colon.
    let colon = text.find(':').unwrap_or(text.len());
    let Some(place) = text[colon..].find(['+', '-']).map(|place| colon + place) else { return (text, None) };
    match seconds(&text[place + 1..]) {
        Some(seconds) if text[place..].starts_with('-') => (text[..place].trim_end(), Some(-seconds)),
        Some(seconds) => (text[..place].trim_end(), Some(seconds)),
        None => (text, None),
    }
}

/// Hours, or hours and minutes, with or without a colon between them.
fn seconds(text: &str) -> Option<i32> {
    let digits: String = text.chars().filter(|letter| *letter != ':').collect();
    if !matches!(digits.len(), 2 | 4) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number = |part: &str| part.parse::<i32>().unwrap_or(0);
    Some(number(&digits[..2]) * 3_600 + number(&digits[2..]) * 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_to_utc_is_split_off_a_time_and_off_no_date() {
        for (text, time, seconds) in [
            ("2026-01-05T09:08:07Z", "2026-01-05T09:08:07", 0),
            ("2026-01-05 09:08:07+01:00", "2026-01-05 09:08:07", 3_600),
            ("2026-01-05 09:08:07 -0530", "2026-01-05 09:08:07", -19_800),
            ("2026/01/05 09:08 +01", "2026/01/05 09:08", 3_600),
        ] {
            assert_eq!(split(text), (time, Some(seconds)), "{text}");
        }
        for text in
            ["2026-01-05", "09:08:07", "09:08:07 05-01-26", "09:08:07 lun. 05-ene-26", "09:08:07 +9", "Z", ""]
        {
            assert_eq!(split(text), (text, None), "{text}");
        }
    }
}
