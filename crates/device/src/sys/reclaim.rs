//! Whether the kernel could make this process wait for its own writes.
//!
//! Whoever answers the writes of a mounted file system must not wait for them itself. Threads with
//! `PR_SET_IO_FLUSHER` never do, but that takes `CAP_SYS_RESOURCE`. Without it, reclaim of all memory
//! and of version 2 control groups still does not wait for pages that are being written; reclaim of a
//! version 1 group does (`mm/vmscan.c`, `shrink_folio_list`, "legacy memcg"). Seen with a limit of
//! 160 MiB and a `dd` of 280 MiB onto a file system of ours in the same group: both hung for good.

use std::{
    fs,
    path::{Path, PathBuf},
};

use ebbtide_proc::{GroupVersion, MemoryGroup};
use rustix::process::is_io_flusher;

/// A memory limit that would make the data path hang once it is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReclaimRisk {
    /// The control group.
    pub(crate) group: PathBuf,
    /// Its limit, bytes.
    pub(crate) limit_bytes: u64,
}

/// The limit that this process must not serve a mounted file system under, if there is one.
pub(crate) fn risk() -> Option<ReclaimRisk> {
    // Asking takes the same permission as setting.
    if is_io_flusher().is_ok() {
        return None;
    }
    let group = MemoryGroup::own().ok()??;
    (group.version == GroupVersion::V1).then(|| lowest_limit(&group.mount, &group.own))?
}

/// The lowest limit of a group and those above it, if any has one.
fn lowest_limit(mount: &Path, group: &Path) -> Option<ReclaimRisk> {
    let limit_of = |group: &Path| {
        let limit: u64 = fs::read_to_string(group.join("memory.limit_in_bytes")).ok()?.trim().parse().ok()?;
        // "No limit" is 2^63, rounded down to pages.
        (limit < 1 << 62).then(|| ReclaimRisk { group: group.to_owned(), limit_bytes: limit })
    };
    let chain = group.ancestors().take_while(|group| group.starts_with(mount));
    chain.filter_map(limit_of).min_by_key(|risk| risk.limit_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_limit_of_the_chain_counts_and_none_is_no_risk() {
        let mount = tempfile::tempdir().unwrap();
        let group = mount.path().join("a/b");
        fs::create_dir_all(&group).unwrap();
        let set = |dir: &Path, bytes: u64| {
            fs::write(dir.join("memory.limit_in_bytes"), format!("{bytes}\n")).unwrap()
        };
        for dir in group.ancestors().take(3) {
            set(dir, 0x7FFF_FFFF_FFFF_F000);
        }
        assert_eq!(lowest_limit(mount.path(), &group), None);
        set(&group, 4 << 30);
        set(&mount.path().join("a"), 1 << 30);
        let expected = ReclaimRisk { group: mount.path().join("a"), limit_bytes: 1 << 30 };
        assert_eq!(lowest_limit(mount.path(), &group), Some(expected));
    }
}
