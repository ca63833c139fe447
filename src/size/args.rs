//! The arguments of `ebbtide size`, and what they ask for.

use std::path::PathBuf;

use ebbtide_forecast::sizing::{MOST_MEMBERS, Processors, SizingRequest};
use ebbtide_volume::{GIB, Nanos, TIB, binary_instead, format_size, parse_size};

use crate::document::SectionArgs;
use crate::duration::virtual_time;
use crate::exit::Refusal;
use crate::trace_options;

/// Largest growth in a year, and share of headroom, percent.
const MOST_PERCENT: f64 = 1_000.0;
/// Months that are looked ahead, at most.
const MOST_MONTHS: u32 = 120;
/// The largest size that is asked for: the largest array of the largest volumes.
const MOST_SIZE: u64 = MOST_MEMBERS as u64 * 64 * TIB;

/// What to size for.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SizeArgs {
    /// What was recorded of the load: CloudWatch metrics (JSON, CSV), iostat -x -t, sar -d, pt-diskstats, a trace of block I/O, the
    /// directory of a run, or a profile (.toml)
    #[arg(value_name = "FILE", required = true)]
    from: Vec<PathBuf>,
    /// The volume of today, as text: gp2:size=500GiB. It is priced and judged too
    #[arg(long, value_name = "SPEC")]
    pub(crate) volume: Option<String>,
    /// The EC2 instance type of today. The cheapest type with its processors and memory is looked for, and its EBS limits hold
    #[arg(long, value_name = "TYPE")]
    pub(crate) instance: Option<String>,
    /// Keep the instance type of today
    #[arg(long, requires = "instance")]
    keep_instance: bool,
    /// Processors of the instance [default: those of today's]
    #[arg(long, value_name = "NAME", requires = "instance")]
    architecture: Option<Architecture>,
    /// Usable size that is needed [default: that of today's volume]
    #[arg(long, value_name = "SIZE")]
    size: Option<String>,
    /// The device or volume whose load is taken, where the files have several; of a run what lies on it: data, redo, binlog,
    /// redo+binlog
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// The format of a trace [default: known by its first lines]
    #[arg(long, value_name = "NAME")]
    trace_format: Option<String>,
    /// The unit of a trace's times, in formats that do not fix it: ns, us, ms, s
    #[arg(long, value_name = "UNIT")]
    trace_unit: Option<String>,
    /// The arm of a run whose load is taken
    #[arg(long, value_name = "NAME")]
    arm: Option<String>,
    /// Length of an interval, where the files do not tell it: 10s
    #[arg(long, value_name = "TIME")]
    interval: Option<String>,
    /// Transactions a second that are to be carried: with a profile, or with --tps-measured
    #[arg(long, value_name = "NUMBER")]
    tps: Option<f64>,
    /// Transactions a second that the recorded load had at its peak; it is multiplied by what --tps is of this
    #[arg(long, value_name = "NUMBER", requires = "tps")]
    tps_measured: Option<f64>,
    /// 99 of 100 I/Os, or with a profile transactions, are to take at most this: 5ms
    #[arg(long, value_name = "TIME")]
    p99: Option<String>,
    /// So much more than the load has to be carried: means of an interval hide its peaks
    #[arg(long, value_name = "PERCENT", default_value = "20%")]
    headroom: String,
    /// Growth of load and size in a year
    #[arg(long, value_name = "PERCENT", default_value = "0%")]
    growth: String,
    /// Months until when it has to be enough
    #[arg(long, value_name = "MONTHS", default_value_t = 12)]
    horizon: u32,
    /// Share of the time in which no I/O may wait for a limit
    #[arg(long, value_name = "PERCENT", default_value = "99.9%")]
    carry: String,
    /// Volumes in a RAID 0, at most; 1 for single volumes only. Where it is given, the answer may be an array; otherwise a cheaper
    /// array of up to 4 volumes stands beside the answer
    #[arg(long, value_name = "NUMBER")]
    raid0: Option<u16>,
    /// AWS region whose prices hold [default: us-east-1, that of the home's catalog.toml, or that of --prices]
    #[arg(long, value_name = "REGION")]
    pub(crate) region: Option<String>,
    /// AWS's bulk price list of a region (AmazonEC2 or AmazonRDS, index.json or index.csv), packed or not; several may be given
    #[arg(long, value_name = "FILE")]
    pub(super) prices: Vec<PathBuf>,
    /// Decides every draw of the model of a profile
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Print the load, all choices, more safety, Terraform, and the same load on RDS and Aurora too
    #[arg(long)]
    pub(super) details: bool,
    #[command(flatten)]
    pub(super) sections: SectionArgs,
    /// Write a page with charts, which opens offline
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
}

/// Processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Architecture {
    /// Intel and AMD
    #[value(name = "x86_64")]
    X86,
    /// AWS's own (Graviton)
    #[value(name = "arm64")]
    Arm,
    /// Either: programs have to be there for both
    Any,
}

impl Architecture {
    const fn processors(self) -> Processors {
        match self {
            Self::X86 => Processors::X86,
            Self::Arm => Processors::Arm,
            Self::Any => Processors::Any,
        }
    }
}

impl SizeArgs {
    /// What is asked for.
    ///
    /// # Errors
    /// A value that its option does not take: a [`Refusal`].
    pub(super) fn request(&self) -> anyhow::Result<SizingRequest> {
        let trace_format = self.trace_format.as_deref().map(trace_options::format);
        let trace_unit_ns = self.trace_unit.as_deref().map(trace_options::unit_ns);
        let yearly_growth = percent("--growth", &self.growth, MOST_PERCENT)? / 100.0;
        if !(1..=MOST_MONTHS).contains(&self.horizon) {
            let message =
                format!("--horizon {} is out of range: expected 1 to {MOST_MONTHS} months", self.horizon);
            return Err(Refusal::usage(message).into());
        }
        Ok(SizingRequest {
            from: self.from.clone(),
            volume: self.volume.clone(),
            instance: self.instance.clone(),
            keep_instance: self.keep_instance,
            processors: self.architecture.map(Architecture::processors),
            size_bytes: self.size.as_deref().map(size).transpose()?,
            device: self.device.clone(),
            trace_format: trace_format.transpose()?,
            trace_unit_ns: trace_unit_ns.transpose()?,
            arm: self.arm.clone(),
            interval: time("--interval", self.interval.as_deref())?,
            tps: self.tps,
            tps_measured: self.tps_measured,
            p99: time("--p99", self.p99.as_deref())?,
            headroom: 1.0 + percent("--headroom", &self.headroom, MOST_PERCENT)? / 100.0,
            yearly_growth,
            horizon_months: self.horizon,
            carried: carried(&self.carry)?,
            most_members: self.raid0,
            region: self.region.clone(),
            seed: self.seed,
        })
    }
}

fn time(option: &str, text: Option<&str>) -> anyhow::Result<Option<Nanos>> {
    text.map(|text| virtual_time(option, text)).transpose()
}

/// A percentage such as `20%` or `20`, from zero on.
fn percent(option: &str, text: &str, most: f64) -> anyhow::Result<f64> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>();
    match number {
        Ok(percent) if (0.0..=most).contains(&percent) => Ok(percent),
        _ => Err(Refusal::usage(format!("{option} {text}: expected a percentage from 0% to {most}%")).into()),
    }
}

/// The value of `--carry`, as a share.
fn carried(text: &str) -> anyhow::Result<f64> {
    let carried = percent("--carry", text, 100.0)?;
    if carried < 50.0 {
        let message = format!("--carry {text}: expected 50% to 100% of the time");
        return Err(Refusal::usage(message).into());
    }
    Ok(carried / 100.0)
}

/// The value of `--size`. A number without a unit is refused: bytes are not meant.
fn size(text: &str) -> anyhow::Result<u64> {
    let has_unit = !text.bytes().all(|byte| byte.is_ascii_digit());
    match parse_size(text) {
        Ok(bytes) if has_unit && (GIB..=MOST_SIZE).contains(&bytes) => Ok(bytes),
        Err(error) if binary_instead(text).is_some() => {
            Err(Refusal::usage(format!("--size: {error}")).into())
        }
        _ => {
            let message = format!(
                "--size {text}: expected a whole number with its unit from 1GiB to {}, like 500GiB",
                format_size(MOST_SIZE)
            );
            Err(Refusal::usage(message).into())
        }
    }
}

const EXAMPLES: &str = "Examples:
  ebbtide size metrics.json --volume gp2:size=500GiB --instance r5.2xlarge
  ebbtide size metrics.json --volume gp3:size=500GiB --growth 30% --horizon 24 --p99 5ms --html sizing.html
  ebbtide size iostat.txt --device nvme1n1 --size 500GiB --raid0 1
  ebbtide size shop.toml --tps 900 --p99 50ms --size 600GiB
  ebbtide size metrics.json --volume gp3:size=500GiB --prices eu-west-1.json --json

How to get the metrics, and what the answer means: docs/size.md";
