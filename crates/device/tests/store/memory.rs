//! Memory of an open volume, measured in a process of its own.

use std::process::Command;

use serde_json::Value;

use crate::support::{Rng, store_with_volume};

const BLOCKS_WRITTEN: u64 = 100_000;
const CHILD: &str = "EBBTIDE_STORE_MEMORY_CHILD";

#[test]
fn an_open_volume_takes_little_memory_and_eight_bytes_a_block_at_most() {
    if std::env::var_os(CHILD).is_some() {
        return measure();
    }
    let me = std::env::current_exe().unwrap();
    let test = "memory::an_open_volume_takes_little_memory_and_eight_bytes_a_block_at_most";
    let child = Command::new(me).args([test, "--exact", "--nocapture"]).env(CHILD, "1").output().unwrap();
    let out = String::from_utf8_lossy(&child.stdout).into_owned();
    assert!(child.status.success(), "{out}{}", String::from_utf8_lossy(&child.stderr));
    let figure = |name: &str| -> u64 {
        let line =
            out.lines().find_map(|l| l.strip_prefix(name)).unwrap_or_else(|| panic!("no {name} in {out}"));
        line.trim().parse().unwrap()
    };
    let (before, empty, written) = (figure("before:"), figure("empty:"), figure("written:"));
    println!(
        "KiB: {before} before, {empty} with the volume open, {written} after {BLOCKS_WRITTEN} scattered blocks"
    );
    assert!(empty - before < 16 << 10, "an open, empty volume takes {} KiB", empty - before);
    let least = BLOCKS_WRITTEN * 9 / 10; // a few blocks are hit twice
    assert!(written - empty < (16 << 10) + least * 8 / 1024, "{} KiB more", written - empty);
}

fn measure() {
    println!();
    println!("before: {}", resident_kib());
    let (_dir, store) = store_with_volume(64 << 40);
    let volume = store.open_volume("v").unwrap();
    println!("empty: {}", resident_kib());
    let mut rng = Rng(1);
    for i in 0..BLOCKS_WRITTEN {
        // 100 GiB full of holes, the worst that a bitmap can be asked for, and a snapshot amid it.
        volume.write_at(&[1; 4096], rng.below(100 << 18) * 4096).unwrap();
        if i == BLOCKS_WRITTEN / 2 {
            store.snapshot("v", "s", Value::Null).unwrap();
        }
    }
    store.settle();
    println!("written: {}", resident_kib());
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse().unwrap()
}
