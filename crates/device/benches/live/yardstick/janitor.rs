//! Takes down what a run leaves behind, however it ends: also by Ctrl-C, by `kill -9` and by a panic within a drop.

use std::{
    fs,
    io::{self, Read},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use ebbtide_device::{fuse, loopdev};

/// The word that makes this program a janitor. The directories follow.
pub(crate) const WORD: &str = "--clean-up-below";

/// A process that waits for the end of this one, and then cleans up. Dropped, it has done that.
pub(crate) struct Janitor(Child);

impl Janitor {
    /// Starts it for everything below `dirs`, which are canonical paths.
    pub(crate) fn start(dirs: &[&Path]) -> Self {
        let program = std::env::current_exe().expect("this program has a path");
        // Ctrl-C goes to the terminal's group. The kernel closes the pipe when this process ends.
        let child = Command::new(program)
            .arg(WORD)
            .args(dirs)
            .stdin(Stdio::piped())
            .process_group(0)
            .spawn()
            .expect("this program can be started");
        Self(child)
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// What the janitor does.
pub(crate) fn clean_up(dirs: &[PathBuf]) {
    let _ = io::stdin().read_to_end(&mut Vec::new());
    let is_ours = |path: &Path| dirs.iter().any(|dir| path.starts_with(dir));
    for device in loopdev::list().iter().filter(|device| is_ours(&device.backing)) {
        if let Err(error) = loopdev::detach_leftover(device) {
            eprintln!("{error}");
        }
    }
    let mounts = ebbtide_proc::mounts().unwrap_or_default();
    for mount in mounts.iter().rev().filter(|mount| is_ours(&mount.dir)) {
        if let Err(error) = fuse::unmount_leftover(&mount.dir) {
            eprintln!("{error}");
        }
    }
    for dir in dirs {
        // It is gone already after a run that ended in order.
        let _ = fs::remove_dir_all(dir);
    }
}
