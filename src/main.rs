//! The `ebbtide` program: parses arguments, prints, exits.
//!
//! # Where to begin reading
//!
//! The commands are a table in `src/cli.rs`, and `carry_out` below calls the module of each. Exit codes are in `src/exit.rs`,
//! `src/refusal.rs` gives an error its code and hint. How to add a command: docs/extending.md.
//!
//! - [`serve`] runs the server of `ebbtide-serve`, which carries out what its socket is asked ([`control`] is the commands' side of it);
//!   [`volume`] and [`snapshot`] are the commands that use it.
//! - [`run`] and [`crash`] need no server of ours: the labs have their own host.
//! - [`simulate`], [`predict`] and [`size`] print what `ebbtide-forecast` says, [`doctor`] what `ebbtide-advisor` judges of a look by
//!   `ebbtide-doctor`. [`watch`] shows servers and storage live: `ebbtide-watch` makes what it shows.
//! - [`load`] prints what a load of `ebbtide-load` did, [`user`] edits the users and roles of the AWS endpoint.
//!
//! The JSON that commands print are the types of the crates, inside the objects of [`answers`] and `crates/control/src/view.rs`. The
//! schemas in docs/json are made of these types by `xtask/src/schemas.rs`; `xtask/schemas.toml` says which command prints which.
//! [`config`] checks the user's file of names, which `ebbtide-names` reads, and [`named`] puts what it says into a command line; [`docs`] shows the pages of docs/.
//! Manual pages and completions are made of the table of commands ([`manual`]); [`completion`] adds names to it; the version is `build.rs` and [`version`].
#![forbid(unsafe_code)]
// What goes to a terminal passes through `text`, which escapes it.
#![deny(clippy::print_stderr)]

mod answers;
mod bundle;
mod cli;
mod completion;
mod config;
mod control;
mod crash;
mod docs;
mod doctor;
mod document;
mod duration;
mod exit;
mod home;
mod load;
mod manual;
mod named;
mod password;
mod predict;
mod refusal;
mod resume;
mod run;
mod serve;
mod signals;
mod simulate;
mod size;
mod snapshot;
mod status_line;
mod text;
mod trace_options;
mod user;
mod version;
mod volume;
mod watch;

use std::process::ExitCode;

use clap::Parser as _;

use crate::cli::{Cli, Command};
use crate::exit::Exit;
use crate::home::HomePath;

fn main() -> ExitCode {
    match completion::answer() {
        Ok(false) => {}
        Ok(true) => return Exit::Clean.into(),
        Err(error) => return exit::report_usage(&error, None, false),
    }
    let mut cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let words: Vec<String> =
                std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
            let hint = load::in_our_order(&words).or_else(|| cli::choices(&error, &words));
            return exit::report_usage(&error, hint, words.iter().any(|word| word == "--json"));
        }
    };
    match named::resolve(&mut cli).and_then(|()| carry_out(&cli)) {
        Ok(exit) => match text::lost() {
            None => exit.into(),
            Some(error) => exit::report(error, cli.json),
        },
        Err(error) => exit::report(&error, cli.json),
    }
}

fn carry_out(cli: &Cli) -> anyhow::Result<Exit> {
    match &cli.command {
        Command::Volume(command) => volume::run(command, &HomePath::of(cli)?, cli.color, cli.json),
        Command::Snapshot(command) => {
            snapshot::run(command, &HomePath::of(cli)?.served()?, cli.color, cli.json)
        }
        Command::Serve(args) if args.stop || args.status || args.change => {
            serve::run(args, &HomePath::of(cli)?.served()?, cli.json)
        }
        Command::Serve(args) => serve::run(args, &HomePath::of(cli)?.made()?, cli.json),
        Command::User(command) => user::run(command, &HomePath::of(cli)?, cli.json),
        Command::Role(command) => user::role::run(command, &HomePath::of(cli)?, cli.json),
        Command::Load(command) => load::run(command, cli.color, cli.json),
        Command::Run(args) => run::run(args, &HomePath::of(cli)?, cli.color, cli.json),
        Command::Crash(args) => crash::run(args, &HomePath::of(cli)?, cli.color, cli.json),
        Command::Doctor(args) => doctor::run(args, HomePath::of(cli), cli.color, cli.json),
        Command::Watch(args) => {
            let place = HomePath::of(cli);
            let home = place.as_ref().map_or(Ok(None), HomePath::existing)?;
            let directory = place.as_ref().ok().map(HomePath::path);
            watch::run(args, home.as_ref(), directory, cli.color, cli.json)
        }
        Command::Config(command) => config::run(
            command,
            || {
                let home = HomePath::of(cli).map_or(Ok(None), |place| place.existing())?;
                ebbtide_control::catalog(home.as_ref()).map_err(refusal::refuse)
            },
            cli.json,
        ),
        Command::Docs(args) => docs::run(args, cli.json),
        Command::ManPages(args) => manual::write_pages(args, cli.json),
        Command::Completions(args) => manual::print_completions(args, completion::script, cli.json),
        Command::Predict(args) => {
            let home = HomePath::of(cli).map_or(Ok(None), |place| place.existing())?;
            predict::run(args, home.as_ref(), cli.color, cli.json)
        }
        Command::Size(args) => {
            let home = HomePath::of(cli).map_or(Ok(None), |place| place.existing())?;
            size::run(args, home.as_ref(), cli.color, cli.json)
        }
        Command::Simulate(args) => {
            // Without a place for a home there are no overrides to read.
            let home = HomePath::of(cli).map_or(Ok(None), |place| place.existing())?;
            simulate::run(args, home.as_ref(), cli.color, cli.json)
        }
    }
}
