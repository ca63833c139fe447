//! Runs the divided tests: those that measure one after the other, and beside them at a low priority as many programs as there are
//! lanes. A lane takes the next task when its last one has ended.

use std::{
    collections::VecDeque,
    fs::{self, File},
    io::{self, BufReader, PipeReader, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::{Mutex, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};

use super::division::Job;
use crate::{groups, test_log};

/// How long the output of a program that has ended may stay open: what it started may hold it.
const OPEN: Duration = Duration::from_secs(10);

/// What a lane takes from the queue.
#[derive(Debug)]
pub(super) enum Task {
    Tests(Job),
    /// Commands, one after the other: those that compile would wait for each other's lock.
    Commands(Vec<Step>),
}

/// What a lane has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) took: Duration,
    pub(super) passed: bool,
}

impl Task {
    fn title(&self) -> String {
        match self {
            Self::Tests(job) => format!("{} {}", job.program.name, job.chosen),
            Self::Commands(steps) => steps.iter().map(|step| step.name).collect::<Vec<_>>().join(", "),
        }
    }
}

/// A command whose output goes into a file of its own.
#[derive(Debug)]
pub(super) struct Step {
    /// Name of the file with its output. Where the command fails, there is a file `NAME.failed` too.
    pub(super) name: &'static str,
    pub(super) words: Vec<String>,
}

/// Tasks, and where their output goes.
pub(super) struct Lanes<'a> {
    logs: &'a Path,
    queue: Mutex<VecDeque<Task>>,
    /// Where the output of each program is shown, one after the other.
    terminal: Mutex<Box<dyn Write + Send>>,
}

/// What the lane of the tests that measure is called.
const MEASURING: &str = "measuring";

impl<'a> Lanes<'a> {
    pub(super) fn new(
        logs: &'a Path,
        beside: impl IntoIterator<Item = Task>,
        terminal: impl Write + Send + 'static,
    ) -> Self {
        let queue = Mutex::new(beside.into_iter().collect());
        Self { logs, queue, terminal: Mutex::new(Box::new(terminal)) }
    }

    /// Runs everything.
    pub(super) fn run(&self, measuring: &[Job], lanes: usize) -> Result<Vec<Row>> {
        thread::scope(|scope| {
            let beside = |lane| scope.spawn(move || anyhow::Ok(vec![self.beside(lane)?]));
            let mut running: Vec<_> = (1..=lanes).map(beside).collect();
            running.push(scope.spawn(move || {
                let measured = self.lane(MEASURING, measuring.iter().cloned().map(Task::Tests), "0")?;
                // Now nothing measures any more.
                anyhow::Ok(vec![measured, self.beside(lanes + 1)?])
            }));
            let rows = running.into_iter().map(|lane| lane.join().expect("a lane does not panic"));
            let rows: Result<Vec<Vec<Row>>> = rows.collect();
            let mut rows = rows?.concat();
            rows.sort_by(|a, b| b.name.cmp(&a.name));
            Ok(rows)
        })
    }

    fn beside(&self, lane: usize) -> Result<Row> {
        let next = || self.queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        self.lane(&format!("beside-{lane}"), std::iter::from_fn(next), "19")
    }

    /// Runs tasks one after the other at a priority. Nothing more begins once the end was asked for.
    fn lane(&self, name: &str, tasks: impl Iterator<Item = Task>, nice: &str) -> Result<Row> {
        let began = Instant::now();
        let mut log = Log::open(self.logs.join(name))?;
        let mut passed = true;
        for task in tasks {
            let ran = match &task {
                Task::Tests(job) => self.tests(job, &mut log, nice),
                Task::Commands(steps) => {
                    steps.iter().try_for_each(|step| self.command(step, nice)).map(|()| true)
                }
            };
            if groups::ended_by().is_some() {
                eprintln!("row {name} was ended in {}", task.title());
                break;
            }
            passed &= ran?;
        }
        let took = began.elapsed();
        log.line(&format!("row {name} took {} s", took.as_secs()))?;
        Ok(Row { name: name.to_owned(), took, passed })
    }

    fn tests(&self, job: &Job, log: &mut Log, nice: &str) -> Result<bool> {
        let Job { program, tests, chosen } = job;
        let begin = log.end()?;
        log.line(&format!("     Running {} ({}) {chosen}", program.name, program.path.display()))?;
        let mut command = Command::new("nice");
        command.args(["-n", nice]).arg(&program.path).args(["--show-output", "--test-threads=1"]);
        if let Some(tests) = tests {
            command.arg("--exact").args(tests);
        }
        let status = log.run(command.current_dir(&program.dir))?;
        if !status.success() {
            log.line(&format!("     Ended with status {}", number(status)))?;
        }
        let mut terminal = self.terminal.lock().unwrap_or_else(PoisonError::into_inner);
        test_log::shorten(BufReader::new(log.since(begin)?), &mut *terminal)?;
        Ok(status.success())
    }

    /// Its own check judges how it ended.
    fn command(&self, step: &Step, nice: &str) -> Result<()> {
        let output = File::create(self.logs.join(step.name))?;
        let mut command = Command::new("nice");
        command.args(["-n", nice]).args(&step.words).stdin(Stdio::null());
        let status = groups::run(command.stdout(output.try_clone()?).stderr(output))?;
        if !status.success() {
            fs::write(self.logs.join(format!("{}.failed", step.name)), "")?;
        }
        Ok(())
    }
}

/// As a shell says it.
fn number(status: ExitStatus) -> i32 {
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    status.code().or(signal.map(|signal| 128 + signal)).unwrap_or(1)
}

/// The log of a lane.
struct Log {
    path: PathBuf,
    file: File,
}

impl Log {
    fn open(path: PathBuf) -> Result<Self> {
        let file = File::options().create(true).append(true).open(&path);
        let file = file.with_context(|| format!("cannot open {}", path.display()))?;
        Ok(Self { path, file })
    }

    fn line(&mut self, line: &str) -> io::Result<()> {
        self.file.write_all(format!("{line}\n").as_bytes())
    }

    fn end(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// What was written from a byte on.
    fn since(&self, begin: u64) -> io::Result<impl Read + use<>> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(begin))?;
        Ok(file)
    }

    /// Runs a test program with its output in the log, and the times of its tests.
    fn run(&mut self, command: &mut Command) -> Result<ExitStatus> {
        let (reader, writer) = io::pipe()?;
        command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
        let leader = groups::spawn(command)?;
        // The ends of the pipe that the command keeps would keep it open.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let (ended, end) = mpsc::channel();
        let file = self.file.try_clone()?;
        thread::spawn(move || ended.send(copy(reader, &file)));
        let status = leader.wait()?;
        match end.recv_timeout(OPEN) {
            Ok(copied) => copied?,
            Err(_) => self.line("what the program started still holds its output")?,
        }
        Ok(status)
    }
}

fn copy(reader: PipeReader, log: &File) -> io::Result<()> {
    let began = Instant::now();
    test_log::time(BufReader::new(reader), log, || began.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::Built;
    use std::os::unix::fs::PermissionsExt as _;

    /// A program that prints what the harness would.
    fn job(dir: &Path, name: &str, script: &str) -> Job {
        let path = dir.join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let program = Built { name: name.into(), path, dir: dir.into() };
        Job { program, tests: Some(vec!["a::b".into()]), chosen: "a::".into() }
    }

    #[test]
    fn each_task_runs_once_and_a_failed_program_is_seen_in_its_log() {
        let dir = tempfile::tempdir().unwrap();
        let passing = "echo \"$*\"; echo 'test result: ok. 1 passed; 0 failed; 0 ignored'";
        let measuring = [job(dir.path(), "live", passing)];
        let jobs = [job(dir.path(), "crash", passing), job(dir.path(), "cli", "echo dying; exit 3")];
        let step = |name, word: &str| Step { name, words: vec![word.into()] };
        let steps = Task::Commands(vec![step("clippy", "false"), step("deny", "true")]);
        let lanes = Lanes::new(dir.path(), jobs.map(Task::Tests).into_iter().chain([steps]), io::sink());
        let rows = lanes.run(&measuring, 2).unwrap();
        let names: Vec<_> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["measuring", "beside-3", "beside-2", "beside-1"]);
        assert_eq!(rows.iter().filter(|row| !row.passed).count(), 1, "{rows:?}");

        let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
        let measured = read("measuring");
        assert!(measured.contains("Running live (") && measured.contains("--test-threads=1 --exact a::b"));
        assert!(measured.contains("row measuring took 0 s"), "{measured}");
        let beside = ["beside-1", "beside-2", "beside-3"].map(read).concat();
        let count = |words: &str| beside.matches(words).count();
        assert_eq!((count("Running crash"), count("Running cli"), count("Running live")), (1, 1, 0));
        assert!(beside.contains("dying\n     Ended with status 3\n"), "{beside}");
        let exists = |name: &str| dir.path().join(name).exists();
        assert!(exists("clippy.failed") && exists("deny") && !exists("deny.failed"));
    }

    #[test]
    fn what_a_program_leaves_with_its_output_open_does_not_stop_the_lane() {
        let dir = tempfile::tempdir().unwrap();
        // The rest of its group is killed; what is in a session of its own has left it.
        let script = "sleep 600 & setsid sh -c 'echo $$ >left; exec sleep 600' &\n\
                      while ! [ -s left ]; do sleep 0.01; done; echo done";
        let jobs = [job(dir.path(), "leaves", script)];
        let began = Instant::now();
        assert!(Lanes::new(dir.path(), [], io::sink()).run(&jobs, 1).unwrap().iter().all(|row| row.passed));
        assert!(began.elapsed() < Duration::from_secs(500));
        let left = fs::read_to_string(dir.path().join("left")).unwrap();
        assert!(
            Command::new("kill").arg(left.trim()).status().unwrap().success(),
            "it is of no concern to the lane"
        );
        let log = fs::read_to_string(dir.path().join("measuring")).unwrap();
        assert!(log.contains("done\nwhat the program started still holds its output\n"), "{log}");
    }
}
