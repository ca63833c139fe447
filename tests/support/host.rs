//! A host of our own in a temporary home, driven through the real command line. Live tests, live
//! benches and the demonstration share it.
#![allow(dead_code, clippy::unwrap_used)] // each user needs a part, and fails by a panic

use std::{
    env,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

/// What a live test needs; the missing thing where there is one.
fn missing() -> Option<&'static str> {
    let have = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !rustix::process::geteuid().is_root() {
        return Some("root");
    }
    [("/dev/fuse", "/dev/fuse"), ("/dev/loop-control", "loop devices")]
        .into_iter()
        .find(|(path, _)| !Path::new(path).exists())
        .map(|(_, name)| name)
        .or_else(|| (!have("fio")).then_some("fio"))
}

/// Reports why a live test cannot run here, in the words that the test runner counts.
pub(crate) fn skipped() -> bool {
    let missing = missing();
    if let Some(what) = missing {
        println!("SKIPPED: {what} is missing");
    }
    missing.is_some()
}

/// Live cases whose timing counts run one at a time, since they share two cores.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The program: the one that cargo built for this test or bench, or the one next to an example.
pub(crate) fn ebbtide() -> Command {
    let sibling = || Some(env::current_exe().ok()?.parent()?.parent()?.join("ebbtide"));
    Command::new(option_env!("CARGO_BIN_EXE_ebbtide").map(PathBuf::from).or_else(sibling).unwrap())
}

/// A running `ebbtide serve` with a home of its own.
pub(crate) struct Host {
    home: TempDir,
    serve: Child,
}

impl Host {
    pub(crate) fn start() -> Self {
        let home = TempDir::with_prefix("ebbtide-live-").unwrap();
        let serve = Self::spawn(home.path());
        Self { home, serve }
    }

    fn spawn(home: &Path) -> Child {
        let mut serve = ebbtide()
            .arg("--home")
            .arg(home)
            .arg("serve")
            .env("EBBTIDE_LOG", "error")
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while !home.join("control.sock").exists() || !answers(home) {
            assert!(serve.try_wait().unwrap().is_none(), "serve ended at once");
            assert!(Instant::now() < deadline, "serve does not answer");
            thread::sleep(Duration::from_millis(10));
        }
        serve
    }

    /// Kills the host as the kernel's OOM killer would.
    pub(crate) fn kill(&mut self) {
        self.serve.kill().unwrap();
        self.serve.wait().unwrap();
    }

    /// Starts another host on the same home after [`Self::kill`] or [`Self::stop`].
    pub(crate) fn restart(&mut self) {
        self.serve = Self::spawn(self.home.path());
    }

    /// Stops the host as a user would, unless it has ended: its number may be another process's by then.
    pub(crate) fn stop(&mut self) {
        if self.serve.try_wait().is_ok_and(|ended| ended.is_some()) {
            return;
        }
        let pid = rustix::process::Pid::from_child(&self.serve);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.serve.try_wait().is_ok_and(|ended| ended.is_none()) {
            if Instant::now() > deadline {
                let _ = self.serve.kill();
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.serve.id()
    }

    /// Runs a command and gives back what it printed.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        ebbtide().arg("--home").arg(self.home.path()).args(args).output().unwrap()
    }

    /// Runs a command that must succeed and gives back its JSON.
    #[track_caller]
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let output = self.run(&[&["--json"], args].concat());
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{args:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
        let value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{args:?}: {error} in {text}"));
        ebbtide_testing::schema::assert_documented(args, &value);
        value
    }

    /// Creates a volume and attaches it as a block device.
    pub(crate) fn attached(&self, name: &str, spec: &str, attach: &[&str]) -> PathBuf {
        self.json(&["volume", "create", name, spec]);
        self.attach(name, attach)
    }

    pub(crate) fn attach(&self, name: &str, more: &[&str]) -> PathBuf {
        let attached = self.json(&[&["volume", "attach", name], more].concat());
        PathBuf::from(
            attached["attachment"]["device"].as_str().unwrap_or_else(|| panic!("no device in {attached}")),
        )
    }
}

fn answers(home: &Path) -> bool {
    let list = ebbtide().arg("--home").arg(home).args(["volume", "list"]).output();
    list.is_ok_and(|output| output.status.success())
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stop();
    }
}
