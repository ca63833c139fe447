//! The answer of a crash run as a terminal shows it.

use ebbtide_report::TextOptions;
use ebbtide_text::seed;

use super::document;
use crate::fixture::{self, PLAUSIBLE, REPLICAS, Shape, header, plausible};
use crate::record::{CrashRun, Gained, Verdict};
use crate::summary::summarize;

fn text(run: &CrashRun, columns: usize, details: bool) -> String {
    document(run, &summarize(run)).to_text(TextOptions { columns, details, ..TextOptions::default() })
}

/// The arms of the matrix, whose names are long.
fn matrix() -> Vec<Shape> {
    const NAMES: [&str; 6] = [
        "durable / doublewrite-on / units-4k",
        "durable / doublewrite-on / units-16k",
        "durable / doublewrite-off / units-4k",
        "flush-2 / doublewrite-on / units-16k",
        "flush-0 / doublewrite-off / units-4k",
        "durable / doublewrite-off / units-16k",
    ];
    let mut shapes = PLAUSIBLE.to_vec();
    shapes.iter_mut().zip(NAMES).for_each(|(shape, name)| shape.name = name);
    shapes
}

/// Runs of every form of answer, each with the begin of it.
fn runs() -> Vec<(&'static str, CrashRun, &'static str)> {
    let only = |place: usize| {
        let mut shapes: Vec<Shape> = vec![PLAUSIBLE[place]];
        shapes.extend(&PLAUSIBLE[6..]);
        plausible(&shapes, 100, 11)
    };
    let mut void = plausible(&PLAUSIBLE, 30, 11);
    void.cuts.retain(|cut| cut.arm != "canary: torn pages");
    let mut uncut = plausible(&PLAUSIBLE, 30, 11);
    uncut.cuts.retain(|cut| cut.arm.starts_with("canary"));
    let mut homed = plausible(&PLAUSIBLE, 100, 11);
    homed.host.home = "/srv/my lab".into();
    homed.gain = Some(Gained { measured: None, failed: Some("no room on the disk".into()) });
    vec![
        ("many", plausible(&PLAUSIBLE, 100, 11), "flush at commit 0: 9"),
        ("matrix", plausible(&matrix(), 30, 11), "flush-0 / doublewrite-off / units-4k: "),
        ("homed", homed, "flush at commit 0: 9"),
        ("replicas", plausible(&REPLICAS, 100, 11), "replica by position: 9"),
        ("clean", only(0), "No harm seen: none of 100 with doublewrite on, 4 KiB"),
        ("lossy", only(3), "flush at commit 2: "),
        ("void", void, "VOID: nothing below may be believed: the arm 'canary: torn"),
        ("uncut", uncut, "No cut of any arm was judged: nothing can"),
        ("begun", header(&PLAUSIBLE, 30), "VOID: nothing below may be believed: "),
    ]
}

#[test]
fn every_answer_is_one_screen_whose_first_line_is_the_answer() {
    for (name, run, begin) in runs() {
        for columns in [60, 80, 120] {
            let shown = text(&run, columns, false);
            if columns == 80 {
                println!("== {name}\n{shown}");
            }
            let first = shown.lines().next().unwrap();
            let start: String = begin.chars().take(first.chars().count()).collect();
            assert!(first.starts_with(&start), "{name}: {first}");
            assert!(columns != 80 || shown.lines().count() <= 23, "{name}: {shown}");
            assert!(shown.lines().all(|line| line.chars().count() <= columns), "{name}, {columns}: {shown}");
            assert!(shown.contains("Again:\nebbtide crash durability --seed 7\n"), "{name}: {shown}");
        }
    }
}

#[test]
fn the_screen_has_the_risk_of_each_arm_and_how_to_look_at_a_bad_cut() {
    let runs = runs();
    let (_, run, _) = &runs[2];
    let shown = text(run, 400, false);
    assert!(shown.contains("All 3 canaries were caught, the last one by its cut "), "{shown}");
    assert!(shown.contains("No gain was measured: no room on the disk."), "{shown}");
    let kept = run.cuts.iter().find(|cut| cut.kept && !cut.arm.starts_with("canary")).unwrap();
    let replay = format!("ebbtide crash --replay {} --home '/srv/my lab'\n", seed::hex(kept.seed));
    let label =
        format!("Look at cut {} of {}, corrupt: The server does not start:\n", kept.number + 1, kept.arm);
    assert!(shown.contains(&format!("{label}{replay}")), "{shown}");
    let details = text(run, 400, true);
    assert!(details.starts_with(shown.lines().next().unwrap()), "{details}");
    for heading in ["Risk and gain", "What happened", "Stints and caveats"] {
        assert!(details.contains(heading) && !shown.contains(heading), "{heading}");
    }
    assert!(!super::page(run, &summarize(run)).contains("Look at cut "), "the page has its own");
}

#[test]
fn one_stint_has_no_gain_and_two_have_one_with_its_interval() {
    let mut run = plausible(&PLAUSIBLE, 30, 11);
    assert!(text(&run, 200, false).contains("Gain (95%)"), "{}", text(&run, 200, false));
    run.stints.retain(|stint| stint.repeat == 0);
    assert!(!text(&run, 200, false).contains("Gain (95%)"));
}

#[test]
fn the_harm_that_is_rarest_is_shown_with_its_damage_and_the_command_that_replays_it() {
    let mut run = plausible(&PLAUSIBLE, 30, 11);
    for cut in &mut run.cuts {
        cut.kept = false;
    }
    // One corrupt cut of many, and an arm all of whose cuts lose commits.
    let rare = run.cuts.iter_mut().find(|cut| cut.arm == "doublewrite on, 4 KiB tearing").unwrap();
    (rare.kept, rare.verdicts, rare.recovery) = (true, vec![fixture::corrupt()], None);
    let rare = rare.seed;
    let lossy = run.cuts.iter_mut().filter(|cut| cut.arm == "flush at commit 0");
    lossy.filter(|cut| cut.verdicts == [Verdict::LostCommits]).for_each(|cut| cut.kept = true);
    let shown = text(&run, 120, false);
    let looks: Vec<&str> = shown.lines().skip_while(|line| !line.starts_with("Look at cut ")).collect();
    assert!(
        looks[0].ends_with(" of doublewrite on, 4 KiB tearing, corrupt: The server does not start:"),
        "{shown}"
    );
    assert_eq!(looks[1], format!("ebbtide crash --replay {}", seed::hex(rare)), "{shown}");
    let second = looks.iter().skip(1).find(|line| line.starts_with("Look at cut ")).unwrap();
    assert!(second.ends_with(" of flush at commit 0, lost commits:"), "{shown}");
}
