//! The journal of a layer: append-only records of which blocks it decides.
//!
//! A record is written after the block's data and before the write is answered, and only when a block first appears in
//! the layer or changes its kind. The page cache outlives the process, so a plain `write` is enough for `kill -9`.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::manifest::sync_dir;
use super::maps::{Kind, Maps};
use super::{BLOCK_BYTES, Damage, LayerId, MAX_VOLUME_BYTES, StoreError};

/// Length of the header, bytes.
pub(super) const HEADER_BYTES: u64 = 40;
/// Length of a record, bytes.
pub(super) const RECORD_BYTES: u64 = 20;

/// What a disk writes whole at least, bytes.
const SECTOR_BYTES: u64 = 512;

const MAGIC: &[u8; 8] = b"EBBJRNL1";
const RECORD: usize = 20;
const HEADER: usize = 40;

/// The journal of one layer, ready to be appended to.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    id: LayerId,
    file: Option<Arc<File>>,
    records: u64,
    sealed: u64,
    unsynced: bool,
    failed: bool,
}

impl Journal {
    /// Creates the journal of a new layer.
    pub(super) fn create(dir: &Path, id: LayerId, host_sync: bool) -> Result<Self, StoreError> {
        let path = journal_path(dir, id);
        let create = || {
            let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
            file.write_all_at(&header(id, 0), 0)?;
            if host_sync {
                file.sync_all()?;
            }
            Ok(file)
        };
        let file = create().map_err(|e| {
            drop(std::fs::remove_file(&path));
            StoreError::io("create", &path)(e)
        })?;
        let file = Some(Arc::new(file));
        Ok(Self { path, id, file, records: 0, sealed: 0, unsynced: false, failed: false })
    }

    /// Takes up the journal that `scan` read, cutting off its torn tail.
    pub(super) fn adopt(dir: &Path, id: LayerId, scan: &Scan) -> Result<Self, StoreError> {
        let path = journal_path(dir, id);
        if let Some(torn) = &scan.torn {
            tracing::warn!(file = %path.display(), offset = torn.offset, bytes = torn.bytes, "cut off a torn record");
            let file = OpenOptions::new().write(true).open(&path).map_err(StoreError::io("open", &path))?;
            file.set_len(torn.offset).map_err(StoreError::io("truncate", &path))?;
        }
        let (records, sealed) = (scan.records, scan.sealed);
        Ok(Self { path, id, file: None, records, sealed, unsynced: true, failed: false })
    }

    /// Records in it.
    pub(super) fn records(&self) -> u64 {
        self.records
    }

    /// Records that the last rewrite vouches for.
    pub(super) fn sealed(&self) -> u64 {
        self.sealed
    }

    /// Whether records came after the last rewrite.
    pub(super) fn is_unsealed(&self) -> bool {
        self.records > self.sealed
    }

    /// Appends records. When that fails, none of them counts.
    pub(super) fn append(&mut self, runs: &[(Range<u64>, Kind)]) -> io::Result<()> {
        if self.failed {
            return Err(io::Error::other(format!(
                "{} could not be cut after a failed write",
                self.path.display()
            )));
        }
        let (bytes, count) = encode(self.id, self.records, runs.iter().cloned());
        let at = HEADER_BYTES + self.records * RECORD_BYTES;
        self.unsynced = true;
        let file = self.file()?;
        if let Err(e) = file.write_all_at(&bytes, at) {
            self.failed = file.set_len(at).is_err();
            return Err(e);
        }
        self.records += count;
        Ok(())
    }

    /// Whether an append that failed could not be taken back.
    pub(super) fn has_failed(&self) -> bool {
        self.failed
    }

    /// Gives the file to be synced, when there is something to sync, and takes it as synced.
    pub(super) fn take_unsynced(&mut self) -> io::Result<Option<Arc<File>>> {
        if !self.unsynced {
            return Ok(None);
        }
        let file = self.file()?;
        self.unsynced = false;
        Ok(Some(file))
    }

    /// Takes back [`Self::take_unsynced`] after a sync that failed.
    pub(super) fn mark_unsynced(&mut self) {
        self.unsynced = true;
    }

    /// Closes the file until it is next needed.
    pub(super) fn close_file(&mut self) {
        self.file = None;
    }

    /// Puts `rewritten`, which says what the first `upto` records say, in this journal's place.
    pub(super) fn replace(
        &mut self,
        rewritten: Rewritten,
        upto: u64,
        host_sync: bool,
    ) -> Result<(), StoreError> {
        let path = self.path.clone();
        let fail = |e| StoreError::io("rewrite", &path)(e);
        let tail = usize::try_from((self.records - upto) * RECORD_BYTES).expect("a tail fits into memory");
        let mut old = vec![0; tail];
        let file = self.file().map_err(StoreError::io("open", &self.path))?;
        file.read_exact_at(&mut old, HEADER_BYTES + upto * RECORD_BYTES).map_err(fail)?;
        let runs = old.chunks_exact(RECORD).map(|r| decode_body(r).expect("written by this process"));
        let (bytes, count) = encode(self.id, rewritten.records, runs);
        rewritten.file.write_all_at(&bytes, HEADER_BYTES + rewritten.records * RECORD_BYTES).map_err(fail)?;
        if host_sync && count > 0 {
            rewritten.file.sync_data().map_err(fail)?;
        }
        std::fs::rename(&rewritten.path, &self.path).map_err(fail)?;
        // From here on the new file is the journal, whatever becomes of the sync.
        self.file = Some(Arc::new(rewritten.file));
        self.records = rewritten.records + count;
        self.sealed = rewritten.records;
        self.unsynced = !host_sync;
        if host_sync {
            sync_dir(self.path.parent().unwrap_or(&self.path))?;
        }
        Ok(())
    }

    fn file(&mut self) -> io::Result<Arc<File>> {
        if let Some(file) = &self.file {
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(OpenOptions::new().read(true).write(true).open(&self.path)?);
        self.file = Some(Arc::clone(&file));
        Ok(file)
    }
}

/// A journal written anew beside the one it replaces.
pub(super) struct Rewritten {
    path: PathBuf,
    file: File,
    records: u64,
}

/// Writes what `maps` say as the shortest journal, beside the present one.
pub(super) fn rewrite(
    dir: &Path,
    id: LayerId,
    maps: &Maps,
    host_sync: bool,
) -> Result<Rewritten, StoreError> {
    let path = dir.join(format!("{id}.journal.new"));
    let write = || {
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path)?;
        let mut out = BufWriter::with_capacity(1 << 16, &file);
        out.write_all(&header(id, 0))?;
        let mut records = 0;
        for run in maps.runs() {
            let (bytes, count) = encode(id, records, std::iter::once(run));
            out.write_all(&bytes)?;
            records += count;
        }
        out.flush()?;
        drop(out);
        file.write_all_at(&header(id, records), 0)?;
        if host_sync {
            file.sync_all()?;
        }
        Ok((file, records))
    };
    let (file, records) = write().map_err(|e| {
        drop(std::fs::remove_file(&path));
        StoreError::io("write", &path)(e)
    })?;
    Ok(Rewritten { path, file, records })
}

/// The end of a journal that no answered write can have left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Torn {
    /// Where it begins, bytes.
    pub(super) offset: u64,
    /// How long it is, bytes.
    pub(super) bytes: u64,
}

/// What reading a journal gave.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// Good records, those of the torn tail not counted.
    pub(super) records: u64,
    /// Records that a rewrite vouches for.
    pub(super) sealed: u64,
    /// What the records say.
    pub(super) maps: Maps,
    /// The torn tail, if any.
    pub(super) torn: Option<Torn>,
    /// Everything that is damaged.
    pub(super) damages: Vec<Damage>,
}

/// Reads a journal to its end. Damage is in the result; an error is the host's.
pub(super) fn scan(dir: &Path, id: LayerId, has_parent: bool) -> Result<Scan, StoreError> {
    let path = journal_path(dir, id);
    let mut scan = Scan::default();
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            scan.damages.push(Damage { file: path, offset: 0, what: "the file is missing".to_owned() });
            return Ok(scan);
        }
        Err(e) => return Err(StoreError::io("open", path)(e)),
    };
    let len = file.metadata().map_err(StoreError::io("examine", &path))?.len();
    let mut input = BufReader::with_capacity(1 << 18, file);
    let mut reader = Scanner { path: &path, id, len, has_parent, scan: &mut scan };
    reader.run(&mut input).map_err(StoreError::io("read", &path))?;
    scan.maps.optimize();
    Ok(scan)
}

struct Scanner<'a> {
    path: &'a Path,
    id: LayerId,
    len: u64,
    has_parent: bool,
    scan: &'a mut Scan,
}

impl Scanner<'_> {
    fn run(&mut self, input: &mut impl Read) -> io::Result<()> {
        if self.len < HEADER_BYTES {
            self.damage(self.len, "the file ends inside its header");
            return Ok(());
        }
        let mut head = [0; HEADER];
        input.read_exact(&mut head)?;
        match parse_header(&head, self.id) {
            Ok(sealed) => self.scan.sealed = sealed,
            Err(what) => {
                self.damage(0, what);
                return Ok(());
            }
        }
        let whole = (self.len - HEADER_BYTES) / RECORD_BYTES;
        let rest = (self.len - HEADER_BYTES) % RECORD_BYTES;
        if whole < self.scan.sealed {
            self.damage(
                self.len,
                format!("the file ends after {whole} of {} sealed records", self.scan.sealed),
            );
            return Ok(());
        }
        self.records(input, whole, rest)
    }

    fn records(&mut self, input: &mut impl Read, whole: u64, rest: u64) -> io::Result<()> {
        let mut record = [0; RECORD];
        for index in 0..whole {
            input.read_exact(&mut record)?;
            let at = HEADER_BYTES + index * RECORD_BYTES;
            let what = match decode(self.id, index, &record) {
                Ok((blocks, kind)) => {
                    self.scan.maps.set(blocks, kind, self.has_parent);
                    self.scan.records = index + 1;
                    continue;
                }
                Err(what) => what,
            };
            let may_be_torn = index >= self.scan.sealed;
            let is_last = index + 1 == whole && rest == 0;
            let is_blank = never_written(at, &record);
            if may_be_torn && (is_last || (is_blank && only_zeroes(input)?)) {
                self.scan.torn = Some(Torn { offset: at, bytes: self.len - at });
                return Ok(());
            }
            self.damage(at, what);
            if may_be_torn && is_blank {
                return Ok(()); // the search for the end of the zeroes has used up the input
            }
        }
        if rest > 0 {
            self.scan.torn = Some(Torn { offset: HEADER_BYTES + whole * RECORD_BYTES, bytes: rest });
        }
        Ok(())
    }

    fn damage(&mut self, offset: u64, what: impl Into<String>) {
        self.scan.damages.push(Damage { file: self.path.to_owned(), offset, what: what.into() });
    }
}

/// Path of a layer's journal.
pub(super) fn journal_path(dir: &Path, id: LayerId) -> PathBuf {
    dir.join(format!("{id}.journal"))
}

fn header(id: LayerId, sealed: u64) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&1_u32.to_le_bytes());
    bytes[12..16].copy_from_slice(&u32::try_from(BLOCK_BYTES).expect("a block is small").to_le_bytes());
    bytes[16..24].copy_from_slice(&id.0.to_le_bytes());
    bytes[24..32].copy_from_slice(&sealed.to_le_bytes());
    let crc = crc32c::crc32c(&bytes[..36]);
    bytes[36..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// Gives the number of sealed records, or what is wrong.
fn parse_header(bytes: &[u8; HEADER], id: LayerId) -> Result<u64, String> {
    if &bytes[..8] != MAGIC {
        return Err("the header does not begin as a journal's does".to_owned());
    }
    let stored = u32_at(bytes, 36);
    let crc = crc32c::crc32c(&bytes[..36]);
    if crc != stored {
        return Err(format!("the header's checksum is {crc:08x}, {stored:08x} was stored"));
    }
    let (version, block, of) = (u32_at(bytes, 8), u32_at(bytes, 12), u64_at(bytes, 16));
    if version != 1 || u64::from(block) != BLOCK_BYTES {
        return Err(format!(
            "the header has version {version} and blocks of {block} bytes; 1 and {BLOCK_BYTES} are known"
        ));
    }
    if of != id.0 {
        return Err(format!("this is the journal of layer {}", LayerId(of)));
    }
    Ok(u64_at(bytes, 24))
}

fn encode(id: LayerId, index: u64, runs: impl Iterator<Item = (Range<u64>, Kind)>) -> (Vec<u8>, u64) {
    let mut bytes = Vec::with_capacity(RECORD);
    let mut count = 0;
    for (run, kind) in runs {
        let mut first = run.start;
        while first < run.end {
            let blocks = u32::try_from(run.end - first).unwrap_or(u32::MAX);
            let mut record = [0; RECORD];
            record[..8].copy_from_slice(&first.to_le_bytes());
            record[8..12].copy_from_slice(&blocks.to_le_bytes());
            let code: u32 = match kind {
                Kind::Data => 1,
                Kind::Hole => 2,
            };
            record[12..16].copy_from_slice(&code.to_le_bytes());
            let crc = record_crc(id, index + count, &record);
            record[16..].copy_from_slice(&crc.to_le_bytes());
            bytes.extend_from_slice(&record);
            count += 1;
            first += u64::from(blocks);
        }
    }
    (bytes, count)
}

fn decode(id: LayerId, index: u64, record: &[u8; RECORD]) -> Result<(Range<u64>, Kind), String> {
    let stored = u32_at(record, 16);
    let crc = record_crc(id, index, record);
    if crc != stored {
        return Err(format!("the checksum of record {index} is {crc:08x}, {stored:08x} was stored"));
    }
    decode_body(record).ok_or_else(|| format!("record {index} says what no record can"))
}

fn decode_body(record: &[u8]) -> Option<(Range<u64>, Kind)> {
    let (first, blocks) = (u64_at(record, 0), u64::from(u32_at(record, 8)));
    let kind = match u32_at(record, 12) {
        1 => Kind::Data,
        2 => Kind::Hole,
        _ => return None,
    };
    let end = first.checked_add(blocks)?;
    (blocks > 0 && end <= MAX_VOLUME_BYTES / BLOCK_BYTES).then_some((first..end, kind))
}

/// The checksum covers the record's place, so that a record in another layer's journal or out of order is noticed.
fn record_crc(id: LayerId, index: u64, record: &[u8; RECORD]) -> u32 {
    let crc = crc32c::crc32c(&id.0.to_le_bytes());
    let crc = crc32c::crc32c_append(crc, &index.to_le_bytes());
    crc32c::crc32c_append(crc, &record[..16])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Whether a record is zeroes, or is from a sector's beginning on: a disk that lost its power wrote what was before that.
fn never_written(at: u64, record: &[u8; RECORD]) -> bool {
    let before = SECTOR_BYTES - at % SECTOR_BYTES;
    let written = usize::try_from(before).ok().filter(|before| *before < RECORD).unwrap_or(0);
    record.iter().all(|b| *b == 0) || (written > 0 && record[written..].iter().all(|b| *b == 0))
}

fn only_zeroes(input: &mut impl Read) -> io::Result<bool> {
    let mut buf = [0; 8192];
    let mut zero = true;
    loop {
        match input.read(&mut buf)? {
            0 => return Ok(zero),
            n => zero &= buf[..n].iter().all(|b| *b == 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_rewrite_whose_name_cannot_be_synced_still_takes_later_records() {
        if rustix::process::geteuid().is_root() {
            println!("SKIPPED: root may read every directory");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let id = LayerId(7);
        let mut journal = Journal::create(dir.path(), id, true).unwrap();
        let mut maps = Maps::default();
        journal.append(&[(0..4, Kind::Data)]).unwrap();
        maps.set(0..4, Kind::Data, false);
        let rewritten = rewrite(dir.path(), id, &maps, true).unwrap();
        let permit = |mode| std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(mode));
        // Names can be changed and not listed, so the rename succeeds and the sync of the directory fails.
        permit(0o300).unwrap();
        let failed = journal.replace(rewritten, 1, true);
        permit(0o700).unwrap();
        failed.unwrap_err();
        journal.append(&[(8..9, Kind::Data)]).unwrap();
        maps.set(8..9, Kind::Data, false);
        assert_eq!(scan(dir.path(), id, false).unwrap().maps, maps);
    }

    #[test]
    fn a_record_that_the_hosts_power_cut_at_a_sector_is_a_torn_tail() {
        let dir = tempfile::tempdir().unwrap();
        let id = LayerId(7);
        let mut journal = Journal::create(dir.path(), id, false).unwrap();
        let mut kept = Maps::default();
        for block in 0..30 {
            journal.append(&[(block * 2..block * 2 + 1, Kind::Data)]).unwrap();
            if block < 23 {
                kept.set(block * 2..block * 2 + 1, Kind::Data, false);
            }
        }
        // Record 23 lies across the first 512 bytes' end. What follows never reached the disk.
        let file = OpenOptions::new().write(true).open(journal_path(dir.path(), id)).unwrap();
        file.set_len(512).unwrap();
        file.set_len(4096).unwrap();
        let scan = scan(dir.path(), id, false).unwrap();
        assert_eq!(scan.damages, []);
        assert_eq!(scan.torn, Some(Torn { offset: 500, bytes: 3596 }));
        assert_eq!(scan.maps.data_blocks(), kept.data_blocks());
    }
}
