//! What a client of NBD sends.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use ebbtide_device::engine::{LiveOptions, LiveVolume};
use ebbtide_device::nbd::{NbdAddress, NbdOptions, NbdServer};
use ebbtide_device::store::{StoreOptions, VolumeStore};
use ebbtide_volume::{Array, Limits, Nanos};
use tempfile::TempDir;

/// Bytes of the volume.
const SIZE: u64 = 16 << 20;

/// The server ends before its folder goes.
struct Served {
    _server: NbdServer,
    _store: VolumeStore,
    dir: TempDir,
}

thread_local! {
    static SERVED: Served = serve();
}

fn serve() -> Served {
    let dir = tempfile::tempdir().expect("a folder can be made");
    let store = VolumeStore::open(&dir.path().join("store"), StoreOptions::default()).expect("a new store");
    store.create_volume("v", SIZE, serde_json::Value::Null).expect("a new volume");
    let array = Array::single(Limits::unlimited(SIZE), Nanos::ZERO).expect("limits that fit");
    let blocks = store.open_volume("v").expect("the volume is there");
    let volume = LiveVolume::start(LiveOptions::new("v", array, blocks, 1)).expect("it starts");
    let address = NbdAddress::Unix(dir.path().join("v.sock"));
    let server = NbdServer::listen(volume, &address, NbdOptions::new("v")).expect("a socket can be made");
    Served { _server: server, _store: store, dir }
}

/// A whole connection: the bytes, then the end. The server closes it.
pub(super) fn nbd(bytes: &[u8]) {
    let socket = SERVED.with(|served| served.dir.path().join("v.sock"));
    let mut stream = UnixStream::connect(socket).expect("the server listens");
    let reading = stream.try_clone().expect("a descriptor is free");
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // A server that closes before it has read everything is right, too.
            let _ = stream.write_all(bytes);
            let _ = stream.shutdown(Shutdown::Write);
        });
        let _ = std::io::copy(&mut reading.take(1 << 30), &mut std::io::sink());
    });
}
