//! What the doublewrite buffer holds of pages that are damaged: a torn page of which it has a valid copy is one
//! that the server can restore.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use super::in_dir::{list, open_dir};
use super::page::{self, Checksum, PageFacts, inspect};
use super::spaces::Space;
use super::{BadPage, Unverified};
use crate::Layout;

/// The files of MySQL's doublewrite buffer since 8.0.20 (`#ib_16384_0.dblwr`).
const SUFFIX: &str = ".dblwr";

/// Tablespace and number of a page.
pub(super) type Name = (u32, u32);

/// Notes for each damaged page whether the buffer has a valid copy of it; `names` are what the pages should call
/// themselves, since a damaged one may have forgotten.
pub(super) fn look_for_copies(
    bad: &mut [BadPage],
    names: &[Option<Name>],
    layout: &Layout,
    system: &Space,
) -> Result<(), Unverified> {
    let mut newest: BTreeMap<Name, Option<PageFacts>> =
        names.iter().flatten().map(|name| (*name, None)).collect();
    if newest.is_empty() {
        return Ok(());
    }
    for slot in system.left_out.iter().cloned().flatten() {
        look(&system.file, slot.into(), system, &mut newest).map_err(Unverified::at("read", &system.path))?;
    }
    let files = list(&open_dir(&layout.data)?)?;
    for file in files.into_iter().filter(|file| file.name.ends_with(SUFFIX)) {
        let (path, file) = (file.path(), file.open()?);
        let slots = file.metadata().map_err(Unverified::at("look at", &path))?.len() / system.size();
        for slot in 0..slots {
            look(&file, slot, system, &mut newest).map_err(Unverified::at("read", &path))?;
        }
    }
    for (bad, name) in bad.iter_mut().zip(names) {
        let copy = name.and_then(|name| newest.get(&name)?.as_ref());
        bad.copy = copy
            .zip(bad.facts.as_ref())
            .filter(|(copy, torn)| restores(copy, torn))
            .map(|(copy, _)| copy.lsn_head);
    }
    Ok(())
}

/// Whether a copy is as new as everything in a damaged page: one that was left there earlier restores nothing.
fn restores(copy: &PageFacts, torn: &PageFacts) -> bool {
    let behind = |low: u32| low.wrapping_sub(copy.lsn_tail).cast_signed() > 0;
    torn.lsn_head <= copy.lsn_head && !behind(torn.lsn_tail)
}

fn look(
    file: &File,
    slot: u64,
    system: &Space,
    newest: &mut BTreeMap<Name, Option<PageFacts>>,
) -> io::Result<()> {
    let mut bytes = vec![0; system.page_size];
    match file.read_exact_at(&mut bytes, slot * system.size()) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
        read => read?,
    }
    let Some(copy) = newest.get_mut(&page::name(&bytes)) else { return Ok(()) };
    if let Some(facts) = inspect(&bytes)
        && facts.checksum == Checksum::Fits
        && !facts.torn
        && copy.as_ref().is_none_or(|known| known.lsn_head < facts.lsn_head)
    {
        *copy = Some(facts);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::page::Form;

    fn facts(lsn_head: u64, lsn_tail: u32) -> PageFacts {
        PageFacts {
            space: 1,
            page: 1,
            kind: 17855,
            lsn_head,
            lsn_tail,
            torn: false,
            form: Form::FullCrc32,
            checksum: Checksum::Fits,
        }
    }

    #[test]
    fn a_copy_restores_a_page_only_if_nothing_in_the_page_is_newer() {
        let copy = facts(0x1_0000_2000, 0x2000);
        for torn in [(0x1_0000_1000, 0x2000), (0x1_0000_2000, 0x1000), (0, 0), (0x1_0000_1000, 0x1000)] {
            assert!(restores(&copy, &facts(torn.0, torn.1)), "{torn:x?}");
        }
        // The low half of the position has begun anew between the two versions.
        assert!(restores(&facts(0x2_0000_0010, 0x10), &facts(0x1_ffff_fff0, 0xffff_fff0)));
        for torn in [(0x1_0000_3000, 0x2000), (0x1_0000_2000, 0x3000)] {
            assert!(!restores(&copy, &facts(torn.0, torn.1)), "{torn:x?}");
        }
    }
}
