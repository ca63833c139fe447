//! What follows from an error while a cut is judged: whether it is evidence of damage, or of nothing.
//!
//! Every decision here is made by types: by how a process ended, by the cause of an error, by the number that the
//! server gave it. None takes a message, so that other words cannot make another verdict.

use ebbtide_device::host::{HostError, ToolCause, ToolError};
use ebbtide_lab::run::error::StepError;
use ebbtide_load::LoadError;
use ebbtide_mysql::recovery::LogEvidence;
use ebbtide_mysql::{Cause, ProcessEnd, ServerError};

use super::error::StintError;

/// What an error is evidence of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Evidence {
    /// Of damaged data.
    Damage,
    /// Of nothing: the cut is not verified.
    Nothing,
}

/// Whether the log of a server reports damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Log {
    /// A line of it reports damaged data.
    ReportsDamage,
    /// A line of it reports a crash of the server inside its own code, and none reports damaged data.
    ReportsCrash,
    /// None does.
    Silent,
}

impl Log {
    /// What was found in a server's log.
    pub(super) const fn of(found: &LogEvidence) -> Self {
        match (found.corruption.is_empty(), found.crash.is_empty()) {
            (false, _) => Self::ReportsDamage,
            (true, false) => Self::ReportsCrash,
            (true, true) => Self::Silent,
        }
    }
}

/// Of a server that was to recover, or had recovered, and is gone or was given up. `end` and `cause`: None where it
/// was never started, or did not end.
pub(super) const fn of_end(end: Option<&ProcessEnd>, cause: Option<&Cause>, log: Log) -> Evidence {
    match (log, end, cause) {
        // What the server itself found counts, whatever ended it afterwards.
        (Log::ReportsDamage, ..) => Evidence::Damage,
        // It crashed or gave up by itself, and neither its file system nor its machine is why.
        (Log::ReportsCrash, _, None | Some(Cause::Corrupt)) => Evidence::Damage,
        (Log::Silent, Some(end), None | Some(Cause::Corrupt)) if end.by_itself() => Evidence::Damage,
        (Log::ReportsCrash | Log::Silent, ..) => Evidence::Nothing,
    }
}

/// Whether a server that was to recover crashed in its own code, without a report of damage. That may be damage that it met,
/// or a fault of its own that does not come again: another start on the same files decides.
pub(super) const fn is_crash(end: Option<&ProcessEnd>, cause: Option<&Cause>, log: Log) -> bool {
    let crashed = match log {
        Log::ReportsDamage => false,
        Log::ReportsCrash => true,
        Log::Silent => matches!(end, Some(ProcessEnd::Signaled { .. })),
    };
    crashed && matches!(of_end(end, cause, log), Evidence::Damage)
}

/// How a server ended, and why as far as it is known; None for every other error of a server.
pub(super) const fn end_of(error: &ServerError) -> (Option<&ProcessEnd>, Option<&Cause>) {
    match error {
        ServerError::DidNotStart { end, cause, .. } | ServerError::Died { end, cause, .. } => {
            (Some(end), cause.as_ref())
        }
        _ => (None, None),
    }
}

/// Of volumes that could not be attached: a file system that its own tools refuse is damaged, unless the host failed
/// what they asked for.
pub(super) fn of_attaching(error: &StepError) -> Evidence {
    match error {
        StepError::Host(
            HostError::Tool(ToolError::Failed { tool: "mount" | "blkid", cause: ToolCause::Refused, .. })
            | HostError::NotBlank { .. },
        ) => Evidence::Damage,
        _ => Evidence::Nothing,
    }
}

/// Of an answer: a server whose tables are valid gives none of these.
pub(super) fn of_answer(error: &StintError) -> Evidence {
    /// `ER_NO_SUCH_TABLE`, `ER_NOT_KEYFILE`, `ER_INDEX_CORRUPT`, `ER_TABLESPACE_MISSING`, `ER_INTERNAL_ERROR`,
    /// `ER_TABLE_CORRUPT`, `ER_NO_SUCH_TABLE_IN_ENGINE`.
    const DAMAGED: [u16; 7] = [1146, 1034, 1712, 1812, 1815, 1877, 1932];
    match error {
        StintError::Step(StepError::Load(LoadError::Tables(_))) => Evidence::Damage,
        StintError::Step(StepError::Load(LoadError::Server { code, .. })) if DAMAGED.contains(code) => {
            Evidence::Damage
        }
        _ => Evidence::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use ebbtide_device::engine::HostFailure;
    use ebbtide_device::request::Command;
    use ebbtide_mysql::GivenUp;

    use super::*;

    /// Words that once decided a verdict, and others.
    const WORDS: [&str; 4] = ["", "signal 9", "mount failed: Cannot allocate memory", "all is well"];

    #[test]
    fn only_a_server_that_ended_by_itself_without_another_cause_shows_damage() {
        let given_up = |why| ProcessEnd::GivenUp(why);
        for (end, cause, expected) in [
            (ProcessEnd::Exited { code: 0 }, None, Evidence::Nothing),
            (ProcessEnd::Exited { code: 1 }, None, Evidence::Damage),
            (ProcessEnd::Exited { code: 1 }, Some(Cause::Corrupt), Evidence::Damage),
            (ProcessEnd::Signaled { signal: 6 }, None, Evidence::Damage),
            (ProcessEnd::Signaled { signal: 11 }, None, Evidence::Damage),
            (ProcessEnd::Signaled { signal: 15 }, None, Evidence::Nothing),
            (ProcessEnd::Exited { code: 1 }, Some(Cause::NoSpace), Evidence::Nothing),
            (ProcessEnd::Exited { code: 1 }, Some(Cause::Memory), Evidence::Nothing),
            (ProcessEnd::OutOfMemory { counted: true }, Some(Cause::Memory), Evidence::Nothing),
            (ProcessEnd::OutOfMemory { counted: false }, None, Evidence::Nothing),
            (ProcessEnd::Killed, None, Evidence::Nothing),
            (given_up(GivenUp::NotReady { seconds: 120, refused: None }), None, Evidence::Nothing),
            (given_up(GivenUp::WaitsForRoom), Some(Cause::NoSpace), Evidence::Nothing),
            (ProcessEnd::Running, None, Evidence::Nothing),
        ] {
            assert_eq!(of_end(Some(&end), cause.as_ref(), Log::Silent), expected, "{end:?}, {cause:?}");
            let reported = of_end(Some(&end), cause.as_ref(), Log::ReportsDamage);
            assert_eq!(reported, Evidence::Damage, "{end:?}, {cause:?}");
            let crashed = of_end(Some(&end), cause.as_ref(), Log::ReportsCrash) == Evidence::Damage;
            assert_eq!(crashed, matches!(cause, None | Some(Cause::Corrupt)), "{end:?}, {cause:?}");
        }
        assert_eq!(of_end(None, None, Log::Silent), Evidence::Nothing);
        let still = ProcessEnd::GivenUp(GivenUp::NoProgress);
        assert_eq!(of_end(Some(&still), Some(&Cause::Corrupt), Log::ReportsDamage), Evidence::Damage);
    }

    #[test]
    fn a_crash_without_a_report_of_damage_is_a_reason_to_start_again_and_nothing_else_is() {
        let signal = |signal| ProcessEnd::Signaled { signal };
        for (end, cause, log, expected) in [
            (signal(11), None, Log::Silent, true),
            (signal(6), None, Log::ReportsCrash, true),
            (ProcessEnd::Exited { code: 2 }, None, Log::ReportsCrash, true),
            (signal(6), None, Log::ReportsDamage, false),
            (signal(6), Some(Cause::NoSpace), Log::ReportsCrash, false),
            (signal(15), None, Log::Silent, false),
            (ProcessEnd::Exited { code: 1 }, None, Log::Silent, false),
            (ProcessEnd::OutOfMemory { counted: true }, Some(Cause::Memory), Log::Silent, false),
        ] {
            assert_eq!(is_crash(Some(&end), cause.as_ref(), log), expected, "{end:?}, {cause:?}, {log:?}");
        }
        assert!(!is_crash(None, None, Log::Silent));
    }

    #[test]
    fn the_words_of_a_servers_error_make_no_verdict() {
        for words in WORDS {
            let log = vec![words.to_owned()];
            let refused = Some(words.to_owned());
            let given_up = ProcessEnd::GivenUp(GivenUp::NotReady { seconds: 1, refused });
            for (end, expected) in [
                (ProcessEnd::Exited { code: 1 }, Evidence::Damage),
                (ProcessEnd::OutOfMemory { counted: false }, Evidence::Nothing),
                (given_up, Evidence::Nothing),
            ] {
                let died = ServerError::Died { end: end.clone(), cause: None, log: log.clone() };
                let not_started = ServerError::DidNotStart {
                    user: "nobody".into(),
                    end,
                    initializing: false,
                    cause: None,
                    log: log.clone(),
                };
                for error in [died, not_started] {
                    let (end, cause) = end_of(&error);
                    assert_eq!(of_end(end, cause, Log::Silent), expected, "{error:?}");
                }
            }
            let stopped = ServerError::DidNotStop { seconds: 1, log };
            assert_eq!(end_of(&stopped), (None, None));
        }
    }

    #[test]
    fn the_words_of_mount_make_no_verdict() {
        let failed = |tool, cause, message: &str| {
            StepError::Host(ToolError::Failed { tool, cause, message: message.to_owned() }.into())
        };
        for words in WORDS {
            for tool in ["mount", "blkid"] {
                let of = |cause| of_attaching(&failed(tool, cause, words));
                assert_eq!(of(ToolCause::Refused), Evidence::Damage, "{tool}: {words}");
                for cause in [
                    ToolCause::OutOfMemory,
                    ToolCause::Busy,
                    ToolCause::Machine,
                    ToolCause::Signaled { signal: 15 },
                ] {
                    assert_eq!(of(cause), Evidence::Nothing, "{tool}, {cause:?}: {words}");
                }
            }
            let StepError::Host(refused) = failed("mount", ToolCause::Refused, words) else { unreachable!() };
            let unread = HostError::HostFailed {
                volume: "image".to_owned(),
                failures: vec![HostFailure { operation: Command::Read, errno: Some(5), count: 3 }],
                source: Box::new(refused),
            };
            assert!(unread.to_string().contains("read failed 3 times: Input/output error"), "{unread}");
            assert_eq!(of_attaching(&StepError::Host(unread)), Evidence::Nothing);
            let elsewhere = failed("xfs_growfs", ToolCause::Refused, words);
            assert_eq!(of_attaching(&elsewhere), Evidence::Nothing);
        }
    }

    #[test]
    fn the_number_of_a_servers_error_decides_whether_a_table_is_damaged_and_its_words_do_not() {
        for words in WORDS {
            for (code, expected) in [(1877, Evidence::Damage), (1205, Evidence::Nothing)] {
                let error = LoadError::Server {
                    code,
                    state: "HY000".to_owned(),
                    message: words.to_owned(),
                    statement: None,
                };
                assert_eq!(of_answer(&error.into()), expected, "{code}: {words}");
            }
            let gone = StintError::ClientsEnded { why: words.to_owned() };
            assert_eq!(of_answer(&gone), Evidence::Nothing);
        }
    }
}
