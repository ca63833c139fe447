//! Captures and other programs' files that are cut, mixed and changed: each is judged or refused, and soon.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ebbtide_advisor::{Finding, judge};
use ebbtide_captured::{Hints, Input, bundle, is_known, observation};
use ebbtide_catalog::Catalog;
use ebbtide_lab::experiment::{self, Overrides};
use ebbtide_mysql::Binary;
use ebbtide_observe::{Files, Flavour, Observation, Origin, Version};
use ebbtide_report::TextOptions;
use proptest::prelude::*;

use super::{Answer, Diagnosis, document};
use crate::proof::{Scale, propose};

macro_rules! sample {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../captured/tests/fixtures/", $name))
    };
}

const SAMPLES: [&str; 9] = [
    sample!("variables.table"),
    sample!("status.tsv"),
    sample!("pt-mysql-summary.txt"),
    sample!("iostat-12.6.txt"),
    sample!("iostat-12.6.json"),
    sample!("stalk/2026_11_22_23_18_22-diskstats"),
    sample!("stalk/2026_11_22_23_18_22-df"),
    sample!("stalk/2026_11_22_23_18_22-mysqladmin"),
    "[mysqld]\nlog-bin\nsync_binlog=0\n!include /nowhere\n[mysqld-8.0]\ninnodb_buffer_pool_size=1G\n",
];
/// Numbers and words at which programs break.
const WORDS: [&str; 14] = [
    "0",
    "-1",
    "18446744073709551616",
    "1e999",
    "NaN",
    "inf",
    "",
    "%",
    "\u{0}",
    "🦀",
    "TS 1e300 x",
    "[",
    "!include .",
    "Device r/s",
];
/// No text may take longer; a debug build on a busy machine needs about a tenth.
const LONGEST: Duration = Duration::from_secs(60);

/// A change to a text.
#[derive(Debug, Clone)]
enum Edit {
    Cut(usize),
    Word(usize, &'static str),
    Repeat(usize, usize),
    Move(usize, usize),
    Byte(usize, char),
}

fn change() -> impl Strategy<Value = Edit> {
    let at = || 0..40_000_usize;
    prop_oneof![
        at().prop_map(Edit::Cut),
        (at(), prop::sample::select(&WORDS[..])).prop_map(|(at, word)| Edit::Word(at, word)),
        (at(), 1..200_usize).prop_map(|(at, times)| Edit::Repeat(at, times)),
        (at(), at()).prop_map(|(from, to)| Edit::Move(from, to)),
        (at(), any::<char>()).prop_map(|(at, c)| Edit::Byte(at, c)),
    ]
}

fn changed(text: &str, changes: &[Edit]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for change in changes {
        if lines.is_empty() {
            break;
        }
        let line = |at: &usize| at % lines.len();
        match change {
            Edit::Cut(at) => {
                let (line, place) = (line(at), at / 7);
                lines[line] = lines[line].chars().take(place).collect();
                lines.truncate(line + 1);
            }
            Edit::Word(at, word) => {
                let line = line(at);
                let mut words: Vec<&str> = lines[line].split(' ').collect();
                let place = (at / 3) % words.len();
                words[place] = word;
                lines[line] = words.join(" ");
            }
            Edit::Repeat(at, times) => {
                let line = line(at);
                let again = vec![lines[line].clone(); *times];
                lines.splice(line..line, again);
            }
            Edit::Move(from, to) => {
                let (from, to) = (line(from), line(to));
                lines.swap(from, to);
            }
            Edit::Byte(at, c) => {
                let line = line(at);
                let place = lines[line].char_indices().nth(at / 5).map_or(0, |(place, _)| place);
                lines[line].insert(place, *c);
            }
        }
    }
    lines.join("\n")
}

/// Judges and prints in every form.
fn judged(seen: &Observation) {
    let findings = judge(seen, &Catalog::builtin());
    let answer = Answer { observation: seen, findings: &findings, baseline: None, proof: None };
    let document = document(&answer, "test");
    let options = TextOptions { details: true, ..TextOptions::default() };
    let printed = document.to_text(options) + &document.to_markdown() + &document.to_html();
    assert!(!printed.is_empty());
    serde_json::to_string(&Diagnosis::of(&answer)).unwrap();
    proposed(seen, &findings);
}

/// Whatever was seen gives an experiment that is read, or a sentence.
fn proposed(seen: &Observation, findings: &[Finding]) {
    let binary = Binary {
        path: "/usr/sbin/mariadbd".into(),
        flavour: Flavour::MariaDb,
        version: Version::new(10, 11, 14),
        text: "Ver 10.11.14-MariaDB".into(),
    };
    let found: Vec<&Finding> = findings.iter().collect();
    match propose(seen, &found, &Catalog::builtin(), &binary, Scale::FULL) {
        Ok(proposal) if !proposal.codes.is_empty() => {
            let _ = experiment::parse("t", "t", &proposal.text, &Overrides::default());
        }
        Ok(_) => {}
        Err(why) => {
            let why = why.to_string();
            assert!(!why.is_empty() && !why.ends_with('.'), "{why}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn other_programs_files_are_judged_or_of_no_kind(
        which in prop::collection::vec(0..SAMPLES.len(), 1..4),
        changes in prop::collection::vec(change(), 0..12),
    ) {
        let began = Instant::now();
        let texts = which.iter().map(|which| changed(SAMPLES[*which], &changes));
        let inputs: Vec<Input> =
            texts.map(|text| Input { path: PathBuf::from("/nowhere/x"), text }).filter(is_known).collect();
        let hints = Hints { version: Some("8.0.36".into()), devices: vec![(Files::Data, "vda".into())] };
        if let Ok(mut seen) = observation("/c", &inputs, &hints) {
            seen.volumes.data = Some("gp2:size=500GiB".into());
            judged(&seen);
        }
        prop_assert!(began.elapsed() < LONGEST, "{:?}", began.elapsed());
    }

    #[test]
    fn a_capture_that_was_changed_is_judged_or_refused(changes in prop::collection::vec(change(), 0..6)) {
        let began = Instant::now();
        let text = changed(&capture(), &changes);
        if let Ok(seen) = bundle::parse(Path::new("/c"), &text) {
            judged(&seen);
        }
        prop_assert!(began.elapsed() < LONGEST, "{:?}", began.elapsed());
    }

    #[test]
    fn any_text_is_of_a_kind_or_of_none(text in "(?s).{0,2000}") {
        let input = Input { path: PathBuf::from("/nowhere/x"), text };
        if is_known(&input)
            && let Ok(seen) = observation("/c", std::slice::from_ref(&input), &Hints::default())
        {
            judged(&seen);
        }
        let _ = bundle::parse(Path::new("/c"), &input.text);
    }
}

/// A capture with all parts that files give.
fn capture() -> String {
    let inputs = SAMPLES.map(|text| Input { path: PathBuf::from("/nowhere/x"), text: text.into() });
    let seen = observation("/c", &inputs, &Hints::default()).unwrap();
    assert!(seen.host.is_some() && seen.rates.is_some() && seen.variables.is_some());
    bundle::text(Observation { origin: Origin::Server { at: "/s".into() }, ..seen })
}

#[test]
fn large_and_deep_files_are_read_in_time() {
    let texts = [
        "a\tb\n".repeat(20_000),
        "version\t8.0.36\nUptime\t1\n".repeat(20_000),
        "Device r/s w/s rkB/s wkB/s aqu-sz\nsda 1 1 1 1 1\n".repeat(20_000),
        format!("[mysqld]\n{}", "sync_binlog=0\n".repeat(20_000)),
        "/dev/sda on /x type xfs (rw)\n".repeat(20_000),
        format!("{{\"sysstat\": {}", "[".repeat(200_000)),
        format!(
            "{{\"format\": \"ebbtide-capture\", \"version\": 1, \"observation\": {}",
            "{\"a\":".repeat(100_000)
        ),
    ];
    for text in texts {
        let began = Instant::now();
        let input = Input { path: PathBuf::from("/nowhere/x"), text };
        if is_known(&input)
            && let Ok(seen) = observation("/c", std::slice::from_ref(&input), &Hints::default())
        {
            judged(&seen);
        }
        let _ = bundle::parse(Path::new("/c"), &input.text);
        assert!(began.elapsed() < LONGEST, "{:?}: {}", began.elapsed(), &input.text[..40]);
    }
}
