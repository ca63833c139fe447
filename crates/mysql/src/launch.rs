//! A server process with everything that is made for it, and how all of it ends.

use std::fs::File;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use ebbtide_proc::process::Stat;
use rustix::process::Signal;

use crate::account::Account;
use crate::cgroup::Cgroup;
use crate::end::{GivenUp, ProcessEnd};
use crate::error::{Cause, CgroupError, ServerError};
use crate::log::{self, Log};
use crate::login::Password;
use crate::options::{self, Options, Task};
use crate::plan::ServerPlan;
use crate::process::{PATH, Process};
use crate::record::{Record, WorkDir};

/// How long a killed server may take to be gone: its I/O in flight has to be answered first, which a
/// throttled volume does late.
const KILL_PATIENCE: Duration = Duration::from_secs(60);
/// Joins the cgroup whose `cgroup.procs` is the first argument and becomes the rest: so the server is
/// inside before it takes any memory.
const JOIN: &str = r#"echo $$ >"$0" && exec "$@""#;

/// A server process that was started, its log, its cgroup, and its work directory.
#[derive(Debug)]
pub(crate) struct Launched {
    process: Process,
    task: Task,
    log: Log,
    options: Options,
    notes: Vec<String>,
    account: Account,
    password: Password,
    left: Leaving,
}

/// What goes when the process has gone.
#[derive(Debug)]
struct Leaving {
    /// Whether the process could not be ended.
    outlived: bool,
    cgroup: Option<Cgroup>,
    work: WorkDir,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        let removed = self.cgroup.as_ref().map_or(Ok(()), Cgroup::remove);
        // What could not be ended or removed stays recorded, for the next run.
        if removed.is_ok() && !self.outlived {
            self.work.forget();
        }
    }
}

impl Launched {
    /// Starts the plan's program on a task; `input` is what it reads.
    pub(crate) fn start(
        plan: &ServerPlan,
        account: &Account,
        task: Task,
        input: Option<File>,
    ) -> Result<Self, ServerError> {
        let work = WorkDir::open(&plan.work, account)?;
        let mut left = Leaving { outlived: false, cgroup: None, work };
        account.check_reach(&left.work.socket())?;
        let options = options::options(plan, &left.work, task)?;
        options::write(&left.work, account, &options.lines)?;
        let password = Password::random().map_err(ServerError::io("read random bytes for a password"))?;
        if task != Task::Initialize {
            left.work.write_login(&password, &plan.binary, account)?;
        }
        let output = left.work.new_log()?;
        let log = Log::of(output.try_clone().map_err(ServerError::io("open the server's log twice"))?);

        let mut record = Record { server: plan.binary.name(), ..Record::default() };
        let mut notes = Vec::new();
        if task != Task::Initialize {
            bound_memory(plan, &mut left, &mut record, &mut notes)?;
        }
        left.work.save(&record)?;

        let mut words = account.words();
        words.extend([plan.binary.path.to_string_lossy().into_owned(), left.work.argument()]);
        words.extend(task_argument(plan, task));
        let command = command(&words, left.cgroup.as_ref(), output, input)?;
        let process = Process::spawn(command).map_err(ServerError::at("start", &plan.binary.path))?;
        let account = account.clone();
        let launched = Self { process, task, log, options, notes, account, password, left };
        record.process = Stat::of(launched.pid()).map(|stat| (launched.pid(), stat.start_ticks));
        launched.left.work.save(&record)?;
        Ok(launched)
    }

    pub(crate) const fn pid(&self) -> u32 {
        self.process.pid()
    }

    pub(crate) const fn log(&self) -> &Log {
        &self.log
    }

    /// As whom it runs.
    pub(crate) const fn account(&self) -> &Account {
        &self.account
    }

    /// The password of its `root`.
    pub(crate) const fn password(&self) -> &Password {
        &self.password
    }

    pub(crate) fn options(&self) -> &[String] {
        &self.options.lines
    }

    /// The lines in which it reports so far that it does not take a setting of the plan as given.
    pub(crate) fn refusals(&self) -> Vec<String> {
        log::refusals(&self.log.lines(), self.options.asked())
    }

    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }

    pub(crate) fn add_notes(&mut self, notes: Vec<String>) {
        self.notes.extend(notes);
    }

    pub(crate) const fn work(&self) -> &WorkDir {
        &self.left.work
    }

    pub(crate) const fn cgroup(&self) -> Option<&Cgroup> {
        self.left.cgroup.as_ref()
    }

    /// How it ended, where it did.
    pub(crate) fn status(&self) -> Option<ExitStatus> {
        self.process.status()
    }

    /// Waits for its end.
    pub(crate) fn wait(&self, timeout: Duration) -> Option<ExitStatus> {
        self.process.wait(timeout)
    }

    /// Asks it to shut down.
    pub(crate) fn terminate(&self) -> Result<(), ServerError> {
        self.process.signal(Signal::TERM).map_err(ServerError::io("ask the server to stop"))
    }

    /// Ends it at once and waits until it is gone.
    pub(crate) fn kill(&self) -> Result<ExitStatus, ServerError> {
        self.process.kill(KILL_PATIENCE).map_err(ServerError::io("end the server"))
    }

    /// The error of a process that has ended while it served; none while it lives.
    pub(crate) fn died(&self) -> Option<ServerError> {
        let end = self.end();
        (end != ProcessEnd::Running).then(|| ServerError::Died {
            end,
            cause: self.cause(),
            log: self.log.evidence(),
        })
    }

    /// How it ended; [`ProcessEnd::Running`] while it did not.
    pub(crate) fn end(&self) -> ProcessEnd {
        let ended = |status| ProcessEnd::of(status, self.process.was_killed(), self.oom_kills());
        self.status().map_or(ProcessEnd::Running, ended)
    }

    fn oom_kills(&self) -> u64 {
        self.cgroup().map_or(0, Cgroup::kills)
    }

    fn cause(&self) -> Option<Cause> {
        if self.oom_kills() > 0 {
            return Some(Cause::Memory);
        }
        log::cause(&self.log.lines())
    }

    /// The error of a process that is given up, unless its end shows more; it is killed when this is dropped.
    pub(crate) fn gave_up(&self, why: GivenUp) -> ServerError {
        self.did_not_start(match self.end() {
            ProcessEnd::Running => ProcessEnd::GivenUp(why),
            end => end,
        })
    }

    /// The error of a process that did not do its task.
    pub(crate) fn did_not_start(&self, end: ProcessEnd) -> ServerError {
        let words = self.refusals();
        if !words.is_empty() {
            return ServerError::SettingRefused { words };
        }
        ServerError::DidNotStart {
            user: self.account.name().to_owned(),
            end,
            initializing: self.task == Task::Initialize,
            cause: self.cause(),
            log: self.log.evidence(),
        }
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        self.left.outlived = self.kill().is_err();
    }
}

/// Why a server's memory cannot be limited here, as far as is seen without limiting it; None where it can be.
#[must_use]
pub fn missing_for_memory_limit() -> Option<CgroupError> {
    Cgroup::missing()
}

/// Makes the memory cgroup that the plan asks for.
fn bound_memory(
    plan: &ServerPlan,
    left: &mut Leaving,
    record: &mut Record,
    notes: &mut Vec<String>,
) -> Result<(), ServerError> {
    let Some(limit_bytes) = plan.memory_bytes else { return Ok(()) };
    let made = Cgroup::find(&group_name()).and_then(|cgroup| {
        record.cgroup = Some(cgroup.clone());
        left.work.save(record).map_err(CgroupError::unrecorded)?;
        // Set before it is made: what was made halfway goes too.
        left.cgroup = Some(cgroup.clone());
        cgroup.make(limit_bytes).map_err(CgroupError::at(cgroup.dir()))
    });
    let Err(why) = made else { return Ok(()) };
    if plan.require_memory {
        return Err(ServerError::Cgroup { limit_bytes, why });
    }
    if let Some(cgroup) = left.cgroup.take() {
        let _ = cgroup.remove();
    }
    record.cgroup = None;
    notes.push(format!("the server's memory and page cache are not bounded: {why}"));
    Ok(())
}

/// A name that no other group has: by process, time and number.
fn group_name() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("ebbtide-{}-{:x}-{number}", std::process::id(), now.as_micros())
}

fn task_argument(plan: &ServerPlan, task: Task) -> Option<String> {
    let word = match (task, plan.binary.is_mariadb()) {
        (Task::Serve { .. }, _) => return None,
        (Task::Initialize, true) => "--bootstrap",
        (Task::Initialize, false) => "--initialize-insecure",
    };
    Some(word.to_owned())
}

/// A command that runs inside a group, where one is given, with nothing of our environment.
pub(crate) fn command(
    words: &[String],
    cgroup: Option<&Cgroup>,
    log: File,
    input: Option<File>,
) -> Result<Command, ServerError> {
    let mut command = match cgroup {
        Some(cgroup) => {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", JOIN]).arg(cgroup.procs_file()).args(words);
            command
        }
        None => {
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]);
            command
        }
    };
    let also = log.try_clone().map_err(ServerError::io("open the server's log twice"))?;
    command.env_clear().env("PATH", PATH).current_dir(Path::new("/"));
    command.stdin(input.map_or_else(Stdio::null, Stdio::from)).stdout(also).stderr(log);
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::WorkPaths;

    fn paths(dir: &Path) -> WorkPaths {
        WorkPaths { dir: dir.join("w"), records: dir.join("records") }
    }

    #[test]
    fn a_server_that_cannot_be_ended_stays_recorded() {
        let dir = tempfile::tempdir().unwrap();
        let account = Account::for_server().unwrap();
        let paths = paths(dir.path());
        for outlived in [true, false] {
            let work = WorkDir::open(&paths, &account).unwrap();
            work.save(&Record { server: "x".into(), ..Record::default() }).unwrap();
            drop(Leaving { outlived, cgroup: None, work });
            assert_eq!(crate::is_recorded(&paths), outlived);
        }
    }

    #[test]
    fn a_server_that_has_ended_when_it_is_given_up_is_judged_by_its_end() {
        for (script, expected) in [
            ("exit 3", ProcessEnd::Exited { code: 3 }),
            ("exec sleep 60", ProcessEnd::GivenUp(GivenUp::WaitsForRoom)),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let work = WorkDir::open(&paths(dir.path()), &Account::for_server().unwrap()).unwrap();
            let log = Log::of(work.new_log().unwrap());
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            let launched = Launched {
                process: Process::spawn(command).unwrap(),
                task: Task::Serve { port: None },
                log,
                options: Options::default(),
                notes: Vec::new(),
                account: Account::for_server().unwrap(),
                password: Password::random().unwrap(),
                left: Leaving { outlived: false, cgroup: None, work },
            };
            if script == "exit 3" {
                launched.wait(Duration::from_secs(10)).unwrap();
            }
            let error = launched.gave_up(GivenUp::WaitsForRoom);
            let ServerError::DidNotStart { end, .. } = error else { panic!("{error:?}") };
            assert_eq!(end, expected);
        }
    }
}
