//! Developer jobs: `cargo xtask tidy` checks the rules of the repository, `cargo xtask schemas` writes the
//! schemas in docs/json, `cargo xtask aws-models` the models of AWS's services, `cargo xtask tally` counts the tests in a log of cargo's, `cargo xtask test-programs` builds
//! and lists the test programs, `cargo xtask flaky` repeats tests and lists those that do not always pass.
#![forbid(unsafe_code)]

mod aws_models;
mod flaky;
mod programs;
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
        ["aws-models", botocore] => aws_models::run(botocore),
        ["tally"] => {
            let tally = tally::Tally::of(&io::read_to_string(io::stdin())?);
            println!("{} {} {}", tally.passed, tally.failed, tally.skipped);
            Ok(ExitCode::SUCCESS)
        }
        ["test-programs"] => {
            print!("{}", programs::list()?);
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
    let jobs = "cargo xtask tidy | cargo xtask schemas | cargo xtask tally < LOG | cargo xtask test-programs";
    format!("usage: {jobs} | {} | {}", aws_models::USAGE, flaky::USAGE)
}
