//! The judgement for people: the answer first, then what it rests on.

use std::fmt::Write as _;

use ebbtide_advisor::optimized_writes::{
    Action, Candidate, Gain, SOURCES, Standing, Storage, Verdict, Workload,
};
use ebbtide_mysql::status::Facts;
use ebbtide_text::{figure, percent};
use ebbtide_volume::MIB;

use crate::text::TextTable;

/// What was looked at.
pub(super) struct Seen<'a> {
    pub(super) facts: &'a Facts,
    pub(super) at: String,
    pub(super) work: &'a Workload,
    pub(super) storage: Option<&'a Storage>,
}

/// What to do now first, then the answer, then what both rest on; without an end of line.
pub(super) fn answer(seen: &Seen<'_>, candidate: &Candidate) -> String {
    let words = verdict_words(candidate.verdict);
    let mut text = format!("{}\n{words}. {}\n{}\n", candidate.advice, candidate.why, server(seen));
    if let Some(gain) = &candidate.gain {
        let _ = write!(text, "\n{}\n\n{}", demand(seen, candidate, gain).text(), pages(seen, candidate));
    }
    let verdict = candidate.verdict;
    if matches!(verdict, Verdict::Yes | Verdict::Perhaps | Verdict::AlreadyOff) {
        let _ = write!(text, "\n{}{}\n", conditions(candidate), candidate.risk);
    }
    if verdict == Verdict::Yes {
        let reports: Vec<String> =
            SOURCES.iter().take(3).map(|source| format!("  {}\n    {}\n", source.says, source.url)).collect();
        let _ = write!(text, "\nOthers report:\n{}", reports.concat());
    }
    if matches!(verdict, Verdict::Yes | Verdict::Perhaps) && candidate.action == Action::LeaveOn {
        text += "To measure gain and risk on emulated volumes: ebbtide crash optimized-writes\n";
    }
    text.truncate(text.trim_end().len());
    text
}

fn verdict_words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Yes => "A candidate",
        Verdict::Perhaps => "Perhaps a candidate",
        Verdict::No => "No candidate",
        Verdict::AlreadyOff => "Off already",
        Verdict::NotKnown => "Not known",
    }
}

fn server(seen: &Seen<'_>) -> String {
    let Seen { facts, at, work, .. } = seen;
    let commits = work.commits.map(|commits| format!("{} COMMIT, ", figure(commits))).unwrap_or_default();
    format!(
        "{} {} at {at}, {:.0} s: a second {commits}{} statements that write, {} that read",
        facts.flavour,
        facts.version.split('-').next().unwrap_or_default(),
        work.seconds,
        figure(work.write_statements),
        figure(work.read_statements)
    )
}

/// What it takes of its storage, with and without.
fn demand(seen: &Seen<'_>, candidate: &Candidate, gain: &Gain) -> TextTable {
    let mut table = TextTable::new(&["A SECOND", "NOW", "WITHOUT IT", "ROOM FOR"]);
    let mib = |bytes: f64| format!("{} MiB", figure(bytes / MIB as f64));
    let (with, without) = (candidate.with, candidate.without);
    table.row(["bytes".into(), mib(with.bytes), mib(without.bytes), times(gain.if_throughput)]);
    table.row(["operations".into(), figure(with.ios), figure(without.ios), times(gain.if_iops)]);
    // Not for a COMMIT: a transaction of one statement has none.
    let writes = seen.work.write_statements;
    if writes >= 1.0 {
        let kib = |bytes: f64| format!("{} KiB", figure(bytes / writes / 1024.0));
        table.row([
            "bytes for a statement that writes".into(),
            kib(with.bytes),
            kib(without.bytes),
            String::new(),
        ]);
        let ios = |ios: f64| figure(ios / writes);
        table.row(["operations for one".into(), ios(with.ios), ios(without.ios), String::new()]);
    }
    if let (Some(volume), Some(storage)) = (gain.on_volume, seen.storage) {
        let limit = volume.limit.name();
        let credits = if storage.bursts { " without burst credits" } else { "" };
        table.row([
            format!("nearest limit, now {limit}{credits}"),
            percent(volume.used),
            percent(volume.used_without),
            times(volume.ceiling),
        ]);
    }
    table
}

fn times(ratio: f64) -> String {
    format!("{} times", figure(ratio))
}

fn pages(seen: &Seen<'_>, candidate: &Candidate) -> String {
    let work = seen.work;
    let cached =
        if seen.facts.direct == Some(true) { "" } else { " (not counted: the page cache may have had them)" };
    let batch =
        candidate.pages_a_batch.map(|pages| format!(", {} to a batch", figure(pages))).unwrap_or_default();
    let mut text = format!(
        "Pages: {} read{cached} and {} written a second, {} of them through the doublewrite buffer{batch}.\n",
        figure(work.page_reads),
        figure(work.page_writes),
        figure(work.doublewrite_pages)
    );
    let threads =
        |threads: Option<f64>, what: &str| threads.map(|threads| format!("{} {what}", figure(threads)));
    let waits: Vec<String> = [
        threads(work.free_page_waits, "waits for a free page a second"),
        threads(work.doublewrite_wait, "threads in the doublewrite files' I/O"),
        threads(work.doublewrite_mutex_wait, "threads at its mutex"),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !waits.is_empty() {
        let _ = writeln!(text, "Waits: {}.", waits.join(", "));
    }
    text
}

fn conditions(candidate: &Candidate) -> String {
    let mut text = String::from("Before it may be off, all of this has to be true:\n");
    for one in &candidate.conditions {
        let standing = match one.standing {
            Standing::Met => "yes",
            Standing::ToDo => "to do",
            Standing::Broken => "no",
            Standing::Unknown => "find out",
        };
        let _ = writeln!(text, "  {standing:8}  {}: {}", one.what, one.how);
    }
    text
}

#[cfg(test)]
mod tests {
    use ebbtide_advisor::optimized_writes::{Doublewrite, PageWriteSettings, judge};
    use ebbtide_mysql::Flavour;

    use super::*;

    fn text(doublewrite: Doublewrite, write_statements: f64) -> String {
        let work = Workload {
            seconds: 30.0,
            page_writes: 3000.0,
            doublewrite_pages: 3000.0,
            doublewrite_batches: 30.0,
            page_reads: 0.0,
            redo_bytes: 4e6,
            redo_writes: None,
            binlog_bytes: None,
            commits: Some(750.0),
            write_statements,
            read_statements: 0.0,
            free_page_waits: Some(0.0),
            doublewrite_wait: Some(0.25),
            doublewrite_mutex_wait: None,
        };
        let facts = Facts {
            flavour: Flavour::MySql,
            version: "9.7.4".into(),
            aurora: None,
            doublewrite: None,
            page_bytes: None,
            direct: Some(false),
            flush_neighbors: None,
        };
        let settings = PageWriteSettings {
            doublewrite,
            page_bytes: 16_384,
            direct: Some(false),
            flush_neighbors: None,
            files: None,
            release: None,
        };
        let candidate = judge(&work, &settings, None);
        answer(&Seen { facts: &facts, at: "/s".into(), work: &work, storage: None }, &candidate)
    }

    #[test]
    fn the_first_line_is_the_answer_and_the_rest_is_a_screenful() {
        let text = text(Doublewrite::On, 3000.0);
        assert!(
            text.starts_with(
                "Leave the doublewrite buffer on: no gain is shown.\nPerhaps a candidate. Up to 92% more"
            ),
            "{text}"
        );
        for part in [
            "750 COMMIT, 3,000 statements that write",
            "1.92 times",
            "100 to a batch",
            "0.25 threads",
            "0 read (not counted",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(text.contains("to do     A page is written past the page cache"), "{text}");
        assert!(!text.contains("mutex"), "what the server does not time is left out: {text}");
        assert!((15..=34).contains(&text.lines().count()), "{text}");
    }

    #[test]
    fn where_it_is_off_already_the_conditions_stay_and_no_gain_is_shown() {
        let text = text(Doublewrite::Off, 3000.0);
        assert!(
            text.starts_with("Turn the doublewrite buffer on: ") && text.contains("\nOff already. "),
            "{text}"
        );
        assert!(text.contains("has to be true") && !text.contains("times"), "{text}");
    }

    #[test]
    fn thousands_stand_apart() {
        assert_eq!(
            [0.0, 0.5, 12.34, 999.4, 1000.0, 1_234_567.0].map(figure),
            ["0", "0.50", "12.3", "999", "1,000", "1,234,567"]
        );
    }
}
