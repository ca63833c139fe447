//! One run of a test program: its output in a file, a limit on its time, and an end of all that it started.

use std::{
    fs::File,
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process_group};

use super::programs::Program;

/// How often a running test is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// By itself, with this exit status.
    Status(i32),
    /// By a signal.
    Signal(i32),
    /// It was killed because it took longer than its limit.
    TimeLimit(Duration),
    /// It was killed because the user asked twice for the end.
    Interrupted,
}

impl From<ExitStatus> for End {
    fn from(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Status(code),
            (None, signal) => Self::Signal(signal.unwrap_or_default()),
        }
    }
}

/// Runs tests of a program by their exact names, one at a time, with everything that is printed in `log`.
pub(super) fn run(
    program: &Program,
    tests: &[&str],
    log: &Path,
    limit: Duration,
    signals: &AtomicUsize,
) -> Result<End> {
    let output = File::create(log).with_context(|| format!("cannot create {}", log.display()))?;
    let errors = output.try_clone().context("cannot share the log")?;
    let mut child = Command::new(&program.path)
        .args(["--show-output", "--test-threads=1", "--exact"])
        .args(tests)
        .current_dir(&program.dir)
        .env("CARGO_MANIFEST_DIR", &program.dir)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        // Ctrl-C is for us alone.
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot run {}", program.path.display()))?;
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for a test program")? {
            return Ok(status.into());
        }
        let end = if began.elapsed() > limit {
            End::TimeLimit(limit)
        } else if signals.load(Ordering::Relaxed) > 1 {
            End::Interrupted
        } else {
            sleep(LOOK);
            continue;
        };
        kill(&mut child);
        return Ok(end);
    }
}

fn kill(child: &mut Child) {
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    let _ = child.wait();
}
