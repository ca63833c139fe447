//! File systems on an attached volume: what is there, making one, mounting, unmounting.
//!
//! All of it runs in child processes. This process answers the device's I/O: were one of its own
//! threads to wait inside the kernel for such I/O while the process is killed, nobody could ever
//! answer it, and the thread would keep the FUSE connection open for ever.

use std::fmt;
use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::str::FromStr;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::time::Timespec;
use serde::{Deserialize, Serialize};

/// How often a tool that is still running is reported.
const SECOND: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// A file system that can be made and mounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FsType {
    /// XFS
    Xfs,
    /// ext4
    Ext4,
    /// ext4 that allocates in aligned clusters of [`CLUSTER_BYTES`], as AWS advises for torn-write
    /// prevention (EC2 User Guide, "Configure your instance for torn write prevention"): pages of that
    /// size are then aligned on the volume, each within one of its atomic units.
    #[serde(rename = "ext4-bigalloc")]
    Ext4Bigalloc,
}

/// Size of the clusters of [`FsType::Ext4Bigalloc`], bytes.
pub const CLUSTER_BYTES: u64 = 16 << 10;

impl FsType {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Xfs, Self::Ext4, Self::Ext4Bigalloc];

    /// What it is called: `xfs`, `ext4`, `ext4-bigalloc`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Xfs => "xfs",
            Self::Ext4 => "ext4",
            Self::Ext4Bigalloc => "ext4-bigalloc",
        }
    }

    /// Bytes in which it allocates, aligned on the device, so that a page of this size or less stays in one piece; 0
    /// where it makes no such promise.
    #[must_use]
    pub const fn aligned_bytes(self) -> u64 {
        match self {
            Self::Ext4Bigalloc => CLUSTER_BYTES,
            Self::Xfs | Self::Ext4 => 0,
        }
    }

    /// As mount(8) and blkid(8) call it.
    const fn kernel_name(self) -> &'static str {
        match self {
            Self::Xfs => "xfs",
            Self::Ext4 | Self::Ext4Bigalloc => "ext4",
        }
    }

    /// The Debian package with its tools.
    pub(super) const fn package(self) -> &'static str {
        match self {
            Self::Xfs => "xfsprogs",
            Self::Ext4 | Self::Ext4Bigalloc => "e2fsprogs",
        }
    }

    /// The program that makes it.
    const fn maker(self) -> &'static str {
        match self {
            Self::Xfs => "mkfs.xfs",
            Self::Ext4 | Self::Ext4Bigalloc => "mkfs.ext4",
        }
    }

    /// That the program which makes it is not in PATH; None where it is.
    #[must_use]
    pub fn missing_tool(self) -> Option<ToolError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_there = std::env::split_paths(&path).any(|dir| dir.join(self.maker()).is_file());
        (!is_there).then(|| ToolError::Missing { tool: self.maker(), package: self.package() })
    }

    /// Options for mounting. Reads must not turn into writes. XFS must accept a copy (a snapshot, a
    /// crash image) next to its original, which has the same UUID. ext4 must not initialise its
    /// inode tables in the background, which would be I/O that nobody asked for. Whoever wrote the volume makes no
    /// program that runs as its owner, and no device.
    const fn mount_options(self) -> &'static str {
        match self {
            Self::Xfs => "nosuid,nodev,noatime,nouuid",
            Self::Ext4 | Self::Ext4Bigalloc => "nosuid,nodev,noatime,noinit_itable",
        }
    }
}

impl fmt::Display for FsType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that no file system here has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a file system that can be made here: take xfs, ext4 or ext4-bigalloc")]
pub struct UnknownFs(String);

impl FromStr for FsType {
    type Err = UnknownFs;

    fn from_str(name: &str) -> Result<Self, UnknownFs> {
        Self::ALL.into_iter().find(|fs| fs.name() == name).ok_or_else(|| UnknownFs(name.to_owned()))
    }
}

/// A tool that is missing or failed.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// It is not installed.
    #[error("{tool} is not installed; it comes with the package {package}")]
    Missing {
        /// The program.
        tool: &'static str,
        /// Where it comes from.
        package: &'static str,
    },
    /// It could not be run.
    #[error("cannot run {tool}")]
    Run {
        /// The program.
        tool: &'static str,
        /// Why not.
        source: std::io::Error,
    },
    /// It ran and failed.
    #[error("{tool} failed: {message}")]
    Failed {
        /// The program.
        tool: &'static str,
        /// Why, as far as something is decided by it.
        cause: ToolCause,
        /// Its message, for people: nothing is decided by it.
        message: String,
    },
}

impl ToolError {
    /// Whether umount found files in use.
    pub(super) fn is_busy(&self) -> bool {
        matches!(self, Self::Failed { tool: "umount", cause: ToolCause::Busy, .. })
    }
}

/// Why a file system tool failed. The tools run as children of their own (see the top of this file), so that their
/// errno is known by its words alone: [`ToolCause::of`] is the only place that reads them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolCause {
    /// The kernel had no memory (ENOMEM), or killed the tool for lack of it (signal 9, which nobody else sends).
    OutOfMemory,
    /// What it was to change is in use (EBUSY).
    Busy,
    /// A signal other than 9 ended it.
    Signaled {
        /// The signal's number.
        signal: i32,
    },
    /// It could not do its work here, whatever is on the device: no rights, a wrong call, no loop device left.
    Machine,
    /// It ended by itself and refuses what it was given: for mount and blkid, what is on the device.
    Refused,
}

/// mount(8): from this exit status on the mount itself has failed. Below it are a wrong call or missing rights (1),
/// an error of the system (2), of mount (4), the user's interrupt (8), and its own files (16).
const MOUNT_FAILED: i32 = 32;

impl ToolCause {
    /// By how a tool ended, and by what it wrote to standard error in the C locale: strerror(3)'s words for ENOMEM
    /// and EBUSY, and those that util-linux has in their place.
    fn of(tool: &str, status: ExitStatus, message: &str) -> Self {
        match (status.code(), status.signal()) {
            (None, Some(9)) => Self::OutOfMemory,
            (None, signal) => Self::Signaled { signal: signal.unwrap_or(0) },
            (Some(_), _) if message.contains("Cannot allocate memory") => Self::OutOfMemory,
            (Some(_), _) if message.contains("busy") => Self::Busy,
            (Some(code), _) if tool == "mount" && code < MOUNT_FAILED => Self::Machine,
            (Some(_), _) => Self::Refused,
        }
    }
}

/// What blkid recognises on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    /// Nothing that it knows.
    Unknown,
    /// A file system or another signature, by its name.
    Known(String),
}

/// Looks for signatures on a device.
pub(super) fn probe(device: &Path) -> Result<Content, ToolError> {
    let mut command = Command::new("blkid");
    command.args(["--probe", "--output", "export"]).arg(device);
    let output = run_for_output("blkid", "util-linux", command)?;
    // blkid(8): 2 means nothing found, 8 an ambivalent result (several signatures).
    match output.code {
        Some(0) => {
            let value = |key: &str| output.text.lines().find_map(|line| line.strip_prefix(key));
            let known = value("TYPE=").or_else(|| value("PTTYPE=")).unwrap_or("an unnamed signature");
            Ok(Content::Known(known.to_owned()))
        }
        Some(2) => Ok(Content::Unknown),
        Some(8) => Ok(Content::Known("several contradicting signatures".into())),
        _ => Err(output.failed("blkid")),
    }
}

/// Where ext4 keeps its superblock, bytes.
pub(super) const SUPERBLOCK_AT: u64 = 1024;
/// How long it is, bytes.
pub(super) const SUPERBLOCK_BYTES: usize = 1024;

/// Which of ours an ext4 file system is, by its superblock; one that is none of ours is described. The
/// fields are those of the kernel's `fs/ext4/ext4.h`: `s_log_cluster_size` at 0x1C, `s_feature_ro_compat`
/// at 0x64 with 0x200 for clusters.
pub(super) fn ext4_kind(superblock: &[u8; SUPERBLOCK_BYTES]) -> String {
    let field = |at: usize| {
        u32::from_le_bytes(superblock[at..at + 4].try_into().expect("four bytes of a longer array"))
    };
    if field(0x64) & 0x200 == 0 {
        return FsType::Ext4.name().to_owned();
    }
    match 1024_u64.checked_shl(field(0x1C)) {
        Some(CLUSTER_BYTES) => FsType::Ext4Bigalloc.name().to_owned(),
        other => format!("ext4 with clusters of {} bytes", other.unwrap_or(0)),
    }
}

/// Makes a file system over whatever is there.
pub(super) fn make(fs: FsType, device: &Path, waiting: &dyn Fn(Duration)) -> Result<(), ToolError> {
    let tool = fs.maker();
    let arguments: &[&str] = match fs {
        FsType::Xfs => &["-f", "-q"],
        // Tables that a mount with noinit_itable leaves alone read as zeroes on a new volume.
        FsType::Ext4 | FsType::Ext4Bigalloc => &["-F", "-q", "-E", "lazy_itable_init=1"],
    };
    let mut command = Command::new(tool);
    command.args(arguments);
    if fs == FsType::Ext4Bigalloc {
        command.args(["-O", "bigalloc", "-C", &CLUSTER_BYTES.to_string()]);
    }
    command.arg(device);
    run(tool, fs.package(), command, waiting)
}

/// Grows ext4 to the size of its device, before it is mounted: while it is, that takes
/// CAP_SYS_RESOURCE, which root in a container may lack.
pub(super) fn grow_before_mount(
    fs: FsType,
    device: &Path,
    waiting: &dyn Fn(Duration),
) -> Result<(), ToolError> {
    if fs == FsType::Xfs {
        return Ok(());
    }
    let mut check = Command::new("e2fsck");
    check.args(["-f", "-p"]).arg(device);
    // e2fsck(8): 1 means that errors were found and corrected.
    run_accepting(&[0, 1], "e2fsck", fs.package(), check, waiting)?;
    let mut grow = Command::new("resize2fs");
    if fs == FsType::Ext4Bigalloc {
        // It calls itself little tested with clusters, and refuses without this; the check was made just now.
        grow.arg("-f");
    }
    grow.arg(device);
    run("resize2fs", fs.package(), grow, waiting)
}

/// Grows XFS to the size of its device, which it can do while it is mounted alone.
pub(super) fn grow_mounted(fs: FsType, dir: &Path, waiting: &dyn Fn(Duration)) -> Result<(), ToolError> {
    if fs != FsType::Xfs {
        return Ok(());
    }
    let mut grow = Command::new("xfs_growfs");
    grow.arg(dir);
    run("xfs_growfs", fs.package(), grow, waiting)
}

/// Mounts a device.
pub(super) fn mount(fs: FsType, device: &Path, dir: &Path, noexec: bool) -> Result<(), ToolError> {
    let mut command = Command::new("mount");
    command.args(["-t", fs.kernel_name(), "-o", fs.mount_options()]);
    if noexec {
        command.args(["-o", "noexec"]);
    }
    command.arg(device).arg(dir);
    run("mount", "mount", command, &|_| ())
}

/// Unmounts a directory; everything written to it is on the volume then. `lazy` detaches it even
/// while files in it are open.
pub(super) fn unmount(dir: &Path, lazy: bool, waiting: &dyn Fn(Duration)) -> Result<(), ToolError> {
    let mut command = Command::new("umount");
    if lazy {
        command.arg("--lazy");
    }
    command.arg(dir);
    run("umount", "mount", command, waiting)
}

/// Writes back what a mounted file system has in memory.
pub(super) fn sync(dir: &Path, waiting: &dyn Fn(Duration)) -> Result<(), ToolError> {
    let mut command = Command::new("sync");
    command.arg("--file-system").arg(dir);
    run("sync", "coreutils", command, waiting)
}

/// Writes back what a block device has in its page cache.
pub(super) fn sync_device(device: &Path, waiting: &dyn Fn(Duration)) -> Result<(), ToolError> {
    let mut command = Command::new("sync");
    command.arg(device);
    run("sync", "coreutils", command, waiting)
}

/// What a tool left when it ended.
pub(super) struct Output {
    /// None where a signal ended it.
    pub(super) code: Option<i32>,
    status: ExitStatus,
    /// Its standard output.
    pub(super) text: String,
    /// Its standard error.
    pub(super) stderr: String,
}

impl Output {
    /// The error of a tool that ended like this.
    fn failed(&self, tool: &'static str) -> ToolError {
        self.failed_with(tool, first_line(self.stderr.as_bytes()))
    }

    /// The same, in other words.
    pub(super) fn failed_with(&self, tool: &'static str, message: String) -> ToolError {
        ToolError::Failed { tool, cause: ToolCause::of(tool, self.status, &self.stderr), message }
    }
}

fn spawn_error(tool: &'static str, package: &'static str) -> impl FnOnce(std::io::Error) -> ToolError {
    move |source| match source.kind() {
        std::io::ErrorKind::NotFound => ToolError::Missing { tool, package },
        _ => ToolError::Run { tool, source },
    }
}

fn prepare(command: &mut Command) -> &mut Command {
    // [`ToolCause::of`] knows errors by their words.
    command.env("LC_ALL", "C").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped())
}

/// Runs a tool to its end, whatever becomes of it.
pub(super) fn run_for_output(
    tool: &'static str,
    package: &'static str,
    mut command: Command,
) -> Result<Output, ToolError> {
    let output = prepare(&mut command).output().map_err(spawn_error(tool, package))?;
    Ok(Output {
        code: output.status.code(),
        status: output.status,
        text: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// Runs a tool to its end. `waiting` hears about every second how long it has been running.
fn run(
    tool: &'static str,
    package: &'static str,
    command: Command,
    waiting: &dyn Fn(Duration),
) -> Result<(), ToolError> {
    run_accepting(&[0], tool, package, command, waiting)
}

/// The same, with the exit codes that are no failure.
fn run_accepting(
    good: &[i32],
    tool: &'static str,
    package: &'static str,
    mut command: Command,
    waiting: &dyn Fn(Duration),
) -> Result<(), ToolError> {
    let mut child =
        prepare(&mut command).stdout(Stdio::null()).spawn().map_err(spawn_error(tool, package))?;
    let mut stderr = child.stderr.take().expect("standard error is piped");
    let reader = std::thread::spawn(move || {
        let mut message = Vec::new();
        let _ = stderr.read_to_end(&mut message);
        message
    });
    let failed = |source| ToolError::Run { tool, source };
    let started = Instant::now();
    let ended = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).map_err(|e| failed(e.into()))?;
    let status = loop {
        // Interrupted, timed out, ended: in every case the child is asked.
        let _ = poll(&mut [PollFd::new(&ended, PollFlags::IN)], Some(&SECOND));
        match child.try_wait().map_err(failed)? {
            Some(status) => break status,
            None => waiting(started.elapsed()),
        }
    };
    let message = reader.join().unwrap_or_default();
    if status.code().is_some_and(|code| good.contains(&code)) {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&message);
    let cause = ToolCause::of(tool, status, &message);
    // The tools of ext4 introduce themselves first.
    let message = message.lines().filter(|line| !is_banner(tool, line)).collect::<Vec<_>>().join("\n");
    Err(ToolError::Failed { tool, cause, message: first_line(message.as_bytes()) })
}

/// Whether a line is a tool's name and version, such as `resize2fs 1.47.0 (5-Feb-2023)`.
fn is_banner(tool: &str, line: &str) -> bool {
    let version = line.strip_prefix(tool).and_then(|rest| rest.strip_prefix(' '));
    version.is_some_and(|version| version.starts_with(|first: char| first.is_ascii_digit()))
}

fn first_line(message: &[u8]) -> String {
    let text = String::from_utf8_lossy(message);
    let first = text.lines().find(|line| !line.trim().is_empty());
    first.unwrap_or("it gave no reason").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_that_is_missing_names_its_package_and_one_that_fails_gives_the_reason() {
        let error = run("mkfs.none", "nonefsprogs", Command::new("mkfs.none"), &|_| ()).unwrap_err();
        assert_eq!(error.to_string(), "mkfs.none is not installed; it comes with the package nonefsprogs");
        let error = unmount(Path::new("/nowhere-at-all"), false, &|_| ()).unwrap_err();
        assert!(error.to_string().contains("/nowhere-at-all"), "{error}");
        assert!(!error.is_busy());
    }

    #[test]
    fn why_a_tool_failed_is_known_by_its_end_and_by_its_errno() {
        let exited = |code: i32| ExitStatus::from_raw(code << 8);
        let signaled = ExitStatus::from_raw;
        for (tool, status, message, cause) in [
            (
                "mount",
                exited(32),
                "mount: /x: mount(2) system call failed: Cannot allocate memory.",
                ToolCause::OutOfMemory,
            ),
            (
                "mount",
                exited(32),
                "mount: /x: fsconfig system call failed: Cannot allocate memory.\n       dmesg(1) may have more",
                ToolCause::OutOfMemory,
            ),
            ("mount", signaled(9), "", ToolCause::OutOfMemory),
            ("mount", signaled(11), "", ToolCause::Signaled { signal: 11 }),
            ("mount", exited(1), "mount: /x: must be superuser to use mount.", ToolCause::Machine),
            (
                "mount",
                exited(32),
                "mount: /x: wrong fs type, bad option, bad superblock on /dev/loop1, missing codepage or helper \
                 program, or other error.",
                ToolCause::Refused,
            ),
            (
                "mount",
                exited(32),
                "mount: /x: mount(2) system call failed: Structure needs cleaning.",
                ToolCause::Refused,
            ),
            ("umount", exited(32), "umount: /x: target is busy.", ToolCause::Busy),
            ("umount", exited(32), "umount: /x: not mounted.", ToolCause::Refused),
            ("blkid", exited(4), "blkid: error: /dev/loop1: Input/output error", ToolCause::Refused),
        ] {
            assert_eq!(ToolCause::of(tool, status, message), cause, "{tool} {status:?}: {message}");
        }
    }

    #[test]
    fn a_tool_that_is_killed_has_not_refused_the_device() {
        for (how, expected) in [
            ("kill -s KILL $$", ToolCause::OutOfMemory),
            ("kill -s TERM $$", ToolCause::Signaled { signal: 15 }),
            ("exit 2", ToolCause::Machine),
            ("exit 32", ToolCause::Refused),
        ] {
            let mut command = Command::new("sh");
            command.args(["-c", how]);
            let error = run("mount", "mount", command, &|_| ()).unwrap_err();
            let ToolError::Failed { cause, .. } = error else { panic!("{how}: {error:?}") };
            assert_eq!(cause, expected, "{how}");
        }
    }

    #[test]
    fn a_file_that_holds_no_file_system_is_refused_by_mount_itself() {
        if !rustix::process::geteuid().is_root() {
            println!("SKIPPED: mounting needs root");
            return;
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(64 << 20).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let error = mount(FsType::Ext4, file.path(), dir.path(), false).unwrap_err();
        let is_refused = matches!(error, ToolError::Failed { tool: "mount", cause: ToolCause::Refused, .. });
        assert!(is_refused, "{error:?}");
    }

    #[test]
    fn the_introduction_of_a_tool_is_not_its_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = grow_before_mount(FsType::Ext4, file.path(), &|_| ()).unwrap_err().to_string();
        assert!(!error.contains("1."), "{error}");
        assert!(is_banner("resize2fs", "resize2fs 1.47.0 (5-Feb-2023)"));
        assert!(!is_banner("resize2fs", "resize2fs: Permission denied to resize filesystem"));
    }

    #[test]
    fn a_file_system_with_an_error_that_the_check_corrects_is_grown() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(64 << 20).unwrap();
        make(FsType::Ext4, file.path(), &|_| ()).unwrap();
        // A wrong count of links, which is corrected without asking.
        let written = Command::new("debugfs")
            .args(["-w", "-R", "set_inode_field <2> links_count 9"])
            .arg(file.path())
            .output();
        assert!(written.unwrap().status.success());
        let mut check = Command::new("e2fsck");
        check.args(["-f", "-n"]).arg(file.path());
        assert!(!check.output().unwrap().status.success(), "there is nothing to correct");
        file.as_file().set_len(128 << 20).unwrap();
        grow_before_mount(FsType::Ext4, file.path(), &|_| ()).unwrap();
        assert!(check.output().unwrap().status.success());
    }

    #[test]
    fn blkid_distinguishes_an_empty_file_from_one_with_a_file_system() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(64 << 20).unwrap();
        assert_eq!(probe(file.path()).unwrap(), Content::Unknown);
        make(FsType::Ext4, file.path(), &|_| ()).unwrap();
        assert_eq!(probe(file.path()).unwrap(), Content::Known("ext4".into()));
    }
}
