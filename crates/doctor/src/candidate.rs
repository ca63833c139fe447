//! What is said of a server that may gain from running without the doublewrite buffer: the answer first, then what it rests on.
//!
//! The judgement is [`ebbtide_advisor::doublewrite`]'s.

use ebbtide_advisor::doublewrite::{Action, Candidate, Gain, Standing, Storage, Verdict, Workload};
use ebbtide_mysql::status::Facts;
use ebbtide_report::{Block, Cell, Fact, Listing, Note, Report, Section, Table, Tone};
use ebbtide_text::{figure, percent};
use ebbtide_volume::MIB;

/// What was looked at.
#[derive(Debug)]
pub struct Seen<'a> {
    /// What the server says of itself.
    pub facts: &'a Facts,
    /// Its host and port, or its socket.
    pub at: String,
    /// What it did between the two looks.
    pub work: &'a Workload,
    /// The volume of its files, where it was named.
    pub storage: Option<&'a Storage>,
}

/// What to do now first, then the answer with its figures; what both rest on is details.
#[must_use]
pub fn document(seen: &Seen<'_>, candidate: &Candidate) -> Report {
    let words = verdict_words(candidate.verdict);
    let mut blocks = vec![
        Block::Findings(vec![candidate.advice.clone()]),
        Block::Text(format!("{words}. {}", candidate.why)),
    ];
    if let Some(gain) = &candidate.gain {
        blocks.push(Block::Table(demand(seen, candidate, gain)));
    }
    let verdict = candidate.verdict;
    let matters = matches!(verdict, Verdict::Yes | Verdict::Perhaps | Verdict::AlreadyOff);
    if matters {
        blocks.push(Block::Notes(vec![open_conditions(candidate)]));
    }
    if matches!(verdict, Verdict::Yes | Verdict::Perhaps) && candidate.action == Action::LeaveOn {
        let label = "Next, gain and risk on emulated volumes".into();
        let text = "ebbtide crash optimized-writes".into();
        blocks.push(Block::Listing(Listing { label, text }));
    }
    let mut sections = vec![Section::new("", blocks)];
    let mut basis = vec![Block::Text(server(seen))];
    basis.extend(candidate.gain.iter().flat_map(|_| pages(seen, candidate)).map(Block::Text));
    sections.push(Section::new("What was seen", basis).details());
    if matters {
        let mut conditions = vec![Block::Facts(conditions(candidate))];
        conditions.push(Block::Text(candidate.risk.to_owned()));
        sections.push(Section::new("Before it may be off, all of this has to be true", conditions).details());
    }
    if verdict == Verdict::Yes {
        let reports = candidate.sources.iter().take(3);
        let reports = reports.map(|source| Note::plain(format!("{} ({})", source.says, source.url)));
        sections.push(Section::new("Others report", vec![Block::Notes(reports.collect())]).details());
    }
    Report { title: "Without the doublewrite buffer".into(), sections, ..Report::default() }
}

/// What has to be true before the buffer may be off, in a line.
fn open_conditions(candidate: &Candidate) -> Note {
    let open = candidate.conditions.iter().filter(|condition| condition.standing != Standing::Met);
    let (open, all) = (open.count(), candidate.conditions.len());
    let text =
        format!("{open} of {all} conditions for running without it are not met or not known: --details");
    Note { text, tone: if open > 0 { Tone::Caution } else { Tone::Plain } }
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
fn demand(seen: &Seen<'_>, candidate: &Candidate, gain: &Gain) -> Table {
    let mib = |bytes: f64| format!("{} MiB", figure(bytes / MIB as f64));
    let (with, without) = (candidate.with, candidate.without);
    let mut rows = vec![
        ["bytes".into(), mib(with.bytes), mib(without.bytes), times(gain.if_throughput)],
        ["operations".into(), figure(with.ios), figure(without.ios), times(gain.if_iops)],
    ];
    // Not for a COMMIT: a transaction of one statement has none.
    let writes = seen.work.write_statements;
    if writes >= 1.0 {
        let kib = |bytes: f64| format!("{} KiB", figure(bytes / writes / 1024.0));
        let label = "bytes for a statement that writes".into();
        rows.push([label, kib(with.bytes), kib(without.bytes), String::new()]);
        let ios = |ios: f64| figure(ios / writes);
        rows.push(["operations for one".into(), ios(with.ios), ios(without.ios), String::new()]);
    }
    if let (Some(volume), Some(storage)) = (gain.on_volume, seen.storage) {
        let limit = volume.limit.name();
        let credits = if storage.bursts { " without burst credits" } else { "" };
        let label = format!("nearest limit, now {limit}{credits}");
        rows.push([label, percent(volume.used), percent(volume.used_without), times(volume.ceiling)]);
    }
    Table {
        columns: ["A second", "Now", "Without it", "Room for"].map(str::to_owned).to_vec(),
        rows: rows.into_iter().map(|row| row.map(Cell::from).to_vec()).collect(),
        ..Table::default()
    }
}

fn times(ratio: f64) -> String {
    format!("{} times", figure(ratio))
}

fn pages(seen: &Seen<'_>, candidate: &Candidate) -> Vec<String> {
    let work = seen.work;
    let cached =
        if seen.facts.direct == Some(true) { "" } else { " (not counted: the page cache may have had them)" };
    let batch =
        candidate.pages_a_batch.map(|pages| format!(", {} to a batch", figure(pages))).unwrap_or_default();
    let mut texts = vec![format!(
        "Pages: {} read{cached} and {} written a second, {} of them through the doublewrite buffer{batch}.",
        figure(work.page_reads),
        figure(work.page_writes),
        figure(work.doublewrite_pages)
    )];
    let threads =
        |threads: Option<f64>, words: &str| threads.map(|threads| format!("{} {words}", figure(threads)));
    let waits: Vec<String> = [
        threads(work.free_page_waits, "waits for a free page a second"),
        threads(work.doublewrite_wait, "threads in the doublewrite files' I/O"),
        threads(work.doublewrite_mutex_wait, "threads at its mutex"),
    ]
    .into_iter()
    .flatten()
    .collect();
    texts.extend((!waits.is_empty()).then(|| format!("Waits: {}.", waits.join(", "))));
    texts
}

fn conditions(candidate: &Candidate) -> Vec<Fact> {
    let facts = candidate.conditions.iter().map(|condition| {
        let standing = match condition.standing {
            Standing::Met => "yes",
            Standing::ToDo => "to do",
            Standing::Broken => "no",
            Standing::Unknown => "find out",
        };
        Fact::new(standing, format!("{}: {}", condition.what, condition.how))
    });
    facts.collect()
}

#[cfg(test)]
mod tests {
    use ebbtide_advisor::doublewrite::{Doublewrite, PageWriteSettings, judge};
    use ebbtide_mysql::Flavour;
    use ebbtide_report::TextOptions;

    use super::*;

    fn text(doublewrite: Doublewrite, write_statements: f64, options: TextOptions) -> String {
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
        document(&Seen { facts: &facts, at: "/s".into(), work: &work, storage: None }, &candidate)
            .to_text(options)
    }

    fn details() -> TextOptions {
        TextOptions { columns: 400, details: true, ..TextOptions::default() }
    }

    #[test]
    fn the_answer_is_one_screen_and_what_it_rests_on_is_details() {
        for columns in [60, 80, 120] {
            let options = TextOptions { columns, ..TextOptions::default() };
            let text = text(Doublewrite::On, 3000.0, options);
            assert!(
                text.starts_with("Leave the doublewrite buffer on: no gain is shown.\nPerhaps a candidate. "),
                "{text}"
            );
            assert!(text.contains("1.92 times") && text.contains("ebbtide crash optimized-writes"), "{text}");
            assert!(text.lines().count() <= 24 && text.lines().all(|line| line.len() <= columns), "{text}");
        }
        let text = text(Doublewrite::On, 3000.0, details());
        for part in [
            "Up to 92% more",
            "750 COMMIT, 3,000 statements that write",
            "100 to a batch",
            "0.25 threads",
            "0 read (not counted",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(text.contains("to do     A page is written past the page cache"), "{text}");
        assert!(!text.contains("mutex"), "what the server does not time is left out: {text}");
    }

    #[test]
    fn where_it_is_off_already_the_conditions_stay_and_no_gain_is_shown() {
        let text = text(Doublewrite::Off, 3000.0, details());
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
