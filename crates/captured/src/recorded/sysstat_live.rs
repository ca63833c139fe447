//! The real programs of sysstat, in the languages of this machine and with the options that people use.
#![allow(clippy::unwrap_used)] // a test fails by a panic

use std::ffi::OsString;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use ebbtide_observe::LoadInterval;
use tempfile::TempDir;

use crate::{Input, Recorded, recorded};

/// A locale of each kind of `%x %X`: clocks of 12 and 24 hours, orders of dates, letters, decimal commas.
const LOCALES: [&str; 5] = ["en_US", "en_GB", "fr_FR", "zh_CN", "hi_IN"];
/// Every form is printed in these: with points and with decimal commas.
const EVERY_FORM: [&str; 2] = ["C", "fr_FR.UTF-8"];

/// Names and values of the environment.
type Environment = &'static [(&'static str, &'static str)];

fn has(program: &str) -> bool {
    let found = Command::new(program)
        .arg("-V")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .stdin(Stdio::null())
        .status();
    found.is_ok()
}

/// The programs in one directory of locales.
struct Sysstat {
    dir: TempDir,
    locales: Vec<String>,
    /// Whether the time can be set to one before midnight.
    at_midnight: bool,
}

impl Sysstat {
    /// None where sysstat is not installed, or the machine has no disk.
    fn new() -> Option<Self> {
        let disks = std::fs::read_to_string("/proc/diskstats").unwrap_or_default();
        if !has("iostat") || !has("sar") || !has("sadf") || !disks.lines().any(|line| !line.contains(" ram"))
        {
            println!("SKIPPED: sysstat is not installed (Debian's package sysstat), or there is no disk");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let made = |name: &&str| {
            let path = dir.path().join(format!("{name}.UTF-8"));
            let made = Command::new("localedef").args(["-i", name, "-f", "UTF-8"]).arg(&path).output();
            made.is_ok() && path.exists()
        };
        let mut locales = vec!["C".to_owned()];
        locales.extend(LOCALES.into_iter().filter(made).map(|name| format!("{name}.UTF-8")));
        if locales.len() < LOCALES.len() {
            println!(
                "the languages of Debian's package locales are not installed: {locales:?} alone are tried"
            );
        }
        let at_midnight = has("faketime");
        Some(Self { dir, locales, at_midnight })
    }

    fn file(&self) -> OsString {
        self.dir.path().join("sa").into()
    }

    /// The command, at two seconds before midnight where that can be.
    fn command(&self, locale: &str, settings: &[(&str, &str)], words: &[&str]) -> Command {
        let mut command = if self.at_midnight && words[0] != "sadf" {
            let mut command = Command::new("faketime");
            command.args(["-f", "@2026-06-12 23:59:58"]).args(words);
            command
        } else {
            let mut command = Command::new(words[0]);
            command.args(&words[1..]);
            command
        };
        command
            .env("LOCPATH", self.dir.path())
            .env("LC_ALL", locale)
            .env("TZ", "UTC")
            .envs(settings.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

fn read(text: &str) -> Recorded {
    let input = Input { path: Path::new("/captures/file").into(), text: text.to_owned() };
    recorded(&[input], None).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn output(child: Child) -> String {
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
}

/// Starts after the first one and lengths of intervals, with the operations, which no option rounds.
fn rates(intervals: &[LoadInterval]) -> Vec<(f64, f64, f64)> {
    let first = intervals.first().map_or(0.0, |interval| interval.start_s);
    intervals.iter().map(|interval| (interval.start_s - first, interval.seconds, interval.ios())).collect()
}

#[test]
fn sar_and_sadf_print_the_same_load_in_every_language_and_form() {
    let Some(sysstat) = Sysstat::new() else { return };
    let file = sysstat.file();
    let status = sysstat.command("C", &[], &["sar", "-o"]).arg(&file).args(["1", "4"]).output().unwrap();
    assert!(status.status.success(), "{status:?}");
    let print = |locale: &str, settings: &[(&str, &str)], words: &[&str], rest: &[&str]| {
        let mut command = sysstat.command(locale, settings, &["sadf"]);
        if words[0] != "sadf" {
            command = Command::new(words[0]);
            command
                .env("LOCPATH", sysstat.dir.path())
                .env("LC_ALL", locale)
                .env("TZ", "UTC")
                .envs(settings.iter().copied());
        }
        let output = command.args(&words[1..]).arg(&file).args(rest).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let truth = read(&print("C", &[], &["sadf", "-d"], &["--", "-d"]));
    assert_eq!(truth.loads.values().next().map(|load| load.intervals.len()), Some(4), "{truth:?}");
    const NONE: Environment = &[];
    for locale in &sysstat.locales {
        let forms = [
            (NONE, &["sar", "-d", "-f"][..], &[][..]),
            (NONE, &["sar", "-d", "-p", "-f"], &[]),
            (NONE, &["sar", "-d", "-h", "-f"], &[]),
            (NONE, &["sar", "-A", "-f"], &[]),
            (&[("S_TIME_FORMAT", "ISO")], &["sar", "-d", "-f"], &[]),
            (&[("S_COLORS", "always")], &["sar", "-d", "--pretty", "-f"], &[]),
            (NONE, &["sadf", "-d"], &["--", "-d"]),
            (NONE, &["sadf", "-d", "-T"], &["--", "-d"]),
            (NONE, &["sadf", "-d", "-h"], &["--", "-d"]),
            (NONE, &["sadf", "-d", "-U"], &["--", "-d"]),
            (NONE, &["sadf", "-d"], &["--", "-A"]),
            (NONE, &["sadf", "-p"], &["--", "-d"]),
            (NONE, &["sadf", "-j"], &["--", "-d"]),
            (NONE, &["sadf", "-j"], &["--", "-A"]),
        ];
        let number = if EVERY_FORM.contains(&locale.as_str()) { forms.len() } else { 2 };
        for (settings, words, rest) in forms.into_iter().take(number) {
            let text = print(locale, settings, words, rest);
            let all = read(&text);
            for (name, load) in &truth.loads {
                let own =
                    all.loads.get(name).unwrap_or_else(|| panic!("{locale} {words:?}: no {name} in\n{text}"));
                let (own, truth) = (rates(&own.intervals), rates(&load.intervals));
                let is_near = |(own, truth): (&(f64, f64, f64), &(f64, f64, f64))| {
                    (own.0 - truth.0).abs() < 1.5
                        && (own.1 - truth.1).abs() < 1.1
                        && (own.2 - truth.2).abs() < 0.011
                };
                assert!(
                    own.len() == truth.len() && own.iter().zip(&truth).all(is_near),
                    "{locale} {settings:?} {words:?}: {own:?}, not {truth:?}\n{text}"
                );
            }
        }
    }
}

#[test]
fn iostat_is_read_in_every_language_and_with_every_option_that_prints_what_is_needed() {
    let Some(sysstat) = Sysstat::new() else { return };
    const NONE: Environment = &[];
    let options: [(Environment, &[&str]); 13] = [
        (NONE, &[]),
        (NONE, &["-d"]),
        (NONE, &["-h"]),
        (NONE, &["-h", "--compact"]),
        (NONE, &["--human"]),
        (NONE, &["--pretty"]),
        (NONE, &["-s"]),
        (NONE, &["-s", "-h"]),
        (NONE, &["-m", "-N"]),
        (NONE, &["-z"]),
        (NONE, &["-o", "JSON"]),
        (&[("S_TIME_FORMAT", "ISO")], &["-k"]),
        (&[("S_COLORS", "always")], &["-p", "ALL"]),
    ];
    let mut running = Vec::new();
    for locale in &sysstat.locales {
        let number = if EVERY_FORM.contains(&locale.as_str()) { options.len() } else { 2 };
        for (settings, own) in options.into_iter().take(number) {
            let words = [&["iostat", "-x", "-t"], own, &["1", "3"]].concat();
            let child = sysstat.command(locale, settings, &words).spawn().unwrap();
            running.push((format!("{locale} {settings:?} {words:?}"), own.contains(&"-z"), child));
        }
    }
    for (name, omits, child) in running {
        let text = output(child);
        let all = read(&text);
        assert!(omits || !all.loads.is_empty(), "{name}\n{text}");
        for (device, load) in &all.loads {
            let lengths: Vec<f64> = load.intervals.iter().map(|interval| interval.seconds).collect();
            // A machine that is busy may print late, by a second or two.
            assert!(
                lengths.len() == 2 && lengths.iter().all(|length| (1.0..4.0).contains(length)),
                "{name}: {device} has {lengths:?}\n{text}"
            );
        }
    }
}
