//! `ebbtide simulate`: fio's jobs, or a trace, on volumes, in virtual time.
//!
//! [`plan`] reads the arguments, [`trace`] a trace, [`run`](mod@run) has the volumes run with a line of [`progress`]. What comes out
//! is said by `ebbtide_forecast::simulation`.

mod plan;
mod progress;
mod run;
pub(crate) mod trace;

use std::path::PathBuf;

use ebbtide_catalog::Initialization;
use ebbtide_device::host::Home;
use ebbtide_forecast::simulation::{self, SimulationPlan};

use crate::document::{self as output, ColorWhen, SectionArgs, text_options};
use crate::exit::Exit;
use crate::refusal::refuse;
use crate::text;

/// What to simulate.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A volume, as text: gp3:size=500GiB,iops=6000. Several are compared: each gets the same requests
    #[arg(long, value_name = "SPEC", required = true)]
    pub(crate) volume: Vec<String>,
    /// A job in fio's words, or the path of a fio job file. Several run at the same time
    #[arg(long, value_name = "WORDS|FILE")]
    job: Vec<String>,
    #[command(flatten)]
    trace: trace::TraceArgs,
    /// Length of an interval: 100ms, 1s, 5m. Given, a table shows every one of them [default: 1s,
    /// longer where the run exceeds a day; the table of --details condenses them]
    #[arg(long, value_name = "TIME")]
    interval: Option<String>,
    /// The volumes are made from a snapshot that has all of their blocks: lazy loads each when it is touched first,
    /// rate=100MiB/s to rate=300MiB/s loads all in their order besides, none has all of them from the beginning
    #[arg(long, value_name = "HOW", default_value_t = Initialization::None)]
    initialization: Initialization,
    /// Attach to an EC2 instance of this type, with its own EBS limits; each volume to one of its
    /// own
    #[arg(long, value_name = "TYPE")]
    pub(crate) instance: Option<String>,
    /// Attach all volumes to one instance, so that they share its limits
    #[arg(long, requires = "instance")]
    together: bool,
    /// Decides every draw; the same seed gives the same run
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// AWS region whose prices are shown [default: us-east-1, or that of the home's catalog.toml]
    #[arg(long, value_name = "REGION")]
    pub(crate) region: Option<String>,
    /// Print reads and writes of each volume, the run over time, and the command that makes it again too
    #[arg(long)]
    details: bool,
    #[command(flatten)]
    sections: SectionArgs,
    /// Write a page with charts, which opens offline
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

const EXAMPLES: &str = "Examples:
  ebbtide simulate --volume gp2:size=100GiB --job rw=randread,bs=16k,iodepth=64,runtime=3h
  ebbtide simulate --volume gp2:size=100GiB --volume gp3:size=100GiB --job oltp.fio --html oltp.html
  ebbtide simulate --volume gp3:size=1TiB --trace db.blkparse.gz
  ebbtide simulate --volume gp3:size=1TiB,iops=16000 --instance r5.large \\
      --job rw=randrw,rwmixread=70,bs=16k,rate_iops=4000,2000,runtime=2h --json
  ebbtide simulate --volume gp3:size=10GiB --initialization rate=200MiB/s \\
      --job rw=randread,bs=16k,iodepth=4,runtime=2m

Words and schema: docs/simulate.md, docs/json/simulate.schema.json";

/// Runs the simulation and prints its answer, or one JSON object where `json` is set. The catalogue
/// is that of the home, where there is one: a simulated volume is the one that would be hosted.
///
/// # Errors
/// A wrong volume or job: a [`Refusal`](crate::exit::Refusal) with [`Exit::Usage`].
pub(crate) fn run(args: &Args, home: Option<&Home>, color: ColorWhen, json: bool) -> anyhow::Result<Exit> {
    let plan = plan::read(args, &ebbtide_control::catalog(home).map_err(refuse)?)?;
    let runs = run::all(&plan)?;
    let mut document = simulation::document(&plan, &runs, &crate::version::of_results());
    if let Some(path) = &args.html {
        output::write_page(path, &document)?;
    }
    if json {
        let figures = serde_json::to_string(&simulation::figures(&plan, &runs));
        text::write(&(figures.expect("a run is plain data with finite numbers") + "\n"))?;
    } else {
        document.sections.extend(simulation::sections(&plan, &runs));
        args.sections.print(&document, text_options(color, args.details), &more(args, &plan))?;
    }
    Ok(Exit::Clean)
}

/// The last line: the seed, the prices, and where the rest is.
fn more(args: &Args, plan: &SimulationPlan) -> String {
    let mut parts = vec![format!("seed {}", plan.seed)];
    parts.extend(simulation::prices(plan));
    if !args.details {
        parts.push("reads, writes and the run over time: --details".to_owned());
    }
    parts.push(output::charts(args.html.as_deref()));
    parts.join("; ")
}
