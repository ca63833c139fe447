//! The client's side of the control socket.

use std::io::{BufRead as _, BufReader, ErrorKind, IsTerminal as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use ebbtide_cloud::ec2::{DEVICE_LINKS, remove_device_links};
use ebbtide_device::host::{self, Home, HomeError};

use super::{Envelope, Reply, Request, VERSION};
use crate::exit::{Exit, Refusal};
use crate::text;

/// How long a server that holds the home may take until it listens: it may be clearing what its
/// predecessor left, or opening a large store.
const STARTING: Duration = Duration::from_secs(20);

/// The server's answer.
#[derive(Debug)]
pub(crate) struct Answer {
    /// How this process is to end.
    pub(crate) exit: Exit,
    /// The result.
    pub(crate) value: serde_json::Value,
}

/// Sends a request to the server of `home` and shows its progress.
///
/// # Errors
/// The server's own refusal; no server (exit code 3), after clearing what a dead one left.
pub(crate) fn ask(home: &Home, request: &Request) -> anyhow::Result<Answer> {
    // A command that is given in a mounted volume would keep the server from unmounting it. Every path in the
    // request is absolute by now.
    let _ = std::env::set_current_dir("/");
    let stream = connect(home)?;
    let terminal = std::io::stderr().is_terminal();
    let answer = exchange(stream, request, &mut |text| show_progress(terminal, text));
    match answer {
        Err(Broken::Off) => {
            clear_after_death(home)?;
            Err(Refusal::environment("the server ended before it answered")
                .hint(format!("see its log, then {}", how_to_start(home.root())))
                .into())
        }
        Err(Broken::Refused(error)) => Err(error),
        Ok(answer) => Ok(answer),
    }
}

/// Why there is no answer.
#[derive(Debug)]
enum Broken {
    /// The connection ended too early: the server was killed, most likely.
    Off,
    /// The server refused, or its answer is not understood.
    Refused(anyhow::Error),
}

impl From<anyhow::Error> for Broken {
    fn from(error: anyhow::Error) -> Self {
        Self::Refused(error)
    }
}

/// Waits until a server that has hung up is gone, and clears what it left.
fn clear_after_death(home: &Home) -> anyhow::Result<()> {
    let give_up = Instant::now() + STARTING;
    loop {
        match home.lock() {
            Ok(lock) => return clear(&lock, &text::note),
            Err(HomeError::Served { .. }) if Instant::now() < give_up => {
                std::thread::sleep(Duration::from_millis(20));
            }
            // It lives, and only this connection was lost.
            Err(_) => return Ok(()),
        }
    }
}

/// Connects to the control socket. Anything else in its place, such as a symbolic link, is none.
fn reach(home: &Home) -> std::io::Result<UnixStream> {
    home.socket_identity().ok_or(ErrorKind::NotFound)?;
    UnixStream::connect(home.socket())
}

/// Whether a server answers within `patience`. That there is a socket shows less: one that was killed
/// has it until its last thread is gone.
pub(crate) fn answers(home: &Home, patience: Duration) -> bool {
    let Ok(stream) = reach(home) else { return false };
    stream.set_read_timeout(Some(patience)).is_ok() && exchange(stream, &Request::Ping, &mut |_| ()).is_ok()
}

/// The answer of a server that answers within `patience`; None of any other. Nothing is waited for, cleared or reported.
pub(crate) fn ask_if_there(home: &Home, request: &Request, patience: Duration) -> Option<serde_json::Value> {
    let stream = reach(home).ok()?;
    stream.set_read_timeout(Some(patience)).ok()?;
    Some(exchange(stream, request, &mut |_| ()).ok()?.value)
}

/// One status line on a terminal; nothing elsewhere, so that scripts see results alone.
fn show_progress(terminal: bool, text: &str) {
    if terminal {
        text::status(text);
    }
}

fn exchange(
    mut stream: UnixStream,
    request: &Request,
    progress: &mut dyn FnMut(&str),
) -> Result<Answer, Broken> {
    let request = serde_json::to_value(request).context(Refusal::usage("a path is not UTF-8"))?;
    let envelope = Envelope { v: VERSION, request };
    let mut line = serde_json::to_vec(&envelope).expect("a request is plain data");
    line.push(b'\n');
    stream.write_all(&line).map_err(|_| Broken::Off)?;
    let mut waited = false;
    for line in BufReader::new(stream).lines() {
        let line = line.map_err(|_| Broken::Off)?;
        match serde_json::from_str(&line).context("the server's answer is not understood")? {
            Reply::Progress(text) => {
                waited = true;
                progress(&text);
            }
            Reply::Done { exit, value } => {
                if waited {
                    progress("");
                }
                return Ok(Answer { exit, value });
            }
            Reply::Failed(report) => {
                if waited {
                    progress("");
                }
                return Err(Broken::Refused(report.into()));
            }
        }
    }
    Err(Broken::Off)
}

fn connect(home: &Home) -> anyhow::Result<UnixStream> {
    let give_up = Instant::now() + STARTING;
    loop {
        match reach(home) {
            Ok(stream) => return Ok(stream),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {}
            Err(error) => {
                return Err(anyhow::Error::new(error)
                    .context(format!("cannot reach the server at {}", home.socket().display())));
            }
        }
        match home.lock() {
            Ok(lock) => {
                clear(&lock, &text::note)?;
                return Err(not_running(home.root()).into());
            }
            Err(HomeError::Served { .. }) if Instant::now() < give_up => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(error) => {
                let hint = match &error {
                    HomeError::Served { pid, .. } => {
                        format!("its control socket is missing or dead: 'kill {pid}' ends it in order")
                    }
                    _ => "run the command as the owner of the home".to_owned(),
                };
                let refusal = Refusal::environment("the server of this home does not listen").hint(hint);
                return Err(anyhow::Error::new(error).context(refusal));
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Report;

    #[test]
    fn an_answer_follows_its_progress_and_a_refusal_keeps_its_exit_code() {
        let (client, server) = UnixStream::pair().unwrap();
        let mut server = server;
        let lines = [
            Reply::Progress("mkfs".into()),
            Reply::Failed(Report { exit: Exit::Usage, chain: vec!["no".into()], hint: None }),
        ];
        for line in &lines {
            writeln!(server, "{}", serde_json::to_string(line).unwrap()).unwrap();
        }
        let mut seen = Vec::new();
        let broken = exchange(client, &Request::Ping, &mut |text| seen.push(text.to_owned()));
        let Err(Broken::Refused(error)) = broken else { panic!("{broken:?}") };
        assert_eq!(seen, ["mkfs", ""]);
        assert_eq!(Report::of(&error).exit, Exit::Usage);
    }

    #[test]
    fn a_server_that_dies_in_between_is_distinguished_from_one_that_refuses() {
        let (client, server) = UnixStream::pair().unwrap();
        let reader = std::thread::spawn(move || {
            let mut line = String::new();
            BufReader::new(server).read_line(&mut line).unwrap();
            line
        });
        let broken = exchange(client, &Request::SnapshotList, &mut |_| ());
        assert!(matches!(broken, Err(Broken::Off)), "{broken:?}");
        assert_eq!(reader.join().unwrap(), format!("{{\"v\":{VERSION},\"request\":\"snapshot-list\"}}\n"));
    }
}
