//! The client's side of the control socket.

use std::io::{self, BufRead as _, BufReader, ErrorKind, Write as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use ebbtide_device::host::{Home, HomeError, HomeLock};

use crate::protocol::{self, Envelope, ExitStatus, RefusedRequest, Reply, Request};

/// How long a server that holds the home may take until it listens: it may be clearing what its
/// predecessor left, or opening a large store.
const STARTING: Duration = Duration::from_secs(20);
/// How often it is looked for meanwhile.
const LOOK: Duration = Duration::from_millis(20);

/// The server's answer.
#[derive(Debug)]
pub struct Answered {
    /// How the client's process is to end.
    pub exit: ExitStatus,
    /// The result.
    pub answer: protocol::Answer,
    /// What the user must know besides, as sentences.
    pub warnings: Vec<String>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// A path of the request is not UTF-8.
    #[error("a path is not UTF-8")]
    NotUtf8(#[source] serde_json::Error),
    /// No server runs. Who holds the lock can clear what a dead one left.
    #[error("no server runs for the home")]
    NotRunning(HomeLock),
    /// A server holds the home and does not listen, or the home cannot be locked.
    #[error("the server of this home does not listen")]
    NotListening(#[source] HomeError),
    /// The socket cannot be reached.
    #[error("cannot reach the server")]
    Unreachable(#[source] io::Error),
    /// The connection ended too early: the server was killed, most likely. The lock, where it is gone.
    #[error("the server ended before it answered")]
    Ended(Option<HomeLock>),
    /// What it sent is no reply.
    #[error("the server's answer is not understood")]
    NotUnderstood(#[source] serde_json::Error),
    /// The server refused, after these warnings.
    #[error("{}", .refused.chain.join(": "))]
    Refused {
        /// Why.
        refused: RefusedRequest,
        /// What the user must know besides, as sentences.
        warnings: Vec<String>,
    },
}

/// Sends a request to the server of `home` and follows its answer. `progress` is called with an empty text when nothing is waited
/// for any more.
///
/// # Errors
/// The server's own refusal; no server.
pub fn ask(home: &Home, request: &Request, progress: &mut dyn FnMut(&str)) -> Result<Answered, AskError> {
    let stream = connect(home)?;
    match send(stream, request).and_then(|replies| follow(replies, progress)) {
        Err(AskError::Ended(_)) => Err(AskError::Ended(lock_of_dead(home))),
        answered => answered,
    }
}

/// The answer of a server that answers within `patience`; None of any other. Nothing is waited for, cleared or reported.
#[must_use]
pub fn ask_if_there(home: &Home, request: &Request, patience: Duration) -> Option<protocol::Answer> {
    let stream = reach(home).ok()?;
    stream.set_read_timeout(Some(patience)).ok()?;
    Some(follow(send(stream, request).ok()?, &mut |_| ()).ok()?.answer)
}

/// Waits until a server that has hung up is gone.
fn lock_of_dead(home: &Home) -> Option<HomeLock> {
    let give_up = Instant::now() + STARTING;
    loop {
        match home.lock() {
            Ok(lock) => return Some(lock),
            Err(HomeError::Served { .. }) if Instant::now() < give_up => std::thread::sleep(LOOK),
            // It lives, and only this connection was lost.
            Err(_) => return None,
        }
    }
}

/// Connects to the control socket. Anything else in its place, such as a symbolic link, is none.
fn reach(home: &Home) -> io::Result<UnixStream> {
    home.socket_identity().ok_or(ErrorKind::NotFound)?;
    UnixStream::connect(home.socket())
}

fn connect(home: &Home) -> Result<UnixStream, AskError> {
    let give_up = Instant::now() + STARTING;
    loop {
        match reach(home) {
            Ok(stream) => return Ok(stream),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {}
            Err(error) => return Err(AskError::Unreachable(error)),
        }
        match home.lock() {
            Ok(lock) => return Err(AskError::NotRunning(lock)),
            Err(HomeError::Served { .. }) if Instant::now() < give_up => std::thread::sleep(LOOK),
            Err(error) => return Err(AskError::NotListening(error)),
        }
    }
}

/// Sends a request; the answer is to be read of what is returned.
fn send(mut stream: UnixStream, request: &Request) -> Result<Replies, AskError> {
    let envelope = Envelope::seal(request).map_err(AskError::NotUtf8)?;
    let mut line = serde_json::to_vec(&envelope).expect("a request is plain data");
    line.push(b'\n');
    stream.write_all(&line).map_err(|_| AskError::Ended(None))?;
    Ok(Replies { stream: BufReader::new(stream), is_over: false })
}

/// The replies to one request, as they arrive. It ends after the last one, or after an error.
struct Replies {
    stream: BufReader<UnixStream>,
    is_over: bool,
}

impl Iterator for Replies {
    type Item = Result<Reply, AskError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let mut line = String::new();
        let reply = match self.stream.read_line(&mut line) {
            // A server that dies closes the connection, maybe in the middle of a line.
            Ok(_) if line.ends_with('\n') => {
                serde_json::from_str(line.trim_end()).map_err(AskError::NotUnderstood)
            }
            _ => Err(AskError::Ended(None)),
        };
        self.is_over = reply.as_ref().map_or(true, Reply::is_last);
        Some(reply)
    }
}

/// Follows an answer to its end.
fn follow(replies: Replies, progress: &mut dyn FnMut(&str)) -> Result<Answered, AskError> {
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
            Reply::Done { exit, answer } => return Ok(Answered { exit, answer, warnings }),
            Reply::Failed(refused) => return Err(AskError::Refused { refused, warnings }),
        }
    }
    Err(AskError::Ended(None))
}

#[cfg(test)]
mod tests {
    use crate::protocol::VERSION;

    use super::*;

    /// What a client makes of these lines of a server, which then hangs up, and the progress that it shows.
    fn answer_to(lines: &[String]) -> (Result<Answered, AskError>, Vec<String>) {
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
    fn refused(answer: Result<Answered, AskError>) -> RefusedRequest {
        let Err(AskError::Refused { refused, .. }) = answer else { panic!("{answer:?}") };
        refused
    }

    #[test]
    fn an_answer_follows_its_progress_and_a_refusal_keeps_its_exit_code() {
        let sent = RefusedRequest {
            exit: ExitStatus::Usage,
            chain: vec!["no".into(), "never".into()],
            hint: Some("ask".into()),
        };
        let (answer, shown) =
            answer_to(&[line(&Reply::Progress("mkfs".into())), line(&Reply::Failed(sent.clone()))]);
        assert_eq!(shown, ["mkfs", ""]);
        assert_eq!(refused(answer), sent);
    }

    #[test]
    fn warnings_come_with_the_answer_and_nothing_is_read_after_it() {
        let warning = line(&Reply::Warning("it is slow".into()));
        let (answer, shown) = answer_to(&[warning.clone(), warning, pong(), "{\"dance\":1}".into()]);
        let Answered { exit, answer, warnings } = answer.unwrap();
        assert_eq!(exit, ExitStatus::Finding);
        assert!(matches!(answer, protocol::Answer::Pong(version) if version == "1"));
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
            let sent = format!(r#"{{"failed":{{"exit":"usage","chain":["{words}"],"hint":"{hint}"}}}}"#);
            let refused = refused(answer_to(&[sent]).0);
            assert_eq!((refused.exit, refused.chain), (ExitStatus::Usage, vec![words]));
            assert_eq!(refused.hint.as_deref(), Some(hint));
        }
    }

    #[test]
    fn an_answer_that_is_not_understood_is_no_death_of_the_server() {
        let answer = answer_to(&["{\"dance\":1}".into(), pong()]).0;
        assert!(matches!(answer, Err(AskError::NotUnderstood(_))), "{answer:?}");
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
            assert!(matches!(broken, Err(AskError::Ended(None))), "{begun}: {broken:?}");
        }
    }
}
