//! Processes in process groups of their own, all of which end when this process is asked to end.
//!
//! A shell leaves what runs in its background behind, or hides Ctrl-C from it. Here each process is the leader of a group, so that
//! what it has started ends with it.

use std::{
    io,
    os::unix::process::CommandExt as _,
    process::{Child, Command, ExitStatus},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicI32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::Signals,
};

/// How long a group may take to end before it is killed. `.ci/run` waits a minute for all of it.
const GRACE: Duration = Duration::from_secs(10);

static GROUPS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// From now on SIGINT, SIGTERM and SIGHUP end the groups and not this process, which ends by itself when it sees [`ended_by`].
pub(crate) fn end_with_signals() -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot handle signals")?;
    thread::spawn(move || {
        for signal in &mut signals {
            end_all(signal);
        }
    });
    Ok(())
}

/// The signal that asked for the end.
pub(crate) fn ended_by() -> Option<i32> {
    Some(SIGNAL.load(Ordering::SeqCst)).filter(|signal| *signal != 0)
}

fn groups() -> std::sync::MutexGuard<'static, Vec<Pid>> {
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends every group: at first it is asked to, then it is killed.
fn end_all(signal: i32) {
    SIGNAL.store(signal, Ordering::SeqCst);
    let began = Instant::now();
    let mut sent = Signal::TERM;
    loop {
        let left = groups().clone();
        for group in &left {
            // Its processes may be gone already.
            let _ = kill_process_group(*group, sent);
        }
        if left.is_empty() {
            return;
        }
        while began.elapsed() < GRACE && !groups().is_empty() {
            thread::sleep(Duration::from_millis(20));
        }
        thread::sleep(Duration::from_millis(20));
        sent = Signal::KILL;
    }
}

/// A process that leads a group.
#[derive(Debug)]
pub(crate) struct Leader {
    child: Child,
    group: Pid,
}

/// Starts a process as the leader of a group.
///
/// # Errors
/// Where it cannot start, and once the end was asked for.
pub(crate) fn spawn(command: &mut Command) -> io::Result<Leader> {
    // With the lock held: a group that starts while all are ended must not be forgotten.
    let mut groups = groups();
    if ended_by().is_some() {
        return Err(io::Error::new(io::ErrorKind::Interrupted, "the end was asked for"));
    }
    let child = command.process_group(0).spawn()?;
    let group = Pid::from_child(&child);
    groups.push(group);
    Ok(Leader { child, group })
}

impl Leader {
    /// Waits for the process, and kills what it leaves of its group.
    pub(crate) fn wait(mut self) -> io::Result<ExitStatus> {
        // The leader is still there as a zombie, so that no other group can have its number.
        loop {
            match waitid(WaitId::Pid(self.group), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
                Err(rustix::io::Errno::INTR) => {}
                ended => {
                    ended?;
                    break;
                }
            }
        }
        let _ = kill_process_group(self.group, Signal::KILL);
        let mut groups = groups();
        let status = self.child.wait();
        groups.retain(|group| *group != self.group);
        status
    }
}

/// Runs a process in a group of its own to its end.
pub(crate) fn run(command: &mut Command) -> io::Result<ExitStatus> {
    spawn(command)?.wait()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    #[test]
    fn what_a_process_leaves_of_its_group_ends_with_it() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 600 & echo $!"]).stdout(Stdio::piped());
        let mut leader = spawn(&mut shell).unwrap();
        let output = leader.child.stdout.take().unwrap();
        let left = io::read_to_string(output_of_first_line(output)).unwrap();
        assert!(leader.wait().unwrap().success());
        let pid = Pid::from_raw(left.trim().parse().unwrap()).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while lives(pid) {
            assert!(Instant::now() < deadline, "the process that was left still runs");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// The first line: `sleep` keeps the pipe open.
    fn output_of_first_line(output: impl io::Read) -> io::Cursor<String> {
        let mut line = String::new();
        io::BufRead::read_line(&mut io::BufReader::new(output), &mut line).unwrap();
        io::Cursor::new(line)
    }

    fn lives(pid: Pid) -> bool {
        let stat =
            std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
    }

    #[test]
    fn a_process_that_was_killed_is_no_success() {
        let status = run(Command::new("sh").args(["-c", "kill -9 $$"])).unwrap();
        assert!(!status.success());
    }
}
