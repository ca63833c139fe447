//! A client of NBD with one request at a time.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

pub(crate) struct Client {
    stream: UnixStream,
}

impl Client {
    /// Connects, and negotiates up to the transmission phase.
    pub(crate) fn connect(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut client = Self { stream };
        assert_eq!(client.bytes(18)[..16], *b"NBDMAGICIHAVEOPT");
        let go = [&b"IHAVEOPT"[..], &7_u32.to_be_bytes(), &6_u32.to_be_bytes(), &[0; 6]].concat();
        client.send(&[&3_u32.to_be_bytes()[..], &go].concat());
        loop {
            let head = client.bytes(20);
            let word = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().unwrap());
            client.bytes(word(16) as usize);
            if word(12) == 1 {
                return client;
            }
        }
    }

    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) {
        self.request(1, offset, data.len());
        self.send(data);
        self.reply();
    }

    pub(crate) fn read(&mut self, offset: u64, len: usize) -> Vec<u8> {
        self.request(0, offset, len);
        self.reply();
        self.bytes(len)
    }

    fn request(&mut self, command: u16, offset: u64, len: usize) {
        let magic_and_flags = [&0x2560_9513_u32.to_be_bytes()[..], &[0; 2]].concat();
        let len = u32::try_from(len).unwrap().to_be_bytes();
        self.send(
            &[&magic_and_flags[..], &command.to_be_bytes(), &[7; 8], &offset.to_be_bytes(), &len].concat(),
        );
    }

    fn reply(&mut self) {
        let head = self.bytes(16);
        assert_eq!(head, [&0x6744_6698_u32.to_be_bytes()[..], &[0; 4], &[7; 8]].concat());
    }

    fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // The server ends the connection in order.
        self.request(2, 0, 0);
    }
}
