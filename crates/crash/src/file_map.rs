//! Which part of a volume belongs to which of the server's files: what a write in flight was a write of.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ebbtide_device::host::file_extents;
use ebbtide_mysql::{Binary, Version};

use super::record::FileKind;

/// InnoDB's page, bytes; what the experiments of the crash lab run with.
pub(super) const PAGE: u64 = 16 << 10;
/// MariaDB's doublewrite area: two blocks of 64 pages in the system tablespace, from page 64 on
/// (`TRX_SYS_DOUBLEWRITE_BLOCK1` and `2`, written when the data directory is made).
const DOUBLEWRITE_AREA: std::ops::Range<u64> = 64 * PAGE..192 * PAGE;
/// From this version on MariaDB's redo log begins with a header of 12 KiB, checkpoints in it.
const LONG_HEADER: Version = Version::new(10, 8, 0);
const LONG_HEADER_BYTES: u64 = 12 << 10;
/// Before that, and in MySQL, the header has four blocks of 512 bytes.
const HEADER_BYTES: u64 = 2 << 10;
/// More levels of directories than a server makes.
const DEEPEST: u32 = 4;

/// A stretch of a volume that belongs to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mapped {
    /// Where on the volume, bytes.
    at: u64,
    len: u64,
    kind: FileKind,
    file: Arc<str>,
    /// Where in the file, bytes.
    logical: u64,
}

/// What is at a place of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found<'a> {
    pub(super) kind: FileKind,
    /// Empty where the place belongs to no file.
    pub(super) file: &'a str,
    /// Where in the file, bytes; on the volume where there is none.
    pub(super) offset: u64,
}

/// The files of a mounted volume at one time.
#[derive(Debug, Clone, Default)]
pub(super) struct FileMap {
    /// In the order of the volume.
    mapped: Vec<Mapped>,
}

impl FileMap {
    /// Looks at every file below a mounted directory.
    pub(super) fn draw(dir: &Path, binary: &Binary) -> io::Result<Self> {
        let mut mapped = Vec::new();
        for path in files(dir, DEEPEST)? {
            let name = path.strip_prefix(dir).unwrap_or(&path).to_string_lossy().into_owned();
            let file: Arc<str> = name.as_str().into();
            // A file that has gone meanwhile has no extents any more.
            let extents = match file_extents(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                other => other?,
            };
            for extent in extents {
                for (range, kind) in parts(&name, binary) {
                    let from = range.start.max(extent.logical);
                    let to = range.end.min(extent.logical + extent.len);
                    if from < to {
                        let at = extent.physical + (from - extent.logical);
                        mapped.push(Mapped { at, len: to - from, kind, file: file.clone(), logical: from });
                    }
                }
            }
        }
        mapped.sort_by_key(|part| part.at);
        Ok(Self { mapped })
    }

    /// What is at a place.
    pub(super) fn find(&self, offset: u64) -> Found<'_> {
        let after = self.mapped.partition_point(|part| part.at <= offset);
        match self.mapped[..after].last().filter(|part| offset < part.at + part.len) {
            Some(part) => {
                Found { kind: part.kind, file: &part.file, offset: part.logical + (offset - part.at) }
            }
            None => Found { kind: FileKind::FileSystem, file: "", offset },
        }
    }
}

/// Every regular file below a directory.
fn files(dir: &Path, levels: u32) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_file() {
            found.push(entry.path());
        } else if kind.is_dir() && levels > 0 {
            match files(&entry.path(), levels - 1) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                below => found.extend(below?),
            }
        }
    }
    Ok(found)
}

/// What the parts of a file hold, by its name.
fn parts(path: &str, binary: &Binary) -> Vec<(std::ops::Range<u64>, FileKind)> {
    let all = |kind| vec![(0..u64::MAX, kind)];
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_redo = name.starts_with("ib_logfile") || name.starts_with("#ib_redo");
    if is_redo {
        let header = if binary.is_mariadb() && binary.version >= LONG_HEADER {
            LONG_HEADER_BYTES
        } else {
            HEADER_BYTES
        };
        return vec![(0..header, FileKind::Checkpoint), (header..u64::MAX, FileKind::Redo)];
    }
    if name == "ibdata1" && binary.is_mariadb() {
        let area = DOUBLEWRITE_AREA;
        return vec![
            (0..area.start, FileKind::Page),
            (area.clone(), FileKind::Doublewrite),
            (area.end..u64::MAX, FileKind::Page),
        ];
    }
    if name.ends_with(".dblwr") {
        return all(FileKind::Doublewrite);
    }
    if name.starts_with("binlog.") {
        return all(FileKind::Binlog);
    }
    let is_pages = name.ends_with(".ibd") || name.starts_with("undo") || name == "ibdata1";
    all(if is_pages { FileKind::Page } else { FileKind::Other })
}

#[cfg(test)]
mod tests {
    use ebbtide_mysql::Flavour;

    use super::*;

    fn mariadb() -> Binary {
        let version = Version::new(10, 11, 19);
        Binary { path: "/x/mariadbd".into(), flavour: Flavour::MariaDb, version, text: String::new() }
    }

    fn kind_at(path: &str, offset: u64, binary: &Binary) -> FileKind {
        let parts = parts(path, binary);
        parts.into_iter().find(|(range, _)| range.contains(&offset)).map(|(_, kind)| kind).unwrap()
    }

    #[test]
    fn a_file_is_known_by_its_name_and_its_parts_by_their_place() {
        let maria = mariadb();
        let mysql = Binary { flavour: Flavour::MySql, version: Version::new(9, 7, 4), ..mariadb() };
        for (path, offset, binary, kind) in [
            ("data/ib_logfile0", 4096, &maria, FileKind::Checkpoint),
            ("data/ib_logfile0", 12288, &maria, FileKind::Redo),
            ("data/#innodb_redo/#ib_redo7", 512, &mysql, FileKind::Checkpoint),
            ("data/#innodb_redo/#ib_redo7", 2048, &mysql, FileKind::Redo),
            ("data/ibdata1", 63 * PAGE, &maria, FileKind::Page),
            ("data/ibdata1", 64 * PAGE, &maria, FileKind::Doublewrite),
            ("data/ibdata1", 192 * PAGE, &maria, FileKind::Page),
            ("data/ibdata1", 64 * PAGE, &mysql, FileKind::Page),
            ("data/#ib_16384_0.dblwr", 0, &mysql, FileKind::Doublewrite),
            ("data/sbtest/ballast.ibd", 0, &maria, FileKind::Page),
            ("data/undo001", 0, &maria, FileKind::Page),
            ("data/binlog.000003", 0, &maria, FileKind::Binlog),
            ("data/aria_log.00000001", 0, &maria, FileKind::Other),
        ] {
            assert_eq!(kind_at(path, offset, binary), kind, "{path} at {offset}");
        }
    }

    #[test]
    fn a_place_is_found_in_its_file_and_a_gap_belongs_to_the_file_system() {
        let part = |at, len, logical| Mapped { at, len, kind: FileKind::Page, file: "t.ibd".into(), logical };
        let map = FileMap { mapped: vec![part(8192, 4096, 0), part(65536, 16384, 4096)] };
        assert_eq!(map.find(8192), Found { kind: FileKind::Page, file: "t.ibd", offset: 0 });
        assert_eq!(map.find(65536 + 100), Found { kind: FileKind::Page, file: "t.ibd", offset: 4196 });
        for gap in [0, 12288, 65536 + 16384] {
            assert_eq!(map.find(gap), Found { kind: FileKind::FileSystem, file: "", offset: gap });
        }
    }
}
