//! The first packets of a connection: versions, capabilities, TLS, logging in.
//!
//! The packets and the authentication methods are `mysql_common`'s.

use mysql_common::auth::plugins::{AuthProc, ChallengeResponsePlugin as _, Context, Response};
use mysql_common::constants::{CapabilityFlags, MariadbCapabilities};
use mysql_common::io::ParseBuf;
use mysql_common::packets::{AuthPlugin, AuthSwitchRequest, HandshakePacket, HandshakeResponse, SslRequest};
use mysql_common::proto::MySerialize as _;

use super::answer::{Dialect, refused};
use super::packet::Packets;
use super::tls;
use crate::error::LoadError;
use crate::options::{Endpoint, Target};

/// What a connection agreed on.
#[derive(Debug, Clone)]
pub(super) struct HandshakeResult {
    pub(super) dialect: Dialect,
    pub(super) version: String,
}

/// UTF-8 with four bytes, general collation: what both server families know by this number.
const UTF8MB4: u8 = 45;
/// The size that we announce for our packets.
const MAX_PACKET: u32 = 0x00FF_FFFF;

/// Logs in on a fresh connection. The database is chosen afterwards, so that its absence is an
/// error of its own.
pub(super) fn log_in(
    packets: &mut Packets,
    target: &Target,
    endpoint: &Endpoint,
) -> Result<HandshakeResult, LoadError> {
    let greeting = packets.read("reading the server's greeting")?;
    if greeting.first() == Some(&0xFF) {
        return Err(refused(&greeting));
    }
    check_nonce_length(&greeting)?;
    let greeting: HandshakePacket<'_> = ParseBuf(&greeting).parse(()).map_err(protocol)?;
    let capabilities = capabilities(&greeting, target)?;
    let mariadb = mariadb_capabilities(&greeting);
    if let Some(wanted) = &target.tls {
        let request = SslRequest::new(capabilities, MAX_PACKET, UTF8MB4).with_mariadb_capabilities(mariadb);
        packets.write(|out| request.serialize(out))?;
        let client = tls::client(wanted, endpoint)?;
        packets
            .transport()
            .encrypt(client)
            .map_err(|error| LoadError::Tls { endpoint: endpoint.to_string(), message: error.to_string() })?;
    }
    authenticate(packets, target, &greeting, capabilities, mariadb)?;
    let dialect = Dialect {
        deprecate_eof: capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF),
        cache_metadata: mariadb.contains(MariadbCapabilities::MARIADB_CLIENT_CACHE_METADATA),
    };
    Ok(HandshakeResult { dialect, version: own_version(&greeting.server_version_str()).to_owned() })
}

/// Refuses a length of the nonce that no server says: `mysql_common` cannot read all of them.
fn check_nonce_length(greeting: &[u8]) -> Result<(), LoadError> {
    // Behind the version, which a zero ends: 4 bytes of the connection, 8 of the nonce, a filler, 2 of capabilities, 1 of the
    // collation, 2 of the status, 2 of capabilities.
    let version_end = greeting.iter().skip(1).position(|byte| *byte == 0);
    match version_end.and_then(|end| greeting.get(1 + end + 1 + 20)) {
        Some(length @ 128..) => {
            Err(LoadError::Protocol(format!("the greeting has a nonce of {length} bytes")))
        }
        _ => Ok(()),
    }
}

/// A server's version without what MariaDB puts before it in its greeting: `10.11.19-MariaDB` for
/// `5.5.5-10.11.19-MariaDB`. Replicas of MySQL 5 would take a version of two digits for an old one
/// (`RPL_VERSION_HACK` in its source).
#[must_use]
pub fn own_version(version: &str) -> &str {
    version.strip_prefix("5.5.5-").unwrap_or(version)
}

fn capabilities(greeting: &HandshakePacket<'_>, target: &Target) -> Result<CapabilityFlags, LoadError> {
    let offered = greeting.capabilities();
    let needed = CapabilityFlags::CLIENT_PROTOCOL_41 | CapabilityFlags::CLIENT_SECURE_CONNECTION;
    if !offered.contains(needed) {
        return Err(LoadError::Protocol("the server is older than MySQL 4.1".into()));
    }
    let wanted = needed
        | CapabilityFlags::CLIENT_LONG_PASSWORD
        | CapabilityFlags::CLIENT_TRANSACTIONS
        | CapabilityFlags::CLIENT_MULTI_RESULTS
        // A server that asks for a file gets rows from memory, and only after LOAD DATA: no file is ever read.
        | CapabilityFlags::CLIENT_LOCAL_FILES
        | CapabilityFlags::CLIENT_PS_MULTI_RESULTS
        | CapabilityFlags::CLIENT_PLUGIN_AUTH
        | CapabilityFlags::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA
        | CapabilityFlags::CLIENT_DEPRECATE_EOF;
    let mut agreed = wanted & offered;
    if target.tls.is_some() {
        if !offered.contains(CapabilityFlags::CLIENT_SSL) {
            return Err(LoadError::Tls {
                endpoint: "the server".into(),
                message: "it does not offer TLS".into(),
            });
        }
        agreed |= CapabilityFlags::CLIENT_SSL;
    }
    Ok(agreed)
}

/// MariaDB extends the capabilities where MySQL's CLIENT_LONG_PASSWORD bit is missing; only then are
/// the extra bits meant.
fn mariadb_capabilities(greeting: &HandshakePacket<'_>) -> MariadbCapabilities {
    if greeting.capabilities().contains(CapabilityFlags::CLIENT_LONG_PASSWORD) {
        return MariadbCapabilities::empty();
    }
    greeting.mariadb_ext_capabilities() & MariadbCapabilities::MARIADB_CLIENT_CACHE_METADATA
}

struct Secrets<'a> {
    target: &'a Target,
    nonce: Vec<u8>,
    local: bool,
    encrypted: bool,
}

impl Secrets<'_> {
    /// Whether nobody but the server can read what is sent: a socket of this machine, or TLS with a certificate that was
    /// checked. Without the check anyone on the way can be the other end.
    fn is_private(&self) -> bool {
        self.local || (self.encrypted && self.target.tls.as_ref().is_some_and(|tls| tls.ca.is_some()))
    }

    /// Whether a packet is the password as it is, with or without a zero byte at its end.
    fn is_password(&self, packet: &[u8]) -> bool {
        let password = self.target.password.as_bytes();
        !password.is_empty() && packet.strip_suffix(&[0]).unwrap_or(packet) == password
    }
}

impl Context for &Secrets<'_> {
    fn pass(&self) -> &[u8] {
        self.target.password.as_bytes()
    }

    fn is_ipc_transport(&self) -> bool {
        self.local
    }

    fn is_tls_transport(&self) -> bool {
        self.encrypted
    }

    fn scramble(&self) -> &[u8] {
        &self.nonce
    }

    fn server_key_pem(&self) -> Option<&[u8]> {
        None
    }
}

/// The methods that send the password as it is.
fn sends_password(plugin: &AuthPlugin<'_>) -> bool {
    matches!(plugin, AuthPlugin::MysqlClearPassword)
}

fn authenticate(
    packets: &mut Packets,
    target: &Target,
    greeting: &HandshakePacket<'_>,
    capabilities: CapabilityFlags,
    mariadb: MariadbCapabilities,
) -> Result<(), LoadError> {
    let mut secrets = Secrets {
        target,
        nonce: greeting.nonce(),
        local: packets.transport().is_local(),
        encrypted: packets.transport().is_encrypted(),
    };
    // A server whose default method is unknown to us gets the oldest one, and reports what the account needs.
    let offered = greeting.auth_plugin().filter(|plugin| plugin.init().is_ok() && !sends_password(plugin));
    let mut plugin = offered.unwrap_or(AuthPlugin::MysqlNativePassword).into_owned();
    let mut method = Method::new(&plugin, &secrets)?;
    let first = method.answer(&secrets, &secrets.nonce)?.unwrap_or_default();
    // MariaDB leaves the long-password bit out of its greeting, and expects it out of the answer too.
    let capabilities = if mariadb.is_empty() {
        capabilities
    } else {
        capabilities.difference(CapabilityFlags::CLIENT_LONG_PASSWORD)
    };
    let response = HandshakeResponse::new(
        Some(first),
        (5, 7, 0),
        Some(target.user.as_bytes()),
        None::<&[u8]>,
        Some(plugin.clone()),
        capabilities,
        None,
        MAX_PACKET,
    )
    .with_mariadb_ext_capabilities(mariadb);
    packets.write(|out| response.serialize(out))?;
    loop {
        let packet = packets.read("logging in")?;
        match packet.first() {
            Some(0x00) => return Ok(()),
            Some(0xFF) => return Err(refused(&packet)),
            Some(0xFE) => {
                let switch: AuthSwitchRequest<'_> = ParseBuf(&packet).parse(()).map_err(protocol)?;
                plugin = switch.auth_plugin().into_owned();
                secrets.nonce = switch.plugin_data().to_vec();
                method = Method::new(&plugin, &secrets)?;
                let answer = method.answer(&secrets, &secrets.nonce)?.unwrap_or_default();
                packets.write(|out| out.extend_from_slice(&answer))?;
            }
            Some(0x01) => {
                if let Some(answer) = method.answer(&secrets, &packet[1..])? {
                    packets.write(|out| out.extend_from_slice(&answer))?;
                }
            }
            _ => return Err(LoadError::Protocol("an unknown packet while logging in".into())),
        }
    }
}

/// One authentication method at work.
struct Method<'a> {
    name: String,
    user: &'a str,
    procedure: AuthProc,
}

impl<'a> Method<'a> {
    fn new(plugin: &AuthPlugin<'_>, secrets: &Secrets<'a>) -> Result<Self, LoadError> {
        let name = String::from_utf8_lossy(plugin.as_bytes()).into_owned();
        let user = secrets.target.user.as_str();
        if sends_password(plugin) && !secrets.is_private() {
            return Err(LoadError::ClearPassword { user: user.to_owned(), plugin: name });
        }
        let procedure = plugin.init().map_err(|_| LoadError::Authentication {
            user: user.to_owned(),
            plugin: name.clone(),
            message: "we do not speak it".into(),
        })?;
        Ok(Self { name, user, procedure })
    }

    /// What is sent for a challenge. Some methods encrypt the password by themselves over a plain connection, and send it as
    /// it is over TLS: that is refused unless the server is known.
    fn answer(&mut self, secrets: &Secrets<'_>, challenge: &[u8]) -> Result<Option<Vec<u8>>, LoadError> {
        let user = || self.user.to_owned();
        match self.procedure.run(secrets, challenge) {
            Ok(Response::Next { packet } | Response::Last { packet }) => match packet {
                Some(packet) if secrets.is_password(&packet) && !secrets.is_private() => {
                    Err(LoadError::ClearPassword { user: user(), plugin: self.name.clone() })
                }
                packet => Ok(packet),
            },
            Err(error) => Err(LoadError::Authentication {
                user: user(),
                plugin: self.name.clone(),
                message: error.to_string(),
            }),
        }
    }
}

fn protocol(error: std::io::Error) -> LoadError {
    LoadError::Protocol(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A greeting as far as the nonce's length.
    fn greeting(nonce_length: u8) -> Vec<u8> {
        [&b"\x0a10.11.19-MariaDB\0"[..], &[0; 20], &[nonce_length], &[0; 10]].concat()
    }

    #[test]
    fn a_nonce_longer_than_any_servers_is_refused() {
        assert!(check_nonce_length(&greeting(21)).is_ok());
        let refused = check_nonce_length(&greeting(255)).unwrap_err().to_string();
        assert!(refused.contains("a nonce of 255 bytes"), "{refused}");
        // What ends before is the library's to refuse.
        assert!(check_nonce_length(b"\x0a10.11").is_ok());
    }
}
