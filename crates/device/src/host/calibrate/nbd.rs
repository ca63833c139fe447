//! The least NBD client that can load a server: one connection, simple replies, reads and writes.
//! (The protocol: https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md)

use std::collections::HashMap;
use std::io::{self, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use super::load::{Counter, Direction, Job, Measured, Offsets};

const OPTION_MAGIC: &[u8; 8] = b"IHAVEOPT";
const REQUEST_MAGIC: u32 = 0x2560_9513;
const REPLY_MAGIC: u32 = 0x6744_6698;
/// `NBD_FLAG_C_FIXED_NEWSTYLE | NBD_FLAG_C_NO_ZEROES`
const CLIENT_FLAGS: u32 = 3;
const OPT_EXPORT_NAME: u32 = 1;
const CMD_READ: u16 = 0;
const CMD_WRITE: u16 = 1;
/// Far above any answer of an ideal volume: only a broken server is that slow.
const PATIENCE: Duration = Duration::from_secs(10);

/// Loads the default export of the server at `socket`.
pub(super) fn load(socket: &Path, job: &Job) -> io::Result<Measured> {
    let mut client = Client::connect(socket)?;
    let mut offsets = Offsets::new(job);
    let data = vec![0x5a_u8; usize::try_from(job.bytes).map_err(io::Error::other)?];
    let mut answer = data.clone();
    let mut sent = HashMap::new();
    let mut counter = Counter::start(job);
    for cookie in 0..u64::from(job.depth) {
        sent.insert(cookie, Instant::now());
        client.send(cookie, offsets.next(), job, &data)?;
    }
    let mut going = true;
    while !sent.is_empty() {
        let cookie = client.receive(job, &mut answer)?;
        let submitted = sent.remove(&cookie).ok_or_else(|| protocol("an answer to nothing"))?;
        going = counter.completed(submitted) && going;
        if going {
            sent.insert(cookie, Instant::now());
            client.send(cookie, offsets.next(), job, &data)?;
        }
    }
    Ok(counter.measured())
}

fn protocol(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the NBD server sent {what}"))
}

#[derive(Debug)]
struct Client {
    reader: BufReader<UnixStream>,
    writer: UnixStream,
}

impl Client {
    fn connect(socket: &Path) -> io::Result<Self> {
        let mut writer = UnixStream::connect(socket)?;
        writer.set_read_timeout(Some(PATIENCE))?;
        writer.set_write_timeout(Some(PATIENCE))?;
        let mut reader = BufReader::with_capacity(1 << 18, writer.try_clone()?);
        let mut greeting = [0; 18];
        reader.read_exact(&mut greeting)?;
        if &greeting[..8] != b"NBDMAGIC" || &greeting[8..16] != OPTION_MAGIC {
            return Err(protocol("no greeting"));
        }
        let mut option = CLIENT_FLAGS.to_be_bytes().to_vec();
        option.extend(OPTION_MAGIC);
        option.extend(OPT_EXPORT_NAME.to_be_bytes());
        option.extend(0_u32.to_be_bytes());
        writer.write_all(&option)?;
        // The export's size and flags, which the caller knows.
        reader.read_exact(&mut [0; 10])?;
        Ok(Self { reader, writer })
    }

    fn send(&mut self, cookie: u64, offset: u64, job: &Job, data: &[u8]) -> io::Result<()> {
        let command = match job.way {
            Direction::Read => CMD_READ,
            Direction::Write => CMD_WRITE,
        };
        let mut request = Vec::with_capacity(28 + data.len());
        request.extend(REQUEST_MAGIC.to_be_bytes());
        request.extend(0_u16.to_be_bytes());
        request.extend(command.to_be_bytes());
        request.extend(cookie.to_be_bytes());
        request.extend(offset.to_be_bytes());
        request.extend(job.bytes.to_be_bytes());
        if job.way == Direction::Write {
            request.extend(data);
        }
        self.writer.write_all(&request)
    }

    fn receive(&mut self, job: &Job, data: &mut [u8]) -> io::Result<u64> {
        let mut head = [0; 16];
        self.reader.read_exact(&mut head)?;
        let word = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        if word(0) != REPLY_MAGIC {
            return Err(protocol("no reply"));
        }
        if word(4) != 0 {
            return Err(io::Error::from_raw_os_error(i32::try_from(word(4)).unwrap_or(libc::EIO)));
        }
        if job.way == Direction::Read {
            self.reader.read_exact(data)?;
        }
        Ok(u64::from(word(8)) << 32 | u64::from(word(12)))
    }
}
