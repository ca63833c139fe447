//! What a crash run found, for people.

use std::fmt::Write as _;
use std::path::Path;

use ebbtide_crash::page::replay;
use ebbtide_crash::record::{CrashRun, Cut, Gained, VerdictKind};
use ebbtide_crash::summary::{self, ArmSummary, Summary, bound, kind_name};
use ebbtide_crash::{KeptCut, Replayed, harm};
use ebbtide_lab::experiment::ServerRole;
use ebbtide_text::{change, change_interval, figure, latency, seed, whole};

use crate::run::text::NOTES;
use crate::text::{TextTable, seconds, size, timestamp};

/// The kept images of bad cuts.
pub(super) fn kept(all: &[KeptCut]) {
    let mut table = TextTable::new(&["SEED", "EXPERIMENT", "ARM", "FOUND", "DISK", "KEPT", "SERVER"]);
    for one in all {
        let created = i64::try_from(one.created_unix_s).unwrap_or(i64::MAX);
        table.row([
            seed::hex(one.seed),
            one.experiment.clone(),
            one.arm.clone(),
            found(&one.verdicts),
            size(one.allocated_bytes),
            timestamp(created),
            one.server.trim().to_owned(),
        ]);
    }
    table.print("no images are kept");
}

/// What was found when a cut was judged, and what is found now, from the same bytes.
pub(super) fn replayed(replayed: &Replayed) -> String {
    let Replayed { then, now, .. } = replayed;
    let mut text = format!("{}, cut {}, seed {}\n", now.arm, now.number + 1, seed::hex(now.seed));
    let _ = writeln!(text, "server: {} ({})", replayed.server.name(), replayed.server.path.display());
    let (was, is) = (found(&then.kinds()), found(&now.kinds()));
    let _ = writeln!(text, "then: {was}\nnow:  {is}");
    for line in harm(now) {
        let _ = writeln!(text, "  {line}");
    }
    text + match replayed.same {
        Some(true) => "the same",
        Some(false) => "NOT the same",
        None => "no recovery ran: the server did not come up, so that there is nothing to compare",
    }
}

/// Kinds of verdict in a few words.
fn found(kinds: &[VerdictKind]) -> String {
    let words: Vec<String> = kinds.iter().map(|kind| kind_name(*kind).to_lowercase()).collect();
    if words.is_empty() { "clean".to_owned() } else { words.join(", ") }
}

/// Bad cuts that are shown at most; the report and `--kept` have more.
const EXAMPLES: usize = 3;
/// Lines of a bad cut that are shown at most.
const HARM_LINES: usize = 8;

/// Whether it may be believed, a line for each arm, and how to look further.
pub(super) fn verdict(record: &CrashRun, summary: &Summary, report: &Path) -> String {
    let mut text = format!("\n{}\n\n{}\n\n", trust(summary), arms(summary));
    if let Some(pace) = summary.pace.cuts_a_minute {
        let took = seconds(summary.pace.took.total);
        let _ =
            writeln!(text, "{} verified cuts a minute; {took} for each, several side by side", whole(pace));
    }
    if let Some(gain) = &record.gain {
        text += &gained(record, gain);
    }
    if !summary.claims.is_empty() {
        let _ = writeln!(text, "{}\n", crate::run::text::claims(&summary.claims));
    }
    for note in summary.notes.iter().take(NOTES) {
        let arm = note.arm.as_ref().map(|arm| format!("{arm}: ")).unwrap_or_default();
        let _ = writeln!(text, "note: {arm}{}", note.text);
    }
    if summary.notes.len() > NOTES {
        let _ = writeln!(text, "note: {} more in the report", summary.notes.len() - NOTES);
    }
    for cut in examples(record, summary) {
        let (again, number) = (replay(&record.host.home, cut.seed), cut.number + 1);
        let _ = writeln!(text, "look at a bad cut: {again} ({}, cut {number})", cut.arm);
        for line in harm(cut).iter().take(HARM_LINES) {
            let _ = writeln!(text, "  {line}");
        }
    }
    let _ = writeln!(text, "again: {}", record.command);
    text + &format!("report: {}", report.display())
}

/// Kept cuts of the arms in which their verdict is rarest, and so the least expected: at most [`EXAMPLES`], one for an arm.
fn examples<'a>(record: &'a CrashRun, summary: &Summary) -> Vec<&'a Cut> {
    let kept = |arm: &ArmSummary, kind| {
        record.cuts.iter().find(|cut| cut.kept && cut.arm == arm.name && cut.kinds().contains(&kind))
    };
    let rarest = |arm: &ArmSummary| {
        let found = arm.verdicts.iter().filter_map(|(kind, share)| Some((share.count, kept(arm, *kind)?)));
        let (count, cut) = found.min_by_key(|(count, _)| *count)?;
        Some((count as f64 / arm.cuts as f64, cut))
    };
    let mut found: Vec<_> = summary.arms.iter().filter_map(rarest).collect();
    found.sort_by(|one, other| one.0.total_cmp(&other.0));
    found.into_iter().take(EXAMPLES).map(|(_, cut)| cut).collect()
}

/// What the risk buys.
fn gained(record: &CrashRun, gain: &Gained) -> String {
    let mut text = "what it gains:\n".to_owned();
    for finding in summary::gained(record) {
        let _ = writeln!(text, "  {finding}");
    }
    if let Some(why) = &gain.failed {
        let what = if gain.measured.is_some() { "not all of it counts" } else { "nothing was measured" };
        let _ = writeln!(text, "  {what}: {why}");
    }
    text
}

fn trust(summary: &Summary) -> String {
    if !summary.valid {
        let reasons: String = summary.void.iter().map(|reason| format!("\n  {reason}")).collect();
        return format!("VOID: nothing below may be believed.{reasons}");
    }
    let caught = summary.canaries.iter().filter_map(|canary| canary.caught);
    let worst = caught.max().unwrap_or(0);
    format!("Valid: all {} canaries were caught, the last one by its cut {worst}.", summary.canaries.len())
}

fn arms(summary: &Summary) -> String {
    let replicas = summary.arms.iter().any(|arm| arm.role == ServerRole::Replica);
    let mut columns = vec![
        "ARM",
        "CUTS",
        "CLEAN",
        "CORRUPT",
        "PARTIAL",
        "LOST",
        "BINLOG",
        "UNVERIFIED",
        "ANY HARM, 95%",
        "LOST AT MOST",
        "TPS",
        "GAIN, 95%",
    ];
    if replicas {
        columns.insert(REPLICATION, "REPLICATION");
    }
    let mut table = TextTable::new(&columns);
    for arm in &summary.arms {
        let mut row = row(arm);
        if replicas {
            row.insert(REPLICATION, asked(arm, VerdictKind::ReplicationBroken));
        }
        table.row(row);
    }
    table.text()
}

/// Where the column about replicas comes in, where there are any.
const REPLICATION: usize = 7;

/// Cuts with a kind of verdict; a dash where it is not looked for.
fn asked(arm: &ArmSummary, kind: VerdictKind) -> String {
    if arm.verdicts.contains_key(&kind) { arm.count(kind).to_string() } else { "-".to_owned() }
}

fn row(arm: &ArmSummary) -> Vec<String> {
    let none = || "-".to_owned();
    let count = |kind| arm.count(kind).to_string();
    let bound = bound(&arm.bad);
    vec![
        arm.name.clone(),
        arm.cuts.to_string(),
        arm.clean.to_string(),
        count(VerdictKind::Corrupt),
        count(VerdictKind::Partial),
        asked(arm, VerdictKind::LostCommits),
        asked(arm, VerdictKind::BinlogDisagrees),
        arm.unverified.to_string(),
        if bound.is_empty() { none() } else { bound },
        arm.loss.map_or_else(none, |loss| {
            format!("{} tx, {}", whole(loss.transactions.max), latency(loss.seconds.max * 1e6))
        }),
        arm.throughput.map_or_else(none, |throughput| {
            let without = if throughput.tps.interval.is_none() { " (no interval)" } else { "" };
            format!("{}{without}", figure(throughput.tps.mean))
        }),
        // One stint has no spread, and a gain without an interval is a guess.
        arm.gain.and_then(|gain| Some((gain.ratio, gain.interval?))).map_or_else(none, |(ratio, of)| {
            format!("{}, {}", change(ratio), change_interval(of.mid, of.low, of.high))
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebbtide_crash::record::{Corruption, PageFound, Recovery, Stint, Throughput, Verdict};
    use ebbtide_crash::summary::summarize;
    use ebbtide_lab::experiment::{self, Canary, CrashPlan, Moment, Overrides};
    use ebbtide_mysql::{Binary, Flavour, Version};

    const CANARIES: [Canary; 3] = [Canary::AnswersEarly, Canary::IgnoresFlushes, Canary::TornPages];

    fn cut(arm: &str, number: u32, verdict: Option<Verdict>) -> Cut {
        let recovery = Recovery {
            seconds: 0.3,
            reads: 1,
            read_bytes: 1,
            writes: 1,
            written_bytes: 1,
            doublewrite_pages: 0,
            rolled_back: 0,
            failed_start: None,
        };
        Cut {
            arm: arm.to_owned(),
            repeat: 0,
            number,
            seed: 4711,
            moment: Moment::Random,
            met: true,
            at_s: 1.0,
            paused_us: 1.0,
            in_flight: Vec::new(),
            writes_in_flight: 0,
            cached_units_lost: 0,
            torn_before: Vec::new(),
            torn_writes: Vec::new(),
            verdicts: verdict.into_iter().collect(),
            loss: None,
            recovery: Some(recovery),
            resumed: None,
            took: Default::default(),
            kept: number == 99,
        }
    }

    fn server() -> Binary {
        let (flavour, version) = (Flavour::MariaDb, Version::new(11, 8, 3));
        Binary { path: "/x/mariadbd".into(), flavour, version, text: String::new() }
    }

    #[test]
    fn the_replay_of_a_run_names_its_home() {
        let mut run = run();
        run.host.home = "/srv/my lab".into();
        let wanted = "look at a bad cut: ebbtide crash --replay 0000000000001267 --home '/srv/my lab' (asked";
        assert!(shown(&run).contains(wanted), "{}", shown(&run));
    }

    #[test]
    fn the_harm_that_is_rarest_is_shown_with_its_damage_and_the_command_that_replays_it() {
        let mut run = run();
        let mut careless = run.experiment.arms[0].clone();
        careless.name = "careless".to_owned();
        run.experiment.arms.push(careless);
        run.cuts.extend(
            (99..101).map(|number| Cut { kept: true, ..cut("careless", number, Some(Verdict::LostCommits)) }),
        );
        let text = shown(&run);
        let lines: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("look at")).collect();
        assert!(lines[0].ends_with("--replay 0000000000001267 (asked, cut 100)"), "{text}");
        assert_eq!(lines[1], "  corrupt: Pages have wrong checksums after recovery", "{text}");
        assert!(lines[3].ends_with("(careless, cut 100)"), "{text}");
    }

    fn corrupt() -> Verdict {
        Verdict::Corrupt { how: Corruption::Pages, messages: Vec::new(), pages: Vec::new() }
    }

    /// An arm with 99 clean cuts and a bad one, and three canaries, each caught by its only cut.
    fn run() -> CrashRun {
        let shipped = experiment::shipped()[0].name;
        let mut experiment = experiment::load(shipped, &Overrides::default()).unwrap();
        let arm = experiment.arms[0].clone();
        let named = |name: &str, canary| {
            let crash = Some(CrashPlan { canary, ..CrashPlan::default() });
            experiment::Arm { name: name.to_owned(), crash, ..arm.clone() }
        };
        experiment.arms = CANARIES.map(|canary| named(canary.name(), Some(canary))).to_vec();
        experiment.arms.insert(0, named("asked", None));
        experiment.comparisons.clear();
        let mut cuts: Vec<Cut> = (0..99).map(|number| cut("asked", number, None)).collect();
        cuts.push(cut("asked", 99, Some(corrupt())));
        cuts.push(cut(CANARIES[0].name(), 0, Some(Verdict::LostCommits)));
        cuts.push(cut(CANARIES[1].name(), 0, Some(Verdict::LostCommits)));
        cuts.push(cut(CANARIES[2].name(), 0, Some(corrupt())));
        CrashRun {
            started_ns: 0,
            command: "ebbtide crash test --seed 1".to_owned(),
            ebbtide: String::new(),
            overrides: None,
            host: Default::default(),
            server: Default::default(),
            experiment,
            stints: Vec::new(),
            cuts,
            gain: None,
        }
    }

    fn shown(run: &CrashRun) -> String {
        verdict(run, &summarize(run), Path::new("out/report.html"))
    }

    #[test]
    fn a_valid_run_has_a_line_for_each_arm_and_how_to_look_further() {
        let text = shown(&run());
        assert!(text.contains("Valid: all 3 canaries were caught, the last one by its cut 1."), "{text}");
        let line = text.lines().find(|line| line.starts_with("asked")).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words[1..9], ["100", "99", "1", "0", "0", "-", "0", "0.03%"], "{line}");
        assert!(line.contains("0.03% to 5.4%"), "{line}");
        assert!(
            text.contains("look at a bad cut: ebbtide crash --replay 0000000000001267 (asked, cut 100)"),
            "{text}"
        );
        assert!(text.ends_with("again: ebbtide crash test --seed 1\nreport: out/report.html"), "{text}");
    }

    #[test]
    fn a_void_run_reports_it_first_and_why() {
        let mut run = run();
        run.cuts.pop();
        let text = shown(&run);
        assert!(
            text.starts_with("\nVOID: nothing below may be believed.\n  the arm 'torn-pages' never ran"),
            "{text}"
        );
    }

    #[test]
    fn a_replay_shows_what_was_found_then_and_now() {
        let page = PageFound {
            file: "bank/t.ibd".into(),
            page: 7,
            message: "Fail: page::7 invalid".into(),
            copy: None,
        };
        let bad = Verdict::Corrupt { how: Corruption::Pages, messages: Vec::new(), pages: vec![page] };
        let (then, now) = (cut("asked", 3, Some(bad.clone())), cut("asked", 3, None));
        let both = |now: &Cut, recovered: bool| Replayed {
            then: then.clone(),
            now: now.clone(),
            recovered,
            same: recovered.then(|| then.kinds() == now.kinds()),
            server: server(),
        };
        let text = replayed(&both(&then, true));
        assert!(text.contains("server: MariaDB 11.8.3 (/x/mariadbd)\n"), "{text}");
        let shown = "now:  corrupt\n  corrupt: Pages have wrong checksums after recovery\n    bank/t.ibd page 7: Fail: page::7 invalid\n";
        assert!(text.contains(shown), "{text}");
        assert!(replayed(&both(&now, true)).ends_with("then: corrupt\nnow:  clean\nNOT the same"));
        let unjudged = Verdict::Unverified { why: "no room".into(), log: Vec::new() };
        let text = replayed(&both(&cut("asked", 3, Some(unjudged)), false));
        assert!(text.contains("  unverified: no room\n") && text.contains("\nno recovery ran: "), "{text}");
        assert!(!text.contains("NOT the same"), "{text}");
    }

    #[test]
    fn a_gain_that_came_to_nothing_gives_the_reason() {
        let mut run = run();
        run.gain = Some(Gained { measured: None, failed: Some("no room on the disk".into()) });
        let text = shown(&run);
        assert!(text.contains("what it gains:\n  nothing was measured: no room on the disk\n"), "{text}");
    }

    #[test]
    fn a_ratio_of_throughput_is_reported_with_its_interval_or_not_at_all() {
        let mut run = run();
        let mut other = run.experiment.arms[0].clone();
        other.name = "other".to_owned();
        run.experiment.arms.insert(1, other);
        let stint = |arm: &str, repeat, tps| Stint {
            arm: arm.to_owned(),
            repeat,
            started_ns: 0,
            took_s: 1.0,
            cutting_s: 1.0,
            verified: 1,
            throughput: Some(Throughput {
                seconds: 5.0,
                tps,
                p50_us: None,
                p95_us: None,
                p99_us: None,
                write_iops: 1.0,
                write_bytes_s: 1.0,
                disqualified: None,
            }),
            failed: None,
            notes: Vec::new(),
        };
        run.stints = vec![stint("asked", 0, 50.0), stint("other", 0, 1045.0)];
        let line = |run: &CrashRun| {
            let text = shown(run);
            text.lines().find(|line| line.starts_with("other")).map(str::to_owned).unwrap()
        };
        let one = line(&run);
        assert!(one.contains("1,045 (no interval)") && one.ends_with('-') && !one.contains("20.9"), "{one}");
        run.stints.extend([stint("asked", 1, 51.0), stint("other", 1, 1044.0)]);
        let two = line(&run);
        assert!(two.contains("x, ") && two.contains(" to ") && !two.contains("no interval"), "{two}");
    }

    #[test]
    fn arms_without_a_cut_have_no_bound() {
        let mut run = run();
        run.cuts.retain(|cut| cut.arm != "asked");
        let text = shown(&run);
        let line = text.lines().find(|line| line.starts_with("asked")).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words[1..], ["0", "0", "0", "0", "0", "-", "0", "-", "-", "-", "-"], "{line}");
    }
}
