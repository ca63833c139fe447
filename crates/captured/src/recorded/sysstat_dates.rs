//! Properties of the dates of reports: in whatever format, over midnight, the end of a month or of a year, the intervals are
//! those that the program was given, or the text is refused.
#![allow(clippy::unwrap_used)] // a test fails by a panic

use jiff::ToSpan as _;
use jiff::civil::{DateTime, date};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::{Input, RecordedError, recorded};

/// Formats of `%x %X` in glibc's locales, of old sysstat, and of S_TIME_FORMAT=ISO.
const FORMATS: [&str; 19] = [
    "%d/%m/%Y %H:%M:%S",
    "%d/%m/%y %H:%M:%S",
    "%-d/%-m/%y %H:%M:%S",
    "%m/%d/%Y %I:%M:%S %p",
    "%m/%d/%y %H:%M:%S",
    "%d/%m/%y %I:%M:%S %p IST",
    "%d.%m.%Y %H:%M:%S",
    "%d.%m.%y %H.%M.%S",
    "%d-%m-%Y %H:%M:%S",
    "%d-%m-%y %H:%M:%S",
    "%y/%m/%d %H:%M:%S",
    "%Y-%m-%d %I:%M:%S %p",
    "%Y-%m-%dT%H:%M:%S+0200",
    "%Y年%m月%d日 %H时%M分%S秒",
    "%Y년 %m월 %d일 %H시 %M분 %S초",
    "%A, %B %d, %Y %I:%M:%S %p UTC",
    // A month in words that are in no table.
    "%d ينا%m, %Y UTC %H:%M:%S",
    "%H:%M:%S",
    "Time: %I:%M:%S %p",
];

macro_rules! sample {
    ($name:literal) => {
        include_str!(concat!("../../tests/fixtures/sysstat/", $name))
    };
}

/// Texts that are cut and changed.
const SAMPLES: [&str; 6] = [
    sample!("day-first-over-midnight.txt"),
    sample!("day-first-over-midnight.json"),
    sample!("sadf.json"),
    sample!("idle-left-out.txt"),
    sample!("human.txt"),
    sample!("colours.txt"),
];
/// Words at which programs break.
const WORDS: [&str; 12] = [
    "",
    "0",
    "-1",
    "99999999999999999999",
    "1e999",
    "NaN",
    ",",
    "\n",
    "\u{1b}",
    "25:61:61",
    "Device r/s w/s\n",
    "31/31/31 10:00:00\n",
];

/// A capture: the first time, the interval in s, and which reports it has.
#[derive(Debug, Clone)]
struct Capture {
    start: DateTime,
    seconds: i64,
    kept: Vec<bool>,
}

impl Capture {
    fn times(&self) -> Vec<DateTime> {
        let kept = self.kept.iter().zip(0_i64..).filter(|(kept, _)| **kept);
        kept.map(|(_, place)| self.start + (place * self.seconds).seconds()).collect()
    }

    fn iostat(&self, format: &str) -> String {
        let report = |time: &DateTime| {
            format!(
                "{}\nDevice r/s rkB/s w/s wkB/s aqu-sz\nsda 10.00 160.00 0.00 0.00 0.01\n\n",
                time.strftime(format)
            )
        };
        let reports: String = self.times().iter().map(report).collect();
        format!("Linux 6.1 (h) \t{} \t_x86_64_\t(2 CPU)\n\n{reports}", self.start.strftime("%x"))
    }

    fn sar(&self, format: &str) -> String {
        let columns = "DEV tps rkB/s wkB/s areq-sz aqu-sz await %util";
        let row = "sda 10.00 160.00 0.00 16.00 0.01 1.00 1.00";
        let times: Vec<String> = self.times().iter().map(|time| time.strftime(format).to_string()).collect();
        let rows: String = times[1..].iter().map(|time| format!("{time} {row}\n")).collect();
        let date = self.start.strftime("%d/%m/%Y");
        format!(
            "Linux 6.1 (h) \t{date} \t_x86_64_\t(2 CPU)\n\n{} {columns}\n{rows}\nAverage: {columns}\nAverage: {row}\n",
            times[0]
        )
    }
}

/// Captures that begin up to 30 reports before the midnight that ends some day of four years.
fn captures(lacking: usize) -> impl Strategy<Value = Capture> {
    let seconds = proptest::sample::select(vec![1_i64, 2, 5, 10, 30, 60, 300, 600, 3_600]);
    // Any day, and the last ones of 2024 to 2026.
    let days = prop_oneof![0_i64..1_460, proptest::sample::select(vec![365_i64, 730, 1_095])];
    let dropped = proptest::collection::vec(2_usize..28, 0..=lacking);
    (days, seconds, 3_usize.max(lacking * 8)..30, 0_i64..30, 0_i64..3_600, dropped).prop_map(
        |(day, seconds, reports, before, second, dropped)| {
            let midnight = date(2024, 1, 1).at(0, 0, 0, 0) + (day + 1).days();
            let mut kept = vec![true; reports];
            for place in dropped.into_iter().filter(|place| *place + 1 < reports) {
                kept[place] = false;
            }
            Capture { start: midnight - (before * seconds + second % seconds).seconds(), seconds, kept }
        },
    )
}

fn seconds_of(text: &str) -> Result<Vec<(f64, f64)>, RecordedError> {
    let all = recorded(&[Input { path: "/captures/file".into(), text: text.to_owned() }], None)?;
    Ok(all.loads["sda"].intervals.iter().map(|interval| (interval.start_s, interval.seconds)).collect())
}

/// Starts and lengths of so many intervals, of which each follows the one before it.
fn follow(intervals: &[(f64, f64)], count: usize, seconds: i64) -> bool {
    let seconds = seconds as f64;
    intervals.len() == count
        && intervals.iter().all(|(_, own)| *own == seconds)
        && intervals.windows(2).all(|pair| (pair[1].0 - pair[0].0 - seconds).abs() < 1e-6)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn reports_of_iostat_are_the_given_interval_apart_in_every_format(capture in captures(0)) {
        for format in FORMATS {
            let text = capture.iostat(format);
            let read = seconds_of(&text).map_err(|error| TestCaseError::fail(format!("{format}: {error}\n{text}")))?;
            prop_assert!(follow(&read, capture.kept.len() - 1, capture.seconds), "{}: {:?}\n{}", format, read, text);
        }
    }

    #[test]
    fn reports_of_sar_are_the_given_interval_apart_with_any_clock(capture in captures(0)) {
        for format in ["%H:%M:%S", "%I:%M:%S %p", "%I:%M:%S %p IST", "%H时%M分%S秒", "%H.%M.%S", "%H시 %M분 %S초"] {
            let text = capture.sar(format);
            let read = seconds_of(&text).map_err(|error| TestCaseError::fail(format!("{format}: {error}\n{text}")))?;
            prop_assert!(follow(&read, capture.kept.len() - 1, capture.seconds), "{}: {:?}\n{}", format, read, text);
        }
    }

    #[test]
    fn a_capture_that_lacks_reports_has_no_longer_interval(capture in captures(2)) {
        for format in FORMATS {
            for text in [capture.iostat(format), capture.sar("%H:%M:%S")] {
                let reports = capture.times().len() - 1;
                match seconds_of(&text) {
                    Ok(read) => {
                        prop_assert_eq!(read.len(), reports);
                        prop_assert!(read.iter().all(|(_, own)| *own == capture.seconds as f64), "{}: {:?}\n{}", format, read, text);
                    }
                    Err(error) => prop_assert!(matches!(error, RecordedError::Unusable { .. }), "{}", error),
                }
            }
        }
    }

    #[test]
    fn a_text_that_is_cut_or_changed_is_read_or_refused(
        sample in 0..SAMPLES.len(),
        from in any::<Index>(),
        to in any::<Index>(),
        place in any::<Index>(),
        word in proptest::sample::select(WORDS.to_vec()),
    ) {
        let letters: Vec<char> = SAMPLES[sample].chars().collect();
        let (from, to) = (from.index(letters.len()), to.index(letters.len()));
        let mut letters: Vec<char> = letters[..from.min(to)].iter().chain(&letters[from.max(to)..]).copied().collect();
        let place = place.index(letters.len() + 1);
        letters.splice(place..place, word.chars());
        let text: String = letters.into_iter().collect();
        for interval_s in [None, Some(10.0)] {
            let input = Input { path: "/captures/file".into(), text: text.clone() };
            let Ok(all) = recorded(&[input], interval_s) else { continue };
            for interval in all.loads.values().flat_map(|load| &load.intervals) {
                prop_assert!(interval.seconds > 0.0 && interval.seconds <= 86_400.0, "{:?}\n{}", interval, text);
                prop_assert!(interval.start_s.is_finite() && interval.ios().is_finite(), "{:?}\n{}", interval, text);
            }
        }
    }
}
