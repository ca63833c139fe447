//! The figures of a row: numbers in any language, with the unit of their column or their own.

use std::borrow::Cow;
use std::collections::BTreeMap;

use ebbtide_observe::DeviceIo;

/// A figure as it was printed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Figure {
    value: f64,
    /// Half of its last digit: by so much it may be wrong.
    rounding: f64,
    /// Bytes of its own unit (`--human`); None where the column has the unit.
    unit: Option<f64>,
}

impl Figure {
    /// The number.
    pub(super) const fn value(self) -> f64 {
        self.value
    }

    /// The figure, where it has no unit: sysstat prints none for operations and times.
    fn without_unit(self) -> Option<Self> {
        self.unit.is_none().then_some(self)
    }

    /// A figure of JSON, which has two decimals.
    pub(super) const fn of_number(value: f64) -> Self {
        Self { value, rounding: 0.005, unit: None }
    }
}

/// Units of `--human`, which sysstat counts in 1,024s. `s` is a sector.
const OWN_UNITS: [(char, f64); 7] = [
    ('s', 512.0),
    ('B', 1.0),
    ('k', 1_024.0),
    ('M', 1_048_576.0),
    ('G', 1_073_741_824.0),
    ('T', 1_099_511_627_776.0),
    ('P', 1_125_899_906_842_624.0),
];

/// Reads a figure: some languages write a comma; None for a text of another kind, `nan` and a negative one too.
pub(super) fn figure(text: &str) -> Option<Figure> {
    let text = text.trim_end_matches('%');
    let own = OWN_UNITS.iter().find_map(|(letter, bytes)| Some((text.strip_suffix(*letter)?, *bytes)));
    let (digits, unit) = own.map_or((text, None), |(digits, bytes)| (digits, Some(bytes)));
    let digits: Cow<'_, str> =
        if digits.contains([',', '٫']) { digits.replace([',', '٫'], ".").into() } else { digits.into() };
    if !digits.starts_with(|letter: char| letter.is_ascii_digit()) {
        return None;
    }
    let value: f64 = digits.parse().ok().filter(|value: &f64| value.is_finite())?;
    let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let rounding = 0.5 / 10_f64.powi(i32::try_from(decimals).ok()?);
    Some(Figure { value, rounding, unit })
}

/// How a row tells reads from writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Split {
    /// Each has figures of its own.
    #[default]
    Known,
    /// Operations are counted together and divided as the bytes are (sar).
    ByBytes,
    /// All is counted together: half of it is taken for each (`iostat -x -s`).
    Halves,
}

/// What a device did in an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct DeviceRow {
    pub(crate) io: DeviceIo,
    /// Mean time of an operation of either kind, s, where each has none of its own.
    pub(crate) both_s: Option<f64>,
    pub(crate) split: Split,
}

/// What devices did, by name.
pub(crate) type Rows = BTreeMap<String, DeviceRow>;

/// Bytes of a unit in the name of a column.
const UNITS: [(&str, f64); 5] =
    [("kB", 1_024.0), ("MB", 1_048_576.0), ("GB", 1_073_741_824.0), ("sec", 512.0), ("B", 1.0)];

/// Bytes a second of the columns `{side}kB/s` and the like. Where these are rounded more than the product of operations and
/// their mean size, that is taken.
fn bytes(value: &impl Fn(&str) -> Option<Figure>, side: &str, ios: Figure, size: &str) -> Option<f64> {
    let (rate, unit) =
        UNITS.iter().find_map(|(unit, bytes)| Some((value(&format!("{side}{unit}/s"))?, *bytes)))?;
    let unit = rate.unit.unwrap_or(unit);
    let Some(mean) = value(size) else { return Some(rate.value * unit) };
    let mean_unit = mean.unit.unwrap_or(1_024.0);
    let wrong_by = (ios.value * mean.rounding + ios.rounding * mean.value) * mean_unit;
    if rate.rounding * unit <= wrong_by || ios.value == 0.0 {
        Some(rate.value * unit)
    } else {
        Some(ios.value * mean.value * mean_unit)
    }
}

/// A row of `iostat -x` by the names of its columns; None where a figure is missing or no number.
pub(super) fn of_iostat(value: impl Fn(&str) -> Option<Figure>) -> Option<DeviceRow> {
    let count = |name: &str| value(name)?.without_unit();
    let queue = count("aqu-sz").or_else(|| count("avgqu-sz"))?.value;
    let time = |name: &str| Some(count(name)?.value / 1e3);
    if let Some(ios) = count("tps") {
        let half = bytes(&value, "", ios, "areq-sz")? / 2.0;
        let io = DeviceIo {
            reads: ios.value / 2.0,
            writes: ios.value / 2.0,
            read_bytes: half,
            written_bytes: half,
            queue,
            ..DeviceIo::default()
        };
        return Some(DeviceRow { io, both_s: time("await"), split: Split::Halves });
    }
    let (reads, writes) = (count("r/s")?, count("w/s")?);
    let io = DeviceIo {
        reads: reads.value,
        writes: writes.value,
        read_bytes: bytes(&value, "r", reads, "rareq-sz")?,
        written_bytes: bytes(&value, "w", writes, "wareq-sz")?,
        queue,
        read_s: time("r_await"),
        write_s: time("w_await"),
    };
    Some(DeviceRow { io, both_s: time("await"), split: Split::Known })
}

/// A row of sar by the names of its columns, without `/s` as in JSON too; None where one is missing or no number.
pub(super) fn of_sar(value: impl Fn(&str) -> Option<Figure>) -> Option<DeviceRow> {
    let named = |name: &str| value(&format!("{name}/s")).or_else(|| value(name));
    let bytes = |side: &str| {
        UNITS.iter().find_map(|(unit, bytes)| {
            let figure = named(&format!("{side}{unit}")).or_else(|| named(&format!("{side}d_{unit}")));
            let figure = figure.or_else(|| named(&format!("{side}r_{unit}")))?;
            Some(figure.value * figure.unit.unwrap_or(*bytes))
        })
    };
    let (read_bytes, written_bytes) = (bytes("r")?, bytes("w")?);
    let count = |name: &str| value(name)?.without_unit();
    let ios = count("tps")?.value;
    let moved = read_bytes + written_bytes;
    let share = if moved > 0.0 { read_bytes / moved } else { 0.0 };
    let queue = count("aqu-sz").or_else(|| count("avgqu-sz"))?.value;
    let reads = ios * share;
    let io = DeviceIo { reads, writes: ios - reads, read_bytes, written_bytes, queue, ..DeviceIo::default() };
    let both_s = count("await").map(|ms| ms.value / 1e3).filter(|_| ios > 0.0);
    Some(DeviceRow { io, both_s, split: Split::ByBytes })
}

/// A text without the escape sequences of colours and the carriage returns of a terminal.
pub(super) fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(['\u{1b}', '\r', '\u{feff}']) {
        return text.into();
    }
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1b}' if letters.peek() == Some(&'[') => {
                // ESC [ parameters, until a letter of @ to ~.
                let _bracket = letters.next();
                let _end = letters.find(|letter| ('@'..='~').contains(letter));
            }
            '\u{1b}' if letters.peek() == Some(&'(') => {
                let _set = letters.nth(1);
            }
            '\u{1b}' | '\r' | '\u{feff}' => {}
            letter => plain.push(letter),
        }
    }
    plain.into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a test fails by a panic

    use super::*;

    #[test]
    fn a_figure_has_a_comma_a_unit_or_a_percent_sign_and_is_finite() {
        let read = |text: &str| figure(text).map(|figure| (figure.value, figure.unit));
        assert_eq!(read("12,50"), Some((12.5, None)));
        assert_eq!(read("4.8M"), Some((4.8, Some(1_048_576.0))));
        assert_eq!(read("0,8%"), Some((0.8, None)));
        for text in ["nan", "-nan", "inf", "-1.0", "x", "", "1.2.3", "k"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn bytes_are_of_the_column_that_is_rounded_less() {
        let row = |rate: &str, size: &str, unit: &str| {
            let value = |name: &str| match name {
                "r/s" => figure("40.00"),
                "rareq-sz" => figure(size),
                name if name == format!("r{unit}/s") => figure(rate),
                "w/s" | "aqu-sz" => figure("0.00"),
                name if name == format!("w{unit}/s") => figure("0.00"),
                _ => None,
            };
            of_iostat(value).unwrap().io.read_bytes
        };
        assert_eq!(row("640.00", "16.01", "kB"), 655_360.0, "kB a second are rounded to 5 bytes");
        assert_eq!(row("0.00", "0.09", "MB"), 40.0 * 0.09 * 1_024.0, "a megabyte would hide it");
        assert_eq!(row("1.0M", "25.0k", "kB"), 40.0 * 25.0 * 1_024.0);
    }

    #[test]
    fn colours_and_carriage_returns_are_left_out() {
        assert_eq!(plain("\u{1b}[32;22mvda \u{1b}[0m\u{1b}[34;1m 5.00\u{1b}(B\u{1b}[m\r\n"), "vda  5.00\n");
        assert!(matches!(plain("vda 5.00\n"), Cow::Borrowed(_)));
    }
}
