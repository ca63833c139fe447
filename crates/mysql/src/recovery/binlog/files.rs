//! Reading the end of the binary log from its files: no server is needed, and little is read.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use ebbtide_dir::{Access, Owner};

use super::events::{Event, FORMAT_DESCRIPTION, has_checksums};
use super::{BinlogCommits, Follower, TornTail};
use crate::Layout;
use crate::recovery::Unverified;
use crate::recovery::in_dir::{InDir, list, open_dir};

/// The first bytes of a file, and of one that is encrypted.
const MAGIC: [u8; 4] = *b"\xfebin";
const ENCRYPTED: [u8; 4] = *b"\xfdbin";
/// From the end of a file so much is read first; then eight times as much, and so on.
const WINDOW: u64 = 256 * 1024;
/// As many events that follow each other are none by chance, even where they carry no checksums.
const CHAIN: usize = 4;
/// The name that a server's binary log has here.
const BASE: &str = "binlog.";
/// The list of its files.
const INDEX: &str = "binlog.index";
/// More than it ever has, bytes: the server's user may write it.
const INDEX_BYTES: u64 = 16 << 20;

/// Reads the last transaction of each of `clients` clients (from 0) from the files of the binary log, the
/// newest first, and of each file its end first, until every client was seen.
///
/// A server that starts after a crash begins a new file: the one before is that of the crash.
///
/// # Errors
/// [`Unverified::Form`] where there is no binary log, or one that is encrypted or compressed, and what the
/// file system refuses.
pub fn binlog_tail(layout: &Layout, clients: u32) -> Result<BinlogCommits, Unverified> {
    let dir = layout.binlog.as_deref().unwrap_or(&layout.data);
    let files = files(dir)?;
    if files.is_empty() {
        return Err(Unverified::form(dir, "it holds no binary log"));
    }
    let mut commits = BinlogCommits::default();
    for file in files.into_iter().rev() {
        commits.files.push(file.name.clone());
        let Some(log) = Log::open(&file)? else { continue };
        let (found, torn) = log.tail(|found| all_seen(&commits, found, clients))?;
        for (client, seq) in found.last {
            // What is in an older file came before.
            commits.last.entry(client).or_insert(seq);
        }
        commits.torn = commits.torn.take().or(torn);
        if all_seen(&commits, &Follower::default(), clients) {
            break;
        }
    }
    Ok(commits)
}

/// Has the index of a copied binary log name the copy's own files. A server whose binary log has a directory of its own writes
/// whole paths into the index. One that recovers on a copy of it under another mount would read the first server's log, and by
/// that decide which prepared transactions stay.
///
/// # Errors
/// What the file system refuses.
pub fn own_binlog_index(layout: &Layout) -> Result<(), Unverified> {
    let Some(dir) = &layout.binlog else { return Ok(()) };
    let index = dir.join(INDEX);
    let held = open_dir(dir)?;
    let read = || {
        let mut text = String::new();
        let file = held.plain_file(INDEX, Access::Read)?;
        let facts = file.metadata()?;
        file.take(INDEX_BYTES).read_to_string(&mut text)?;
        Ok((text, facts))
    };
    let (text, facts) = match read() {
        Err::<_, std::io::Error>(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        read => read.map_err(Unverified::at("read", &index))?,
    };
    let own = |line: &str| {
        let name = Path::new(line).file_name().unwrap_or_default();
        dir.join(name).display().to_string()
    };
    let owned: String = text
        .split_inclusive('\n')
        .map(|line| own(line.trim_end()) + &line[line.trim_end().len()..])
        .collect();
    if owned == text {
        return Ok(());
    }
    // It stays the server's, which goes on with it.
    let owner = Owner { uid: facts.uid(), gid: facts.gid() };
    let mode = facts.mode() & 0o777;
    held.replace(INDEX, owned.as_bytes(), mode, Some(owner)).map_err(Unverified::at("write", &index))
}

fn all_seen(commits: &BinlogCommits, follower: &Follower, clients: u32) -> bool {
    (0..clients).all(|client| commits.last.contains_key(&client) || follower.last.contains_key(&client))
}

/// The files, the oldest first.
fn files(dir: &Path) -> Result<Vec<InDir>, Unverified> {
    let number = |file: &InDir| file.name.strip_prefix(BASE).and_then(|number| number.parse::<u64>().ok());
    let mut files = list(&open_dir(dir)?)?;
    files.retain(|file| number(file).is_some());
    files.sort_by_key(number);
    Ok(files)
}

/// A file of the binary log.
struct Log {
    path: PathBuf,
    file: File,
    len: u64,
    checksums: bool,
    /// Where its first event ends.
    first: u64,
}

impl Log {
    /// Opens one; none where not even its first event is whole, as in one that was just begun.
    fn open(file: &InDir) -> Result<Option<Self>, Unverified> {
        let (path, file) = (&file.path(), file.open()?);
        let len = file.metadata().map_err(Unverified::at("look at", path))?.len();
        let mut log = Self { path: path.clone(), file, len, checksums: false, first: 0 };
        let start = log.bytes(0, 4096.min(len))?;
        if start.starts_with(&ENCRYPTED) {
            return Err(Unverified::form(path, "it is encrypted"));
        }
        let Some(event) = start.strip_prefix(&MAGIC) else {
            // A file whose first bytes have not reached the disk.
            return if start.iter().all(|byte| *byte == 0) {
                Ok(None)
            } else {
                Err(Unverified::form(path, "no binary log"))
            };
        };
        match Event::read(event, 4, false) {
            Some(description) if description.kind == FORMAT_DESCRIPTION => {
                log.first = 4 + to_u64(description.len);
                log.checksums = has_checksums(event).unwrap_or(false);
                Ok(Some(log))
            }
            _ => Ok(None),
        }
    }

    /// The last transactions, read from the end backwards in windows until `enough`, and what is torn.
    fn tail(&self, enough: impl Fn(&Follower) -> bool) -> Result<(Follower, Option<TornTail>), Unverified> {
        let mut window = WINDOW;
        loop {
            let from = self.len.saturating_sub(window).max(self.first);
            let bytes = self.bytes(from, self.len - from)?;
            let begin = if from == self.first { Some(0) } else { self.boundary(&bytes, from) };
            if let Some(begin) = begin {
                let (follower, torn) = self.follow(&bytes[begin..], from + to_u64(begin))?;
                if enough(&follower) || from == self.first {
                    return Ok((follower, torn));
                }
            }
            window = window.saturating_mul(8);
        }
    }

    /// The first place in `bytes`, which are at `from` in the file, at which a whole event begins and is
    /// followed by others, or by the file's end.
    fn boundary(&self, bytes: &[u8], from: u64) -> Option<usize> {
        let after = |at: usize| Some(at + Event::read(&bytes[at..], from + to_u64(at), self.checksums)?.len);
        let leads_on = |begin: usize| {
            let mut at = begin;
            for _ in 0..CHAIN {
                match after(at) {
                    Some(next) if next < bytes.len() => at = next,
                    Some(_) => return true,
                    None => return false,
                }
            }
            true
        };
        (0..bytes.len()).find(|&at| leads_on(at))
    }

    /// Reads events to the end, or to the first that is not whole.
    fn follow(&self, bytes: &[u8], from: u64) -> Result<(Follower, Option<TornTail>), Unverified> {
        let mut follower = Follower::default();
        let mut at = 0;
        while at < bytes.len() {
            let place = from + to_u64(at);
            let Some(event) = Event::read(&bytes[at..], place, self.checksums) else {
                let torn = TornTail { file: self.path.clone(), at: place, bytes: Some(self.len - place) };
                return Ok((follower, Some(torn)));
            };
            follower.take(&event.meaning().map_err(|why| Unverified::form(&self.path, why))?);
            at += event.len;
            if event.ends_file() {
                break;
            }
        }
        Ok((follower, None))
    }

    fn bytes(&self, from: u64, len: u64) -> Result<Vec<u8>, Unverified> {
        let mut bytes =
            vec![0; usize::try_from(len).map_err(|_| Unverified::form(&self.path, "too large to read"))?];
        self.file.read_exact_at(&mut bytes, from).map_err(Unverified::at("read", &self.path))?;
        Ok(bytes)
    }
}

fn to_u64(length: usize) -> u64 {
    u64::try_from(length).expect("no length has more than 64 bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copied_binary_log_names_its_own_files() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout { binlog: Some(dir.path().to_owned()), ..Layout::single("/data") };
        own_binlog_index(&layout).unwrap();
        let index = dir.path().join("binlog.index");
        assert!(!index.exists(), "a server without a binary log so far");
        std::fs::write(&index, "/live/binlog/binlog.000001\n/live/binlog/binlog.000002\n/live/binl").unwrap();
        let own = |name: &str| dir.path().join(name).display().to_string();
        for _ in 0..2 {
            own_binlog_index(&layout).unwrap();
            let expected = format!("{}\n{}\n{}", own("binlog.000001"), own("binlog.000002"), own("binl"));
            assert_eq!(std::fs::read_to_string(&index).unwrap(), expected);
        }
        // Names in the data directory are relative to it.
        own_binlog_index(&Layout::single(dir.path())).unwrap();
    }
}
