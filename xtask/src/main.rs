//! Developer jobs: `cargo xtask tidy` checks the rules of the repository, `cargo xtask schemas` writes the
//! schemas in docs/json, `cargo xtask aws-models` the models of AWS's services, `cargo xtask instances` the table of EC2's instance types, `cargo xtask test-log` counts the
//! tests in a log, shortens it, cuts out its failures, adds times or lists the slowest tests, `cargo xtask
//! test-programs` builds and lists the test programs, `cargo xtask flaky` repeats tests and lists those that do not
//! always pass.
//!
//! The rules are `run` in `xtask/src/tidy.rs`, with their data in `xtask/tidy.toml`. A new rule is a function there, with a test that plants
//! the fault.
#![forbid(unsafe_code)]

mod aws_models;
mod flaky;
mod instances;
mod programs;
mod repo;
mod schemas;
mod source;
mod test_log;
mod tidy;

use std::{
    env,
    io::{self, Read},
    process::ExitCode,
    time::Instant,
};

use anyhow::{Result, bail};
use cargo_metadata::MetadataCommand;

fn main() -> Result<ExitCode> {
    let args: Vec<String> = env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => tidy::run(),
        ["tidy", "--shrink"] => tidy::shrink(),
        ["flaky", ref words @ ..] => flaky::run(words),
        ["schemas"] => schemas::run(),
        ["aws-models", botocore] => aws_models::run(botocore),
        ["instances", moto, prices] => instances::run(moto, prices),
        ["test-log", "shorten"] => {
            test_log::shorten(io::stdin().lock(), io::stdout().lock())?;
            Ok(ExitCode::SUCCESS)
        }
        ["test-log", "time"] => {
            let began = Instant::now();
            test_log::time(io::stdin().lock(), io::stdout().lock(), || began.elapsed())?;
            Ok(ExitCode::SUCCESS)
        }
        ["test-log", "slowest"] => {
            print!("{}", test_log::slowest(&standard_input()?));
            Ok(ExitCode::SUCCESS)
        }
        ["test-log", "failures"] => {
            print!("{}", test_log::failures(&standard_input()?));
            Ok(ExitCode::SUCCESS)
        }
        ["test-log", "count"] => {
            let tally = test_log::Tally::of(&standard_input()?);
            println!("{} {} {}", tally.passed, tally.failed, tally.skipped);
            Ok(ExitCode::SUCCESS)
        }
        ["test-programs"] => {
            let metadata = MetadataCommand::new().no_deps().exec()?;
            print!("{}", programs::list(&tidy::deterministic_programs(&metadata)?)?);
            Ok(ExitCode::SUCCESS)
        }
        ["help" | "--help"] => {
            println!("{}", usage());
            Ok(ExitCode::SUCCESS)
        }
        _ => bail!("{}", usage()),
    }
}

/// The whole standard input; what is not UTF-8 is replaced.
fn standard_input() -> io::Result<String> {
    let mut bytes = Vec::new();
    io::stdin().read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn usage() -> String {
    let jobs = "cargo xtask tidy [--shrink] | cargo xtask schemas | cargo xtask test-programs";
    format!(
        "usage: {jobs} | cargo xtask test-log count|shorten|failures|time|slowest < LOG | {} | {} | {}",
        aws_models::USAGE,
        instances::USAGE,
        flaky::USAGE
    )
}
