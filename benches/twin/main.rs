//! What the model of InnoDB predicts of arms that the lab measured. Run with `./dev bench twin-lab`.
//!
//! Each experiment (benches/twin/*.toml) is run once, and calibrated on its first arm, through `ebbtide predict
//! --profile-from`; the other arms are predicted. Results stay in the build's directory (`target/twin-lab`, or `--dir DIR`):
//! what was measured is not measured again, so the bench can be ended and begun again, or run in parts (`--only
//! volumes,redo`). `--read` measures nothing. `--write` writes docs/accuracy.md, its plot, and the comparisons that intervals
//! come from; what they have of experiments that were not judged stays. Takes root and a server.
//! A tiny run reads and plans the experiments, and judges and writes a run that was made up, in a directory of its own.
#![allow(clippy::unwrap_used)] // a bench fails by a panic

mod judge;
#[path = "../../tests/support/lab_run.rs"]
mod lab_run;
#[path = "../support/accuracy_plot.rs"]
mod plot;
mod table;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use ebbtide_twin::accuracy::{self, Comparison};
use judge::Predicted;
use table::{Row, Tally, report};

const EBBTIDE: &str = env!("CARGO_BIN_EXE_ebbtide");

/// The experiments, in the order in which they run: the most telling first.
const EXPERIMENTS: [(&str, &str); 8] = [
    ("volumes", include_str!("volumes.toml")),
    ("redo", include_str!("redo.toml")),
    ("writers", include_str!("writers.toml")),
    ("readers", include_str!("readers.toml")),
    ("pool", include_str!("pool.toml")),
    ("flushing", include_str!("flushing.toml")),
    ("throughput", include_str!("throughput.toml")),
    ("tpcc", include_str!("tpcc.toml")),
];

/// What the predictions are to keep: median error, share of errors within a quarter, share of right limiters.
const MEDIAN: f64 = 0.10;
const WITHIN: f64 = 0.90;
const LIMITERS: f64 = 0.90;

/// The words of the command line.
struct Words {
    dir: PathBuf,
    only: Option<String>,
    read: bool,
    write: bool,
}

impl Words {
    fn of_command_line() -> Self {
        let words: Vec<String> = std::env::args().collect();
        let after = |name: &str| {
            let place = words.iter().position(|word| word == name)?;
            Some(words.get(place + 1).unwrap_or_else(|| panic!("{name} needs a value")).clone())
        };
        let target = Path::new(EBBTIDE).ancestors().nth(2).expect("the program lies in target/PROFILE");
        Self {
            dir: after("--dir").map_or_else(|| target.join("twin-lab"), PathBuf::from),
            only: after("--only"),
            read: words.iter().any(|word| word == "--read"),
            write: words.iter().any(|word| word == "--write"),
        }
    }

    fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.split(',').any(|word| name.contains(word)))
    }
}

fn main() -> ExitCode {
    let words = Words::of_command_line();
    if ebbtide_testing::tiny() {
        let dir = tempfile::tempdir().unwrap();
        EXPERIMENTS.iter().for_each(|(name, text)| plan(name, text, dir.path()));
        made_up(dir.path());
        println!("a tiny run: {} experiments are sound, and nothing was measured", EXPERIMENTS.len());
        return ExitCode::SUCCESS;
    }
    std::fs::create_dir_all(&words.dir).unwrap();
    let mut predicted: Vec<Predicted> = Vec::new();
    for (name, text) in EXPERIMENTS.iter().filter(|(name, _)| words.wants(name)) {
        let results = words.dir.join(name);
        if is_of_another_form(name, text, &words.dir) {
            println!("{name}: {} is of another form of the experiment: remove it", results.display());
            continue;
        }
        if !words.read && !measure(name, text, &words.dir) {
            println!("{name}: not all arms were measured; the next run goes on with them");
        }
        if !results.join("results.sqlite").is_file() {
            println!("{name}: no results in {}", results.display());
            continue;
        }
        match judge::experiment(name, &results) {
            Ok(arms) => predicted.extend(arms),
            Err(why) => println!("{name}: cannot be judged: {why}"),
        }
    }
    if predicted.is_empty() {
        println!("SKIPPED: nothing was measured (root, FUSE and a server are needed)");
        return ExitCode::from(3);
    }
    let rows: Vec<Row> = predicted.iter().map(Row::of).collect();
    println!("{}", report(&rows));
    if words.write {
        save(Path::new(env!("CARGO_MANIFEST_DIR")), &rows, &predicted);
    }
    ExitCode::from(u8::from(!Tally::of(&rows).keeps(MEDIAN, WITHIN, LIMITERS)))
}

/// Judges a run whose figures are made up, and writes what `--write` writes into `dir`.
fn made_up(dir: &Path) {
    let run = lab_run::run(&[
        lab_run::arm("first", "gp3:size=500GiB", 18.0, 15.0),
        lab_run::arm("second", "gp3:size=500GiB,iops=6000", 36.0, 15.0),
    ]);
    let results = dir.join("results");
    ebbtide_lab::results::ResultsDatabase::create(&results, &run).unwrap();
    let predicted = judge::experiment("volumes", &results).unwrap();
    assert_eq!(predicted.len(), 2);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for file in [PAGE, COMPARISONS] {
        std::fs::create_dir_all(dir.join(file).parent().unwrap()).unwrap();
        std::fs::copy(root.join(file), dir.join(file)).unwrap();
    }
    std::fs::create_dir_all(dir.join(PLOT).parent().unwrap()).unwrap();
    let rows: Vec<Row> = predicted.iter().map(Row::of).collect();
    save(dir, &rows, &predicted);
    let page = std::fs::read_to_string(dir.join(PAGE)).unwrap();
    // The other experiments' rows are as they were.
    let lines =
        |of: &str, name: &str| of.lines().filter(|line| line.starts_with(&format!("| {name} |"))).count();
    let before = std::fs::read_to_string(root.join(PAGE)).unwrap();
    for (name, _) in EXPERIMENTS.iter().filter(|(name, _)| *name != "volumes") {
        assert_eq!(lines(&page, name), lines(&before, name), "{name}");
        assert!(
            before
                .lines()
                .filter(|line| line.starts_with(&format!("| {name} |")))
                .all(|line| page.contains(line))
        );
    }
    assert_eq!(lines(&page, "volumes"), 2);
    assert!(
        page.contains("| volumes | first (calibrated) |") && page.contains("| volumes | second |"),
        "{page}"
    );
    assert!(std::fs::read_to_string(dir.join(PLOT)).unwrap().contains("lab, volumes, second: measured 36.0"));
    let rows = accuracy::parse(&std::fs::read_to_string(dir.join(COMPARISONS)).unwrap()).unwrap();
    let new: Vec<&Comparison> = rows.iter().filter(|row| row.experiment == "lab, volumes").collect();
    assert!(new.len() > 5 && new.iter().all(|row| row.arm == "second"), "{new:?}");
    for row in new {
        assert_eq!((row.flavour.as_str(), row.workload.as_str()), ("mariadb-10.5", "oltp_read_write"));
        assert!(row.clients.is_some() && (0.1..1.0).contains(&row.pool), "{row:?}");
    }
}

/// Checks an experiment as `ebbtide run --check` does.
fn plan(name: &str, text: &str, dir: &Path) {
    let changes = ebbtide_lab::experiment::Overrides::default();
    let file = dir.join(format!("{name}.toml"));
    std::fs::write(&file, text).unwrap();
    let experiment = ebbtide_lab::experiment::load(file.to_str().unwrap(), &changes)
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(experiment.arms.len() > 1, "{name} has nothing to predict");
}

/// Whether there are results of an experiment that was changed since.
fn is_of_another_form(name: &str, text: &str, dir: &Path) -> bool {
    let measured = std::fs::read_to_string(dir.join(format!("{name}.toml")));
    dir.join(name).join("results.sqlite").is_file() && measured.is_ok_and(|measured| measured != text)
}

/// Runs what is left of an experiment; whether all arms are measured.
fn measure(name: &str, text: &str, dir: &Path) -> bool {
    let out = dir.join(name);
    let file = dir.join(format!("{name}.toml"));
    let begun = out.join("results.sqlite").is_file();
    if begun && judge::is_whole(&out) {
        return true;
    }
    std::fs::write(&file, text).unwrap();
    println!("== {name}: measuring{}", if begun { " what is left" } else { "" });
    let mut command = Command::new(EBBTIDE);
    command.arg("--home").arg(dir.join("home")).args(["run", "--over-limit", "--out"]).arg(&out);
    // A run that was begun goes on with its own experiment and seed.
    if begun {
        command.arg("--resume")
    } else {
        command.arg(&file).args(["--seed", "1"])
    };
    command.status().is_ok_and(|status| status.success())
}

const BEGIN: &str = "<!-- written by ./dev bench twin-lab --write: begin -->";
const END: &str = "<!-- written by ./dev bench twin-lab --write: end -->";

const PAGE: &str = "docs/accuracy.md";
const PLOT: &str = "docs/images/accuracy.svg";
const COMPARISONS: &str = "crates/twin/data/comparisons.toml";

/// Writes the table into docs/accuracy.md, what was compared into the file that the intervals of `ebbtide predict` come from, and
/// the plot of all that this file has then. What they have of other experiments stays.
fn save(root: &Path, rows: &[Row], predicted: &[Predicted]) {
    let page = root.join(PAGE);
    let text = std::fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("it has the mark of the beginning");
    let (old, after) = rest.split_once(END).expect("it has the mark of the end");
    let table = report(&table::merged(old, rows, &EXPERIMENTS.map(|(name, _)| name)));
    std::fs::write(&page, format!("{before}{BEGIN}\n\n{table}\n{END}{after}")).unwrap();
    let path = root.join(COMPARISONS);
    let rows: Vec<_> = predicted.iter().flat_map(Predicted::comparisons).collect();
    let new = accuracy::replaced(&std::fs::read_to_string(&path).unwrap(), &rows).unwrap();
    std::fs::write(&path, &new).unwrap();
    std::fs::write(root.join(PLOT), plot::svg(&accuracy::parse(&new).unwrap())).unwrap();
}
