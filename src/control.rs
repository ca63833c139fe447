//! The control socket: how the other commands talk to `ebbtide serve`. Its two ends are [`ebbtide_control::socket`]; here what
//! they say is printed, and what goes wrong has an exit code.

use std::io::IsTerminal as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use ebbtide_cloud::ec2::{DEVICE_LINKS, remove_device_links};
use ebbtide_control::protocol::{self, ExitStatus, RefusedRequest, Request};
use ebbtide_control::socket::{self, AskError, BindError, Completed, ReplySender};
use ebbtide_device::host::{self, Home, HomeError};

use crate::answers::{self, Deleted, Stopped};
use crate::exit::{Exit, Refusal, Report};
use crate::text;

pub(crate) use ebbtide_control::socket::Listener;

/// The server's answer.
#[derive(Debug)]
pub(crate) struct Answer {
    /// How this process is to end.
    pub(crate) exit: Exit,
    /// The result, as `--json` prints it.
    pub(crate) value: serde_json::Value,
    /// What the user must know besides, as sentences.
    warnings: Vec<String>,
}

impl Answer {
    /// Prints the warnings on standard error.
    pub(crate) fn note_warnings(&self) {
        note_warnings(&self.warnings);
    }
}

fn note_warnings(warnings: &[String]) {
    warnings.iter().for_each(|warning| text::note(&format!("warning: {warning}")));
}

/// Sends a request to the server of `home`, and shows its progress and its warnings.
///
/// # Errors
/// The server's own refusal; no server (exit code 3), after clearing what a dead one left.
pub(crate) fn ask(home: &Home, request: &Request) -> anyhow::Result<Answer> {
    let answer = ask_unreported(home, request)?;
    answer.note_warnings();
    Ok(answer)
}

/// As [`ask`], for a command that prints something of its own before the warnings.
///
/// # Errors
/// As [`ask`].
pub(crate) fn ask_unreported(home: &Home, request: &Request) -> anyhow::Result<Answer> {
    // A command that is given in a mounted volume would keep the server from unmounting it. Every path in the
    // request is absolute by now.
    let _ = std::env::set_current_dir("/");
    let terminal = std::io::stderr().is_terminal();
    // One status line on a terminal; nothing elsewhere, so that scripts see results alone.
    let mut show = |text: &str| {
        if terminal {
            text::status(text);
        }
    };
    let answered = socket::ask(home, request, &mut show).map_err(|error| refuse(home, error))?;
    Ok(Answer { exit: answered.exit.into(), value: printed(answered.answer), warnings: answered.warnings })
}

/// Whether a server answers within `patience`. That there is a socket shows less: one that was killed
/// has it until its last thread is gone.
pub(crate) fn answers(home: &Home, patience: Duration) -> bool {
    socket::ask_if_there(home, &Request::Ping, patience).is_some()
}

/// The answer of a server that answers within `patience`; None of any other. Nothing is waited for, cleared or reported.
pub(crate) fn ask_if_there(home: &Home, request: &Request, patience: Duration) -> Option<serde_json::Value> {
    socket::ask_if_there(home, request, patience).map(printed)
}

/// An error of the socket with its exit code and its hint. What a dead server has left is cleared before.
fn refuse(home: &Home, error: AskError) -> anyhow::Error {
    let cleared = match &error {
        AskError::NotRunning(lock) | AskError::Ended(Some(lock)) => clear(lock, &text::note),
        _ => Ok(()),
    };
    if let Err(error) = cleared {
        return error;
    }
    match error {
        AskError::NotUtf8(error) => anyhow::Error::new(error).context(Refusal::usage("a path is not UTF-8")),
        AskError::NotRunning(_) => not_running(home.root()).into(),
        AskError::NotListening(error) => {
            let hint = match &error {
                HomeError::Served { pid, .. } => {
                    format!("its control socket is missing or dead: 'kill {pid}' ends it in order")
                }
                _ => "run the command as the owner of the home".to_owned(),
            };
            let refusal = Refusal::environment("the server of this home does not listen").hint(hint);
            anyhow::Error::new(error).context(refusal)
        }
        AskError::Unreachable(error) => anyhow::Error::new(error)
            .context(format!("cannot reach the server at {}", home.socket().display())),
        AskError::Ended(_) => Refusal::environment("the server ended before it answered")
            .hint(format!("see its log, then {}", how_to_start(home.root())))
            .into(),
        AskError::NotUnderstood(error) => {
            anyhow::Error::new(error).context("the server's answer is not understood")
        }
        AskError::Refused { refused, warnings } => {
            note_warnings(&warnings);
            Report::from(refused).into()
        }
    }
}

/// A result, as `--json` prints it.
fn printed(answer: protocol::Answer) -> serde_json::Value {
    use protocol::Answer as A;
    match answer {
        A::Pong(version) => version.into(),
        A::Status(status) => answers::value(&status),
        A::Stopped { home, detached } => answers::value(&Stopped { stopped: &home, detached }),
        A::Volume(view) => answers::value(&view),
        A::Volumes(views) => answers::value(&views),
        A::Detached(view) => answers::value(&view),
        A::Recording(view) => answers::value(&view),
        A::Faults(view) => answers::value(&view),
        A::CrashImage(view) => answers::value(&view),
        A::Calibration(view) => answers::value(&view),
        A::Snapshot(view) => answers::value(&view),
        A::Snapshots(views) => answers::value(&views),
        A::ServerChanged(changed) => answers::value(&changed),
        A::Deleted(name) => answers::value(&Deleted { deleted: &name }),
    }
}

/// Clears what a dead server left, and reports it with `note`.
pub(crate) fn clear(lock: &host::HomeLock, note: &dyn Fn(&str)) -> anyhow::Result<()> {
    let note_cleared =
        |cleared: &[host::Leftover]| cleared.iter().for_each(|left| note(&format!("cleared: {left}")));
    // Before the devices: the kernel gives their names to others.
    if let Err(error) = remove_device_links(lock.home().root()) {
        note(&format!("warning: links to devices of this home may stay in {DEVICE_LINKS}: {error}"));
    }
    match host::clear_leftovers(lock) {
        Ok(cleared) => {
            note_cleared(&cleared);
            Ok(())
        }
        Err(error) => {
            note_cleared(&error.cleared);
            let hint = match error.is_permission() {
                true => "run the command again as root, or as the user who ran the server",
                false => "mend what the message names; the next command tries again",
            };
            let refusal =
                Refusal::environment("cannot clear all that a killed server left behind").hint(hint);
            Err(anyhow::Error::new(error).context(refusal))
        }
    }
}

/// The refusal of a command whose server is missing.
pub(crate) fn not_running(root: &Path) -> Refusal {
    let hint = how_to_start(root);
    Refusal::environment(format!("'ebbtide serve' is not running for {}", root.display())).hint(hint)
}

fn how_to_start(root: &Path) -> String {
    let root = root.display();
    format!(
        "start it with 'ebbtide serve --home {root} --detach', or under systemd with \
         'systemd-run --unit=ebbtide ebbtide serve --home {root}'"
    )
}

/// Listens on the control socket of a home, whose lock the caller holds.
///
/// # Errors
/// Where the socket cannot be made.
pub(crate) fn listen(home: &Home) -> anyhow::Result<Listener> {
    Listener::bind(home).map_err(|error| {
        let refusal = Refusal::environment(format!("cannot listen at {}", home.socket().display()));
        match error {
            BindError::Remove(error) => anyhow::Error::new(error).context(refusal),
            BindError::Listen(error) => {
                let hint = "a socket's path is at most 107 bytes long: choose a shorter --home";
                anyhow::Error::new(error).context(refusal.hint(hint))
            }
            BindError::HomeGone => {
                refusal.hint("the home was deleted or replaced meanwhile: start the server again").into()
            }
        }
    })
}

/// Reads one client's request, has it handled and sends the answer.
pub(crate) fn serve_client(
    stream: &UnixStream,
    handle: impl FnOnce(Request, &ReplySender<'_>) -> anyhow::Result<Completed>,
) {
    socket::serve_client(stream, |request, replies| {
        handle(request, replies).map_err(|error| Report::of(&error).into())
    });
}

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
