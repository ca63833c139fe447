//! Listening, refusing to listen, and stopping.

use std::{
    fs,
    io::ErrorKind,
    os::unix::{fs::PermissionsExt, net::UnixListener},
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use ebbtide_device::{
    faults::Faults,
    nbd::{NbdAddress, NbdError, NbdOptions, NbdServer},
};

use crate::{
    MIB, Served, installed, limits,
    raw::{Client, FLUSH, READ, WRITE},
};

fn listen(served: &Served, address: &str) -> Result<NbdServer, NbdError> {
    let address = NbdAddress::parse(address)?;
    NbdServer::listen(Arc::clone(&served.volume), &address, NbdOptions::new("other"))
}

fn unix(served: &Served, name: &str) -> String {
    format!("unix:{}", served.path(name).display())
}

#[test]
fn a_socket_is_for_its_owner_and_goes_when_the_server_stops() {
    let served = Served::new(8, 0);
    let path = served.path("vol.sock");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    served.server.stop();
    assert!(!path.exists());
}

#[test]
fn a_socket_that_another_server_put_there_meanwhile_stays() {
    let served = Served::new(8, 0);
    let path = served.path("vol.sock");
    fs::remove_file(&path).unwrap();
    let _other = UnixListener::bind(&path).unwrap();
    served.server.stop();
    assert!(path.exists());
}

#[test]
fn a_stale_socket_is_replaced_and_a_living_one_is_not() {
    let served = Served::new(8, 0);
    assert!(matches!(listen(&served, &unix(&served, "vol.sock")), Err(NbdError::InUse { .. })));
    drop(UnixListener::bind(served.path("stale")).unwrap());
    let server = listen(&served, &unix(&served, "stale")).unwrap();
    drop(Client::at(&served.path("stale")));
    server.stop();
}

#[test]
fn a_file_in_the_way_is_left_alone() {
    let served = Served::new(8, 0);
    fs::write(served.path("data"), "precious").unwrap();
    let error = listen(&served, &unix(&served, "data")).unwrap_err();
    assert!(matches!(error, NbdError::NotASocket { .. }), "{error}");
    assert_eq!(fs::read(served.path("data")).unwrap(), b"precious");
}

#[test]
fn a_missing_directory_and_a_taken_port_are_named() {
    let served = Served::new(8, 0);
    let error = listen(&served, &unix(&served, "no/where")).unwrap_err();
    assert!(matches!(error, NbdError::Listen { .. }) && error.to_string().contains("no/where"), "{error}");
    let server = listen(&served, "tcp:127.0.0.1:0").unwrap();
    let error = listen(&served, &server.address().to_string()).unwrap_err();
    assert!(matches!(error, NbdError::InUse { .. }), "{error}");
}

#[test]
fn tcp_beyond_the_loopback_needs_to_be_allowed() {
    let served = Served::new(8, 0);
    for host in ["0.0.0.0", "[::]"] {
        let error = listen(&served, &format!("tcp:{host}:0")).unwrap_err();
        assert!(matches!(error, NbdError::BeyondLoopback { .. }), "{error}");
    }
    let mut options = NbdOptions::new("other");
    options.beyond_loopback = true;
    let address = NbdAddress::parse("tcp:0.0.0.0:0").unwrap();
    NbdServer::listen(Arc::clone(&served.volume), &address, options).unwrap().stop();
}

#[test]
fn a_unix_socket_is_closed_to_other_users() {
    if !installed("setpriv") || !installed("nbdinfo") {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: only root can act as another user");
        return;
    }
    let served = Served::new(8, 0);
    let mode = |path: PathBuf| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(served.path("vol.sock")), 0o600);
    // The directory is open to everyone, so that the socket's own mode decides.
    fs::set_permissions(served.dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let as_nobody = |uri: &str| {
        let mut command = std::process::Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "nbdinfo", "--size", uri]);
        let output = command.current_dir("/").output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (reached, error) = as_nobody(&served.uri());
    assert!(!reached && error.contains("Permission denied"), "{error}");
    // A mode that lets others in does, which shows that nothing else kept the other user out.
    let mut options = NbdOptions::new("open");
    options.socket_mode = 0o666;
    let address = NbdAddress::Unix(served.path("open.sock"));
    let open = NbdServer::listen(Arc::clone(&served.volume), &address, options).unwrap();
    assert_eq!(mode(served.path("open.sock")), 0o666);
    let (reached, error) = as_nobody(&open.uri());
    assert!(reached, "{error}");
}

#[test]
fn connections_beyond_the_bound_are_closed_and_count_again_once_others_end() {
    let served = Served::with(8, 0, |options| options.max_connections = 2);
    let first = Client::ready(&served, false);
    let _second = Client::ready(&served, false);
    assert_eq!(served.server.connections(), 2);
    let third = std::os::unix::net::UnixStream::connect(served.path("vol.sock")).unwrap();
    third.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let end = std::io::Read::read(&mut &third, &mut [0; 18]);
    assert!(
        end.as_ref().map_or_else(|e| e.kind() == ErrorKind::ConnectionReset, |&read| read == 0),
        "{end:?}"
    );
    drop(first);
    let start = Instant::now();
    while served.server.connections() > 1 {
        assert!(start.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(Client::ready(&served, false));
}

#[test]
fn a_client_that_does_not_negotiate_in_time_is_dropped() {
    let served = Served::with(8, 0, |options| options.handshake_timeout = Duration::from_secs(2));
    // Connected before the others, so that its time would have ended before theirs.
    let mut done = Client::ready(&served, false);
    let mut silent = Client::connect(&served);
    let mut dripping = Client::connect(&served);
    dripping.send(&[0, 0]);
    assert!(silent.is_closed() && dripping.is_closed());
    done.request(READ, 0, 1, 0, 512);
    assert_eq!(done.simple_reply(), (0, 1));
}

#[test]
fn stopping_answers_what_is_in_flight_and_closes() {
    let served = Served::with(8, 50_000, |options| options.stop_timeout = Duration::from_secs(600));
    let mut client = Client::ready(&served, false);
    for cookie in 0..4 {
        client.request(READ, 0, cookie, 0, 4096);
    }
    while served.volume.in_flight() < 4 {
        std::thread::yield_now();
    }
    let Served { server, .. } = served;
    let start = Instant::now();
    let stopping = std::thread::spawn(move || server.stop());
    let mut answered = Vec::new();
    for _ in 0..4 {
        let (error, cookie) = client.simple_reply();
        assert_eq!(error, 0);
        answered.push(cookie);
        client.skip(4096);
    }
    answered.sort_unstable();
    assert_eq!(answered, [0, 1, 2, 3]);
    assert!(client.is_closed());
    stopping.join().unwrap();
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

#[test]
fn stopping_does_not_wait_for_ever_for_a_volume_that_stalls() {
    let served = Served::with(8, 0, |options| options.stop_timeout = Duration::from_millis(100));
    served.volume.set_faults(Faults { stalled: true, ..Faults::default() }).unwrap();
    let mut client = Client::ready(&served, false);
    client.request(WRITE, 0, 1, 0, 512);
    client.send(&[1; 512]);
    while served.volume.in_flight() < 1 {
        std::thread::yield_now();
    }
    let Served { server, volume, .. } = served;
    let start = Instant::now();
    server.stop();
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    volume.set_faults(Faults::default()).unwrap();
}

#[test]
fn a_flush_on_one_connection_covers_what_was_answered_on_another() {
    let mut cached = limits(8 * MIB, 0);
    cached.durability.volatile_cache_bytes = MIB;
    let served = Served::over(cached, |_| {});
    let [mut writer, mut flusher] = [(); 2].map(|()| Client::ready(&served, false));
    writer.request(WRITE, 0, 1, 0, 4096);
    writer.send(&[7; 4096]);
    assert_eq!(writer.simple_reply(), (0, 1));
    let stored = || {
        let mut bytes = [0; 4096];
        served.volume.store().read_at(&mut bytes, 0).unwrap();
        bytes[0]
    };
    assert_eq!(stored(), 0, "it is in the volatile cache");
    flusher.request(FLUSH, 0, 2, 0, 0);
    assert_eq!(flusher.simple_reply(), (0, 2));
    assert_eq!(stored(), 7);
}
