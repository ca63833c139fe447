//! The tablespaces of a layout: which files they are, how their pages are arranged, and which of their
//! pages are none.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use super::Unverified;
use super::in_dir::{InDir, list, open_dir};
use super::page::{self, Form, PageFacts, word};
use crate::layout::{Layout, is_undo};

/// The system tablespace.
const SYSTEM: &str = "ibdata1";
/// Where page 0 keeps the tablespace's flags: `FSP_HEADER_OFFSET` and `FSP_SPACE_FLAGS`.
const FLAGS: usize = 38 + 16;
/// As much of page 0 is read.
const HEADER: usize = FLAGS + 4;
/// The flag of MariaDB's full_crc32 (`FSP_FLAGS_FCRC32_MASK_MARKER`): no other format sets this bit.
const FULL_CRC32: u32 = 1 << 4;
/// `TRX_SYS_PAGE_NO`: the page that names the doublewrite buffer's place.
const TRX_SYS: u64 = 5;
/// `TRX_SYS_DOUBLEWRITE` and `TRX_SYS_DOUBLEWRITE_MAGIC`, from the end of that page.
const MAGIC_FROM_END: usize = 200 - 10;
/// `TRX_SYS_DOUBLEWRITE_MAGIC_N`.
const MAGIC: u32 = 536_853_855;

/// A tablespace file.
#[derive(Debug)]
pub(super) struct Space {
    pub(super) path: PathBuf,
    pub(super) file: File,
    /// Bytes.
    pub(super) len: u64,
    /// Bytes of a page.
    pub(super) page_size: usize,
    pub(super) form: Form,
    /// Its number, as page 0 has it; none where that was never written.
    pub(super) id: Option<u32>,
    /// Why its pages cannot be judged by their checksum alone.
    pub(super) special: Option<&'static str>,
    /// Pages that are none: the blocks of the doublewrite buffer.
    pub(super) left_out: Vec<Range<u32>>,
}

impl Space {
    /// Every tablespace of a layout that is not empty, without the temporary ones; the system tablespace
    /// first.
    pub(super) fn all(layout: &Layout) -> Result<Vec<Self>, Unverified> {
        let system = layout.data.join(SYSTEM);
        let mut first = Self::open(&InDir { dir: open_dir(&layout.data)?, name: SYSTEM.to_owned() }, None)?
            .ok_or_else(|| Unverified::form(&system, "an empty system tablespace"))?;
        first.left_out = first.doublewrite().map_err(Unverified::at("read", &system))?;
        let default = (first.page_size, first.form);
        let mut spaces = vec![first];
        for file in files(layout)? {
            spaces.extend(Self::open(&file, Some(default))?);
        }
        Ok(spaces)
    }

    /// Opens one; none where it is empty. `default` is used where page 0 is all zeros.
    fn open(file: &InDir, default: Option<(usize, Form)>) -> Result<Option<Self>, Unverified> {
        let (path, file) = (&file.path(), file.open()?);
        let len = file.metadata().map_err(Unverified::at("look at", path))?.len();
        if len == 0 {
            return Ok(None);
        }
        let mut header = [0; HEADER];
        if let Err(error) = file.read_exact_at(&mut header, 0)
            && error.kind() != io::ErrorKind::UnexpectedEof
        {
            return Err(Unverified::at("read", path)(error));
        }
        let flags = Flags::of(word(&header, FLAGS));
        let unwritten = header == [0; HEADER];
        let (page_size, form) = match (unwritten, default) {
            (true, Some(default)) => default,
            _ => (flags.page_size.or(default.map(|of| of.0)).unwrap_or(16384), flags.form),
        };
        let id = (!unwritten).then(|| word(&header, page::SPACE));
        let path = path.to_owned();
        Ok(Some(Self { path, file, len, page_size, form, id, special: flags.special, left_out: Vec::new() }))
    }

    /// Whole pages.
    pub(super) fn pages(&self) -> u64 {
        self.len / self.size()
    }

    /// Bytes of a page.
    pub(super) fn size(&self) -> u64 {
        self.page_size.try_into().expect("a page has at most 64 KiB")
    }

    /// Whether a page is one.
    pub(super) fn counts(&self, page: u32) -> bool {
        !self.left_out.iter().any(|range| range.contains(&page))
    }

    /// What a page's header holds; none where the file ends before its end.
    pub(super) fn facts(&self, page: u32) -> Option<PageFacts> {
        let mut bytes = vec![0; self.page_size];
        self.file.read_exact_at(&mut bytes, u64::from(page) * self.size()).ok()?;
        Some(page::facts(&bytes, self.form))
    }

    /// The blocks of the system tablespace that the doublewrite buffer takes; none where there is none.
    fn doublewrite(&self) -> io::Result<Vec<Range<u32>>> {
        let mut bytes = [0; MAGIC_FROM_END];
        let at = (TRX_SYS + 1) * self.size() - u64::try_from(MAGIC_FROM_END).expect("a small number");
        match self.file.read_exact_at(&mut bytes, at) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Vec::new()),
            read => read?,
        }
        if word(&bytes, 0) != MAGIC {
            return Ok(Vec::new());
        }
        // A block is an extent: 1 MiB, and 64 pages where pages are larger than 16 KiB.
        let block = u32::try_from((1 << 20) / self.page_size).expect("at most 256").max(64);
        let blocks = [word(&bytes, 4), word(&bytes, 8)];
        Ok(blocks.map(|first| first..first.saturating_add(block)).to_vec())
    }
}

/// What the flags of page 0 mean.
#[derive(Debug, PartialEq, Eq)]
struct Flags {
    /// None where they make no sense.
    page_size: Option<usize>,
    form: Form,
    special: Option<&'static str>,
}

impl Flags {
    /// The bits are those of MySQL's `fsp0types.h` and of MariaDB's file of the same name.
    fn of(flags: u32) -> Self {
        let bits = |from: u32, count: u32| (flags >> from) & ((1 << count) - 1);
        let full = flags & FULL_CRC32 != 0;
        let (exponent, special) = if full {
            (bits(0, 4), (bits(5, 3) != 0).then_some("its pages are compressed"))
        } else {
            let compressed = bits(1, 4) != 0 || bits(16, 1) != 0;
            let special = if compressed { Some("its pages are compressed") } else { None };
            (bits(6, 4), special.or((bits(13, 1) != 0).then_some("its pages are encrypted")))
        };
        let page_size = match exponent {
            0 if !full => Some(16384),
            3..=7 => Some(512 << exponent),
            _ => None,
        };
        Self { page_size, form: if full { Form::FullCrc32 } else { Form::Crc32 }, special }
    }
}

/// The tablespaces' files, without the system tablespace.
fn files(layout: &Layout) -> Result<Vec<InDir>, Unverified> {
    let data = open_dir(&layout.data)?;
    let mut found = Vec::new();
    for file in list(&data)? {
        // MySQL keeps temporary tablespaces in a directory of this name.
        match data.open_sub(&file.name) {
            Ok(inner) if file.name != "#innodb_temp" => {
                found.extend(list(&inner)?.into_iter().filter(|file| file.name.ends_with(".ibd")));
            }
            _ if file.name.ends_with(".ibd") || is_undo(&file.name) => found.push(file),
            _ => {}
        }
    }
    if let Some(undo) = &layout.undo {
        found.extend(list(&open_dir(undo)?)?.into_iter().filter(|file| is_undo(&file.name)));
    }
    found.sort_by_cached_key(InDir::path);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_give_page_size_and_form_of_both_servers() {
        let flags = |flags, page_size, form| {
            assert_eq!(
                Flags::of(flags),
                Flags { page_size: Some(page_size), form, special: None },
                "{flags}"
            );
        };
        flags(0x15, 16384, Form::FullCrc32);
        flags(0x13, 4096, Form::FullCrc32);
        flags(0x17, 65536, Form::FullCrc32);
        flags(0, 16384, Form::Crc32);
        flags(0x4021, 16384, Form::Crc32);
        flags(0x21 | (6 << 6), 32768, Form::Crc32);
    }

    #[test]
    fn pages_that_a_checksum_alone_does_not_judge_are_reported() {
        assert_eq!(Flags::of(0x21 | (4 << 1)).special, Some("its pages are compressed"));
        assert_eq!(Flags::of(0x15 | (1 << 5)).special, Some("its pages are compressed"));
        assert_eq!(Flags::of(0x4021 | (1 << 13)).special, Some("its pages are encrypted"));
        assert_eq!(Flags::of(0x1F).page_size, None);
    }
}
