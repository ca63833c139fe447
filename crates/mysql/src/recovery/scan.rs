//! A look at every page by our own reading of checksums: much quicker than a process for each file.

use std::os::unix::fs::FileExt as _;

use super::doublewrite::look_for_copies;
use super::page::{Checksum, PageFacts, facts};
use super::spaces::Space;
use super::{BadPage, INVALID_KEPT, PageCheck, Unverified};
use crate::Layout;

/// Read at once: whole pages of every size.
const CHUNK: usize = 1 << 20;

/// Looks at every page itself: its checksum, whether its first and its last bytes are of one version, and
/// whether it is in its place; and of those that fail, whether the doublewrite buffer has a valid copy.
/// The server must not run on the files.
///
/// This finds what [`check_pages`](super::check_pages) finds, and pages that are in a wrong place, in a
/// fraction of the time; that one is the servers' own word for it.
///
/// # Errors
/// [`Unverified::Form`] for compressed and encrypted pages, and what the file systems refuse.
pub fn scan_pages(layout: &Layout) -> Result<PageCheck, Unverified> {
    let mut check = PageCheck::default();
    let mut buffer = vec![0; CHUNK];
    let spaces = Space::all(layout)?;
    let mut names = Vec::new();
    for space in &spaces {
        if let Some(why) = space.special {
            return Err(Unverified::form(&space.path, why));
        }
        check.files += 1;
        check.pages += space.pages();
        let invalid = scan(space, &mut buffer)?;
        names.extend(invalid.iter().map(|bad| Some((space.id?, bad.page))));
        check.invalid.extend(invalid);
    }
    let system = spaces.first().expect("the system tablespace comes first");
    look_for_copies(&mut check.invalid, &names, layout, system)?;
    Ok(check)
}

fn scan(space: &Space, buffer: &mut [u8]) -> Result<Vec<BadPage>, Unverified> {
    let mut invalid = Vec::new();
    let mut page = 0;
    let per_chunk = CHUNK / space.page_size;
    while u64::from(page) < space.pages() && invalid.len() < INVALID_KEPT {
        let left = usize::try_from(space.pages() - u64::from(page)).unwrap_or(per_chunk);
        let chunk = &mut buffer[..per_chunk.min(left) * space.page_size];
        space
            .file
            .read_exact_at(chunk, u64::from(page) * space.size())
            .map_err(Unverified::at("read", &space.path))?;
        for bytes in chunk.chunks(space.page_size) {
            if space.counts(page)
                && let facts = facts(bytes, space.form)
                && let Some(reason) = objection(space, page, &facts)
            {
                invalid.push(BadPage {
                    file: space.path.clone(),
                    page,
                    reason,
                    facts: Some(facts),
                    copy: None,
                });
            }
            page += 1;
        }
    }
    if !space.len.is_multiple_of(space.size()) && invalid.len() < INVALID_KEPT {
        let reason = format!("the file ends after {} bytes of it", space.len % space.size());
        invalid.push(BadPage { file: space.path.clone(), page, reason, facts: None, copy: None });
    }
    invalid.truncate(INVALID_KEPT);
    Ok(invalid)
}

/// What is wrong with a page, if anything is.
fn objection(space: &Space, page: u32, facts: &PageFacts) -> Option<String> {
    if let Checksum::Differs { stored, computed } = facts.checksum {
        let versions = if facts.torn {
            format!(
                ", its first bytes are of log position {}, its last of one that ends in {:08x}",
                facts.lsn_head, facts.lsn_tail
            )
        } else {
            String::new()
        };
        return Some(format!("its checksum is {stored:08x}, its content comes to {computed:08x}{versions}"));
    }
    if facts.checksum == Checksum::Empty {
        return None;
    }
    if facts.torn {
        let (head, tail) = (facts.lsn_head, facts.lsn_tail);
        return Some(format!(
            "its first bytes are of log position {head}, its last of one that ends in {tail:08x}"
        ));
    }
    if facts.page != page || space.id.is_some_and(|id| facts.space != id) {
        return Some(format!("it calls itself page {} of tablespace {}", facts.page, facts.space));
    }
    None
}
