//! What the tester took, how it was set up, and what makes its results doubtful.

use ebbtide_lab::experiment::End;
use ebbtide_lab::page::{agreed, costs, facts, setup as lab_setup, text};
use ebbtide_lab::summary::Note;
use ebbtide_report::{Block, Cell, Fold, Listing, Note as Remark, Section, Table, Tone};
use ebbtide_text::seed;

use super::{PageContext, dash, texts};
use crate::record::{Cut, Stint, Took};
use crate::summary::sentences::{kind as kind_name, moment as moment_words, one_end, seconds};
use crate::summary::{PACE, Pace, Standing};

/// More cuts than this are looked up in the database.
const LISTED: usize = 400;

/// The parts of a cut, in their order.
fn parts(took: &Took) -> [(&'static str, f64); 8] {
    [
        ("Taking the images of all volumes", took.image),
        ("Attaching them as new volumes, mounting (the journal is replayed)", took.attach),
        ("Unmounting, checking the file system", took.file_system),
        ("Looking at pages, before recovery and after", took.pages),
        ("The server's start, recovery included", took.start),
        ("Asking the server: invariants, CHECK TABLE, binary log", took.ask),
        ("Having a replica go on, and asking it again", took.resume),
        ("Ending the server, detaching, deleting", took.clear),
    ]
}

/// None where nothing was cut.
pub(super) fn time(page: &PageContext) -> Option<Section> {
    let pace = &page.summary.pace;
    if pace.cuts == 0 {
        return None;
    }
    let fast = pace.cuts_a_minute.is_some_and(|pace| pace >= PACE);
    let per_minute = pace.cuts_a_minute.map_or_else(|| "unknown".to_owned(), text::whole);
    let mut figures = vec![
        (
            "Verified cuts a minute",
            format!(
                "{per_minute}, the load included ({} {} it is made for)",
                if fast { "at least the" } else { "below the" },
                PACE
            ),
        ),
        ("Cuts", format!("{}, canaries included", text::whole(pace.cuts as f64))),
        ("Time of cutting and judging", text::span(pace.cutting_s)),
        ("A cut and its judgement, mean", format!("{}, several side by side", seconds(pace.took.total))),
        ("Writes held back for a cut, mean", text::latency(pace.paused_us)),
    ];
    let awaited = pace.took.awaited.map(|awaited| ("A checker waits for an image, mean", seconds(awaited)));
    figures.extend(awaited);
    figures.extend(pace.took.cpu.map(|cpu| {
        let [start, ask, checker] = [cpu.start, cpu.ask, cpu.checker].map(seconds);
        let text =
            format!("{start} the server's until it answered, {ask} after that, {checker} the checker's");
        ("Processor time of a cut, mean, without tools", text)
    }));
    let mut blocks = vec![facts(figures), Block::Table(shares(&pace.took))];
    let arms = Fold { summary: "Arm by arm".into(), blocks: vec![Block::Table(by_arm(page))] };
    blocks.push(Block::Fold(arms));
    Some(Section::new("The tester's own time", blocks))
}

fn shares(took: &Took) -> Table {
    let parts = parts(took);
    let known: f64 = parts.iter().map(|(_, time)| time).sum();
    let all = took.total.max(known).max(f64::MIN_POSITIVE);
    let row = |(what, time): (&str, f64)| {
        let share = Cell { bar: Some(time / all), ..Cell::value(text::percent(time / all), time / all, "") };
        vec![Cell::from(what), Cell::value(seconds(time), time, ""), share]
    };
    let rest = ("Waiting and everything else", (took.total - known).max(0.0));
    Table {
        columns: texts(&["Where a cut's time goes", "Mean", "Share"]),
        rows: parts.into_iter().chain([rest]).map(row).collect(),
        ..Table::default()
    }
}

fn by_arm(page: &PageContext) -> Table {
    let asked = page.arms.iter().enumerate().map(|(place, (arm, _))| (page.cell(place), arm.pace));
    let canaries =
        page.summary.canaries.iter().map(|canary| (Cell::from(canary.arm.name.as_str()), canary.arm.pace));
    let row = |(name, pace): (Cell, Pace)| {
        let rate = pace.cuts_a_minute.map_or_else(dash, |rate| Cell::value(text::whole(rate), rate, ""));
        let time = |value: f64| Cell::value(seconds(value), value, "");
        let took = pace.took;
        vec![
            name,
            rate,
            time(took.total),
            time(took.start),
            time(took.pages),
            time(took.ask),
            time(took.file_system),
        ]
    };
    Table {
        columns: texts(&["Arm", "Cuts a minute", "A cut", "Start", "Pages", "Asking", "File system"]),
        rows: asked.chain(canaries).map(row).collect(),
        sortable: true,
        ..Table::default()
    }
}

pub(super) fn setup(page: &PageContext) -> Section {
    let run = page.run;
    let plan = |of: fn(&ebbtide_lab::experiment::Arm) -> String| {
        let arms = run.experiment.arms.iter().map(|arm| (arm.name.as_str(), of(arm)));
        match agreed(arms).as_slice() {
            [(value, _)] => value.clone(),
            _ => String::new(),
        }
    };
    let experiment = vec![
        ("Experiment", run.experiment.name.clone()),
        ("Compared with", text::line(&run.experiment.source)),
        ("Scale", text::line(&run.experiment.scale)),
        ("Machine emulated", plan(lab_setup::instance)),
        ("Clients", plan(|arm| text::count(arm.load.connections, "connection"))),
        (
            "Stints",
            format!(
                "{} of each arm, interleaved; in each its throughput is measured undisturbed first, then its cuts are made",
                run.experiment.trial.repeats
            ),
        ),
        ("Seed", run.experiment.seed.to_string()),
    ];
    let machine = lab_setup::machine(&run.host, &run.server, &run.ebbtide, run.started_ns);
    let mut blocks = vec![facts(experiment), facts(machine)];
    blocks.extend(lab_setup::calibration(&run.host));
    blocks.extend(page.summary.monthly_cost.as_ref().and_then(|cost| costs::table(cost, &page.named_arms())));
    blocks.extend(lab_setup::spelt_out(&run.experiment));
    Section::new("How it was measured", blocks)
}

pub(super) fn caveats(page: &PageContext) -> Section {
    let remarks: Vec<Remark> =
        page.summary.notes.iter().map(|note| Remark::caution(sentence(page, note))).collect();
    let mut blocks = vec![if remarks.is_empty() {
        Block::Text("All stints ran to their last cut, without a remark.".into())
    } else {
        Block::Notes(remarks)
    }];
    blocks.extend(page.run.stints.iter().filter_map(|stint| failure(page, stint)));
    blocks.push(fold(
        format!("All {}, in the order in which they ran", text::count(page.run.stints.len(), "stint")),
        stints(page),
    ));
    let bad: Vec<&Cut> = page.run.cuts.iter().filter(|cut| Standing::of(cut) != Standing::Clean).collect();
    if !bad.is_empty() {
        let shown = if bad.len() > LISTED { format!(", the first {LISTED} of them") } else { String::new() };
        let summary = format!("All {} that are not clean{shown}", text::count(bad.len(), "cut"));
        blocks.push(fold(summary, cuts(page, &bad)));
    }
    Section::new("Stints and caveats", blocks)
}

fn fold(summary: String, table: Table) -> Block {
    Block::Fold(Fold { summary, blocks: vec![Block::Table(table)] })
}

/// A remark with the arm that it is about.
pub(super) fn sentence(page: &PageContext, note: &Note) -> String {
    match &note.arm {
        Some(arm) => format!("{}: {}", page.name(arm), note.text),
        None => note.text.clone(),
    }
}

/// A stint that ended early, with the end of the server's log.
fn failure(page: &PageContext, stint: &Stint) -> Option<Block> {
    let failure = stint.failed.as_ref()?;
    let summary =
        format!("{}, stint {}, ended early: {}", page.name(&stint.arm), stint.repeat + 1, failure.why);
    let text =
        if failure.log.is_empty() { "The server wrote no log.".into() } else { failure.log.join("\n") };
    let listing = Listing { label: "The end of the server's log:".into(), text };
    Some(Block::Fold(Fold { summary, blocks: vec![Block::Listing(listing)] }))
}

fn stints(page: &PageContext) -> Table {
    let row = |stint: &Stint| {
        let measured = stint.throughput.as_ref();
        let cuts =
            page.run.cuts.iter().filter(|cut| cut.arm == stint.arm && cut.repeat == stint.repeat).count();
        let number = f64::from(stint.repeat + 1);
        vec![
            Cell::from(page.name(&stint.arm)),
            Cell::value(text::whole(number), number, ""),
            measured.map_or_else(dash, |one| Cell::value(text::short(one.tps), one.tps, "")),
            measured
                .and_then(|one| one.p95_us)
                .map_or_else(dash, |us| Cell::value(text::latency(us), us, "")),
            measured.map_or_else(dash, |one| Cell::value(text::short(one.write_iops), one.write_iops, "")),
            Cell::value(text::whole(cuts as f64), cuts as f64, ""),
            Cell::value(text::span(stint.took_s), stint.took_s, ""),
            Cell::from(stint.notes.join("; ")),
        ]
    };
    Table {
        columns: texts(&["Arm", "Stint", "TPS", "p95", "Write IOPS", "Cuts", "Took", "Remarks"]),
        rows: page.run.stints.iter().map(row).collect(),
        sortable: true,
        ..Table::default()
    }
}

fn cuts(page: &PageContext, bad: &[&Cut]) -> Table {
    let row = |cut: &&Cut| {
        let kinds: Vec<&str> = cut.verdicts.iter().map(|verdict| kind_name(verdict.kind())).collect();
        let found = if kinds.is_empty() { "Unverified".to_owned() } else { kinds.join(", ") };
        let tone = if Standing::of(cut) == Standing::Bad { Tone::Bad } else { Tone::Caution };
        vec![
            Cell::from(page.name(&cut.arm)),
            Cell::value((cut.number + 1).to_string(), f64::from(cut.number), ""),
            Cell::from(moment_words(cut.moment)),
            Cell { tone, ..Cell::from(found) },
            cut.loss.as_ref().map_or_else(dash, |loss| {
                Cell::value(
                    seconds(loss.seconds),
                    loss.seconds,
                    format!("{} transactions", loss.transactions),
                )
            }),
            Cell {
                detail: if cut.kept { "kept".into() } else { String::new() },
                ..Cell::from(seed::hex(cut.seed))
            },
        ]
    };
    Table {
        columns: texts(&["Arm", "Cut", "When", "Verdicts", "Lost", "Seed"]),
        rows: bad.iter().take(LISTED).map(row).collect(),
        sortable: true,
        ..Table::default()
    }
}

/// What a cut is called: `doublewrite off, power cut 17 of 100`.
pub(super) fn title(page: &PageContext, cut: &Cut) -> String {
    let arm = page.run.experiment.arms.iter().find(|arm| arm.name == cut.arm);
    let end = arm.and_then(|arm| arm.crash.as_ref()).map_or(End::PowerCut, |crash| crash.end);
    let of = page.run.cuts.iter().filter(|other| other.arm == cut.arm).count();
    let what = one_end(end);
    format!("{}, {what} {} of {}", page.name(&cut.arm), cut.number + 1, text::whole(of as f64))
}
