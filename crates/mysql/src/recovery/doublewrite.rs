//! What the doublewrite buffer holds of pages that are damaged: a torn page of which it has a sound copy is one
//! that the server can restore.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use super::page::{self, Checksum, inspect};
use super::spaces::{Space, list};
use super::{BadPage, Unverified};
use crate::Layout;

/// The files of MySQL's doublewrite buffer since 8.0.20 (`#ib_16384_0.dblwr`).
const SUFFIX: &str = ".dblwr";

/// Tablespace and number of a page.
type Name = (u32, u32);

/// Notes for each damaged page whether the buffer has a sound copy of it.
pub(super) fn look_for_copies(
    bad: &mut [BadPage],
    layout: &Layout,
    system: &Space,
) -> Result<(), Unverified> {
    let mut newest: BTreeMap<Name, Option<u64>> =
        bad.iter().filter_map(|bad| Some((name(bad)?, None))).collect();
    if newest.is_empty() {
        return Ok(());
    }
    for slot in system.left_out.iter().cloned().flatten() {
        look(&system.file, slot.into(), system, &mut newest).map_err(Unverified::at("read", &system.path))?;
    }
    for (path, _) in list(&layout.data)?.into_iter().filter(|(_, name)| name.ends_with(SUFFIX)) {
        let file = File::open(&path).map_err(Unverified::at("open", &path))?;
        let slots = file.metadata().map_err(Unverified::at("look at", &path))?.len() / system.size();
        for slot in 0..slots {
            look(&file, slot, system, &mut newest).map_err(Unverified::at("read", &path))?;
        }
    }
    for bad in bad {
        bad.copy = name(bad).and_then(|name| newest.get(&name).copied().flatten());
    }
    Ok(())
}

fn name(bad: &BadPage) -> Option<Name> {
    bad.facts.as_ref().map(|facts| (facts.space, bad.page))
}

fn look(file: &File, slot: u64, system: &Space, newest: &mut BTreeMap<Name, Option<u64>>) -> io::Result<()> {
    let mut bytes = vec![0; system.page_size];
    match file.read_exact_at(&mut bytes, slot * system.size()) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
        read => read?,
    }
    let Some(copy) = newest.get_mut(&page::name(&bytes)) else { return Ok(()) };
    if let Some(facts) = inspect(&bytes)
        && facts.checksum == Checksum::Fits
        && !facts.torn
    {
        *copy = (*copy).max(Some(facts.lsn_head));
    }
    Ok(())
}
