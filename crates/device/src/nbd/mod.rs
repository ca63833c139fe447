//! Volumes over the network block device protocol: no root, no kernel module, any client.
//!
//! [`NbdServer::listen`] offers one live volume on a Unix socket or a TCP port. Every connection
//! has a thread that reads requests and hands them to the volume, and one that finishes replies
//! which a slow client did not take at once; what the volume answers goes to the socket straight
//! from the thread that answers. All connections share the volume, so that a write answered on one
//! is seen on all.
//!
//! `docs/nbd.md` shows the clients; `docs/decisions/nbd-server.md` explains why this is our own code.

mod address;
mod connection;
mod hub;
mod input;
mod negotiate;
mod refused;
mod server;
mod status;

use std::{fmt, io, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

pub use address::{NBD_PORT, NbdAddress};
pub use server::NbdServer;

/// How a server presents a volume, and what it grants a client.
#[derive(Clone)]
pub struct NbdOptions {
    /// The export's name; a client that names none gets the volume too. At most 4096 bytes.
    pub export: String,
    /// A sentence about the volume that clients show to people.
    pub description: String,
    /// Whether the volume is announced to clients as a spinning disk.
    pub rotational: bool,
    /// Names the snapshots about which "changed since" can be asked. Names that are no ancestor of
    /// the volume are left out.
    pub snapshots: Snapshots,
    /// Whether TCP may listen on an address that other machines reach. NBD has no passwords, and
    /// this server no TLS.
    pub beyond_loopback: bool,
    /// Connections at a time; further ones are closed at once.
    pub max_connections: usize,
    /// Requests that one connection has in flight at most; the next one waits in the socket.
    pub max_requests: usize,
    /// Bytes of data that one connection has in flight at most, and therefore the memory that a
    /// client holds which does not read its replies. One longer request is let in alone.
    pub max_bytes: usize,
    /// How long a client may take from connecting to the end of the negotiation.
    pub handshake_timeout: Duration,
    /// How long [`NbdServer::stop`] waits for requests in flight and for clients to take replies.
    pub stop_timeout: Duration,
    /// Permission bits of a Unix socket.
    pub socket_mode: u32,
}

/// A question for the names of snapshots, asked when a client negotiates.
pub type Snapshots = Arc<dyn Fn() -> Vec<String> + Send + Sync>;

impl NbdOptions {
    /// The defaults, for an export of this name: 16 connections of 512 requests and 8 MiB each,
    /// 10 s to negotiate, 5 s to stop, a socket for its owner alone.
    #[must_use]
    pub fn new(export: impl Into<String>) -> Self {
        Self {
            export: export.into(),
            description: String::new(),
            rotational: false,
            snapshots: Arc::new(Vec::new),
            beyond_loopback: false,
            max_connections: 16,
            max_requests: 512,
            max_bytes: 8 << 20,
            handshake_timeout: Duration::from_secs(10),
            stop_timeout: Duration::from_secs(5),
            socket_mode: 0o600,
        }
    }
}

impl fmt::Debug for NbdOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NbdOptions")
            .field("export", &self.export)
            .field("max_connections", &self.max_connections)
            .field("max_requests", &self.max_requests)
            .field("max_bytes", &self.max_bytes)
            .finish_non_exhaustive()
    }
}

/// Why a server cannot listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NbdError {
    /// The text is no address.
    #[error("'{text}' is not an NBD address: {why}; write unix:PATH or tcp:HOST:PORT")]
    Address {
        /// What was given.
        text: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A socket address holds fewer bytes than the path has.
    #[error(
        "the socket path {} has {length} bytes, and the kernel takes at most {max}; choose a shorter one",
        path.display()
    )]
    PathTooLong {
        /// The path.
        path: PathBuf,
        /// Its bytes.
        length: usize,
        /// Bytes that fit.
        max: usize,
    },
    /// The export's name does not fit into the protocol.
    #[error("an export name takes at most {max} bytes, not {length}; choose a shorter one")]
    ExportName {
        /// Its bytes.
        length: usize,
        /// Bytes that fit.
        max: usize,
    },
    /// Someone listens there already.
    #[error("{address} is in use by another server; choose another address, or stop that server")]
    InUse {
        /// The address.
        address: NbdAddress,
    },
    /// The path of the socket is taken by something else.
    #[error("{} exists and is not a socket; choose another path, or remove it", path.display())]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// Other machines would reach the volume.
    #[error(
        "tcp:{host} is {ip}, which other machines reach, and NBD asks for no password; \
         give tcp:127.0.0.1:PORT or unix:PATH, and let other machines in through a tunnel of ssh",
        ip = address.ip()
    )]
    BeyondLoopback {
        /// The host that was named.
        host: String,
        /// What it represents.
        address: SocketAddr,
    },
    /// This user may not listen there.
    #[error("no permission to listen on {address}; choose a directory or a port that this user may use")]
    Permission {
        /// The address.
        address: NbdAddress,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The kernel refused for another reason.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: NbdAddress,
        /// The kernel's answer.
        source: io::Error,
    },
}
