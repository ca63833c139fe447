//! Processes: who they are, what they have taken, whether they end.

use std::time::Duration;

use procfs::process::{LimitValue, Process, Status, all_processes};

/// What identifies a process, and what it has taken of the processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// When it started, clock ticks after boot: with the process id, a process's identity.
    pub start_ticks: u64,
    /// Processor time of all its threads, ended ones included.
    pub cpu: Duration,
    /// Whether it has ended and is only not yet reaped.
    pub zombie: bool,
}

impl Stat {
    /// Reads it; None: there is no such process.
    #[must_use]
    pub fn of(pid: u32) -> Option<Self> {
        let stat = open(pid)?.stat().ok()?;
        let ticks = stat.utime + stat.stime;
        Some(Self {
            start_ticks: stat.starttime,
            cpu: Duration::from_millis(ticks * 1000 / procfs::ticks_per_second()),
            zombie: stat.state == 'Z',
        })
    }
}

fn open(pid: u32) -> Option<Process> {
    Process::new(i32::try_from(pid).ok()?).ok()
}

fn own_status() -> Option<Status> {
    Process::myself().ok()?.status().ok()
}

/// Processes that were started with exactly this argument, those excepted that end meanwhile.
#[must_use]
pub fn with_argument(argument: &str) -> Vec<u32> {
    let Ok(all) = all_processes() else { return Vec::new() };
    let has = |process: &Process| {
        process.cmdline().is_ok_and(|words| words.iter().skip(1).any(|word| word == argument))
    };
    all.flatten().filter(has).filter_map(|process| u32::try_from(process.pid()).ok()).collect()
}

/// Whether a process has been killed and is not gone yet; false where there is none.
#[must_use]
pub fn is_dying(pid: u32) -> bool {
    // Signal n is bit n - 1, and SIGKILL is 9.
    const KILL: u64 = 1 << 8;
    let Some(status) = open(pid).and_then(|process| process.status().ok()) else { return false };
    status.state.starts_with(['Z', 'X']) || (status.sigpnd | status.shdpnd) & KILL != 0
}

/// Whether this process ignores a signal, given by its number from 1, as one that `nohup` has started ignores hangups.
#[must_use]
pub fn ignores(signal: u32) -> bool {
    own_status().is_some_and(|status| status.sigign & (1 << (signal - 1)) != 0)
}

/// The name of a process's program, at most 15 bytes; None: there is no such process.
#[must_use]
pub fn name(pid: u32) -> Option<String> {
    Some(open(pid)?.stat().ok()?.comm)
}

/// Memory of a process that is swapped out, bytes; None: there is no such process, or the kernel does not report it.
#[must_use]
pub fn swapped(pid: u32) -> Option<u64> {
    Some(open(pid)?.status().ok()?.vmswap? * 1024)
}

/// How many files a process may have open; None: it has no limit, or may not be read.
#[must_use]
pub fn open_files(pid: u32) -> Option<u64> {
    match open(pid)?.limits().ok()?.max_open_files.soft_limit {
        LimitValue::Value(files) => Some(files),
        LimitValue::Unlimited => None,
    }
}

/// The largest resident memory of this process so far, bytes; None: the kernel does not report it.
#[must_use]
pub fn peak_memory() -> Option<u64> {
    Some(own_status()?.vmhwm? * 1024)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_is_found_by_its_argument_and_distinguished_from_one_that_has_ended() {
        let argument = format!("60.{}", std::process::id());
        let mut child = Command::new("sleep").arg(&argument).spawn().unwrap();
        // Until its own program runs, it has the words of this one.
        let found = || with_argument(&argument).contains(&child.id());
        while !found() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let stat = Stat::of(child.id()).unwrap();
        assert!(!stat.zombie && stat.start_ticks > 0 && !is_dying(child.id()));
        assert_eq!(name(child.id()).as_deref(), Some("sleep"));
        assert!(open_files(child.id()).is_none_or(|files| files > 0) && swapped(child.id()).is_some());
        let own = Stat::of(std::process::id()).unwrap();
        assert!(own.start_ticks <= stat.start_ticks);
        child.kill().unwrap();
        while !Stat::of(child.id()).unwrap().zombie {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(is_dying(child.id()));
        child.wait().unwrap();
        assert_eq!(Stat::of(child.id()), None);
        assert!(!is_dying(child.id()) && with_argument(&argument).is_empty());
    }

    #[test]
    fn this_process_has_memory_and_ignores_the_signals_that_it_is_set_to() {
        assert!(peak_memory().unwrap() > 1 << 20);
        // Rust's runtime ignores SIGPIPE, which is 13; nobody can ignore SIGKILL.
        assert!(ignores(13) && !ignores(9));
    }
}
