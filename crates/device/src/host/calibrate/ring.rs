//! Load on a block device: one I/O at a time with plain calls, more through `io_uring`.

use std::fs::{File, OpenOptions};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::Instant;

use io_uring::{IoUring, opcode, types};

use super::load::{Counter, Direction, Job, Measured, Offsets};

/// Direct I/O wants buffers at multiples of the largest logical block.
const ALIGN: usize = 4096;

/// Loads a block device with direct I/O.
pub(super) fn load(device: &Path, job: &Job) -> io::Result<Measured> {
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_DIRECT).open(device)?;
    if job.depth == 1 { one_at_a_time(&file, job) } else { ring(&file, job) }
}

/// A buffer whose used part begins at an aligned address.
#[derive(Debug)]
struct Aligned {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl Aligned {
    fn new(len: u32) -> io::Result<Self> {
        let len = usize::try_from(len).map_err(io::Error::other)?;
        let bytes = vec![0x5a; len + ALIGN];
        let start = bytes.as_ptr().align_offset(ALIGN);
        Ok(Self { bytes, start, len })
    }

    fn get(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }
}

fn one_at_a_time(file: &File, job: &Job) -> io::Result<Measured> {
    let mut buffer = Aligned::new(job.bytes)?;
    let mut offsets = Offsets::new(job);
    let mut counter = Counter::start(job);
    loop {
        let offset = offsets.next();
        let submitted = Instant::now();
        match job.way {
            Direction::Read => file.read_exact_at(buffer.get(), offset)?,
            Direction::Write => file.write_all_at(buffer.get(), offset)?,
        }
        if !counter.completed(submitted) {
            return Ok(counter.measured());
        }
    }
}

fn ring(file: &File, job: &Job) -> io::Result<Measured> {
    let mut ring = IoUring::new(job.depth)?;
    let buffers = (0..job.depth).map(|_| Aligned::new(job.bytes)).collect::<io::Result<Vec<_>>>()?;
    // The kernel writes into them until it has answered: they are leaked wherever this returns
    // before every answer has been seen.
    let mut buffers = ManuallyDrop::new(buffers);
    let mut submitted = vec![Instant::now(); buffers.len()];
    let mut offsets = Offsets::new(job);
    let mut counter = Counter::start(job);
    let mut free: Vec<usize> = (0..buffers.len()).collect();
    let mut going = true;
    let mut failed = None;
    while (going && failed.is_none()) || free.len() < buffers.len() {
        while let Some(slot) = free.pop_if(|_| going && failed.is_none()) {
            submitted[slot] = Instant::now();
            submit(&mut ring, file, job.way, buffers[slot].get(), offsets.next(), slot)?;
        }
        if let Err(error) = ring.submit_and_wait(1) {
            if error.kind() == io::ErrorKind::Interrupted {
                continue;
            }
            return Err(error);
        }
        for done in ring.completion() {
            let slot = usize::try_from(done.user_data()).map_err(io::Error::other)?;
            free.push(slot);
            match u32::try_from(done.result()) {
                Ok(len) if len == job.bytes => going = counter.completed(submitted[slot]) && going,
                Ok(_) => failed = Some(io::Error::other("an I/O was cut short")),
                Err(_) => failed = Some(io::Error::from_raw_os_error(-done.result())),
            }
        }
    }
    drop(ManuallyDrop::into_inner(buffers));
    failed.map_or_else(|| Ok(counter.measured()), Err)
}

fn submit(
    ring: &mut IoUring,
    file: &File,
    way: Direction,
    buffer: &mut [u8],
    offset: u64,
    slot: usize,
) -> io::Result<()> {
    let fd = types::Fd(file.as_raw_fd());
    let len = u32::try_from(buffer.len()).map_err(io::Error::other)?;
    let entry = match way {
        Direction::Read => opcode::Read::new(fd, buffer.as_mut_ptr(), len).offset(offset).build(),
        Direction::Write => opcode::Write::new(fd, buffer.as_ptr(), len).offset(offset).build(),
    };
    let entry = entry.user_data(slot as u64);
    // SAFETY: the file is open and the buffer is neither moved, used nor freed until the completion
    // of this entry has been seen; where it cannot be seen any more, the buffer is leaked.
    unsafe { ring.submission().push(&entry) }.map_err(io::Error::other)
}
