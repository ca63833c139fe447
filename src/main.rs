//! The `ebbtide` program: parses arguments, prints, exits.
#![forbid(unsafe_code)]

mod cli;
mod exit;
mod simulate;

use std::process::ExitCode;

use clap::Parser as _;

use crate::cli::{Cli, Command};
use crate::exit::Exit;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return exit::report_usage(&error),
    };
    match run(&cli) {
        Ok(exit) => exit.into(),
        Err(error) => exit::report(&error, cli.json),
    }
}

fn run(cli: &Cli) -> anyhow::Result<Exit> {
    match &cli.command {
        Command::Simulate(args) => simulate::run(args, cli.json),
    }
}
