//! The command line of `ebbtide run`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};

const EXAMPLES: &str = "Examples:
  ebbtide run --list
  ebbtide run tuned-vs-default --quick
  ebbtide run flush-settings --arms base,redo-small --set trial.repeats=5 --out /tmp/flush
  ebbtide run tuned-vs-default --out /tmp/again --against /tmp/first
  ebbtide run --compare /tmp/first /tmp/again
  ebbtide run --resume --out /tmp/flush
  ebbtide run --documents --quick --out /tmp/documents
  ebbtide run my-experiment.toml --server /opt/mysql-9.7/bin/mysqld --volume gp3:size=200GiB,iops=6000

How to write an experiment: docs/experiments.md. What a run leaves behind: docs/json/run.md.";

/// `ebbtide run`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, group = ArgGroup::new("subject").args(["experiment", "documents"]))]
pub(crate) struct RunArgs {
    /// The name of a shipped experiment (see --list), or the path of your own file
    #[arg(required_unless_present_any = ["resume", "list", "prepared", "delete_prepared", "compare", "documents"])]
    pub(crate) experiment: Option<String>,
    /// List the shipped experiments
    #[arg(long, conflicts_with_all = ["experiment", "prepared", "delete_prepared"])]
    pub(super) list: bool,
    /// Run the experiments of the public documents, and build one report with a page for each document: its claims one
    /// by one, with what was measured. With --quick it takes about an hour on two cores
    #[arg(
        long,
        conflicts_with_all = [
            "experiment", "list", "show", "set", "volume", "arms", "repeats", "measure", "region", "against",
            "compare", "prepared", "delete_prepared",
        ]
    )]
    pub(super) documents: bool,
    /// Print the experiment's file, to copy and change
    #[arg(long, requires = "experiment")]
    pub(super) show: bool,
    /// Check the experiment and print what would run and for how long; run nothing, not even a server for its version
    #[arg(long, requires = "subject", conflicts_with = "show")]
    pub(super) check: bool,
    /// The short form: the file's [quick], else fewer and shorter trials of the same arms
    #[arg(long)]
    pub(super) quick: bool,
    /// Print all sections of the report but charts and claims of documents
    #[arg(long)]
    pub(super) details: bool,
    /// Directory for the results and the report [default: NAME-DATE-TIME here]
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Go on with an interrupted or partly failed run: measure what --out DIR lacks. The directory knows
    /// the experiment and all options
    #[arg(long, requires = "out")]
    pub(super) resume: bool,
    /// Change a value: ARM.SETTING, or a path of the file such as load.connections; repeatable
    #[arg(long, value_name = "PATH=VALUE")]
    pub(super) set: Vec<String>,
    /// The data volume of every arm, in place of the experiment's
    #[arg(long, value_name = "SPEC")]
    pub(crate) volume: Option<String>,
    /// Only these arms, comma-separated
    #[arg(long, value_name = "ARM", value_delimiter = ',')]
    pub(super) arms: Vec<String>,
    /// The server program [default: mariadbd or mysqld of this machine]
    #[arg(long, value_name = "PATH")]
    pub(super) server: Option<PathBuf>,
    /// Start server programs that the experiment's file or the results of --resume name. Without it only the machine's own
    /// and fetched ones (`./dev servers`) are, and those of --server and --set. Whoever wrote the file chose the program
    #[arg(long)]
    pub(super) allow_servers: bool,
    /// Trials of each arm, in place of the experiment's
    #[arg(long, value_name = "N")]
    pub(super) repeats: Option<u32>,
    /// Time measured in each trial, in place of the experiment's
    #[arg(long, value_name = "TIME", value_parser = ebbtide_text::parse_duration)]
    pub(super) measure: Option<std::time::Duration>,
    /// Seed of the order, the load and the volumes' draws [default: a fresh one, which is printed]
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
    /// AWS region whose prices the report shows [default: us-east-1, or that of the home's catalog.toml]
    #[arg(long, value_name = "REGION")]
    pub(crate) region: Option<String>,
    /// Run on a host that is slower than the volumes promise, and mark the report
    #[arg(long)]
    pub(super) over_limit: bool,
    /// Hold the result against that of an earlier run of the same experiment, by its directory; repeatable
    #[arg(long, value_name = "DIR", requires = "experiment")]
    pub(super) against: Vec<PathBuf>,
    /// Run nothing and hold finished runs of one experiment against each other: 0 when their intervals
    /// overlap, 1 when not
    #[arg(
        long,
        value_name = "DIR",
        num_args = 1..,
        conflicts_with_all = [
            "experiment", "list", "against", "out", "quick", "set", "arms", "volume", "server", "repeats",
            "measure", "seed", "region", "over_limit", "delete_prepared",
        ]
    )]
    pub(super) compare: Vec<PathBuf>,
    /// List the prepared data that runs share
    #[arg(long, conflicts_with_all = ["experiment", "delete_prepared", "compare"])]
    pub(super) prepared: bool,
    /// Delete prepared data by name, or `all`
    #[arg(long, value_name = "NAME")]
    pub(super) delete_prepared: Option<String>,
}
