//! Processes: starting them so that they end with us, waiting, and signals.

use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ebbtide_proc::process::Stat;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Of a short command's output as much is kept: the help of a server takes 200 KiB.
const OUTPUT_KEPT: u64 = 1 << 20;

/// All that a program sees of our environment: variables can change its settings and its libraries. Wrappers of unpacked
/// servers are shell scripts, which look for their programs here.
pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A command for a program behind the words of the account that it runs as, with nothing of our environment.
pub(crate) fn command_of(words: &[String], program: &Path) -> Command {
    let mut command = match words {
        [] => Command::new(program),
        [first, rest @ ..] => {
            let mut command = Command::new(first);
            command.args(rest).arg(program);
            command
        }
    };
    command.env_clear().env("PATH", PATH).current_dir("/");
    command
}

/// How a process ended, and the wake-up of those who wait for it.
#[derive(Debug, Default)]
struct Ending {
    status: Mutex<Option<ExitStatus>>,
    ended: Condvar,
}

/// A child process, and the thread that it was started from.
///
/// The kernel ends it (see [`super::account::Account::words`]) together with that *thread*, which
/// therefore does nothing but wait for its end.
#[derive(Debug)]
pub(crate) struct Process {
    pid: u32,
    pidfd: OwnedFd,
    ending: Arc<Ending>,
    /// Whether we have killed it.
    killed: AtomicBool,
    waiter: Option<JoinHandle<()>>,
}

impl Process {
    /// Starts a command in a process group of its own, so that the terminal's Ctrl-C does not reach it.
    pub(crate) fn spawn(mut command: Command) -> io::Result<Self> {
        command.process_group(0);
        let ending = Arc::new(Ending::default());
        let (sender, receiver) = mpsc::channel();
        let waiter = std::thread::Builder::new().name("server".into()).spawn({
            let ending = ending.clone();
            move || match start(&mut command) {
                Err(error) => drop(sender.send(Err(error))),
                Ok((mut child, pidfd)) => {
                    let _ = sender.send(Ok((child.id(), pidfd)));
                    let status = child.wait();
                    *ending.status.lock().unwrap_or_else(PoisonError::into_inner) = status.ok();
                    ending.ended.notify_all();
                }
            }
        })?;
        let (pid, pidfd) = receiver.recv().map_err(io::Error::other)??;
        Ok(Self { pid, pidfd, ending, killed: AtomicBool::new(false), waiter: Some(waiter) })
    }

    pub(crate) const fn pid(&self) -> u32 {
        self.pid
    }

    /// How it ended, where it did.
    pub(crate) fn status(&self) -> Option<ExitStatus> {
        *self.ending.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for its end.
    pub(crate) fn wait(&self, timeout: Duration) -> Option<ExitStatus> {
        let status = self.ending.status.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.ending.ended.wait_timeout_while(status, timeout, |status| status.is_none());
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Whether we have sent it signal 9 while it lived.
    pub(crate) fn was_killed(&self) -> bool {
        self.killed.load(Ordering::Relaxed)
    }

    /// Sends a signal; one that has ended needs none.
    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        match pidfd_send_signal(&self.pidfd, signal) {
            Err(rustix::io::Errno::SRCH) => Ok(()),
            sent => Ok(sent?),
        }
    }

    /// Ends it at once and waits until it is gone; I/O in flight has to be answered first.
    pub(crate) fn kill(&self, patience: Duration) -> io::Result<ExitStatus> {
        if self.status().is_none() {
            self.killed.store(true, Ordering::Relaxed);
        }
        self.signal(Signal::KILL)?;
        self.wait(patience).ok_or_else(|| {
            let waited =
                format!("process {} still waits for I/O {} s after its kill", self.pid, patience.as_secs());
            io::Error::new(io::ErrorKind::TimedOut, waited)
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A waiter whose process cannot be killed yet is left to itself.
        if self.status().is_some()
            && let Some(waiter) = self.waiter.take()
        {
            let _ = waiter.join();
        }
    }
}

fn start(command: &mut Command) -> io::Result<(Child, OwnedFd)> {
    let mut child = command.spawn()?;
    let opened = pid_of(child.id()).and_then(|pid| Ok(pidfd_open(pid, PidfdFlags::empty())?));
    match opened {
        Ok(pidfd) => Ok((child, pidfd)),
        Err(error) => {
            child.kill()?;
            child.wait()?;
            Err(error)
        }
    }
}

fn pid_of(pid: u32) -> io::Result<Pid> {
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
    raw.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, format!("{pid} is no process id")))
}

/// What a short command wrote, and whether it succeeded.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) success: bool,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

/// Runs a command that is expected to be short; [`io::ErrorKind::TimedOut`] where it is not.
pub(crate) fn output(mut command: Command, timeout: Duration) -> io::Result<Output> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let (sender, receiver) = mpsc::channel();
    let stdout = child.stdout.take();
    let stderr = child.stderr.take();
    let reader = std::thread::spawn(move || {
        let read = |from: Option<&mut dyn io::Read>| {
            let mut kept = Vec::new();
            if let Some(from) = from {
                let _ = from.take(OUTPUT_KEPT).read_to_end(&mut kept);
            }
            kept
        };
        let (mut stdout, mut stderr) = (stdout, stderr);
        let out = read(stdout.as_mut().map(|pipe| pipe as &mut dyn io::Read));
        // Whoever writes more than is kept gets a closed pipe.
        drop(stdout);
        let err = read(stderr.as_mut().map(|pipe| pipe as &mut dyn io::Read));
        let _ = sender.send((out, err));
    });
    let Ok((stdout, stderr)) = receiver.recv_timeout(timeout) else {
        child.kill()?;
        child.wait()?;
        return Err(io::ErrorKind::TimedOut.into());
    };
    let _ = reader.join();
    Ok(Output { success: child.wait()?.success(), stdout, stderr })
}

/// Kills a process that is not our child, where it still is the one meant, and waits until it is gone.
/// Answers whether there was one.
pub(crate) fn kill_stranger(pid: u32, start_ticks: u64, patience: Duration) -> io::Result<bool> {
    let pidfd = match pid_of(pid).map(|pid| pidfd_open(pid, PidfdFlags::empty())) {
        Ok(Ok(pidfd)) => pidfd,
        _ => return Ok(false),
    };
    // The descriptor holds on to whatever process has the number now; only then is it compared.
    if Stat::of(pid).is_none_or(|stat| stat.start_ticks != start_ticks || stat.zombie) {
        return Ok(false);
    }
    pidfd_send_signal(&pidfd, Signal::KILL)?;
    let deadline = Instant::now() + patience;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&left)) {
            Ok(0) => {
                return Err(io::Error::new(io::ErrorKind::TimedOut, format!("process {pid} does not end")));
            }
            Ok(_) => return Ok(true),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    #[test]
    fn only_the_very_process_that_is_meant_is_killed() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let pid = child.id();
        let start = Stat::of(pid).unwrap().start_ticks;
        let patience = Duration::from_secs(60);
        assert!(!kill_stranger(pid, start + 1, patience).unwrap());
        assert!(child.try_wait().unwrap().is_none(), "it lives");
        assert!(kill_stranger(pid, start, patience).unwrap());
        child.wait().unwrap();
        assert!(!kill_stranger(pid, start, patience).unwrap(), "it is gone");
    }

    #[test]
    fn the_end_of_a_process_is_reported_to_those_who_wait() {
        let mut command = Command::new("sh");
        command.args(["-c", "exit 7"]);
        let process = Process::spawn(command).unwrap();
        let status = process.wait(Duration::from_secs(60)).unwrap();
        assert_eq!(status.code(), Some(7));
        process.signal(Signal::TERM).unwrap();

        let mut command = Command::new("sleep");
        command.arg("600");
        let process = Process::spawn(command).unwrap();
        assert_eq!(process.wait(Duration::from_millis(1)), None);
        assert!(!process.was_killed());
        assert_eq!(process.kill(Duration::from_secs(60)).unwrap().signal(), Some(9));
        assert!(process.was_killed());
    }

    #[test]
    fn a_command_without_an_end_is_ended() {
        let mut command = Command::new("sleep");
        command.arg("600");
        let error = output(command, Duration::from_millis(50)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let endless = output(Command::new("yes"), Duration::from_secs(60)).unwrap();
        assert!(!endless.success && !endless.stdout.is_empty());
    }
}
