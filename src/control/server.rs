//! The server's side of the control socket.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;

use super::client::Answer;
use super::{Envelope, Reply, Request, VERSION};
use crate::exit::{Exit, Refusal, Report};

/// Longest request line; a spec and a few paths are far below it.
const MAX_REQUEST: u64 = 64 << 10;

/// How long a client may take to send its request; a server that stops waits for it.
const REQUEST_TIME: Duration = Duration::from_secs(2);

/// Says what is being done; lines go to the client while it waits.
pub(crate) type Progress<'a> = &'a (dyn Fn(&str) + Sync);

/// The listening control socket; it is removed on drop.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: UnixListener,
    path: PathBuf,
}

impl Listener {
    /// Listens at `path`, for this user alone. The caller holds the home's lock, so a socket that
    /// is already there is a dead one.
    ///
    /// # Errors
    /// Where the socket cannot be made.
    pub(crate) fn bind(path: &Path) -> anyhow::Result<Self> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).context(format!("cannot replace {}", path.display()));
            }
            _ => {}
        }
        let socket = UnixListener::bind(path).map_err(|error| {
            let refusal = Refusal::environment(format!("cannot listen at {}", path.display()))
                .hint("a socket's path is at most 107 bytes long: choose a shorter --home");
            anyhow::Error::new(error).context(refusal)
        })?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
            .with_context(|| format!("cannot protect {}", path.display()))?;
        Ok(Self { socket, path: path.to_owned() })
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
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Reads one client's request, has it handled and sends the answer. A client that has gone away
/// does not disturb what it asked for.
pub(crate) fn serve_client(
    stream: &UnixStream,
    handle: impl FnOnce(Request, Progress<'_>) -> anyhow::Result<Answer>,
) {
    let say = |reply: &Reply| {
        let mut line = serde_json::to_vec(reply).expect("a reply is plain data");
        line.push(b'\n');
        let _ = (&*stream).write_all(&line);
    };
    let outcome = read_request(stream).and_then(|request| {
        tracing::debug!(?request, "request");
        handle(request, &|text| say(&Reply::Progress(text.to_owned())))
    });
    match outcome {
        Ok(Answer { exit, value }) => say(&Reply::Done { exit, value }),
        Err(error) => {
            let report = Report::of(&error);
            if matches!(report.exit, Exit::Environment | Exit::Invariant) {
                tracing::warn!(exit = ?report.exit, "request failed: {report}");
            }
            say(&Reply::Failed(report));
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
}
