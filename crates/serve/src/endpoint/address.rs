//! Where the AWS endpoint listens.

use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;

/// An address of the endpoint, read from `[http://|https://][HOST:]PORT`. Without HOST it is on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointAddress {
    /// As it was given.
    text: String,
    /// Whether `http://` or `https://` was given.
    scheme: Option<Scheme>,
    socket: SocketAddr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Http,
    Https,
}

impl EndpointAddress {
    /// As it was given.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where the endpoint listens; port 0 takes a free one.
    #[must_use]
    pub const fn socket(&self) -> SocketAddr {
        self.socket
    }

    /// Whether the endpoint speaks HTTPS: as the scheme says; without one where there is a certificate of the user's, and where
    /// other machines reach it.
    #[must_use]
    pub fn has_tls(&self, has_certificate: bool) -> bool {
        match self.scheme {
            Some(scheme) => scheme == Scheme::Https,
            None => has_certificate || !self.socket.ip().is_loopback(),
        }
    }
}

/// A text that is no address of the endpoint. The message follows the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is neither PORT nor HOST:PORT with an IP address or localhost for HOST")]
pub struct NotAnAddress;

impl FromStr for EndpointAddress {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Self, NotAnAddress> {
        let (scheme, rest) = if let Some(rest) = text.strip_prefix("http://") {
            (Some(Scheme::Http), rest)
        } else if let Some(rest) = text.strip_prefix("https://") {
            (Some(Scheme::Https), rest)
        } else {
            (None, text)
        };
        let rest = rest.trim_end_matches('/');
        let at_port =
            |port: &str| port.parse().ok().map(|port| SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port));
        let named = || at_port(rest.strip_prefix("localhost:")?);
        let socket = at_port(rest).or_else(named).or_else(|| rest.parse().ok());
        Ok(Self { text: text.to_owned(), scheme, socket: socket.ok_or(NotAnAddress)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_on_this_machine_unless_another_is_named() {
        let socket = |text: &str| text.parse::<EndpointAddress>().unwrap().socket.to_string();
        assert_eq!(socket("4599"), "127.0.0.1:4599");
        assert_eq!(socket("localhost:4599"), "127.0.0.1:4599");
        assert_eq!(socket("http://127.0.0.2:1/"), "127.0.0.2:1");
        assert_eq!(socket("https://[::1]:4599"), "[::1]:4599");
        for wrong in ["", "host:1", "127.0.0.1", "ftp://127.0.0.1:1", "70000"] {
            assert!(wrong.parse::<EndpointAddress>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn tls_is_what_the_scheme_says_and_other_machines_get_it_without_one() {
        let has_tls = |text: &str| text.parse::<EndpointAddress>().unwrap().has_tls(false);
        assert!(has_tls("0.0.0.0:4599") && has_tls("https://127.0.0.1:4599"));
        assert!(!has_tls("4599") && !has_tls("http://0.0.0.0:4599"));
        assert!("4599".parse::<EndpointAddress>().unwrap().has_tls(true));
    }
}
