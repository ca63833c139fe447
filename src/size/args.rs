//! The arguments of `ebbtide size`.

use std::path::PathBuf;

/// What to size for.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SizeArgs {
    /// What was recorded of the load: CloudWatch metrics (JSON, CSV), iostat -x -t, sar -d, pt-diskstats, a trace of block I/O, the
    /// directory of a run, or a profile (.toml)
    #[arg(value_name = "FILE", required = true)]
    pub(super) from: Vec<PathBuf>,
    /// The volume of today, as text: gp2:size=500GiB. It is priced and judged too
    #[arg(long, value_name = "SPEC")]
    pub(super) volume: Option<String>,
    /// The EC2 instance type of today. The cheapest type with its processors and memory is looked for, and its EBS limits hold
    #[arg(long, value_name = "TYPE")]
    pub(super) instance: Option<String>,
    /// Keep the instance type of today
    #[arg(long, requires = "instance")]
    pub(super) keep_instance: bool,
    /// Processors of the instance [default: those of today's]
    #[arg(long, value_name = "NAME", requires = "instance")]
    pub(super) architecture: Option<Architecture>,
    /// Usable size that is needed [default: that of today's volume]
    #[arg(long, value_name = "SIZE")]
    pub(super) size: Option<String>,
    /// The device or volume whose load is taken, where the files have several; of a run what lies on it: data, redo, binlog,
    /// redo+binlog
    #[arg(long, value_name = "NAME")]
    pub(super) device: Option<String>,
    /// The format of a trace [default: known by its first lines]
    #[arg(long, value_name = "NAME")]
    pub(super) trace_format: Option<String>,
    /// The unit of a trace's times, in formats that do not fix it: ns, us, ms, s
    #[arg(long, value_name = "UNIT")]
    pub(super) trace_unit: Option<String>,
    /// The arm of a run whose load is taken
    #[arg(long, value_name = "NAME")]
    pub(super) arm: Option<String>,
    /// Length of an interval, where the files do not tell it: 10s
    #[arg(long, value_name = "TIME")]
    pub(super) interval: Option<String>,
    /// Transactions a second that are to be carried: with a profile, or with --tps-measured
    #[arg(long, value_name = "NUMBER")]
    pub(super) tps: Option<f64>,
    /// Transactions a second that the recorded load had at its peak; it is multiplied by what --tps is of this
    #[arg(long, value_name = "NUMBER", requires = "tps")]
    pub(super) tps_measured: Option<f64>,
    /// 99 of 100 I/Os, or with a profile transactions, are to take at most this: 5ms
    #[arg(long, value_name = "TIME")]
    pub(super) p99: Option<String>,
    /// So much more than the load has to be carried: means of an interval hide its peaks
    #[arg(long, value_name = "PERCENT", default_value = "20%")]
    pub(super) headroom: String,
    /// Growth of load and size in a year
    #[arg(long, value_name = "PERCENT", default_value = "0%")]
    pub(super) growth: String,
    /// Months until when it has to be enough
    #[arg(long, value_name = "MONTHS", default_value_t = 12)]
    pub(super) horizon: u32,
    /// Share of the time in which no I/O may wait for a limit
    #[arg(long, value_name = "PERCENT", default_value = "99.9%")]
    pub(super) carry: String,
    /// Volumes in a RAID 0, at most; 1 for single volumes only. Where it is given, the answer may be an array; otherwise a cheaper
    /// array of up to 4 volumes stands beside the answer
    #[arg(long, value_name = "NUMBER")]
    pub(super) raid0: Option<u16>,
    /// AWS region whose prices hold [default: us-east-1, that of the home's catalog.toml, or that of --prices]
    #[arg(long, value_name = "REGION")]
    pub(super) region: Option<String>,
    /// AWS's bulk price list of a region (AmazonEC2 or AmazonRDS, index.json or index.csv), packed or not; several may be given
    #[arg(long, value_name = "FILE")]
    pub(super) prices: Vec<PathBuf>,
    /// Decides every draw of the model of a profile
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(super) seed: u64,
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

const EXAMPLES: &str = "Examples:
  ebbtide size metrics.json --volume gp2:size=500GiB --instance r5.2xlarge
  ebbtide size metrics.json --volume gp3:size=500GiB --growth 30% --horizon 24 --p99 5ms --html sizing.html
  ebbtide size iostat.txt --device nvme1n1 --size 500GiB --raid0 1
  ebbtide size shop.toml --tps 900 --p99 50ms --size 600GiB
  ebbtide size metrics.json --volume gp3:size=500GiB --prices eu-west-1.json --json

How to get the metrics, and what the answer means: docs/size.md";
