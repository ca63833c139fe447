//! The server's side of the control socket.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use ebbtide_device::host::Home;
use ebbtide_device::socket;
use rustix::net::{Shutdown, shutdown};

use super::client::Answer;
use super::{Envelope, Reply, Request, VERSION};
use crate::exit::{Exit, Refusal, Report};

/// Longest request line; a spec and a few paths are far below it.
const MAX_REQUEST: u64 = 64 << 10;

/// How long a client may take to send its request; a server that stops waits for it.
const REQUEST_TIME: Duration = Duration::from_secs(2);

/// Reports what is being done; lines go to the client while it waits.
pub(crate) type Progress<'a> = &'a (dyn Fn(&str) + Sync);

/// How long a client may take to read a part of its answer; a server that stops waits for it.
const REPLY_TIME: Duration = Duration::from_secs(5);

/// The listening control socket; it is removed on drop.
#[derive(Debug)]
pub(crate) struct Listener {
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
    pub(crate) fn bind(home: &Home) -> anyhow::Result<Self> {
        let path = home.socket();
        let refusal = || Refusal::environment(format!("cannot listen at {}", path.display()));
        home.remove_socket().with_context(refusal)?;
        let socket = socket::listen(&path, 0o600).with_context(|| {
            refusal().hint("a socket's path is at most 107 bytes long: choose a shorter --home")
        })?;
        let identity = home.socket_identity().ok_or_else(|| {
            refusal().hint("the home was deleted or replaced meanwhile: start the server again")
        })?;
        Ok(Self { socket, home: home.clone(), identity })
    }

    /// Wakes [`Self::accept`], whatever has become of the socket's file, and lets it accept nobody any more.
    pub(crate) fn close(&self) {
        // It cannot fail on a socket that listens.
        let _ = shutdown(&self.socket, Shutdown::Both);
    }

    /// The next client.
    ///
    /// # Errors
    /// Where no more can be accepted.
    pub(crate) fn accept(&self) -> std::io::Result<UnixStream> {
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

/// Reads one client's request, has it handled and sends the answer. A client that has gone away
/// does not disturb what it asked for.
pub(crate) fn serve_client(
    stream: &UnixStream,
    handle: impl FnOnce(Request, Progress<'_>) -> anyhow::Result<Answer>,
) {
    let gone = AtomicBool::new(stream.set_write_timeout(Some(REPLY_TIME)).is_err());
    let send = |reply: &Reply| {
        let mut line = serde_json::to_vec(reply).expect("a reply is plain data");
        line.push(b'\n');
        if !gone.load(Ordering::Relaxed) && (&*stream).write_all(&line).is_err() {
            gone.store(true, Ordering::Relaxed);
        }
    };
    let outcome = read_request(stream).and_then(|request| {
        tracing::debug!(?request, "request");
        handle(request, &|text| send(&Reply::Progress(text.to_owned())))
    });
    match outcome {
        Ok(Answer { exit, value }) => send(&Reply::Done { exit, value }),
        Err(error) => {
            let report = Report::of(&error);
            if matches!(report.exit, Exit::Environment | Exit::Invariant) {
                tracing::warn!(exit = ?report.exit, "request failed: {report}");
            }
            send(&Reply::Failed(report));
        }
    }
}

fn read_request(stream: &UnixStream) -> anyhow::Result<Request> {
    stream.set_read_timeout(Some(REQUEST_TIME))?;
    let mut line = String::new();
    BufReader::new(stream.take(MAX_REQUEST)).read_line(&mut line).context("no request arrived")?;
    let envelope: Envelope =
        serde_json::from_str(&line).map_err(|error| Refusal::usage(format!("no request: {error}")))?;
    if envelope.v != VERSION {
        let theirs = envelope.v;
        return Err(Refusal::usage(format!(
            "the server speaks version {VERSION} of the control protocol, the client version {theirs}"
        ))
        .hint("stop the server and start the one that belongs to this ebbtide")
        .into());
    }
    serde_json::from_value(envelope.request)
        .map_err(|error| Refusal::usage(format!("the request is not understood: {error}")).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer_to(line: &str) -> Reply {
        let (client, server) = UnixStream::pair().unwrap();
        (&client).write_all(line.as_bytes()).unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        serve_client(&server, |request, progress| {
            assert!(matches!(request, Request::Ping));
            progress("thinking");
            Ok(Answer { exit: Exit::Clean, value: serde_json::json!("pong") })
        });
        drop(server);
        let last = BufReader::new(client).lines().last().unwrap().unwrap();
        serde_json::from_str(&last).unwrap()
    }

    #[test]
    fn a_request_of_another_version_is_refused_for_its_version() {
        let dance =
            |version: u32| match answer_to(&format!("{{\"v\":{version},\"request\":{{\"dance\":1}}}}\n")) {
                Reply::Failed(report) => report,
                other => panic!("it was accepted: {other:?}"),
            };
        let report = dance(VERSION + 1);
        assert_eq!(report.exit, Exit::Usage);
        assert!(report.chain[0].contains(&format!("client version {}", VERSION + 1)), "{report}");
        let report = dance(VERSION);
        assert!(report.chain[0].contains("dance"), "{report}");
        assert!(matches!(answer_to("hello\n"), Reply::Failed(_)));
        assert!(matches!(
            answer_to(&format!("{{\"v\":{VERSION},\"request\":\"ping\"}}\n")),
            Reply::Done { .. }
        ));
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
        let before = rustix::process::umask(rustix::fs::Mode::empty());
        let listener = Listener::bind(home);
        rustix::process::umask(before);
        let listener = listener.unwrap();
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
