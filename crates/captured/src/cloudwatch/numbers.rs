//! Numbers as spreadsheets write them: with separators of thousands, and a decimal comma.
//!
//! `59,246` has two readings. Which one is right is decided by all numbers of a file: `1,234,567` and `1,234.5` have thousands,
//! `0,247` and `44,43` have decimals.

/// What stands between the digits of a file's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NumberStyle {
    decimal: char,
}

/// What one number tells of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Decimal,
    Thousands,
}

/// Blanks and apostrophes that stand between thousands in some languages.
const BLANKS: [char; 6] = [' ', '\u{a0}', '\u{202f}', '\u{2009}', '\'', '’'];

fn is_blank(letter: char) -> bool {
    BLANKS.contains(&letter)
}

impl NumberStyle {
    /// The style of all numbers of a file whose fields are divided by `delimiter`. None where they contradict each other, or have two
    /// readings.
    pub(super) fn of<'a>(numbers: impl Iterator<Item = &'a str>, delimiter: char) -> Option<Self> {
        let (mut found, mut ambiguous) = ([None, None], [false, false]);
        // Most numbers of most files are digits alone.
        for number in numbers.filter(|number| !number.bytes().all(|byte| byte.is_ascii_digit())) {
            for (place, mark) in ['.', ','].into_iter().enumerate() {
                match role(number, mark) {
                    Some(role) if found[place].is_some_and(|known| known != role) => return None,
                    Some(role) => found[place] = Some(role),
                    None => ambiguous[place] |= number.contains(mark),
                }
            }
        }
        let decimal = match (found, ambiguous) {
            ([Some(Role::Decimal), Some(Role::Decimal)], _) => return None,
            ([Some(Role::Decimal), _] | [_, Some(Role::Thousands)], _) => '.',
            ([_, Some(Role::Decimal)] | [Some(Role::Thousands), _], _) => ',',
            // Only one of the two marks, always before three digits. A field of a file with commas has its thousands in quotes, and
            // semicolons divide fields where the comma is the decimal mark. Programs write three decimals after a point.
            (_, [_, true]) => match delimiter {
                ';' => ',',
                ',' => '.',
                _ => return None,
            },
            _ => '.',
        };
        Some(Self { decimal })
    }

    /// Reads a number; None where it is none in this style.
    pub(super) fn read(self, number: &str) -> Option<f64> {
        if is_plain(number, self.decimal) {
            return number.parse().ok();
        }
        let thousands = if self.decimal == '.' { ',' } else { '.' };
        let (whole, decimals) =
            number.split_once(self.decimal).map_or((number, None), |(whole, rest)| (whole, Some(rest)));
        let is_thousands = |letter: char| letter == thousands || is_blank(letter);
        let mut groups = whole.split(is_thousands);
        let first = groups.next()?;
        let digits = first.trim_start_matches(['-', '+']);
        let mut joined = first.to_owned();
        for group in groups {
            let is_group = group.len() == 3 && group.bytes().all(|byte| byte.is_ascii_digit());
            if !is_group || !(1..=3).contains(&digits.len()) {
                return None;
            }
            joined.push_str(group);
        }
        if let Some(decimals) = decimals {
            joined.push('.');
            joined.push_str(decimals);
        }
        joined.parse().ok()
    }
}

/// Whether a number is digits with a decimal point between them, which is read as it stands.
fn is_plain(number: &str, decimal: char) -> bool {
    let mut points = 0;
    let digits = number.bytes().all(|byte| {
        points += usize::from(byte == b'.');
        byte.is_ascii_digit() || byte == b'.'
    });
    let is_edge = number.starts_with('.') || number.ends_with('.');
    digits && !number.is_empty() && (points == 0 || (points == 1 && decimal == '.' && !is_edge))
}

/// What a mark is in a number; None where it is not in it, or may be either.
fn role(number: &str, mark: char) -> Option<Role> {
    let other = if mark == '.' { ',' } else { '.' };
    let (before, after) = number.rsplit_once(mark)?;
    if before.contains(mark) || after.contains(other) {
        return Some(Role::Thousands);
    }
    let digits = before.trim_start_matches(['-', '+']);
    let three = after.len() == 3 && after.bytes().all(|byte| byte.is_ascii_digit());
    let decimal = !three
        || before.contains(other)
        || before.contains(is_blank)
        || !(1..=3).contains(&digits.len())
        || digits == "0";
    decimal.then_some(Role::Decimal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(numbers: &[&str], delimiter: char) -> Option<Vec<Option<f64>>> {
        let style = NumberStyle::of(numbers.iter().copied(), delimiter)?;
        Some(numbers.iter().map(|number| style.read(number)).collect())
    }

    #[test]
    fn all_numbers_together_tell_thousands_from_decimals() {
        let values = |numbers: &[&str], delimiter| {
            read(numbers, delimiter).unwrap().into_iter().map(Option::unwrap).collect::<Vec<_>>()
        };
        // (numbers, delimiter, values)
        let cases: [(&[&str], char, &[f64]); 10] = [
            (&["59246", "44.434", "9.5E+08"], ',', &[59_246.0, 44.434, 9.5e8]),
            (&["59,246", "970,680,577", "44.4"], ',', &[59_246.0, 970_680_577.0, 44.4]),
            (&["59,246"], ',', &[59_246.0]),
            (&["59,246", "0,247"], ';', &[59.246, 0.247]),
            (&["59.246", "970.680.577", "44,4"], ';', &[59_246.0, 970_680_577.0, 44.4]),
            (&["59.246", "0,247"], ';', &[59_246.0, 0.247]),
            (&["44,434"], ';', &[44.434]),
            (&["44.434"], ';', &[44.434]),
            (&["59 246", "59\u{a0}246,5", "1'234'567"], ';', &[59_246.0, 59_246.5, 1_234_567.0]),
            (&["1,234,567", "59.246"], '\t', &[1_234_567.0, 59.246]),
        ];
        for (numbers, delimiter, expected) in cases {
            assert_eq!(values(numbers, delimiter), expected, "{numbers:?} {delimiter:?}");
        }
    }

    #[test]
    fn numbers_with_two_readings_that_contradict_each_other_or_are_none_are_not_read() {
        for (numbers, delimiter) in
            [(&["59,246"][..], '\t'), (&["0,5", "1,234,567"], ';'), (&["0.5", "0,5"], ';')]
        {
            assert_eq!(read(numbers, delimiter), None, "{numbers:?}");
        }
        let style = NumberStyle { decimal: '.' };
        for number in ["", "59,24", "5924,246", ",246", "1,234,56", "ten", "1.2.3"] {
            assert_eq!(style.read(number), None, "{number}");
        }
    }
}
