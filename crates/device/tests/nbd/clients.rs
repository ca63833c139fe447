//! libnbd's programs, qemu's, and fio.

use std::{fs, os::unix::fs::FileExt};

use serde_json::Value;

use crate::{MIB, Served, installed, pattern, run};

fn json(program: &str, arguments: &[&str]) -> Value {
    serde_json::from_str(&run(program, arguments)).unwrap()
}

/// A sparse image: data at three places, holes between and behind them.
fn sparse_image(served: &Served, mib: u64) -> String {
    let path = served.path("image");
    let file = fs::File::create(&path).unwrap();
    file.set_len(mib * MIB).unwrap();
    file.write_all_at(&pattern(3 << 20, 1), 0).unwrap();
    file.write_all_at(&pattern(64 << 10, 2), 10 * MIB).unwrap();
    file.write_all_at(&pattern(4096, 3), mib * MIB - 4096).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn nbdinfo_sees_size_flags_block_sizes_and_contexts() {
    if !installed("nbdinfo") {
        return;
    }
    let served = Served::new(64, 0);
    served.store.snapshot("vol", "monday", Value::Null).unwrap();
    let info = json("nbdinfo", &["--json", &served.uri()]);
    assert_eq!(info["protocol"], "newstyle-fixed");
    assert_eq!(info["structured"], true);
    assert_eq!(info["TLS"], false);
    let export = &info["exports"][0];
    assert_eq!(export["export-name"], "vol");
    assert_eq!(export["description"], "a volume under test");
    assert_eq!(export["export-size"], 64 * MIB);
    assert_eq!(export["block_size_minimum"], 512);
    assert_eq!(export["block_size_preferred"], 4096);
    assert_eq!(export["block_size_maximum"], 32 << 20);
    for flag in ["can_multi_conn", "can_flush", "can_fua", "can_df", "can_trim", "can_zero", "can_fast_zero"]
    {
        assert_eq!(export[flag], true, "{flag}");
    }
    assert_eq!(export["is_read_only"], false);
    assert_eq!(export["is_rotational"], false);
    let contexts = export["contexts"].as_array().unwrap();
    assert_eq!(contexts, &["base:allocation", "qemu:dirty-bitmap:monday"]);
    assert!(run("nbdinfo", &["--list", &served.uri()]).contains("export=\"vol\""));
    assert_eq!(run("nbdinfo", &["--size", &served.uri()]).trim(), (64 * MIB).to_string());
}

#[test]
fn a_volume_on_tcp_is_found_at_its_uri() {
    if !installed("nbdinfo") {
        return;
    }
    let served = Served::new(8, 0);
    let address = ebbtide_device::nbd::NbdAddress::parse("tcp:127.0.0.1:0").unwrap();
    let options = ebbtide_device::nbd::NbdOptions::new("a volume/1");
    let volume = std::sync::Arc::clone(&served.volume);
    let server = ebbtide_device::nbd::NbdServer::listen(volume, &address, options).unwrap();
    assert_eq!(run("nbdinfo", &["--size", &server.uri()]).trim(), (8 * MIB).to_string());
    let port = server.address().to_string();
    assert!(!port.ends_with(":0"), "{port}");
}

#[test]
fn nbdcopy_brings_an_image_there_and_back_with_its_holes() {
    if !installed("nbdcopy") {
        return;
    }
    for service_us in [0, 300] {
        let served = Served::new(64, service_us);
        let image = sparse_image(&served, 64);
        let back = served.path("back");
        let back = back.to_str().unwrap();
        run("nbdcopy", &["--flush", &image, &served.uri()]);
        run("nbdcopy", &[&served.uri(), back]);
        assert!(fs::read(&image).unwrap() == fs::read(back).unwrap(), "the copies differ");
        let map = json("nbdinfo", &["--map", "--json", &served.uri()]);
        let data: u64 = map
            .as_array()
            .unwrap()
            .iter()
            .filter(|extent| extent["type"] == 0)
            .map(|extent| extent["length"].as_u64().unwrap())
            .sum();
        assert!((3 * MIB..4 * MIB).contains(&data), "{data} bytes of data in {map}");
    }
}

#[test]
fn qemu_img_converts_compares_and_maps() {
    if !installed("qemu-img") {
        return;
    }
    let served = Served::new(64, 100);
    let image = sparse_image(&served, 64);
    let uri = served.uri();
    let info = json("qemu-img", &["info", "--output=json", &uri]);
    assert_eq!(info["virtual-size"], 64 * MIB);
    run("qemu-img", &["convert", "-n", "-f", "raw", "-O", "raw", &image, &uri]);
    run("qemu-img", &["compare", "-f", "raw", "-F", "raw", &image, &uri]);
    let map = json("qemu-img", &["map", "-f", "raw", "--output=json", &uri]);
    let data = map.as_array().unwrap().iter().filter(|extent| extent["data"] == true);
    assert_eq!(data.count(), 3, "{map}");
    run(
        "qemu-img",
        &["bench", "-f", "raw", "-c", "2000", "-d", "32", "-s", "16k", "-w", "--flush-interval=100", &uri],
    );
}

#[test]
fn nbdinfo_shows_in_words_what_changed_since_a_snapshot() {
    if !installed("nbdinfo") || !installed("qemu-io") {
        return;
    }
    let served = Served::new(64, 0);
    let write = |command: &str| run("qemu-io", &["-f", "raw", "-c", command, &served.uri()]);
    write("write 0 1M");
    served.store.snapshot("vol", "monday", Value::Null).unwrap();
    write("write 512k 64k");
    write("discard 8M 64k");
    write("write 20M 4k");
    let map = json("nbdinfo", &["--map=qemu:dirty-bitmap:monday", "--json", &served.uri()]);
    let dirty: Vec<_> = map
        .as_array()
        .unwrap()
        .iter()
        .filter(|extent| extent["type"] == 1)
        .map(|extent| (extent["offset"].as_u64().unwrap(), extent["length"].as_u64().unwrap()))
        .collect();
    assert!(dirty.contains(&(512 << 10, 64 << 10)) && dirty.contains(&(20 * MIB, 4096)), "{map}");
    assert_eq!(map[0]["description"], "clean");
    assert_eq!(map[1]["description"], "dirty");
}

#[test]
fn fio_verifies_what_it_wrote_over_several_connections() {
    if !installed("fio") {
        return;
    }
    for service_us in [0, 200] {
        let served = Served::new(128, service_us);
        let uri = format!("--uri={}", served.uri());
        let common = [
            "--ioengine=nbd",
            uri.as_str(),
            "--output-format=json",
            "--verify_fatal=1",
            "--verify_state_save=0",
        ];
        let jobs: [&[&str]; 2] = [
            &[
                "--name=small",
                "--rw=randwrite",
                "--bs=512-64k",
                "--iodepth=32",
                "--size=128M",
                "--io_size=64M",
                "--verify=crc32c",
                "--randrepeat=1",
            ],
            &[
                "--name=big",
                "--rw=randrw",
                "--bs=2M",
                "--iodepth=8",
                "--size=128M",
                "--verify=crc32c",
                "--fsync=16",
            ],
        ];
        for job in jobs {
            let report = served.path("report");
            let output = format!("--output={}", report.display());
            run("fio", &[&common[..], &[&output], job].concat());
            let report: Value = serde_json::from_slice(&fs::read(report).unwrap()).unwrap();
            let write = &report["jobs"][0]["write"];
            assert!(write["total_ios"].as_u64().unwrap() > 0, "{write}");
            assert_eq!(report["jobs"][0]["error"], 0);
        }
        let parallel = [
            "--name=many",
            "--numjobs=4",
            "--rw=randwrite",
            "--bs=16k",
            "--iodepth=8",
            "--size=32M",
            "--offset_increment=32M",
            "--verify=crc32c",
            "--group_reporting",
        ];
        run("fio", &[&common[..], &parallel].concat());
    }
}
