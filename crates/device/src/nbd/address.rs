//! Where an NBD server listens: a Unix socket or a TCP port, as text and as a URI.

use std::{
    fmt,
    net::{IpAddr, SocketAddr, ToSocketAddrs},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    str::FromStr,
};

use super::NbdError;

/// The port that IANA assigned to NBD; left out of a URI that uses it.
pub const NBD_PORT: u16 = 10809;

/// `sun_path` of `struct sockaddr_un` holds 108 bytes on Linux, the last one a NUL (unix(7)).
pub(super) const SOCKET_PATH_MAX: usize = 107;

/// Where an NBD server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NbdAddress {
    /// A Unix socket at this absolute or relative path.
    Unix(PathBuf),
    /// A TCP port; port 0 asks the kernel for a free one.
    Tcp {
        /// A host name, an IPv4 address, or an IPv6 address without brackets.
        host: String,
        /// The port.
        port: u16,
    },
}

impl NbdAddress {
    /// Reads `unix:PATH` or `tcp:HOST:PORT` (`tcp:HOST` means port 10809; IPv6 in brackets).
    ///
    /// # Errors
    /// [`NbdError::Address`] where the text has another form, and [`NbdError::PathTooLong`] where
    /// the path does not fit into a socket address (107 bytes).
    pub fn parse(text: &str) -> Result<Self, NbdError> {
        if let Some(path) = text.strip_prefix("unix:") {
            return Self::unix(Path::new(path)).ok_or_else(|| bad(text, "the path is empty"))?;
        }
        let rest =
            text.strip_prefix("tcp:").ok_or_else(|| bad(text, "it begins with neither unix: nor tcp:"))?;
        let (host, port) = split_port(rest)
            .ok_or_else(|| bad(text, "an IPv6 address goes in brackets, as in tcp:[::1]:10809"))?;
        if host.is_empty() {
            return Err(bad(text, "the host is empty"));
        }
        let port = match port {
            None => NBD_PORT,
            Some(port) => port.parse().map_err(|_| bad(text, "the port is not a number from 0 to 65535"))?,
        };
        Ok(Self::Tcp { host: host.to_owned(), port })
    }

    fn unix(path: &Path) -> Option<Result<Self, NbdError>> {
        match path.as_os_str().len() {
            0 => None,
            length if length > SOCKET_PATH_MAX => {
                Some(Err(NbdError::PathTooLong { path: path.to_owned(), length, max: SOCKET_PATH_MAX }))
            }
            _ => Some(Ok(Self::Unix(path.to_owned()))),
        }
    }

    /// The NBD URI at which clients find `export` (the form of the NBD project's `uri.md`).
    #[must_use]
    pub fn uri(&self, export: &str) -> String {
        let export = percent(export.as_bytes(), b"");
        match self {
            Self::Unix(path) => {
                let path = percent(path.as_os_str().as_bytes(), b"/");
                format!("nbd+unix:///{export}?socket={path}")
            }
            Self::Tcp { host, port } if *port == NBD_PORT => format!("nbd://{}/{export}", bracketed(host)),
            Self::Tcp { host, port } => format!("nbd://{}:{port}/{export}", bracketed(host)),
        }
    }

    /// The socket addresses that a TCP host name represents.
    pub(super) fn resolve(host: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
        Ok((host, port).to_socket_addrs()?.collect())
    }
}

impl fmt::Display for NbdAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp { host, port } => write!(f, "tcp:{}:{port}", bracketed(host)),
        }
    }
}

impl FromStr for NbdAddress {
    type Err = NbdError;

    fn from_str(text: &str) -> Result<Self, NbdError> {
        Self::parse(text)
    }
}

fn bad(text: &str, why: &'static str) -> NbdError {
    NbdError::Address { text: text.to_owned(), why }
}

/// Host and port; `None` where a bare IPv6 address makes the colon ambiguous.
fn split_port(text: &str) -> Option<(&str, Option<&str>)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, after) = rest.split_once(']')?;
        return match after {
            "" => Some((host, None)),
            _ => Some((host, Some(after.strip_prefix(':')?))),
        };
    }
    match text.split_once(':') {
        None => Some((text, None)),
        Some((_, port)) if port.contains(':') => None,
        Some((host, port)) => Some((host, Some(port))),
    }
}

fn bracketed(host: &str) -> String {
    match host.parse() {
        Ok(IpAddr::V6(_)) => format!("[{host}]"),
        _ => host.to_owned(),
    }
}

/// Percent-encodes what RFC 3986 does not list as unreserved, apart from `keep`.
fn percent(bytes: &[u8], keep: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || keep.contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(host: &str, port: u16) -> NbdAddress {
        NbdAddress::Tcp { host: host.into(), port }
    }

    #[test]
    fn an_address_is_read_and_written_back_as_it_was() {
        for (text, address) in [
            ("unix:/run/e/a.sock", NbdAddress::Unix("/run/e/a.sock".into())),
            ("tcp:127.0.0.1:10810", tcp("127.0.0.1", 10810)),
            ("tcp:localhost:0", tcp("localhost", 0)),
            ("tcp:[::1]:10809", tcp("::1", 10809)),
        ] {
            assert_eq!(NbdAddress::parse(text).unwrap(), address);
            assert_eq!(address.to_string(), text);
        }
        assert_eq!(NbdAddress::parse("tcp:localhost").unwrap(), tcp("localhost", NBD_PORT));
        assert_eq!(NbdAddress::parse("tcp:[::1]").unwrap(), tcp("::1", NBD_PORT));
    }

    #[test]
    fn a_uri_is_what_the_clients_accept() {
        let unix = NbdAddress::Unix("/tmp/a b.sock".into());
        assert_eq!(unix.uri("vol/1"), "nbd+unix:///vol%2F1?socket=/tmp/a%20b.sock");
        assert_eq!(tcp("localhost", 10809).uri("v"), "nbd://localhost/v");
        assert_eq!(tcp("::1", 7).uri("v"), "nbd://[::1]:7/v");
    }

    #[test]
    fn a_bad_address_names_the_text_and_the_reason() {
        for (text, word) in [
            ("/run/a.sock", "neither unix: nor tcp:"),
            ("unix:", "path is empty"),
            ("tcp::1", "host is empty"),
            ("tcp:a:b", "not a number"),
            ("tcp:a:65536", "not a number"),
            ("tcp:::1:5", "brackets"),
            ("tcp:[::1", "brackets"),
        ] {
            let error = NbdAddress::parse(text).unwrap_err().to_string();
            assert!(error.contains(text) && error.contains(word), "{error}");
        }
        let long = format!("unix:/{}", "x".repeat(SOCKET_PATH_MAX));
        let error = NbdAddress::parse(&long).unwrap_err().to_string();
        assert!(error.contains("108") && error.contains("107"), "{error}");
    }
}
