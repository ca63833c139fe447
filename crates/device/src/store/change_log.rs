//! The log of the changes of the manifest since its file was last written as a whole: a line for each, appended.
//!
//! A change is answered once its line is in the page cache, which is enough for `kill -9`, and with `host_sync` once it is on
//! the host's disk. The header has how much of the log is on the disk (*sealed*). What is wrong in that part is damage. Behind
//! it, what a killed process or a lost host left of a line is cut off.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use super::entries::Change;
use super::synced::{Synced, notify_synced};
use super::{Damage, StoreError};
use ebbtide_dir::{Access, Dir};

/// Number of the first log of a store.
pub(super) const FIRST: u64 = 1;

/// A log that is longer than this and than the manifest's file is to be replaced, bytes. The least makes a small store write
/// its manifest once in a hundred changes; the other makes the cost of a change the same for stores of every size.
const LONG_BYTES: u64 = 64 << 10;

const PREFIX: &str = "changes.";
const MAGIC: &str = "ebbtide-changes";
const VERSION: &str = "1";
/// Length of the header, bytes. It is in one sector, and is overwritten in place.
pub(super) const HEADER_BYTES: u64 = 61;
const HEADER: usize = 61;
/// Length of a line's checksum and the space after it, bytes.
const CRC: usize = 9;

/// What was found in a log, besides its changes.
#[derive(Debug)]
pub(super) struct LogScan {
    pub(super) number: u64,
    pub(super) path: PathBuf,
    /// How many changes it has.
    pub(super) changes: usize,
    /// Where the changes end, bytes.
    pub(super) end: u64,
    /// Where what is certainly on the host's disk ends, bytes.
    pub(super) sealed: u64,
    /// Bytes behind the end, to be cut off.
    pub(super) torn_bytes: u64,
}

/// The log of a store that is open.
#[derive(Debug)]
pub(super) struct ChangeLog {
    dir: Dir,
    path: PathBuf,
    number: u64,
    file: Arc<File>,
    /// Where the next change goes, bytes.
    end: u64,
    /// What the header has.
    sealed: u64,
    /// Length of the manifest's file, bytes.
    manifest_bytes: u64,
    /// Whether a change that failed may have left something behind the end.
    uncut: bool,
    /// Whether the manifest that names it may not have its name on the host's disk yet.
    unnamed: bool,
    /// Whether a sync failed. The kernel reports that once and may have given up what it could not write, so that a later
    /// sync shows nothing: the log is never sealed further, and is to be replaced.
    lost: bool,
}

/// Name of a log.
pub(super) fn log_name(number: u64) -> String {
    format!("{PREFIX}{number:08x}")
}

/// The number of the log with a name; none of other files.
pub(super) fn log_number(name: &str) -> Option<u64> {
    u64::from_str_radix(name.strip_prefix(PREFIX)?, 16).ok()
}

impl ChangeLog {
    /// Makes an empty log on the host's disk. It counts from when a manifest names it.
    pub(super) fn create(dir: &Dir, number: u64, manifest_bytes: u64) -> Result<Self, StoreError> {
        let (name, path) = (log_name(number), dir.path().join(log_name(number)));
        let begin = || {
            let file = dir.file(&name, Access::Empty)?;
            file.write_all_at(&header(number, HEADER_BYTES), 0)?;
            file.sync_all()?;
            dir.sync()?;
            Ok(file)
        };
        let file = begin().map_err(|e| {
            drop(dir.remove(&name));
            StoreError::io("create", &path)(e)
        })?;
        notify_synced(Synced::Content(&path));
        let (dir, file, uncut, unnamed, lost) = (dir.clone(), Arc::new(file), false, false, false);
        let (end, sealed) = (HEADER_BYTES, HEADER_BYTES);
        Ok(Self { dir, path, number, file, end, sealed, manifest_bytes, uncut, unnamed, lost })
    }

    /// Takes up the log that `scan` read, and cuts off what is torn. With `host_sync` it is on the host's disk after that.
    pub(super) fn adopt(
        dir: &Dir,
        scan: LogScan,
        manifest_bytes: u64,
        host_sync: bool,
    ) -> Result<Self, StoreError> {
        let LogScan { number, path, end, sealed, torn_bytes, .. } = scan;
        let opened = dir.file(log_name(number), Access::Write);
        let file = Arc::new(opened.map_err(StoreError::io("open", &path))?);
        if torn_bytes > 0 {
            tracing::warn!(file = %path.display(), offset = end, bytes = torn_bytes, "cut off a change that was not answered");
        }
        // A killed process may have renamed its manifest a moment before.
        let (dir, uncut, unnamed, lost) = (dir.clone(), torn_bytes > 0, true, false);
        let mut log = Self { dir, path, number, file, end, sealed, manifest_bytes, uncut, unnamed, lost };
        log.make_ready(host_sync).map_err(StoreError::io("truncate", &log.path))?;
        if host_sync {
            log.settle()?;
        }
        Ok(log)
    }

    /// Appends a change. Where that fails, it has not happened.
    pub(super) fn append(&mut self, change: &Change, host_sync: bool) -> Result<(), StoreError> {
        let text = serde_json::to_vec(change).expect("a change has string and integer keys only");
        self.append_text(&text, host_sync).map_err(StoreError::io("write", &self.path))
    }

    fn append_text(&mut self, text: &[u8], host_sync: bool) -> io::Result<()> {
        if text.contains(&b'\n') {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a change has a line end in it"));
        }
        self.dir.require_held()?;
        self.make_ready(host_sync)?;
        let line = line(self.number, self.end, text);
        let written = self.file.write_all_at(&line, self.end).and_then(|()| self.sync_if(host_sync));
        if written.is_err() {
            self.uncut = true;
            if let Err(error) = self.make_ready(host_sync) {
                tracing::error!(file = %self.path.display(), %error, "cannot cut off a change that failed");
            }
            return written;
        }
        self.end += as_u64(line.len());
        if host_sync {
            notify_synced(Synced::Content(&self.path));
            self.seal(self.end);
        }
        Ok(())
    }

    /// Makes sure that what follows is read after a kill, and with `host_sync` after a loss of the host's power.
    fn make_ready(&mut self, host_sync: bool) -> io::Result<()> {
        if self.uncut {
            self.file.set_len(self.end)?;
            self.sync_if(host_sync)?;
            self.uncut = false;
        }
        if host_sync && self.unnamed {
            self.dir.sync()?;
            self.unnamed = false;
        }
        Ok(())
    }

    fn sync_if(&self, host_sync: bool) -> io::Result<()> {
        if host_sync { self.file.sync_data() } else { Ok(()) }
    }

    /// What to sync so that the log up to the offset is on the host's disk.
    pub(super) fn to_sync(&self) -> (Arc<File>, PathBuf, u64) {
        (Arc::clone(&self.file), self.path.clone(), self.end)
    }

    /// Puts the log and the name of its manifest on the host's disk, and seals it.
    pub(super) fn settle(&mut self) -> Result<(), StoreError> {
        self.file.sync_data().map_err(StoreError::io("sync", &self.path))?;
        notify_synced(Synced::Content(&self.path));
        if self.unnamed {
            self.dir.sync().map_err(StoreError::io("sync", self.dir.path()))?;
            self.unnamed = false;
        }
        self.seal(self.end);
        Ok(())
    }

    /// Whether the manifest that names it may not have its name on the host's disk yet.
    pub(super) const fn is_unnamed(&self) -> bool {
        self.unnamed
    }

    /// Notes that a sync failed.
    pub(super) const fn mark_lost(&mut self) {
        self.lost = true;
    }

    /// Whether a sync failed.
    pub(super) const fn is_lost(&self) -> bool {
        self.lost
    }

    /// Notes that the log is on the host's disk up to an offset. Where the host refuses, the seal stays as it was.
    pub(super) fn seal(&mut self, upto: u64) {
        if upto > self.sealed && !self.lost && self.file.write_all_at(&header(self.number, upto), 0).is_ok() {
            self.sealed = upto;
        }
    }

    /// Whether it has changes that are not sealed.
    pub(super) const fn is_unsealed(&self) -> bool {
        self.sealed < self.end
    }

    /// Whether it is time to write the manifest as a whole.
    pub(super) const fn is_long(&self) -> bool {
        self.lost || (self.end > LONG_BYTES && self.end > self.manifest_bytes)
    }

    /// Its number.
    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    /// Where the next change goes, bytes.
    pub(super) const fn end(&self) -> u64 {
        self.end
    }

    /// Takes over the changes that another log has from an offset on.
    pub(super) fn take_over(&mut self, other: &Self, from: u64, host_sync: bool) -> Result<(), StoreError> {
        let read = || {
            let len = usize::try_from(other.end - from).map_err(io::Error::other)?;
            let mut bytes = vec![0; len];
            other.file.read_exact_at(&mut bytes, from)?;
            Ok(bytes)
        };
        let bytes: Vec<u8> = read().map_err(StoreError::io("read", &other.path))?;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let text = &line[CRC..line.len() - 1];
            self.append_text(text, host_sync).map_err(StoreError::io("write", &self.path))?;
        }
        Ok(())
    }

    /// Notes that the manifest which names it was put in place, and its name may not be on the host's disk.
    pub(super) fn mark_unnamed(&mut self) {
        self.unnamed = true;
    }

    /// Notes that its name is on the host's disk.
    pub(super) fn mark_named(&mut self) {
        self.unnamed = false;
    }

    /// Lets it write to another file, which is how a test makes the host refuse.
    #[cfg(test)]
    pub(super) fn replace_file(&mut self, file: File) -> File {
        let old = std::mem::replace(&mut self.file, Arc::new(file));
        Arc::into_inner(old).expect("nobody syncs it")
    }

    /// Removes it, since no manifest names it.
    pub(super) fn discard(&self) {
        if let Err(error) = self.dir.remove(log_name(self.number)) {
            tracing::warn!(file = %self.path.display(), %error, "left a file behind; the next open removes it");
        }
    }
}

/// Reads a log, which a manifest names, and gives each of its changes in turn: they are many, and all of them at once would take
/// more memory than the manifest. After a restart of the host, all that is not sealed may be lost.
pub(super) fn scan(
    dir: &Dir,
    number: u64,
    host_restarted: bool,
    take: &mut dyn FnMut(Change),
) -> Result<LogScan, StoreError> {
    let path = dir.path().join(log_name(number));
    let bytes = match dir.read(log_name(number)) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return Err(Damage { file: path, offset: 0, what: "the file is missing".to_owned() }.into());
        }
        Err(e) => return Err(StoreError::io("read", path)(e)),
    };
    let damaged = |(offset, what)| Damage { file: path.clone(), offset: as_u64(offset), what };
    let sealed = parse_header(&bytes, number).map_err(|what| damaged((0, what)))?;
    let (changes, end) = parse(&bytes, number, sealed, host_restarted, take).map_err(damaged)?;
    let (end, torn_bytes) = (as_u64(end), as_u64(bytes.len() - end));
    Ok(LogScan { number, path, changes, end, sealed: as_u64(sealed), torn_bytes })
}

/// How many changes there are, and where they end.
fn parse(
    bytes: &[u8],
    number: u64,
    sealed: usize,
    host_restarted: bool,
    take: &mut dyn FnMut(Change),
) -> Result<(usize, usize), (usize, String)> {
    if bytes.len() < sealed {
        return Err((bytes.len(), format!("{sealed} bytes are sealed, it has {}", bytes.len())));
    }
    let (mut changes, mut at) = (0, HEADER);
    while at < bytes.len() {
        let end = line_end(bytes, at);
        match text_of(number, at, &bytes[at..end]) {
            // It is whole, so that it is not torn.
            Ok(text) => {
                take(serde_json::from_slice(text).map_err(|e| (at, e.to_string()))?);
                changes += 1;
            }
            Err(what) if at < sealed => return Err((at, what)),
            Err(what) if !host_restarted && any_line(bytes, number, at + 1) => return Err((at, what)),
            Err(_) => break,
        }
        at = end;
    }
    Ok((changes, at))
}

/// Whether a line with a right checksum begins at `from` or behind it. What is wrong before it may be the end of a line.
fn any_line(bytes: &[u8], number: u64, from: usize) -> bool {
    let may_begin = |at: &usize| bytes.get(at + CRC - 1) == Some(&b' ');
    let is_line = |at| text_of(number, at, &bytes[at..line_end(bytes, at)]).is_ok();
    (from..bytes.len()).filter(may_begin).any(is_line)
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |len| at + len + 1)
}

/// What a line holds, provided that its checksum is right.
fn text_of(number: u64, at: usize, line: &[u8]) -> Result<&[u8], String> {
    let text = line.strip_suffix(b"\n").and_then(|line| line.get(CRC..));
    let text = text.ok_or_else(|| "a change that is not whole".to_owned())?;
    let (stored, actual) = (&line[..CRC], checksum(number, as_u64(at), text));
    if stored != actual.as_bytes() {
        let stored = String::from_utf8_lossy(stored).trim_end().to_owned();
        return Err(format!("the checksum of a change is {}, {stored} was stored", actual.trim_end()));
    }
    Ok(text)
}

/// A line of the log.
pub(super) fn line(number: u64, at: u64, text: &[u8]) -> Vec<u8> {
    [checksum(number, at, text).as_bytes(), text, b"\n"].concat()
}

/// Of a change at its place, so that it is not taken for one at another.
fn checksum(number: u64, at: u64, text: &[u8]) -> String {
    let place = [number.to_le_bytes(), at.to_le_bytes()].concat();
    format!("{:08x} ", crc32c::crc32c_append(crc32c::crc32c(&place), text))
}

fn header(number: u64, sealed: u64) -> Vec<u8> {
    let head = format!("{MAGIC} {VERSION} {number:016x} {sealed:016x}");
    format!("{head} {:08x}\n", crc32c::crc32c(head.as_bytes())).into_bytes()
}

/// Up to where the log is sealed, bytes.
fn parse_header(bytes: &[u8], number: u64) -> Result<usize, String> {
    let found = bytes.get(..HEADER).ok_or_else(|| "it ends in its header".to_owned())?;
    let text = String::from_utf8_lossy(found).into_owned();
    let sealed = text.split(' ').nth(3).and_then(|word| u64::from_str_radix(word, 16).ok());
    match sealed.filter(|sealed| *sealed >= HEADER_BYTES && header(number, *sealed) == found) {
        Some(sealed) => usize::try_from(sealed).map_err(|e| e.to_string()),
        None => Err(format!("its header is '{}'", text.trim_end())),
    }
}

fn as_u64(len: usize) -> u64 {
    u64::try_from(len).expect("a length fits into 64 bits")
}
