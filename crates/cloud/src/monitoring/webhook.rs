//! A webhook: an event is the body of a POST.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use std::{env, fmt, io, thread};

use http::Uri;
use http::uri::InvalidUri;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// How long connecting may take, each write, and the answer as a whole.
const PATIENCE: Duration = Duration::from_secs(10);

/// Between attempts. A connection that fails, status 429 and statuses from 500 on are tried again.
const WAITS: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(1)];

/// Bytes in which a status line must end.
const STATUS_BYTES: usize = 1_024;

/// Files with the certificates that Linux distributions trust, unless `SSL_CERT_FILE` names one.
const BUNDLES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// Where events are posted: `http://HOST[:PORT][/PATH]`, or the same with `https://`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    host: String,
    port: u16,
    is_tls: bool,
    /// Path and query.
    path: String,
    text: String,
}

/// A text that is no URL of a webhook. The texts follow what was written, as in `'a/b' has no host`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WebhookError {
    /// No URL at all.
    #[error("is no URL: {0}")]
    NotAUrl(InvalidUri),
    /// Another protocol.
    #[error("begins with neither http:// nor https://")]
    Scheme,
    /// Nothing between `://` and the path.
    #[error("has no host")]
    NoHost,
    /// A user or a password in front of the host.
    #[error("has a user or a password, which a webhook cannot have")]
    UserInfo,
}

impl FromStr for Webhook {
    type Err = WebhookError;

    fn from_str(text: &str) -> Result<Self, WebhookError> {
        let uri: Uri = text.parse().map_err(WebhookError::NotAUrl)?;
        let is_tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(WebhookError::Scheme),
        };
        let authority = uri.authority().ok_or(WebhookError::NoHost)?;
        if authority.as_str().contains('@') {
            return Err(WebhookError::UserInfo);
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = authority.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        Ok(Self { host, port, is_tls, path, text: text.to_owned() })
    }
}

impl fmt::Display for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Why an event was not taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum PostError {
    /// The host has no address, does not answer, or refuses.
    #[error("no connection")]
    Connect(#[source] io::Error),
    /// The host's name is known, without an address.
    #[error("no connection: '{0}' has no address")]
    NoAddress(String),
    /// A host that no certificate can name.
    #[error("'{0}' is no name of a host")]
    HostName(String),
    /// No certificates to trust.
    #[error(transparent)]
    Trust(Arc<TrustError>),
    /// TLS cannot begin.
    #[error(transparent)]
    Tls(rustls::Error),
    /// The connection breaks before the event is sent, or the host's certificate is not trusted.
    #[error("the event is not taken")]
    Send(#[source] io::Error),
    /// The connection breaks before the answer.
    #[error("no answer")]
    Receive(#[source] io::Error),
    /// The host closes the connection before the answer.
    #[error("the connection ends without an answer")]
    Ended,
    /// No line ends within [`STATUS_BYTES`] or [`PATIENCE`].
    #[error("the answer is no status line, or takes too long")]
    NoStatusLine,
    /// A line that is no status line.
    #[error("the answer is not HTTP")]
    NotHttp,
    /// A status other than 200 to 299.
    #[error("the answer is status {0}")]
    Status(u16),
}

impl PostError {
    /// Whether another attempt may succeed.
    const fn may_pass(&self) -> bool {
        match self {
            Self::Connect(_)
            | Self::NoAddress(_)
            | Self::Send(_)
            | Self::Receive(_)
            | Self::Ended
            | Self::NoStatusLine => true,
            Self::HostName(_) | Self::Trust(_) | Self::Tls(_) | Self::NotHttp => false,
            Self::Status(status) => *status == 429 || *status >= 500,
        }
    }
}

/// Why no certificate is trusted.
#[derive(Debug, thiserror::Error)]
pub(super) enum TrustError {
    /// No file of [`BUNDLES`] is there.
    #[error("this machine has no list of trusted certificates; set SSL_CERT_FILE")]
    NoList,
    /// The file of certificates is missing, or is no such file.
    #[error("{} cannot be read", file.display())]
    Read { file: PathBuf, source: pem::Error },
    /// The file has none that can be used.
    #[error("{} has no certificate", file.display())]
    Empty { file: PathBuf },
    /// The versions of TLS cannot be set.
    #[error(transparent)]
    Tls(rustls::Error),
}

impl Webhook {
    /// Posts an event. What may pass is tried again, three times in all.
    pub(super) fn post(&self, event: &str) -> Result<(), PostError> {
        for wait in WAITS {
            match self.attempt(event) {
                Err(error) if error.may_pass() => thread::sleep(wait),
                ended => return ended,
            }
        }
        self.attempt(event)
    }

    fn attempt(&self, event: &str) -> Result<(), PostError> {
        let stream = self.connect()?;
        if !self.is_tls {
            return self.exchange(stream, event);
        }
        let name =
            ServerName::try_from(self.host.clone()).map_err(|_| PostError::HostName(self.host.clone()))?;
        let config = trusted().map_err(PostError::Trust)?;
        let tls = ClientConnection::new(config, name).map_err(PostError::Tls)?;
        self.exchange(StreamOwned::new(tls, stream), event)
    }

    fn connect(&self) -> Result<TcpStream, PostError> {
        let addresses = (self.host.as_str(), self.port).to_socket_addrs().map_err(PostError::Connect)?;
        let mut latest = PostError::NoAddress(self.host.clone());
        for address in addresses {
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(PATIENCE)).map_err(PostError::Connect)?;
                    stream.set_write_timeout(Some(PATIENCE)).map_err(PostError::Connect)?;
                    return Ok(stream);
                }
                Err(error) => latest = PostError::Connect(error),
            }
        }
        Err(latest)
    }

    fn exchange(&self, mut stream: impl Read + Write, event: &str) -> Result<(), PostError> {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let request = format!(
            "POST {} HTTP/1.1\r\nHost: {host}:{}\r\nUser-Agent: ebbtide\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{event}",
            self.path,
            self.port,
            event.len(),
        );
        let sent = stream.write_all(request.as_bytes()).and_then(|()| stream.flush());
        sent.map_err(PostError::Send)?;
        let line = status_line(&mut stream)?;
        let status = line.split(' ').nth(1).and_then(|code| code.parse::<u16>().ok());
        match status {
            Some(200..=299) => Ok(()),
            Some(status) => Err(PostError::Status(status)),
            None => Err(PostError::NotHttp),
        }
    }
}

fn status_line(stream: &mut impl Read) -> Result<String, PostError> {
    let begun = Instant::now();
    let mut line = Vec::new();
    let mut some = [0; 256];
    while !line.contains(&b'\n') {
        if line.len() > STATUS_BYTES || begun.elapsed() > PATIENCE {
            return Err(PostError::NoStatusLine);
        }
        match stream.read(&mut some) {
            Ok(0) => return Err(PostError::Ended),
            Ok(read) => line.extend_from_slice(&some[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(PostError::Receive(error)),
        }
    }
    Ok(String::from_utf8_lossy(&line).lines().next().unwrap_or_default().to_owned())
}

/// TLS that trusts the certificates of this machine, which are read once.
fn trusted() -> Result<Arc<ClientConfig>, Arc<TrustError>> {
    static TRUSTED: OnceLock<Result<Arc<ClientConfig>, Arc<TrustError>>> = OnceLock::new();
    TRUSTED.get_or_init(|| of_this_machine().map_err(Arc::new)).clone()
}

fn of_this_machine() -> Result<Arc<ClientConfig>, TrustError> {
    let named = env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    let found = BUNDLES.iter().map(PathBuf::from).find(|file| file.exists());
    trusting(&named.or(found).ok_or(TrustError::NoList)?)
}

/// TLS that trusts the certificates of a file.
fn trusting(file: &Path) -> Result<Arc<ClientConfig>, TrustError> {
    let at = || file.to_owned();
    let mut roots = RootCertStore::empty();
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = read.map_err(|source| TrustError::Read { file: at(), source })?;
    roots.add_parsable_certificates(certificates);
    if roots.is_empty() {
        return Err(TrustError::Empty { file: at() });
    }
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(TrustError::Tls)?;
    Ok(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::net::TcpListener;

    use super::*;
    use crate::service::with_causes;

    /// Answers one request after the other with these statuses, and gives the bodies back.
    fn server(statuses: &'static [u16]) -> (u16, thread::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let thread = thread::spawn(move || {
            let answer = |status: &u16| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut length = 0;
                loop {
                    let mut line = String::new();
                    reader.read_line(&mut line).unwrap();
                    if let Some(value) = line.strip_prefix("Content-Length: ") {
                        length = value.trim().parse().unwrap();
                    }
                    if line == "\r\n" {
                        break;
                    }
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                write!(stream, "HTTP/1.1 {status} Whatever\r\nContent-Length: 0\r\n\r\n").unwrap();
                String::from_utf8(body).unwrap()
            };
            statuses.iter().map(answer).collect()
        });
        (port, thread)
    }

    #[test]
    fn an_event_is_posted_and_posted_again_after_a_failure_that_may_pass() {
        let (port, server) = server(&[503, 200]);
        let webhook: Webhook = format!("http://127.0.0.1:{port}/hook?x=1").parse().unwrap();
        webhook.post("{\"a\":1}").unwrap();
        assert_eq!(server.join().unwrap(), ["{\"a\":1}", "{\"a\":1}"]);
    }

    #[test]
    fn a_refusal_is_final_and_says_why() {
        let (port, server) = server(&[404]);
        let webhook: Webhook = format!("http://127.0.0.1:{port}/").parse().unwrap();
        assert_eq!(webhook.post("{}").unwrap_err().to_string(), "the answer is status 404");
        server.join().unwrap();
        let error = webhook.post("{}").unwrap_err();
        assert!(matches!(error, PostError::Connect(_)), "{error:?}");
        let text = with_causes(&error);
        assert!(text.starts_with("no connection: Connection refused"), "{text}");
    }

    #[test]
    fn an_event_goes_over_tls_to_a_server_that_is_trusted_and_to_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let (config, certificate) = crate::front::tls::generated(dir.path(), &[]).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = thread::spawn(move || {
            let mut got = Vec::new();
            for _ in 0..2 {
                let (stream, _) = listener.accept().unwrap();
                let tls = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
                let mut stream = StreamOwned::new(tls, stream);
                let mut some = [0; 4_096];
                // The client that does not trust it ends the handshake.
                let Ok(read) = stream.read(&mut some) else { continue };
                got.push(String::from_utf8_lossy(&some[..read]).into_owned());
                stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
            }
            got
        });
        let webhook: Webhook = format!("https://127.0.0.1:{port}/").parse().unwrap();
        let send = |config: Arc<ClientConfig>| {
            let name = ServerName::try_from("127.0.0.1").unwrap();
            let tls = ClientConnection::new(config, name).unwrap();
            webhook.exchange(StreamOwned::new(tls, webhook.connect().unwrap()), "{}")
        };
        assert!(send(trusting(&certificate).unwrap()).is_ok());
        let other = tempfile::tempdir().unwrap();
        let (_, other) = crate::front::tls::generated(other.path(), &[]).unwrap();
        let Err(error) = send(trusting(&other).unwrap()) else { panic!("it is not trusted") };
        assert!(with_causes(&error).contains("certificate"), "{error:?}");
        assert!(error.may_pass(), "the certificate may be renewed");
        assert_eq!(server.join().unwrap().len(), 1);
    }

    #[test]
    fn what_is_no_url_of_a_webhook_is_refused() {
        let of = |text: &str| text.parse::<Webhook>();
        let webhook = of("https://[::1]/a").unwrap();
        assert_eq!((webhook.host.as_str(), webhook.port, webhook.path.as_str()), ("::1", 443, "/a"));
        for (wrong, why) in [
            ("http://", "is no URL: "),
            ("ftp://a/b", "begins with neither http:// nor https://"),
            ("a/b", "is no URL: "),
            ("http://user:word@a/", "has a user or a password, which a webhook cannot have"),
            ("http://a b/", "is no URL: "),
        ] {
            let error = of(wrong).unwrap_err().to_string();
            assert!(error.starts_with(why), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_file_without_certificates_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("none.pem");
        let missing = trusting(&file).unwrap_err();
        assert!(matches!(missing, TrustError::Read { .. }), "{missing:?}");
        assert!(with_causes(&missing).contains("No such file"), "{missing:?}");
        std::fs::write(&file, "").unwrap();
        let empty = trusting(&file).unwrap_err();
        assert_eq!(empty.to_string(), format!("{} has no certificate", file.display()));
    }
}
