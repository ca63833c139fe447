//! The command line of `ebbtide load`: sysbench's option names, with dashes or underscores.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use clap::{ArgAction, Args, Subcommand, ValueEnum};
use ebbtide_load::tpcc::{TpccOptions, TpccPrepareOptions};
use ebbtide_load::{
    Arrival, ClientOptions, Distribution, IgnoreErrors, LedgerOptions, LoadError, LoadKind, Mix, OptionError,
    PrepareOptions, RunOptions, Schema, WORKLOADS, Workload,
};
use ebbtide_text::parse_duration;

use super::server::ServerArgs;
use super::switch::parse_switch;
use super::sysbench_args::SysbenchArgs;
use super::tpcc_args::{TablesArgs, TransactionsArgs, table_sets};
use crate::document::SectionArgs;
use crate::exit::Refusal;

/// sysbench's OLTP workloads and TPC-C against any MySQL or MariaDB server.
#[derive(Debug, Subcommand)]
pub(crate) enum LoadCommand {
    /// Create and fill the tables (and the database, where it is missing)
    Prepare(PrepareArgs),
    /// Run a workload and report
    Run(Box<RunArgs>),
    /// Check the consistency conditions of TPC-C: exit code 1 where one does not hold
    Check(CheckArgs),
    /// Say which tables would be dropped; with --execute, drop them
    Cleanup(CleanupArgs),
}

const PREPARE_EXAMPLE: &str = "Example:
  ebbtide load prepare --mysql-socket=/run/mysqld/mysqld.sock --mysql-user=root \\
      --tables=4 --table-size=500000 --threads=4
  ebbtide load prepare tpcc --warehouses=10 --threads=4";

const CHECK_EXAMPLE: &str = "Example:
  ebbtide load check tpcc --mysql-socket=/run/mysqld/mysqld.sock --mysql-user=root

The conditions: docs/load.md";

const RUN_EXAMPLE: &str = "Examples:
  ebbtide load run oltp_read_write --tables=4 --table-size=500000 --threads=16 --time=60 --report-interval=1
  ebbtide load run oltp_point_select --threads=16 --time=60 --rate=5000
  ebbtide load run tpcc --warehouses=10 --threads=16 --time=300 --warmup-time=60 --report-interval=10

The workloads, what every figure means, and the JSON: docs/load.md, docs/json/load.md";

/// The names of all workloads with what each does, a line each.
fn workloads() -> String {
    let rows = WORKLOADS.iter().map(|one| format!("{}: {}", one.name, one.meaning));
    format!("The workload:\n{}", rows.collect::<Vec<_>>().join("\n"))
}

/// What options are called that sysbench's workloads alone have.
const OF_SYSBENCH: &str = "sysbench's OLTP workloads, and tpcc was named";
const OF_TPCC: &str = "tpcc, and another workload was named";

/// `ebbtide load prepare`.
#[derive(Debug, Args)]
#[command(after_help = PREPARE_EXAMPLE)]
pub(crate) struct PrepareArgs {
    /// The workload that the tables are for; only tpcc, bulk_insert and oltp_insert have their own needs
    pub(super) workload: Option<LoadKind>,
    #[command(flatten)]
    pub(super) server: ServerArgs,
    #[command(flatten)]
    pub(super) sysbench: SysbenchArgs,
    #[command(flatten)]
    schema: SchemaArgs,
    #[command(flatten)]
    tpcc: TablesArgs,
    #[command(flatten)]
    random: RandomArgs,
    /// Connections that load at the same time
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: u32,
}

impl PrepareArgs {
    pub(super) fn options(&self) -> Result<PrepareOptions> {
        self.check_threads()?;
        belongs(self.tpcc.is_given(), "--warehouses, --table-sets and --foreign-keys", OF_TPCC)?;
        let workload = match self.workload {
            Some(LoadKind::Sysbench(workload)) => Some(workload),
            Some(LoadKind::Tpcc) | None => None,
        };
        Ok(PrepareOptions {
            workload,
            schema: self.schema.schema(),
            distribution: self.random.distribution(),
            seed: self.random.seed(),
            threads: self.threads,
        })
    }

    pub(super) fn tpcc_options(&self) -> Result<TpccPrepareOptions> {
        self.check_threads()?;
        self.schema.must_be_default()?;
        self.random.must_be_default()?;
        Ok(TpccPrepareOptions {
            warehouses: self.tpcc.warehouses.unwrap_or(1),
            table_sets: self.tpcc.table_sets.map_or(Ok(0), table_sets)?,
            foreign_keys: self.tpcc.foreign_keys.unwrap_or(true),
            seed: self.random.seed(),
            threads: self.threads,
            ..TpccPrepareOptions::default()
        })
    }

    fn check_threads(&self) -> Result<()> {
        if self.threads == 0 {
            return Err(Refusal::usage("--threads=0 loads nothing: give 1 or more").into());
        }
        Ok(())
    }
}

/// `ebbtide load check`.
#[derive(Debug, Args)]
#[command(after_help = CHECK_EXAMPLE)]
pub(crate) struct CheckArgs {
    /// tpcc
    workload: LoadKind,
    #[command(flatten)]
    pub(super) server: ServerArgs,
    /// Warehouses that the tables must have [default: those that they have]
    #[arg(long, value_name = "N")]
    pub(super) warehouses: Option<u32>,
    /// Sets of tables with numbers in their names, as sysbench-tpcc's --tables makes them [default: one set without
    /// numbers]
    #[arg(long, alias = "table_sets", value_name = "N")]
    pub(super) table_sets: Option<u32>,
    /// Connections that check at the same time
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(super) threads: u32,
}

impl CheckArgs {
    pub(super) fn must_be_tpcc(&self) -> Result<()> {
        match self.workload {
            LoadKind::Tpcc => Ok(()),
            LoadKind::Sysbench(workload) => {
                let message = format!("{workload} has no consistency conditions: load check takes tpcc");
                Err(Refusal::usage(message).into())
            }
        }
    }
}

/// `ebbtide load cleanup`.
#[derive(Debug, Args)]
pub(crate) struct CleanupArgs {
    /// The workload whose tables are meant: only tpcc has tables of other names
    pub(super) workload: Option<LoadKind>,
    #[command(flatten)]
    pub(super) server: ServerArgs,
    #[command(flatten)]
    pub(super) sysbench: SysbenchArgs,
    /// Number of tables, sbtest1 and up
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) tables: u32,
    /// Really drop them
    #[arg(long)]
    pub(super) execute: bool,
}

/// `ebbtide load run`.
#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLE)]
pub(crate) struct RunArgs {
    #[arg(help = LoadKind::names(), long_help = workloads())]
    pub(super) workload: LoadKind,
    #[command(flatten)]
    pub(super) server: ServerArgs,
    #[command(flatten)]
    pub(super) sysbench: SysbenchArgs,
    #[command(flatten)]
    schema: SchemaArgs,
    #[command(flatten)]
    random: RandomArgs,
    #[command(flatten)]
    mix: MixArgs,
    #[command(flatten)]
    tpcc: TransactionsArgs,
    /// Connections
    #[arg(long, aliases = ["num-threads", "num_threads"], value_name = "N", default_value_t = 1, help_heading = "Run")]
    pub(super) threads: u32,
    /// Seconds to measure; 0 for no limit
    #[arg(long, aliases = ["max-time", "max_time"], value_name = "S", default_value_t = 10.0, help_heading = "Run")]
    pub(super) time: f64,
    /// Transactions to run; 0 for no limit
    #[arg(long, aliases = ["max-requests", "max_requests"], value_name = "N", default_value_t = 0, help_heading = "Run")]
    events: u64,
    /// Seconds before the measurement, in no figure
    #[arg(long, alias = "warmup_time", value_name = "S", default_value_t = 0, help_heading = "Run")]
    warmup_time: u32,
    /// Transactions a second that arrive, whatever the server does; 0 runs a closed loop
    #[arg(long, aliases = ["tx-rate", "tx_rate"], value_name = "N", default_value_t = 0.0, help_heading = "Run")]
    pub(super) rate: f64,
    /// How they arrive: as independent users do (sysbench), or at even intervals
    #[arg(long, value_enum, default_value_t = ArrivalKind::Poisson, help_heading = "Run")]
    arrival: ArrivalKind,
    /// Emulate a network between client and server with this round trip, such as 500us or 2ms: 0s to 10s
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = parse_duration, help_heading = "Run")]
    round_trip: Duration,
    /// Arrivals that may wait for a connection; further ones are shed and counted
    #[arg(long, value_name = "N", default_value_t = 131_072, help_heading = "Run")]
    backlog: u32,
    /// Seconds that transactions in flight may take after the end; off waits for them
    #[arg(long, alias = "forced_shutdown", value_name = "S|off", default_value = "off", value_parser = parse_grace, help_heading = "Run")]
    forced_shutdown: Grace,
    /// Reconnect after so many transactions of a connection; 0 never
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Run")]
    reconnect: u32,
    /// Prepared statements (auto), or statements as text (disable)
    #[arg(long, alias = "db_ps_mode", value_enum, default_value_t = PsMode::Auto, help_heading = "Run")]
    db_ps_mode: PsMode,
    /// Errors that start the transaction again: codes, or all
    #[arg(long, alias = "mysql_ignore_errors", value_name = "LIST", default_value = "1213,1020,1205",
        value_parser = parse_ignore, help_heading = "Run")]
    mysql_ignore_errors: IgnoreErrors,
    /// Event-loop threads [default: one for every 16 connections, at most half of the processors]
    #[arg(long, value_name = "N", help_heading = "Run")]
    loop_threads: Option<u32>,
    /// Write every acknowledged commit to this file
    #[arg(long, value_name = "FILE", help_heading = "Run")]
    ledger: Option<PathBuf>,
    /// With --ledger: also mark each commit in the table ebbtide_ledger, to compare after a crash
    #[arg(long, value_name = "on|off", default_value = "on", default_missing_value = "on", num_args = 0..=1,
        require_equals = true, value_parser = parse_switch, action = ArgAction::Set, help_heading = "Run")]
    ledger_marks: bool,
    /// Print a line every so many seconds; 0 never
    #[arg(long, alias = "report_interval", value_name = "S", default_value_t = 0, help_heading = "Report")]
    pub(super) report_interval: u32,
    /// The percentile in sysbench's lines
    #[arg(long, value_name = "N", default_value_t = 95.0, help_heading = "Report")]
    pub(super) percentile: f64,
    /// Print the histogram of response times
    #[arg(long, value_name = "on|off", default_value = "off", default_missing_value = "on", num_args = 0..=1,
        require_equals = true, value_parser = parse_switch, action = ArgAction::Set, help_heading = "Report")]
    pub(super) histogram: bool,
    /// Print sysbench's summary, the latency by statement, and what the generator took too
    #[arg(long, help_heading = "Report")]
    pub(super) details: bool,
    #[command(flatten)]
    pub(super) sections: SectionArgs,
}

impl RunArgs {
    pub(super) fn options(&self, workload: Workload) -> Result<RunOptions> {
        belongs(
            self.tpcc.is_given(),
            "--warehouses, --table-sets, --wait-mode, --trx-level and --statements",
            OF_TPCC,
        )?;
        let mut options = RunOptions {
            schema: self.schema.schema(),
            mix: self.mix.mix(),
            distribution: self.random.distribution(),
            clients: self.clients()?,
            ..RunOptions::new(workload)
        };
        options.ledger = self.ledger();
        options.check().map_err(|error| super::refuse(LoadError::Options(error)))?;
        Ok(options)
    }

    pub(super) fn tpcc_options(&self) -> Result<TpccOptions> {
        self.schema.must_be_default()?;
        self.random.must_be_default()?;
        let mix = self.mix.mix() != Mix::default();
        belongs(mix, "--point-selects, --range-size, --skip-trx and the like", OF_SYSBENCH)?;
        let options = TpccOptions {
            warehouses: self.tpcc.warehouses.unwrap_or(1),
            table_sets: self.tpcc.table_sets.map_or(Ok(0), table_sets)?,
            isolation: self.tpcc.isolation(),
            wait: self.tpcc.wait(),
            statements: self.tpcc.statements(),
            clients: self.clients()?,
            ledger: self.ledger(),
        };
        options.check().map_err(refuse_options)?;
        Ok(options)
    }

    fn ledger(&self) -> Option<LedgerOptions> {
        self.ledger.clone().map(|path| LedgerOptions { path, marks: self.ledger_marks })
    }

    fn clients(&self) -> Result<ClientOptions> {
        Ok(ClientOptions {
            seed: self.random.seed(),
            connections: self.threads,
            loops: self.loop_threads,
            round_trip: self.round_trip,
            arrival: self.arrival()?,
            backlog: self.backlog,
            duration: self.duration()?,
            events: (self.events > 0).then_some(self.events),
            warmup_s: self.warmup_time,
            grace: self.forced_shutdown.0,
            prepared: self.db_ps_mode == PsMode::Auto,
            ignore_errors: self.mysql_ignore_errors.clone(),
            reconnect_every: self.reconnect,
            percentile: self.percentile,
        })
    }

    fn arrival(&self) -> Result<Arrival> {
        if self.rate == 0.0 {
            return Ok(Arrival::Closed);
        }
        Ok(match self.arrival {
            ArrivalKind::Poisson => Arrival::Poisson { per_second: self.rate },
            ArrivalKind::Fixed => Arrival::Fixed { per_second: self.rate },
        })
    }

    fn duration(&self) -> Result<Option<Duration>> {
        if self.time == 0.0 {
            return Ok(None);
        }
        let duration = Duration::try_from_secs_f64(self.time).map_err(|_| {
            let message = format!("--time={} is out of range: 0 (no limit) or more seconds", self.time);
            Refusal::usage(message)
        })?;
        Ok(Some(duration))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ArrivalKind {
    Poisson,
    Fixed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PsMode {
    Auto,
    Disable,
}

/// How long to wait at the end; none waits for everything.
#[derive(Debug, Clone, Copy)]
struct Grace(Option<Duration>);

/// The tables.
#[derive(Debug, Args)]
#[command(next_help_heading = "Tables")]
pub(super) struct SchemaArgs {
    /// Number of tables
    #[arg(long, value_name = "N", default_value_t = 1)]
    tables: u32,
    /// Rows per table
    #[arg(long, alias = "table_size", value_name = "N", default_value_t = 10_000)]
    table_size: u32,
    /// AUTO_INCREMENT ids
    #[arg(long, alias = "auto_inc", value_name = "on|off", default_value = "on", default_missing_value = "on",
        num_args = 0..=1, require_equals = true, value_parser = parse_switch, action = ArgAction::Set)]
    auto_inc: bool,
    /// A secondary index on id in place of the primary key
    #[arg(long, value_name = "on|off", default_value = "off", default_missing_value = "on",
        num_args = 0..=1, require_equals = true, value_parser = parse_switch, action = ArgAction::Set)]
    secondary: bool,
    /// An index on k
    #[arg(long, alias = "create_secondary", value_name = "on|off", default_value = "on", num_args = 0..=1,
        default_missing_value = "on", require_equals = true, value_parser = parse_switch,
        action = ArgAction::Set)]
    create_secondary: bool,
    /// The storage engine
    #[arg(long, alias = "mysql_storage_engine", value_name = "NAME", default_value = "innodb")]
    mysql_storage_engine: String,
    /// Text appended to CREATE TABLE
    #[arg(
        long,
        alias = "create_table_options",
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    create_table_options: String,
}

impl SchemaArgs {
    fn must_be_default(&self) -> Result<()> {
        let given = self.schema() != Schema::default();
        belongs(given, "--tables, --table-size and the other options of its tables", OF_SYSBENCH)
    }

    fn schema(&self) -> Schema {
        Schema {
            tables: self.tables,
            table_size: self.table_size,
            auto_inc: self.auto_inc,
            secondary: self.secondary,
            create_secondary: self.create_secondary,
            engine: self.mysql_storage_engine.clone(),
            create_table_options: self.create_table_options.clone(),
            lengths: None,
        }
    }
}

/// How ids are drawn.
#[derive(Debug, Args)]
#[command(next_help_heading = "Random numbers")]
pub(super) struct RandomArgs {
    /// The distribution of ids; sysbench 1.0's default is special, its newer source's is uniform
    #[arg(long, alias = "rand_type", value_enum, default_value_t = RandType::Special)]
    rand_type: RandType,
    /// Draws averaged for special and gaussian
    #[arg(long, alias = "rand_spec_iter", value_name = "N", default_value_t = 12)]
    rand_spec_iter: u32,
    /// special: percent of the ids that are special
    #[arg(long, alias = "rand_spec_pct", value_name = "N", default_value_t = 1)]
    rand_spec_pct: u32,
    /// special: percent of the draws that go to them
    #[arg(long, alias = "rand_spec_res", value_name = "N", default_value_t = 75)]
    rand_spec_res: u32,
    /// pareto: the parameter h
    #[arg(long, alias = "rand_pareto_h", value_name = "X", default_value_t = 0.2)]
    rand_pareto_h: f64,
    /// zipfian: the exponent
    #[arg(long, alias = "rand_zipfian_exp", value_name = "X", default_value_t = 0.8)]
    rand_zipfian_exp: f64,
    /// The seed; 0 takes one from the clock. It is printed
    #[arg(long, alias = "rand_seed", value_name = "N", default_value_t = 0)]
    rand_seed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RandType {
    Special,
    Uniform,
    Gaussian,
    Pareto,
    Zipfian,
}

impl RandomArgs {
    fn must_be_default(&self) -> Result<()> {
        let given = self.distribution() != Distribution::default();
        belongs(given, "--rand-type and its parameters", OF_SYSBENCH)
    }

    fn distribution(&self) -> Distribution {
        let iterations = self.rand_spec_iter;
        match self.rand_type {
            RandType::Special => {
                Distribution::Special { iterations, pct: self.rand_spec_pct, res: self.rand_spec_res }
            }
            RandType::Uniform => Distribution::Uniform,
            RandType::Gaussian => Distribution::Gaussian { iterations },
            RandType::Pareto => Distribution::Pareto { h: self.rand_pareto_h },
            RandType::Zipfian => Distribution::Zipfian { exponent: self.rand_zipfian_exp },
        }
    }

    fn seed(&self) -> u64 {
        if self.rand_seed != 0 {
            return self.rand_seed;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::from(now.subsec_nanos()) ^ now.as_secs()
    }
}

/// The statements of a transaction.
#[derive(Debug, Args)]
#[command(next_help_heading = "Statements of a transaction")]
pub(super) struct MixArgs {
    /// Reads by primary key
    #[arg(long, alias = "point_selects", value_name = "N", default_value_t = 10)]
    point_selects: u32,
    /// Range reads
    #[arg(long, alias = "simple_ranges", value_name = "N", default_value_t = 1)]
    simple_ranges: u32,
    /// Range sums
    #[arg(long, alias = "sum_ranges", value_name = "N", default_value_t = 1)]
    sum_ranges: u32,
    /// Ordered range reads
    #[arg(long, alias = "order_ranges", value_name = "N", default_value_t = 1)]
    order_ranges: u32,
    /// Distinct range reads
    #[arg(long, alias = "distinct_ranges", value_name = "N", default_value_t = 1)]
    distinct_ranges: u32,
    /// Rows per range
    #[arg(long, alias = "range_size", value_name = "N", default_value_t = 100)]
    range_size: u32,
    /// Range reads at all
    #[arg(long, alias = "range_selects", value_name = "on|off", default_value = "on", num_args = 0..=1,
        default_missing_value = "on", require_equals = true, value_parser = parse_switch,
        action = ArgAction::Set)]
    range_selects: bool,
    /// Updates of the indexed column
    #[arg(long, alias = "index_updates", value_name = "N", default_value_t = 1)]
    index_updates: u32,
    /// Updates of the column without an index
    #[arg(long, alias = "non_index_updates", value_name = "N", default_value_t = 1)]
    non_index_updates: u32,
    /// Pairs of a delete and an insert
    #[arg(long, alias = "delete_inserts", value_name = "N", default_value_t = 1)]
    delete_inserts: u32,
    /// No BEGIN and COMMIT
    #[arg(long, alias = "skip_trx", value_name = "on|off", default_value = "off", default_missing_value = "on",
        num_args = 0..=1, require_equals = true, value_parser = parse_switch, action = ArgAction::Set)]
    skip_trx: bool,
    /// key_value: share of gets, percent; the others are puts
    #[arg(long, alias = "gets_pct", value_name = "PCT", default_value_t = 95)]
    gets_pct: u32,
}

impl MixArgs {
    fn mix(&self) -> Mix {
        Mix {
            point_selects: self.point_selects,
            simple_ranges: self.simple_ranges,
            sum_ranges: self.sum_ranges,
            order_ranges: self.order_ranges,
            distinct_ranges: self.distinct_ranges,
            range_size: self.range_size,
            range_selects: self.range_selects,
            index_updates: self.index_updates,
            non_index_updates: self.non_index_updates,
            delete_inserts: self.delete_inserts,
            skip_trx: self.skip_trx,
            gets_pct: self.gets_pct,
        }
    }
}

/// Refuses options of another workload.
fn belongs(given: bool, options: &str, to: &str) -> Result<()> {
    if given {
        let message = format!("{options} belong to {to}: leave them out");
        return Err(Refusal::usage(message).into());
    }
    Ok(())
}

/// An error of options of ours.
fn refuse_options(error: OptionError) -> anyhow::Error {
    super::refuse(LoadError::Options(error))
}

fn parse_grace(text: &str) -> Result<Grace, String> {
    if text == "off" {
        return Ok(Grace(None));
    }
    let seconds = text.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.map(|grace| Grace(Some(grace))).ok_or_else(|| "use a number of seconds, or off".into())
}

fn parse_ignore(text: &str) -> Result<IgnoreErrors, String> {
    if text.split(',').any(|code| code.trim() == "all") {
        return Ok(IgnoreErrors::All);
    }
    let codes = text.split(',').map(str::trim).filter(|code| !code.is_empty());
    let codes: Result<BTreeSet<u16>, _> = codes.map(str::parse).collect();
    codes.map(IgnoreErrors::Codes).map_err(|_| "use error codes such as 1213,1205, or all".into())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(subcommand)]
        command: LoadCommand,
    }

    fn run_options(words: &[&str]) -> RunOptions {
        let line = Line::try_parse_from([&["load", "run"], words].concat()).unwrap();
        let LoadCommand::Run(args) = line.command else { panic!() };
        let LoadKind::Sysbench(workload) = args.workload else { panic!() };
        args.options(workload).unwrap()
    }

    #[test]
    fn sysbenchs_words_are_understood_with_dashes_and_underscores() {
        let options = run_options(&[
            "oltp_read_write",
            "--table_size=500",
            "--tables=4",
            "--skip-trx",
            "--range_selects=off",
            "--point-selects=3",
            "--rand-type=pareto",
            "--rate=100",
            "--mysql-ignore-errors=1213,2013",
            "--db-ps-mode=disable",
            "--events=7",
            "--time=0",
        ]);
        assert_eq!((options.schema.tables, options.schema.table_size), (4, 500));
        assert!(options.mix.skip_trx && !options.mix.range_selects && !options.clients.prepared);
        assert_eq!(options.distribution, Distribution::Pareto { h: 0.2 });
        assert_eq!(options.clients.arrival, Arrival::Poisson { per_second: 100.0 });
        assert!(
            options.clients.ignore_errors.contains(2013) && !options.clients.ignore_errors.contains(1205)
        );
        assert_eq!((options.clients.events, options.clients.duration), (Some(7), None));
    }

    #[test]
    fn each_workload_of_the_list_is_taken_and_described() {
        use clap::CommandFactory as _;
        for one in WORKLOADS {
            let read =
                |words: &[&str]| Line::try_parse_from([&["load"], words].concat()).map(|line| line.command);
            let Ok(LoadCommand::Run(run)) = read(&["run", one.name]) else { panic!("run {}", one.name) };
            let Ok(LoadCommand::Prepare(prepare)) = read(&["prepare", one.name]) else {
                panic!("prepare {}", one.name)
            };
            let Ok(LoadCommand::Cleanup(cleanup)) = read(&["cleanup", one.name]) else {
                panic!("cleanup {}", one.name)
            };
            assert_eq!((run.workload, prepare.workload), (one.kind, Some(one.kind)), "{}", one.name);
            assert_eq!(cleanup.workload, Some(one.kind), "{}", one.name);
            let refused = read(&["run", "none"]).unwrap_err().to_string();
            assert!(refused.contains(one.name), "{refused}");
            let mut command = Line::command();
            let help = command.find_subcommand_mut("run").unwrap().render_long_help().to_string();
            let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(help.contains(&format!("{}: {}", one.name, one.meaning)), "{help}");
        }
    }

    #[test]
    fn without_words_a_run_is_sysbenchs_default_run() {
        let mut options = run_options(&["read_write"]);
        assert_ne!(options.clients.seed, 0);
        options.clients.seed = 1;
        assert_eq!(options, RunOptions::new(Workload::ReadWrite));
    }
}
