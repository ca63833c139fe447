//! Servers that are started with a fault: a copy of a fresh data directory, an option file, a file system of its own.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::EBBTIDE;
use ebbtide_load::{Endpoint, Session, Target};
use ebbtide_mysql::{Binary, Layout, ServerPlan, WorkPaths, initialize};

/// A server program, and a fresh data directory of it.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) binary: Binary,
    template: PathBuf,
}

/// The names of all programs, and what `Binary::detect` calls them.
pub(crate) const PROGRAMS: [(&str, &str); 4] = [
    ("mariadb-10.11", "system"),
    ("mariadb-11.8", "mariadb-11.8"),
    ("mysql-8.0", "mysql-8.0"),
    ("mysql-9.7", "mysql-9.7"),
];

impl Program {
    /// Finds a program and makes a data directory; None, with a line, where it is not installed.
    pub(crate) fn find(name: &'static str, detect: &str, dir: &Path) -> Option<Self> {
        let path = (detect != "system").then(|| Path::new(detect));
        let binary = match Binary::detect(path) {
            Ok(binary) => binary,
            Err(error) => {
                println!("SKIPPED: the server {name}, which `./dev servers` fetches ({error})");
                return None;
            }
        };
        let template = dir.join(format!("template-{name}"));
        let layout = Layout::single(template.clone());
        let work = WorkPaths { dir: dir.join("w"), records: dir.join("records") };
        let plan = ServerPlan::new(binary.clone(), layout, work);
        initialize(&plan, &|_| {}).unwrap_or_else(|error| panic!("{name}: {error}"));
        Some(Self { name, binary, template })
    }
}

/// Options by name, so that a fault takes the place of a good setting.
pub(crate) type Options = BTreeMap<String, String>;

/// The text of an option file. A name that ends in `#2` is a second line of the option.
fn option_file(options: &Options) -> String {
    let line = |(name, value): (&String, &String)| format!("{}={value}\n", name.trim_end_matches("#2"));
    options.iter().map(line).collect::<String>()
}

/// A server that runs; it ends with this.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    pub(crate) socket: PathBuf,
    pub(crate) data: PathBuf,
}

impl Running {
    /// Copies the template to `data` and starts a server on it; `work` is for its socket and its log.
    pub(crate) fn start(
        program: &Program,
        data: &Path,
        work: &Path,
        options: &Options,
    ) -> Result<Self, String> {
        let _ = fs::remove_dir_all(data);
        let copied =
            Command::new("cp").args(["-a", "--reflink=auto"]).arg(&program.template).arg(data).status();
        assert!(copied.is_ok_and(|status| status.success()), "cannot copy the data directory");
        fs::create_dir_all(work).unwrap();
        Self::run(program, data, work, options)
    }

    /// Ends the server as its own users do, and starts it again on the same data with other options.
    pub(crate) fn restart(&mut self, program: &Program, options: &Options) -> Result<(), String> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)
            .map_err(|error| error.to_string())?;
        let end = Instant::now() + Duration::from_secs(60);
        while self.child.try_wait().unwrap().is_none() {
            if Instant::now() > end {
                return Err(format!("{} does not end", program.name));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let (data, work) = (self.data.clone(), self.socket.parent().unwrap().to_owned());
        *self = Self::run(program, &data, &work, options)?;
        Ok(())
    }

    fn run(program: &Program, data: &Path, work: &Path, options: &Options) -> Result<Self, String> {
        let (socket, log, file) = (work.join("s.sock"), work.join("error.log"), work.join("my.cnf"));
        let _ = fs::remove_file(&log);
        let head = format!(
            "[mysqld]\ndatadir={}\nsocket={}\npid-file={}\nlog-error={}\nuser=root\nskip-networking\n",
            data.display(),
            socket.display(),
            work.join("pid").display(),
            log.display()
        );
        fs::write(&file, head + &option_file(options)).unwrap();
        let mut command = Command::new(&program.binary.path);
        command.arg(format!("--defaults-file={}", file.display()));
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut running = Self { child: child.unwrap(), socket, data: data.to_owned() };
        let end = Instant::now() + Duration::from_secs(60);
        while running.try_session().is_none() {
            if Instant::now() > end || running.child.try_wait().unwrap().is_some() {
                let text = fs::read_to_string(&log).unwrap_or_default();
                let errors: Vec<&str> = text.lines().filter(|line| line.contains("ERROR")).take(3).collect();
                return Err(format!("{} does not start: {}", program.name, errors.join(" / ")));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(running)
    }

    fn target(&self) -> Target {
        Target {
            endpoints: vec![Endpoint::Unix(self.socket.clone())],
            user: "root".into(),
            password: String::new(),
            database: String::new(),
            tls: None,
        }
    }

    fn try_session(&self) -> Option<Session> {
        let target = self.target();
        Session::open_without_database(&target, &target.endpoints[0]).ok()
    }

    /// A connection.
    pub(crate) fn session(&self) -> Session {
        self.try_session().expect("the server answers")
    }

    /// Processor time of the server, s.
    pub(crate) fn cpu_s(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        let ticks = |place: usize| fields[place].parse::<f64>().unwrap();
        (ticks(11) + ticks(12)) / rustix::param::clock_ticks_per_second() as f64
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A file system in a file, mounted; it goes with this.
#[derive(Debug)]
pub(crate) struct Mounted {
    point: PathBuf,
    file: PathBuf,
}

impl Mounted {
    /// Makes and mounts an ext4 of so many MiB.
    pub(crate) fn make(dir: &Path, name: &str, mib: u64, options: &str) -> Self {
        let (file, point) = (dir.join(format!("{name}.img")), dir.join(name));
        fs::File::create(&file).unwrap().set_len(mib << 20).unwrap();
        fs::create_dir_all(&point).unwrap();
        run("mkfs.ext4", &["-q", "-m", "0", &file.to_string_lossy()]);
        run("mount", &["-o", &format!("loop,{options}"), &file.to_string_lossy(), &point.to_string_lossy()]);
        Self { point, file }
    }

    pub(crate) fn point(&self) -> &Path {
        &self.point
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.point).status();
        let _ = fs::remove_file(&self.file);
    }
}

/// A volume of Ebbtide's own, served from a home of its own and mounted; it goes with this.
#[derive(Debug)]
pub(crate) struct OwnVolume {
    home: String,
    point: PathBuf,
}

impl OwnVolume {
    /// Makes and mounts a volume of a spec. An error where this machine cannot carry it now.
    pub(crate) fn make(dir: &Path, spec: &str) -> Result<Self, String> {
        let point = dir.join("volume");
        let own = Self { home: format!("--home={}", dir.join("home").display()), point };
        fs::create_dir_all(dir.join("home")).unwrap();
        run(EBBTIDE, &["serve", "--detach", &own.home]);
        run(EBBTIDE, &["volume", "create", "db", spec, &own.home]);
        let mount = own.point.to_string_lossy().into_owned();
        try_run(EBBTIDE, &["volume", "attach", "db", "--mount", &mount, "--fs", "ext4", &own.home])?;
        Ok(own)
    }

    pub(crate) fn point(&self) -> &Path {
        &self.point
    }

    /// Sets a fault, such as `latency=12ms`.
    pub(crate) fn fault(&self, fault: &str) {
        run(EBBTIDE, &["volume", "fault", "db", fault, &self.home]);
    }
}

impl Drop for OwnVolume {
    fn drop(&mut self) {
        for words in [
            &["volume", "fault", "db", "clear"][..],
            &["volume", "detach", "db"],
            &["volume", "delete", "db"],
        ] {
            let _ = Command::new(EBBTIDE).args(words).arg(&self.home).output();
        }
        let _ = Command::new(EBBTIDE).args(["serve", "--stop", "--force", &self.home]).output();
        let _ = fs::remove_dir_all(self.home.trim_start_matches("--home="));
    }
}

/// Runs a program that has to succeed.
pub(crate) fn run(program: &str, words: &[&str]) {
    try_run(program, words).unwrap_or_else(|error| panic!("{error}"));
}

/// Runs a program, or says how it failed.
fn try_run(program: &str, words: &[&str]) -> Result<(), String> {
    let out = Command::new(program).args(words).output().map_err(|error| format!("{program}: {error}"))?;
    if out.status.success() {
        return Ok(());
    }
    Err(format!("{program} {words:?}: {}", String::from_utf8_lossy(&out.stderr).trim()))
}
