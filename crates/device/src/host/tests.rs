//! A host whose volumes are wanted by several at once.

mod images;

use std::fs::File;
use std::process::Command as Program;

use ebbtide_volume::Limits;

use std::time::Instant;

use super::recover::mounts_of_loop;
use super::*;
use crate::request::{Command, Reply, Request};
use crate::{fuse, loopdev, nbd::NbdAddress};

const SIZE: u64 = 4 << 20;

/// Whether block devices can be made here; prints what is missing where not.
fn can_attach() -> bool {
    block::require().inspect_err(|missing| println!("SKIPPED: {missing}")).is_ok()
}

struct Fixture {
    host: Host,
    dir: tempfile::TempDir,
    size: u64,
}

impl Fixture {
    fn new() -> Self {
        Self::sized(SIZE)
    }

    fn sized(size: u64) -> Self {
        Self::sized_in(tempfile::tempdir().unwrap(), size)
    }

    fn sized_in(dir: tempfile::TempDir, size: u64) -> Self {
        let home = Home::open(&dir.path().join("home")).unwrap();
        let host = Host::open(home.lock().unwrap(), HostOptions::default()).unwrap();
        host.store().create_volume("vol", size, serde_json::json!({})).unwrap();
        Self { host, dir, size }
    }

    fn attach(&self, export: Export) -> Result<Arc<Attachment>, HostError> {
        self.attach_as_known(self.host.store().meta("vol").unwrap(), export)
    }

    /// Nothing but a size.
    fn array(&self) -> Array {
        let limits = Limits::unlimited(self.size);
        Array::single(limits, self.host.now()).unwrap()
    }

    fn attach_as_known(&self, meta: Value, export: Export) -> Result<Arc<Attachment>, HostError> {
        self.attach_with(self.array(), meta, export)
    }

    fn attach_array(&self, array: Array) -> Arc<Attachment> {
        self.attach_with(array, self.host.store().meta("vol").unwrap(), self.nbd()).unwrap()
    }

    fn attach_with(&self, array: Array, meta: Value, export: Export) -> Result<Arc<Attachment>, HostError> {
        let request = AttachRequest {
            volume: "vol".into(),
            meta,
            array,
            seed: 1,
            block_bytes: 512,
            instance: None,
            export,
            host_match: HostMatch::default(),
        };
        self.host.attach(request, &|_| ())
    }

    /// Bytes that are free in a file system that is mounted from the volume meanwhile.
    fn free(&self, fs: FsType, grow: bool) -> u64 {
        let mount =
            MountRequest { dir: self.dir.path().join("mnt"), fs, destroy: false, grow, noexec: false };
        let attachment = self.attach(Export::Block { mount: Some(mount) }).unwrap();
        let free = free_bytes(attachment.info().mount.as_ref().unwrap()).unwrap();
        drop(attachment);
        self.host.detach("vol", false, &|_| ()).unwrap();
        free
    }

    fn nbd(&self) -> Export {
        Export::Nbd(NbdAddress::Unix(self.dir.path().join("vol.sock")))
    }
}

#[test]
fn what_is_on_a_volume_becomes_no_device_no_privileged_program_and_where_asked_no_program() {
    if !can_attach() {
        return;
    }
    let fixture = Fixture::sized(64 << 20);
    for (noexec, wanted) in [(false, vec!["nosuid", "nodev"]), (true, vec!["nosuid", "nodev", "noexec"])] {
        let dir = fixture.dir.path().join("mnt");
        let mount = MountRequest { dir: dir.clone(), fs: FsType::Ext4, destroy: false, grow: false, noexec };
        let attachment = fixture.attach(Export::Block { mount: Some(mount) }).unwrap();
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mounted = mounts.lines().find(|line| line.split(' ').nth(4) == dir.to_str()).unwrap();
        let options: Vec<&str> = mounted.split(' ').nth(5).unwrap().split(',').collect();
        let restricted =
            options.into_iter().filter(|option| option.starts_with("no") && !option.contains("atime"));
        assert_eq!(restricted.collect::<Vec<_>>(), wanted);
        drop(attachment);
        fixture.host.detach("vol", false, &|_| ()).unwrap();
    }
}

#[test]
fn a_volume_whose_mount_another_namespace_has_copied_is_detached_all_the_same() {
    if !can_attach() {
        return;
    }
    let fixture = Fixture::sized(64 << 20);
    let attachment = fixture.attach(Export::Block { mount: None }).unwrap();
    // As a container's runtime does. Its copy of the mount stays when ours goes.
    let mut other =
        Program::new("unshare").args(["--mount", "--propagation=private", "sleep", "600"]).spawn().unwrap();
    let namespace = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/mnt"));
    let name = || std::fs::read_to_string(format!("/proc/{}/comm", other.id())).unwrap_or_default();
    while namespace(&other.id().to_string()).unwrap() == namespace("self").unwrap()
        || name().trim() != "sleep"
    {
        std::thread::yield_now();
    }
    let mounts = std::fs::read_to_string(format!("/proc/{}/mountinfo", other.id())).unwrap();
    assert!(mounts.contains(fixture.dir.path().to_str().unwrap()), "it has a copy: {mounts}");
    drop(attachment);
    fixture.host.detach("vol", false, &|_| ()).unwrap();
    assert!(other.try_wait().unwrap().is_none());
    drop(fixture.attach(Export::Block { mount: None }).unwrap());
    fixture.host.detach("vol", false, &|_| ()).unwrap();
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn a_detached_volume_is_free_however_long_someone_looked_at_it() {
    let fixture = Fixture::new();
    let attachment = fixture.attach(fixture.nbd()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(200));
            drop(attachment);
        });
        fixture.host.detach("vol", false, &|_| ()).unwrap();
        fixture.host.store().delete_volume("vol").unwrap();
    });
}

#[test]
fn a_volume_is_free_only_when_the_last_who_looked_at_it_has_closed_its_files() {
    // A long journal, which is written anew when the volume is closed.
    const RECORDS: u64 = 16_384;
    let fixture = Fixture::sized(RECORDS * 2 * 4096);
    let attachment = fixture.attach(fixture.nbd()).unwrap();
    for block in 0..RECORDS {
        attachment.live().store().write_at(&[1; 4096], block * 2 * 4096).unwrap();
    }
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(200));
            drop(attachment);
        });
        fixture.host.detach("vol", false, &|_| ()).unwrap();
        fixture.host.store().delete_volume("vol").unwrap();
    });
}

#[test]
fn a_volume_whose_attachment_failed_is_free_at_once() {
    let fixture = Fixture::new();
    let taken = fixture.dir.path().join("taken");
    std::fs::write(&taken, "not a socket").unwrap();
    for _ in 0..20 {
        fixture.attach(Export::Nbd(NbdAddress::Unix(taken.clone()))).map(drop).unwrap_err();
        drop(fixture.host.store().open_volume("vol").unwrap());
    }
    fixture.host.store().delete_volume("vol").unwrap();
}

#[test]
fn a_home_that_was_deleted_and_made_again_is_its_new_servers_alone() {
    let fixture = Fixture::new();
    let old = fixture.host.home();
    std::fs::remove_dir_all(old.root()).unwrap();
    let new = Home::open(old.root()).unwrap();
    let lock = new.lock().unwrap();
    let host = Host::open(lock, HostOptions::default()).unwrap();
    host.store().create_volume("other", SIZE, serde_json::json!({})).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(new.socket()).unwrap();
    old.remove_socket().unwrap_err();
    assert_eq!(old.socket_identity(), None, "the old home has none");
    fixture.host.store().create_volume("late", SIZE, serde_json::json!({})).unwrap_err();
    let refused = fixture.attach(fixture.nbd()).map(drop).unwrap_err();
    assert!(matches!(&refused, HostError::Io { .. }), "{refused}");
    let Fixture { host: old_host, dir: _dir, .. } = fixture;
    drop(old_host);
    assert!(new.socket_identity().is_some());
    drop(host);
    let again = Host::open(new.lock().unwrap(), HostOptions::default()).unwrap();
    let names: Vec<_> = again.store().volumes().into_iter().map(|volume| volume.name).collect();
    assert_eq!(names, ["other"]);
}

#[test]
fn a_volume_is_changed_by_one_command_at_a_time() {
    let fixture = Fixture::new();
    let refused = |error: HostError| assert!(matches!(error, HostError::NotFree { .. }), "{error}");
    for attached in [false, true] {
        if attached {
            fixture.attach(fixture.nbd()).unwrap();
        }
        let work = |attachment: Option<&Attachment>| {
            assert_eq!(attachment.is_some(), attached);
            refused(fixture.host.while_alone("vol", "being modified", |_| ()).unwrap_err());
            refused(fixture.attach(fixture.nbd()).map(drop).unwrap_err());
            refused(fixture.host.detach("vol", true, &|_| ()).unwrap_err());
        };
        fixture.host.while_alone("vol", "being modified", work).unwrap();
    }
    assert!(matches!(fixture.host.status("vol"), Status::Attached(_)), "as before");
}

#[test]
fn a_volume_without_credits_is_not_written_down_again_and_again() {
    let fixture = Fixture::new();
    let attachment = fixture.attach(fixture.nbd()).unwrap();
    let log = fixture.host.home().store_dir().join("changes.00000001");
    let len = || log.metadata().unwrap().len();
    fixture.host.shared.save_state(&attachment);
    let first = len();
    fixture.host.shared.save_state(&attachment);
    assert_eq!(len(), first, "a commit is appended to the log");
}

#[test]
fn what_is_loaded_is_written_down_while_a_volume_is_attached() {
    let fixture = Fixture::new();
    let block = ebbtide_volume::LOAD_BLOCK_BYTES;
    let mut array = fixture.array();
    let whole = 0..SIZE;
    let states = array.new_load_states(&[whole], fixture.host.now());
    let first_touch = ebbtide_volume::QuantileCurve::constant(Nanos(1));
    array.begin_loading(&ebbtide_volume::Loader { first_touch, rate: None }, states).unwrap();
    let attachment = fixture.attach_array(array);
    let kept = || SavedLoading::read(&fixture.host.store().meta("vol").unwrap()).unwrap().unwrap().members;
    fixture.host.shared.save_state(&attachment);
    assert_eq!(kept()[0].missing.len(), SIZE / block);
    let (sender, receiver) = std::sync::mpsc::channel();
    let reply = Reply::callback(move |outcome| sender.send(outcome.map(drop)).unwrap());
    let command = Command::Read;
    attachment.live().submit(Request {
        command,
        offset: 2 * block,
        len: 4096,
        fua: false,
        data: None,
        reply,
    });
    receiver.recv().unwrap().unwrap();
    fixture.host.shared.save_state(&attachment);
    let after = kept();
    assert_eq!((after[0].missing.contains(2), after[0].counts.touched), (false, 1));
    drop(attachment);
    fixture.host.detach("vol", false, &|_| ()).unwrap();
    assert_eq!(kept(), after);
}

#[test]
fn a_volume_that_was_changed_since_it_was_looked_at_is_not_attached() {
    let fixture = Fixture::new();
    let before = fixture.host.store().meta("vol").unwrap();
    fixture.host.update_meta("vol", |meta| meta["spec"] = "gp3:size=8GiB".into()).unwrap();
    let refused = fixture.attach_as_known(before, fixture.nbd()).map(drop).unwrap_err();
    assert!(matches!(&refused, HostError::NotFree { .. }), "{refused}");
    fixture.attach(fixture.nbd()).unwrap();
}

#[test]
fn a_calibration_that_is_given_up_ends_soon_and_leaves_nothing() {
    if !can_attach() {
        return;
    }
    let fixture = Fixture::new();
    let steps = Mutex::new(0);
    let progress = |_: &str| *steps.lock() += 1;
    // In the middle of the measurement of the block device.
    let refused = fixture.host.calibrate_unless(&|| *steps.lock() >= 2, false, &progress).unwrap_err();
    assert!(matches!(&refused, HostError::Io { .. }), "{refused}");
    assert_eq!(*steps.lock(), 2, "no other part of the measurement began");
    let home = fixture.host.home();
    assert!(!home.calibration_file().exists() && !home.scratch_dir().exists());
    assert!(fuse::mounts().unwrap().iter().all(|mounted| !mounted.dir.starts_with(home.root())));
}

#[test]
fn a_stopped_host_attaches_nothing() {
    let fixture = Fixture::new();
    fixture.host.stop(&|_| ());
    let refused = fixture.attach(fixture.nbd()).map(drop).unwrap_err();
    assert!(refused.to_string().contains("stopping"), "{refused}");
}

#[test]
fn a_device_that_could_not_be_detached_is_detached_by_a_later_attempt() {
    if !can_attach() {
        return;
    }
    let fixture = Fixture::new();
    let attachment = fixture.attach(Export::Block { mount: None }).unwrap();
    let device = attachment.info().device.clone().unwrap();
    drop(attachment);
    // Held by this process, as the kernel itself may hold it: not seen among the open files of others.
    for held in [device, fixture.host.home().run_dir().join("vol")] {
        let open = File::open(&held).unwrap();
        let error = fixture.host.detach("vol", false, &|_| ()).unwrap_err();
        assert!(error.to_string().contains("in use"), "{error}");
        drop(open);
    }
    fixture.host.detach("vol", false, &|_| ()).unwrap();
    let home = fixture.host.home().root();
    assert!(loopdev::list().iter().all(|used| !used.backing.starts_with(home)));
    assert!(fuse::mounts().unwrap().iter().all(|mounted| !mounted.dir.starts_with(home)));
}

#[test]
fn a_device_that_went_with_its_last_user_is_not_taken_for_the_next_device_of_its_number() {
    if !can_attach() {
        return;
    }
    let fixture = Fixture::new();
    let attachment = fixture.attach(Export::Block { mount: None }).unwrap();
    let device = attachment.info().device.clone().unwrap();
    drop(attachment);
    let open = File::open(&device).unwrap();
    fixture.host.detach("vol", false, &|_| ()).unwrap_err();
    // The kernel detaches the device now, and gives its number to the next.
    drop(open);
    let gone = Instant::now() + Duration::from_secs(60);
    while loopdev::list().iter().any(|used| used.device == device) {
        assert!(Instant::now() < gone, "{device:?} is in use");
        std::thread::sleep(Duration::from_millis(1));
    }
    let other = Fixture::sized(64 << 20);
    let mount = MountRequest {
        dir: other.dir.path().join("mnt"),
        fs: FsType::Ext4,
        destroy: false,
        grow: false,
        noexec: false,
    };
    let taken = other.attach(Export::Block { mount: Some(mount) }).unwrap();
    fixture.host.detach("vol", true, &|_| ()).unwrap();
    let dir = taken.info().mount.clone().unwrap();
    if taken.info().device.as_ref() == Some(&device) {
        assert!(free_bytes(&dir).unwrap() > 0);
        assert_eq!(mounts_of_loop(&device).unwrap(), [dir]);
    } else {
        println!("SKIPPED: another process of this machine took {}", device.display());
    }
    drop(taken);
    other.host.detach("vol", false, &|_| ()).unwrap();
}

#[test]
fn a_mount_that_is_in_use_for_a_moment_is_waited_for() {
    if !can_attach() {
        return;
    }
    let fixture = Fixture::new();
    drop(fixture.attach(Export::Block { mount: None }).unwrap());
    let open = File::open(fixture.host.home().run_dir().join("vol")).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // As long as the kernel may take to close the file of a loop device that is gone, and longer.
            std::thread::sleep(Duration::from_millis(100));
            drop(open);
        });
        fixture.host.detach("vol", false, &|_| ()).unwrap();
    });
    assert!(fixture.has_nothing_mounted_or_attached());
}

#[test]
fn a_file_system_grows_to_the_size_of_its_volume_when_that_is_asked_for() {
    if !can_attach() {
        return;
    }
    for (fs, small) in [(FsType::Ext4, 64 << 20), (FsType::Ext4Bigalloc, 64 << 20), (FsType::Xfs, 512 << 20)]
    {
        let fixture = Fixture::sized(small);
        let before = fixture.free(fs, true);
        fixture.host.store().resize_volume("vol", small * 2).unwrap();
        let fixture = Fixture { size: small * 2, ..fixture };
        assert_eq!(fixture.free(fs, false), before, "{fs}");
        let after = fixture.free(fs, true);
        assert!(after - before > small * 8 / 10, "{fs}: {before} to {after} bytes");
        let attachment = fixture.host.attach_bare("vol", fixture.array()).unwrap();
        let check = attachment.check_fs(fs).unwrap();
        assert!(check.clean, "{fs}: {}", check.output);
        drop(attachment);
        fixture.host.detach("vol", false, &|_| ()).unwrap();
    }
}

#[test]
fn a_device_reports_that_it_spins_when_that_is_set() {
    if !can_attach() {
        return;
    }
    let fixture = Fixture::new();
    let attachment = fixture.attach(Export::Block { mount: None }).unwrap();
    let device = attachment.info().device.clone().unwrap();
    let file = format!("/sys/block/{}/queue/rotational", device.file_name().unwrap().to_str().unwrap());
    let content = || std::fs::read_to_string(&file).unwrap().trim().to_owned();
    assert_eq!(content(), "0");
    attachment.set_rotational(true).unwrap();
    assert_eq!(content(), "1");
    drop(attachment);
    fixture.host.detach("vol", false, &|_| ()).unwrap();
}

#[test]
fn a_killed_process_that_waits_for_its_own_volume_gives_the_home_back() {
    const VICTIM: &str = "EBBTIDE_TEST_WAITING_VICTIM";
    if !can_attach() {
        return;
    }
    if let Some(home) = std::env::var_os(VICTIM) {
        wait_for_own_volume(std::path::Path::new(&home));
    }
    let dir = tempfile::tempdir().unwrap();
    let mut victim = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "host::tests::a_killed_process_that_waits_for_its_own_volume_gives_the_home_back"])
        .arg("--nocapture")
        .env(VICTIM, dir.path().join("home"))
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(victim.stdout.take().unwrap()));
    lines.map(Result::unwrap).find(|line| line.contains("waiting")).unwrap();
    // Until it does wait.
    std::thread::sleep(Duration::from_millis(300));
    victim.kill().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert!(victim.try_wait().unwrap().is_none(), "it cannot end");
    let home = Home::open(&dir.path().join("home")).unwrap();
    assert!(matches!(home.lock(), Err(HomeError::Served { .. })));
    assert!(release_dying(&home).unwrap());
    victim.wait().unwrap();
    let lock = home.lock().unwrap();
    assert!(!release_dying(&home).unwrap(), "this process lives");
    assert!(clear_leftovers(&lock).unwrap().len() >= 3);
    assert!(loopdev::list().iter().all(|used| !used.backing.starts_with(home.root())));
    assert!(fuse::mounts().unwrap().iter().all(|mounted| !mounted.dir.starts_with(home.root())));
}

/// Serves a volume, stalls it, and writes to it.
fn wait_for_own_volume(home: &std::path::Path) -> ! {
    let home = Home::open(home).unwrap();
    let host = Host::open(home.lock().unwrap(), HostOptions::default()).unwrap();
    host.store().create_volume("vol", 64 << 20, serde_json::json!({})).unwrap();
    let fixture = Fixture { host, dir: tempfile::tempdir_in(home.root()).unwrap(), size: 64 << 20 };
    let mount = MountRequest {
        dir: fixture.dir.path().join("mnt"),
        fs: FsType::Ext4,
        destroy: false,
        grow: false,
        noexec: false,
    };
    let attachment = fixture.attach(Export::Block { mount: Some(mount) }).unwrap();
    let faults = crate::faults::Faults { stalled: true, ..Default::default() };
    attachment.live().set_faults(faults).unwrap();
    println!("waiting");
    let mut file = File::create(fixture.dir.path().join("mnt/file")).unwrap();
    std::io::Write::write_all(&mut file, &[1; 4096]).unwrap();
    file.sync_all().unwrap();
    panic!("the volume is stalled");
}
