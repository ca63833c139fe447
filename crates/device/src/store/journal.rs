//! The journal of a layer: append-only records of which blocks it decides.
//!
//! A record is written after the block's data and before the write is answered, and only when a block first appears in
//! the layer or changes its kind. The page cache outlives the process, so a plain `write` is enough for `kill -9`.
//!
//! The header has how many records there are at least (*sealed*), so that a tail that is cut off later is noticed. With
//! `host_sync` it also has for how many of them the blocks are on the host's disk (*durable*): the host may write a
//! record to its disk before the record's blocks, and after its restart only the durable ones are believed.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::header::{HEADER_BYTES, Header, u32_at, u64_at};
use super::manifest_file::sync_dir;
use super::maps::{BlockKind, Maps};
use super::synced::{Synced, notify_synced};
use super::{BLOCK_BYTES, Damage, LayerId, MAX_VOLUME_BYTES, StoreError};
use ebbtide_dir::{Access, Dir};

/// Length of a record, bytes.
pub(super) const RECORD_BYTES: u64 = 20;

/// Most of a journal that is read at once, bytes.
const MOST_READ: usize = 1 << 18;

/// What a disk writes whole at least, bytes.
const SECTOR_BYTES: u64 = 512;

const RECORD: usize = 20;
const HEADER: usize = 40;

/// The journal of one layer, ready to be appended to.
#[derive(Debug)]
pub(super) struct Journal {
    dir: Dir,
    id: LayerId,
    file: Option<Arc<File>>,
    records: u64,
    /// As the file has it.
    header: Header,
    /// Records that a rewrite would have had at its last look.
    compact: u64,
    /// Records there were when the sync that runs began.
    covering: u64,
    /// Records that the last sync covered: they are in the file on the host's disk.
    synced: u64,
    unsynced: bool,
    failed: bool,
}

impl Journal {
    /// Creates the journal of a new layer.
    pub(super) fn create(dir: &Dir, id: LayerId, host_sync: bool) -> Result<Self, StoreError> {
        let path = journal_path(dir, id);
        let header = Header { sealed: 0, durable: host_sync.then_some(0) };
        // One that is there already is not this store's to remove.
        let file = dir.file(journal_name(id), Access::New).map_err(StoreError::io("create", &path))?;
        let begin = || {
            file.write_all_at(&header.encode(id), 0)?;
            if host_sync {
                file.sync_all()?;
                notify_synced(Synced::Content(&path));
            }
            Ok(())
        };
        begin().map_err(|e| {
            drop(dir.remove(journal_name(id)));
            StoreError::io("create", &path)(e)
        })?;
        let (dir, file) = (dir.clone(), Some(Arc::new(file)));
        let (records, compact, covering, synced) = (0, 0, 0, 0);
        Ok(Self { dir, id, file, records, header, compact, covering, synced, unsynced: false, failed: false })
    }

    /// Takes up the journal that `scan` read, cutting off what is not believed of its tail. Without `host_sync` it is
    /// sealed; with it, that is for the first sync.
    pub(super) fn adopt(dir: &Dir, id: LayerId, scan: &Scan, host_sync: bool) -> Result<Self, StoreError> {
        let path = journal_path(dir, id);
        if let Some(torn) = &scan.torn {
            let (offset, bytes, why) = (torn.offset, torn.bytes, torn.why.name());
            tracing::warn!(file = %path.display(), offset, bytes, "cut off {why}");
            let opened = dir.file(journal_name(id), Access::Write);
            let file = opened.map_err(StoreError::io("open", &path))?;
            file.set_len(torn.offset).map_err(StoreError::io("truncate", &path))?;
        }
        let (records, header, compact) = (scan.records, scan.header, scan.compact());
        let (covering, synced, unsynced, failed) = (0, header.sealed, true, false);
        let dir = dir.clone();
        let mut journal =
            Self { dir, id, file: None, records, header, compact, covering, synced, unsynced, failed };
        if !host_sync {
            journal.seal();
            journal.close_file();
        }
        Ok(journal)
    }

    /// Where it is, for messages.
    fn path(&self) -> PathBuf {
        journal_path(&self.dir, self.id)
    }

    /// Records in it.
    pub(super) fn records(&self) -> u64 {
        self.records
    }

    /// Records that a rewrite had, or would have had, when last looked.
    pub(super) fn compact(&self) -> u64 {
        self.compact
    }

    /// Whether a rewrite may make the journal shorter.
    pub(super) fn has_grown(&self) -> bool {
        self.records > self.compact
    }

    /// Whether every record is sealed in the way of this process.
    pub(super) fn is_settled(&self, host_sync: bool) -> bool {
        self.header == Header { sealed: self.records, durable: host_sync.then_some(self.records) }
    }

    /// Vouches for all records there are, without the host's disk. Where the host refuses, the seal stays as it was.
    pub(super) fn seal(&mut self) {
        self.try_write_header(Header { sealed: self.records, durable: None });
    }

    /// Appends records. When that fails, none of them counts.
    pub(super) fn append(&mut self, runs: &[(Range<u64>, BlockKind)]) -> io::Result<()> {
        if self.failed {
            return Err(io::Error::other(format!(
                "{} could not be cut after a failed write",
                self.path().display()
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

    /// Begins a sync: the records there are now are those that it will cover.
    pub(super) fn begin_sync(&mut self) {
        self.covering = self.records;
    }

    /// Notes that the blocks of the covered records are on the host's disk. Gives the file to be synced, when there is
    /// something to sync, and takes it as synced.
    pub(super) fn data_synced(&mut self) -> io::Result<Option<Arc<File>>> {
        if self.header.durable != Some(self.covering) {
            self.unsynced = true;
            self.write_header(Header { sealed: self.synced, durable: Some(self.covering) })?;
        }
        if !self.unsynced {
            return Ok(None);
        }
        let file = self.file()?;
        self.unsynced = false;
        Ok(Some(file))
    }

    /// Notes that the covered records are in the file on the host's disk. The next header seals them; until then it calls
    /// them durable, which is as good while the host does not restart.
    pub(super) fn end_sync(&mut self) {
        notify_synced(Synced::Content(&self.path()));
        self.synced = self.covering;
    }

    /// Seals all records, which a sync has covered, on the host's disk.
    pub(super) fn seal_synced(&mut self) -> io::Result<()> {
        if self.synced < self.records || self.is_settled(true) {
            return Ok(());
        }
        self.write_header(Header { sealed: self.records, durable: Some(self.records) })?;
        self.file()?.sync_data()?;
        notify_synced(Synced::Content(&self.path()));
        Ok(())
    }

    /// Takes back [`Self::data_synced`] after a sync that failed.
    pub(super) fn mark_unsynced(&mut self) {
        self.unsynced = true;
    }

    /// Closes the file until it is next needed.
    pub(super) fn close_file(&mut self) {
        self.file = None;
    }

    /// Puts `rewritten`, which has the content of the first `upto` records, in this journal's place. With `host_sync` no
    /// sync may run from the moment that `upto` was asked for.
    pub(super) fn replace(
        &mut self,
        rewritten: Rewritten,
        upto: u64,
        host_sync: bool,
    ) -> Result<(), StoreError> {
        let path = self.path();
        let fail = |e| StoreError::io("rewrite", &path)(e);
        let tail = usize::try_from((self.records - upto) * RECORD_BYTES).expect("a tail fits into memory");
        let mut old = vec![0; tail];
        let file = self.file().map_err(StoreError::io("open", &path))?;
        file.read_exact_at(&mut old, HEADER_BYTES + upto * RECORD_BYTES).map_err(fail)?;
        let runs = old.chunks_exact(RECORD).map(|r| decode_body(r).expect("written by this process"));
        let (bytes, count) = encode(self.id, rewritten.records, runs);
        rewritten.file.write_all_at(&bytes, HEADER_BYTES + rewritten.records * RECORD_BYTES).map_err(fail)?;
        self.dir.rename(rewrite_name(self.id), journal_name(self.id)).map_err(fail)?;
        // From here on the new file is the journal, whatever becomes of the sync.
        self.file = Some(Arc::new(rewritten.file));
        self.records = rewritten.records + count;
        self.header = rewritten.header;
        self.compact = rewritten.records;
        self.synced = rewritten.records;
        // Nobody was promised that the records since `upto` are on the disk: no sync ran meanwhile.
        self.unsynced = !host_sync || count > 0;
        if host_sync {
            sync_dir(&self.dir)?;
            notify_synced(Synced::Name(&self.dir.path().join(rewrite_name(self.id)), &path));
        }
        Ok(())
    }

    fn try_write_header(&mut self, header: Header) {
        if let Err(error) = self.write_header(header) {
            tracing::warn!(file = %self.path().display(), %error, "the journal's records are not sealed");
        }
    }

    /// Forty bytes in one sector: they change as a whole.
    fn write_header(&mut self, header: Header) -> io::Result<()> {
        if self.header == header {
            return Ok(());
        }
        let bytes = header.encode(self.id);
        self.file()?.write_all_at(&bytes, 0)?;
        self.header = header;
        Ok(())
    }

    fn file(&mut self) -> io::Result<Arc<File>> {
        if let Some(file) = &self.file {
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(self.dir.file(journal_name(self.id), Access::Write)?);
        self.file = Some(Arc::clone(&file));
        Ok(file)
    }
}

/// A journal written anew, next to the one it replaces.
pub(super) struct Rewritten {
    file: File,
    records: u64,
    header: Header,
}

/// Writes what `maps` have as the shortest journal, next to the present one. With `host_sync` the blocks that they call
/// data must be on the host's disk.
pub(super) fn rewrite(dir: &Dir, id: LayerId, maps: &Maps, host_sync: bool) -> Result<Rewritten, StoreError> {
    let name = rewrite_name(id);
    let path = dir.path().join(&name);
    let write = || {
        let file = dir.file(&name, Access::Empty)?;
        let mut out = BufWriter::with_capacity(1 << 16, &file);
        out.write_all(&Header { sealed: 0, durable: None }.encode(id))?;
        let mut records = 0;
        for run in maps.runs() {
            let (bytes, count) = encode(id, records, std::iter::once(run));
            out.write_all(&bytes)?;
            records += count;
        }
        out.flush()?;
        drop(out);
        let header = Header { sealed: records, durable: host_sync.then_some(records) };
        file.write_all_at(&header.encode(id), 0)?;
        if host_sync {
            file.sync_all()?;
            notify_synced(Synced::Content(&path));
        }
        Ok((file, records, header))
    };
    let (file, records, header) = write().map_err(|e| {
        drop(dir.remove(&name));
        StoreError::io("write", &path)(e)
    })?;
    Ok(Rewritten { file, records, header })
}

/// Why the end of a journal is not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JournalFault {
    /// No answered write can have left it.
    Torn,
    /// The host restarted before a flush covered it: its blocks may never have reached the disk.
    NotFlushed,
}

impl JournalFault {
    /// What it is, for people.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Torn => "a torn record",
            Self::NotFlushed => "records that no flush had covered when the host restarted",
        }
    }
}

/// The end of a journal that is not believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Torn {
    /// Why not.
    pub(super) why: JournalFault,
    /// Where it begins, bytes.
    pub(super) offset: u64,
    /// How long it is, bytes.
    pub(super) bytes: u64,
}

/// What reading a journal gave.
#[derive(Debug)]
pub(super) struct Scan {
    /// Good records, those of the torn tail not counted.
    pub(super) records: u64,
    /// The content of the header.
    pub(super) header: Header,
    /// Records that must be there and good: the sealed ones, and the durable ones unless the host restarted since.
    guaranteed: u64,
    /// The content of the records.
    pub(super) maps: Maps,
    /// The torn tail, if any.
    pub(super) torn: Option<Torn>,
    /// Everything that is damaged.
    pub(super) damages: Vec<Damage>,
}

impl Scan {
    /// Records that are valid and not sealed: whether others followed them cannot be determined.
    pub(super) fn unsealed(&self) -> u64 {
        self.records.saturating_sub(self.guaranteed)
    }

    /// Records of a rewrite of this journal.
    fn compact(&self) -> u64 {
        let in_run = |blocks: Range<u64>| (blocks.end - blocks.start).div_ceil(u64::from(u32::MAX));
        self.maps.runs().map(|(blocks, _)| in_run(blocks)).sum()
    }
}

/// Reads a journal to its end. Damage is in the result; an error is the host's. After a restart of the host, records
/// whose blocks may not have reached its disk are not believed.
pub(super) fn scan(
    dir: &Dir,
    id: LayerId,
    has_parent: bool,
    host_restarted: bool,
) -> Result<Scan, StoreError> {
    let path = journal_path(dir, id);
    let header = Header { sealed: 0, durable: None };
    let mut scan =
        Scan { records: 0, header, guaranteed: 0, maps: Maps::default(), torn: None, damages: Vec::new() };
    let file = match dir.file(journal_name(id), Access::Read) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            scan.damages.push(Damage { file: path, offset: 0, what: "the file is missing".to_owned() });
            return Ok(scan);
        }
        Err(e) => return Err(StoreError::io("open", path)(e)),
    };
    let len = file.metadata().map_err(StoreError::io("examine", &path))?.len();
    // Most journals are short.
    let capacity = usize::try_from(len).map_or(MOST_READ, |len| len.min(MOST_READ));
    let mut input = BufReader::with_capacity(capacity, file);
    let mut reader = Scanner { path: &path, id, len, has_parent, host_restarted, scan: &mut scan };
    reader.run(&mut input).map_err(StoreError::io("read", &path))?;
    scan.maps.optimize();
    Ok(scan)
}

struct Scanner<'a> {
    path: &'a Path,
    id: LayerId,
    len: u64,
    has_parent: bool,
    host_restarted: bool,
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
        match Header::decode(&head, self.id) {
            Ok(header) => self.scan.header = header,
            Err(what) => {
                self.damage(0, what);
                return Ok(());
            }
        }
        let whole = (self.len - HEADER_BYTES) / RECORD_BYTES;
        let rest = (self.len - HEADER_BYTES) % RECORD_BYTES;
        let Header { sealed, durable } = self.scan.header;
        self.scan.guaranteed = durable.filter(|_| !self.host_restarted).unwrap_or(sealed).max(sealed);
        if whole < self.scan.guaranteed {
            let guaranteed = self.scan.guaranteed;
            self.damage(self.len, format!("the file ends after {whole} of {guaranteed} sealed records"));
            return Ok(());
        }
        self.records(input, whole, rest)
    }

    fn records(&mut self, input: &mut impl Read, whole: u64, rest: u64) -> io::Result<()> {
        let mut record = [0; RECORD];
        let believed = self.scan.header.durable.filter(|_| self.host_restarted);
        for index in 0..whole {
            let at = HEADER_BYTES + index * RECORD_BYTES;
            if believed.is_some_and(|durable| index >= durable) {
                self.cut(at, JournalFault::NotFlushed);
                return Ok(());
            }
            input.read_exact(&mut record)?;
            let what = match decode(self.id, index, &record) {
                Ok((blocks, kind)) => {
                    self.scan.maps.set(blocks, kind, self.has_parent);
                    self.scan.records = index + 1;
                    continue;
                }
                Err(what) => what,
            };
            let may_be_torn = index >= self.scan.guaranteed;
            let is_last = index + 1 == whole && rest == 0;
            let is_blank = never_written(at, &record);
            // A sync that the host's loss of power interrupted wrote the sectors in any order.
            let is_interrupted = believed.is_some();
            if may_be_torn && (is_last || is_interrupted || (is_blank && only_zeroes(input)?)) {
                self.cut(at, JournalFault::Torn);
                return Ok(());
            }
            self.damage(at, what);
            if may_be_torn && is_blank {
                return Ok(()); // the search for the end of the zeroes has used up the input
            }
        }
        if rest > 0 {
            self.cut(self.len - rest, JournalFault::Torn);
        }
        Ok(())
    }

    fn cut(&mut self, offset: u64, why: JournalFault) {
        self.scan.torn = Some(Torn { why, offset, bytes: self.len - offset });
    }

    fn damage(&mut self, offset: u64, what: impl Into<String>) {
        self.scan.damages.push(Damage { file: self.path.to_owned(), offset, what: what.into() });
    }
}

/// Name of a layer's journal.
pub(super) fn journal_name(id: LayerId) -> String {
    format!("{id}.journal")
}

/// Name of a journal that is being written anew.
fn rewrite_name(id: LayerId) -> String {
    format!("{id}.journal.new")
}

/// Path of a layer's journal, for messages.
pub(super) fn journal_path(dir: &Dir, id: LayerId) -> PathBuf {
    dir.path().join(journal_name(id))
}

fn encode(id: LayerId, index: u64, runs: impl Iterator<Item = (Range<u64>, BlockKind)>) -> (Vec<u8>, u64) {
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
                BlockKind::Data => 1,
                BlockKind::Hole => 2,
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

fn decode(id: LayerId, index: u64, record: &[u8; RECORD]) -> Result<(Range<u64>, BlockKind), String> {
    let stored = u32_at(record, 16);
    let crc = record_crc(id, index, record);
    if crc != stored {
        return Err(format!("the checksum of record {index} is {crc:08x}, {stored:08x} was stored"));
    }
    decode_body(record).ok_or_else(|| format!("record {index} says what no record can"))
}

fn decode_body(record: &[u8]) -> Option<(Range<u64>, BlockKind)> {
    let (first, blocks) = (u64_at(record, 0), u64::from(u32_at(record, 8)));
    let kind = match u32_at(record, 12) {
        1 => BlockKind::Data,
        2 => BlockKind::Hole,
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
    use super::*;

    #[test]
    fn a_rewrite_whose_name_cannot_be_synced_still_takes_later_records() {
        let dir = tempfile::tempdir().unwrap();
        let held = Dir::open(dir.path()).unwrap();
        let id = LayerId(7);
        let mut journal = Journal::create(&held, id, true).unwrap();
        let mut maps = Maps::default();
        journal.append(&[(0..4, BlockKind::Data)]).unwrap();
        maps.set(0..4, BlockKind::Data, false);
        let rewritten = rewrite(&held, id, &maps, true).unwrap();
        // The rename succeeds and the sync of the directory fails.
        journal.dir = Dir::open_without_sync(dir.path()).unwrap();
        journal.replace(rewritten, 1, true).unwrap_err();
        journal.append(&[(8..9, BlockKind::Data)]).unwrap();
        maps.set(8..9, BlockKind::Data, false);
        assert_eq!(scan(&held, id, false, false).unwrap().maps, maps);
    }

    #[test]
    fn a_record_that_the_hosts_power_cut_at_a_sector_is_a_torn_tail() {
        let dir = tempfile::tempdir().unwrap();
        let held = Dir::open(dir.path()).unwrap();
        let id = LayerId(7);
        let mut journal = Journal::create(&held, id, false).unwrap();
        let mut kept = Maps::default();
        for block in 0..30 {
            journal.append(&[(block * 2..block * 2 + 1, BlockKind::Data)]).unwrap();
            if block < 23 {
                kept.set(block * 2..block * 2 + 1, BlockKind::Data, false);
            }
        }
        // Record 23 crosses the end of the first 512 bytes. What follows never reached the disk.
        let file = held.file(journal_name(id), Access::Write).unwrap();
        file.set_len(512).unwrap();
        file.set_len(4096).unwrap();
        let scan = scan(&held, id, false, false).unwrap();
        assert_eq!(scan.damages, []);
        assert_eq!(scan.torn, Some(Torn { why: JournalFault::Torn, offset: 500, bytes: 3596 }));
        assert_eq!(scan.maps.data_blocks(), kept.data_blocks());
    }
}
