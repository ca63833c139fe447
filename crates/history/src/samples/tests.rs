//! Seconds of watched subjects: what is there after a kill, after clocks that step, and in longer intervals.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use proptest::prelude::*;

use super::*;
use crate::FILE;
use crate::key::SERVER;
use crate::layout::{Aggregate, Number};
use crate::lines::SPAN;

/// The first second of an hour.
const FIRST: u64 = 497_000 * 3_600;

fn open(home: &Path) -> Samples {
    Samples::open(home, SampleOptions::new(&[SERVER])).unwrap()
}

fn key(server: &str) -> SeriesKey {
    SeriesKey::new(SERVER, [("server", server.to_owned())])
}

fn layout() -> Arc<Layout> {
    Arc::new(Layout::new([
        (SPAN, Aggregate::Sum, Number::Whole),
        ("commits", Aggregate::Sum, Number::Whole),
        ("threads", Aggregate::Latest, Number::Whole),
    ]))
}

fn sample(server: &str, commits: u64, threads: u64) -> Sample {
    let values = [1_000_000_000, commits, threads].map(|number| Some(Value::Whole(number)));
    Sample { key: key(server), kind: "8.4.3".to_owned(), layout: layout(), values: values.to_vec() }
}

/// A second with so many commits as the number of the second behind [`FIRST`].
fn tick(samples: &Samples, second: u64) {
    let now_ms = (FIRST + second) * 1_000;
    samples.record(now_ms, vec![sample("db", second, 10 + second % 7)]).unwrap();
    samples.keep_up(now_ms).unwrap();
}

/// The commits of intervals, by their numbers.
fn commits(store: &Store, tier: Tier) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    store
        .scan_key(tier, &key("db"), 0..u64::MAX / 10_000, |point| {
            let Some(Value::Whole(commits)) =
                point.layout.value(point.values, 1, ("commits", Aggregate::Sum))
            else {
                panic!("{point:?}")
            };
            found.push((point.number, commits));
        })
        .unwrap();
    found
}

#[test]
fn a_second_is_written_at_most_four_seconds_later_and_two_samples_of_it_are_one() {
    let dir = tempfile::tempdir().unwrap();
    let samples = open(dir.path());
    let record =
        |ms: u64, commits| samples.record(FIRST * 1_000 + ms, vec![sample("db", commits, 1)]).unwrap();
    record(10, 3);
    record(990, 4);
    record(1_500, 5);
    record(3_999, 6);
    assert_eq!(commits(&samples.store(), Tier::Second), []);
    record(4_010, 7);
    assert_eq!(
        commits(&samples.store(), Tier::Second),
        [(FIRST, 7), (FIRST + 1, 5), (FIRST + 3, 6), (FIRST + 4, 7)]
    );
    // What is written goes on to grow within its second.
    record(4_900, 2);
    samples.flush().unwrap();
    assert_eq!(commits(&samples.store(), Tier::Second)[3], (FIRST + 4, 9));
}

#[test]
fn minutes_and_hours_are_made_of_what_has_ended_and_a_start_goes_on_with_them() {
    let dir = tempfile::tempdir().unwrap();
    let minute = FIRST / 60;
    let of_minute = |minute: u64| (minute * 60..(minute + 1) * 60).sum::<u64>();
    let first = open(dir.path());
    (0..=150).for_each(|second| tick(&first, second));
    assert_eq!(commits(&first.store(), Tier::Minute), [(minute, of_minute(0)), (minute + 1, of_minute(1))]);
    drop(first);
    // What the first one had not written is lost. The third minute is made of what both recorded.
    let second = open(dir.path());
    (155..=3_660).for_each(|at_second| tick(&second, at_second));
    let minutes = commits(&second.store(), Tier::Minute);
    assert_eq!(minutes.len(), 61);
    assert_eq!(minutes[1], (minute + 1, of_minute(1)));
    assert!((of_minute(2) - 5 * 155..of_minute(2)).contains(&minutes[2].1), "{:?}", minutes[2]);
    assert!((3..60).all(|place| minutes[place].1 == of_minute(place as u64)));
    let all: u64 = minutes[..60].iter().map(|(_, commits)| commits).sum();
    assert_eq!(commits(&second.store(), Tier::Hour), [(FIRST / 3_600, all)]);
}

#[test]
fn a_gauge_has_its_mean_and_extremes_in_minutes_and_hours() {
    let dir = tempfile::tempdir().unwrap();
    let samples = open(dir.path());
    (0..=3_600).for_each(|second| tick(&samples, second));
    for (tier, count) in [(Tier::Minute, 60), (Tier::Hour, 3_600)] {
        let mut found = None;
        let number = FIRST / tier.seconds();
        samples
            .store()
            .scan_key(tier, &key("db"), number..number + 1, |point| {
                let value =
                    |aggregate| point.layout.value(point.values, 0, ("threads", aggregate)).unwrap().as_f64();
                use Aggregate::{Count, Maximum, Minimum, Sum};
                found = Some([Sum, Count, Minimum, Maximum].map(value));
            })
            .unwrap();
        let sum: u64 = (0..count).map(|second| 10 + second % 7).sum();
        assert_eq!(found, Some([sum as f64, count as f64, 10.0, 16.0]), "{tier:?}");
    }
}

#[test]
fn a_clock_that_jumps_ahead_leaves_a_gap_and_deletes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let samples = open(dir.path());
    (0..=130).for_each(|second| tick(&samples, second));
    // By a year, for some minutes.
    let year = 365 * 24 * 3_600;
    (year..year + 130).for_each(|second| tick(&samples, second));
    (200..=400).for_each(|second| tick(&samples, second));
    let seconds: Vec<u64> =
        commits(&samples.store(), Tier::Second).into_iter().map(|(number, _)| number - FIRST).collect();
    assert_eq!(seconds[..131], (0..=130).collect::<Vec<_>>());
    assert!(seconds.contains(&200) && !seconds.contains(&150));
    let minutes = commits(&samples.store(), Tier::Minute);
    assert_eq!(minutes[1], (FIRST / 60 + 1, (60..120).sum()));
    assert!(minutes.contains(&(FIRST / 60 + 4, (240..300).sum())), "{minutes:?}");
    assert!(minutes.iter().all(|(_, commits)| *commits > 0), "no gap is filled");
}

#[test]
fn a_clock_that_was_set_back_replaces_the_same_seconds_and_makes_their_minutes_again() {
    let dir = tempfile::tempdir().unwrap();
    let samples = open(dir.path());
    (0..=200).for_each(|second| tick(&samples, second));
    let again = |second: u64| {
        let now_ms = (FIRST + second) * 1_000;
        samples.record(now_ms, vec![sample("db", 1_000, 1)]).unwrap();
        samples.keep_up(now_ms).unwrap();
    };
    (60..=130).for_each(again);
    samples.flush().unwrap();
    let seconds = commits(&samples.store(), Tier::Second);
    let value = |second: u64| seconds.iter().find(|(number, _)| *number == FIRST + second).unwrap().1;
    assert_eq!((value(59), value(60), value(130), value(131)), (59, 1_000, 1_000, 131));
    let minutes = commits(&samples.store(), Tier::Minute);
    assert_eq!(minutes[..2], [(FIRST / 60, (0..60).sum()), (FIRST / 60 + 1, 60_000)]);
}

#[test]
fn a_history_that_cannot_be_written_keeps_a_minute_of_samples_and_counts_what_it_gives_up() {
    let dir = tempfile::tempdir().unwrap();
    let samples = open(dir.path());
    // Another writer that does not end, as a full disk refuses each write.
    samples.store().refuse_writes(true);
    let record = |second: u64| {
        let all = (0..20).map(|server| sample(&format!("db{server}"), second, 1)).collect();
        samples.record((FIRST + second) * 1_000, all)
    };
    let refused = (0..100).filter(|second| record(*second).is_err()).count();
    assert_eq!(refused, 96, "from the fourth second on");
    assert_eq!(samples.lost(), (99 - 60) * 20);
    samples.store().refuse_writes(false);
    record(100).unwrap();
    let mut written = 0;
    samples.store().scan_key(Tier::Second, &key("db7"), 0..u64::MAX / 2, |_| written += 1).unwrap();
    assert_eq!(written, 61);
}

/// Four seconds of each minute of 26 hours.
fn a_day_and_two_hours(home: &Path, most_bytes: u64) -> Samples {
    let options = SampleOptions { most_bytes, ..SampleOptions::new(&[SERVER]) };
    let samples = Samples::open(home, options).unwrap();
    for minute in 0..26 * 60 {
        (0..4).for_each(|second| tick(&samples, minute * 60 + second));
    }
    samples
}

#[test]
fn seconds_are_kept_for_a_day_and_minutes_for_longer() {
    let dir = tempfile::tempdir().unwrap();
    let samples = a_day_and_two_hours(dir.path(), u64::MAX);
    let newest = FIRST + (26 * 60 - 1) * 60;
    let seconds = commits(&samples.store(), Tier::Second);
    assert!(seconds.len() > 23 * 60 * 4, "{}", seconds.len());
    // The oldest go once an hour.
    assert!(seconds[0].0 >= newest - Tier::Second.kept() - 3_600, "{}", seconds[0].0 - FIRST);
    assert_eq!(commits(&samples.store(), Tier::Minute).len(), 26 * 60 - 1);
    assert_eq!(commits(&samples.store(), Tier::Hour).len(), 25);
}

#[test]
fn beyond_the_bytes_that_are_allowed_packed_seconds_go_and_minutes_stay() {
    let dir = tempfile::tempdir().unwrap();
    let samples = a_day_and_two_hours(dir.path(), 0);
    let seconds = commits(&samples.store(), Tier::Second);
    assert!((4..=16).contains(&seconds.len()), "{seconds:?}");
    let now_ms = (FIRST + 26 * 3_600) * 1_000;
    assert!(samples.limited_to_ms(now_ms).is_some_and(|kept_ms| kept_ms <= 3_600_000), "it is said");
    assert_eq!(samples.limited_to_ms(now_ms + 2 * 86_400_000), None);
    assert_eq!(seconds.last().unwrap().0, FIRST + (26 * 60 - 1) * 60, "what waits is not there yet");
    assert_eq!(commits(&samples.store(), Tier::Minute).len(), 26 * 60 - 1);
}

#[test]
fn bytes_of_others_in_the_file_delete_no_seconds() {
    let dir = tempfile::tempdir().unwrap();
    // Seconds of 26 hours take less than a MiB, and the minutes of others that are written first take more.
    let mut store = Store::open(dir.path(), Durability::Process, u64::MAX).unwrap();
    let other = SeriesKey::volume("v1".to_owned());
    let kind = "x".repeat(1_000);
    let layout = Layout::new([("ops", Aggregate::Sum, Number::Whole)]);
    let points: Vec<NewPoint<'_>> = (0..2_000)
        .map(|minute| NewPoint {
            key: &other,
            number: FIRST / 60 + minute,
            kind: &kind,
            layout: &layout,
            values: vec![Some(Value::Whole(1))],
            marks: Vec::new(),
        })
        .collect();
    store.write(Tier::Minute, &points).unwrap();
    assert!(store.used_bytes().unwrap() > 1 << 20);
    let samples = a_day_and_two_hours(dir.path(), 1 << 20);
    assert!(commits(&samples.store(), Tier::Second).len() > 23 * 60 * 4);
    assert_eq!(samples.limited_to_ms((FIRST + 26 * 3_600) * 1_000), None);
}

#[test]
fn hundreds_of_series_are_all_written_and_packed() {
    let dir = tempfile::tempdir().unwrap();
    let samples = open(dir.path());
    // Of 400 series, in the 4 s that they wait for a write: more than 1,200 points.
    for second in 0..130 {
        let now_ms = (FIRST + second) * 1_000;
        let all = (0..400).map(|server| sample(&format!("db{server}"), second, 1)).collect();
        samples.record(now_ms, all).unwrap();
        samples.keep_up(now_ms).unwrap();
    }
    assert_eq!(samples.lost(), 0);
    // The first minute has passed, and nothing of it is left to be packed.
    let left = samples.store().pack(Tier::Second, (FIRST + 129) * 1_000, 1_000).unwrap();
    assert_eq!(left, 0);
    assert_eq!((most_waiting(20), most_waiting(5_000)), (1_200, MOST_WAITING));
}

/// Bytes a sample that so many seconds take in the file, with the minutes that are made of them, the names of the columns, the indexes
/// and what pages have free. Of 500 metrics of a server, three fifths stand still, three tenths are counters that grow by 5,000 a
/// second give or take a fifth, and the rest are gauges of some hundreds.
fn bytes_a_sample(seconds: u64) -> f64 {
    let dir = tempfile::tempdir().unwrap();
    let samples = open(dir.path());
    let column = |place: usize| crate::Column {
        name: format!("status_variable_number_{place}").into(),
        aggregate: if place % 10 == 9 { Aggregate::Latest } else { Aggregate::Sum },
        number: Number::Whole,
    };
    let layout = Arc::new(Layout::from_columns((0..500).map(column).collect()));
    let mut random = 1_u64;
    let mut draw = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let mut value = |place: u64| match place % 10 {
        0..6 => place,
        6..9 => 4_000 + draw(2_000),
        _ => 300 + draw(100),
    };
    for second in 0..seconds {
        let values = (0..500).map(|place| Some(Value::Whole(value(place)))).collect();
        let (key, layout, kind) = (key("db"), Arc::clone(&layout), "11.8.9".to_owned());
        let now_ms = (FIRST + second) * 1_000;
        samples.record(now_ms, vec![Sample { key, kind, layout, values }]).unwrap();
        samples.keep_up(now_ms).unwrap();
    }
    samples.flush().unwrap();
    let used = samples.store().used_bytes().unwrap();
    let bytes = used as f64 / (seconds * 500) as f64;
    println!("{seconds} seconds: {used} bytes, {bytes:.3} a sample");
    bytes
}

#[test]
fn a_sample_takes_few_bytes_of_the_file() {
    let bytes = bytes_a_sample(7_200);
    assert!(bytes <= 1.5, "{bytes}");
}

#[test]
#[ignore = "a measurement: a day of 500 metrics"]
fn a_day_takes_few_bytes_of_the_file() {
    assert!(bytes_a_sample(86_400) <= 1.5);
}

/// Set in the child: the home, and how long samples wait, ms.
const CHILD: &str = "EBBTIDE_SAMPLES_CHILD";
const KILLED: &str = "samples::tests::a_kill_loses_at_most_five_seconds";

/// Records seconds of a clock that is faster than the real one, and prints each that is recorded.
fn child(task: &str) {
    let (wait_ms, home) = task.split_once(':').unwrap();
    let samples = Samples { write_after_ms: wait_ms.parse().unwrap(), ..open(Path::new(home)) };
    let first = commits(&samples.store(), Tier::Second).last().map_or(0, |(number, _)| number + 10 - FIRST);
    let mut out = std::io::stdout();
    for second in first.. {
        tick(&samples, second);
        writeln!(out, "recorded {second}").unwrap();
        out.flush().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// Kills a child after some seconds of its clock. Returns the last second that it recorded, and the last one that is in the file.
fn kill_after(home: &Path, wait_ms: u64, seconds: usize) -> (u64, u64) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([KILLED, "--exact", "--nocapture"])
        .env(CHILD, format!("{wait_ms}:{}", home.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // The harness begins its own lines without an end.
    let recorded = |line: &str| line.rsplit_once("recorded ")?.1.trim().parse::<u64>().ok();
    let mut numbers = lines.map_while(Result::ok).filter_map(|line| recorded(&line));
    let last = numbers.by_ref().nth(seconds).unwrap();
    child.kill().unwrap(); // SIGKILL
    child.wait().unwrap();
    let last = numbers.last().unwrap_or(last);
    let stored = commits(&open(home).store(), Tier::Second);
    (last, stored.last().map_or(0, |(number, _)| number - FIRST))
}

#[test]
fn a_kill_loses_at_most_five_seconds() {
    if let Ok(task) = std::env::var(CHILD) {
        return child(&task);
    }
    let dir = tempfile::tempdir().unwrap();
    for kill in 0..12 {
        let (recorded, stored) = kill_after(dir.path(), WRITE_AFTER_MS, 20 + kill * 13);
        assert!(stored + 5 > recorded, "kill {kill}: second {recorded} was recorded, {stored} is there");
    }
    // Each second once, with what it had, whatever was killed between.
    let samples = open(dir.path());
    let all = commits(&samples.store(), Tier::Second);
    assert!(all.is_sorted_by_key(|(number, _)| *number));
    assert!(all.iter().all(|(number, commits)| *commits == number - FIRST));
}

#[test]
fn the_kill_test_catches_samples_that_wait_too_long() {
    // They are written at the end of a minute all the same, which the kill may happen to follow.
    let is_caught = (0..5).any(|_| {
        let dir = tempfile::tempdir().unwrap();
        let (recorded, stored) = kill_after(dir.path(), 60_000, 20);
        stored + 5 <= recorded
    });
    assert!(is_caught);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 32, ..ProptestConfig::default() })]

    /// Whatever seconds are recorded, in whatever order and however often packed: each is there with its sum, none besides.
    #[test]
    fn seconds_are_there_as_they_were_recorded_packed_or_not(
        steps in prop::collection::vec((0_u64..90, 0_u64..1_000_000, any::<bool>()), 1..60),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let samples = open(dir.path());
        let mut second = 0;
        let mut expected = BTreeMap::<u64, u64>::new();
        for (ahead, commits, has_upkeep) in steps {
            second += ahead;
            let now_ms = (FIRST + second) * 1_000;
            samples.record(now_ms, vec![sample("db", commits, 1)]).unwrap();
            *expected.entry(FIRST + second).or_default() += commits;
            if has_upkeep {
                samples.keep_up(now_ms).unwrap();
            }
        }
        samples.flush().unwrap();
        let now_ms = (FIRST + second + 300) * 1_000;
        while samples.store().pack(Tier::Second, now_ms, 10).unwrap() > 0 {}
        prop_assert_eq!(commits(&samples.store(), Tier::Second), expected.into_iter().collect::<Vec<_>>());
        prop_assert!(dir.path().join(FILE).exists());
    }
}
