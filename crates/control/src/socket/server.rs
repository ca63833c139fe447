//! The server's side of the control socket.

use std::io::{self, BufRead as _, BufReader, ErrorKind, Read, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use ebbtide_device::host::{Home, HomeError};
use ebbtide_device::socket;

use crate::protocol::{self, Envelope, ExitStatus, ProtocolError, RefusedRequest, Reply, Request};

/// Longest request line; a spec and a few paths are far below it.
const MAX_REQUEST: u64 = 64 << 10;

/// How long a client may take to send its request; a server that stops waits for it.
const REQUEST_TIME: Duration = Duration::from_secs(2);

/// How long a client may take to read a reply; a server that stops waits for it.
const REPLY_TIME: Duration = Duration::from_secs(5);

/// How much of a reply goes to the socket in one call, bytes. The kernel applies the timeout of a longer write to each
/// part of it, so that a client which reads now and then could hold it up for ever.
const WRITE_BYTES: usize = 16 << 10;

/// The listening control socket; it is removed on drop.
#[derive(Debug)]
pub struct Listener {
    socket: UnixListener,
    home: Home,
    /// By which its file is known to be still this one.
    identity: (u64, u64),
}

impl Listener {
    /// Listens in a home, for this user alone. The caller holds the home's lock, so a socket that
    /// is already there is a dead one.
    ///
    /// # Errors
    /// Where the socket cannot be made.
    pub fn bind(home: &Home) -> Result<Self, BindError> {
        home.remove_socket().map_err(BindError::Remove)?;
        let socket = socket::listen(&home.socket(), 0o600).map_err(BindError::Listen)?;
        let identity = home.socket_identity().ok_or(BindError::HomeGone)?;
        Ok(Self { socket, home: home.clone(), identity })
    }

    /// Wakes [`Self::accept`], whatever has become of the socket's file, and lets it accept nobody any more.
    pub fn close(&self) {
        socket::close(&self.socket);
    }

    /// The next client.
    ///
    /// # Errors
    /// Where no more can be accepted.
    pub fn accept(&self) -> io::Result<UnixStream> {
        self.socket.accept().map(|(stream, _)| stream)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Another server's, where this one's home was replaced.
        if self.home.socket_identity() == Some(self.identity) {
            let _ = self.home.remove_socket();
        }
    }
}

/// Why the control socket cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// What is in its place cannot be removed.
    #[error("cannot remove what is in the place of the socket")]
    Remove(#[source] HomeError),
    /// The operating system refuses it. A socket's path is at most 107 bytes long.
    #[error("cannot listen")]
    Listen(#[source] io::Error),
    /// The home was deleted or replaced meanwhile.
    #[error("the home is gone")]
    HomeGone,
}

/// A request that was carried out.
#[derive(Debug)]
pub struct Completed {
    /// How the client is to end.
    pub exit: ExitStatus,
    /// The result.
    pub answer: protocol::Answer,
}

/// Sends the replies to one client. One that has gone away, or does not read, does not disturb what it asked for.
#[derive(Debug)]
pub struct ReplySender<'a> {
    stream: &'a UnixStream,
    /// How long the client may take to read a reply.
    patience: Duration,
    /// Whether the client is gone. The lock keeps the lines of several threads apart.
    is_gone: Mutex<bool>,
}

impl<'a> ReplySender<'a> {
    const fn new(stream: &'a UnixStream, patience: Duration) -> Self {
        Self { stream, patience, is_gone: Mutex::new(false) }
    }

    /// Reports what is being done or waited for.
    pub fn progress(&self, text: &str) {
        self.send(&Reply::Progress(text.to_owned()));
    }

    /// Reports what the user must know although the request is carried out: a sentence.
    pub fn warn(&self, sentence: String) {
        self.send(&Reply::Warning(sentence));
    }

    fn send(&self, reply: &Reply) {
        let mut line = serde_json::to_vec(reply).expect("a reply is plain data");
        line.push(b'\n');
        let mut is_gone = self.is_gone.lock().unwrap_or_else(PoisonError::into_inner);
        if !*is_gone {
            // Half a line may be out: nothing more can follow it.
            *is_gone = self.write(&line).is_err();
        }
    }

    fn write(&self, mut line: &[u8]) -> io::Result<()> {
        let mut stream = self.stream;
        let deadline = Instant::now() + self.patience;
        while !line.is_empty() {
            stream.set_write_timeout(Some(left_until(deadline)?))?;
            let part = &line[..line.len().min(WRITE_BYTES)];
            match stream.write(part) {
                Ok(written) => line = &line[written..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Reads one client's request, has it handled and sends the answer.
pub fn serve_client(
    stream: &UnixStream,
    handle: impl FnOnce(Request, &ReplySender<'_>) -> Result<Completed, RefusedRequest>,
) {
    let replies = ReplySender::new(stream, REPLY_TIME);
    let outcome = read_request(stream, REQUEST_TIME).and_then(|request| {
        tracing::debug!(?request, "request");
        handle(request, &replies)
    });
    match outcome {
        Ok(Completed { exit, answer }) => replies.send(&Reply::Done { exit, answer }),
        Err(refused) => {
            if matches!(refused.exit, ExitStatus::Environment | ExitStatus::Invariant) {
                tracing::warn!(exit = ?refused.exit, "request failed: {}", refused.chain.join(": "));
            }
            replies.send(&Reply::Failed(refused));
        }
    }
}

/// A client's bytes up to a deadline. A timeout of the socket alone would begin again with each byte.
struct UntilDeadline<'a> {
    stream: &'a UnixStream,
    deadline: Instant,
}

impl Read for UntilDeadline<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut stream = self.stream;
        stream.set_read_timeout(Some(left_until(self.deadline)?))?;
        stream.read(bytes)
    }
}

/// The time until a deadline, which is not zero: a socket takes no timeout of zero.
fn left_until(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

fn read_request(stream: &UnixStream, patience: Duration) -> Result<Request, RefusedRequest> {
    let bytes = UntilDeadline { stream, deadline: Instant::now() + patience };
    let mut line = String::new();
    BufReader::new(bytes.take(MAX_REQUEST)).read_line(&mut line).map_err(|error| RefusedRequest {
        exit: ExitStatus::Environment,
        chain: vec!["no request arrived".to_owned(), error.to_string()],
        hint: None,
    })?;
    let wrong =
        |message: String| RefusedRequest { exit: ExitStatus::Usage, chain: vec![message], hint: None };
    let envelope: Envelope =
        serde_json::from_str(&line).map_err(|error| wrong(format!("no request: {error}")))?;
    envelope.open().map_err(|error| {
        let hint = match &error {
            ProtocolError::OtherVersion { .. } => {
                Some("stop the server and start the one that belongs to this ebbtide".to_owned())
            }
            ProtocolError::UnknownRequest(_) => None,
        };
        RefusedRequest { hint, ..wrong(error.to_string()) }
    })
}

#[cfg(test)]
mod tests {
    use crate::protocol::VERSION;

    use super::*;

    /// The replies to the bytes that a client sends.
    fn replies_to(bytes: &[u8]) -> Vec<Reply> {
        let (client, server) = UnixStream::pair().unwrap();
        (&client).write_all(bytes).unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        serve_client(&server, |request, replies| {
            assert!(matches!(request, Request::Ping));
            replies.progress("thinking");
            replies.warn("it was hard".to_owned());
            Ok(Completed { exit: ExitStatus::Finding, answer: protocol::Answer::Pong("1".into()) })
        });
        drop(server);
        // A server that does not read to the end resets the connection after its reply.
        let lines = BufReader::new(client).lines().map_while(Result::ok);
        lines.map(|line| serde_json::from_str(&line).unwrap()).collect()
    }

    /// Of a client whose request was refused, and nothing else.
    fn refusal_of(bytes: &[u8]) -> RefusedRequest {
        match &replies_to(bytes)[..] {
            [Reply::Failed(refused)] => refused.clone(),
            other => panic!("it was accepted: {other:?}"),
        }
    }

    #[test]
    fn a_request_is_answered_by_its_progress_its_warnings_and_its_result() {
        let replies = replies_to(format!("{{\"v\":{VERSION},\"request\":\"ping\"}}\n").as_bytes());
        let [Reply::Progress(progress), Reply::Warning(warning), Reply::Done { exit, answer }] = &replies[..]
        else {
            panic!("{replies:?}")
        };
        assert_eq!((progress.as_str(), warning.as_str()), ("thinking", "it was hard"));
        assert_eq!(*exit, ExitStatus::Finding);
        assert!(matches!(answer, protocol::Answer::Pong(version) if version == "1"));
    }

    #[test]
    fn a_request_of_another_version_is_refused_for_its_version() {
        let dance = |version: u32| {
            refusal_of(format!("{{\"v\":{version},\"request\":{{\"dance\":1}}}}\n").as_bytes())
        };
        for theirs in [VERSION - 1, VERSION + 1] {
            let refused = dance(theirs);
            assert_eq!(refused.exit, ExitStatus::Usage);
            let words = format!(
                "the server speaks version {VERSION} of the control protocol, the client version {theirs}"
            );
            assert_eq!(refused.chain, [words]);
            let hint = "stop the server and start the one that belongs to this ebbtide";
            assert_eq!(refused.hint.as_deref(), Some(hint));
        }
        let refused = dance(VERSION);
        assert!(refused.chain[0].contains("dance"), "{refused:?}");
    }

    #[test]
    fn bytes_that_are_no_request_are_refused_and_the_handler_does_not_see_them() {
        let endless = vec![b'['; 70_000];
        let deep = format!("{{\"v\":{VERSION},\"request\":{}\n", "[".repeat(10_000));
        let garbage: [&[u8]; 7] = [
            b"",
            b"\n",
            b"hello\n",
            b"\xff\xfe\x00\n",
            b"{\"v\":-1,\"request\":\"ping\"}\n",
            &endless,
            deep.as_bytes(),
        ];
        for bytes in garbage {
            let refused = refusal_of(bytes);
            let is_plain =
                ["no request", "no request arrived"].iter().any(|begin| refused.chain[0].starts_with(begin));
            assert!(is_plain, "{refused:?}");
        }
    }

    #[test]
    fn a_client_that_sends_a_byte_now_and_then_gets_no_more_time_than_a_silent_one() {
        let (client, server) = UnixStream::pair().unwrap();
        let refused = std::thread::scope(|scope| {
            scope.spawn(move || {
                for _ in 0..400 {
                    if (&client).write_all(b" ").is_err() {
                        return;
                    }
                    std::thread::sleep(Duration::from_millis(10));
                }
            });
            let refused = read_request(&server, Duration::from_millis(200)).unwrap_err();
            drop(server);
            refused
        });
        // Otherwise the server reads to the end, where it misses a request.
        assert_eq!(refused.chain[0], "no request arrived");
    }

    #[test]
    fn a_client_that_reads_a_little_now_and_then_gets_no_more_time_than_one_that_does_not() {
        let (client, server) = UnixStream::pair().unwrap();
        let long = "x".repeat(8 << 20);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut some = vec![0; 16 << 10];
                while (&client).read(&mut some).is_ok_and(|read| read > 0) {
                    std::thread::sleep(Duration::from_millis(10));
                }
            });
            let replies = ReplySender::new(&server, Duration::from_millis(200));
            replies.progress(&long);
            let is_gone = *replies.is_gone.lock().unwrap();
            drop(server);
            assert!(is_gone, "the client was waited for");
        });
    }

    #[test]
    fn the_socket_is_its_users_alone_from_its_first_moment_and_goes_with_its_own_listener() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let lock = Home::open(dir.path()).unwrap().lock().unwrap();
        let home = lock.home();
        let victim = dir.path().join("victim");
        std::fs::write(&victim, "mine").unwrap();
        std::os::unix::fs::symlink(&victim, home.socket()).unwrap();
        let listener = Listener::bind(home).unwrap();
        let mode = home.socket().symlink_metadata().unwrap().permissions().mode();
        assert_eq!((mode & 0o777, std::fs::read(&victim).unwrap()), (0o600, b"mine".to_vec()));
        std::fs::remove_file(home.socket()).unwrap();
        let other = UnixListener::bind(home.socket()).unwrap();
        listener.close();
        listener.accept().unwrap_err();
        drop(listener);
        UnixStream::connect(home.socket()).expect("the other one's is left alone");
        drop(other);
    }
}
