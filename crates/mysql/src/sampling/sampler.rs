//! Asks one server, once a second, for as little as it can give.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use ebbtide_load::{LoadError, Session, Target};
use ebbtide_observe::Variables;

use super::collector::{Collector, RESPONSE_TIME_PLUGINS, RESPONSE_TIME_TABLES, response_times};
use super::connection::{Connection, LONGEST_ANSWER, Refusal, is_timeout};
use super::missing::{missing, missing_settings};
use super::reading::{
    Applier, BinaryLogs, CompressedPool, InnodbMetric, PageCompression, Reading, Receiver, ReplicaRow,
    ResponseClass, ResponseTimes, Timed, is_restarted,
};
use super::schedule::{Asked, Schedule};
use crate::status::pairs;

/// A sample that has taken so long asks nothing more. What is left is asked the next time.
const SAMPLE_BUDGET: Duration = Duration::from_secs(1);
/// How long a server that hangs is waited for before another connection is tried: twice as long each time. The machine may be gone, or
/// the server may still be at work for us, and each connection may be one more that hangs.
const FIRST_PATIENCE: Duration = Duration::from_secs(60);
const LONGEST_PATIENCE: Duration = Duration::from_secs(3_600);

/// Why a server could not be sampled.
#[derive(Debug, thiserror::Error)]
pub enum SampleError {
    /// No connection was made.
    #[error("cannot connect to the server")]
    Connect(#[source] LoadError),
    /// The connection has ended.
    #[error("the connection was lost while the server was asked: {statement}")]
    Lost {
        /// The statement.
        statement: String,
        /// What ended it.
        #[source]
        source: LoadError,
    },
    /// The server has not answered yet, and is not asked again.
    #[error(
        "the server has not answered for {} s, and is not asked again until it does: {statement}",
        waits.as_secs()
    )]
    Hangs {
        /// The statement.
        statement: String,
        /// How long it has been waited for.
        waits: Duration,
    },
}

/// Errors with which a server refuses an account: `ER_DBACCESS_DENIED_ERROR`, `ER_ACCESS_DENIED_ERROR`, `ER_HOST_NOT_PRIVILEGED`,
/// `ER_ACCESS_DENIED_NO_PASSWORD_ERROR`, `ER_MUST_CHANGE_PASSWORD_LOGIN`, `ER_ACCOUNT_HAS_BEEN_LOCKED` of MySQL and of MariaDB,
/// `ER_SECURE_TRANSPORT_REQUIRED`.
const LOGIN_REFUSED: [u16; 8] = [1044, 1045, 1130, 1698, 1862, 3118, 4151, 3159];

impl SampleError {
    /// Whether the server is there, and does not let the account in.
    #[must_use]
    pub fn is_login_refused(&self) -> bool {
        match self {
            Self::Connect(LoadError::Server { code, .. }) => LOGIN_REFUSED.contains(code),
            Self::Connect(error) => {
                matches!(error, LoadError::Authentication { .. } | LoadError::ClearPassword { .. })
            }
            Self::Lost { .. } | Self::Hangs { .. } => false,
        }
    }

    /// Whether the server has not answered in time, and may still be at work.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        match self {
            Self::Connect(source) | Self::Lost { source, .. } => is_timeout(source),
            Self::Hangs { .. } => true,
        }
    }

    /// Whether the connection has ended, and no answer is outstanding on it.
    fn is_ended_connection(&self) -> bool {
        matches!(self, Self::Lost { source, .. } if !is_timeout(source))
    }
}

/// What became of a call of [`ServerSampler::sample`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampled {
    /// The server was asked what was due.
    Taken,
    /// Nothing was asked: the server was slow, or not there.
    Rests {
        /// When it is asked again.
        until: Duration,
    },
}

/// Samples a server that may be anyone's. Nothing of it is changed; it is asked over one connection, one statement at a time.
#[derive(Debug)]
pub struct ServerSampler {
    target: Target,
    connection: Option<Connection>,
    hanging: Option<Hanging>,
    patience: Duration,
    schedule: Schedule,
    refused: BTreeMap<Collector, Refusal>,
    uptime: Option<Timed<u64>>,
    /// Whether the uptime was not read yet over this connection. A connection that has lasted is proof that the server was not started
    /// again, whatever its clock says.
    is_new_connection: bool,
    reading: Reading,
}

/// A connection that an answer is outstanding on.
#[derive(Debug)]
struct Hanging {
    connection: Connection,
    statement: String,
    since: Duration,
}

/// The time of the caller's clock within a sample.
#[derive(Debug, Clone, Copy)]
struct SampleClock {
    began: Duration,
    started: Instant,
}

impl SampleClock {
    fn now(self) -> Duration {
        self.began + self.started.elapsed()
    }
}

impl ServerSampler {
    /// A sampler of the first endpoint of `target`. It does not connect yet.
    #[must_use]
    pub fn new(target: Target) -> Self {
        Self {
            target,
            connection: None,
            hanging: None,
            patience: FIRST_PATIENCE,
            schedule: Schedule::new(),
            refused: BTreeMap::new(),
            uptime: None,
            is_new_connection: true,
            reading: Reading::default(),
        }
    }

    /// What is known of the server.
    #[must_use]
    pub const fn reading(&self) -> &Reading {
        &self.reading
    }

    /// Asks the server what is due at `now`, the time since any moment that stays the same; it must not run backwards. It is meant to
    /// be called each second, and decides itself what is asked: a server whose sample took over 100 ms is left alone for ten times as
    /// long, and one that is not there is tried after 1 s, then after twice as long, up to a minute. One that refuses the login is
    /// tried after 10 minutes, then after twice as long, up to an hour. A connection that has ended since the last sample is made again
    /// once before that is an error.
    ///
    /// The call blocks for 5 s at most while a statement is answered, and for 40 s at most while a connection is made.
    ///
    /// # Errors
    /// A server that is not reached, is lost, or hangs. What was known of it is kept.
    pub fn sample(&mut self, now: Duration) -> Result<Sampled, SampleError> {
        if let Some(until) = self.schedule.rest(now) {
            self.reading.cost.skipped += 1;
            return Ok(Sampled::Rests { until });
        }
        let clock = SampleClock { began: now, started: Instant::now() };
        if let Err(error) = self.wait_for_hanging(now) {
            self.reading.cost.skipped += 1;
            return Err(error);
        }
        let had_connection = self.connection.is_some();
        let mut asked = self.ask_what_is_due(clock);
        // A connection that idled may have been ended by the server or by a machine between: that is no fault of a server that takes
        // another one.
        if had_connection && asked.as_ref().is_err_and(SampleError::is_ended_connection) {
            self.add_cost();
            self.connection = None;
            asked = self.ask_what_is_due(clock);
        }
        self.add_cost();
        let end = clock.now();
        match asked {
            Ok(()) => {
                self.reading.up = true;
                self.reading.cost.samples += 1;
                self.patience = FIRST_PATIENCE;
                self.schedule.sampled(end, end - now);
                let connection = self.connection.as_ref();
                let account = connection.map_or("", |connection| connection.account.as_str());
                self.reading.missing = missing(&self.reading, &self.refused, account);
                let settings = connection.map(|connection| missing_settings(&connection.refused_settings));
                self.reading.missing.extend(settings.unwrap_or_default());
                Ok(Sampled::Taken)
            }
            Err(error) => {
                self.reading.up = false;
                self.reading.cost.skipped += 1;
                self.leave(&error, end);
                match &error {
                    _ if error.is_login_refused() => self.schedule.login_refused(end),
                    SampleError::Lost { .. } if error.is_timeout() => {
                        self.schedule.timed_out(end, LONGEST_ANSWER);
                    }
                    _ => self.schedule.lost(end),
                }
                Err(error)
            }
        }
    }

    /// Ends the connection, or keeps it where an answer is outstanding on it.
    fn leave(&mut self, error: &SampleError, now: Duration) {
        let connection = self.connection.take();
        if let (Some(connection), SampleError::Lost { statement, source }) = (connection, error)
            && is_timeout(source)
        {
            self.hanging = Some(Hanging { connection, statement: statement.clone(), since: now });
        }
    }

    /// Waits for a server that works for us still: a second connection would be one more that hangs.
    fn wait_for_hanging(&mut self, now: Duration) -> Result<(), SampleError> {
        let Some(hanging) = &mut self.hanging else { return Ok(()) };
        let waits = now.saturating_sub(hanging.since);
        if waits < self.patience && hanging.connection.is_silent() {
            return Err(SampleError::Hangs { statement: hanging.statement.clone(), waits });
        }
        if waits >= self.patience {
            self.patience = (self.patience * 2).min(LONGEST_PATIENCE);
        }
        self.hanging = None;
        Ok(())
    }

    fn ask_what_is_due(&mut self, clock: SampleClock) -> Result<(), SampleError> {
        if self.connection.is_none() {
            self.connect()?;
        }
        let asking = Instant::now();
        for collector in self.schedule.due(clock.began) {
            self.run(collector, clock)?;
            if asking.elapsed() > SAMPLE_BUDGET {
                break;
            }
        }
        Ok(())
    }

    fn connect(&mut self) -> Result<(), SampleError> {
        let started = Instant::now();
        let connection = Connection::open(&self.target).map_err(SampleError::Connect)?;
        self.reading.connect_time = started.elapsed();
        let found = (Some(connection.maker), connection.release);
        if self.reading.maker.is_some() && (self.reading.maker, self.reading.release) != found {
            self.begin_run();
        }
        (self.reading.maker, self.reading.release) = found;
        self.connection = Some(connection);
        self.is_new_connection = true;
        Ok(())
    }

    /// The server was started again, or another one took its place: nothing that was known of it holds.
    fn begin_run(&mut self) {
        self.reading.run += 1;
        self.uptime = None;
        self.refused.clear();
        for collector in Collector::ALL {
            self.forget(collector);
        }
    }

    /// Runs a collector, and notes when it is due again.
    fn run(&mut self, collector: Collector, clock: SampleClock) -> Result<(), SampleError> {
        if !self.is_wanted(collector) {
            self.forget(collector);
            self.refused.remove(&collector);
            self.reading.collectors.remove(&collector);
            self.schedule.asked(collector, clock.began, Asked::Nothing);
            return Ok(());
        }
        let started = Instant::now();
        let answer = match collector {
            Collector::Replica => self.ask_replica(clock)?,
            Collector::ResponseTimes => self.ask_response_times(clock)?,
            _ => self.ask_rows(collector, clock)?,
        };
        let run = self.reading.collectors.entry(collector).or_default();
        run.took = started.elapsed();
        run.success = answer.is_ok();
        let became = match answer {
            Ok(became) => {
                self.refused.remove(&collector);
                became
            }
            Err(refusal) => {
                run.refusals += 1;
                self.refused.insert(collector, refusal);
                self.forget(collector);
                Asked::Refused
            }
        };
        self.schedule.asked(collector, clock.began, became);
        Ok(())
    }

    /// Whether a server has what a collector asks for: what it does not know is not asked.
    fn is_wanted(&self, collector: Collector) -> bool {
        let variable = |name: &str| {
            let variables = self.reading.variables.as_ref().map(|variables| &variables.value);
            variables
                .and_then(|variables| variables.get(name))
                .is_some_and(|word| word.eq_ignore_ascii_case("on") || word == "1")
        };
        match collector {
            Collector::BinaryLogs => variable("log_bin"),
            Collector::ResponseTimes => variable("query_response_time_stats"),
            Collector::Appliers | Collector::Receivers => {
                let replica = self.reading.replica.as_ref();
                self.statement(collector).is_some()
                    && variable("performance_schema")
                    && replica.is_some_and(|replica| !replica.value.is_empty())
            }
            _ => self.statement(collector).is_some(),
        }
    }

    fn statement(&self, collector: Collector) -> Option<&'static str> {
        collector.statement(self.reading.maker?, self.reading.release)
    }

    fn ask<T>(
        &mut self,
        sql: &str,
        read: impl FnOnce(&mut Session, &str) -> Result<T, LoadError>,
    ) -> Result<Result<T, Refusal>, SampleError> {
        let connection = self.connection.as_mut().expect("a sample begins with a connection");
        let lost = |source| SampleError::Lost { statement: sql.to_owned(), source };
        connection.ask(sql, read).map_err(lost)
    }

    fn ask_rows(
        &mut self,
        collector: Collector,
        clock: SampleClock,
    ) -> Result<Result<Asked, Refusal>, SampleError> {
        let statement = self.statement(collector).expect("it is wanted");
        let rows = match self.ask(statement, Session::rows)? {
            Ok(rows) => rows,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let became = if rows.is_empty() { Asked::Nothing } else { Asked::Rows };
        let time = clock.now();
        let reading = &mut self.reading;
        match collector {
            Collector::Status => self.keep_status(Timed { at: time, value: pairs(rows) }),
            Collector::Variables => self.keep_variables(Timed { at: time, value: pairs(rows) }),
            Collector::Appliers => {
                let value = rows.iter().map(|row| Applier::read(row)).collect();
                reading.appliers = Some(Timed { at: time, value });
            }
            Collector::Receivers => {
                let value = rows.iter().map(|row| Receiver::read(row)).collect();
                reading.receivers = Some(Timed { at: time, value });
            }
            Collector::InnodbMetrics => {
                let value = rows.iter().filter_map(|row| InnodbMetric::read(row)).collect();
                reading.innodb_metrics = Some(Timed { at: time, value });
            }
            Collector::PageCompression => {
                let value = rows.iter().filter_map(|row| PageCompression::read(row)).collect();
                reading.page_compression = Some(Timed { at: time, value });
            }
            Collector::CompressedPool => {
                let value = rows.iter().filter_map(|row| CompressedPool::read(row)).collect();
                reading.compressed_pool = Some(Timed { at: time, value });
            }
            Collector::BinaryLogs => {
                reading.binary_logs = Some(Timed { at: time, value: BinaryLogs::read(&rows) });
            }
            Collector::Replica | Collector::ResponseTimes => unreachable!("they have calls of their own"),
        }
        Ok(Ok(became))
    }

    fn ask_replica(&mut self, clock: SampleClock) -> Result<Result<Asked, Refusal>, SampleError> {
        let statement = self.statement(Collector::Replica).expect("it is wanted");
        let rows: Vec<ReplicaRow> = match self.ask(statement, Session::named_rows)? {
            Ok(rows) => rows,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let became = if rows.is_empty() { Asked::Nothing } else { Asked::Rows };
        self.reading.replica = Some(Timed { at: clock.now(), value: rows });
        Ok(Ok(became))
    }

    fn ask_response_times(&mut self, clock: SampleClock) -> Result<Result<Asked, Refusal>, SampleError> {
        let plugins = match self.ask(RESPONSE_TIME_PLUGINS, Session::rows)? {
            Ok(plugins) => plugins,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let plugins: Vec<String> = plugins.into_iter().flatten().flatten().collect();
        let mut times = Vec::new();
        for table in RESPONSE_TIME_TABLES {
            if !plugins.iter().any(|plugin| plugin.eq_ignore_ascii_case(table)) {
                continue;
            }
            let rows = match self.ask(&response_times(table), Session::rows)? {
                Ok(rows) => rows,
                Err(refusal) => return Ok(Err(refusal)),
            };
            let classes = rows.iter().filter_map(|row| ResponseClass::read(row)).collect();
            times.push(ResponseTimes { table: table.to_owned(), classes });
        }
        let became = if times.is_empty() { Asked::Nothing } else { Asked::Rows };
        self.reading.response_times = Some(Timed { at: clock.now(), value: times });
        Ok(Ok(became))
    }

    fn keep_status(&mut self, status: Timed<Variables>) {
        let uptime = status.value.get("uptime").and_then(|seconds| seconds.parse().ok());
        if let Some(value) = uptime {
            let uptime = Timed { at: status.at, value };
            let is_new_connection = std::mem::take(&mut self.is_new_connection);
            if is_new_connection && self.uptime.as_ref().is_some_and(|before| is_restarted(before, &uptime)) {
                self.begin_run();
                self.schedule.renew(status.at);
            }
            self.uptime = Some(uptime);
        }
        self.reading.status = Some(status);
    }

    fn keep_variables(&mut self, variables: Timed<Variables>) {
        let identity = |variables: &Variables| {
            ["server_uuid", "hostname", "port", "datadir"].map(|name| variables.get(name).map(str::to_owned))
        };
        let before = self.reading.variables.as_ref().map(|before| identity(&before.value));
        if before.is_some_and(|before| before != identity(&variables.value)) {
            // The status that was read before may be the other server's.
            self.begin_run();
            self.schedule.renew(variables.at);
        }
        self.reading.variables = Some(variables);
    }

    fn forget(&mut self, collector: Collector) {
        let reading = &mut self.reading;
        match collector {
            Collector::Status => reading.status = None,
            Collector::Variables => reading.variables = None,
            Collector::Replica => reading.replica = None,
            Collector::Appliers => reading.appliers = None,
            Collector::Receivers => reading.receivers = None,
            Collector::InnodbMetrics => reading.innodb_metrics = None,
            Collector::PageCompression => reading.page_compression = None,
            Collector::CompressedPool => reading.compressed_pool = None,
            Collector::ResponseTimes => reading.response_times = None,
            Collector::BinaryLogs => reading.binary_logs = None,
        }
    }

    fn add_cost(&mut self) {
        let Some(connection) = &mut self.connection else { return };
        let spent = connection.take_cost();
        let cost = &mut self.reading.cost;
        cost.statements += spent.statements;
        cost.seconds += spent.seconds;
        cost.bytes += spent.bytes;
        cost.connections += spent.connections;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_login_a_server_that_hangs_and_one_that_is_gone_are_told_apart() {
        let server =
            |code| LoadError::Server { code, state: "28000".into(), message: "m".into(), statement: None };
        let broken = |kind: std::io::ErrorKind| LoadError::Broken { during: "x", source: kind.into() };
        let lost = |source| SampleError::Lost { statement: "s".into(), source };
        let slow = || broken(std::io::ErrorKind::TimedOut);
        for (error, refused, timeout) in [
            (SampleError::Connect(server(1045)), true, false),
            (SampleError::Connect(server(1040)), false, false),
            (SampleError::Connect(slow()), false, true),
            (lost(slow()), false, true),
            (lost(broken(std::io::ErrorKind::UnexpectedEof)), false, false),
            (SampleError::Hangs { statement: "s".into(), waits: Duration::from_secs(9) }, false, true),
        ] {
            assert_eq!((error.is_login_refused(), error.is_timeout()), (refused, timeout), "{error}");
        }
    }

    fn sampler() -> ServerSampler {
        ServerSampler::new(Target {
            endpoints: Vec::new(),
            user: String::new(),
            password: String::new(),
            database: String::new(),
            tls: None,
        })
    }

    #[test]
    fn a_clock_that_is_set_back_is_no_restart_while_the_connection_lasts() {
        let mut sampler = sampler();
        let mut read = |second: u64, uptime: u64, is_new_connection: bool| {
            sampler.is_new_connection = is_new_connection;
            let value = [("uptime", uptime.to_string())].into_iter().collect();
            sampler.keep_status(Timed { at: Duration::from_secs(second), value });
            sampler.reading().run
        };
        let runs = [
            read(0, 5_000, true),
            read(1, 1_401, false),
            read(2, 1_402, false),
            // It ended, and the server has gone on.
            read(9, 1_409, true),
            read(20, 3, true),
        ];
        assert_eq!(runs, [0, 0, 0, 0, 1]);
    }

    #[test]
    fn a_connection_that_ended_is_told_from_one_that_an_answer_is_outstanding_on() {
        let lost = |kind: std::io::ErrorKind| SampleError::Lost {
            statement: "s".into(),
            source: LoadError::Broken { during: "x", source: kind.into() },
        };
        assert!(lost(std::io::ErrorKind::UnexpectedEof).is_ended_connection());
        assert!(!lost(std::io::ErrorKind::TimedOut).is_ended_connection());
    }

    #[test]
    fn a_server_that_is_not_there_is_an_error_and_is_tried_again_after_a_pause() {
        let dir = tempfile::tempdir().unwrap();
        let target = Target {
            endpoints: vec![ebbtide_load::Endpoint::Unix(dir.path().join("no-socket"))],
            user: "u".into(),
            password: String::new(),
            database: "d".into(),
            tls: None,
        };
        let mut sampler = ServerSampler::new(target);
        let error = sampler.sample(Duration::ZERO).unwrap_err();
        assert!(matches!(error, SampleError::Connect(_)), "{error}");
        assert!(!error.is_login_refused() && !sampler.reading().up);
        assert!(matches!(sampler.sample(Duration::from_millis(500)), Ok(Sampled::Rests { .. })));
        assert!(sampler.sample(Duration::from_secs(2)).is_err());
        let cost = sampler.reading().cost;
        assert_eq!((cost.skipped, cost.samples, cost.statements), (3, 0, 0));
    }
}
