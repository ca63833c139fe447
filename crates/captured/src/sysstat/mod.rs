//! What iostat, sar and sadf of sysstat 8 to 12.7 print, in any language and with any of their options.
//!
//! [`iostat`], [`sar`] and [`json`] read tables, [`figures`] their figures, [`clock`] their dates. [`timeline`] makes intervals of
//! the times, and [`record`] loads of these.

pub(super) mod clock;
mod figures;
mod iostat;
mod json;
mod record;
mod sar;
pub(super) mod timeline;

use std::collections::BTreeSet;

use clock::Stamp;
pub(super) use figures::{DeviceRow, Rows, Split};
pub(super) use record::loads;

use super::record_error::{RecordDamage, Unusable};

/// What a program recorded.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Recording {
    /// The program.
    pub(super) tool: &'static str,
    /// Its runs, in the order of the text.
    pub(super) runs: Vec<Run>,
    /// The first row that was not understood.
    pub(super) unread: Option<RecordDamage>,
    /// Whether the text ends within a report, which is left out.
    pub(super) is_cut: bool,
}

impl Recording {
    /// Whether a device that did nothing is left out of a report (-z).
    fn omits_idle(&self) -> bool {
        let names = self.names();
        self.reports().any(|report| !report.is_cut && report.devices.len() < names.len())
    }

    fn reports(&self) -> impl Iterator<Item = &Report> {
        self.runs.iter().flat_map(|run| &run.reports)
    }

    /// The devices of all reports.
    fn names(&self) -> BTreeSet<&String> {
        self.reports().flat_map(|report| report.devices.keys()).collect()
    }

    /// Reports of an interval that have all devices, without those since the machine's start.
    pub(super) fn whole_reports(&self) -> Vec<&Report> {
        let (omits_idle, devices) = (self.omits_idle(), self.names().len());
        let is_whole = |report: &&Report| !report.is_cut || omits_idle || report.devices.len() == devices;
        self.reports().filter(|report| !report.is_since_start).filter(is_whole).collect()
    }
}

/// A run of the program: reports that follow each other.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Run {
    /// The machine that it ran on.
    pub(super) machine: Option<String>,
    /// Processors of the machine.
    pub(super) processors: Option<u64>,
    /// The date in its first line.
    date: Option<Stamp>,
    /// Its reports.
    pub(super) reports: Vec<Report>,
}

/// A report.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Report {
    /// When its interval began, where the text has it.
    start: Option<Time>,
    /// When its interval ended.
    end: Option<Time>,
    /// The length of its interval, s, where the text has it (sadf).
    seconds: Option<f64>,
    /// Whether it is the first report of iostat: the mean since the machine's start.
    pub(super) is_since_start: bool,
    /// Share of the processors' time that was busy, 0 to 1.
    pub(super) busy_share: Option<f64>,
    /// Whether it is the last one of a text that ends within it.
    is_cut: bool,
    pub(super) devices: Rows,
}

/// A time of a report.
#[derive(Debug, Clone, PartialEq)]
enum Time {
    Read(Stamp),
    /// A text in the place of a time.
    Unread(String),
}

impl Time {
    fn of(text: &str) -> Self {
        clock::stamp(text).map_or_else(|| Self::Unread(text.trim().to_owned()), Self::Read)
    }

    const fn stamp(&self) -> Option<&Stamp> {
        match self {
            Self::Read(stamp) => Some(stamp),
            Self::Unread(_) => None,
        }
    }
}

/// What a text of sysstat is.
#[derive(Debug, PartialEq)]
pub(super) enum Text {
    Recording(Recording),
    /// Output of sysstat that tells no load.
    Unusable(Unusable),
    Damaged(RecordDamage),
}

/// Reads what iostat printed, as text or JSON; None in another text.
pub(super) fn iostat(text: &str) -> Option<Text> {
    let text = figures::plain(text);
    json::iostat(&text).or_else(|| iostat::read(&text))
}

/// Reads what sar or sadf printed; None in another text.
pub(super) fn sar(text: &str) -> Option<Text> {
    let text = figures::plain(text);
    json::sadf(&text).or_else(|| sar::read(&text))
}

/// The machine and the date in the first line of a run, `Linux 6.1.0-13-amd64 (db1) \t11/22/26 ...`; None in another line, such
/// as that of `uname -a`.
fn banner(line: &str) -> Option<Run> {
    let (_, rest) = line.strip_prefix("Linux ")?.trim_start().split_once(char::is_whitespace)?;
    let (machine, rest) = rest.trim_start().strip_prefix('(')?.split_once(')')?;
    let processors =
        line.trim_end().strip_suffix(" CPU)").and_then(|line| line.rsplit_once('(')?.1.parse().ok());
    let date = rest.split('\t').find_map(|part| clock::date(part.split("_x86").next().unwrap_or(part)));
    Some(Run { machine: Some(machine.to_owned()), processors, date, reports: Vec::new() })
}

/// Whether a line has a figure beside a name.
fn has_figure(fields: &[&str]) -> bool {
    fields.len() >= 2 && fields.iter().any(|field| field.starts_with(|letter: char| letter.is_ascii_digit()))
}

/// A row, of which a long one is cut off.
fn shown(line: &str) -> String {
    line.trim().chars().take(80).collect()
}

#[cfg(test)]
mod banners {
    use super::*;

    #[test]
    fn the_machine_is_that_of_iostat_and_not_a_word_of_uname() {
        let run = banner("Linux 6.1.0-13-amd64 (db1) \t11/22/2026 \t_x86_64_\t(2 CPU)");
        assert_eq!(run.map(|run| (run.machine, run.processors)), Some((Some("db1".to_owned()), Some(2))));
        let uname =
            "Linux db1 6.1.0-13-amd64 #1 SMP PREEMPT_DYNAMIC Debian 6.1.55-1 (2023-09-29) x86_64 GNU/Linux";
        let version = "Linux version 6.1.0-13-amd64 (debian-kernel@lists.debian.org) (gcc-12 12.2.0)";
        assert_eq!([banner(uname), banner(version), banner("Linux")], [None, None, None]);
    }
}
