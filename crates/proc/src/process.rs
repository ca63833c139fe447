//! Processes: who they are, what they have taken, whether they end.

use std::fs;
use std::path::{Path, PathBuf};
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

/// The words with which a process was started, empty ones left out; None: there is no such process. What is not UTF-8 in
/// them is replaced.
#[must_use]
pub fn words(pid: u32) -> Option<Vec<String>> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words = line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
    Some(words.filter(|word| !word.is_empty()).collect())
}

/// The other processes whose working directory, root or open file has a path that `uses` accepts, by number, with the
/// name of each (at most 15 bytes).
///
/// The paths are read as text, which never touches the file systems that they name: those may be stalled. Processes that
/// may not be read, and those that end meanwhile, are skipped.
#[must_use]
pub fn users(uses: impl Fn(&Path) -> bool) -> Vec<(u32, String)> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let mut users: Vec<(u32, String)> = processes
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let pid = path.file_name()?.to_str()?.parse().ok()?;
            (pid != std::process::id() && links(&path).iter().any(|link| uses(link))).then(|| {
                let name = fs::read_to_string(path.join("comm")).unwrap_or_default();
                (pid, name.trim().to_owned())
            })
        })
        .collect();
    users.sort_unstable();
    users
}

fn links(process: &Path) -> Vec<PathBuf> {
    let single = ["cwd", "root"].map(|name| process.join(name));
    let open = fs::read_dir(process.join("fd")).into_iter().flatten();
    let open = open.filter_map(|entry| Some(entry.ok()?.path()));
    single.into_iter().chain(open).filter_map(|link| fs::read_link(link).ok()).collect()
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

/// The flags (of `open`, `O_DIRECT` among them) with which a process has a file open whose path `is_file` says; None: it has
/// none open, or may not be read. Of several the first is taken.
#[must_use]
pub fn open_flags(pid: u32, is_file: impl Fn(&Path) -> bool) -> Option<u32> {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let file = files.flatten().find(|file| fs::read_link(file.path()).is_ok_and(|path| is_file(&path)))?;
    let info = Path::new("/proc").join(pid.to_string()).join("fdinfo").join(file.file_name());
    let text = fs::read_to_string(info).ok()?;
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"))?;
    u32::from_str_radix(flags.trim(), 8).ok()
}

/// What this process has taken, and what it holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OwnUsage {
    /// Processor time of all its threads, ended ones included.
    pub cpu: Duration,
    /// Resident memory, bytes.
    pub resident_bytes: u64,
    /// When it started, seconds since 1970, to a hundredth.
    pub started_unix_s: f64,
    /// Files, sockets and the like that it has open.
    pub open_files: u64,
}

/// The usage of this process now; None: the kernel does not report it.
#[must_use]
pub fn own_usage() -> Option<OwnUsage> {
    let own = Process::myself().ok()?;
    let stat = Stat::of(std::process::id())?;
    let since_boot_s = stat.start_ticks as f64 / procfs::ticks_per_second() as f64;
    Some(OwnUsage {
        cpu: stat.cpu,
        resident_bytes: own.status().ok()?.vmrss? * 1024,
        started_unix_s: procfs::boot_time_secs().ok()? as f64 + since_boot_s,
        open_files: own.fd_count().ok()? as u64,
    })
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
    fn a_file_is_open_with_the_flags_that_the_kernel_has_of_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().canonicalize().unwrap();
        drop(file.into_temp_path().keep());
        assert_eq!(open_flags(std::process::id(), |open| open == path), None, "nobody has it open");
        let appended = fs::OpenOptions::new().append(true).open(&path).unwrap();
        // O_APPEND and O_WRONLY, as every architecture of Linux but a few old ones has them.
        let flags = open_flags(std::process::id(), |open| open == path).unwrap();
        assert_eq!(flags & 0o2003, 0o2001);
        drop(appended);
        fs::remove_file(path).unwrap();
        assert_eq!(open_flags(u32::MAX, |_| true), None);
    }

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
        assert_eq!(words(child.id()), Some(vec!["sleep".to_owned(), argument.clone()]));
        assert!(open_files(child.id()).is_none_or(|files| files > 0) && swapped(child.id()).is_some());
        let own = Stat::of(std::process::id()).unwrap();
        assert!(own.start_ticks <= stat.start_ticks);
        child.kill().unwrap();
        while !Stat::of(child.id()).unwrap().zombie {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(is_dying(child.id()));
        child.wait().unwrap();
        assert_eq!((Stat::of(child.id()), words(child.id())), (None, None));
        assert!(!is_dying(child.id()) && with_argument(&argument).is_empty());
    }

    #[test]
    fn who_works_in_a_directory_or_has_a_file_open_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap();
        let file = path.join("file");
        fs::write(&file, "").unwrap();
        assert_eq!(users(|link| link.starts_with(&path)), []);
        let mut sleep = Command::new("sleep");
        let mut works = sleep.arg("60").current_dir(&path).spawn().unwrap();
        let mut opens =
            Command::new("sleep").arg("60").stdin(fs::File::open(&file).unwrap()).spawn().unwrap();
        let (in_directory, of_file) = (users(|link| link == path), users(|link| link == file));
        for child in [&mut works, &mut opens] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let numbers = |users: &[(u32, String)]| users.iter().map(|(pid, _)| *pid).collect::<Vec<_>>();
        assert_eq!(numbers(&in_directory), [works.id()], "{in_directory:?}");
        assert_eq!(numbers(&of_file), [opens.id()], "{of_file:?}");
    }

    #[test]
    fn the_usage_of_this_process_has_its_files_and_its_start() {
        let before = own_usage().unwrap();
        let file = fs::File::open("/proc/self/stat").unwrap();
        let after = own_usage().unwrap();
        // Other tests of this process open and close files meanwhile: that of this one is among them.
        assert!(before.open_files > 0 && after.open_files > 0 && after.cpu >= before.cpu);
        drop(file);
        assert!(after.resident_bytes > 1 << 20);
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
        assert!((0.0..3_600.0).contains(&(now - after.started_unix_s + 1.0)), "{after:?}");
        assert_eq!(before.started_unix_s, after.started_unix_s);
    }

    #[test]
    fn this_process_has_memory_and_ignores_the_signals_that_it_is_set_to() {
        assert!(peak_memory().unwrap() > 1 << 20);
        // Rust's runtime ignores SIGPIPE, which is 13; nobody can ignore SIGKILL.
        assert!(ignores(13) && !ignores(9));
    }
}
