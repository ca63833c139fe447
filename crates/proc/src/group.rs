//! Where the memory controller of the control groups is mounted, where a process is in it, and the limit that it has there.

use std::io;
use std::path::{Path, PathBuf};

use procfs::ProcessCGroup;
use procfs::process::Process;

use crate::mounts::{Mount, mounts};

/// Which of the kernel's interfaces a group has (cgroups(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupVersion {
    /// One tree for each controller.
    V1,
    /// One tree for all.
    V2,
}

/// The group of a process under the memory controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryGroup {
    /// The interface.
    pub version: GroupVersion,
    /// Where the controller is mounted.
    pub mount: PathBuf,
    /// The group's directory; `mount` itself where a container shows no more.
    pub own: PathBuf,
}

impl MemoryGroup {
    /// The group of this process; None: no memory controller is mounted.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn own() -> io::Result<Option<Self>> {
        Self::of(std::process::id())
    }

    /// The group of another process; None: no memory controller is mounted.
    ///
    /// # Errors
    /// `/proc` cannot be read, or there is no such process.
    pub fn of(pid: u32) -> io::Result<Option<Self>> {
        let pid = i32::try_from(pid).map_err(io::Error::other)?;
        let groups = Process::new(pid).and_then(|process| process.cgroups()).map_err(io::Error::other)?;
        Ok(Self::find(&mounts()?, &groups.0))
    }

    /// The smallest limit of the group and of those above it, bytes; None: none has one.
    #[must_use]
    pub fn limit(&self) -> Option<u64> {
        let file = match self.version {
            GroupVersion::V1 => "memory.limit_in_bytes",
            GroupVersion::V2 => "memory.max",
        };
        let above = self.own.ancestors().take_while(|dir| dir.starts_with(&self.mount));
        let limits =
            above.filter_map(|dir| std::fs::read_to_string(dir.join(file)).ok()?.trim().parse().ok());
        // Version 1 writes a number near 2^63 for no limit, version 2 a word.
        limits.filter(|bytes| *bytes < 1 << 60).min()
    }

    /// Version 1 goes first: where it has the memory controller, version 2 does not.
    fn find(mounts: &[Mount], groups: &[ProcessCGroup]) -> Option<Self> {
        let v1 = mounts
            .iter()
            .find(|mount| mount.fs == "cgroup" && mount.all_options().any(|option| option == "memory"));
        let (version, mount) = match v1 {
            Some(mount) => (GroupVersion::V1, mount),
            None => (GroupVersion::V2, mounts.iter().find(|mount| mount.fs == "cgroup2")?),
        };
        let is_ours = |group: &&ProcessCGroup| match version {
            GroupVersion::V1 => group.controllers.iter().any(|controller| controller == "memory"),
            GroupVersion::V2 => group.controllers.is_empty(),
        };
        let group = Path::new(&groups.iter().find(is_ours)?.pathname);
        // A container's mount shows a part of the tree only.
        let inside = group.strip_prefix(&mount.root).unwrap_or(Path::new(""));
        Some(Self { version, own: mount.dir.join(inside), mount: mount.dir.clone() })
    }
}

#[cfg(test)]
mod tests {
    use procfs::{FromRead as _, ProcessCGroups};

    use super::*;
    use crate::mounts::parse_mounts;

    const V1: &str = "30 23 0:26 / /sys/fs/cgroup ro - tmpfs tmpfs rw,mode=755\n\
        33 30 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n\
        36 30 0:32 /docker/abc /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n\
        37 30 0:33 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw";
    const V2: &str = "32 29 0:28 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate";

    fn find(mounts: &str, groups: &str) -> Option<MemoryGroup> {
        MemoryGroup::find(
            &parse_mounts(mounts.as_bytes()),
            &ProcessCGroups::from_read(groups.as_bytes()).unwrap().0,
        )
    }

    #[test]
    fn our_group_is_found_below_the_mount_of_the_controller() {
        let found = find(V1, "5:cpu:/x\n4:memory:/docker/abc/db\n0::/").unwrap();
        let memory = PathBuf::from("/sys/fs/cgroup/memory");
        assert_eq!((found.version, &found.mount), (GroupVersion::V1, &memory));
        assert_eq!(found.own, memory.join("db"));
        assert_eq!(find(V1, "4:memory:/other\n").unwrap().own, memory, "a part that the mount does not show");
        assert_eq!(find(V1, "0::/user.slice"), None, "this process is in no group of version 1");
    }

    #[test]
    fn version_2_is_taken_where_it_has_the_controller() {
        let found = find(V2, "0::/user.slice/session.scope\n").unwrap();
        assert_eq!(found.version, GroupVersion::V2);
        assert_eq!(found.own, Path::new("/sys/fs/cgroup/user.slice/session.scope"));
        assert_eq!(find("", "0::/"), None);
    }

    #[test]
    fn the_limit_is_the_smallest_on_the_way_up() {
        let dir = tempfile::tempdir().unwrap();
        let (mount, own) = (dir.path().to_owned(), dir.path().join("a/b"));
        std::fs::create_dir_all(&own).unwrap();
        let group = MemoryGroup { version: GroupVersion::V2, mount, own: own.clone() };
        std::fs::write(own.join("memory.max"), "max\n").unwrap();
        assert_eq!(group.limit(), None);
        std::fs::write(dir.path().join("a/memory.max"), "4096\n").unwrap();
        std::fs::write(own.join("memory.max"), "8192\n").unwrap();
        assert_eq!(group.limit(), Some(4096));
        std::fs::write(own.join("memory.limit_in_bytes"), "9223372036854771712\n").unwrap();
        assert_eq!(MemoryGroup { version: GroupVersion::V1, ..group }.limit(), None);
    }
}
