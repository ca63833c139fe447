//! The doctor on servers with a planted fault, and on healthy ones: what it finds, what it should not have found, and what
//! MySQLTuner and pt-variable-advisor say of the same servers.
//!
//! Each situation is a server of its own, started on a fresh data directory. Each fix of settings is carried out, and looked at
//! after a restart (`restart`; `--plant-void` makes the fixes void, and each must be reported). `--only WORD,WORD` takes the situations whose names
//! have one of the words. `--cost` takes no situation and measures what a look costs; `--only` then takes the servers whose names
//! have one of the words. Takes root: data directories lie on file systems of their own. A tiny run does the first situation alone.
#![allow(clippy::unwrap_used)] // a bench fails by a panic

mod captures;
mod cost;
mod judge;
mod peers;
mod restart;
mod servers;
mod situations;

use std::path::Path;
use std::process::ExitCode;

use judge::{Outcome, Tally};
use peers::Peers;
use restart::Fixed;
use servers::{PROGRAMS, Program};
use situations::Situation;

const EBBTIDE: &str = env!("CARGO_BIN_EXE_ebbtide");

fn main() -> ExitCode {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: the situations need root, to mount file systems");
        return ExitCode::from(3);
    }
    let words: Vec<String> = std::env::args().collect();
    let only = words.iter().position(|word| word == "--only").and_then(|place| words.get(place + 1));
    // In memory: there, a loop device has no device below it that others use too.
    let memory = Path::new("/dev/shm");
    let base = if memory.is_dir() { memory } else { Path::new("/var/tmp") };
    let dir = tempfile::Builder::new().prefix("ebbtide-dx-").tempdir_in(base).unwrap();
    let mut programs: Vec<Program> =
        PROGRAMS.iter().filter_map(|(name, detect)| Program::find(name, detect, dir.path())).collect();
    if programs.is_empty() {
        return ExitCode::from(3);
    }
    if words.iter().any(|word| word == "--cost") {
        programs.retain(|program| {
            only.is_none_or(|words| words.split(',').any(|word| program.name.contains(word)))
        });
        if programs.is_empty() {
            println!("SKIPPED: none of the servers {} is here", only.map_or("", String::as_str));
            return ExitCode::from(3);
        }
        return ExitCode::from(u8::from(!cost::measure(&programs, dir.path())));
    }
    let wanted = |situation: &Situation| {
        only.is_none_or(|words| words.split(',').any(|word| situation.name.contains(word)))
    };
    let mut all: Vec<Situation> = situations::all().into_iter().filter(wanted).collect();
    if ebbtide_testing::tiny() {
        all.truncate(1);
    }
    let kept = run(&programs, &all, dir.path());
    if ebbtide_testing::tiny() {
        return ExitCode::SUCCESS;
    }
    if only.is_some() {
        return ExitCode::from(u8::from(!kept));
    }
    let cost = cost::measure(&programs, dir.path());
    ExitCode::from(u8::from(!(kept && cost)))
}

/// Runs all situations, prints the table and the figures, and says whether they are as promised.
fn run(programs: &[Program], all: &[Situation], dir: &Path) -> bool {
    let peers = Peers::find();
    let machine = judge::of_machine(programs, dir);
    println!("This machine itself has: {}. These findings are left out.", judge::list(&machine));
    println!(
        "{:<44} {:<14} {:<10} {:<10} {:<12} {:<12} other findings",
        "situation", "server", "ebbtide", "fix", "MySQLTuner", "pt-va"
    );
    let mut tally = Tally::default();
    for situation in all {
        let Some(program) = programs.iter().find(|program| program.name == situation.server) else {
            tally.skipped += 1;
            continue;
        };
        match judge::judge(program, situation, dir, &machine, &peers) {
            Ok(outcome) => {
                println!("{}", line(situation, &outcome));
                tally.add(situation, &outcome);
            }
            Err(why) => {
                println!("{:<44} {:<14} NOT RUN: {why}", situation.name, situation.server);
                tally.not_run += 1;
            }
        }
    }
    println!("{}", tally.text(&peers));
    tally.is_kept()
}

fn line(situation: &Situation, outcome: &Outcome) -> String {
    let word = |found: Option<bool>| match found {
        Some(true) => "found",
        Some(false) => "missed",
        None => "-",
    };
    let own = match (&situation.must[..], outcome.missed.is_empty()) {
        ([], _) if outcome.others.is_empty() => "clean".to_owned(),
        ([], _) => "FINDING".to_owned(),
        (_, true) => "found".to_owned(),
        (_, false) => format!("MISSED {}", outcome.missed.join(" ")),
    };
    let fixed = match &outcome.fixed {
        None => "-".to_owned(),
        Some(Fixed::Kept) => "kept".to_owned(),
        Some(Fixed::Void(why)) => format!("VOID: {why}"),
    };
    let line = format!(
        "{:<44} {:<14} {own:<10} {fixed:<10} {:<12} {:<12} {}",
        situation.name,
        situation.server,
        word(outcome.tuner),
        word(outcome.advisor),
        outcome.others.join(" ")
    );
    line.trim_end().to_owned()
}
