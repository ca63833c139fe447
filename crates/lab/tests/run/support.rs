//! What the tests of this directory share: a home, a server, and experiments of a few seconds.

use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use ebbtide_catalog::Catalog;
use ebbtide_lab::experiment::{self, Experiment, ExperimentError, Overrides};
use ebbtide_lab::record::LabRun;
use ebbtide_lab::run::{self, Event, Plan, RunError, RunOptions};
use ebbtide_load::Cancel;
use ebbtide_mysql::{Binary, ServerError};
use tempfile::TempDir;

use ebbtide_testing::{own_place, schema::assert_documented};

/// Two arms that differ in one setting, on 20,000 rows.
pub(crate) const TWO_ARMS: &str = r#"
title = "Two arms"
question = "Does a test run?"

[data]
tables = 2
rows = 10_000

[volumes]
data = "gp3:size=2GiB"

[instance]
memory = "512MiB"

[load]
workload = "write_only"
connections = 4

[trial]
repeats = 1
measure = "10s"

[warmup]
read_tables = true
lead_in = "1s"
settle = "1s"

[arms.one.settings]
buffer_pool_size = "64MiB"
redo_capacity = "16MiB"
flush_log_at_trx_commit = 1

[arms.two.settings]
buffer_pool_size = "64MiB"
redo_capacity = "64MiB"
flush_log_at_trx_commit = 0
"#;

/// What the machine lacks for a real server on a real volume, if anything.
pub(crate) fn missing() -> Option<String> {
    let root =
        std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    if !root {
        return Some("root, to mount and to set up loop devices".to_owned());
    }
    let absent = ["/dev/fuse", "/dev/loop-control"].into_iter().find(|file| !Path::new(file).exists());
    absent.map(str::to_owned).or_else(|| server().err().map(|error| error.to_string()))
}

/// The distribution's server, or the program that `EBBTIDE_TEST_SERVER` names.
pub(crate) fn server() -> Result<Binary, ServerError> {
    Binary::detect(std::env::var_os("EBBTIDE_TEST_SERVER").as_deref().map(Path::new))
}

/// Asserts that the `results.json` of a run is as docs/json describes.
pub(crate) fn assert_results_are_documented(command: &str, out: &Path) {
    let text = std::fs::read_to_string(out.join("results.json")).unwrap();
    assert_documented(&[&format!("<results.json of {command}>")], &serde_json::from_str(&text).unwrap());
}

/// Returns from the test where the machine lacks something.
macro_rules! needs {
    () => {
        if let Some(missing) = crate::support::missing() {
            println!("SKIPPED: {missing}");
            return;
        }
    };
}
pub(crate) use needs;

/// The home of this process: others, of this program too, may run at the same time.
fn shared() -> PathBuf {
    static HOME: LazyLock<PathBuf> = LazyLock::new(|| {
        let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
        own_place(parent, concat!("lab-home-", env!("CARGO_CRATE_NAME")))
    });
    HOME.clone()
}

/// A home and a place for results, and the right to measure: two servers at a time would disturb each
/// other.
pub(crate) struct Bench {
    home: PathBuf,
    dir: TempDir,
    _alone: MutexGuard<'static, ()>,
}

static ALONE: Mutex<()> = Mutex::new(());

impl Bench {
    /// In the home that the tests of this program share: the host is calibrated and data are prepared once.
    pub(crate) fn new() -> Self {
        let mut bench = Self::apart();
        bench.home = shared();
        bench
    }

    /// In a home of its own, without prepared data.
    pub(crate) fn apart() -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        let known = shared().join("lab/calibration.json");
        std::fs::create_dir_all(home.join("lab")).unwrap();
        if known.exists() {
            std::fs::copy(known, home.join("lab/calibration.json")).unwrap();
        }
        Self { home, dir, _alone: alone }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.home.clone()
    }

    pub(crate) fn out(&self) -> PathBuf {
        self.dir.path().join("out")
    }

    pub(crate) fn run(
        &self,
        text: &str,
        resume: bool,
        cancel: &Cancel,
        on_event: &mut (dyn FnMut(Event) + Send),
    ) -> Result<LabRun, RunError> {
        let options = options(&self.home(), &self.out(), resume);
        run::run(plan(parse(text))?, options, cancel, on_event)
    }

    /// Runs it to its end, and prints its events.
    pub(crate) fn run_all(&self, text: &str) -> LabRun {
        self.run(text, false, &Cancel::default(), &mut |event| println!("{event:?}")).unwrap()
    }
}

impl Drop for Bench {
    /// The results of a test that failed stay: what it found can be looked at.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.dir.disable_cleanup(true);
            println!("KEPT: the results of the failed test are in {}", self.dir.path().display());
        }
    }
}

pub(crate) fn options(home: &Path, out: &Path, resume: bool) -> RunOptions {
    RunOptions {
        home: home.to_owned(),
        out: out.to_owned(),
        resume,
        overrides: None,
        // The machine of a test may be busy with other tests.
        over_limit: true,
        command: "a test".into(),
        ebbtide: "test".into(),
    }
}

/// What is run of an experiment on the server of these tests.
pub(crate) fn plan(experiment: Experiment) -> Result<Plan, ExperimentError> {
    run::plan(experiment, &Catalog::builtin(), &server().unwrap())
}

pub(crate) fn parse(text: &str) -> Experiment {
    let overrides = Overrides { seed: Some(7), ..Overrides::default() };
    let mut experiment = experiment::parse("mine", "mine.toml", text, &overrides).unwrap();
    // Shorter than a file may ask for: these trials are not to be believed, only to be run.
    for arm in experiment.arms.iter_mut().filter(|arm| arm.measure_s == 10) {
        arm.measure_s = 4;
    }
    experiment
}

/// The loop devices behind which a home's volumes are.
fn loop_devices(home: &Path) -> Vec<String> {
    let lab = home.join("lab");
    let devices = std::fs::read_dir("/sys/block").unwrap().flatten().filter(|entry| {
        let backing = std::fs::read_to_string(entry.path().join("loop/backing_file")).unwrap_or_default();
        backing.starts_with(lab.to_str().unwrap())
    });
    devices.map(|entry| format!("/dev/{}", entry.file_name().to_str().unwrap())).collect()
}

/// Where the volumes of a home are mounted, their FUSE file systems included.
pub(crate) fn mounts(home: &Path) -> Vec<String> {
    let lab = home.join("lab");
    let devices = loop_devices(home);
    let text = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let ours = text.lines().filter(|line| {
        line.contains(lab.to_str().unwrap())
            || line.split(' ').any(|field| devices.iter().any(|d| d == field))
    });
    ours.map(|line| line.split(' ').nth(4).unwrap().to_owned()).collect()
}

/// The processes of servers that run for a home.
pub(crate) fn servers_of(home: &Path) -> Vec<String> {
    let mounts = mounts(home);
    let Some(mount) = mounts.iter().find(|dir| dir.starts_with("/run/ebbtide-")) else { return Vec::new() };
    let runtime = Path::new(mount).parent().unwrap().to_str().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let ours = processes.filter_map(|entry| {
        let command = std::fs::read_to_string(entry.path().join("cmdline")).ok()?;
        let name = std::fs::read_to_string(entry.path().join("comm")).ok()?;
        let ours = command.contains(runtime) && (name.starts_with("mariadbd") || name.starts_with("mysqld"));
        ours.then(|| entry.file_name().into_string().unwrap())
    });
    ours.collect()
}

/// What a home has left on this machine: servers, mounts, loop devices.
pub(crate) fn left_of(home: &Path) -> Vec<String> {
    [servers_of(home), mounts(home), loop_devices(home)].concat()
}
