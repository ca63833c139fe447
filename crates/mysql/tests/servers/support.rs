//! Servers to test on, and directories of the test's own.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ebbtide_mysql::{Binary, Layout, Server, ServerError, ServerPlan, WorkPaths, initialize};
use ebbtide_testing::own_place;
use tempfile::TempDir;

/// Long enough for a machine that is busy with other things.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// Servers share the machine badly: one test with a server at a time.
static TURN: Mutex<()> = Mutex::new(());
/// Where this process keeps prepared data.
static PLACE: LazyLock<PathBuf> =
    LazyLock::new(|| own_place(Path::new(env!("CARGO_TARGET_TMPDIR")), "servers"));
/// The data there that this process has made.
static MADE: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A server program, its prepared data, and a place to run it in.
pub(crate) struct Bench {
    pub(crate) binary: Binary,
    dir: TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Bench {
    /// The bench of a server of `./dev servers`, or of the system's for the name `system`; prints what is
    /// missing and answers with none where it is not there.
    pub(crate) fn of(name: &str) -> Option<Self> {
        let found = match name {
            "system" => Binary::detect(None),
            name => Binary::detect(Some(Path::new(name))),
        };
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        match found {
            Ok(binary) => Some(Self { binary, dir: open_dir(), _turn: turn }),
            Err(error) => {
                println!("SKIPPED: the server {name}, which `./dev servers` fetches ({error})");
                None
            }
        }
    }

    /// The paths of a server's work directory.
    pub(crate) fn work(&self, name: &str) -> WorkPaths {
        work(self.dir.path(), name)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A plan for an empty directory.
    pub(crate) fn empty_plan(&self) -> ServerPlan {
        self.plan_of(Layout::single(self.path("data")), work(self.dir.path(), "w"))
    }

    /// Its servers may take long to start, as they do beside a build.
    fn plan_of(&self, layout: Layout, work: WorkPaths) -> ServerPlan {
        let plan = ServerPlan::new(self.binary.clone(), layout, work);
        ServerPlan { start_timeout: PATIENCE, ..plan }
    }

    /// A plan for a copy of data that were made with no settings.
    pub(crate) fn plan(&self) -> ServerPlan {
        let plan = self.empty_plan();
        copy(&self.template(), &plan.layout.data);
        plan
    }

    /// Data made once in the life of this process.
    fn template(&self) -> PathBuf {
        self.kept("empty", || {
            let dir = open_dir();
            let layout = Layout::single(dir.path().join("data"));
            let plan = self.plan_of(layout, work(dir.path(), "w"));
            initialize(&plan, &|_| {}).unwrap();
            (plan.layout.data, dir)
        })
    }

    /// A plan for a copy of the data that a server was stopped on. `make` makes them in the place of [`Self::plan`], once in the life of
    /// this process: a copy costs less than a start and a stop.
    pub(crate) fn plan_of_stopped(&self, name: &str, make: impl FnOnce() -> ServerPlan) -> ServerPlan {
        let kept = self.kept(name, || (make().layout.data, ()));
        let plan = self.empty_plan();
        let _ = std::fs::remove_dir_all(&plan.layout.data);
        copy(&kept, &plan.layout.data);
        plan
    }

    /// Where data of this server are kept. `make` makes them first, once in the life of this process.
    fn kept<Guard>(&self, name: &str, make: impl FnOnce() -> (PathBuf, Guard)) -> PathBuf {
        let kept = PLACE.join(format!("{}-{name}", self.binary.name().replace(' ', "-")));
        if !MADE.lock().unwrap_or_else(PoisonError::into_inner).contains(&kept) {
            let _ = std::fs::remove_dir_all(&kept);
            let (made, _guard) = make();
            std::fs::create_dir_all(&*PLACE).unwrap();
            copy(&made, &kept);
            MADE.lock().unwrap_or_else(PoisonError::into_inner).insert(kept.clone());
        }
        kept
    }

    /// A started server on a copy of prepared data, and its plan.
    pub(crate) fn started(&self) -> (Server, ServerPlan) {
        let plan = self.plan();
        (start(&plan), plan)
    }
}

/// The paths of a server's work directory in a directory.
pub(crate) fn work(dir: &Path, name: &str) -> WorkPaths {
    WorkPaths { dir: dir.join(name), records: dir.join("records") }
}

/// A directory that the server's user may enter.
pub(crate) fn open_dir() -> TempDir {
    let dir = tempfile::Builder::new().prefix("ebbtide-mysql-").tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

pub(crate) fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").args(["-a", "--reflink=auto"]).args([from, to]).status().unwrap();
    assert!(copied.success());
}

pub(crate) fn start(plan: &ServerPlan) -> Server {
    Server::start(plan, &|_| {}).unwrap_or_else(|error| panic!("{error}\n{}", error.log().join("\n")))
}

/// Makes a table `test.t` with so many rows.
pub(crate) fn fill(server: &Server, rows: u32) {
    let mut session = server.session().unwrap();
    session.execute("CREATE DATABASE IF NOT EXISTS test").unwrap();
    session.execute("CREATE TABLE test.t (id INT PRIMARY KEY, pad VARCHAR(200)) ENGINE=InnoDB").unwrap();
    for first in (0..rows).step_by(500) {
        let values: Vec<String> =
            (first..rows.min(first + 500)).map(|id| format!("({id}, REPEAT('x', 200))")).collect();
        session.execute(&format!("INSERT INTO test.t VALUES {}", values.join(","))).unwrap();
    }
}

pub(crate) fn count(server: &Server) -> u32 {
    server.session().unwrap().value("SELECT COUNT(*) FROM test.t").unwrap().unwrap().parse().unwrap()
}

/// Waits until a server has died, and returns the reason.
pub(crate) fn death(server: &Server) -> ServerError {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(died) = server.died() {
            return died;
        }
        assert!(Instant::now() < deadline, "it does not die");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether a process lives.
pub(crate) fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// Makes a test of each server out of one body.
macro_rules! on_each_server {
    ($($(#[$attribute:meta])* fn $name:ident($bench:ident) $body:block)+) => {
        $(
            $(#[$attribute])*
            mod $name {
                use super::*;

                fn body($bench: Bench) $body

                #[test]
                fn on_the_systems_server() {
                    if let Some(bench) = Bench::of("system") { body(bench) }
                }
                #[test]
                fn on_mariadb_11_8() {
                    if let Some(bench) = Bench::of("mariadb-11.8") { body(bench) }
                }
                #[test]
                fn on_mysql_9_7() {
                    if let Some(bench) = Bench::of("mysql-9.7") { body(bench) }
                }
                #[test]
                fn on_mysql_8_0() {
                    if let Some(bench) = Bench::of("mysql-8.0") { body(bench) }
                }
            }
        )+
    };
}
pub(crate) use on_each_server;
