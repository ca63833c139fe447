//! The command line of `ebbtide load`: sysbench's option names, with dashes or underscores.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use clap::{ArgAction, Args, Subcommand, ValueEnum};
use ebbtide_load::{
    Arrival, DATABASE, Distribution, Endpoint, IgnoreErrors, LedgerOptions, LoadError, Mix, PrepareOptions,
    RunOptions, Schema, Target, Tls, Workload,
};

/// sysbench's OLTP workloads against any MySQL or MariaDB server.
#[derive(Debug, Subcommand)]
pub(crate) enum LoadCommand {
    /// Create and fill the tables (and the database, where it is missing)
    Prepare(PrepareArgs),
    /// Run a workload and report
    Run(Box<RunArgs>),
    /// Say which tables would be dropped; with --execute, drop them
    Cleanup(CleanupArgs),
}

const PREPARE_EXAMPLE: &str = "Example:
  ebbtide load prepare --mysql-socket=/run/mysqld/mysqld.sock --mysql-user=root \\
      --tables=4 --table-size=500000 --threads=4";

const RUN_EXAMPLE: &str = "Examples:
  ebbtide load run oltp_read_write --tables=4 --table-size=500000 --threads=16 --time=60 --report-interval=1
  ebbtide load run oltp_point_select --threads=16 --time=60 --rate=5000

The workloads, what every figure means, and the JSON: docs/load.md, docs/json/load.md";

/// `ebbtide load prepare`.
#[derive(Debug, Args)]
#[command(after_help = PREPARE_EXAMPLE)]
pub(crate) struct PrepareArgs {
    /// The workload that the tables are for; only bulk_insert and oltp_insert have their own needs
    workload: Option<Workload>,
    #[command(flatten)]
    pub(super) server: ServerArgs,
    #[command(flatten)]
    schema: SchemaArgs,
    #[command(flatten)]
    random: RandomArgs,
    /// Connections that load at the same time
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: u32,
}

impl PrepareArgs {
    pub(super) fn options(&self) -> Result<PrepareOptions> {
        if self.threads == 0 {
            return Err(crate::exit::Refusal::usage("--threads=0 loads nothing: give 1 or more").into());
        }
        Ok(PrepareOptions {
            workload: self.workload,
            schema: self.schema.schema(),
            distribution: self.random.distribution(),
            seed: self.random.seed(),
            threads: self.threads,
        })
    }
}

/// `ebbtide load cleanup`.
#[derive(Debug, Args)]
pub(crate) struct CleanupArgs {
    #[command(flatten)]
    pub(super) server: ServerArgs,
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
    /// oltp_point_select, oltp_read_only, oltp_read_write, oltp_write_only, oltp_insert,
    /// oltp_delete, oltp_update_index, oltp_update_non_index, bulk_insert
    workload: Workload,
    #[command(flatten)]
    pub(super) server: ServerArgs,
    #[command(flatten)]
    schema: SchemaArgs,
    #[command(flatten)]
    random: RandomArgs,
    #[command(flatten)]
    mix: MixArgs,
    /// Connections
    #[arg(long, alias = "num-threads", value_name = "N", default_value_t = 1, help_heading = "Run")]
    pub(super) threads: u32,
    /// Seconds to measure; 0 for no limit
    #[arg(long, alias = "max-time", value_name = "S", default_value_t = 10.0, help_heading = "Run")]
    pub(super) time: f64,
    /// Transactions to run; 0 for no limit
    #[arg(long, alias = "max-requests", value_name = "N", default_value_t = 0, help_heading = "Run")]
    events: u64,
    /// Seconds before the measurement, in no figure
    #[arg(long, alias = "warmup_time", value_name = "S", default_value_t = 0, help_heading = "Run")]
    warmup_time: u32,
    /// Transactions a second that arrive, whatever the server does; 0 runs a closed loop
    #[arg(long, alias = "tx-rate", value_name = "N", default_value_t = 0.0, help_heading = "Run")]
    pub(super) rate: f64,
    /// How they arrive: as independent users do (sysbench), or at even intervals
    #[arg(long, value_enum, default_value_t = ArrivalKind::Poisson, help_heading = "Run")]
    arrival: ArrivalKind,
    /// Arrivals that may wait for a connection; further ones are shed and counted
    #[arg(long, value_name = "N", default_value_t = 131_072, help_heading = "Run")]
    backlog: u32,
    /// Seconds that transactions in flight may take after the end; off waits for them
    #[arg(long, value_name = "S|off", default_value = "off", value_parser = parse_grace, help_heading = "Run")]
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
}

impl RunArgs {
    pub(super) fn options(&self) -> Result<RunOptions> {
        let mut options = RunOptions {
            schema: self.schema.schema(),
            mix: self.mix.mix(),
            distribution: self.random.distribution(),
            seed: self.random.seed(),
            connections: self.threads,
            loops: self.loop_threads,
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
            ..RunOptions::new(self.workload)
        };
        let marks = self.ledger_marks;
        options.ledger = self.ledger.clone().map(|path| LedgerOptions { path, marks });
        options.check().map_err(|error| super::refuse(LoadError::Options(error)))?;
        Ok(options)
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
            crate::exit::Refusal::usage(message)
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

/// The server and the account.
#[derive(Debug, Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct ServerArgs {
    /// Hosts; connections take turns [default: the local socket, else 127.0.0.1]
    #[arg(long, alias = "mysql_host", value_name = "LIST", value_delimiter = ',')]
    mysql_host: Vec<String>,
    /// Ports; connections take turns [default: 3306]
    #[arg(long, alias = "mysql_port", value_name = "LIST", value_delimiter = ',')]
    mysql_port: Vec<u16>,
    /// Unix sockets; connections take turns
    #[arg(long, alias = "mysql_socket", value_name = "LIST", value_delimiter = ',')]
    mysql_socket: Vec<PathBuf>,
    /// The account
    #[arg(long, alias = "mysql_user", value_name = "NAME", default_value = DATABASE)]
    mysql_user: String,
    /// Its password
    #[arg(
        long,
        alias = "mysql_password",
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true,
        env = "EBBTIDE_MYSQL_PASSWORD",
        hide_env_values = true
    )]
    mysql_password: String,
    /// The database
    #[arg(long, alias = "mysql_db", value_name = "NAME", default_value = DATABASE)]
    mysql_db: String,
    /// Encrypt
    #[arg(long, alias = "mysql_ssl", value_name = "on|off", default_value = "off", default_missing_value = "on",
        num_args = 0..=1, require_equals = true, value_parser = parse_switch, action = ArgAction::Set)]
    mysql_ssl: bool,
    /// Accept only a certificate that this authority signed (PEM); implies --mysql-ssl
    #[arg(long, alias = "mysql_ssl_ca", value_name = "FILE")]
    mysql_ssl_ca: Option<PathBuf>,
    /// Only for scripts written for sysbench
    #[arg(long, alias = "db_driver", hide = true, default_value = "mysql", value_parser = ["mysql"])]
    db_driver: String,
}

/// Where MySQL and MariaDB put their socket on most systems.
const SOCKETS: [&str; 3] = ["/run/mysqld/mysqld.sock", "/var/lib/mysql/mysql.sock", "/tmp/mysql.sock"];

impl ServerArgs {
    pub(crate) fn target(&self) -> Target {
        let encrypt = self.mysql_ssl || self.mysql_ssl_ca.is_some();
        Target {
            endpoints: self.endpoints(),
            user: self.mysql_user.clone(),
            password: self.mysql_password.clone(),
            database: self.mysql_db.clone(),
            tls: encrypt.then(|| Tls { ca: self.mysql_ssl_ca.clone() }),
        }
    }

    /// Whether anything is said of a server or its account; a password alone may come from the environment.
    pub(crate) fn names_one(&self) -> bool {
        let place = self.mysql_host.is_empty() && self.mysql_port.is_empty() && self.mysql_socket.is_empty();
        let account = self.mysql_user == DATABASE && self.mysql_db == DATABASE;
        !(place && account) || self.mysql_ssl || self.mysql_ssl_ca.is_some()
    }

    /// As the MySQL clients do: sockets first, and no host and no port mean the local socket.
    fn endpoints(&self) -> Vec<Endpoint> {
        if !self.mysql_socket.is_empty() {
            return self.mysql_socket.iter().cloned().map(Endpoint::Unix).collect();
        }
        let local = self.mysql_host.iter().all(|host| host == "localhost") && self.mysql_port.is_empty();
        if local && let Some(socket) = SOCKETS.iter().find(|path| Path::new(path).exists()) {
            return vec![Endpoint::Unix(socket.into())];
        }
        let hosts =
            if self.mysql_host.is_empty() { vec!["127.0.0.1".into()] } else { self.mysql_host.clone() };
        let ports = if self.mysql_port.is_empty() { vec![3306] } else { self.mysql_port.clone() };
        let all = hosts.iter().flat_map(|host| ports.iter().map(move |port| (host.clone(), *port)));
        all.map(|(host, port)| Endpoint::Tcp { host, port }).collect()
    }
}

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
    fn schema(&self) -> Schema {
        Schema {
            tables: self.tables,
            table_size: self.table_size,
            auto_inc: self.auto_inc,
            secondary: self.secondary,
            create_secondary: self.create_secondary,
            engine: self.mysql_storage_engine.clone(),
            create_table_options: self.create_table_options.clone(),
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
        }
    }
}

fn parse_switch(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "on" | "true" | "1" | "yes" | "required" => Ok(true),
        "off" | "false" | "0" | "no" | "disabled" => Ok(false),
        _ => Err("use on or off".into()),
    }
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
        args.options().unwrap()
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
        assert!(options.mix.skip_trx && !options.mix.range_selects && !options.prepared);
        assert_eq!(options.distribution, Distribution::Pareto { h: 0.2 });
        assert_eq!(options.arrival, Arrival::Poisson { per_second: 100.0 });
        assert!(options.ignore_errors.contains(2013) && !options.ignore_errors.contains(1205));
        assert_eq!((options.events, options.duration), (Some(7), None));
    }

    #[test]
    fn without_words_a_run_is_sysbenchs_default_run() {
        let mut options = run_options(&["read_write"]);
        assert_ne!(options.seed, 0);
        options.seed = 1;
        assert_eq!(options, RunOptions::new(Workload::ReadWrite));
    }

    #[test]
    fn sockets_come_first_and_a_port_alone_means_this_machine() {
        let endpoints = |words: &[&str]| {
            let line = Line::try_parse_from([&["load", "cleanup"], words].concat()).unwrap();
            let LoadCommand::Cleanup(args) = line.command else { panic!() };
            args.server.target().endpoints.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(endpoints(&["--mysql-socket=/a,/b", "--mysql-host=x"]), ["/a", "/b"]);
        assert_eq!(endpoints(&["--mysql-port=3307"]), ["127.0.0.1:3307"]);
        assert_eq!(endpoints(&["--mysql-host=a,b", "--mysql-port=1,2"]), ["a:1", "a:2", "b:1", "b:2"]);
    }
}
