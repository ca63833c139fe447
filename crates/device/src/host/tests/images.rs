//! Crash images with file systems on them: attached, mounted, checked, thrown away.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;

use rustix::fs::{FallocateFlags, fallocate};

use super::*;
use crate::engine::{ImageRequest, Keep, crash_images};
use crate::request::{Command, Reply, Request};

const MIB: u64 = 1 << 20;

impl Fixture {
    /// A volume that each file system has room on: XFS wants 300 MiB.
    fn roomy() -> Self {
        Self::sized(512 * MIB)
    }

    fn dir(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Attaches the volume with a file system, which is made where there is none.
    fn mount(&self, fs: FsType) -> Result<Arc<Attachment>, HostError> {
        let mount = MountRequest { dir: self.dir("mnt"), fs, destroy: false, grow: false, noexec: false };
        self.attach(Export::Block { mount: Some(mount) })
    }

    fn detach(&self, attachment: Arc<Attachment>) {
        drop(attachment);
        self.host.detach("vol", false, &|_| ()).unwrap();
    }

    /// Takes a crash image and attaches it.
    fn image(&self, of: &Attachment, name: &str) -> Arc<Attachment> {
        let meta = Value::Null;
        let request = ImageRequest { volume: of.live(), image: name, seed: 1, meta };
        crash_images(self.host.store(), &[request], Keep::Nothing).unwrap();
        self.host.attach_bare(name, self.array()).unwrap()
    }

    pub(super) fn has_nothing_mounted_or_attached(&self) -> bool {
        let home = self.host.home().root();
        loopdev::list().iter().all(|used| !used.backing.starts_with(home))
            && ebbtide_proc::mounts().unwrap().iter().all(|mount| !mount.dir.starts_with(self.dir.path()))
    }
}

fn write_synced(path: &Path, content: &[u8]) {
    let mut file = File::create(path).unwrap();
    file.write_all(content).unwrap();
    file.sync_all().unwrap();
}

fn content(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    File::open(path).unwrap().read_to_end(&mut bytes).unwrap();
    bytes
}

/// What a volume holds, asked past every cache.
fn on_volume(attachment: &Attachment, offset: u64, len: u64) -> Vec<u8> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let reply = Reply::callback(move |outcome| sender.send(outcome.unwrap().unwrap().to_vec()).unwrap());
    let len = u32::try_from(len).unwrap();
    attachment.live().submit(Request { command: Command::Read, offset, len, fua: false, data: None, reply });
    receiver.recv().unwrap()
}

#[test]
fn the_extents_of_a_file_give_the_place_of_its_bytes_on_the_volume() {
    if !can_attach() {
        return;
    }
    for fs in FsType::ALL {
        let fixture = Fixture::roomy();
        let attachment = fixture.mount(fs).unwrap();
        let path = fixture.dir("mnt/file");
        let bytes: Vec<u8> = (0..MIB).map(|at| u8::try_from(at / 4096 * 7 % 251).unwrap() + 1).collect();
        write_synced(&path, &bytes);
        let file = File::options().write(true).open(&path).unwrap();
        fallocate(&file, FallocateFlags::empty(), 2 * MIB, MIB).unwrap();
        file.sync_all().unwrap();
        drop(file);

        let extents = file_extents(&path).unwrap();
        assert!(extents.is_sorted_by_key(|extent| extent.logical), "{fs}: {extents:?}");
        let is_data = |at: u64| {
            extents.iter().any(|extent| (extent.logical..extent.logical + extent.len).contains(&at))
        };
        let allocated: Vec<_> =
            (0..4).map(|mib| is_data(mib * MIB) && is_data((mib + 1) * MIB - 1)).collect();
        assert_eq!(allocated, [true, false, true, false], "{fs}: {extents:?}");
        for extent in extents.iter().filter(|extent| extent.logical < MIB) {
            let start = usize::try_from(extent.logical).unwrap();
            let len = usize::try_from(extent.len).unwrap().min(bytes.len() - start);
            let found = on_volume(&attachment, extent.physical, u64::try_from(len).unwrap());
            assert!(found == bytes[start..start + len], "{fs}: {extent:?}");
            assert_eq!(extent.file_offset(extent.physical + 5), Some(extent.logical + 5));
            assert_eq!(extent.file_offset(extent.physical + extent.len), None);
        }
        fixture.detach(attachment);
    }
}

#[test]
fn a_file_on_no_block_device_has_no_extents() {
    let error = file_extents(Path::new("/proc/self/stat")).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EOPNOTSUPP), "{error}");
    assert!(file_extents(Path::new("/nowhere/at-all")).is_err());
}

/// Offsets on the volume at which small files and 16 KiB pages of a larger one begin, modulo 16 KiB.
fn misplaced_pages(fs: FsType) -> usize {
    let fixture = Fixture::roomy();
    let attachment = fixture.mount(fs).unwrap();
    let begins = (0..20).flat_map(|number| {
        let [small, large] = ["small", "large"].map(|kind| fixture.dir(&format!("mnt/{kind}-{number}")));
        write_synced(&small, &[1; 5000]);
        write_synced(&large, &[2; 3 << 14]);
        let extents = file_extents(&large).unwrap();
        let place = |page: u64| {
            let holder = extents.iter().find(|e| (e.logical..e.logical + e.len).contains(&(page << 14)));
            holder.map(|extent| extent.physical + (page << 14) - extent.logical).unwrap()
        };
        (0..3).map(place).collect::<Vec<_>>()
    });
    let misplaced = begins.filter(|begin| !begin.is_multiple_of(CLUSTER_BYTES)).count();
    fixture.detach(attachment);
    misplaced
}

#[test]
fn pages_of_16_kib_are_aligned_on_the_volume_with_clusters_and_not_without() {
    if !can_attach() {
        return;
    }
    assert_eq!(misplaced_pages(FsType::Ext4Bigalloc), 0);
    assert!(misplaced_pages(FsType::Ext4) > 0, "the files of this test would be aligned anyway");
}

#[test]
fn ext4_with_clusters_and_without_are_two_file_systems() {
    if !can_attach() {
        return;
    }
    for (there, wanted) in [(FsType::Ext4, FsType::Ext4Bigalloc), (FsType::Ext4Bigalloc, FsType::Ext4)] {
        let fixture = Fixture::sized(64 * MIB);
        let attachment = fixture.mount(there).unwrap();
        assert_eq!(attachment.info().fs.unwrap().to_string(), there.name());
        assert!(attachment.info().made_fs);
        fixture.detach(attachment);
        let refused = fixture.mount(wanted).map(drop).unwrap_err().to_string();
        assert!(refused.contains(&format!("holds '{there}'; making {wanted}")), "{refused}");
        let attachment = fixture.mount(there).unwrap();
        assert!(!attachment.info().made_fs);
        fixture.detach(attachment);
    }
}

#[test]
fn a_crash_image_is_checked_mounted_again_and_thrown_away() {
    if !can_attach() {
        return;
    }
    for fs in FsType::ALL {
        let fixture = Fixture::roomy();
        let original = fixture.mount(fs).unwrap();
        write_synced(&fixture.dir("mnt/file"), b"before");
        let image = fixture.image(&original, "image");
        write_synced(&fixture.dir("mnt/file"), b"after");
        let no_verdict = |when: &str| {
            let error = image.check_fs(fs).unwrap_err().to_string();
            assert!(error.contains("no verdict"), "{fs}, {when}: {error}");
        };
        no_verdict("with a journal to replay");
        let dir = fixture.dir("image");
        image.mount(fs, &dir).unwrap();
        no_verdict("while it is mounted");
        assert_eq!(content(&dir.join("file")), b"before", "{fs}");
        assert!(matches!(image.mount(fs, &fixture.dir("twice")), Err(HostError::NotFree { .. })));
        image.unmount().unwrap();
        assert!(!dir.exists(), "it was made for the mount");
        assert!(matches!(image.unmount(), Err(HostError::NotMounted { .. })));
        let check = image.check_fs(fs).unwrap();
        assert!(check.clean, "{fs}: {}", check.output);

        image.mount(fs, &dir).unwrap();
        let open = File::create(dir.join("open")).unwrap();
        drop(image);
        assert!(matches!(fixture.host.discard("image"), Err(HostError::InUse { .. })), "{fs}");
        drop(open);
        fixture.host.discard("image").unwrap();
        assert!(matches!(fixture.host.store().meta("image"), Err(crate::store::StoreError::NotFound { .. })));
        assert_eq!(content(&fixture.dir("mnt/file")), b"after", "{fs}");
        fixture.detach(original);
        assert!(fixture.has_nothing_mounted_or_attached(), "{fs}");
    }
}

/// Writes 1, 2, 3 ... to a file, each synced before the next; answers with when each began and had been synced.
fn count(path: &Path, done: &AtomicBool) -> Vec<(Instant, Instant)> {
    use std::os::unix::fs::FileExt as _;
    let file = File::create(path).unwrap();
    let mut log = Vec::new();
    while !done.load(Ordering::Relaxed) {
        let number = u64::try_from(log.len()).unwrap() + 1;
        let began = Instant::now();
        file.write_all_at(&number.to_le_bytes(), 0).unwrap();
        file.sync_all().unwrap();
        log.push((began, Instant::now()));
    }
    log
}

#[test]
fn images_are_checked_side_by_side_while_the_load_goes_on() {
    const CHECKERS: usize = 3;
    const ROUNDS: usize = 3;
    if !can_attach() {
        return;
    }
    for fs in FsType::ALL {
        let fixture = Fixture::roomy();
        let original = fixture.mount(fs).unwrap();
        write_synced(&fixture.dir("mnt/counter"), &[0; 8]);
        let done = AtomicBool::new(false);
        let (found, log) = std::thread::scope(|scope| {
            let (fixture, original, done) = (&fixture, &original, &done);
            let writer = scope.spawn(move || count(&fixture.dir("mnt/counter"), done));
            let check = move |name: String| {
                let request =
                    ImageRequest { volume: original.live(), image: &name, seed: 1, meta: Value::Null };
                let at = crash_images(fixture.host.store(), &[request], Keep::Nothing).unwrap().at;
                let image = fixture.host.attach_bare(&name, fixture.array()).unwrap();
                image.mount(fs, &fixture.dir(&name)).unwrap();
                let found = content(&fixture.dir(&name).join("counter"));
                image.unmount().unwrap();
                let check = image.check_fs(fs).unwrap();
                assert!(check.clean, "{fs}: {}", check.output);
                drop(image);
                fixture.host.discard(&name).unwrap();
                (at, found.try_into().map_or(0, u64::from_le_bytes))
            };
            let checkers: Vec<_> = (0..CHECKERS)
                .map(|checker| {
                    let rounds = (0..ROUNDS).map(move |round| format!("image-{checker}-{round}"));
                    scope.spawn(move || rounds.map(check).collect::<Vec<_>>())
                })
                .collect();
            let found: Vec<_> = checkers.into_iter().map(ScopedJoinHandle::join).collect();
            // Before the first failure of a checker ends this test: the writer would go on for ever.
            done.store(true, Ordering::Relaxed);
            let log = writer.join().unwrap();
            (found.into_iter().flat_map(Result::unwrap).collect::<Vec<_>>(), log)
        });
        for (at, found) in found {
            let count = |before: &dyn Fn(&(Instant, Instant)) -> bool| {
                u64::try_from(log.iter().filter(|one| before(one)).count()).unwrap()
            };
            let range = count(&|(_, synced)| *synced < at)..=count(&|(began, _)| *began < at);
            assert!(range.contains(&found), "{fs}: {found}, where {range:?} was synced or begun");
        }
        assert!(log.len() > ROUNDS, "{fs}: the load went on: {}", log.len());
        fixture.detach(original);
        assert!(fixture.has_nothing_mounted_or_attached(), "{fs}");
    }
}

/// Damages a file system that is valid: something that it holds twice no longer agrees.
fn damage(fs: FsType, device: &Path) {
    let device = device.as_os_str();
    let mut tool = match fs {
        FsType::Xfs => {
            let mut tool = std::process::Command::new("xfs_db");
            tool.args(["-x", "-c", "agf 0", "-c", "write -d freeblks 7"]).arg(device);
            tool
        }
        FsType::Ext4 | FsType::Ext4Bigalloc => {
            let mut tool = std::process::Command::new("debugfs");
            tool.args(["-w", "-R", "set_inode_field <2> links_count 9"]).arg(device);
            tool
        }
    };
    let output = tool.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_check_distinguishes_a_damaged_file_system_from_a_valid_one() {
    if !can_attach() {
        return;
    }
    for fs in FsType::ALL {
        let fixture = Fixture::roomy();
        let attachment = fixture.mount(fs).unwrap();
        write_synced(&fixture.dir("mnt/file"), &[1; 100_000]);
        fixture.detach(attachment);
        let attachment = fixture.host.attach_bare("vol", fixture.array()).unwrap();
        let check = attachment.check_fs(fs).unwrap();
        assert!(check.clean, "{fs}: {}", check.output);
        damage(fs, attachment.info().device.as_deref().unwrap());
        let check = attachment.check_fs(fs).unwrap();
        assert!(!check.clean && check.output.len() > 40, "{fs}: {}", check.output);
        fixture.detach(attachment);
    }
}

#[test]
fn what_is_no_file_system_gets_no_verdict() {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(64 << 20).unwrap();
    for (fs, path) in FsType::ALL.into_iter().flat_map(|fs| [(fs, file.path()), (fs, Path::new("/none"))]) {
        if path.exists() && fs == FsType::Xfs {
            // It searches all of a device for a superblock, and reports at the end that it is damaged.
            continue;
        }
        let error = check_fs(fs, path).unwrap_err().to_string();
        assert!(error.contains("no verdict"), "{error}");
    }
}

/// A file system in memory, mounted for the life of the value.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(dir: &Path, mib: u32) -> Self {
        std::fs::create_dir(dir).unwrap();
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={mib}m"), "none"]).arg(dir);
        assert!(mount.status().unwrap().success());
        Self(dir.to_owned())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("--lazy").arg(&self.0).status();
        // A directory that holds a mount could not be removed before.
        let _ = self.0.parent().map(std::fs::remove_dir_all);
    }
}

#[test]
fn a_tool_that_fails_because_the_host_did_is_reported_with_the_hosts_error() {
    if !can_attach() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    // Less than the log of a file system, which is written when it is made.
    let _disk = SmallDisk::mount(&dir.path().join("home"), 2);
    let fixture = Fixture::sized_in(dir, 512 * MIB);
    let error = fixture.mount(FsType::Xfs).unwrap_err();
    let HostError::HostFailed { failures, source, .. } = &error else { panic!("{error:?}") };
    assert!(matches!(**source, HostError::Tool(_)), "{source:?}");
    assert!(failures.iter().any(|failure| failure.errno == Some(libc::ENOSPC)), "{failures:?}");
    assert!(error.to_string().contains("No space left on device"), "{error}");
}
