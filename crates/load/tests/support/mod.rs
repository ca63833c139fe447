//! A MariaDB of the test's own: its own data directory, socket and port, run without privileges.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use ebbtide_load::{
    Cancel, Distribution, Endpoint, PrepareOptions, RunOptions, RunReport, Schema, Session, Target, prepare,
};

/// Servers share the machine badly: one test with a server at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A running server; ends with the value.
pub(crate) struct Server {
    child: Child,
    launch: Launch,
    dir: tempfile::TempDir,
    pub(crate) port: u16,
    _turn: MutexGuard<'static, ()>,
}

/// How a server is started.
struct Launch {
    program: PathBuf,
    arguments: Vec<String>,
    data: PathBuf,
    log: PathBuf,
}

impl Launch {
    fn command(&self, data: &Path) -> Command {
        let log = || File::options().create(true).append(true).open(&self.log).unwrap();
        let mut command = Command::new(&self.program);
        command.arg("--no-defaults").args(account()).arg(format!("--datadir={}", data.display()));
        command.args(&self.arguments).stdin(Stdio::null()).stdout(log()).stderr(log());
        command
    }

    fn serve(&self, port: u16) -> Child {
        let mut command = self.command(&self.data);
        command.arg(format!("--socket={}", self.data.join("s").display()));
        command.arg(format!("--pid-file={}", self.data.join("pid").display()));
        command.args([format!("--port={port}"), "--bind-address=127.0.0.1".into()]).spawn().unwrap()
    }

    fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Server {
    /// Starts one, or prints what is missing and returns None.
    pub(crate) fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// The same with settings.
    pub(crate) fn start_with(settings: &[&str]) -> Option<Self> {
        let (Some(install), Some(mariadbd)) = (find("mariadb-install-db"), find("mariadbd")) else {
            println!("SKIPPED: mariadbd and mariadb-install-db (apt install mariadb-server)");
            return None;
        };
        let defaults = ["--max-connections=600", "--innodb-flush-log-at-trx-commit=2"];
        let settings = defaults.iter().chain(settings).map(|&setting| setting.to_owned()).collect();
        Some(Self::bring_up(mariadbd, settings, |_, data| copy_mariadb_template(&install, data)))
    }

    /// Starts a MySQL or MariaDB that `./dev servers` has fetched, or prints that it has not.
    pub(crate) fn start_fetched(name: &str, settings: &[&str]) -> Option<Self> {
        let kept =
            std::env::var_os("EBBTIDE_SERVERS").map_or("/var/cache/ebbtide/servers".into(), PathBuf::from);
        let program = ["mysqld", "mariadbd"].map(|program| kept.join(name).join("bin").join(program));
        let Some(program) = program.into_iter().find(|program| program.is_file()) else {
            println!("SKIPPED: {name} (./dev servers {name})");
            return None;
        };
        if program.ends_with("mysqld") {
            return Some(Self::start_mysqld(program, Some(name), settings));
        }
        let Some(install) = find("mariadb-install-db") else {
            println!("SKIPPED: mariadb-install-db (apt install mariadb-server)");
            return None;
        };
        let share = kept.join(name).join("usr/share/mariadb");
        let mut arguments = vec![
            format!("--lc-messages-dir={}", share.display()),
            format!("--character-sets-dir={}", share.join("charsets").display()),
        ];
        arguments.extend(settings.iter().map(|&setting| setting.to_owned()));
        Some(Self::bring_up(program, arguments, |_, data| copy_mariadb_template(&install, data)))
    }

    /// What is installed for one with a name serves the others of that name.
    fn start_mysqld(mysqld: PathBuf, name: Option<&str>, settings: &[&str]) -> Self {
        let base = mysqld.parent().and_then(Path::parent).unwrap();
        let shares = ["usr/share/mysql", "share"].map(|share| base.join(share));
        let share = shares.iter().find(|share| share.is_dir()).unwrap();
        let mut arguments = vec![
            format!("--basedir={}", base.display()),
            format!("--lc-messages-dir={}", share.display()),
            format!("--character-sets-dir={}", share.join("charsets").display()),
            // The directory that a distribution compiles in may be missing.
            "--secure-file-priv=NULL".into(),
            "--mysqlx=0".into(),
        ];
        arguments.extend(settings.iter().map(|&setting| setting.to_owned()));
        Self::bring_up(mysqld, arguments, |server, data| {
            let initialize = |data: &Path| {
                let initialized = server.command(data).arg("--initialize-insecure").status().unwrap();
                assert!(initialized.success(), "{}", server.log());
            };
            if let Some(name) = name {
                copy_template(name, data, initialize);
            } else {
                fs::create_dir(data).unwrap();
                initialize(data);
            }
        })
    }

    /// Starts `program` on the data that `fill` makes.
    fn bring_up(program: PathBuf, arguments: Vec<String>, fill: impl FnOnce(&Launch, &Path)) -> Self {
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let dir = tempfile::Builder::new().prefix("ebbtide-load-").tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let data = dir.path().join("data");
        let launch = Launch { program, arguments, data: data.clone(), log: dir.path().join("log") };
        fill(&launch, &data);
        let port = free_port();
        let child = launch.serve(port);
        let mut server = Self { child, launch, dir, port, _turn: turn };
        server.wait_until_ready().unwrap();
        server
    }

    /// Kills the server in the middle of whatever it does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts a server that was killed, on the data that it left.
    pub(crate) fn recover(&mut self) {
        self.try_recover().unwrap();
    }

    /// Like [`Server::recover`]. The error is why the server did not start, with its log.
    pub(crate) fn try_recover(&mut self) -> Result<(), String> {
        assert!(self.child.try_wait().unwrap().is_some(), "the server still runs");
        self.child = self.launch.serve(self.port);
        self.wait_until_ready()
    }

    /// Copies the data of a server that was killed, for [`Server::restore`].
    pub(crate) fn keep_data(&self) {
        copy(&self.launch.data, &self.path("kept"));
    }

    /// Kills the server if it still runs, and puts the copied data in place of its own.
    pub(crate) fn restore(&mut self) {
        if self.child.try_wait().unwrap().is_none() {
            self.kill();
        }
        fs::remove_dir_all(&self.launch.data).unwrap();
        copy(&self.path("kept"), &self.launch.data);
    }

    /// The directory of the tables' files.
    pub(crate) fn tables(&self) -> PathBuf {
        self.dir.path().join("data/sbtest")
    }

    fn wait_until_ready(&mut self) -> Result<(), String> {
        let began = Instant::now();
        let mut target = self.target();
        "mysql".clone_into(&mut target.database);
        loop {
            match Session::open(&target, &target.endpoints[0]) {
                Ok(mut session) => {
                    session.execute("CREATE DATABASE IF NOT EXISTS sbtest").unwrap();
                    return Ok(());
                }
                Err(error) => {
                    let gone = self.child.try_wait().unwrap().is_some();
                    let late = began.elapsed() > Duration::from_secs(180);
                    if gone || late {
                        return Err(format!("{error}\n{}", self.log()));
                    }
                    std::thread::sleep(Duration::from_millis(50));
                }
            }
        }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.path().join("data/s")
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn log(&self) -> String {
        self.launch.log()
    }

    /// The administrator through the Unix socket.
    pub(crate) fn target(&self) -> Target {
        Target {
            endpoints: vec![Endpoint::Unix(self.socket())],
            user: "root".into(),
            password: String::new(),
            database: "sbtest".into(),
            tls: None,
        }
    }

    pub(crate) fn session(&self) -> Session {
        let target = self.target();
        Session::open(&target, &target.endpoints[0]).unwrap()
    }

    /// Loads the tables of a run.
    pub(crate) fn prepare(&self, options: &RunOptions) {
        let options = PrepareOptions {
            workload: Some(options.workload),
            schema: options.schema.clone(),
            distribution: Distribution::default(),
            seed: 1,
            threads: options.clients.connections.min(4),
        };
        prepare(&self.target(), &options, &Cancel::default(), &mut |_| {}).unwrap();
    }

    pub(crate) fn run(&self, options: &RunOptions) -> RunReport {
        let report = ebbtide_load::run(&self.target(), options, &Cancel::default(), &mut |_| {}).unwrap();
        ebbtide_testing::schema::assert_documented(&["load", "run"], &serde_json::to_value(&report).unwrap());
        report
    }

    /// A file next to the data.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Stops the server's process, or lets it go on.
    pub(crate) fn signal(&self, signal: &str) {
        signal_process(self.pid(), signal);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The number of one that was killed may be another process's by now.
        if self.child.try_wait().unwrap().is_some() {
            return;
        }
        // Its data go with it: a shutdown, which takes a second or more, would save them for nobody.
        self.kill();
    }
}

pub(crate) fn signal_process(pid: u32, signal: &str) {
    let sent = Command::new("kill").arg(format!("-{signal}")).arg(pid.to_string()).status().unwrap();
    let _ = sent.success();
}

/// Runs a test on the system's MariaDB and on each other server that is here.
pub(crate) fn on_each(settings: &[&str], test: impl Fn(&mut Server)) {
    if let Some(mut server) = Server::start_with(settings) {
        test(&mut server);
    }
    for name in ["mariadb-11.8", "mysql-8.0", "mysql-9.7"] {
        if let Some(mut server) = Server::start_fetched(name, settings) {
            println!("on {name}");
            test(&mut server);
        }
    }
}

/// A small schema.
pub(crate) fn schema(tables: u32, table_size: u32) -> Schema {
    Schema { tables, table_size, ..Schema::default() }
}

/// A program on the path, or where servers are installed.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let extra = [PathBuf::from("/usr/sbin"), PathBuf::from("/usr/local/sbin")];
    std::env::split_paths(&path).chain(extra).map(|dir| dir.join(name)).find(|file| file.is_file())
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Servers run as root only where they are configured to. Another user need not reach the directory of the build.
fn account() -> Vec<String> {
    if is_root() { vec!["--user=root".to_owned()] } else { Vec::new() }
}

/// Installing takes seconds, copying does not: one installation serves all tests, kept with the build.
fn copy_template(name: &str, data: &Path, install: impl FnOnce(&Path)) {
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-template"));
    if !kept.exists() {
        let fresh = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        install(fresh.path());
        // Another process may have been faster; then its installation serves.
        let _ = fs::rename(fresh.keep(), &kept);
    }
    copy(&kept, data);
}

/// Copies a directory. The target does not exist, or is an earlier copy of it, which it replaces.
fn copy(from: &Path, to: &Path) {
    if to.exists() {
        fs::remove_dir_all(to).unwrap();
    }
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(copied.success());
}

/// Data as the system's MariaDB makes them; a newer one takes them too.
fn copy_mariadb_template(install: &Path, data: &Path) {
    copy_template("mariadb", data, |data| {
        let installed = Command::new(install)
            .args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"])
            .args(account())
            .arg(format!("--datadir={}", data.display()))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
    });
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
