//! `ebbtide predict`: a server on volumes, in virtual time.
//!
//! [`plan`] reads the arguments, [`server`] the profile, [`points`] runs the model and gives each figure its interval, and
//! [`text`], [`json`] and [`page`] show them.

mod json;
mod page;
mod plan;
mod points;
pub(crate) mod server;
mod text;

use std::path::PathBuf;

use anyhow::Context as _;
use ebbtide_device::host::Home;

use crate::answers;
use crate::exit::{Exit, Refusal};
use crate::refusal::refuse;
use crate::text as output;
use plan::Plan;

/// What to predict.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PredictArgs {
    /// The server, its workload and what was measured of it: a TOML file (docs/profile.md)
    #[arg(value_name = "PROFILE")]
    profile: PathBuf,
    /// A volume, as text: gp3:size=500GiB,iops=6000. Several are compared
    #[arg(long, value_name = "SPEC", required = true)]
    volume: Vec<String>,
    /// Connections that send one transaction after the other, several to see the load line: 1,4,16,64
    /// [default: those of the profile's first point, else 16]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', conflicts_with = "rate")]
    clients: Vec<u32>,
    /// Transactions a second that arrive whatever happens, several to see the load line: 100,200,400
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    rate: Vec<f64>,
    /// Virtual time that is predicted, up to 30 days: 10m, 24h
    #[arg(long = "for", value_name = "TIME", default_value = "10m")]
    span: String,
    /// Attach to an EC2 instance of this type, with its own EBS limits; `none` for no limits but the volume's
    /// [default: that of the profile]
    #[arg(long, value_name = "TYPE")]
    instance: Option<String>,
    /// Vary a key of the volume from a number to another by steps, both included: iops=1000..30000:1000
    #[arg(long, value_name = "KEY=FROM..TO:STEP")]
    sweep: Option<String>,
    /// Decides every draw; the same seed gives the same run
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Write a page with charts, which opens offline
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

const EXAMPLES: &str = "Examples:
  ebbtide predict shop.toml --volume gp2:size=600GiB --volume gp3:size=600GiB,iops=6000
  ebbtide predict shop.toml --volume gp3:size=600GiB --clients 1,4,16,64 --html load-line.html
  ebbtide predict shop.toml --volume gp2:size=200GiB,credits=20% --rate 150 --for 24h
  ebbtide predict shop.toml --volume io2:size=600GiB --sweep iops=1000..30000:1000 --json

Profiles: docs/profile.md. How far predictions were from measurements: docs/accuracy.md";

/// Predicts, and prints a table, or one JSON object where `json` is set.
///
/// # Errors
/// A wrong profile, volume or load: a [`Refusal`] with [`Exit::Usage`].
pub(crate) fn run(args: &PredictArgs, home: Option<&Home>, json: bool) -> anyhow::Result<Exit> {
    let plan = Plan::read(args, &ebbtide_control::catalog(home).map_err(refuse)?)?;
    if !json {
        output::write(&text::heading(&plan))?;
    }
    let predicted = points::all(&plan);
    if let Some(path) = &args.html {
        std::fs::write(path, page::report(&plan, &predicted).to_html()).with_context(|| {
            Refusal::environment(format!("cannot write {}", path.display()))
                .hint("give --html a file in a directory that is there and that you may write")
        })?;
    }
    if json {
        answers::print(&json::prediction(&plan, &predicted));
    } else {
        output::write(&text::body(&plan, &predicted, args.html.as_deref()))?;
    }
    Ok(Exit::Clean)
}
