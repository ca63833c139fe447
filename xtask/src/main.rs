//! Developer jobs: `cargo xtask tidy` checks the rules of the repository, `cargo xtask schemas` writes the schemas in docs/json,
//! `cargo xtask aws-models` the models of AWS's services, `cargo xtask instances` the table of EC2's instance types,
//! `cargo xtask flaky` repeats tests and lists those that do not always pass. `./dev` calls the others after its set-up:
//! `cargo xtask test` runs every test and lint, `cargo xtask lint` the lints, `cargo xtask bench` the benches, `cargo xtask package`
//! builds a package.
//!
//! The rules are `run` in `xtask/src/tidy.rs`, with their data in `xtask/tidy.toml`. A new rule is a function there, with a test that plants
//! the fault.
#![forbid(unsafe_code)]

mod aws_models;
mod bench;
mod flaky;
mod groups;
mod instances;
mod lint;
mod package;
mod phases;
mod programs;
mod repo;
mod schemas;
mod source;
mod suite;
mod test_log;
mod tidy;
mod tools;

use std::{env, process::ExitCode};

use anyhow::{Result, bail};

fn main() -> Result<ExitCode> {
    let args: Vec<String> = env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => tidy::run(),
        ["tidy", "--shrink"] => tidy::shrink(),
        ["flaky", ref words @ ..] => flaky::run(words),
        ["schemas"] => schemas::run(),
        ["aws-models", botocore] => aws_models::run(botocore),
        ["instances", moto, prices] => instances::run(moto, prices),
        ["test"] => suite::run(false),
        ["test", "--all"] => suite::run(true),
        ["lint"] => lint::run(),
        ["tool", name] => tools::run(name),
        ["bench", ref words @ ..] => bench::run(words),
        ["package", ref words @ ..] => package::run(words),
        ["help" | "--help"] => {
            println!("{}", usage());
            Ok(ExitCode::SUCCESS)
        }
        _ => bail!("{}", usage()),
    }
}

fn usage() -> String {
    let jobs = "cargo xtask tidy [--shrink] | cargo xtask schemas | cargo xtask test [--all] | cargo xtask lint \
                | cargo xtask bench [--list | NAME [ARGUMENT...]] | cargo xtask package [static] | cargo xtask tool NAME";
    format!("usage: {jobs} | {} | {} | {}", aws_models::USAGE, instances::USAGE, flaky::USAGE)
}
