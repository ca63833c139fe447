//! The client's side of the control socket.

use std::io::{BufRead as _, BufReader, ErrorKind, IsTerminal as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use ebbtide_cloud::ec2::{DEVICE_LINKS, remove_device_links};
use ebbtide_control::protocol::{self, Envelope, Reply, Request};
use ebbtide_device::host::{self, Home, HomeError};

use crate::answers::{self, Deleted, Stopped};
use crate::exit::{Exit, Refusal, Report};
use crate::text;

/// How long a server that holds the home may take until it listens: it may be clearing what its
/// predecessor left, or opening a large store.
const STARTING: Duration = Duration::from_secs(20);

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
    let stream = connect(home)?;
    let terminal = std::io::stderr().is_terminal();
    match send(stream, request).and_then(|replies| follow(replies, &mut |text| show_progress(terminal, text)))
    {
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
    stream.set_read_timeout(Some(patience)).is_ok()
        && send(stream, &Request::Ping).and_then(|replies| follow(replies, &mut |_| ())).is_ok()
}

/// The answer of a server that answers within `patience`; None of any other. Nothing is waited for, cleared or reported.
pub(crate) fn ask_if_there(home: &Home, request: &Request, patience: Duration) -> Option<serde_json::Value> {
    let stream = reach(home).ok()?;
    stream.set_read_timeout(Some(patience)).ok()?;
    Some(follow(send(stream, request).ok()?, &mut |_| ()).ok()?.value)
}

/// One status line on a terminal; nothing elsewhere, so that scripts see results alone.
fn show_progress(terminal: bool, text: &str) {
    if terminal {
        text::status(text);
    }
}

/// Sends a request; the answer is to be read of what is returned.
fn send(mut stream: UnixStream, request: &Request) -> Result<Replies, Broken> {
    let envelope = Envelope::seal(request).context(Refusal::usage("a path is not UTF-8"))?;
    let mut line = serde_json::to_vec(&envelope).expect("a request is plain data");
    line.push(b'\n');
    stream.write_all(&line).map_err(|_| Broken::Off)?;
    Ok(Replies { stream: BufReader::new(stream), is_over: false })
}

/// The replies to one request, as they arrive. It ends after the last one, or after an error.
struct Replies {
    stream: BufReader<UnixStream>,
    is_over: bool,
}

impl Iterator for Replies {
    type Item = Result<Reply, Broken>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let mut line = String::new();
        let reply = match self.stream.read_line(&mut line) {
            // A server that dies closes the connection, maybe in the middle of a line.
            Ok(_) if line.ends_with('\n') => serde_json::from_str(line.trim_end())
                .context("the server's answer is not understood")
                .map_err(Broken::Refused),
            _ => Err(Broken::Off),
        };
        self.is_over = reply.as_ref().map_or(true, Reply::is_last);
        Some(reply)
    }
}

/// Follows an answer to its end. `progress` is called with an empty text when nothing is waited for any more.
fn follow(replies: Replies, progress: &mut dyn FnMut(&str)) -> Result<Answer, Broken> {
    let mut waited = false;
    let mut warnings = Vec::new();
    for reply in replies {
        let reply = reply?;
        if waited && reply.is_last() {
            progress("");
        }
        match reply {
            Reply::Progress(text) => {
                waited = true;
                progress(&text);
            }
            Reply::Warning(warning) => warnings.push(warning),
            Reply::Done { exit, answer } => {
                return Ok(Answer { exit: exit.into(), value: printed(answer), warnings });
            }
            Reply::Failed(refused) => {
                note_warnings(&warnings);
                return Err(Broken::Refused(Report::from(refused).into()));
            }
        }
    }
    Err(Broken::Off)
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
    use ebbtide_control::protocol::{ExitStatus, RefusedRequest, VERSION};

    use super::*;

    /// What a client makes of these lines of a server, which then hangs up, and the progress that it shows.
    fn answer_to(lines: &[String]) -> (Result<Answer, Broken>, Vec<String>) {
        let (client, mut server) = UnixStream::pair().unwrap();
        lines.iter().for_each(|line| writeln!(server, "{line}").unwrap());
        let mut shown = Vec::new();
        let replies = send(client, &Request::Ping).unwrap();
        drop(server);
        (follow(replies, &mut |text| shown.push(text.to_owned())), shown)
    }

    fn line(reply: &Reply) -> String {
        serde_json::to_string(reply).unwrap()
    }

    fn pong() -> String {
        line(&Reply::Done { exit: ExitStatus::Finding, answer: protocol::Answer::Pong("1".into()) })
    }

    /// What was refused.
    fn report(answer: Result<Answer, Broken>) -> Report {
        let Err(Broken::Refused(error)) = answer else { panic!("{answer:?}") };
        Report::of(&error)
    }

    #[test]
    fn an_answer_follows_its_progress_and_a_refusal_keeps_its_exit_code() {
        let refused = RefusedRequest {
            exit: ExitStatus::Usage,
            chain: vec!["no".into(), "never".into()],
            hint: Some("ask".into()),
        };
        let (answer, shown) =
            answer_to(&[line(&Reply::Progress("mkfs".into())), line(&Reply::Failed(refused))]);
        assert_eq!(shown, ["mkfs", ""]);
        let chain = vec!["no".to_owned(), "never".to_owned()];
        assert_eq!(report(answer), Report { exit: Exit::Usage, chain, hint: Some("ask".into()) });
    }

    #[test]
    fn warnings_come_with_the_answer_and_nothing_is_read_after_it() {
        let warning = line(&Reply::Warning("it is slow".into()));
        let (answer, shown) = answer_to(&[warning.clone(), warning, pong(), "{\"dance\":1}".into()]);
        let Answer { exit, value, warnings } = answer.unwrap();
        assert_eq!((exit, value), (Exit::Finding, "1".into()));
        assert_eq!((warnings.len(), shown.len()), (2, 0));
    }

    #[test]
    fn a_server_of_another_version_refuses_in_words_that_this_client_understands() {
        // As versions 6 and before wrote it; it stays so.
        for theirs in [VERSION - 1, VERSION + 1] {
            let words = format!(
                "the server speaks version {theirs} of the control protocol, the client version {VERSION}"
            );
            let hint = "stop the server and start the one that belongs to this ebbtide";
            let refused = format!(r#"{{"failed":{{"exit":"usage","chain":["{words}"],"hint":"{hint}"}}}}"#);
            let report = report(answer_to(&[refused]).0);
            assert_eq!((report.exit, report.chain), (Exit::Usage, vec![words]));
            assert_eq!(report.hint.as_deref(), Some(hint));
        }
    }

    #[test]
    fn an_answer_that_is_not_understood_is_no_death_of_the_server() {
        let report = report(answer_to(&["{\"dance\":1}".into(), pong()]).0);
        assert_eq!(
            (report.exit, report.chain[0].as_str()),
            (Exit::Invariant, "the server's answer is not understood")
        );
    }

    #[test]
    fn a_server_that_dies_in_between_is_distinguished_from_one_that_refuses() {
        let progress = line(&Reply::Progress("mkfs".into()));
        for begun in [String::new(), format!("{progress}\n"), format!("{progress}\n{{\"done\":{{")] {
            let (client, mut server) = UnixStream::pair().unwrap();
            let replies = send(client, &Request::SnapshotList).unwrap();
            let mut request = String::new();
            BufReader::new(&server).read_line(&mut request).unwrap();
            assert_eq!(request, format!("{{\"v\":{VERSION},\"request\":\"snapshot-list\"}}\n"));
            server.write_all(begun.as_bytes()).unwrap();
            drop(server);
            let broken = follow(replies, &mut |_| ());
            assert!(matches!(broken, Err(Broken::Off)), "{begun}: {broken:?}");
        }
    }
}
