//! What SHOW ENGINE INNODB STATUS printed, in whatever form: the age of the checkpoint, the length of the history, and pages that are
//! read and written.

use std::borrow::Cow;

use ebbtide_observe::metric::MetricKind;
use ebbtide_observe::{Counter, Interval, Observation, Rates, Readings, Span};

/// What each output has at its beginning, and the last one at its end.
const HEAD: &str = "INNODB MONITOR OUTPUT";

/// Outputs of one server, in the order of their times.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Engine {
    looks: Vec<Look>,
}

/// One output.
#[derive(Debug, Default, PartialEq)]
struct Look {
    /// When it was made, s since 1970 by the server's own clock.
    at_s: Option<f64>,
    /// Seconds of which its means are.
    averaged_s: f64,
    /// What it counts since the server's start, and what it has at its time.
    readings: Readings,
    /// Means a second of what is counted.
    averages: Vec<(Counter, f64)>,
}

/// Numbers that stand behind words, by the counters that they are. Older servers print two halves of 32 bits.
const NUMBERS: [(&str, Counter); 5] = [
    ("Log sequence number", Counter::EngineStatus("Log sequence number")),
    ("Last checkpoint at", Counter::EngineStatus("Last checkpoint at")),
    ("History list length", Counter::Status("innodb_history_list_length")),
    // Percona Server and MariaDB before 10.5 have it.
    ("Max checkpoint age", Counter::Status("innodb_checkpoint_max_age")),
    ("Modified db pages", Counter::Status("innodb_buffer_pool_pages_dirty")),
];
const PAGES_READ: Counter = Counter::Status("innodb_pages_read");
const PAGES_WRITTEN: Counter = Counter::Status("innodb_pages_written");
const SYNCS: Counter = Counter::Status("innodb_data_fsyncs");

/// Reads outputs; None of another text.
pub(super) fn read(text: &str) -> Option<Engine> {
    let text = with_lines(text);
    let looks: Vec<Look> = outputs(&text).map(|(title, body)| look(title, body)).collect();
    let known = |look: &Look| look.readings != Readings::default();
    let looks: Vec<Look> = looks.into_iter().filter(known).collect();
    (!looks.is_empty()).then_some(Engine { looks })
}

/// Clients print the ends of its lines as `\n` with --batch, and in JSON.
fn with_lines(text: &str) -> Cow<'_, str> {
    let escaped = ["\\\\n", "\\n"].into_iter().find(|end| text.contains(&format!("{HEAD}{end}")));
    escaped.map_or(Cow::Borrowed(text), |end| Cow::Owned(text.replace(end, "\n")))
}

/// The line with the time of each output, and what follows it.
fn outputs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let is_head = |(place, _): &(usize, &str)| !text[..*place].ends_with("END OF ");
    let heads: Vec<usize> = text.match_indices(HEAD).filter(is_head).map(|(place, _)| place).collect();
    let ends: Vec<usize> = heads.iter().skip(1).copied().chain([text.len()]).collect();
    heads.into_iter().zip(ends).map(|(head, end)| {
        let line = text[..head].rfind('\n').map_or(0, |place| place + 1);
        (&text[line..head], &text[head..end])
    })
}

fn look(title: &str, body: &str) -> Look {
    let mut look = Look { at_s: time(title), ..Look::default() };
    for line in body.lines() {
        for (words, counter) in NUMBERS {
            if let Some(value) = behind(line, words).and_then(whole) {
                keep(&mut look.readings, counter, value);
            }
        }
        if let Some(rest) = behind(line, "Per second averages calculated from the last") {
            look.averaged_s =
                rest.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
        } else if let Some(rest) = behind(line, "Pages read").filter(|rest| rest.contains("created")) {
            let counts: Vec<u64> = numbers(rest);
            if let [read, _, written] = counts[..] {
                keep(&mut look.readings, PAGES_READ, read);
                keep(&mut look.readings, PAGES_WRITTEN, written);
            }
        } else if line.contains(" OS file reads, ") && line.contains(" OS fsyncs") {
            if let Some(syncs) = before(line, " OS fsyncs") {
                keep(&mut look.readings, SYNCS, syncs);
            }
        } else if line.contains(" reads/s, ") && line.contains(" creates/s, ") {
            average(&mut look.averages, PAGES_READ, before(line, " reads/s"));
            average(&mut look.averages, PAGES_WRITTEN, before(line, " writes/s"));
        } else if line.contains(" fsyncs/s") {
            average(&mut look.averages, SYNCS, before(line, " fsyncs/s"));
        }
    }
    look
}

/// Keeps the first value: that of the whole pool stands before those of its instances.
fn keep(readings: &mut Readings, counter: Counter, value: u64) {
    if readings.get(counter).is_none() {
        readings.insert(counter, value);
    }
}

fn average(averages: &mut Vec<(Counter, f64)>, counter: Counter, value: Option<f64>) {
    if let Some(value) = value.filter(|_| averages.iter().all(|(known, _)| *known != counter)) {
        averages.push((counter, value));
    }
}

/// What follows words of a line.
fn behind<'a>(line: &'a str, words: &str) -> Option<&'a str> {
    line.split_once(words).map(|(_, rest)| rest)
}

/// The number that ends before words of a line.
fn before<N: std::str::FromStr>(line: &str, words: &str) -> Option<N> {
    line.split_once(words)?.0.rsplit([' ', ',', '\t']).next()?.parse().ok()
}

/// The number that a text is, but for what a client put behind it.
fn whole(text: &str) -> Option<u64> {
    let words: Vec<&str> = text.split_whitespace().filter(|word| *word != "|").collect();
    match words[..] {
        [number] => number.parse().ok(),
        [high, low] => {
            let (high, low): (u64, u64) = (high.parse().ok()?, low.parse().ok()?);
            Some((high << 32).checked_add(low).filter(|_| high <= u64::from(u32::MAX))?)
        }
        _ => None,
    }
}

fn numbers(text: &str) -> Vec<u64> {
    text.split([' ', ',']).filter_map(|word| word.trim().parse().ok()).collect()
}

/// The time of an output: `2026-11-28 21:38:52`.
fn time(title: &str) -> Option<f64> {
    let words: Vec<&str> = title.split_whitespace().collect();
    let civil = words.windows(2).find_map(|pair| pair.join(" ").parse::<jiff::civil::DateTime>().ok())?;
    let zoned = civil.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    Some(zoned.timestamp().as_second() as f64)
}

impl Engine {
    pub(super) fn add(&mut self, other: Self) {
        self.looks.extend(other.looks);
        self.looks
            .sort_by(|first, other| first.at_s.partial_cmp(&other.at_s).unwrap_or(std::cmp::Ordering::Equal));
    }

    /// Adds what an observation lacks: gauges, and where it has no rates, those of pages.
    pub(super) fn set(&self, seen: &mut Observation) {
        let Some(last) = self.looks.last() else { return };
        let ages = self.looks.iter().filter_map(|look| Rates::at(&look.readings).checkpoint_age);
        seen.highest_checkpoint_age = ages.reduce(f64::max).or(seen.highest_checkpoint_age);
        let gauges = Rates::at(&last.readings).to_values();
        let own = match &seen.rates {
            Some(rates) => rates.to_values(),
            None => match self.grown() {
                Some((rates, seconds)) => {
                    seen.span = Some(Span { began_unix_s: None, seconds, restarted: false });
                    rates.to_values()
                }
                None => vec![None; gauges.len()],
            },
        };
        let gauge = |place: usize, kind| gauges[place].filter(|_| kind == MetricKind::Gauge);
        let rates = Rates::from_fn(|place, metric| own[place].or_else(|| gauge(place, metric.kind)));
        seen.rates = Some(rates).filter(|rates| *rates != Rates::default()).or(seen.rates.take());
    }

    /// Rates of pages and the seconds that they are of: of two outputs, or the means of one.
    fn grown(&self) -> Option<(Rates, f64)> {
        let (first, last) = (self.looks.first()?, self.looks.last()?);
        let onward = |first: &Look, last: &Look| {
            let grows = |counter| first.readings.get(counter) <= last.readings.get(counter);
            [PAGES_READ, PAGES_WRITTEN, NUMBERS[0].1].into_iter().all(grows)
        };
        let apart = last.at_s.zip(first.at_s).map(|(last, first)| last - first);
        if let Some(seconds) = apart.filter(|seconds| *seconds >= 1.0 && onward(first, last)) {
            let (before, after) = (&first.readings, &last.readings);
            return Some((Rates::over(&Interval { before, after, seconds }), seconds));
        }
        let seconds = last.averaged_s;
        let (mut before, mut after) = (Readings::default(), Readings::default());
        for (counter, average) in &last.averages {
            before.insert(*counter, 0);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "float casts saturate"
            )]
            after.insert(*counter, (average * seconds).round() as u64);
        }
        (seconds >= 1.0)
            .then(|| (Rates::over(&Interval { before: &before, after: &after, seconds }), seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebbtide_observe::Origin;

    /// As MySQL 8.0.15 printed it, shortened.
    const OUTPUT: &str = "=====================================\n2026-11-28 21:38:52 0x7f12ee4096c0 INNODB MONITOR OUTPUT\n\
        =====================================\nPer second averages calculated from the last 4 seconds\n\
        Purge done for trx's n:o < 1559 undo n:o < 0 state: running but idle\nHistory list length 5\n\
        855 OS file reads, 874 OS file writes, 209 OS fsyncs\n72.98 reads/s, 16499 avg bytes/read, 207.70 writes/s, 46.74 fsyncs/s\n\
        Log sequence number          20181685\nLog flushed up to            20181685\nLast checkpoint at           18688160\n\
        Modified db pages  85\nPages read 832, created 223, written 248\n72.50 reads/s, 20.49 creates/s, 59.50 writes/s\n\
        Pages read ahead 0.00/s, evicted without access 0.00/s, Random read ahead 0.00/s\n\
        END OF INNODB MONITOR OUTPUT\n============================\n";

    fn seen(texts: &[&str]) -> Observation {
        let mut all = Engine::default();
        texts.iter().for_each(|text| all.add(read(text).unwrap()));
        let mut seen = Observation::of(Origin::Capture { path: "/c".into() });
        all.set(&mut seen);
        seen
    }

    #[test]
    fn the_status_of_the_engine_is_known_however_it_was_printed() {
        let vertical = format!("*** 1. row ***\n  Type: InnoDB\n  Name: \nStatus: \n{OUTPUT}\n");
        let batch = format!("Type\tName\tStatus\nInnoDB\t\t\\n{}\n", OUTPUT.replace('\n', "\\n"));
        let table = format!("| Type | Name | Status |\n| InnoDB |      | \n{OUTPUT} |\n");
        let log = OUTPUT.lines().map(|line| format!("Nov 28 db1 mysqld[9]: {line}\n")).collect::<String>();
        let json = format!("{{\"Status\": \"\\n{}\"}}", OUTPUT.replace('\n', "\\n"));
        for text in [OUTPUT, &vertical, &batch, &table, &log, &json] {
            let seen = seen(&[text]);
            let rates = seen.rates.unwrap();
            assert_eq!(rates.checkpoint_age, Some(1_493_525.0), "{text}");
            assert_eq!(rates.history_length, Some(5.0), "{text}");
            assert_eq!((rates.page_reads, rates.page_writes), (Some(72.5), Some(59.5)), "{text}");
            assert_eq!(seen.span.unwrap().seconds, 4.0);
        }
        assert_eq!(read("Log sequence number 5\n"), None);
    }

    #[test]
    fn two_outputs_give_rates_over_the_time_between_them_and_the_higher_age() {
        let later = OUTPUT
            .replace("21:38:52", "21:39:12")
            .replace("read 832", "read 1032")
            .replace("number          20181685", "number          18688170");
        // The log went back: another run of the server. The means of the later one hold.
        assert_eq!(seen(&[&later, OUTPUT]).span.unwrap().seconds, 4.0);
        let later = later.replace("18688170", "20181690").replace("18688160", "20181685");
        let both = seen(&[&later, OUTPUT]);
        let rates = both.rates.unwrap();
        assert_eq!((both.span.unwrap().seconds, rates.page_reads), (20.0, Some(10.0)));
        assert_eq!((rates.checkpoint_age, both.highest_checkpoint_age), (Some(5.0), Some(1_493_525.0)));
    }

    #[test]
    fn outputs_of_old_servers_have_halves_of_numbers_and_no_time_between_their_means() {
        let old = "070101  1:02:03 INNODB MONITOR OUTPUT\nPer second averages calculated from the last 0 seconds\n\
                   Log sequence number 1 100\nLast checkpoint at  1 40\n";
        let seen = seen(&[old]);
        assert_eq!((seen.rates.unwrap().checkpoint_age, seen.span), (Some(60.0), None));
    }
}
