//! The control socket: how the other commands talk to `ebbtide serve`.
//!
//! One connection carries one request. Both directions are lines of JSON, of the types of
//! [`ebbtide_control::protocol`]: the client sends one `Envelope`, the server answers with a stream of `Reply`.

mod client;
mod server;

use ebbtide_control::protocol::{ExitStatus, RefusedRequest};

use crate::exit::{Exit, Report};

pub(crate) use client::{Answer, answers, ask, ask_if_there, ask_unreported, clear, not_running};
pub(crate) use server::{Completed, Listener, ReplySender, serve_client};

impl From<Exit> for ExitStatus {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Clean => Self::Clean,
            Exit::Finding => Self::Finding,
            Exit::Usage => Self::Usage,
            Exit::Environment => Self::Environment,
            Exit::Invariant => Self::Invariant,
        }
    }
}

impl From<ExitStatus> for Exit {
    fn from(exit: ExitStatus) -> Self {
        match exit {
            ExitStatus::Clean => Self::Clean,
            ExitStatus::Finding => Self::Finding,
            ExitStatus::Usage => Self::Usage,
            ExitStatus::Environment => Self::Environment,
            ExitStatus::Invariant => Self::Invariant,
        }
    }
}

impl From<Report> for RefusedRequest {
    fn from(report: Report) -> Self {
        let Report { exit, chain, hint } = report;
        Self { exit: exit.into(), chain, hint }
    }
}

impl From<RefusedRequest> for Report {
    fn from(refused: RefusedRequest) -> Self {
        let RefusedRequest { exit, chain, hint } = refused;
        Self { exit: exit.into(), chain, hint }
    }
}
