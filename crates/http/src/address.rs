//! Where pages are served: at an address that this machine alone reaches.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;

/// A loopback address with a port; port 0 takes one that is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopbackAddress(SocketAddr);

/// A text that is no such address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It has another form.
    #[error("is neither PORT (0 to 65535) nor HOST:PORT with 127.0.0.1, [::1] or localhost for HOST")]
    Form,
    /// Other machines may reach it.
    #[error(
        "{0} is no loopback address, and pages are for this machine alone: give PORT, and reach it from elsewhere by 'ssh -L'"
    )]
    NotLoopback(SocketAddr),
}

impl LoopbackAddress {
    /// The address to listen at.
    #[must_use]
    pub const fn socket(self) -> SocketAddr {
        self.0
    }
}

impl FromStr for LoopbackAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let port = text.strip_prefix("localhost:").unwrap_or(text);
        let local = port.parse().ok().map(|port: u16| SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port));
        let socket: SocketAddr = local.or_else(|| text.parse().ok()).ok_or(AddressError::Form)?;
        if socket.ip().is_loopback() { Ok(Self(socket)) } else { Err(AddressError::NotLoopback(socket)) }
    }
}

impl fmt::Display for LoopbackAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_on_this_machine_and_others_are_refused_with_what_to_do() {
        for (text, socket) in [
            ("9421", "127.0.0.1:9421"),
            ("0", "127.0.0.1:0"),
            ("localhost:1", "127.0.0.1:1"),
            ("127.0.0.2:65535", "127.0.0.2:65535"),
            ("[::1]:9421", "[::1]:9421"),
        ] {
            let address: LoopbackAddress = text.parse().unwrap();
            assert_eq!(address.to_string(), socket, "{text}");
            assert_eq!(address.to_string().parse(), Ok(address));
        }
        for text in ["", "65536", "-1", "host:1", "127.0.0.1", "localhost", "http://127.0.0.1:1", "off"] {
            assert_eq!(text.parse::<LoopbackAddress>(), Err(AddressError::Form), "{text}");
        }
        for text in ["0.0.0.0:9421", "192.0.2.1:0", "[::]:9421"] {
            let refused = text.parse::<LoopbackAddress>().unwrap_err().to_string();
            assert!(refused.starts_with(text) && refused.contains("ssh -L"), "{refused}");
        }
    }
}
