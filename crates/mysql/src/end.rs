//! How a process ended, as a type: what is decided by it is never decided by the words of a message.

use std::fmt;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use rustix::process::Signal;

/// How a server's process ended, or that it did not.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProcessEnd {
    /// It ended with an exit status.
    Exited {
        /// Its exit status, 0 to 255.
        code: i32,
    },
    /// A signal other than 9 ended it, such as 6 where it aborted, or 11 where it used memory that it does not have.
    Signaled {
        /// The signal's number.
        signal: i32,
    },
    /// The kernel killed it for lack of memory: by signal 9, which we did not send and which nobody else sends.
    OutOfMemory {
        /// Whether its memory cgroup counted the kill (`oom_kill`). Otherwise the machine ran out of memory, or a
        /// user killed it.
        counted: bool,
    },
    /// We killed it.
    Killed,
    /// It still ran, and was given up: it is killed then.
    GivenUp(GivenUp),
    /// It runs.
    Running,
}

/// Why a server that still ran was given up.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum GivenUp {
    /// It did not answer in time after its start.
    NotReady {
        /// How long it was waited for, s.
        seconds: u64,
        /// Its last answer, where it answered at all.
        refused: Option<String>,
    },
    /// It had not made its data in time.
    NotInitialized {
        /// How long it was waited for, s.
        seconds: u64,
    },
    /// It waits until its file system has room.
    WaitsForRoom,
    /// Its log reports damaged data, and it goes no further.
    NoProgress,
}

impl ProcessEnd {
    /// The end of a process. `killed_by_us`: we have sent it signal 9. `oom_kills`: how many processes of its cgroup
    /// were killed for lack of memory.
    pub(crate) fn of(status: ExitStatus, killed_by_us: bool, oom_kills: u64) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Exited { code },
            (None, Some(signal)) if signal == Signal::KILL.as_raw() => {
                if killed_by_us && oom_kills == 0 {
                    Self::Killed
                } else {
                    Self::OutOfMemory { counted: oom_kills > 0 }
                }
            }
            (None, signal) => Self::Signaled { signal: signal.unwrap_or(0) },
        }
    }

    /// Whether it ended by itself: with an exit status other than 0, or by a signal that a program raises by what it
    /// does (`SIGILL`, `SIGTRAP`, `SIGABRT`, `SIGBUS`, `SIGFPE`, `SIGSEGV`, `SIGSYS`). A process that was killed, that
    /// another signal ended, that was given up, or that still runs did not; nor did a server with exit status 0, which
    /// is how one ends that was sent `SIGTERM`.
    #[must_use]
    pub const fn by_itself(&self) -> bool {
        match self {
            Self::Exited { code } => *code != 0,
            // The numbers of Linux on x86-64 and ARM64, signal(7).
            Self::Signaled { signal } => matches!(signal, 4 | 5 | 6 | 7 | 8 | 11 | 31),
            _ => false,
        }
    }
}

impl fmt::Display for ProcessEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited { code } => write!(f, "it ended with exit status {code}"),
            Self::Signaled { signal: 6 } => f.write_str("it aborted (signal 6)"),
            Self::Signaled { signal } => write!(f, "it was ended by signal {signal}"),
            Self::OutOfMemory { .. } | Self::Killed => f.write_str("it was killed (signal 9)"),
            Self::GivenUp(why) => why.fmt(f),
            Self::Running => f.write_str("it runs"),
        }
    }
}

impl fmt::Display for GivenUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotReady { seconds, refused: None } => write!(f, "it was not ready after {seconds} s"),
            Self::NotReady { seconds, refused: Some(answer) } => {
                write!(f, "it was not ready after {seconds} s ({answer})")
            }
            Self::NotInitialized { seconds } => {
                write!(f, "making its data was not done after {seconds} s")
            }
            Self::WaitsForRoom => f.write_str("it waits for room"),
            Self::NoProgress => f.write_str("it makes no progress after damaged data"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A status as wait(2) gives it: the exit status in the second byte, the signal in the first.
    fn exited(code: i32) -> ExitStatus {
        ExitStatus::from_raw(code << 8)
    }

    fn signaled(signal: i32) -> ExitStatus {
        ExitStatus::from_raw(signal)
    }

    #[test]
    fn each_end_of_a_process_has_a_type_of_its_own() {
        for (status, killed_by_us, oom_kills, end) in [
            (exited(7), false, 0, ProcessEnd::Exited { code: 7 }),
            (exited(0), true, 0, ProcessEnd::Exited { code: 0 }),
            (exited(1), false, 1, ProcessEnd::Exited { code: 1 }),
            (signaled(6), false, 0, ProcessEnd::Signaled { signal: 6 }),
            (signaled(11), true, 0, ProcessEnd::Signaled { signal: 11 }),
            (signaled(9), false, 0, ProcessEnd::OutOfMemory { counted: false }),
            (signaled(9), false, 2, ProcessEnd::OutOfMemory { counted: true }),
            (signaled(9), true, 1, ProcessEnd::OutOfMemory { counted: true }),
            (signaled(9), true, 0, ProcessEnd::Killed),
        ] {
            let found = ProcessEnd::of(status, killed_by_us, oom_kills);
            assert_eq!(found, end, "{status:?}, killed by us: {killed_by_us}, {oom_kills} kills");
            assert_eq!(
                end.by_itself(),
                matches!(end, ProcessEnd::Exited { code: 1.. } | ProcessEnd::Signaled { .. })
            );
        }
        assert!(!ProcessEnd::of(signaled(15), false, 0).by_itself(), "another process asked it to end");
        for why in [GivenUp::WaitsForRoom, GivenUp::NoProgress, GivenUp::NotInitialized { seconds: 1 }] {
            assert!(!ProcessEnd::GivenUp(why).by_itself());
        }
        assert!(!ProcessEnd::Running.by_itself());
    }

    #[test]
    fn the_end_of_a_process_is_put_into_words() {
        let given_up = |refused: Option<&str>| {
            ProcessEnd::GivenUp(GivenUp::NotReady { seconds: 9, refused: refused.map(str::to_owned) })
        };
        for (end, text) in [
            (ProcessEnd::Exited { code: 7 }, "it ended with exit status 7"),
            (ProcessEnd::Signaled { signal: 6 }, "it aborted (signal 6)"),
            (ProcessEnd::Signaled { signal: 11 }, "it was ended by signal 11"),
            (ProcessEnd::OutOfMemory { counted: true }, "it was killed (signal 9)"),
            (ProcessEnd::Killed, "it was killed (signal 9)"),
            (given_up(None), "it was not ready after 9 s"),
            (given_up(Some("no answer")), "it was not ready after 9 s (no answer)"),
        ] {
            assert_eq!(end.to_string(), text);
        }
    }
}
