//! The command line of `ebbtide crash`.

use std::path::PathBuf;

use clap::Args;
use ebbtide_names::Kind;

use super::candidate::CandidateArgs;
use crate::config::Slot;

const EXAMPLES: &str = "Examples:
  ebbtide crash --list
  ebbtide crash durability-matrix --quick
  ebbtide crash durability-matrix --arms flush-2 --set crash.cuts=500 --out /tmp/flush-2
  ebbtide crash --resume --out /tmp/flush-2
  ebbtide crash --kept
  ebbtide crash --replay 9f0c51d2a4b7e386
  ebbtide crash --replay 9f0c51d2a4b7e386 --keep-running
  ebbtide crash --candidate --mysql-socket=/run/mysqld/mysqld.sock --volume gp3:size=500GiB

How to write an experiment: docs/crash.md. What a run leaves behind: docs/json/crash.md.";

/// `ebbtide crash`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CrashArgs {
    /// The name of a shipped experiment (see --list), or the path of your own file
    #[arg(required_unless_present_any = ["resume", "list", "kept", "delete_kept", "replay", "candidate"])]
    pub(crate) experiment: Option<String>,
    /// List the shipped experiments
    #[arg(long, conflicts_with_all = ["experiment", "kept", "delete_kept", "replay"])]
    pub(super) list: bool,
    /// Print the experiment's file, to copy and change
    #[arg(long, requires = "experiment")]
    pub(super) show: bool,
    /// Check the experiment and print what would run; run nothing, not even a server for its version
    #[arg(long, requires = "experiment", conflicts_with = "show")]
    pub(super) check: bool,
    /// The short form: the file's [quick], else fewer cuts of the same arms
    #[arg(long)]
    pub(super) quick: bool,
    /// Leave out the experiment of the lab that measures what the risk buys
    #[arg(long, requires = "experiment")]
    pub(super) no_gain: bool,
    /// Print all sections of the report but charts and claims of documents
    #[arg(long)]
    pub(super) details: bool,
    /// Directory for the results and the report [default: NAME-DATE-TIME here]
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Go on with an interrupted or partly failed run: take the cuts that --out DIR lacks. The directory
    /// knows the experiment and all options
    #[arg(long, requires = "out")]
    pub(super) resume: bool,
    /// Change a value: ARM.SETTING, or a path of the file such as crash.cuts; repeatable
    #[arg(long, value_name = "PATH=VALUE")]
    pub(super) set: Vec<String>,
    /// Only these arms, comma-separated; the canaries run in any case
    #[arg(long, value_name = "ARM", value_delimiter = ',')]
    pub(super) arms: Vec<String>,
    /// The server program [default: mariadbd or mysqld of this machine]
    #[arg(long, value_name = "PATH")]
    pub(super) server: Option<PathBuf>,
    /// Start server programs that the experiment's file or the results of --resume name. Without it only the machine's own
    /// and fetched ones (`./dev servers`) are, and those of --server and --set. Whoever wrote the file chose the program
    #[arg(long)]
    pub(super) allow_servers: bool,
    /// Images that are judged side by side [default: two for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(super) checkers: Option<u8>,
    /// Seed of the moments, of what tears, and of the load [default: a fresh one, which is printed]
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
    /// AWS region whose prices the report shows [default: us-east-1, or that of the home's catalog.toml]
    #[arg(long, value_name = "REGION")]
    pub(super) region: Option<String>,
    /// List the images of bad cuts that are kept
    #[arg(long, conflicts_with_all = ["experiment", "delete_kept", "replay"])]
    pub(super) kept: bool,
    /// Judge a kept image again: what is lost, by client and row, with the server's own lines
    #[arg(long, value_name = "SEED", conflicts_with_all = ["experiment", "delete_kept"])]
    pub(super) replay: Option<String>,
    /// With --replay: leave the recovered server up for a look until Ctrl-C, on a copy that is thrown away then
    #[arg(long, requires = "replay")]
    pub(super) keep_running: bool,
    /// Delete the kept image of a cut by its seed, or `all`
    #[arg(long, value_name = "SEED", conflicts_with = "experiment")]
    pub(super) delete_kept: Option<String>,
    #[command(flatten)]
    pub(super) candidate: CandidateArgs,
}

impl CrashArgs {
    /// The values that may be names of the user's file.
    pub(crate) fn slots(&mut self) -> Vec<Slot<'_>> {
        let mut slots = Slot::all(Kind::Volume, &mut self.candidate.volume);
        slots.extend(Slot::all(Kind::Region, &mut self.region));
        slots
    }
}
