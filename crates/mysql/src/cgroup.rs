//! Memory cgroups, version 1 and 2: a group of our own that bounds a server and its page cache.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ebbtide_proc::{GroupVersion, MemoryGroup};
use serde::{Deserialize, Serialize};

use crate::error::CgroupError;

/// How long the kernel may take to let go of a group whose processes are gone.
const REMOVAL: Duration = Duration::from_secs(5);

/// Where the kernel lists mounts and groups.
const PROC: &str = "/proc/self";

/// Memory of a server and of the page cache that its files take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// In use now, page cache included, bytes.
    pub bytes: u64,
    /// The most that was in use, bytes; 0 where the kernel does not report.
    pub peak_bytes: u64,
    /// Of [`Self::bytes`], the page cache.
    pub page_cache_bytes: u64,
}

/// Which interface a group has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Interface {
    V1,
    V2,
}

/// The names of an interface's files (Linux, Documentation/admin-guide/cgroup-v1/memory.rst and
/// cgroup-v2.rst).
struct Names {
    limit: &'static str,
    /// Memory and swap together (version 1), or swap alone (version 2); absent without swap accounting.
    swap: &'static str,
    used: &'static str,
    peak: &'static str,
    /// The key of the page cache in `memory.stat`.
    cache: &'static str,
    /// The file that counts kills for want of memory, key `oom_kill`.
    kills: &'static str,
}

impl Interface {
    const fn names(self) -> Names {
        match self {
            Self::V1 => Names {
                limit: "memory.limit_in_bytes",
                swap: "memory.memsw.limit_in_bytes",
                used: "memory.usage_in_bytes",
                peak: "memory.max_usage_in_bytes",
                cache: "cache",
                kills: "memory.oom_control",
            },
            Self::V2 => Names {
                limit: "memory.max",
                swap: "memory.swap.max",
                used: "memory.current",
                peak: "memory.peak",
                cache: "file",
                kills: "memory.events",
            },
        }
    }
}

/// A memory cgroup of our own, made or still to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cgroup {
    dir: PathBuf,
    interface: Interface,
}

impl Cgroup {
    /// Where a group of this name can be made; nothing is made yet, so that it can be recorded first.
    ///
    /// # Errors
    /// Where this machine (or container) has no memory cgroups.
    pub(crate) fn find(name: &str) -> Result<Self, CgroupError> {
        let place = GroupParent::find()
            .map_err(CgroupError::at(Path::new(PROC)))?
            .ok_or(CgroupError::NoController)?;
        Ok(Self { dir: place.parent()?.join(name), interface: place.interface() })
    }

    /// Why no group can be made here, as far as is seen without making one.
    pub(crate) fn missing() -> Option<CgroupError> {
        GroupParent::find().ok().flatten().map_or(Some(CgroupError::NoController), |place| place.missing())
    }

    /// Makes the group and sets its limit.
    pub(crate) fn make(&self, limit_bytes: u64) -> io::Result<()> {
        std::fs::create_dir(&self.dir)?;
        self.limit(limit_bytes)
    }

    fn limit(&self, limit_bytes: u64) -> io::Result<()> {
        let names = self.interface.names();
        set(&self.dir.join(names.limit), limit_bytes)?;
        // An instance has no swap. Kernels that do not account it have no such file.
        let swap = match self.interface {
            Interface::V1 => limit_bytes,
            Interface::V2 => 0,
        };
        match set(&self.dir.join(names.swap), swap) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The file into which a process writes its own id to join.
    pub(crate) fn procs_file(&self) -> PathBuf {
        self.dir.join("cgroup.procs")
    }

    /// Its processes.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let text = std::fs::read_to_string(self.procs_file()).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// What it uses; zeros for what the kernel does not report.
    pub(crate) fn usage(&self) -> MemoryUse {
        let names = self.interface.names();
        let text = |file: &str| std::fs::read_to_string(self.dir.join(file)).unwrap_or_default();
        let number = |file: &str| text(file).trim().parse().unwrap_or(0);
        MemoryUse {
            bytes: number(names.used),
            peak_bytes: number(names.peak),
            page_cache_bytes: keyed(&text("memory.stat"), names.cache).unwrap_or(0),
        }
    }

    /// How many of its processes were killed for want of memory.
    pub(crate) fn kills(&self) -> u64 {
        let text = std::fs::read_to_string(self.dir.join(self.interface.names().kills)).unwrap_or_default();
        keyed(&text, "oom_kill").unwrap_or(0)
    }

    /// Removes the group; one that is gone is removed already.
    pub(crate) fn remove(&self) -> io::Result<()> {
        let deadline = Instant::now() + REMOVAL;
        loop {
            match std::fs::remove_dir(&self.dir) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy && Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                removed => return removed,
            }
        }
    }
}

/// Writes a number to a file that the kernel shows. One that is missing stays so: asked to create a file,
/// a cgroup's file system answers that permission is denied, and not that there is none.
fn set(file: &Path, number: u64) -> io::Result<()> {
    let mut file = std::fs::OpenOptions::new().write(true).open(file)?;
    file.write_all(number.to_string().as_bytes())
}

/// The number after a key in a file of `key number` lines.
fn keyed(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.split_once(' ').filter(|(name, _)| *name == key)?.1.trim().parse().ok())
}

/// Where groups of ours can be made.
#[derive(Debug)]
struct GroupParent(MemoryGroup);

impl GroupParent {
    /// None: this machine, or container, has no memory controller.
    fn find() -> io::Result<Option<Self>> {
        Ok(MemoryGroup::own()?.map(Self))
    }

    const fn interface(&self) -> Interface {
        match self.0.version {
            GroupVersion::V1 => Interface::V1,
            GroupVersion::V2 => Interface::V2,
        }
    }

    /// The group in which a group of ours can be made.
    fn parent(&self) -> Result<PathBuf, CgroupError> {
        match self.interface() {
            // At the top of what this mount shows: in a container that is the container's own part.
            Interface::V1 => Ok(self.0.mount.clone()),
            Interface::V2 => self.parent_v2(),
        }
    }

    /// Why no group can be made here. A file of the group that would be its parent, or of the one that has to
    /// hand the controller down, is opened for writing, and nothing is written.
    fn missing(&self) -> Option<CgroupError> {
        let file = match self.interface() {
            Interface::V1 => self.0.mount.join("cgroup.procs"),
            Interface::V2 => match self.handing_down() {
                Some(parent) => parent.join("cgroup.procs"),
                None => self.0.mount.join("cgroup.subtree_control"),
            },
        };
        let opened = std::fs::OpenOptions::new().write(true).open(&file);
        opened.err().map(CgroupError::at(&file))
    }

    /// The nearest group above ours that hands the memory controller down.
    fn handing_down(&self) -> Option<&Path> {
        let hands_down = |dir: &Path| {
            std::fs::read_to_string(dir.join("cgroup.subtree_control"))
                .is_ok_and(|text| text.split_whitespace().any(|controller| controller == "memory"))
        };
        let ours = self.0.own.ancestors().take_while(|dir| dir.starts_with(&self.0.mount));
        ours.into_iter().find(|dir| hands_down(dir))
    }

    /// In version 2 a group with processes cannot have children with limits, so ours is next to our own
    /// group: below the nearest one that hands the memory controller down.
    fn parent_v2(&self) -> Result<PathBuf, CgroupError> {
        if let Some(parent) = self.handing_down() {
            return Ok(parent.to_owned());
        }
        let control = self.0.mount.join("cgroup.subtree_control");
        std::fs::write(&control, "+memory")
            .map_err(|source| CgroupError::SwitchOn { file: control, source })?;
        Ok(self.0.mount.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_version_1_the_group_stands_at_the_top_of_the_mount() {
        let mount = PathBuf::from("/sys/fs/cgroup/memory");
        let place = GroupParent(MemoryGroup {
            version: GroupVersion::V1,
            own: mount.join("x"),
            mount: mount.clone(),
        });
        assert_eq!(place.parent().unwrap(), mount);
    }

    #[test]
    fn in_version_2_the_group_is_below_the_nearest_that_hands_memory_down() {
        let root = tempfile::tempdir().unwrap();
        let session = root.path().join("user.slice/session.scope");
        std::fs::create_dir_all(&session).unwrap();
        let control = |dir: &Path, text: &str| {
            std::fs::write(dir.join("cgroup.subtree_control"), text).unwrap();
        };
        control(root.path(), "cpu memory pids");
        control(&root.path().join("user.slice"), "memory pids\n");
        control(&session, "");
        let mount = root.path().to_owned();
        let place = GroupParent(MemoryGroup { version: GroupVersion::V2, own: session, mount });
        assert_eq!(place.parent().unwrap(), root.path().join("user.slice"));
        control(&root.path().join("user.slice"), "pids");
        assert_eq!(place.parent().unwrap(), root.path());
        control(root.path(), "pids");
        assert_eq!(place.parent().unwrap(), root.path(), "it is switched on at the top");
        assert_eq!(std::fs::read_to_string(root.path().join("cgroup.subtree_control")).unwrap(), "+memory");
    }

    #[test]
    fn a_group_of_version_2_is_limited_and_read_by_its_files() {
        let root = tempfile::tempdir().unwrap();
        let group = Cgroup { dir: root.path().to_owned(), interface: Interface::V2 };
        let write = |file: &str, text: &str| std::fs::write(group.dir.join(file), text).unwrap();
        let read = |file: &str| std::fs::read_to_string(group.dir.join(file)).unwrap();
        write("memory.max", "");
        write("memory.swap.max", "");
        group.limit(64 << 20).unwrap();
        assert_eq!((read("memory.max"), read("memory.swap.max")), ("67108864".into(), "0".into()));
        write("memory.current", "5000\n");
        write("memory.peak", "6000\n");
        write("memory.stat", "anon 1\nfile 4096\nfile_mapped 7\n");
        write("memory.events", "max 3\noom 2\noom_kill 1\noom_group_kill 0\n");
        let expected = MemoryUse { bytes: 5000, peak_bytes: 6000, page_cache_bytes: 4096 };
        assert_eq!(group.usage(), expected);
        assert_eq!(group.kills(), 1);
    }

    #[test]
    fn without_swap_accounting_memory_alone_is_limited_and_no_file_is_made() {
        let root = tempfile::tempdir().unwrap();
        let group = Cgroup { dir: root.path().to_owned(), interface: Interface::V1 };
        let error = group.limit(64 << 20).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound, "a group without a limit is none");
        std::fs::write(root.path().join("memory.limit_in_bytes"), "").unwrap();
        group.limit(64 << 20).unwrap();
        let files: Vec<_> =
            std::fs::read_dir(root.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
        assert_eq!(files, ["memory.limit_in_bytes"]);
    }
}
