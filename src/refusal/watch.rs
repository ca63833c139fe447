//! What a refusal of `ebbtide-watch` is on the command line: the exit code, and what to do.

use ebbtide_watch::run::RunError;

use super::forecast::Refusable;
use crate::exit::Refusal;

impl Refusable for RunError {
    fn refusal(&self) -> Refusal {
        let environment = Refusal::environment(self.to_string());
        match self {
            Self::NamedTwice { .. } => Refusal::usage(self.to_string()),
            Self::Panicked(_) => Refusal::invariant(self.to_string()),
            Self::Directory { .. } | Self::History { .. } => {
                environment.hint("name another directory with --history, or --history off")
            }
            Self::NoHistory { .. } => {
                environment.hint("ebbtide watch records one; --history DIR names another place")
            }
            Self::Listen { .. } => {
                environment.hint("choose another port for --listen; port 0 takes one that is free")
            }
            _ => environment,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::exit::{Exit, Report};
    use crate::refusal::refused;

    #[test]
    fn a_watch_that_cannot_run_ends_with_the_code_of_its_reason_and_says_the_cause_once() {
        let directory = std::path::PathBuf::from("/h");
        let taken = RunError::Directory { directory, source: io::Error::other("it is a file") };
        let report = Report::of(&refused(taken));
        assert_eq!(report.chain, ["the history in /h cannot be opened", "it is a file"]);
        assert_eq!(report.exit, Exit::Environment);
        assert!(report.hint.is_some_and(|hint| hint.contains("--history off")));
        for (error, exit) in [
            (RunError::NamedTwice { name: "shop".to_owned() }, Exit::Usage),
            (RunError::Panicked("watches"), Exit::Invariant),
            (RunError::Thread(io::Error::other("none")), Exit::Environment),
        ] {
            assert_eq!(Report::of(&refused(error)).exit, exit);
        }
    }
}
