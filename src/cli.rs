//! The command line, as a table: names, arguments and help.

use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, Parser, Subcommand};

use crate::config::ConfigCommand;
use crate::crash::CrashArgs;
use crate::docs::DocsArgs;
use crate::doctor::DoctorArgs;
use crate::document::ColorWhen;
use crate::load::LoadCommand;
use crate::manual::{CompletionsArgs, ManPagesArgs};
use crate::predict::PredictArgs;
use crate::run::RunArgs;
use crate::serve::ServeArgs;
use crate::simulate;
use crate::size::SizeArgs;
use crate::snapshot::SnapshotCommand;
use crate::user::UserCommand;
use crate::user::role::RoleCommand;
use crate::version;
use crate::volume::args::VolumeCommand;
use crate::watch::WatchArgs;

/// A faithful local EBS for people who run MySQL or MariaDB on block storage.
#[derive(Debug, Parser)]
#[command(name = "ebbtide", version = version::short(), long_version = version::long(), propagate_version = true, max_term_width = 100, after_help = VALUES_AND_EXIT_CODES)]
pub(crate) struct Cli {
    /// Where volumes and state live [default: /var/lib/ebbtide for root, else
    /// ~/.local/share/ebbtide]
    #[arg(long, global = true, env = "EBBTIDE_HOME", value_name = "DIR", hide_env_values = true)]
    pub(crate) home: Option<PathBuf>,
    /// Print one JSON value instead of text (schemas: docs/json/)
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Colours in text [default: auto, which is on a terminal without NO_COLOR]
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_default_value = true)]
    pub(crate) color: ColorWhen,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

const VALUES_AND_EXIT_CODES: &str = "Durations have a unit: 500us, 2ms, 90s, 10m, 24h, 30d, 1h 30m. Where an option is \
    another tool's, as those of sysbench and the words of fio are, that tool's rule holds.\n\n\
    Exit codes: 0 clean; 1 done, and a violation or finding is reported; 2 usage; \
    3 environment (no FUSE, no server, no permission); 4 an invariant of our own broke.";

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Live volumes: create, attach, change, break, look at, delete
    #[command(subcommand)]
    Volume(VolumeCommand),
    /// Point-in-time copies of volumes
    #[command(subcommand)]
    Snapshot(SnapshotCommand),
    /// Host volumes and take control on a socket, and as AWS's APIs
    Serve(ServeArgs),
    /// Users of the AWS endpoint: their access keys and policies
    #[command(subcommand)]
    User(UserCommand),
    /// Roles that users of the AWS endpoint may assume, for temporary keys
    #[command(subcommand)]
    Role(RoleCommand),
    /// sysbench's OLTP workloads and TPC-C against any MySQL or MariaDB server
    #[command(subcommand)]
    Load(Box<LoadCommand>),
    /// The lab: a real server on emulated volumes, measured arm by arm, with a report
    Run(Box<RunArgs>),
    /// The crash lab: cut a real server's power, let it recover, and count what was lost
    Crash(Box<CrashArgs>),
    /// Say what is wrong with the storage of a MySQL or MariaDB server, and how to mend it; it is only read
    Doctor(Box<DoctorArgs>),
    /// Show servers and their storage live, warn before limits are reached, keep the history, serve metrics
    Watch(Box<WatchArgs>),
    /// Say what a server would do on a volume, in virtual time, and how sure that is
    Predict(Box<PredictArgs>),
    /// Find the cheapest storage that carries a load, and say what limits it and what more safety costs
    Size(Box<SizeArgs>),
    /// Run a volume alone, in virtual time
    Simulate(simulate::Args),
    /// Names of your own for servers, volumes, instances and regions: their file
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Show a page of the manual in the pager
    Docs(DocsArgs),
    /// Write the manual pages into a directory
    ManPages(ManPagesArgs),
    /// Print the completion script of a shell
    Completions(CompletionsArgs),
}

/// What an option takes that a command needs and that was not given, for a hint: `give --fs xfs, ext4 or ext4-bigalloc`. None where
/// nothing is missing that takes one of a few words.
pub(crate) fn choices(error: &clap::Error, words: &[String]) -> Option<String> {
    if error.kind() != ErrorKind::MissingRequiredArgument {
        return None;
    }
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else { return None };
    let mut command = Cli::command();
    for word in words.iter().skip(1) {
        if let Some(inner) = command.find_subcommand(word).cloned() {
            command = inner;
        }
    }
    let options: Vec<String> = command
        .get_arguments()
        .filter_map(|argument| {
            let option = format!("--{}", argument.get_long()?);
            if !missing.iter().any(|text| text.split(' ').next() == Some(option.as_str())) {
                return None;
            }
            let values = argument.get_possible_values();
            let names: Vec<String> = values.iter().map(|value| value.get_name().to_owned()).collect();
            let (last, others) = names.split_last()?;
            let others = others.join(", ");
            Some(if others.is_empty() {
                format!("{option} {last}")
            } else {
                format!("{option} {others} or {last}")
            })
        })
        .collect();
    (!options.is_empty()).then(|| format!("give {}", options.join(", and ")))
}

#[cfg(test)]
mod tests;
