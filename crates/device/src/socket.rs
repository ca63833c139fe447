//! Unix sockets whose files have their mode before anyone can connect.

use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// Connections that the kernel keeps until they are accepted, as the standard library has it.
const BACKLOG: i32 = 128;

/// Listens at a path that nothing is at. The file of the socket has these permission bits, whatever the process's mask,
/// and nobody can connect before it has them.
///
/// # Errors
/// Those of the operating system: [`io::ErrorKind::AddrInUse`] where something is at the path.
pub fn listen(path: &Path, mode: u32) -> io::Result<UnixListener> {
    let socket = bind(path, mode)?;
    set_mode(path, mode)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// Wakes who waits to accept, whatever has become of the socket's file, and lets nobody be accepted any more.
pub fn close(socket: &UnixListener) {
    // It cannot fail on a socket that listens.
    let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
}

/// Binds a socket whose file has `mode`, or less, from its first moment on: the kernel takes the mode of the socket
/// itself, without the bits of the process's mask (`unix_bind_bsd` in net/unix/af_unix.c).
fn bind(path: &Path, mode: u32) -> io::Result<OwnedFd> {
    let address = SocketAddrUnix::new(path)?;
    let socket =
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    rustix::fs::fchmod(&socket, Mode::from_raw_mode(mode))?;
    rustix::net::bind(&socket, &address)?;
    Ok(socket)
}

/// Gives the socket's file the bits that the process's mask took away. A link or another file that has taken its place
/// meanwhile, which the owner of the directory can bring about, is not touched.
fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    let file = rustix::fs::open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    let facts = rustix::fs::fstat(&file)?;
    let is_socket = FileType::from_raw_mode(facts.st_mode) == FileType::Socket;
    if !is_socket || facts.st_nlink != 1 || facts.st_uid != rustix::process::geteuid().as_raw() {
        let message = "another file has taken the place of the socket";
        return Err(io::Error::new(io::ErrorKind::AddrInUse, message));
    }
    if facts.st_mode & 0o777 == mode & 0o777 {
        return Ok(());
    }
    // A descriptor without rights to read or write takes no fchmod; its own link in /proc leads to its file alone.
    fs::set_permissions(format!("/proc/self/fd/{}", file.as_raw_fd()), Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, symlink};
    use std::os::unix::net::UnixStream;

    use super::*;

    fn mode_of(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn a_socket_has_its_mode_before_anyone_could_connect() {
        let dir = tempfile::tempdir().unwrap();
        for mode in [0o600, 0o660, 0o666] {
            let path = dir.path().join(format!("{mode:o}"));
            let _socket = bind(&path, mode).unwrap();
            assert_eq!(mode_of(&path) & !mode, 0, "not a bit more at any time");
            // Bound and not listening: there is no moment at which a wrong mode lets someone in.
            let refused = UnixStream::connect(&path).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
            set_mode(&path, mode).unwrap();
            assert_eq!(mode_of(&path), mode, "whatever the mask");
        }
        let path = dir.path().join("listening");
        let _listener = listen(&path, 0o660).unwrap();
        assert_eq!(mode_of(&path), 0o660);
        UnixStream::connect(&path).unwrap();
    }

    #[test]
    fn what_takes_the_place_of_the_socket_keeps_its_mode() {
        let dir = tempfile::tempdir().unwrap();
        let (victim, link) = (dir.path().join("victim"), dir.path().join("s"));
        fs::write(&victim, "mine").unwrap();
        fs::set_permissions(&victim, Permissions::from_mode(0o600)).unwrap();
        symlink(&victim, &link).unwrap();
        for path in [&link, &victim] {
            let error = set_mode(path, 0o666).unwrap_err();
            assert!(error.to_string().contains("has taken the place"), "{error}");
            assert_eq!(mode_of(&victim), 0o600);
        }
        assert_eq!(listen(&link, 0o666).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        assert_eq!(mode_of(&victim), 0o600);
    }
}
