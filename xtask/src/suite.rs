//! `cargo xtask test`, which `./dev test` calls after its set-up: every test and lint, the time of each phase, and the counts.
//!
//! Tests that measure time run one after the other, and the rest beside them, by `xtask/tests.toml`. What was asked to end ends all that
//! it started, and prints the times so far.

mod division;
mod lanes;

use std::{
    collections::BTreeSet,
    env, fs,
    fs::File,
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use cargo_metadata::MetadataCommand;

use self::{
    division::{Division, Listed, RULES, Rules, divide},
    lanes::{Lanes, Step, Task},
};
use crate::{
    groups,
    lint::{self, Beside},
    phases::{Outcome, Phases},
    programs, test_log, tidy,
    tools::{Places, word},
};

/// Names the commit that landed last, where no branch of `origin` does.
const LANDED: &str = "EBBTIDE_LANDED";
/// How long the set-up took, in seconds, which `./dev` does itself.
const SETUP: &str = "DEV_SETUP_S";
/// How many of the longest programs begin before what compiles: at the beginning, the row of tests that measure has those that a busy
/// machine disturbs most.
const BEFORE_COMPILING: usize = 4;

/// Runs everything. With `everything` also what takes long and finds little: more repeats, tests whose files did not change, and
/// each fuzz target for a minute.
pub(crate) fn run(everything: bool) -> Result<ExitCode> {
    groups::end_with_signals()?;
    let places = Places::find()?;
    let mut phases = Phases::default();
    if let Some(setup) = env::var(SETUP).ok().and_then(|setup| setup.parse().ok()) {
        phases.add_time(Duration::from_secs_f64(setup), "setup");
    }
    let built = stages(&places, &mut phases, everything);
    let passed = phases.finish();
    if let Some(code) = groups::exit_code() {
        return Ok(code);
    }
    Ok(match (built?, passed) {
        (false, _) => ExitCode::from(ENVIRONMENT),
        (true, false) => ExitCode::FAILURE,
        (true, true) => ExitCode::SUCCESS,
    })
}

/// The tests do not build.
const ENVIRONMENT: u8 = 3;

/// False where the tests do not build.
fn stages(places: &Places, phases: &mut Phases, everything: bool) -> Result<bool> {
    let logs = places.target.join("test-logs");
    let _ = fs::remove_dir_all(&logs);
    fs::create_dir_all(&logs).with_context(|| format!("cannot make {}", logs.display()))?;
    let goes_on = || groups::ended_by().is_none();

    let Some(programs) = build(places, phases, &logs)? else {
        eprintln!("dev: the tests do not build");
        return Ok(false);
    };
    let before = untracked(places)?;
    let suite = Suite { places, logs: &logs, everything };
    eprintln!("== tests");
    let began = Instant::now();
    suite.run(suite.plan(programs)?, phases)?;
    phases.add_time(began.elapsed(), "tests");
    if goes_on() {
        phases.check("files that tests left", || left_over(places, &before));
    }
    if goes_on() && everything {
        phases.check("fuzz targets", || places.succeeds(&["./dev", "fuzz"]).map(Outcome::from));
    }
    if goes_on() {
        lint::checks(places, phases, Some(&Beside { logs: &logs }));
    }
    Ok(true)
}

/// Builds the tests, and the program that those of the command line run. Meanwhile servers and clients are fetched.
fn build(places: &Places, phases: &mut Phases, logs: &Path) -> Result<Option<Vec<programs::Built>>> {
    thread::scope(|scope| {
        let fetching = scope.spawn(|| {
            ["servers", "clients"].map(|name| {
                let began = Instant::now();
                (name, fetch(places, logs, name), began.elapsed())
            })
        });
        let built = phases.phase("test programs", || {
            let built = places.succeeds(&["cargo", "test", "--workspace", "--locked", "--no-run"])?;
            // A second time, for their paths.
            if built { programs::build(None) } else { Ok(None) }
        });
        for (name, fetched, took) in fetching.join().expect("fetching does not panic") {
            phases.add_time(took, format!("{name}, beside the build"));
            if !fetched.unwrap_or(false) {
                eprint!("{}", fs::read_to_string(logs.join(name)).unwrap_or_default());
                eprintln!("tests with {name} that could not be fetched will be SKIPPED");
            }
        }
        built
    })
}

fn fetch(places: &Places, logs: &Path, name: &str) -> Result<bool> {
    let log = File::create(logs.join(name))?;
    let mut fetch = places.command(&["./dev", name]);
    crate::tools::succeeds(fetch.stdout(log.try_clone()?).stderr(log))
}

/// Files in the work tree that git does not know.
fn untracked(places: &Places) -> Result<BTreeSet<String>> {
    let listed = places.output(&["git", "ls-files", "--others", "--exclude-standard"])?;
    Ok(listed.context("git lists no files")?.lines().map(str::to_owned).collect())
}

/// Fails where the tests left files in the work tree: all but those that were there before.
fn left_over(places: &Places, before: &BTreeSet<String>) -> Result<Outcome> {
    let now = untracked(places)?;
    let new: Vec<&str> = now.difference(before).map(String::as_str).collect();
    if !new.is_empty() {
        eprintln!("the tests left in the work tree: {}", new.join(" "));
    }
    Ok(Outcome::from(new.is_empty()))
}

/// What the tests need.
struct Suite<'a> {
    places: &'a Places,
    logs: &'a Path,
    everything: bool,
}

/// Which test runs where.
struct Plan {
    division: Division,
    lanes: usize,
}

impl Suite<'_> {
    fn plan(&self, programs: Vec<programs::Built>) -> Result<Plan> {
        let metadata = MetadataCommand::new().no_deps().exec().context("cargo metadata failed")?;
        let path = self.places.root.join(RULES);
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {RULES}"))?;
        let rules: Rules =
            toml::from_str(&text).with_context(|| format!("{RULES} is not as it should be"))?;
        let changed = if self.everything { None } else { changed_files(self.places)? };
        let unchanged = |paths: &[String]| {
            changed.as_ref().is_some_and(|changed| !changed.iter().any(|file| begins(file, paths)))
        };
        let list = |program: programs::Built| {
            let tests = programs::tests(&program.path, &[])?;
            Ok(Listed { program, tests })
        };
        let listed: Vec<Listed> = programs.into_iter().map(list).collect::<Result<_>>()?;
        let division = divide(&listed, &rules, &tidy::deterministic_programs(&metadata)?, unchanged)?;
        Ok(Plan { division, lanes: rules.lanes })
    }

    fn run(&self, plan: Plan, phases: &mut Phases) -> Result<()> {
        let Plan { division: Division { measuring, beside, left_out }, lanes } = plan;
        for (program, tests) in left_out {
            println!(
                "SKIPPED: {} tests of {program}, whose files are as they landed; ./dev test --all runs them",
                tests.len()
            );
            phases.count_skipped(tests.len());
        }
        let mut beside: Vec<Task> = beside.into_iter().map(Task::Tests).collect();
        beside.insert(BEFORE_COMPILING.min(beside.len()), Task::Commands(self.compiling()?));
        let rows = Lanes::new(self.logs, beside, std::io::stdout()).run(&measuring, lanes)?;
        let mut whole = String::new();
        for row in &rows {
            phases.add_time(row.took, format!("row {} of the tests", row.name));
            let log = read(&self.logs.join(&row.name))?;
            phases.count_tests(&log, row.passed);
            whole += &log;
        }
        if groups::ended_by().is_none() {
            let failed = self.logs.join("doc.failed").exists();
            phases.count_tests(&read(&self.logs.join("doc"))?, !failed);
        }
        eprint!("== slowest tests\n{}", test_log::slowest(&whole));
        eprintln!("whole logs of the tests: {}", self.logs.display());
        Ok(())
    }

    /// What compiles beside the tests: lints, doc tests, benches that are tests, and the tool for dependencies.
    fn compiling(&self) -> Result<Vec<Step>> {
        let own = env::current_exe().context("this program has no path")?;
        let step =
            |name, words: &[&str]| Step { name, words: words.iter().map(ToString::to_string).collect() };
        Ok(vec![
            step("clippy", &lint::CLIPPY),
            step("build", &lint::PROGRAM),
            // Doc tests, by their names. `--doc` alone would build the workspace again, with other features.
            step("doc", &["cargo", "test", "--workspace", "--no-fail-fast", "--", "(line "]),
            step("deny", &[word(&own), "tool", "cargo-deny"]),
        ])
    }
}

fn read(log: &PathBuf) -> Result<String> {
    let bytes = fs::read(log).with_context(|| format!("cannot read {}", log.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn begins(file: &str, paths: &[String]) -> bool {
    paths.iter().any(|path| file.starts_with(path.as_str()))
}

/// Files that differ from the commit that landed last; `None` where that is not known, as in a clone of it.
fn changed_files(places: &Places) -> Result<Option<Vec<String>>> {
    let landed = env::var(LANDED).unwrap_or_else(|_| "origin/HEAD".to_owned());
    let quiet = |words: &[&str]| {
        let output = places.command(words).output().context("cannot run git")?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        anyhow::Ok(output.status.success().then_some(text))
    };
    let Some(base) = quiet(&["git", "merge-base", "HEAD", &landed])? else { return Ok(None) };
    if quiet(&["git", "rev-parse", "HEAD"])?.is_none_or(|head| head == base) {
        return Ok(None);
    }
    let differing = quiet(&[
        "git",
        "-c",
        "core.quotePath=false",
        "diff",
        // Of a file that was moved, both places count.
        "--no-renames",
        "--name-only",
        &base,
    ])?
    .context("git compares no commits")?;
    let new = untracked(places)?;
    Ok(Some(differing.lines().map(str::to_owned).chain(new).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_file_below_a_folder_that_is_named_begins_with_its_path() {
        let paths = ["crates/cloud/".to_owned(), "tests/cli/aws".to_owned()];
        assert!(begins("crates/cloud/src/lib.rs", &paths) && begins("tests/cli/aws.rs", &paths));
        assert!(!begins("crates/cloudy/src/lib.rs", &paths) && !begins("README.md", &paths));
    }

    /// A repository, and a function that runs git there.
    fn repository(dir: &Path) -> (Places, impl Fn(&str)) {
        let places = Places { root: dir.to_owned(), target: dir.join("target") };
        let root = dir.to_owned();
        let git = move |words: &str| {
            let mut command = Command::new("git");
            command.arg("-C").arg(&root).args(["-c", "user.name=t", "-c", "user.email=t@t"]);
            assert!(command.args(words.split(' ')).output().unwrap().status.success(), "git {words}");
        };
        git("init -q");
        (places, git)
    }

    #[test]
    fn files_since_the_landed_commit_are_known_or_all_tests_run() {
        let dir = tempfile::tempdir().unwrap();
        let (places, git) = repository(dir.path());
        let changed = || changed_files(&places).unwrap();
        fs::write(dir.path().join("a"), "").unwrap();
        git("add a");
        git("commit -q -m a");
        assert_eq!(changed(), None, "there is no origin");
        git("update-ref refs/remotes/origin/main HEAD");
        git("symbolic-ref refs/remotes/origin/HEAD refs/remotes/origin/main");
        assert_eq!(changed(), None, "a clone of what landed last: nobody knows what came with it");
        fs::write(dir.path().join("b"), "").unwrap();
        git("add b");
        git("commit -q -m b");
        fs::write(dir.path().join("a"), "changed").unwrap();
        fs::write(dir.path().join("new"), "").unwrap();
        assert_eq!(changed(), Some(["a", "b", "new"].map(str::to_owned).to_vec()));
        git("mv b moved");
        git("commit -q -m moved");
        git("update-ref refs/remotes/origin/main HEAD~1");
        let moved = ["b", "moved"].iter().all(|path| changed().unwrap().iter().any(|file| file == path));
        assert!(moved, "{:?}", changed());
    }

    #[test]
    fn a_file_that_tests_leave_fails_and_one_that_was_there_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let (places, _git) = repository(dir.path());
        fs::write(dir.path().join("mine"), "").unwrap();
        let before = untracked(&places).unwrap();
        assert_eq!(left_over(&places, &before).unwrap(), Outcome::Passed);
        fs::write(dir.path().join("theirs"), "").unwrap();
        assert_eq!(left_over(&places, &before).unwrap(), Outcome::Failed);
    }
}
