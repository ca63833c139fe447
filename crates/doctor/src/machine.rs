//! The machine that a server runs on, as far as it is this one: memory, the server's process, and its devices.
//!
//! Everything is read of `/proc`, by `ebbtide_proc`, and of `/sys`. Nothing is written, and no file system of the server is touched but by `statvfs`
//! of its mount point.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ebbtide_captured::device_io;
use ebbtide_observe::{
    Device, DeviceIo, FileSystem, Files, Host, ServerDirectory, StartAlignment, Variables, directories,
};
use ebbtide_proc::machine::{self, DiskCounts};
use ebbtide_proc::{MemoryGroup, Mount, process};

mod devices;
mod ext4;

/// Why a server does not run on this machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MachineError {
    /// The server's `hostname` is another one.
    #[error("the server runs on the machine {server}, and this is {here}")]
    OtherHost {
        /// The server's host name; empty where the server reports none.
        server: String,
        /// The name of this machine.
        here: String,
    },
    /// The server's `datadir` is not here.
    #[error("there is no directory {directory} here: the server may run in a container")]
    NoDirectory {
        /// The data directory.
        directory: String,
    },
}

/// A look at the machine, whose devices' counters are read a second time at the end of an interval.
#[derive(Debug)]
pub struct Machine {
    host: Host,
    before: BTreeMap<String, DiskCounts>,
    busy_before_s: Option<f64>,
    pid: Option<u32>,
}

impl Machine {
    /// Looks at this machine.
    ///
    /// # Errors
    /// The server does not run here.
    pub fn of(variables: &Variables) -> Result<Self, MachineError> {
        let server = variables.get("hostname").unwrap_or_default();
        let here = machine::setting("kernel/hostname").unwrap_or_default();
        if server != here {
            return Err(MachineError::OtherHost { server: server.to_owned(), here });
        }
        let directory = variables.get("datadir").unwrap_or_default();
        if !Path::new(directory).is_dir() && !is_forbidden(Path::new(directory)) {
            return Err(MachineError::NoDirectory { directory: directory.to_owned() });
        }
        let host = Host { places: places(variables), ..this_machine() };
        let pid = server_process(variables);
        let host = match pid {
            Some(pid) => Host { redo_direct: redo_direct(variables, pid), ..of_process(host, pid) },
            None => host,
        };
        Ok(Self { host, before: machine::disks(), busy_before_s: busy_s(), pid })
    }

    /// What was seen so far, without what devices did.
    #[must_use]
    pub const fn first(&self) -> &Host {
        &self.host
    }

    /// In which clusters an ext4 below the data allocates (`bigalloc`), and whether they are aligned on the device. None for
    /// every other file system, whose allocations may be aligned or not, and where it is not known: only root may read a
    /// superblock, and LVM reports no more than that it starts at a multiple of the blocks, or chunks, below it.
    #[must_use]
    pub fn file_system(&self) -> Option<FileSystem> {
        let place = self.host.place(Files::Data).filter(|place| place.file_system == "ext4")?;
        let start = place.device.as_ref()?.alignment?;
        // A later mount hides an earlier one.
        let mounts = ebbtide_proc::mounts().ok()?;
        let mount = mounts.iter().rev().find(|mount| mount.dir == Path::new(&place.mount_point))?;
        clusters(ext4::cluster_bytes(Path::new(&mount.source))?, start)
    }

    /// The words with which the server was started; None where its process is not known.
    #[must_use]
    pub fn arguments(&self) -> Option<Vec<String>> {
        process::words(self.pid?)
    }

    /// What was seen, with what the devices did in the `seconds` since the first look.
    #[must_use]
    pub fn after(self, seconds: f64) -> Host {
        let after = machine::disks();
        let mut host = self.host;
        for device in host.places.iter_mut().filter_map(|place| place.device.as_mut()) {
            device.io = together(device, &self.before, &after, seconds);
        }
        let busy = self.busy_before_s.zip(busy_s()).map(|(before, after)| after - before);
        host.busy_share = busy_share(busy, host.processors, seconds);
        host
    }
}

/// The largest block of ext4 on most machines, bytes: what is no larger says nothing of larger pages.
const LARGEST_BLOCK: u64 = 4096;

/// An ext4 with clusters of these bytes, which starts there on the device; None for plain blocks, and where it is not known
/// whether clusters start at multiples of themselves.
fn clusters(cluster: u64, start: StartAlignment) -> Option<FileSystem> {
    // Starts are known up to this.
    let is_aligned = start.bytes >= cluster.min(devices::MOST_ALIGNED);
    if !is_aligned && !start.is_exact {
        return None;
    }
    // Clusters that do not start at a multiple of themselves on the device are as good as blocks.
    let aligned_bytes = if is_aligned { cluster } else { 0 };
    let name = format!("ext4 with clusters of {} KiB", cluster >> 10);
    (cluster > LARGEST_BLOCK).then_some(FileSystem { name, aligned_bytes })
}

/// What all members of a device did; None where one of them was not counted twice.
fn together(
    device: &Device,
    before: &BTreeMap<String, DiskCounts>,
    after: &BTreeMap<String, DiskCounts>,
    seconds: f64,
) -> Option<DeviceIo> {
    let of = |name| device_io(*before.get(name)?, *after.get(name)?, seconds);
    DeviceIo::together(&device.names().map(of).collect::<Option<Vec<_>>>()?)
}

/// Processor time of the machine that was busy so far, s.
fn busy_s() -> Option<f64> {
    Some(machine::time()?.busy_s)
}

/// Share of the time of so many processors that was busy in an interval.
fn busy_share(busy_s: Option<f64>, processors: Option<u64>, seconds: f64) -> Option<f64> {
    let all = processors? as f64 * seconds;
    (all > 0.0).then_some((busy_s? / all).clamp(0.0, 1.0))
}

/// The block device below the file system with a device number such as `259:1`, through partitions, LVM, RAID and loop devices. None
/// for file systems without a device, such as overlayfs, and where a part of it is not found. No file system is touched.
#[must_use]
pub fn device_below(number: &str, mounts: &[Mount]) -> Option<Device> {
    devices::leaf(number, Path::new("/sys"), mounts)
}

fn is_forbidden(path: &Path) -> bool {
    fs::metadata(path).is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
}

/// A file of the kernel, without the blanks around it.
fn text(path: impl AsRef<Path>) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

fn number(path: impl AsRef<Path>) -> Option<u64> {
    text(path)?.parse().ok()
}

/// The word in brackets of a choice such as `[none] mq-deadline`.
fn chosen(choice: &str) -> Option<String> {
    let word = choice.split_once('[')?.1.split_once(']')?.0;
    Some(word.to_owned())
}

fn this_machine() -> Host {
    let setting = |path| machine::setting(path)?.parse().ok();
    Host {
        memory_bytes: machine::memory(),
        swap_bytes: machine::swap(),
        swappiness: setting("vm/swappiness"),
        processors: text("/sys/devices/system/cpu/online")
            .and_then(|list| machine::listed(&list))
            .map(u64::from),
        threads_per_core: machine::threads_per_core().map(u64::from),
        numa_nodes: text("/sys/devices/system/node/has_memory")
            .and_then(|list| machine::listed(&list))
            .map(u64::from),
        huge_pages: text("/sys/kernel/mm/transparent_hugepage/enabled").and_then(|choice| chosen(&choice)),
        aio_max: setting("fs/aio-max-nr"),
        aio_used: setting("fs/aio-nr"),
        nvme_timeout_s: number("/sys/module/nvme_core/parameters/io_timeout"),
        ..Host::default()
    }
}

/// The server's process, which its own file names, where that is a server still.
fn server_process(variables: &Variables) -> Option<u32> {
    let file = Path::new(variables.get("datadir")?).join(variables.get("pid_file")?);
    let pid: u32 = text(file)?.parse().ok()?;
    let names = process::name(pid).into_iter().chain(programs(pid)?);
    let is_server = |name: &String| ["mysqld", "mariadbd"].iter().any(|server| name.starts_with(server));
    names.into_iter().any(|name| is_server(&name)).then_some(pid)
}

/// Names of the files among the words: a server that the dynamic loader started is one of them.
fn programs(pid: u32) -> Option<Vec<String>> {
    let plain = |word: &String| !word.starts_with('-');
    let name = |word: String| Some(Path::new(&word).file_name()?.to_string_lossy().into_owned());
    Some(process::words(pid)?.into_iter().filter(plain).filter_map(name).collect())
}

fn of_process(host: Host, pid: u32) -> Host {
    Host {
        server_swapped_bytes: process::swapped(pid),
        server_open_files: process::open_files(pid),
        memory_limit_bytes: MemoryGroup::of(pid).ok().flatten().and_then(|group| group.limit()),
        ..host
    }
}

/// Whether the server's process has its redo log open with `O_DIRECT`.
fn redo_direct(variables: &Variables, pid: u32) -> Option<bool> {
    let (_, dir) = directories(variables).into_iter().find(|(files, _)| *files == Files::Redo)?;
    // A server may have a file of another directory open, such as that of a backup.
    let log = dir.canonicalize().unwrap_or(dir).join("ib_logfile0");
    let flags = process::open_flags(pid, |path| path == log)?;
    Some(flags & rustix::fs::OFlags::DIRECT.bits() != 0)
}

fn places(variables: &Variables) -> Vec<ServerDirectory> {
    let mounts = ebbtide_proc::mounts().unwrap_or_default();
    let place = |(files, directory): (Files, PathBuf)| {
        let directory = directory.canonicalize().unwrap_or(directory);
        let mount: &Mount = ebbtide_proc::mount_of(&mounts, &directory)?;
        let space = rustix::fs::statvfs(&mount.dir).ok();
        let bytes = |blocks: u64| space.as_ref().and_then(|space| blocks.checked_mul(space.f_frsize));
        Some(ServerDirectory {
            files,
            directory: directory.to_string_lossy().into_owned(),
            mount_point: mount.dir.to_string_lossy().into_owned(),
            size_bytes: space.as_ref().and_then(|space| bytes(space.f_blocks)),
            free_bytes: space.as_ref().and_then(|space| bytes(space.f_bavail)),
            device: devices::leaf(&mount.device, Path::new("/sys"), &mounts),
            file_system: mount.fs.clone(),
            options: mount.all_options().map(str::to_owned).collect(),
        })
    };
    directories(variables).into_iter().filter_map(place).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;

    use super::*;

    #[test]
    fn a_server_of_another_host_is_told_from_one_whose_data_are_not_here() {
        let refused = |host: &str| {
            Machine::of(&Variables::from_iter([("hostname", host), ("datadir", "/no/data")])).unwrap_err()
        };
        let here = machine::setting("kernel/hostname").unwrap();
        let error = refused("elsewhere.example");
        assert_eq!(
            error.to_string(),
            format!("the server runs on the machine elsewhere.example, and this is {here}")
        );
        assert!(matches!(error, MachineError::OtherHost { .. }));
        assert_eq!(refused(&here), MachineError::NoDirectory { directory: "/no/data".into() });
    }

    #[test]
    fn a_redo_log_is_direct_where_its_file_is_open_so_and_not_where_another_one_is() {
        use std::os::unix::fs::OpenOptionsExt as _;

        let (dir, other) = (tempfile::tempdir_in("/var/tmp").unwrap(), tempfile::tempdir().unwrap());
        let text = dir.path().to_string_lossy();
        let variables = Variables::from_iter([("datadir", &*text), ("innodb_log_group_home_dir", "./")]);
        let log = dir.path().join("ib_logfile0");
        let elsewhere = fs::File::create(other.path().join("ib_logfile0")).unwrap();
        assert_eq!(redo_direct(&variables, std::process::id()), None, "{elsewhere:?} is none of this server");
        let buffered = fs::File::create(&log).unwrap();
        assert_eq!(redo_direct(&variables, std::process::id()), Some(false));
        drop(buffered);
        let flags = i32::try_from(rustix::fs::OFlags::DIRECT.bits()).unwrap();
        match fs::OpenOptions::new().read(true).custom_flags(flags).open(&log) {
            Ok(_direct) => assert_eq!(redo_direct(&variables, std::process::id()), Some(true)),
            Err(error) => println!("SKIPPED: /var/tmp takes no O_DIRECT: {error}"),
        }
    }

    #[test]
    fn words_of_the_kernel_are_read() {
        assert_eq!(chosen("none [mq-deadline] bfq").as_deref(), Some("mq-deadline"));
        assert_eq!(chosen("none"), None);
    }

    #[test]
    fn clusters_count_where_they_are_aligned_on_the_device_and_plain_blocks_say_nothing() {
        let of = |cluster, bytes| {
            let start = StartAlignment { bytes, is_exact: true };
            clusters(cluster, start).map(|files| (files.name, files.aligned_bytes))
        };
        let name = "ext4 with clusters of 16 KiB".to_owned();
        assert_eq!(of(16_384, 16_384), Some((name.clone(), 16_384)));
        assert_eq!(of(16_384, 1 << 20), Some((name.clone(), 16_384)));
        assert_eq!(of(16_384, 512), Some((name, 0)), "a partition of the days of cylinders");
        assert_eq!(of(4 << 20, 1 << 20).map(|files| files.1), Some(4 << 20), "starts are known up to 1 MiB");
        assert_eq!((of(4_096, 1 << 20), of(1_024, 512)), (None, None));
        let mapped = StartAlignment { bytes: 4_096, is_exact: false };
        assert_eq!(clusters(16_384, mapped), None, "LVM may start at a multiple of the cluster");
    }

    #[test]
    fn processors_are_busy_by_their_share_of_the_interval() {
        assert_eq!(busy_share(Some(6.0), Some(4), 2.0), Some(0.75));
        assert_eq!((busy_share(None, Some(4), 2.0), busy_share(Some(1.0), Some(4), 0.0)), (None, None));
    }

    #[test]
    fn an_array_did_what_its_members_did_together_and_nothing_is_known_without_one() {
        let counts = |reads| DiskCounts { reads, ..DiskCounts::default() };
        let looks = |reads: [u64; 3]| {
            BTreeMap::from_iter(["a", "b", "c"].map(str::to_owned).into_iter().zip(reads.map(counts)))
        };
        let (before, mut after) = (looks([0; 3]), looks([10, 30, 500]));
        let array = Device { name: "a".into(), members: vec!["a".into(), "b".into()], ..Device::default() };
        assert_eq!(together(&array, &before, &after, 2.0).unwrap().reads, 20.0);
        let alone = Device { name: "c".into(), ..Device::default() };
        assert_eq!(together(&alone, &before, &after, 2.0).unwrap().reads, 250.0);
        after.remove("b");
        assert_eq!(together(&array, &before, &after, 2.0), None);
    }

    #[test]
    fn a_server_that_the_loader_started_is_known_by_its_words() {
        let dir = tempfile::tempdir().unwrap();
        let mut child = std::process::Command::new("sleep").arg0("/lib/ld.so").arg("30").spawn().unwrap();
        fs::write(dir.path().join("pid"), format!("{}\n", child.id())).unwrap();
        let variables =
            Variables::from_iter([("datadir", dir.path().to_str().unwrap()), ("pid_file", "pid")]);
        assert_eq!(server_process(&variables), None, "sleep is no server");
        child.kill().unwrap();
        child.wait().unwrap();
        // As an unpacked server is started: the loader, its options, the server, its options.
        let script = "exec -a ld.so sh -c 'sleep 30; :' /opt/sbin/mysqld";
        let mut child = std::process::Command::new("bash").args(["-c", script]).spawn().unwrap();
        fs::write(dir.path().join("pid"), format!("{}\n", child.id())).unwrap();
        let end = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while server_process(&variables).is_none() && std::time::Instant::now() < end {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert_eq!(server_process(&variables), Some(child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
