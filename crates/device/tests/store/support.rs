//! What the store's tests share.

use std::path::Path;

use ebbtide_device::store::{StoreOptions, VolumeStore, check};
use serde_json::Value;
use tempfile::TempDir;

/// A small deterministic generator; tests print its seed.
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// A seed from the environment (`EBBTIDE_SEED`) or from the clock, printed so that a failure can be repeated.
pub(crate) fn seed(of: &str) -> u64 {
    let given = std::env::var("EBBTIDE_SEED").ok().and_then(|s| s.parse().ok());
    let seed = given.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        u64::from(now.subsec_nanos()) ^ now.as_secs()
    });
    println!("{of}: repeat with EBBTIDE_SEED={seed}");
    seed
}

/// A new store with one volume, `v`.
pub(crate) fn store_with_volume(size_bytes: u64) -> (TempDir, VolumeStore) {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store.create_volume("v", size_bytes, Value::Null).unwrap();
    (dir, store)
}

pub(crate) fn open(dir: &Path) -> VolumeStore {
    VolumeStore::open(dir, StoreOptions::default()).unwrap()
}

pub(crate) fn assert_clean(dir: &Path) {
    let report = check(dir, None).unwrap();
    assert!(report.is_clean(), "{:#?}", report.damages);
}

/// Names of the files of layers, sorted.
pub(crate) fn layer_files(dir: &Path) -> Vec<String> {
    let names = std::fs::read_dir(dir.join("layers")).unwrap().map(|e| e.unwrap().file_name());
    let mut names: Vec<String> = names.map(|n| n.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Reports why a test does not run here.
pub(crate) fn skipped(what: &str) {
    println!("SKIPPED: {what}");
}
