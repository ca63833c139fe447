//! Listening, and the life of a server.

use std::{
    fs, io,
    net::TcpListener,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::{
            fs::{FileTypeExt, MetadataExt},
            net::{UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
    sync::Arc,
    thread::{Builder, JoinHandle},
    time::{Duration, Instant},
};

use rustix::net::sockopt;

use super::{
    NbdAddress, NbdError, NbdOptions, connection,
    hub::{Entry, Hub},
    refused::RefusedLog,
};
use crate::clock::{Clock, MonotonicClock};
use crate::engine::LiveVolume;
use crate::socket;
use crate::transport::nbd::wire::MAX_STRING;

/// Bytes of replies that the kernel holds for a client: a queue of 32 replies of 16 KiB, so that
/// they rarely wait for the client to read.
const SEND_BUFFER: usize = 1 << 20;

/// How long to wait before the next accept where the process is out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Offers a live volume to NBD clients for as long as it lives.
#[derive(Debug)]
pub struct NbdServer {
    address: NbdAddress,
    hub: Arc<Hub>,
    /// The socket's file, with the device and inode by which it is known to be still ours.
    file: Option<(PathBuf, u64, u64)>,
    acceptor: Option<JoinHandle<()>>,
    listener: Arc<Listener>,
}

#[derive(Debug)]
enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl Listener {
    fn accept(&self) -> io::Result<OwnedFd> {
        match self {
            Self::Unix(listener) => Ok(listener.accept()?.0.into()),
            Self::Tcp(listener) => {
                let stream = listener.accept()?.0;
                stream.set_nodelay(true)?;
                Ok(stream.into())
            }
        }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(listener) => listener.as_fd(),
            Self::Tcp(listener) => listener.as_fd(),
        }
    }
}

impl NbdServer {
    /// Listens on `address` and serves `volume` from threads of its own.
    ///
    /// A socket file that nobody listens on any more is replaced.
    ///
    /// # Errors
    /// [`NbdError`] has the reason why it cannot listen there, and what to do.
    pub fn listen(
        volume: Arc<LiveVolume>,
        address: &NbdAddress,
        options: NbdOptions,
    ) -> Result<Self, NbdError> {
        if options.export.len() > MAX_STRING {
            return Err(NbdError::ExportName { length: options.export.len(), max: MAX_STRING });
        }
        let (listener, address, file) = match address {
            NbdAddress::Unix(path) => {
                let listener = listen_unix(path, options.socket_mode)?;
                let file = fs::symlink_metadata(path).ok().map(|meta| (path.clone(), meta.dev(), meta.ino()));
                (Listener::Unix(listener), address.clone(), file)
            }
            NbdAddress::Tcp { host, port } => {
                let (listener, port) = listen_tcp(host, *port, options.beyond_loopback)?;
                (Listener::Tcp(listener), NbdAddress::Tcp { host: host.clone(), port }, None)
            }
        };
        let hub = Arc::new(Hub::new(volume, options));
        let listener = Arc::new(listener);
        let acceptor = {
            let (listener, hub) = (Arc::clone(&listener), Arc::clone(&hub));
            Builder::new()
                .name("nbd-accept".into())
                .spawn(move || accept(&listener, &hub))
                .map_err(|source| NbdError::Listen { address: address.clone(), source })?
        };
        Ok(Self { address, hub, file, acceptor: Some(acceptor), listener })
    }

    /// Where it listens; the port is the real one where port 0 was asked for.
    #[must_use]
    pub const fn address(&self) -> &NbdAddress {
        &self.address
    }

    /// The URI at which clients find the volume.
    #[must_use]
    pub fn uri(&self) -> String {
        self.address.uri(&self.hub.options.export)
    }

    /// Clients connected now, those included that still negotiate.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.hub.connections()
    }

    /// Stops listening, lets what is in flight be answered, closes the connections and removes the
    /// socket's file. Requests that arrive meanwhile get "shutting down". A client that does not
    /// take its replies in [`NbdOptions::stop_timeout`] loses them.
    pub fn stop(mut self) {
        self.shut();
    }

    fn shut(&mut self) {
        let Some(acceptor) = self.acceptor.take() else { return };
        self.hub.stop();
        if let Some((path, device, inode)) = &self.file
            && fs::symlink_metadata(path).is_ok_and(|meta| (meta.dev(), meta.ino()) == (*device, *inode))
        {
            // Removed by someone else in between: as good.
            let _ = fs::remove_file(path);
        }
        // Wakes the accept; it cannot fail on a socket that listens.
        let _ = rustix::net::shutdown(self.listener.fd(), rustix::net::Shutdown::Both);
        let _ = acceptor.join();
        let deadline = Instant::now() + self.hub.options.stop_timeout;
        self.hub.shut_all(rustix::net::Shutdown::Read);
        if !self.hub.wait_until_closed(deadline) {
            let open = self.connections();
            tracing::warn!(address = %self.address, open, "closing connections with requests in flight");
            self.hub.shut_all(rustix::net::Shutdown::Both);
            // A volume that stalls may still owe answers; their threads end with the last one.
            self.hub.wait_until_closed(Instant::now() + Duration::from_millis(500));
        }
    }
}

impl Drop for NbdServer {
    fn drop(&mut self) {
        self.shut();
    }
}

fn accept(listener: &Listener, hub: &Arc<Hub>) {
    let clock = MonotonicClock::new();
    let (mut failed, mut refused) = (RefusedLog::default(), RefusedLog::default());
    for number in 0.. {
        let socket = match listener.accept() {
            _ if hub.stopping() => return,
            Ok(socket) => socket,
            Err(error) => {
                if let Some(times) = failed.count(clock.now()) {
                    tracing::warn!(%error, times, "cannot accept NBD connections");
                }
                std::thread::sleep(ACCEPT_PAUSE);
                continue;
            }
        };
        if hub.connections() >= hub.options.max_connections {
            if let Some(refused) = refused.count(clock.now()) {
                let (export, max) = (&hub.options.export, hub.options.max_connections);
                tracing::warn!(export, max, refused, "closed NBD connections beyond the most at a time");
            }
            continue;
        }
        if let Err(error) = start(number, socket, hub)
            && let Some(times) = failed.count(clock.now())
        {
            tracing::warn!(%error, times, "cannot serve NBD connections");
        }
    }
}

/// Serves one connection from a thread of its own.
fn start(number: u64, socket: OwnedFd, hub: &Arc<Hub>) -> io::Result<()> {
    // A smaller buffer costs speed alone.
    let _ = sockopt::set_socket_send_buffer_size(&socket, SEND_BUFFER);
    let entry = Entry::new(number, &socket, hub)?;
    Builder::new().name(format!("nbd-{number}")).spawn(move || {
        if let Err(error) = connection::serve(socket, &entry.hub) {
            tracing::debug!(number = entry.number, %error, "an NBD connection ended early");
        }
    })?;
    Ok(())
}

fn listen_unix(path: &Path, mode: u32) -> Result<UnixListener, NbdError> {
    let address = || NbdAddress::Unix(path.to_owned());
    let length = path.as_os_str().len();
    if length > super::address::SOCKET_PATH_MAX {
        let max = super::address::SOCKET_PATH_MAX;
        return Err(NbdError::PathTooLong { path: path.to_owned(), length, max });
    }
    let listening = match socket::listen(path, mode) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            remove_stale(path)?;
            socket::listen(path, mode)
        }
        other => other,
    };
    listening.map_err(|source| failed(address(), source))
}

/// Removes a socket file on which nobody listens.
fn remove_stale(path: &Path) -> Result<(), NbdError> {
    let address = || NbdAddress::Unix(path.to_owned());
    if !fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket()) {
        return Err(NbdError::NotASocket { path: path.to_owned() });
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(|source| failed(address(), source))
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(failed(address(), error)),
        _ => Err(NbdError::InUse { address: address() }),
    }
}

fn listen_tcp(host: &str, port: u16, beyond_loopback: bool) -> Result<(TcpListener, u16), NbdError> {
    let failed = |source| failed(NbdAddress::Tcp { host: host.to_owned(), port }, source);
    let addresses = NbdAddress::resolve(host, port).map_err(failed)?;
    if let Some(address) = addresses.iter().find(|address| !beyond_loopback && !address.ip().is_loopback()) {
        return Err(NbdError::BeyondLoopback { host: host.to_owned(), address: *address });
    }
    let listener = TcpListener::bind(&addresses[..]).map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    Ok((listener, port))
}

fn failed(address: NbdAddress, source: io::Error) -> NbdError {
    match source.kind() {
        io::ErrorKind::AddrInUse => NbdError::InUse { address },
        io::ErrorKind::PermissionDenied => NbdError::Permission { address, source },
        _ => NbdError::Listen { address, source },
    }
}
