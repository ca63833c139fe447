//! Volumes as block devices: mounting, refusing to destroy, detaching, growing.

use std::fs::OpenOptions;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use crate::harness::{Home, Need, can, left_of, tool};

#[test]
fn a_file_system_is_made_once_and_is_there_again_after_detaching() {
    if !can(&[Need::BlockDevices, Need::Tool("mkfs.xfs"), Need::Tool("mkfs.ext4")]) {
        return;
    }
    let home = Home::served();
    for fs in ["xfs", "ext4", "ext4-bigalloc"] {
        home.run_line(&format!("volume create {fs} gp3:size=10GiB")).ok();
        let dir = home.sibling(fs);
        let mount = dir.to_str().unwrap();
        let attach = ["volume", "attach", fs, "--mount", mount, "--fs", fs, "--json"];
        let first = home.run(&attach).ok().json();
        assert_eq!(first["attachment"]["made_fs"], true);
        assert_eq!(first["attachment"]["mount"], mount);
        std::fs::write(dir.join("file"), vec![b'x'; 1 << 20]).unwrap();
        let options = tool("findmnt", &["-no", "OPTIONS", mount]);
        assert!(options.contains("noatime"), "{options}");
        home.run_line(&format!("volume detach {fs}")).ok();
        assert!(!dir.exists(), "the directory that was made for the mount is gone");
        let second = home.run(&attach).ok().json();
        assert_eq!(second["attachment"]["made_fs"], false);
        assert_eq!(std::fs::read(dir.join("file")).unwrap(), vec![b'x'; 1 << 20]);
        assert_eq!(home.show(fs)["state"], "in-use");
        home.run_line(&format!("volume detach {fs}")).ok();
    }
    assert_eq!(left_of(&home.root()), Vec::<String>::new());
}

#[test]
fn the_device_has_the_block_size_and_the_size_of_the_volume() {
    if !can(&[Need::BlockDevices]) {
        return;
    }
    let home = Home::served();
    for block in ["512", "4096"] {
        home.run_line(&format!("volume create b{block} gp3:size=3GiB --block-size {block}")).ok();
        let device = home.run_line(&format!("volume attach b{block}")).ok();
        assert_eq!(tool("blockdev", &["--getss", device.line()]).trim(), block);
        assert_eq!(tool("blockdev", &["--getsize64", device.line()]).trim(), (3_u64 << 30).to_string());
        home.run_line(&format!("volume attach b{block}")).refused(2, &["is attached as", device.line()]);
        home.run_line(&format!("volume delete b{block}")).refused(2, &["is attached as", "volume detach"]);
        home.run_line(&format!("volume detach b{block}")).ok();
    }
}

#[test]
fn other_content_is_never_destroyed_without_the_option_for_it() {
    if !can(&[Need::BlockDevices, Need::Tool("mkfs.xfs"), Need::Tool("mkfs.ext4")]) {
        return;
    }
    let home = Home::served();
    home.run_line("volume create db gp3:size=10GiB").ok();
    let device = home.run_line("volume attach db").ok();
    let mut file = OpenOptions::new().write(true).open(device.line()).unwrap();
    std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(5 << 30)).unwrap();
    file.write_all(b"precious").unwrap();
    file.sync_all().unwrap();
    drop(file);
    home.run_line("volume detach db").ok();
    let dir = home.sibling("mnt");
    let xfs = ["volume", "attach", "db", "--mount", dir.to_str().unwrap(), "--fs", "xfs"];
    home.run(&xfs).refused(2, &["data that are no file system", "--execute"]);
    assert_eq!(home.show("db")["state"], "available");
    assert_eq!(left_of(&home.root()), Vec::<String>::new());
    home.run(&[&xfs[..], &["--execute"]].concat()).ok();
    home.run_line("volume detach db").ok();
    let ext4 = ["volume", "attach", "db", "--mount", dir.to_str().unwrap(), "--fs", "ext4"];
    home.run(&ext4).refused(2, &["'xfs'", "--execute"]);
    home.run(&xfs).ok();
    assert_eq!(home.show("db")["attachment"]["made_fs"], false);
}

#[test]
fn a_mount_directory_in_use_is_refused() {
    if !can(&[Need::BlockDevices]) {
        return;
    }
    let home = Home::served();
    home.run_line("volume create db gp3:size=1GiB").ok();
    let full = home.sibling("full");
    std::fs::create_dir(&full).unwrap();
    std::fs::write(full.join("mine"), "").unwrap();
    home.run(&["volume", "attach", "db", "--mount", full.to_str().unwrap(), "--fs", "xfs"])
        .refused(2, &["it is not empty"]);
    home.run_line("volume attach db --mount / --fs xfs").refused(2, &["something is mounted there"]);
    assert_eq!(home.show("db")["state"], "available");
}

#[test]
fn a_volume_in_use_is_detached_only_by_force() {
    if !can(&[Need::BlockDevices, Need::Tool("mkfs.xfs")]) {
        return;
    }
    let home = Home::served();
    home.run_line("volume create db gp3:size=10GiB").ok();
    let dir = home.sibling("mnt");
    let attach = ["volume", "attach", "db", "--mount", dir.to_str().unwrap(), "--fs", "xfs"];
    home.run(&attach).ok();
    std::fs::write(dir.join("file"), "written").unwrap();
    let mut user = Command::new("sleep").arg("600").current_dir(&dir).spawn().unwrap();
    let refused = home.run_line("volume detach db").refused(3, &["sleep", "--force"]);
    assert!(refused.stderr.contains(&user.id().to_string()), "{}", refused.stderr);
    assert_eq!(home.show("db")["state"], "in-use");
    assert!(dir.join("file").exists(), "it is still mounted");
    home.run_line("volume detach db --force").ok();
    user.kill().unwrap();
    user.wait().unwrap();
    home.run(&attach).ok();
    assert_eq!(std::fs::read_to_string(dir.join("file")).unwrap(), "written");
}

#[test]
fn a_device_that_a_process_has_open_is_not_taken_away() {
    if !can(&[Need::BlockDevices]) {
        return;
    }
    let home = Home::served();
    home.run_line("volume create db gp3:size=1GiB").ok();
    let device = home.run_line("volume attach db").ok();
    let mut user =
        Command::new("sleep").arg("600").stdin(std::fs::File::open(device.line()).unwrap()).spawn().unwrap();
    home.run_line("volume detach db").refused(3, &["sleep", &user.id().to_string(), "--force"]);
    user.kill().unwrap();
    user.wait().unwrap();
    home.run_line("volume detach db").ok();
}

#[test]
fn a_live_modification_grows_the_device_and_speeds_it_up() {
    if !can(&[Need::BlockDevices, Need::Tool("fio")]) {
        return;
    }
    let home = Home::served();
    home.run_line("volume create db gp3:size=20GiB").ok();
    let device = home.run_line("volume attach db").ok();
    let iops = || {
        let result = tool(
            "fio",
            &[
                "--name=read",
                "--rw=randread",
                "--bs=16k",
                "--iodepth=32",
                "--ioengine=libaio",
                "--direct=1",
                "--time_based",
                "--ramp_time=1.5",
                "--runtime=2",
                "--output-format=json",
                "--filename",
                device.line(),
            ],
        );
        let result: serde_json::Value = serde_json::from_str(&result).unwrap();
        result["jobs"][0]["read"]["iops"].as_f64().unwrap()
    };
    let before = iops();
    home.run_line("volume modify db gp3:size=40GiB,iops=6000").ok();
    assert_eq!(tool("blockdev", &["--getsize64", device.line()]).trim(), (40_u64 << 30).to_string());
    let after = iops();
    assert!((2_900.0..3_100.0).contains(&before), "{before}");
    assert!((5_800.0..6_200.0).contains(&after), "{after}");
    let minute = home.show("db")["live"]["minute"].clone();
    assert!(minute["VolumeReadOps"].as_u64().unwrap() > 10_000, "{minute}");
}

#[test]
fn a_snapshot_and_a_crash_image_of_a_mounted_volume_can_be_mounted_next_to_it() {
    if !can(&[Need::BlockDevices, Need::Tool("mkfs.xfs")]) {
        return;
    }
    let home = Home::served();
    home.run_line("volume create db gp3:size=10GiB").ok();
    let dir = home.sibling("mnt");
    home.run(&["volume", "attach", "db", "--mount", dir.to_str().unwrap(), "--fs", "xfs"]).ok();
    let synced = std::fs::File::create(dir.join("synced")).unwrap();
    (&synced).write_all(b"before").unwrap();
    synced.sync_all().unwrap();
    home.run_line("snapshot create s --volume db").ok();
    let image = home.run_line("volume crash-image db image --seed 7 --json").ok().json();
    assert_eq!((&image["seed"], &image["image"]), (&7.into(), &"image".into()));
    (&synced).write_all(b" and after").unwrap();
    synced.sync_all().unwrap();
    home.run_line("volume create copy gp3:size=10GiB --snapshot s --initialization none").ok();
    for copy in ["copy", "image"] {
        let dir = home.sibling(copy);
        home.run(&["volume", "attach", copy, "--mount", dir.to_str().unwrap(), "--fs", "xfs"]).ok();
        assert_eq!(std::fs::read_to_string(dir.join("synced")).unwrap(), "before", "{copy}");
    }
    assert_eq!(std::fs::read_to_string(dir.join("synced")).unwrap(), "before and after");
}

#[test]
fn a_volume_that_the_host_cannot_carry_is_refused_or_marked() {
    if !can(&[Need::BlockDevices]) {
        return;
    }
    let home = Home::served();
    home.run_line("volume create fast io2:size=1000GiB,iops=256000").ok();
    home.run_line("volume attach fast").refused(3, &["256000 IOPS", "the host carries", "--over-limit"]);
    home.run_line("volume attach fast --over-limit").ok();
    let shown = home.show("fast");
    assert!(shown["host_too_slow"][0].as_str().unwrap().contains("256000"), "{shown}");
    assert!(home.run_line("volume list").ok().stdout.contains("host too slow"));
    home.run_line("volume create ideal ideal:size=1GiB").ok();
    home.run_line("volume attach ideal").ok();
    assert_eq!(home.show("ideal")["host_too_slow"], serde_json::json!([]));
}

#[test]
fn a_modification_that_the_host_cannot_carry_is_refused_or_marked() {
    let home = Home::served();
    let socket = format!("unix:{}", home.sibling("m.sock").display());
    home.run_line("volume create db io2:size=1000GiB,iops=1000").ok();
    home.run_line("volume create idle io2:size=1000GiB,iops=1000").ok();
    home.run(&["volume", "attach", "db", "--nbd", &socket]).ok();
    let faster = "volume modify db io2:size=1000GiB,iops=256000";
    home.run_line(faster).refused(3, &["256000 IOPS", "the host carries", "--over-limit modifies"]);
    let shown = home.show("db");
    let spec = shown["spec"].as_str().unwrap();
    assert!(
        spec.starts_with("io2:size=1000GiB,iops=1000,"),
        "a refused modification changes nothing: {spec}"
    );
    assert_eq!(shown["host_too_slow"], serde_json::json!([]));
    let modified = home.run_line(&format!("{faster} --over-limit")).ok();
    assert!(modified.stderr.contains("warning: this host is too slow"), "{}", modified.stderr);
    assert!(home.show("db")["host_too_slow"][0].as_str().unwrap().contains("256000"));
    assert!(home.run_line("volume list").ok().stdout.contains("host too slow"));
    // What the host carries again is not marked any more.
    home.run_line("volume modify db io2:size=1000GiB,iops=2000").ok();
    assert_eq!(home.show("db")["host_too_slow"], serde_json::json!([]));
    assert!(!home.run_line("volume list").ok().stdout.contains("host too slow"));
    // A detached volume does no I/O; attaching it is what is refused.
    home.run_line("volume modify idle io2:size=1000GiB,iops=256000").ok();
    let socket = format!("unix:{}", home.sibling("i.sock").display());
    home.run(&["volume", "attach", "idle", "--nbd", &socket]).refused(3, &["256000 IOPS"]);
}

#[test]
fn volumes_on_one_instance_share_its_limits() {
    if !can(&[Need::BlockDevices]) {
        return;
    }
    let home = Home::served();
    home.run_line("volume create a gp3:size=100GiB").ok();
    home.run_line("volume create b gp3:size=100GiB").ok();
    home.run_line("volume attach a --instance r5.large/web1").ok();
    home.run_line("volume attach b --instance r5.xlarge/web1").ok();
    assert_eq!(home.show("a")["attachment"]["instance"], "r5.large/web1");
    assert_eq!(home.show("b")["attachment"]["instance"], "r5.xlarge/web1");
}

#[test]
fn a_full_disk_of_the_host_is_an_error_of_the_guest_and_shows() {
    if !can(&[Need::BlockDevices]) {
        return;
    }
    let home = Home::on_a_small_disk(24);
    home.calibrate();
    home.serve();
    home.run_line("volume create db gp3:size=1GiB").ok();
    let device = home.run_line("volume attach db").ok();
    let write = |bytes: &str| {
        let of = format!("of={}", device.line());
        let arguments = ["if=/dev/urandom", &of, "bs=1M", bytes, "oflag=direct", "status=none"];
        Command::new("dd").args(arguments).stderr(Stdio::null()).status().unwrap()
    };
    assert!(write("count=4").success());
    assert!(!write("count=64").success(), "more than the host's disk was written");
    let live = home.show("db")["live"].clone();
    assert!(live["host_errors"].as_u64().unwrap() > 0, "{live}");
    let host_errors = live["host_errors"].clone();
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    assert!(home.log().contains("disk is full"), "{}", home.log());
    let mut first = [0; 4096];
    std::fs::File::open(device.line()).unwrap().read_exact(&mut first).unwrap();
    assert_ne!(first, [0; 4096], "what was answered before is still there");
    let detached = home
        .run_line("volume detach db --json")
        .refused(1, &["requests of volume 'db' failed", "disk is full"]);
    assert_eq!(detached.json()["host_errors"], host_errors, "{}", detached.stdout);
    assert_eq!(home.show("db")["state"], "available");
    home.run_line("serve --stop").ok();
}

#[test]
fn a_calibration_without_room_leaves_nothing_and_does_not_keep_a_volume_from_being_attached() {
    if !can(&[Need::BlockDevices]) {
        return;
    }
    let home = Home::on_a_small_disk(24);
    home.serve();
    home.run_line("volume create db gp3:size=1GiB").ok();
    home.run_line("volume calibrate --quick").refused(3, &["needs 80 MiB", "hint: "]);
    assert!(!home.root().join("calibration.store").exists());
    let attached = home.run_line("volume attach db").ok();
    assert!(attached.stderr.contains("calibrating failed"), "{}", attached.stderr);
    assert!(!home.root().join("calibration.store").exists());
    assert!(home.show("db")["not_calibrated"].as_str().unwrap().contains("needs 80 MiB"));
    assert!(home.run_line("volume list").ok().stdout.contains("host not calibrated"));
    home.run_line("serve --stop").ok();
}
