//! Directories that tests of several processes share one after the other.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Locks that end with the process.
static HELD: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// The first directory `NAME-1`, `NAME-2` and so on in `parent` that no other process has; it is this process's own until it ends,
/// and the next one finds what it left. The directory itself may not exist yet.
///
/// Two processes of the same test program may run at the same time: `./dev test` divides long programs.
#[must_use]
pub fn own_place(parent: &Path, name: &str) -> PathBuf {
    fs::create_dir_all(parent).unwrap();
    for number in 1_u32.. {
        let lock = File::create(parent.join(format!("{name}-{number}.lock"))).unwrap();
        if lock.try_lock().is_ok() {
            HELD.lock().unwrap().push(lock);
            return parent.join(format!("{name}-{number}"));
        }
    }
    unreachable!("there are fewer processes than numbers")
}
