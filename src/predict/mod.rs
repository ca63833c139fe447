//! `ebbtide predict`: a server on volumes, in virtual time.
//!
//! [`ebbtide_forecast::prediction`] runs the model and says what came out, as a document and as figures. [`profile`] prints the
//! profile that [`ebbtide_forecast::profile`] makes of what was measured.

mod profile;

use std::path::PathBuf;

use ebbtide_device::host::Home;
use ebbtide_forecast::prediction::{
    PredictionAnswer, PredictionPlan, PredictionRequest, SPANS, document, figures, predict,
};
use ebbtide_forecast::profile::MadeProfile;
use ebbtide_observe::Files;
use ebbtide_volume::Nanos;

use crate::answers;
use crate::document::{self as output, ColorWhen, SectionArgs, text_options};
use crate::duration::virtual_time;
use crate::exit::{Exit, Refusal};
use crate::refusal::{refuse, refused};

/// What to predict.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PredictArgs {
    /// The server, its workload and what was measured of it: a TOML file (docs/predict.md), or what --profile-from makes one of
    #[arg(value_name = "PROFILE", required_unless_present = "profile_from")]
    profile: Vec<PathBuf>,
    /// A volume, as text: gp3:size=500GiB,iops=6000. Several are compared. With logs on volumes of their own:
    /// data=gp3:size=500GiB,redo=io2:size=20GiB,iops=3000,binlog=gp3:size=50GiB; both on one: redo+binlog=SPEC
    #[arg(long, value_name = "SPEC", required_unless_present = "profile_from")]
    pub(crate) volume: Vec<String>,
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
    pub(crate) instance: Option<String>,
    /// Vary a key of the volume from a number to another by steps, both included: iops=1000..30000:1000, or
    /// redo.iops=1000..5000:500 of the redo log's volume
    #[arg(long, value_name = "[ROLE.]KEY=FROM..TO:STEP")]
    sweep: Option<String>,
    /// Decides every draw; the same seed gives the same run
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Print every figure with its interval, the I/O by kind of file, and how the model was calibrated too
    #[arg(long)]
    details: bool,
    #[command(flatten)]
    sections: SectionArgs,
    /// Write a page with charts, which opens offline
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Divide the volumes and the instance's limits by this number, as an experiment's `divided_by`
    /// [default: that of the profile, else 1]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    divided_by: Option<u32>,
    /// Another value of a key of the profile, to predict with; the points keep the profile's:
    /// server.redo_log_capacity=2GiB. Where a profile is made: a key that its source lacks, or has otherwise
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_key)]
    set: Vec<(String, String)>,
    #[command(flatten)]
    source: ProfileArgs,
}

/// Where a profile comes from that is made, and where it goes.
#[derive(Debug, clap::Args)]
struct ProfileArgs {
    /// Make a profile, in place of a prediction: of the directory of `ebbtide run`, of a file of `ebbtide doctor capture`,
    /// or of what SHOW GLOBAL VARIABLES, two SHOW GLOBAL STATUS and `iostat -x` printed. Several files may be given
    #[arg(long, value_name = "SOURCE", num_args = 1.., conflicts_with_all = ["profile", "volume", "clients", "rate", "instance", "sweep", "html", "details", "divided_by"])]
    profile_from: Vec<PathBuf>,
    /// With --profile-from: the profile's file [default: standard output]
    #[arg(long, value_name = "FILE", requires = "profile_from")]
    out: Option<PathBuf>,
    /// Of a run of the lab: the arm whose server the profile is of [default: the first]
    #[arg(long, value_name = "NAME")]
    arm: Option<String>,
    /// The server's version where no file of what was measured has it, such as 8.0.36 or 10.11.6-MariaDB
    #[arg(long, value_name = "VERSION", value_parser = crate::bundle::parse_version)]
    server_version: Option<String>,
    /// The device of the data in `iostat -x`, such as nvme1n1
    #[arg(long, value_name = "[ROLE=]NAME", value_parser = crate::bundle::parse_device)]
    device: Vec<(Files, String)>,
}

fn parse_key(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE, such as machine.vcpus=4")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

const EXAMPLES: &str = "Examples:
  ebbtide predict shop.toml --volume gp2:size=600GiB --volume gp3:size=600GiB,iops=6000
  ebbtide predict shop.toml --volume gp3:size=600GiB --clients 1,4,16,64 --html load-line.html
  ebbtide predict shop.toml --volume gp2:size=200GiB,credits=20% --rate 150 --for 24h
  ebbtide predict shop.toml --volume io2:size=600GiB --sweep iops=1000..30000:1000 --json
  ebbtide predict shop.toml --volume data=gp3:size=600GiB,redo=io2:size=20GiB,iops=3000
  ebbtide predict shop.toml --volume gp3:size=600GiB --set server.redo_log_capacity=2GiB
  ebbtide predict db1.capture --volume io2:size=600GiB,iops=5000
  ebbtide predict --profile-from lab-20261123 --out lab.toml
  ebbtide predict --profile-from db1.capture --set point.volume=gp3:size=500GiB --out db1.toml

Profiles: docs/predict.md. How far predictions were from measurements: docs/accuracy.md";

/// Predicts, and prints a table, or one JSON object where `json` is set; or makes a profile.
///
/// # Errors
/// A wrong profile, volume or load, or a source that lacks something: a [`Refusal`] with [`Exit::Usage`].
pub(crate) fn run(
    args: &PredictArgs,
    home: Option<&Home>,
    color: ColorWhen,
    json: bool,
) -> anyhow::Result<Exit> {
    let catalog = ebbtide_control::catalog(home).map_err(refuse)?;
    if !args.source.profile_from.is_empty() {
        return profile::make(args, &catalog, json);
    }
    let made = profile::of_measured(args, &catalog)?;
    let plan = PredictionPlan::read(&request(args, made)?, &catalog).map_err(refused)?;
    let predicted = predict(&plan);
    let prices = catalog.prices(None).expect("the default region has prices");
    let answer = PredictionAnswer::new(&plan, &predicted, prices);
    let document = document(&plan, &predicted, &answer, &crate::version::of_results());
    if let Some(path) = &args.html {
        output::write_page(path, &document)?;
    }
    if json {
        answers::print(&figures(&plan, &predicted));
    } else {
        args.sections.print(&document, text_options(color, args.details), &more(args, &answer, plan.seed))?;
    }
    Ok(Exit::Clean)
}

/// The last line: the seed, the prices, and where the rest is.
fn more(args: &PredictArgs, answer: &PredictionAnswer<'_>, seed: u64) -> String {
    let prices = answer.prices().map_or_else(String::new, |prices| format!("; {prices}"));
    let details = if args.details { "" } else { "; intervals, files and calibration: --details" };
    let charts = output::charts(args.html.as_deref());
    format!("seed {seed}{prices}{details}; {charts}")
}

/// The arguments as what is to be predicted.
fn request(args: &PredictArgs, made: Option<MadeProfile>) -> anyhow::Result<PredictionRequest> {
    let sweep = args.sweep.as_deref().map(str::parse).transpose();
    let is_of_source = |key: &str| made.is_some() && key.starts_with(profile::POINT);
    let set = args.set.iter().filter(|(key, _)| !is_of_source(key)).cloned().collect();
    Ok(PredictionRequest {
        profile: args.profile.first().cloned().expect("clap asks for a profile where none is made"),
        made,
        volumes: args.volume.clone(),
        clients: args.clients.clone(),
        rates: args.rate.clone(),
        span: span(&args.span)?,
        instance: args.instance.clone(),
        sweep: sweep.map_err(refused)?,
        seed: args.seed,
        divided_by: args.divided_by,
        set,
    })
}

/// The value of `--for`.
fn span(text: &str) -> anyhow::Result<Nanos> {
    let span = virtual_time("--for", text)?;
    if SPANS.contains(&span) {
        return Ok(span);
    }
    Err(Refusal::usage(format!("--for {text} is out of range: expected 30s to 30 days"))
        .hint("for a day give 24h")
        .into())
}
