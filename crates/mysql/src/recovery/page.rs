//! What the header of an InnoDB page holds: whose it is, which version, and whether it is whole.
//!
//! The places of these fields are those of InnoDB's `fil0fil.h` (MySQL) and `fil0types.h` (MariaDB).

use serde::{Deserialize, Serialize};

/// Sizes that InnoDB's pages can have.
const SIZES: std::ops::RangeInclusive<usize> = 4096..=65536;
/// `FIL_PAGE_OFFSET`: the page's number.
const NUMBER: usize = 4;
/// `FIL_PAGE_LSN`: the log position of the last change.
const LSN: usize = 16;
/// `FIL_PAGE_TYPE`.
const KIND: usize = 24;
/// `FIL_PAGE_FILE_FLUSH_LSN`: from here to [`BODY`] no checksum of MySQL's form reaches.
const FLUSH_LSN: usize = 26;
/// `FIL_PAGE_SPACE_ID`.
pub(super) const SPACE: usize = 34;
/// `FIL_PAGE_DATA`.
const BODY: usize = 38;

/// Where a page keeps its checksum, and what it covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// MySQL's, and MariaDB's before 10.5: the first four bytes, and again before the last four.
    Crc32,
    /// MariaDB's since 10.5: the last four bytes, over all that is before them.
    FullCrc32,
}

/// Whether the checksum fits the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Checksum {
    /// It does.
    Fits,
    /// The page holds nothing but zeros: it was never written.
    Empty,
    /// It does not.
    Differs {
        /// What the page has.
        stored: u32,
        /// What its content comes to.
        computed: u32,
    },
}

/// What a page's header holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageFacts {
    /// Its tablespace.
    pub space: u32,
    /// Its number in the tablespace.
    pub page: u32,
    /// InnoDB's number of what it holds (`FIL_PAGE_TYPE`), such as 17855; see [`Self::kind_name`].
    pub kind: u16,
    /// The log position of the version that its first bytes belong to.
    pub lsn_head: u64,
    /// The low 32 bits of that position as its last bytes have it.
    pub lsn_tail: u32,
    /// Whether first and last bytes belong to different versions: a write of it was cut. A page whose
    /// middle alone is of another version shows only in its checksum.
    pub torn: bool,
    /// The form of its checksum, as the page itself shows it: where neither fits, the likelier one.
    pub form: Form,
    /// Whether it is whole.
    pub checksum: Checksum,
}

impl PageFacts {
    /// Whether the page passes: whole, or never written.
    #[must_use]
    pub const fn is_sound(&self) -> bool {
        !self.torn && !matches!(self.checksum, Checksum::Differs { .. })
    }

    /// What it holds, in words.
    #[must_use]
    pub const fn kind_name(&self) -> &'static str {
        match self.kind {
            0 => "allocated, not yet used",
            2 => "undo log",
            3 => "segment list",
            5 => "change buffer bitmap",
            6 => "system",
            7 => "transaction system",
            8 => "tablespace header",
            9 => "extent descriptors",
            10 | 22..=24 => "large value",
            17853 => "dictionary copy",
            17854 => "spatial index",
            17855 => "index",
            _ => "other",
        }
    }
}

/// Reads a page; none where the bytes are not a page's size (4 to 64 KiB, a power of two).
#[must_use]
pub fn inspect(page: &[u8]) -> Option<PageFacts> {
    if !SIZES.contains(&page.len()) || !page.len().is_power_of_two() {
        return None;
    }
    let full = facts(page, Form::FullCrc32);
    if full.is_sound() {
        return Some(full);
    }
    let plain = facts(page, Form::Crc32);
    // The first four bytes of MariaDB's form are the version of an encryption key: 0 without one.
    let looks_full = word(page, 0) == 0;
    Some(if plain.is_sound() || !looks_full { plain } else { full })
}

/// Reads a page whose form is known.
pub(super) fn facts(page: &[u8], form: Form) -> PageFacts {
    let size = page.len();
    let empty = page.iter().all(|byte| *byte == 0);
    let (tail, fits) = match form {
        Form::Crc32 => (size - 4, plain_checksum(page)),
        Form::FullCrc32 => (size - 8, full_checksum(page)),
    };
    let (lsn_head, lsn_tail) =
        ((u64::from(word(page, LSN)) << 32) | u64::from(word(page, LSN + 4)), word(page, tail));
    PageFacts {
        space: word(page, SPACE),
        page: word(page, NUMBER),
        kind: u16::from_be_bytes([page[KIND], page[KIND + 1]]),
        lsn_head,
        lsn_tail,
        torn: word(page, LSN + 4) != lsn_tail,
        form,
        checksum: if empty { Checksum::Empty } else { fits },
    }
}

fn full_checksum(page: &[u8]) -> Checksum {
    let end = page.len() - 4;
    compare(word(page, end), crc32c::crc32c(&page[..end]))
}

fn plain_checksum(page: &[u8]) -> Checksum {
    let end = page.len() - 8;
    let computed = crc32c::crc32c(&page[NUMBER..FLUSH_LSN]) ^ crc32c::crc32c(&page[BODY..end]);
    match compare(word(page, 0), computed) {
        Checksum::Fits => compare(word(page, end), computed),
        differs => differs,
    }
}

const fn compare(stored: u32, computed: u32) -> Checksum {
    if stored == computed { Checksum::Fits } else { Checksum::Differs { stored, computed } }
}

/// The tablespace and the number that a page calls itself.
pub(super) fn name(page: &[u8]) -> (u32, u32) {
    (word(page, SPACE), word(page, NUMBER))
}

/// The big-endian number at an offset.
pub(super) fn word(page: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: usize = 16384;

    /// A page of one version, sealed as InnoDB does.
    fn page(form: Form, lsn: u64, fill: u8) -> Vec<u8> {
        let mut page = vec![fill; SIZE];
        page[..4].fill(0);
        page[NUMBER..8].copy_from_slice(&7u32.to_be_bytes());
        page[LSN..LSN + 8].copy_from_slice(&lsn.to_be_bytes());
        page[KIND..KIND + 2].copy_from_slice(&17855u16.to_be_bytes());
        page[SPACE..SPACE + 4].copy_from_slice(&42u32.to_be_bytes());
        let low = lsn.to_be_bytes()[4..].to_vec();
        match form {
            Form::FullCrc32 => {
                page[SIZE - 8..SIZE - 4].copy_from_slice(&low);
                let sum = crc32c::crc32c(&page[..SIZE - 4]);
                page[SIZE - 4..].copy_from_slice(&sum.to_be_bytes());
            }
            Form::Crc32 => {
                page[SIZE - 4..].copy_from_slice(&low);
                let sum = crc32c::crc32c(&page[4..26]) ^ crc32c::crc32c(&page[38..SIZE - 8]);
                page[..4].copy_from_slice(&sum.to_be_bytes());
                page[SIZE - 8..SIZE - 4].copy_from_slice(&sum.to_be_bytes());
            }
        }
        page
    }

    #[test]
    fn a_whole_page_is_known_by_its_own_form() {
        for form in [Form::Crc32, Form::FullCrc32] {
            let facts = inspect(&page(form, 0x5_0000_1234, 9)).unwrap();
            assert_eq!((facts.space, facts.page, facts.kind_name()), (42, 7, "index"));
            assert_eq!((facts.lsn_head, facts.lsn_tail), (0x5_0000_1234, 0x1234));
            assert_eq!((facts.form, facts.checksum), (form, Checksum::Fits));
            assert!(facts.is_sound() && !facts.torn);
        }
    }

    #[test]
    fn every_tear_at_4_kib_is_unsound_and_names_both_versions_where_an_end_is_cut() {
        for form in [Form::Crc32, Form::FullCrc32] {
            let (old, new) = (page(form, 1000, 1), page(form, 2000, 2));
            for units in 1..15_u8 {
                let mut torn = old.clone();
                for unit in (0..4).filter(|unit| units & (1 << unit) != 0) {
                    let range = unit * 4096..(unit + 1) * 4096;
                    torn[range.clone()].copy_from_slice(&new[range]);
                }
                let facts = inspect(&torn).unwrap();
                assert!(!facts.is_sound(), "{form:?} {units:04b}");
                let (first, last) = (units & 1 != 0, units & 8 != 0);
                assert_eq!(facts.torn, first != last, "{form:?} {units:04b}");
                assert_eq!(facts.lsn_head, if first { 2000 } else { 1000 });
                if facts.form == form {
                    assert_eq!(facts.lsn_tail, if last { 2000 } else { 1000 });
                }
            }
        }
    }

    #[test]
    fn a_page_never_written_is_valid_and_other_sizes_are_no_pages() {
        assert_eq!(inspect(&[0; SIZE]).unwrap().checksum, Checksum::Empty);
        assert!(inspect(&[0; SIZE]).unwrap().is_sound());
        for size in [0, 38, 4095, 12288, 131_072] {
            assert!(inspect(&vec![0; size]).is_none(), "{size}");
        }
    }
}
