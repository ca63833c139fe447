//! Readiness, as systemd takes it: a unit of `Type=notify` has begun when the server says so, and units after it wait.

use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The variable that names the socket (sd_notify(3)).
const SOCKET: &str = "NOTIFY_SOCKET";

/// Says that the server serves, and how its volumes are. Without the variable nobody asks.
pub fn report_ready(status: &str) {
    let Some(socket) = std::env::var_os(SOCKET) else { return };
    if let Err(error) = send(&socket, &format!("READY=1\nSTATUS={}", status.replace('\n', " "))) {
        tracing::warn!(%error, "systemd cannot be told that the server serves");
    }
}

/// Says that the server ends.
pub fn report_stopping() {
    if let Some(socket) = std::env::var_os(SOCKET) {
        // It ends all the same.
        let _ = send(&socket, "STOPPING=1");
    }
}

fn send(socket: &OsStr, text: &str) -> std::io::Result<()> {
    let address = match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        path => SocketAddr::from_pathname(OsStr::from_bytes(path))?,
    };
    UnixDatagram::unbound()?.send_to_addr(text.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_arrives_at_a_socket_with_a_path_and_at_an_abstract_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let name = format!("ebbtide-test-{}", std::process::id());
        let sockets = [
            (UnixDatagram::bind(&path).unwrap(), path.into_os_string()),
            (
                UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap(),
                format!("@{name}").into(),
            ),
        ];
        for (receiver, socket) in sockets {
            send(&socket, "READY=1").unwrap();
            let mut bytes = [0; 16];
            let length = receiver.recv(&mut bytes).unwrap();
            assert_eq!(&bytes[..length], b"READY=1");
        }
    }
}
