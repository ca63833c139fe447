//! One situation: the server is started, the doctor looks at it, and its findings are held against what was planted.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::EBBTIDE;
use crate::peers::Peers;
use crate::restart::{Fixed, is_planted, try_fixes};
use crate::servers::{Mounted, Options, OwnVolume, Program, Running, run};
use crate::situations::{Disk, Load, Situation, good};

/// What came of a situation.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Planted codes that were not found.
    pub(crate) missed: Vec<String>,
    /// Findings that are neither planted nor follow from what was planted.
    pub(crate) others: Vec<String>,
    /// Findings that are right.
    pub(crate) right: usize,
    /// Whether MySQLTuner names it; None where it was not run, and where a capture was changed.
    pub(crate) tuner: Option<bool>,
    /// Whether pt-variable-advisor names it; None where it was not run.
    pub(crate) advisor: Option<bool>,
    /// Findings of the two on a healthy server.
    pub(crate) theirs: (usize, usize),
    /// What came of the fixes of the planted findings; None where none is one of settings.
    pub(crate) fixed: Option<Fixed>,
}

/// Sums over all situations.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    faults: usize,
    /// Faults of a server that runs, which other programs can look at.
    live: usize,
    healthy: usize,
    planted: usize,
    found: usize,
    right: usize,
    wrong: usize,
    on_healthy: usize,
    tuner: usize,
    advisor: usize,
    theirs: (usize, usize),
    /// Situations whose fixes were carried out, and those of which a finding was there again.
    fixes: usize,
    void: usize,
    pub(crate) skipped: usize,
    pub(crate) not_run: usize,
}

impl Tally {
    pub(crate) fn add(&mut self, situation: &Situation, outcome: &Outcome) {
        self.right += outcome.right;
        self.wrong += outcome.others.len();
        if situation.must.is_empty() {
            self.healthy += 1;
            self.on_healthy += usize::from(!outcome.others.is_empty());
            self.theirs.0 += outcome.theirs.0;
            self.theirs.1 += outcome.theirs.1;
            return;
        }
        self.fixes += usize::from(outcome.fixed.is_some());
        self.void += usize::from(matches!(outcome.fixed, Some(Fixed::Void(_))));
        self.faults += 1;
        self.live += usize::from(situation.edit.is_none());
        self.planted += situation.must.len();
        self.found += situation.must.len() - outcome.missed.len();
        self.tuner += usize::from(outcome.tuner == Some(true));
        self.advisor += usize::from(outcome.advisor == Some(true));
    }

    pub(crate) fn is_kept(&self) -> bool {
        // Planted: each has to be reported.
        let void = if is_planted() { self.fixes } else { 0 };
        self.found == self.planted && self.wrong == 0 && self.not_run == 0 && self.void == void
    }

    pub(crate) fn text(&self, peers: &Peers) -> String {
        let share =
            |part: usize, whole: usize| if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 };
        format!(
            "\n{} situations with a fault, {} healthy ones; {} not run, {} of servers that are not here\n\
             fixes of settings that hold over a restart: {} of {}\n\
             ebbtide: recall {}/{} ({:.0}%), precision {}/{} ({:.0}%), healthy servers with a finding: {}\n\
             {}: {} of {} situations; on the healthy servers {} lines of findings\n\
             {}: {} of {} situations; on the healthy servers {} lines of findings",
            self.faults,
            self.healthy,
            self.not_run,
            self.skipped,
            self.fixes - self.void,
            self.fixes,
            self.found,
            self.planted,
            share(self.found, self.planted),
            self.right,
            self.right + self.wrong,
            share(self.right, self.right + self.wrong),
            self.on_healthy,
            peers.tuner_name(),
            self.tuner,
            self.live,
            self.theirs.0,
            peers.advisor_name(),
            self.advisor,
            self.live,
            self.theirs.1
        )
    }
}

pub(crate) fn list(codes: &BTreeSet<String>) -> String {
    if codes.is_empty() { "nothing".into() } else { codes.iter().cloned().collect::<Vec<_>>().join(" ") }
}

/// Codes of the machine and its disks. A situation that plants one of them is judged for it all the same.
fn is_of_machine(code: &str) -> bool {
    ["O02", "O03", "O06", "O07", "B08", "B09", "O09", "E05", "R06"].contains(&code)
}

/// What this machine itself has: the findings of a healthy server that are about kernel and disks.
pub(crate) fn of_machine(programs: &[Program], dir: &Path) -> BTreeSet<String> {
    let healthy = Situation { server: programs[0].name, ..Situation::healthy("machine", programs[0].name) };
    let (found, _) = look(&programs[0], &healthy, dir, &mut |_| {}).unwrap_or_else(|why| panic!("{why}"));
    found.into_iter().filter(|code| is_of_machine(code)).collect()
}

/// A server that was looked at, and runs.
pub(crate) struct Looked<'a> {
    pub(crate) running: &'a mut Running,
    /// With which it was started.
    pub(crate) options: &'a Options,
    /// What the doctor printed.
    pub(crate) answer: &'a Value,
    pub(crate) load: Option<Loading>,
}

/// Starts the server, plants the fault, has the doctor look, and then `also`.
pub(crate) fn look(
    program: &Program,
    situation: &Situation,
    dir: &Path,
    also: &mut dyn FnMut(Looked<'_>),
) -> Result<(BTreeSet<String>, Value), String> {
    let mut options: Options = good(program.name);
    for (name, value) in &situation.options {
        match value {
            Some(value) => options.insert((*name).into(), (*value).into()),
            None => options.remove(*name),
        };
    }
    let place = DataDirectory::make(&situation.disk, dir)?;
    let mut running = Running::start(program, &place.data(), &dir.join("w"), &options)?;
    if let Disk::Full(mib) = situation.disk {
        run("fallocate", &["-l", &format!("{mib}M"), &running.data.join("filler").to_string_lossy()]);
    }
    let load = situation.load.map(|load| Loading::start(&running, load));
    place.break_it(&situation.disk);
    let mut session = running.session();
    for sql in &situation.sql {
        // What a release does not have is no fault of it: the findings tell.
        session.execute(sql).map_err(|error| format!("{sql}: {error}"))?;
    }
    if let Some((query, least)) = situation.until {
        until(&mut session, query, least)?;
    }
    // What the copy of the data directory left to write is none of the server's.
    run("sync", &["-f", &running.data.to_string_lossy()]);
    let answer = match situation.edit {
        None => doctor(&running, situation)?,
        Some(edit) => changed(&running, situation, edit, dir)?,
    };
    if !answer["findings"].is_array() {
        return Err(format!("the doctor: {answer}"));
    }
    also(Looked { running: &mut running, options: &options, answer: &answer, load });
    drop(running);
    let codes = |list: &Value| {
        let code = |one: &Value| one["code"].as_str().unwrap_or_default().to_owned();
        list.as_array().into_iter().flatten().map(code).collect()
    };
    Ok((codes(&answer["findings"]), answer))
}

fn until(session: &mut ebbtide_load::Session, query: &str, least: u64) -> Result<(), String> {
    let end = Instant::now() + Duration::from_secs(120);
    loop {
        let rows = session.rows(query).map_err(|error| format!("{query}: {error}"))?;
        let last = rows.first().and_then(|row| row.last()?.as_ref()?.parse::<u64>().ok()).unwrap_or(0);
        if last >= least {
            return Ok(());
        }
        if Instant::now() > end {
            return Err(format!("{query} stays at {last}"));
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}

pub(crate) fn doctor(running: &Running, situation: &Situation) -> Result<Value, String> {
    let data = running.data.to_string_lossy();
    let words: Vec<String> = situation.words.iter().map(|word| word.replace("{data}", &data)).collect();
    let look = look_at(running, situation);
    answered(Command::new(EBBTIDE).arg("doctor").args(look).arg("--json").args(words))
}

/// The words by which the doctor finds a server.
fn look_at(running: &Running, situation: &Situation) -> [String; 3] {
    let socket = format!("--mysql-socket={}", running.socket.display());
    let seconds = if situation.load.is_some() { 8 } else { 1 };
    [socket, "--mysql-user=root".into(), format!("--interval={seconds}s")]
}

fn answered(command: &mut Command) -> Result<Value, String> {
    let out = command.env("EBBTIDE_HOME", "/nonexistent").output().unwrap();
    serde_json::from_slice(&out.stdout)
        .map_err(|error| format!("the doctor: {error}: {}", String::from_utf8_lossy(&out.stderr)))
}

/// Captures the server, changes the capture, and has it judged.
fn changed(
    running: &Running,
    situation: &Situation,
    edit: fn(&mut Value),
    dir: &Path,
) -> Result<Value, String> {
    let mut capture =
        answered(Command::new(EBBTIDE).args(["doctor", "capture"]).args(look_at(running, situation)))?;
    edit(&mut capture);
    let file = dir.join("capture.json");
    std::fs::write(&file, capture.to_string()).unwrap();
    let from = format!("--from={}", file.display());
    answered(Command::new(EBBTIDE).args(["doctor", &from, "--json"]).args(&situation.words))
}

/// Where the data lie.
enum DataDirectory {
    Mounted(Mounted),
    Root(tempfile::TempDir),
    Volume(OwnVolume),
}

impl DataDirectory {
    fn make(disk: &Disk, dir: &Path) -> Result<Self, String> {
        Ok(match disk {
            Disk::Own => Self::Mounted(Mounted::make(dir, "fs", 3072, "noatime")),
            Disk::With(options) => Self::Mounted(Mounted::make(dir, "fs", 3072, options)),
            Disk::Full(_) => Self::Mounted(Mounted::make(dir, "fs", 1024, "noatime")),
            Disk::Volume(spec, _) => Self::Volume(OwnVolume::make(dir, spec)?),
            Disk::Root => {
                Self::Root(tempfile::Builder::new().prefix("ebbtide-dx-").tempdir_in("/var/tmp").unwrap())
            }
        })
    }

    fn data(&self) -> PathBuf {
        match self {
            Self::Mounted(mounted) => mounted.point().join("data"),
            Self::Root(dir) => dir.path().join("data"),
            Self::Volume(volume) => volume.point().join("data"),
        }
    }

    /// Makes the volume as slow as the situation wants it.
    fn break_it(&self, disk: &Disk) {
        if let (Self::Volume(volume), Disk::Volume(_, fault)) = (self, disk)
            && !fault.is_empty()
        {
            volume.fault(fault);
        }
    }
}

/// A load that goes on until it is dropped.
pub(crate) struct Loading(Child);

impl Loading {
    fn start(running: &Running, load: Load) -> Self {
        let socket = format!("--mysql-socket={}", running.socket.display());
        let rows = format!("--table-size={}", load.rows);
        let base = [socket.as_str(), "--mysql-user=root", "--tables=2", &rows];
        let threads = format!("--threads={}", load.threads);
        // Bulk inserts have an empty table for each connection.
        let bulk = load.workload == "bulk_insert";
        let base = if bulk { base[..2].to_vec() } else { base.to_vec() };
        let prepare =
            if bulk { vec!["load", "prepare", "bulk_insert", &threads] } else { vec!["load", "prepare"] };
        run(EBBTIDE, &[&prepare[..], &base[..]].concat());
        Self::again(running, load)
    }

    /// The same on tables that are there already.
    pub(crate) fn again(running: &Running, load: Load) -> Self {
        let socket = format!("--mysql-socket={}", running.socket.display());
        let rows = format!("--table-size={}", load.rows);
        let base = [socket.as_str(), "--mysql-user=root", "--tables=2", &rows];
        let base = if load.workload == "bulk_insert" { &base[..2] } else { &base[..] };
        let threads = format!("--threads={}", load.threads);
        let rate = format!("--rate={}", load.rate);
        let words = ["load", "run", load.workload, &threads, &rate, "--rand-type=uniform", "--time=300"];
        let child = Command::new(EBBTIDE)
            .args([&words[..], base].concat())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_secs(load.warmup_s));
        Self(child)
    }
}

impl Drop for Loading {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Judges a situation.
pub(crate) fn judge(
    program: &Program,
    situation: &Situation,
    dir: &Path,
    machine: &BTreeSet<String>,
    peers: &Peers,
) -> Result<Outcome, String> {
    let mut outcome = Outcome::default();
    let (found, _) = look(program, situation, dir, &mut |looked| {
        let Looked { running, options, answer, load } = looked;
        let tuner = peers.tuner(&running.socket);
        let advisor = peers.advisor(&running.socket);
        let names = |text: &Option<String>| {
            let text = text.as_ref()?.to_lowercase();
            Some(situation.hints.iter().any(|hint| text.contains(&hint.to_lowercase())))
        };
        (outcome.tuner, outcome.advisor) = (names(&tuner), names(&advisor));
        let lines = |text: &Option<String>| text.as_ref().map_or(0, |text| text.lines().count());
        outcome.theirs = (lines(&tuner), lines(&advisor));
        outcome.fixed = try_fixes(running, program, situation, options, answer, load);
    })?;
    let expected = |code: &str| situation.must.contains(&code) || situation.also.contains(&code);
    outcome.missed =
        situation.must.iter().filter(|code| !found.contains(**code)).map(|code| (*code).to_owned()).collect();
    outcome.right = found.iter().filter(|code| expected(code)).count();
    outcome.others = found.into_iter().filter(|code| !expected(code) && !machine.contains(code)).collect();
    if situation.must.is_empty() || situation.edit.is_some() {
        (outcome.tuner, outcome.advisor) = (None, None);
    }
    Ok(outcome)
}
