//! A connected socket, plain or encrypted: blocking while a session is set up, and in single
//! system calls that never block for the event loop.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use rustls::ClientConnection;

use super::command;
use crate::error::LoadError;
use crate::options::Endpoint;

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug)]
enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(socket) => socket.as_fd(),
            Self::Unix(socket) => socket.as_fd(),
        }
    }
}

/// The bytes' way to the server and back.
#[derive(Debug)]
pub(crate) struct Transport {
    socket: Socket,
    tls: Option<Box<ClientConnection>>,
}

/// What one attempt to receive brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Received {
    /// So many bytes, and perhaps there are more.
    Some(usize),
    /// So many bytes, and nothing was left behind them when we looked.
    All(usize),
    /// Nothing is there.
    Nothing,
    /// The server closed the connection.
    Closed,
}

impl Transport {
    pub(crate) fn connect(endpoint: &Endpoint) -> Result<Self, LoadError> {
        let socket = connect(endpoint)
            .map_err(|source| LoadError::Unreachable { endpoint: endpoint.to_string(), source })?;
        Ok(Self { socket, tls: None })
    }

    /// Whether the other end is on this machine by construction.
    pub(crate) fn is_local(&self) -> bool {
        matches!(self.socket, Socket::Unix(_))
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Encrypts everything from now on.
    pub(crate) fn encrypt(&mut self, mut tls: Box<ClientConnection>) -> io::Result<()> {
        let mut io = Blocking(&self.socket);
        while tls.is_handshaking() {
            tls.complete_io(&mut io)?;
        }
        self.tls = Some(tls);
        Ok(())
    }

    /// Limits how long a blocking read may take.
    pub(crate) fn set_read_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        match &self.socket {
            Socket::Tcp(socket) => socket.set_read_timeout(limit),
            Socket::Unix(socket) => socket.set_read_timeout(limit),
        }
    }

    /// Sends what the socket takes at once, and answers with how many bytes that was.
    /// An encrypted connection takes everything; what the socket did not take is kept inside.
    pub(crate) fn send_now(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return nonblocking(rustix::net::send(
                &self.socket,
                bytes,
                SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
            ))
            .map(|sent| sent.unwrap_or(0));
        };
        tls.writer().write_all(bytes)?;
        self.flush_now().map(|_| bytes.len())
    }

    /// Whether an encrypted connection keeps bytes that the socket has not taken.
    pub(crate) fn has_unsent(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Sends what an encrypted connection has kept; whether nothing is left.
    pub(crate) fn flush_now(&mut self) -> io::Result<bool> {
        let Some(tls) = &mut self.tls else { return Ok(true) };
        while tls.wants_write() {
            match tls.write_tls(&mut Immediate(&self.socket)) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Receives what is there.
    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Received> {
        if self.tls.is_some() {
            return self.receive_encrypted(buffer);
        }
        let room = buffer.len();
        Ok(match nonblocking(rustix::net::recv(&self.socket, buffer, RecvFlags::DONTWAIT))? {
            None => Received::Nothing,
            Some((_, 0)) => Received::Closed,
            Some((_, read)) if read < room => Received::All(read),
            Some((_, read)) => Received::Some(read),
        })
    }

    fn receive_encrypted(&mut self, buffer: &mut [u8]) -> io::Result<Received> {
        let tls = self.tls.as_mut().expect("checked by the caller");
        let mut closed = false;
        loop {
            match tls.reader().read(buffer) {
                Ok(0) => return Ok(Received::Closed),
                Ok(read) => return Ok(Received::Some(read)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            if closed {
                return Ok(Received::Closed);
            }
            match tls.read_tls(&mut Immediate(&self.socket)) {
                Ok(0) => closed = true,
                Ok(_) => {
                    tls.process_new_packets().map_err(io::Error::other)?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Received::Nothing),
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Transport {
    /// Sends a quit, so that the server does not count an aborted connection. The bytes may come
    /// behind a statement that is not answered yet, or not go out at all: nobody waits for them.
    fn drop(&mut self) {
        let mut goodbye = Vec::new();
        command::quit(&mut goodbye);
        let _ = self.send_now(&goodbye);
    }
}

impl AsFd for Transport {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Read for Transport {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => Blocking(&self.socket).read(buffer),
            Some(tls) => rustls::Stream::new(tls.as_mut(), &mut Blocking(&self.socket)).read(buffer),
        }
    }
}

impl Write for Transport {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => Blocking(&self.socket).write(bytes),
            Some(tls) => rustls::Stream::new(tls.as_mut(), &mut Blocking(&self.socket)).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.tls {
            None => Ok(()),
            Some(tls) => rustls::Stream::new(tls.as_mut(), &mut Blocking(&self.socket)).flush(),
        }
    }
}

fn connect(endpoint: &Endpoint) -> io::Result<Socket> {
    match endpoint {
        Endpoint::Unix(path) => UnixStream::connect(path).map(Socket::Unix),
        Endpoint::Tcp { host, port } => {
            use std::net::ToSocketAddrs as _;
            let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
            for address in (host.as_str(), *port).to_socket_addrs()? {
                match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
                    Ok(socket) => {
                        socket.set_nodelay(true)?;
                        return Ok(Socket::Tcp(socket));
                    }
                    Err(error) => last = error,
                }
            }
            Err(last)
        }
    }
}

/// "Nothing now" becomes None; an interruption counts as that, the loop comes again.
fn nonblocking<T>(result: rustix::io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

struct Blocking<'a>(&'a Socket);

impl Read for Blocking<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match rustix::net::recv(self.0, buffer, RecvFlags::empty()) {
            Ok((_, read)) => Ok(read),
            // rustls reads again where a read was interrupted: a signal would not end a wait.
            Err(Errno::INTR) => Err(io::Error::other("a signal interrupted it")),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl Write for Blocking<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::net::send(self.0, bytes, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Immediate<'a>(&'a Socket);

impl Read for Immediate<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::net::recv(self.0, buffer, RecvFlags::DONTWAIT)?.1)
    }
}

impl Write for Immediate<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::net::send(self.0, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
