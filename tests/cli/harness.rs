//! Homes for tests, and running the program in them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use ebbtide_testing::schema::assert_documented;

/// The program under test.
pub(crate) const EBBTIDE: &str = env!("CARGO_BIN_EXE_ebbtide");

/// What one run of the program did.
#[derive(Debug)]
pub(crate) struct Ran {
    /// What it was run with.
    arguments: Vec<String>,
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            arguments: Vec::new(),
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Exit code 0, or the test ends with everything that the program printed.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, 0, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    /// The exit code and every one of these texts on standard error.
    #[track_caller]
    pub(crate) fn refused(self, code: i32, texts: &[&str]) -> Self {
        assert_eq!(self.code, code, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        for text in texts {
            assert!(self.stderr.contains(text), "'{text}' is not in: {}", self.stderr);
        }
        self
    }

    /// A plan that was shown: exit code 0, or 3 where the machine of the test lacks something that the plan names.
    #[track_caller]
    pub(crate) fn planned(self) -> Self {
        let names_it = self.code == 3 && self.stdout.contains("missing");
        assert!(self.code == 0 || names_it, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    /// The same with the arguments, by which its schema is known.
    pub(crate) fn with(self, arguments: &[&str]) -> Self {
        Self { arguments: arguments.iter().map(ToString::to_string).collect(), ..self }
    }

    /// The JSON that it printed, which is as docs/json documents it.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let value =
            serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.stdout));
        assert_documented(&self.arguments.iter().map(String::as_str).collect::<Vec<_>>(), &value);
        value
    }

    pub(crate) fn line(&self) -> &str {
        self.stdout.trim()
    }
}

/// A home in a temporary directory. Its server, if it has one, ends with it.
#[derive(Debug)]
pub(crate) struct Home {
    /// Unmounted before the directory that it is in goes.
    _disk: Option<SmallDisk>,
    dir: TempDir,
}

/// A file system in memory, for as long as this lives.
#[derive(Debug)]
struct SmallDisk(PathBuf);

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

impl Home {
    /// A home without a server.
    pub(crate) fn new() -> Self {
        Self { _disk: None, dir: tempfile::Builder::new().prefix("ebbtide-cli-").tempdir().unwrap() }
    }

    /// A home without a server, on a disk of its own with so many MiB. Takes root.
    pub(crate) fn on_a_small_disk(mib: u32) -> Self {
        let mut home = Self::new();
        let root = home.root();
        std::fs::create_dir(&root).unwrap();
        tool("mount", &["-t", "tmpfs", "-o", &format!("size={mib}m"), "none", root.to_str().unwrap()]);
        home._disk = Some(SmallDisk(root));
        home
    }

    /// A home without a server whose host is calibrated already, so that attaching takes no time.
    pub(crate) fn calibrated() -> Self {
        let home = Self::new();
        home.calibrate();
        home
    }

    /// The same with a server.
    pub(crate) fn served() -> Self {
        let home = Self::calibrated();
        home.serve();
        home
    }

    /// Gives it a calibration that was made already.
    pub(crate) fn calibrate(&self) {
        std::fs::create_dir_all(self.root()).unwrap();
        std::fs::write(self.root().join("calibration.json"), calibration().to_string()).unwrap();
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// A path next to the home, for mount points and sockets.
    pub(crate) fn sibling(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(EBBTIDE);
        command.args(arguments).arg("--home").arg(self.root()).stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(arguments).output().unwrap()).with(arguments)
    }

    /// As [`Self::run_line`], with standard output on a disk that is full.
    pub(crate) fn run_into_a_full_disk(&self, words: &str) -> Ran {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = self.command(&words.split_whitespace().collect::<Vec<_>>());
        Ran::of(command.stdout(full).output().unwrap())
    }

    /// As [`Self::run_line`], with standard output a pipe that nobody reads.
    pub(crate) fn run_into_a_closed_pipe(&self, words: &str) -> Ran {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = self.command(&words.split_whitespace().collect::<Vec<_>>());
        Ran::of(command.stdout(writer).output().unwrap())
    }

    /// Words separated by blanks, for commands without any inside them.
    pub(crate) fn run_line(&self, words: &str) -> Ran {
        self.run(&words.split_whitespace().collect::<Vec<_>>())
    }

    /// Starts the server; answers its process number.
    pub(crate) fn serve(&self) -> u32 {
        let started = self.run_line("serve --detach --json").ok();
        u32::try_from(started.json()["pid"].as_u64().unwrap()).unwrap()
    }

    pub(crate) fn show(&self, volume: &str) -> Value {
        self.run(&["volume", "show", volume, "--json"]).ok().json()
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.root().join("serve.log")).unwrap_or_default()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if self.root().join("control.sock").exists() {
            let stopped = self.run_line("serve --stop --force");
            if stopped.code > 1 && !std::thread::panicking() {
                panic!("the server did not stop: {}\n{}", stopped.stderr, self.log());
            }
        }
        if std::thread::panicking() {
            eprintln!("the server's log:\n{}", self.log());
        }
    }
}

/// Waits for what happens beside this test, a minute at most; `awaited` is what did not, in the words of the failure.
#[track_caller]
pub(crate) fn wait_until(awaited: &str, mut happened: impl FnMut() -> bool) {
    let give_up = Instant::now() + Duration::from_secs(60);
    while !happened() {
        assert!(Instant::now() < give_up, "in a minute not seen: {awaited}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Kills a process as the kernel's out-of-memory killer would, and waits until it is gone: its sockets
/// are open until its last thread has ended, which may wait for a volume of its own for ever.
pub(crate) fn kill_9(pid: u32) {
    assert!(Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
    let main_ended = || match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Err(_) => true,
        Ok(stat) => stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')),
    };
    let threads = || std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    let give_up = Instant::now() + Duration::from_secs(5);
    while !main_ended() || (threads() > 1 && Instant::now() < give_up) {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A calibration, made once for all tests. Its figures are raised to those of a host that carries
/// 100,000 IOPS, so that a busy machine does not refuse what a test needs attached.
pub(crate) fn calibration() -> &'static Value {
    static CALIBRATION: OnceLock<Value> = OnceLock::new();
    CALIBRATION.get_or_init(|| {
        let home = Home::new();
        home.serve();
        let mut measured = home.run_line("volume calibrate --quick --json").ok().json();
        measured["quick"] = false.into();
        let paths = ["block", "nbd"].map(|path| measured[path].take());
        for (name, mut path) in ["block", "nbd"].into_iter().zip(paths) {
            for (figure, value) in path.as_object_mut().into_iter().flatten() {
                *value = if figure.ends_with("_us") { 20.0 } else { 100_000.0 }.into();
            }
            measured[name] = path;
        }
        measured
    })
}

/// Whether a test that needs these can run; prints what is missing where not.
pub(crate) fn can(needs: &[Need]) -> bool {
    let missing: Vec<_> = needs.iter().filter_map(|need| need.missing()).collect();
    if !missing.is_empty() {
        println!("SKIPPED: {}", missing.join("; "));
    }
    missing.is_empty()
}

/// Something that a test needs.
#[derive(Debug)]
pub(crate) enum Need {
    /// Root, FUSE and loop devices.
    BlockDevices,
    /// A program.
    Tool(&'static str),
}

impl Need {
    fn missing(&self) -> Option<String> {
        match self {
            Self::BlockDevices if !rustix::process::geteuid().is_root() => Some("not root".into()),
            Self::BlockDevices => ["/dev/fuse", "/dev/loop-control"]
                .iter()
                .find(|path| std::fs::File::options().read(true).write(true).open(path).is_err())
                .map(|path| format!("no {path}")),
            Self::Tool(name) => {
                let known = ["/usr/bin", "/usr/sbin", "/bin", "/sbin", "/usr/local/bin"];
                let found = known.iter().any(|dir| Path::new(dir).join(name).exists());
                (!found).then(|| format!("{name} is not installed"))
            }
        }
    }
}

/// Runs a tool that the test relies on.
#[track_caller]
pub(crate) fn tool(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Whether anything in the mount table, or any loop device, belongs to a home.
pub(crate) fn left_of(root: &Path) -> Vec<String> {
    let root = root.to_str().unwrap();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mut left: Vec<_> = mounts.lines().filter(|line| line.contains(root)).map(str::to_owned).collect();
    for entry in std::fs::read_dir("/sys/block").unwrap() {
        let file = entry.unwrap().path().join("loop/backing_file");
        let backing = std::fs::read_to_string(&file).unwrap_or_default();
        if backing.contains(root) {
            left.push(format!("{}: {backing}", file.display()));
        }
    }
    left
}
