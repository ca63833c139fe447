//! A client made of bytes, to send what no library would.

use std::{
    io::{Read, Write},
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

use crate::Served;

pub(crate) const READ: u16 = 0;
pub(crate) const WRITE: u16 = 1;
pub(crate) const DISCONNECT: u16 = 2;
pub(crate) const FLUSH: u16 = 3;

pub(crate) struct Client {
    pub(crate) stream: UnixStream,
}

impl Client {
    /// Connects and reads the greeting.
    pub(crate) fn connect(served: &Served) -> Self {
        Self::at(&served.path("vol.sock"))
    }

    pub(crate) fn at(path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut client = Self { stream };
        assert_eq!(client.bytes::<18>()[..16], *b"NBDMAGICIHAVEOPT");
        client
    }

    /// Negotiates up to the transmission phase.
    pub(crate) fn ready(served: &Served, structured: bool) -> Self {
        let mut client = Self::connect(served);
        client.send(&3_u32.to_be_bytes());
        if structured {
            client.option(8, &[]);
            assert_eq!(client.option_reply().0, 1);
        }
        client.option(7, &[0; 6]);
        while client.option_reply().0 != 1 {}
        client
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub(crate) fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    pub(crate) fn skip(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    pub(crate) fn option(&mut self, option: u32, data: &[u8]) {
        let len = u32::try_from(data.len()).unwrap();
        self.send(&[b"IHAVEOPT", &option.to_be_bytes()[..], &len.to_be_bytes(), data].concat());
    }

    /// The kind and the data of an option's reply.
    pub(crate) fn option_reply(&mut self) -> (u32, Vec<u8>) {
        let head = self.bytes::<20>();
        assert_eq!(head[..8], 0x0003_e889_0455_65a9_u64.to_be_bytes());
        (word(&head[12..16]), self.skip(usize::try_from(word(&head[16..])).unwrap()))
    }

    pub(crate) fn request(&mut self, command: u16, flags: u16, cookie: u64, offset: u64, len: u32) {
        let parts = [
            &0x2560_9513_u32.to_be_bytes()[..],
            &flags.to_be_bytes(),
            &command.to_be_bytes(),
            &cookie.to_be_bytes(),
            &offset.to_be_bytes(),
            &len.to_be_bytes(),
        ];
        self.send(&parts.concat());
    }

    /// The error and the cookie of a simple reply.
    pub(crate) fn simple_reply(&mut self) -> (u32, u64) {
        let head = self.bytes::<16>();
        assert_eq!(head[..4], 0x6744_6698_u32.to_be_bytes());
        (word(&head[4..8]), u64::from_be_bytes(head[8..].try_into().unwrap()))
    }

    /// Whether the server has closed the connection, and sent nothing more before.
    pub(crate) fn is_closed(&mut self) -> bool {
        match self.stream.read(&mut [0]) {
            Ok(read) => read == 0,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}

fn word(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes.try_into().unwrap())
}
