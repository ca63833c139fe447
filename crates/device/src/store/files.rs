//! The data of a layer: sparse files in which a block is at its own offset.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

use super::maps::{SEGMENT_BYTES, SEGMENTS};
use super::synced::{Synced, notify_synced};
use super::{LayerId, StoreError};
use ebbtide_dir::{Access, Dir};

/// Longest write that the host's page cache sees, bytes. It makes its folios as large as the writes,
/// and ext4 walks all blocks of a folio on each write to it: with writes of 256 KiB, later ones of
/// 16 KiB took half as long again.
const PIECE: u64 = 16 << 10;

/// The data files of one layer, one per 8 TiB, created when they are first written to.
#[derive(Debug)]
pub(super) struct Files {
    dir: Dir,
    id: LayerId,
    segments: [OnceLock<File>; SEGMENTS],
    /// Whether the layer is removed, so that no file of it may be created any more.
    opening: Mutex<bool>,
    unsynced: AtomicBool,
    created: AtomicBool,
}

impl Files {
    pub(super) fn new(dir: &Dir, id: LayerId) -> Self {
        Self {
            dir: dir.clone(),
            id,
            segments: Default::default(),
            opening: Mutex::new(false),
            // After a restart nobody knows what reached the disk.
            unsynced: AtomicBool::new(true),
            created: AtomicBool::new(true),
        }
    }

    /// Opens every file that exists, so that readers keep what they need even when the layer is removed meanwhile.
    pub(super) fn open_existing(&self) -> Result<(), StoreError> {
        for segment in 0..SEGMENTS {
            match self.dir.file(data_name(self.id, segment), Access::Write) {
                Ok(file) => drop(self.segments[segment].set(file)),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(StoreError::io("open", data_path(&self.dir, self.id, segment))(e)),
            }
        }
        Ok(())
    }

    /// Fills `buf`. The range must be data: a file that ends inside it is damaged.
    pub(super) fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        for_each_segment(offset, buf.len(), |segment, at, range| {
            let file = self.segments[segment].get().ok_or_else(|| self.missing(segment))?;
            file.read_exact_at(&mut buf[range], at)
                .map_err(|e| if e.kind() == io::ErrorKind::UnexpectedEof { self.missing(segment) } else { e })
        })
    }

    /// Writes `buf`, creating the file where it is missing.
    pub(super) fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        let written = for_each_segment(offset, buf.len(), |segment, at, range| {
            let file = self.segment(segment)?;
            let (mut rest, mut at) = (&buf[range], at);
            while !rest.is_empty() {
                let piece = usize::try_from(PIECE - at % PIECE).map_err(io::Error::other)?.min(rest.len());
                file.write_all_at(&rest[..piece], at)?;
                rest = &rest[piece..];
                at += u64::try_from(piece).map_err(io::Error::other)?;
            }
            Ok(())
        });
        self.mark_unsynced();
        written
    }

    /// Gives the host space of a range back; the range reads as zeroes. A file system that cannot leaves it as it is.
    pub(super) fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        let len = usize::try_from(len).map_err(io::Error::other)?;
        let punched = for_each_segment(offset, len, |segment, at, range| {
            let Some(file) = self.segments[segment].get() else { return Ok(()) };
            let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            let len = u64::try_from(range.len()).map_err(io::Error::other)?;
            loop {
                match fallocate(file, mode, at, len) {
                    Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(()),
                    Err(Errno::INTR) => {}
                    Err(e) => return Err(e.into()),
                }
            }
        });
        self.mark_unsynced();
        punched
    }

    /// Puts what was written on the host's disk. Not to be called twice at a time.
    pub(super) fn sync(&self) -> io::Result<()> {
        if !self.unsynced.swap(false, Ordering::SeqCst) {
            return Ok(());
        }
        let new_names = self.created.swap(false, Ordering::SeqCst);
        let opened = self.segments.iter().enumerate().filter_map(|(at, file)| Some((at, file.get()?)));
        let mut all = opened.into_iter().try_for_each(|(at, file)| {
            file.sync_data()?;
            notify_synced(Synced::Content(&data_path(&self.dir, self.id, at)));
            Ok(())
        });
        if new_names && all.is_ok() {
            all = self.dir.sync();
        }
        if all.is_err() {
            self.created.fetch_or(new_names, Ordering::SeqCst);
            self.unsynced.store(true, Ordering::SeqCst);
        }
        all
    }

    /// Host space, bytes.
    pub(super) fn allocated_bytes(&self) -> u64 {
        allocated_bytes(&self.dir, self.id)
    }

    /// Lets no more files be created.
    pub(super) fn retire(&self) {
        *self.opening.lock() = true;
    }

    fn segment(&self, segment: usize) -> io::Result<&File> {
        if let Some(file) = self.segments[segment].get() {
            return Ok(file);
        }
        let retired = self.opening.lock();
        if *retired {
            return Err(self.missing(segment));
        }
        if self.segments[segment].get().is_none() {
            let file = self.dir.file(data_name(self.id, segment), Access::Make)?;
            self.created.store(true, Ordering::SeqCst);
            drop(self.segments[segment].set(file));
        }
        Ok(self.segments[segment].get().expect("set above, and never unset"))
    }

    /// To be called after the write: a sync between the two would take the mark and miss the bytes.
    fn mark_unsynced(&self) {
        // Only the first write after a sync touches the shared cache line for writing.
        if !self.unsynced.load(Ordering::SeqCst) {
            self.unsynced.store(true, Ordering::SeqCst);
        }
    }

    fn missing(&self, segment: usize) -> io::Error {
        let path = data_path(&self.dir, self.id, segment);
        io::Error::new(
            io::ErrorKind::UnexpectedEof,
            format!("{} ends before a block it has to hold", path.display()),
        )
    }
}

/// Host space of a layer's data, bytes.
pub(super) fn allocated_bytes(dir: &Dir, id: LayerId) -> u64 {
    let blocks = |segment| {
        let found = dir.stat(data_name(id, segment));
        found.map_or(0, |found| u64::try_from(found.st_blocks).unwrap_or(0) * 512)
    };
    (0..SEGMENTS).map(blocks).sum()
}

/// Name of one data file.
pub(super) fn data_name(id: LayerId, segment: usize) -> String {
    if segment == 0 { format!("{id}.data") } else { format!("{id}.data{segment}") }
}

/// Path of one data file, for messages.
pub(super) fn data_path(dir: &Dir, id: LayerId, segment: usize) -> PathBuf {
    dir.path().join(data_name(id, segment))
}

fn for_each_segment(
    offset: u64,
    len: usize,
    mut io: impl FnMut(usize, u64, std::ops::Range<usize>) -> io::Result<()>,
) -> io::Result<()> {
    let mut done = 0;
    while done < len {
        let at = offset + u64::try_from(done).map_err(io::Error::other)?;
        let inside = at % SEGMENT_BYTES;
        let room = usize::try_from(SEGMENT_BYTES - inside).unwrap_or(usize::MAX);
        let end = len.min(done.saturating_add(room));
        io(usize::try_from(at / SEGMENT_BYTES).map_err(io::Error::other)?, inside, done..end)?;
        done = end;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_a_sync_overtook_is_synced_by_the_next_one() {
        const BYTES: u64 = 64 << 20;
        let dir = tempfile::tempdir().unwrap();
        let held = Dir::open(dir.path()).unwrap();
        let path = data_path(&held, LayerId(1), 0);
        let data = vec![1; usize::try_from(BYTES).unwrap()];
        let overtaken = (0..20).any(|_| {
            let files = Files::new(&held, LayerId(1));
            let overtaken = std::thread::scope(|scope| {
                let writer = scope.spawn(|| files.write_at(&data, 0));
                while !writer.is_finished() && path.metadata().map_or(0, |meta| meta.len()) < 64 << 10 {}
                let early = path.metadata().unwrap().len() < BYTES / 2;
                files.sync().unwrap();
                writer.join().unwrap().unwrap();
                early
            });
            assert!(!overtaken || files.unsynced.load(Ordering::SeqCst), "the next sync would do nothing");
            std::fs::remove_file(&path).unwrap();
            overtaken
        });
        assert!(overtaken, "no sync began during a write");
    }
}
