//! Processes that keep the cores busy.

use std::process::{Child, Command};

/// Endless loops, ended on drop.
pub(crate) struct BusyLoops(Vec<Child>);

impl BusyLoops {
    pub(crate) fn new(count: usize) -> Self {
        let busy_loop =
            || Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("there is a shell");
        Self((0..count).map(|_| busy_loop()).collect())
    }
}

impl Drop for BusyLoops {
    fn drop(&mut self) {
        for busy_loop in &mut self.0 {
            let _ = busy_loop.kill();
            let _ = busy_loop.wait();
        }
    }
}
