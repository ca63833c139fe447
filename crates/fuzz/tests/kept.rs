//! Every kept input, and every sample, is read by its target without a fault.
#![allow(clippy::unwrap_used)] // in a test a failed step is a failed test

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use ebbtide_fuzz::{CANARY, TARGETS, Target};

/// The most that the kept inputs may have together, bytes.
const MOST_BYTES: u64 = 256 << 10;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten();
    let mut files: Vec<PathBuf> =
        entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).collect();
    files.sort();
    files
}

fn corpus(target: &Target) -> PathBuf {
    root().join("crates/fuzz/corpus").join(target.name)
}

#[test]
fn kept_inputs_and_samples_are_read_without_a_fault() {
    for target in TARGETS {
        let kept = files(&corpus(&target));
        let samples: Vec<PathBuf> = target.samples.iter().flat_map(|dir| files(&root().join(dir))).collect();
        assert!(!kept.is_empty() || !samples.is_empty(), "{} has nothing to begin with", target.name);
        for path in kept.iter().chain(&samples) {
            let bytes = fs::read(path).unwrap();
            println!("{}: {}", target.name, path.display());
            (target.run)(&bytes);
            // Cut in the middle, as a file is that is still being written.
            (target.run)(&bytes[..bytes.len() / 2]);
        }
        (target.run)(b"");
    }
}

#[test]
fn the_corpora_are_small_and_each_is_of_a_target() {
    let mut bytes = 0;
    for entry in fs::read_dir(root().join("crates/fuzz/corpus")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(TARGETS.iter().any(|target| target.name == name), "{} is of no target", path.display());
        bytes += files(&path).iter().map(|file| file.metadata().unwrap().len()).sum::<u64>();
    }
    assert!(bytes <= MOST_BYTES, "{bytes} bytes");
}

#[test]
fn the_planted_fault_is_one() {
    (CANARY.run)(b"eb");
    catch_unwind(|| (CANARY.run)(b"ebb!")).unwrap_err();
}
