//! Processes that keep the cores busy.

use std::process::{Child, Command};

/// Endless loops, ended on drop.
pub(crate) struct Hogs(Vec<Child>);

impl Hogs {
    pub(crate) fn new(count: usize) -> Self {
        let hog =
            || Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("there is a shell");
        Self((0..count).map(|_| hog()).collect())
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        for hog in &mut self.0 {
            let _ = hog.kill();
            let _ = hog.wait();
        }
    }
}
