//! What a run is about to do and what it found, for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use ebbtide_lab::experiment::{self, Arm, Experiment, LoadKind, Shipped};
use ebbtide_lab::page::settings::round_trip;
use ebbtide_lab::record::{LabRun, ProgramFacts, Trial};
use ebbtide_lab::run::{self as lab, Plan, Prepared};
use ebbtide_lab::summary::{
    Across, ArmSummary, Around, JudgedClaim, Repetition, Summary, TransactionFigures,
};
use ebbtide_text::{figure, latency, percent};

use super::status::span;
use crate::text::{TextTable, count, seconds, size, timestamp};

/// The shipped experiments.
pub(crate) fn list<'a>(shipped: impl IntoIterator<Item = &'a Shipped>, command: &str) -> String {
    let mut text = String::new();
    for one in shipped {
        let _ = writeln!(
            text,
            "{}\n    {}\n    {}\n",
            one.name,
            one.title,
            one.question.trim().replace('\n', "\n    ")
        );
    }
    let _ = write!(
        text,
        "Run one with 'ebbtide {command} NAME', or NAME --quick; 'ebbtide {command} NAME --show' prints its file."
    );
    text
}

/// What runs, before it does.
pub(super) fn header(plan: &Plan, out: &Path) -> String {
    let (experiment, server) = (&plan.experiment(), plan.server());
    let (arms, repeats) = (experiment.arms.len(), experiment.trial.repeats);
    let mut text = format!("{}: {}\n", experiment.name, experiment.title);
    let _ = writeln!(text, "server: {} ({})", server.text.trim(), server.path.display());
    text += &others(plan);
    let _ = writeln!(
        text,
        "{}, {} of each, {} measured; seed {}",
        count(arms, "arm"),
        count(repeats, "trial"),
        measured(experiment),
        experiment.seed
    );
    text + &format!("results: {}", out.display())
}

/// A line for each program that servers of arms have in place of the run's.
fn others(plan: &Plan) -> String {
    let facts = lab::server_facts(plan);
    let line = |role: &str, programs: &BTreeMap<String, ProgramFacts>| {
        let mut arms: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
        for (arm, ProgramFacts { path, version, .. }) in programs {
            arms.entry((version.trim(), path)).or_default().push(arm);
        }
        let lines = arms
            .iter()
            .map(|((version, path), arms)| format!("{role} of {}: {version} ({path})\n", arms.join(", ")));
        lines.collect::<String>()
    };
    let is_cut = plan.arms().iter().any(|planned| planned.arm.crash.is_some());
    line(if is_cut { "source" } else { "server" }, &facts.sources) + &line("replicas", &facts.replicas)
}

/// What would run.
pub(super) fn plan(plan: &Plan, experiment: &Experiment) -> String {
    let mut text = title(experiment, plan.server().text.trim());
    text += &others(plan);
    text += &scale(experiment);
    for planned in plan.arms() {
        text += &arm(&planned.arm, planned.data_bytes);
        for option in &planned.options {
            let _ = writeln!(text, "    {option}");
        }
        if let Some(replica) = &planned.replica {
            text += &replicas(&planned.arm, &replica.arm, &replica.options);
        }
    }
    text + &amount(experiment)
}

/// What would run on servers whose versions are not known.
pub(crate) fn outline(experiment: &Experiment, unknown: &[String]) -> String {
    let mut text = title(experiment, "its version is not known");
    text += &scale(experiment);
    for planned in &experiment.arms {
        text += &arm(planned, planned.tables(experiment.data).data_bytes());
        if let Some(replica) = planned.replica() {
            text += &replicas(planned, &replica, &[]);
        }
    }
    text + &amount(experiment) + &not_started(unknown)
}

/// What was not looked at because servers are not started.
pub(crate) fn not_started(unknown: &[String]) -> String {
    format!(
        "\n\nnot checked: the settings, their option lines, and which arms a server cannot have. They need the version of {}, \
         which is not known without starting it, and --check starts nothing",
        unknown.join(" and of ")
    )
}

fn title(experiment: &Experiment, server: &str) -> String {
    format!("{}: {}\nserver: {server}\n", experiment.name, experiment.title)
}

fn scale(experiment: &Experiment) -> String {
    let scale = experiment.scale.trim();
    if scale.is_empty() { String::new() } else { format!("scale: {scale}\n") }
}

/// An arm without its server's options.
fn arm(arm: &Arm, data_bytes: u64) -> String {
    let mut text = format!("\n{}\n", arm.name);
    for (role, spec) in &arm.volumes {
        let role = format!("{role:?}").to_lowercase();
        let _ = writeln!(text, "    {role} volume: {spec}");
    }
    let _ =
        writeln!(text, "    memory {}, about {} of data", size(arm.instance.memory_bytes), size(data_bytes));
    let _ = writeln!(text, "    {}", asked_of(arm));
    text
}

/// How much is run, and how long it takes.
fn amount(experiment: &Experiment) -> String {
    let (arms, repeats) = (experiment.arms.len(), experiment.trial.repeats);
    let is_cut = experiment.arms.iter().any(|arm| arm.crash.is_some());
    format!(
        "\n{}, {} of each, {} measured: about {}",
        count(arms, "arm"),
        count(repeats, if is_cut { "stint" } else { "trial" }),
        measured(experiment),
        span(experiment::estimate(experiment).as_secs_f64())
    )
}

/// The replicas of an arm.
fn replicas(arm: &Arm, replica: &Arm, options: &[String]) -> String {
    let topology = &arm.topology;
    let mut text = format!("    {} by {}\n", count(topology.replicas, "replica"), topology.by.name());
    for (role, spec) in &replica.volumes {
        let role = format!("{role:?}").to_lowercase();
        let _ = writeln!(text, "        {role} volume: {spec}");
    }
    for option in options {
        let _ = writeln!(text, "        {option}");
    }
    text
}

/// The time that is measured in a trial: `60 s`, or `15 s to 60 s` where arms differ.
pub(crate) fn measured(experiment: &Experiment) -> String {
    let times = || experiment.arms.iter().map(|arm| arm.measure_s);
    let (least, most) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
    let [least, most] = [least, most].map(|time| seconds(f64::from(time)));
    if least == most { most } else { format!("{least} to {most}") }
}

/// What an arm's server is put through.
fn asked_of(arm: &Arm) -> String {
    let load = &arm.load;
    let Some(crash) = &arm.crash else {
        let network = round_trip(load).map_or(String::new(), |time| format!(", {time} a round trip"));
        return format!("{} with {} connections{network}", load.workload, load.connections);
    };
    let moments: Vec<&str> = crash.moments.iter().map(|moment| moment.name()).collect();
    let tpcc = if load.workload == LoadKind::Tpcc { "tpcc with " } else { "" };
    let upto = if crash.canary.is_some() { "up to " } else { "" };
    let fault = crash.fault.map(|fault| format!("; fault: {}", fault.name())).unwrap_or_default();
    format!(
        "{tpcc}{} clients, {upto}{} cuts ({}) at the moments {}{fault}",
        load.connections,
        crash.cuts,
        crash.end.name(),
        moments.join(", ")
    )
}

/// The data that runs share.
pub(super) fn prepared(all: &[Prepared]) {
    let mut table = TextTable::new(&["NAME", "TABLES", "ROWS", "FS", "DISK", "SERVER"]);
    for one in all {
        let server = one.damage.clone().unwrap_or_else(|| one.server.trim().to_owned());
        let rows =
            one.warehouses.map_or_else(|| one.rows.to_string(), |count_of| count(count_of, "warehouse"));
        let tables = one.tables.to_string();
        table.row([one.name.clone(), tables, rows, one.fs.clone(), size(one.allocated_bytes), server]);
    }
    table.print("no prepared data");
}

/// Notes that a terminal shows; the report has all.
pub(crate) const NOTES: usize = 3;

/// What was found.
pub(super) fn verdict(record: &LabRun, summary: &Summary, report: &Path) -> String {
    let mut text = String::new();
    for finding in &summary.findings {
        let _ = writeln!(text, "\n{finding}");
    }
    let _ = writeln!(text, "\n{}\n{DEFINITIONS}", arms(summary));
    if let Some(table) = tpcc(summary) {
        let _ = writeln!(text, "\n{table}\n{TPCC_DEFINITIONS}");
    }
    if let Some(table) = lag(summary) {
        let _ = writeln!(text, "\n{table}\n{LAG_DEFINITIONS}");
    }
    for line in promotions(record) {
        let _ = writeln!(text, "{line}");
    }
    if let Some(table) = backups(record, summary) {
        let _ = writeln!(text, "\n{table}\n{BACKUP_DEFINITIONS}");
    }
    if !summary.claims.is_empty() {
        let _ = writeln!(text, "\n{}", claims(&summary.claims));
    }
    if let Some(repetition) = &summary.repeated {
        let _ = writeln!(text, "{}\n", runs(repetition));
    }
    for note in summary.notes.iter().take(NOTES) {
        let arm = note.arm.as_ref().map(|arm| format!("{arm}: ")).unwrap_or_default();
        let _ = writeln!(text, "note: {arm}{}", note.text);
    }
    if summary.notes.len() > NOTES {
        let _ = writeln!(text, "note: {} more in the report", summary.notes.len() - NOTES);
    }
    let _ = writeln!(text, "again: {}", record.command);
    text + &format!("report: {}", report.display())
}

/// Several runs of an experiment, and whether they agree.
pub(super) fn repetition(experiment: &Experiment, repetition: &Repetition) -> String {
    format!("{}: {}\n{}", experiment.name, experiment.title, runs(repetition))
}

fn runs(repetition: &Repetition) -> String {
    let mut table = TextTable::new(&["RUN", "STARTED", "SEED", "TRIALS"]);
    for run in &repetition.runs {
        let started = timestamp(i64::try_from(run.started_ns / 1_000_000_000).unwrap_or(i64::MAX));
        let trials = format!("{} of {}", run.measured, run.trials);
        table.row([run.directory.clone(), started, run.seed.to_string(), trials]);
    }
    let mut text = format!("\n{}", table.text());
    for repeated in &repetition.comparisons {
        let _ = write!(text, "\n\n{}", repeated.text);
    }
    if repetition.comparisons.is_empty() {
        text += "\n\nThe experiment compares nothing.";
    }
    for (at, note) in repetition.notes.iter().enumerate() {
        let _ = write!(text, "{}note: {note}", if at == 0 { "\n\n" } else { "\n" });
    }
    text
}

/// What the figures of the table are.
const DEFINITIONS: &str =
    "(without warm-up; IO/TX: operations a transaction, as the volumes' IOPS limits count them)";

/// What the figures of TPC-C's table are.
const TPCC_DEFINITIONS: &str = "(tpmC: New-Orders a minute of the same seconds; CEILING: of 12.86 for each warehouse; p95 of each transaction, all \
     measured seconds)";

/// TPC-C's figures as a table; none for another load.
fn tpcc(summary: &Summary) -> Option<String> {
    let arms = || summary.arms.iter().filter_map(|arm| Some((arm, arm.tpcc.as_ref()?)));
    let names: Vec<String> =
        arms().next()?.1.transactions.iter().map(|of| of.transaction.to_uppercase()).collect();
    let mut heads = vec!["ARM", "TPMC", "95%", "CEILING", "ST/TX"];
    heads.extend(names.iter().map(String::as_str));
    let mut table = TextTable::new(&heads);
    for (arm, figures) in arms() {
        let interval = figures.tpmc.interval;
        let interval = interval.map(|of| format!("{} to {}", figure(of.low), figure(of.high)));
        let mut row = vec![
            arm.name.clone(),
            figure(figures.tpmc.mean),
            interval.unwrap_or_else(|| "-".to_owned()),
            percent(figures.ceiling_pct / 100.0),
            figure(figures.statements_per_transaction),
        ];
        let p95 =
            |of: &TransactionFigures| if of.count > 0 { latency(of.p95_us.median) } else { "-".to_owned() };
        row.extend(figures.transactions.iter().map(p95));
        table.row(row);
    }
    Some(table.text())
}

/// A line for each trial that ended with the promotion of a replica.
fn promotions(record: &LabRun) -> Vec<String> {
    let line = |trial: &Trial| {
        let of = trial.promotion?;
        let (applied, took) = (latency(of.applied_s * 1e6), latency(of.took_s * 1e6));
        Some(format!(
            "promotion: {}, trial {}: took writes {took} after the source's end (applied what it had after {applied}); {} of {} \
             acknowledged transactions are lost",
            trial.arm,
            trial.repeat + 1,
            of.lost,
            of.acknowledged
        ))
    };
    record.trials.iter().filter_map(line).collect()
}

/// How many claims of documents got which verdict, in a line: `claims of documents: 1 reproduced, 5 not testable here`.
/// Each claim with its reason is in the report.
pub(crate) fn claims(claims: &[JudgedClaim]) -> String {
    let mut verdicts: Vec<(&str, usize)> = Vec::new();
    for judged in claims {
        let words = judged.verdict.words();
        match verdicts.iter_mut().find(|(known, _)| *known == words) {
            Some((_, number)) => *number += 1,
            None => verdicts.push((words, 1)),
        }
    }
    let counts: Vec<String> = verdicts.iter().map(|(words, number)| format!("{number} {words}")).collect();
    format!("claims of documents, in the report: {}", counts.join(", "))
}

/// What the figures of the backups' table are.
const BACKUP_DEFINITIONS: &str = "(transactions a second before, during and after the backup; CREDITS: of a full bucket, of the volume that lost \
     most, else of the target; CHECKED: backups that were restored and hold what they should; a \
     restored snapshot has all blocks from the beginning, as with --initialization none)";

/// The backups as a table; none where no arm has one.
fn backups(record: &LabRun, summary: &Summary) -> Option<String> {
    let mut table =
        TextTable::new(&["ARM", "BEFORE", "DURING", "AFTER", "TOOK", "SIZE", "CREDITS", "CHECKED"]);
    let mut any = false;
    let arms = record.experiment.arms.iter().zip(&summary.arms);
    for (arm, of) in arms.filter(|(arm, _)| arm.backup.is_some()) {
        any = true;
        let rate = |around: Around| {
            let part = of.regimes.iter().find(|part| part.regime.backup == Some(around));
            part.map_or_else(|| "-".to_owned(), |part| figure(part.figures.tps.mean))
        };
        let own = || record.trials.iter().filter(|trial| trial.arm == arm.name);
        let made: Vec<_> = own().filter_map(|trial| trial.backup.as_ref()).collect();
        let good = made.iter().filter(|backup| backup.restored.failed.is_none()).count();
        let none = || "-".to_owned();
        table.row([
            arm.name.clone(),
            rate(Around::Before),
            rate(Around::During),
            rate(Around::After),
            of.backup.map_or_else(none, |backup| latency(backup.took_s.median * 1e6)),
            of.backup.map_or_else(none, |backup| ebbtide_text::bytes(backup.bytes.median)),
            of.backup
                .and_then(|backup| backup.credits_used.or(backup.target_credits_used))
                .map_or_else(none, |used| percent(used.median.max(0.0))),
            format!("{good} of {}", own().count()),
        ]);
    }
    any.then(|| table.text())
}

/// What the figures of the replicas' table are.
const LAG_DEFINITIONS: &str = "(age of the newest heartbeat that the replica farthest behind had applied, and transactions that it had not; a \
     heartbeat is committed each 0.1 s)";

/// The replicas' lag as a table; none without replicas.
fn lag(summary: &Summary) -> Option<String> {
    let mut table = TextTable::new(&["ARM", "LAG", "P95", "AT END", "TX", "TX AT END"]);
    let mut any = false;
    for (arm, lag) in summary.arms.iter().filter_map(|arm| Some((arm, arm.lag?))) {
        any = true;
        let time = |of: Across| latency(of.median * 1e6);
        let count = |of: Option<Across>| of.map_or_else(|| "-".to_owned(), |of| figure(of.median));
        table.row([
            arm.name.clone(),
            time(lag.mean_s),
            time(lag.p95_s),
            time(lag.end_s),
            count(lag.transactions),
            count(lag.end_transactions),
        ]);
    }
    any.then(|| table.text())
}

/// The arms as a table.
fn arms(summary: &Summary) -> String {
    let mut table = TextTable::new(&["ARM", "TPS", "95%", "P95", "P99", "IO/TX", "KIB/TX", "TRIALS"]);
    for arm in &summary.arms {
        table.row(figures(arm));
    }
    table.text()
}

fn figures(arm: &ArmSummary) -> [String; 8] {
    let none = || "-".to_owned();
    let trials = &arm.trials;
    let of = trials.measured + trials.disqualified + trials.failed;
    let counted = format!("{} of {of}", trials.measured);
    let Some(figures) = &arm.whole else {
        return [arm.name.clone(), none(), none(), none(), none(), none(), none(), counted];
    };
    let per = figures.per_transaction.as_ref();
    [
        arm.name.clone(),
        figure(figures.tps.mean),
        figures
            .tps
            .interval
            .map_or_else(none, |interval| format!("{} to {}", figure(interval.low), figure(interval.high))),
        latency(figures.p95_us.median),
        latency(figures.p99_us.median),
        per.map_or_else(none, |per| figure(per.consumed_ios)),
        per.map_or_else(none, |per| figure(per.read_kib + per.written_kib)),
        counted,
    ]
}

/// Whether every trial counts: the exit code shows it.
pub(super) fn all_measured(summary: &Summary) -> bool {
    summary.arms.iter().all(|arm| arm.trials.disqualified == 0 && arm.trials.failed == 0)
}

#[cfg(test)]
mod tests {
    use ebbtide_lab::page::{page, synthetic};
    use ebbtide_lab::summary::{Note, summarize};
    use ebbtide_text::{change, change_interval, typeset};

    use super::*;

    /// The rows of all tables of a page, as its markup has them.
    fn rows(html: &str) -> Vec<&str> {
        html.split("<tr>").skip(1).filter_map(|rest| Some(rest.split_once("</tr>")?.0)).collect()
    }

    #[test]
    fn the_last_screen_counts_claims_and_has_three_notes_at_most() {
        let record = synthetic::run(&synthetic::TUNED, 3, 30, 7);
        let mut summary = summarize(&record);
        let note =
            summary.notes.first().cloned().unwrap_or_else(|| Note { arm: None, text: "a note".into() });
        summary.notes = vec![note; 5];
        let shown = verdict(&record, &summary, Path::new("/r/report.html"));
        assert_eq!(shown.matches("note: ").count(), NOTES + 1, "{shown}");
        assert!(shown.contains("note: 2 more in the report"), "{shown}");
        assert!(shown.ends_with("report: /r/report.html"), "{shown}");
        assert!(shown.lines().count() <= 24, "{shown}");
    }

    #[test]
    fn the_report_has_each_figure_as_the_terminal_has_it() {
        let record = synthetic::run(&synthetic::TUNED, 3, 30, 7);
        let summary = summarize(&record);
        let html = page(&record, &summary);
        let rows = rows(&html);
        assert_eq!(summary.arms.len(), 2);
        for arm in &summary.arms {
            let cells = figures(arm);
            let (name, printed) = (&cells[0], cells[1..7].iter().map(|cell| typeset_parts(cell)));
            let printed: Vec<String> = printed.collect();
            assert!(printed.iter().all(|cell| cell != "-"), "{cells:?}");
            let same = |row: &&str| {
                row.contains(name.as_str()) && printed.iter().all(|cell| row.contains(cell.as_str()))
            };
            assert!(rows.iter().any(same), "no row of the report has {printed:?}");
        }
        let ratio = summary.comparisons[0].tps.expect("both arms were measured");
        let interval = ratio.interval.expect("three trials have an interval");
        let texts = [
            typeset(&change(ratio.ratio)),
            change_interval(interval.mid, interval.low, interval.high).replace('-', "\u{2212}"),
        ];
        let same = |row: &&str| texts.iter().all(|text| row.contains(text.as_str()));
        assert!(rows.iter().any(same), "no row of the report has {texts:?}");
    }

    /// A cell in the signs of print; the words between two figures stay.
    fn typeset_parts(cell: &str) -> String {
        cell.split(" to ").map(typeset).collect::<Vec<_>>().join(" to ")
    }
}
