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

use rustix::process::is_io_flusher;

/// A memory limit that would make the data path hang once it is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hazard {
    /// The control group.
    pub(crate) group: PathBuf,
    /// Its limit, bytes.
    pub(crate) limit_bytes: u64,
}

/// The limit that this process must not serve a mounted file system under, if there is one.
pub(crate) fn hazard() -> Option<Hazard> {
    // Asking takes the same permission as setting.
    if is_io_flusher().is_ok() {
        return None;
    }
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let (mount, group) = memory_group(&groups, &mounts)?;
    lowest_limit(&mount, &group)
}

/// The mount of the version 1 memory controller, and the directory of our group in it.
fn memory_group(groups: &str, mounts: &str) -> Option<(PathBuf, PathBuf)> {
    // cgroups(7): number, controllers, path.
    let ours = groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let is_memory = fields.next()?.split(',').any(|controller| controller == "memory");
        is_memory.then(|| fields.next())?
    })?;
    // proc(5): the fourth field is the root of the mount, the fifth its place.
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        let is_memory =
            after.next()? == "cgroup" && after.nth(1)?.split(',').any(|option| option == "memory");
        let mut before = before.split(' ').skip(3);
        let (root, mount) = (before.next()?, Path::new(before.next()?));
        // Inside a container the mount's root is the container's group.
        let below = Path::new(ours).strip_prefix(root).unwrap_or(Path::new(""));
        is_memory.then(|| (mount.to_owned(), mount.join(below)))
    })
}

/// The lowest limit of a group and those above it, if any has one.
fn lowest_limit(mount: &Path, group: &Path) -> Option<Hazard> {
    let limit_of = |group: &Path| {
        let limit: u64 = fs::read_to_string(group.join("memory.limit_in_bytes")).ok()?.trim().parse().ok()?;
        // "No limit" is 2^63, rounded down to pages.
        (limit < 1 << 62).then(|| Hazard { group: group.to_owned(), limit_bytes: limit })
    };
    let chain = group.ancestors().take_while(|group| group.starts_with(mount));
    chain.filter_map(limit_of).min_by_key(|hazard| hazard.limit_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
30 23 0:26 / /sys/fs/cgroup ro - tmpfs tmpfs rw,mode=755
33 30 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
36 30 0:32 /docker/abc /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory";

    #[test]
    fn our_group_is_found_below_the_mount_of_the_controller() {
        let groups = "5:cpu:/x\n4:memory:/docker/abc/db\n0::/";
        let found = memory_group(groups, MOUNTS).unwrap();
        assert_eq!(found, ("/sys/fs/cgroup/memory".into(), "/sys/fs/cgroup/memory/db".into()));
        assert_eq!(memory_group("0::/user.slice", MOUNTS), None, "version 2 has no such line");
    }

    #[test]
    fn the_lowest_limit_of_the_chain_counts_and_none_is_no_hazard() {
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
        let expected = Hazard { group: mount.path().join("a"), limit_bytes: 1 << 30 };
        assert_eq!(lowest_limit(mount.path(), &group), Some(expected));
    }
}
