//! Developer jobs: `cargo xtask tidy` checks the rules of the repository, `cargo xtask schemas` writes the
//! schemas in docs/json, `cargo xtask tally` counts the tests in a log of cargo's, `cargo xtask flaky` repeats
//! tests and lists those that do not always pass.
#![forbid(unsafe_code)]

mod flaky;
mod repo;
mod schemas;
mod source;
mod tally;
mod tidy;

use std::{env, io, process::ExitCode};

use anyhow::{Result, bail};

fn main() -> Result<ExitCode> {
    let args: Vec<String> = env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => tidy::run(),
        ["flaky", ref words @ ..] => flaky::run(words),
        ["schemas"] => schemas::run(),
        ["tally"] => {
            let tally = tally::Tally::of(&io::read_to_string(io::stdin())?);
            println!("{} {} {}", tally.passed, tally.failed, tally.skipped);
            Ok(ExitCode::SUCCESS)
        }
        ["help" | "--help"] => {
            println!("{}", usage());
            Ok(ExitCode::SUCCESS)
        }
        _ => bail!("{}", usage()),
    }
}

fn usage() -> String {
    format!("usage: cargo xtask tidy | cargo xtask schemas | cargo xtask tally < LOG | {}", flaky::USAGE)
}
