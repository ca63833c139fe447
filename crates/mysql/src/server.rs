//! A running server.

use std::net::TcpListener;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use ebbtide_load::{Cancel, DATABASE, Endpoint, LoadError, Session, Target};
use ebbtide_proc::process::Stat;

use crate::account::Account;
use crate::cgroup::{Cgroup, MemoryUse};
use crate::end::{GivenUp, ProcessEnd};
use crate::error::{Cause, ServerError};
use crate::launch::Launched;
use crate::log;
use crate::login::USER;
use crate::options::Task;
use crate::plan::ServerPlan;

/// How often it is looked whether a starting server answers, or one that stops has ended.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// How often progress for a start is reported.
const REPORT_EVERY: Duration = Duration::from_secs(2);
/// Free ports that are tried: another program may take one between our look and the server's bind.
const PORTS_TRIED: u32 = 5;

/// A running server; dropping it kills it.
#[derive(Debug)]
pub struct Server {
    launched: Launched,
    target: Target,
    cancel: Cancel,
    /// The last reading of its processor time.
    cpu: Mutex<Duration>,
    ready_after: Duration,
}

impl Server {
    /// Starts a server on directories that [`initialize`](crate::initialize) has made, or on a copy of
    /// them, and waits until it answers. Files that the plan's layout puts elsewhere are moved first.
    ///
    /// # Errors
    /// [`ServerError::DidNotStart`] with the server's own lines; [`ServerError::Cancelled`]; [`ServerError::SettingRefused`] and
    /// [`ServerError::Setting`] also for a setting that the server ignores with nothing but a warning; and
    /// everything that is checked before it is started.
    pub fn start(plan: &ServerPlan, progress: &dyn Fn(&str)) -> Result<Self, ServerError> {
        let account = Account::for_data(&plan.layout.data)?;
        for dir in plan.layout.dirs() {
            account.check_reach(dir)?;
        }
        plan.layout.check_ours(&plan.binary)?;
        plan.layout.check_free()?;
        plan.layout.move_files(&plan.binary)?;
        if let Some(part) = plan.part {
            part.identify(&plan.layout, &plan.binary, &account)?;
        }
        let mut tries = if plan.tcp { PORTS_TRIED } else { 1 };
        loop {
            tries -= 1;
            match Self::try_start(plan, &account, progress) {
                Err(ServerError::DidNotStart { cause: Some(Cause::PortInUse), .. }) if tries > 0 => {}
                started => return started,
            }
        }
    }

    fn try_start(plan: &ServerPlan, account: &Account, progress: &dyn Fn(&str)) -> Result<Self, ServerError> {
        progress(&format!("starting {}", plan.binary.name()));
        let port =
            if plan.tcp { Some(free_port().map_err(ServerError::io("find a free port"))?) } else { None };
        let began = Instant::now();
        let launched = Launched::start(plan, account, Task::Serve { port }, None)?;
        let tcp = port.map(|port| Endpoint::Tcp { host: "127.0.0.1".into(), port });
        let target = Target {
            endpoints: std::iter::once(Endpoint::Unix(launched.work().socket())).chain(tcp).collect(),
            user: USER.into(),
            password: launched.password().text().to_owned(),
            database: DATABASE.into(),
            tls: None,
        };
        let (cancel, cpu) = (plan.cancel.clone(), Mutex::default());
        let mut server = Self { launched, target, cancel, cpu, ready_after: Duration::ZERO };
        let mut session = server.wait_until_ready(plan, progress)?;
        server.ready_after = began.elapsed();
        let words = server.launched.refusals();
        if !words.is_empty() {
            return Err(ServerError::SettingRefused { words });
        }
        let notes = crate::settings::verify(&plan.settings, &plan.binary, &mut session)?;
        server.launched.add_notes(notes);
        Ok(server)
    }

    fn wait_until_ready(&self, plan: &ServerPlan, progress: &dyn Fn(&str)) -> Result<Session, ServerError> {
        let began = Instant::now();
        let mut last_report = began;
        let mut seen = 0;
        loop {
            let refused = match self.session() {
                Ok(session) => return Ok(session),
                Err(ServerError::Session(LoadError::Unreachable { .. })) => None,
                Err(error) => Some(error),
            };
            if self.launched.wait(LOOK_EVERY).is_some() {
                return Err(self.launched.did_not_start(self.launched.end()));
            }
            if plan.cancel.is_cancelled() {
                return Err(ServerError::Cancelled);
            }
            if began.elapsed() > plan.start_timeout {
                let refused = refused.map(|error| error.to_string());
                let seconds = plan.start_timeout.as_secs();
                return Err(self.launched.gave_up(GivenUp::NotReady { seconds, refused }));
            }
            if last_report.elapsed() > REPORT_EVERY {
                last_report = Instant::now();
                let lines = self.launched.log().lines();
                if log::waits_for_room(&lines) {
                    return Err(self.launched.gave_up(GivenUp::WaitsForRoom));
                }
                if lines.len() == seen && log::reports_damage(&lines) {
                    return Err(self.launched.gave_up(GivenUp::NoProgress));
                }
                seen = lines.len();
                let last = lines.last().map_or("", String::as_str);
                progress(&format!("waiting for the server, {} s so far: {last}", began.elapsed().as_secs()));
            }
        }
    }

    /// Its process.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.launched.pid()
    }

    /// How long it took from the start of its program until it answered: on files that a crash left, its
    /// recovery time.
    #[must_use]
    pub const fn ready_after(&self) -> Duration {
        self.ready_after
    }

    /// Where it listens: its socket first, then its port where it has one; user `root` with the password of this start,
    /// database [`DATABASE`] (which is made by the loader of the tables).
    #[must_use]
    pub fn target(&self) -> Target {
        self.target.clone()
    }

    /// A connection through its socket, without a database.
    ///
    /// # Errors
    /// Where it does not answer.
    pub fn session(&self) -> Result<Session, ServerError> {
        Ok(Session::open_without_database(&self.target, &self.target.endpoints[0])?)
    }

    /// Its socket.
    #[must_use]
    pub fn socket(&self) -> std::path::PathBuf {
        self.launched.work().socket()
    }

    /// The option file of clients that run as its user.
    pub(crate) fn client_file(&self) -> std::path::PathBuf {
        self.launched.work().client_file()
    }

    /// The options of a client's command that connects to it: its option file, which root and its user can read, and its
    /// socket.
    #[must_use]
    pub fn client_options(&self) -> [String; 2] {
        [
            format!("--defaults-file={}", self.client_file().display()),
            format!("--socket={}", self.socket().display()),
        ]
    }

    /// As whom it runs.
    pub(crate) const fn account(&self) -> &Account {
        self.launched.account()
    }

    /// Its memory; none where it is not bounded.
    pub(crate) const fn cgroup(&self) -> Option<&Cgroup> {
        self.launched.cgroup()
    }

    /// The option lines that it was started with.
    #[must_use]
    pub fn options(&self) -> &[String] {
        self.launched.options()
    }

    /// What should be known about how it runs: memory that could not be bounded, values that the server
    /// has adjusted.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        self.launched.notes()
    }

    /// The last lines of its log.
    #[must_use]
    pub fn log_tail(&self, lines: usize) -> Vec<String> {
        self.launched.log().tail(lines)
    }

    /// How it ended; [`ProcessEnd::Running`] while it lives.
    #[must_use]
    pub fn end(&self) -> ProcessEnd {
        self.launched.end()
    }

    /// The error of a server that died while it was in use, with its error lines and the end of its log;
    /// none while it lives.
    #[must_use]
    pub fn died(&self) -> Option<ServerError> {
        self.launched.died()
    }

    /// Processor time that it has used so far, by the kernel's clock ticks (10 ms); the last reading once
    /// it has ended.
    #[must_use]
    pub fn cpu_time(&self) -> Duration {
        let mut last = self.cpu.lock().unwrap_or_else(PoisonError::into_inner);
        // A process id that was given back may be another's.
        if self.launched.status().is_none()
            && let Some(stat) = Stat::of(self.pid())
        {
            *last = stat.cpu;
        }
        *last
    }

    /// Memory in use; zeros where it runs without a memory cgroup.
    #[must_use]
    pub fn memory(&self) -> MemoryUse {
        self.launched.cgroup().map(Cgroup::usage).unwrap_or_default()
    }

    /// Asks it to shut down and waits until it is gone.
    ///
    /// # Errors
    /// [`ServerError::DidNotStop`] after `timeout` and [`ServerError::Cancelled`] (it is killed then),
    /// [`ServerError::Died`] where it ended otherwise than cleanly, or before it was asked.
    pub fn stop(self, timeout: Duration) -> Result<(), ServerError> {
        if let Some(died) = self.died() {
            return Err(died);
        }
        self.launched.terminate()?;
        let give_up = Instant::now() + timeout;
        loop {
            match self.launched.wait(LOOK_EVERY) {
                Some(status) if status.success() => return Ok(()),
                Some(_) => return self.died().map_or(Ok(()), Err),
                None if self.cancel.is_cancelled() => {
                    self.launched.kill()?;
                    return Err(ServerError::Cancelled);
                }
                None if Instant::now() < give_up => {}
                None => {
                    self.launched.kill()?;
                    let log = self.launched.log().evidence();
                    return Err(ServerError::DidNotStop { seconds: timeout.as_secs(), log });
                }
            }
        }
    }

    /// Ends it at once while others still hold it, and waits until it is gone.
    ///
    /// # Errors
    /// Where it does not end, because its I/O is not answered.
    pub fn kill_now(&self) -> Result<(), ServerError> {
        self.launched.kill().map(drop)
    }

    /// Ends it at once, as the end of its instance would, and waits until it is gone.
    ///
    /// # Errors
    /// Where it does not end, because its I/O is not answered.
    pub fn kill(self) -> Result<(), ServerError> {
        self.launched.kill().map(drop)
    }
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}
