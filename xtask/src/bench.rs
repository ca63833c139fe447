//! `cargo xtask bench`, which `./dev bench` calls: runs the benches of `xtask/benches.toml`.

use std::{
    ffi::OsString,
    fs,
    process::{Command, ExitCode},
};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::tools::{Places, wait};

/// The file with the benches.
pub(crate) const TABLE: &str = "xtask/benches.toml";
/// The command line is wrong.
const USAGE_ERROR: u8 = 2;

/// The shape of `xtask/benches.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    bench: Vec<Bench>,
}

/// One bench.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bench {
    name: String,
    /// A bench of cargo's.
    package: Option<String>,
    program: Option<String>,
    /// A shell script, which gets the path of the release program.
    script: Option<String>,
    /// What comes before the user's own arguments.
    argument: Option<String>,
    /// What it shows.
    shows: String,
}

/// The names of all benches.
///
/// # Errors
/// Where the table is not as it should be.
pub(crate) fn names(table: &str) -> Result<Vec<String>> {
    Ok(parse(table)?.into_iter().map(|bench| bench.name).collect())
}

fn parse(table: &str) -> Result<Vec<Bench>> {
    let table: Table = toml::from_str(table).with_context(|| format!("{TABLE} is not as it should be"))?;
    for bench in &table.bench {
        let Bench { name, package, program, script, .. } = bench;
        if (package.is_some(), program.is_some()) != (script.is_none(), script.is_none()) {
            bail!("{TABLE}: the bench {name} has a package and a program, or a script");
        }
    }
    Ok(table.bench)
}

/// Runs all benches, or the one that the first word names with the other words as its arguments; `--list` names them.
pub(crate) fn run(words: &[&str]) -> Result<ExitCode> {
    let places = Places::find()?;
    let path = places.root.join(TABLE);
    let benches = parse(&fs::read_to_string(path).with_context(|| format!("cannot read {TABLE}"))?)?;
    let (name, arguments) = words.split_first().map_or((None, words), |(name, rest)| (Some(*name), rest));
    if name == Some("--list") {
        print!("{}", list(&benches));
        return Ok(ExitCode::SUCCESS);
    }
    let chosen: Vec<_> = benches.iter().filter(|bench| name.is_none_or(|name| bench.name == name)).collect();
    if chosen.is_empty() {
        let names: Vec<_> = benches.iter().map(|bench| bench.name.as_str()).collect();
        eprintln!("dev: no bench is called '{}'; there are: {}", name.unwrap_or_default(), names.join(" "));
        return Ok(ExitCode::from(USAGE_ERROR));
    }
    let mut passed = true;
    for bench in chosen {
        eprintln!("== {}", bench.name);
        if !bench.run(&places, arguments)? {
            eprintln!("FAILED: {}", bench.name);
            passed = false;
        }
    }
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn list(benches: &[Bench]) -> String {
    benches.iter().map(|Bench { name, shows, .. }| format!("{name:<12} {shows}\n")).collect()
}

impl Bench {
    fn run(&self, places: &Places, arguments: &[&str]) -> Result<bool> {
        let ebbtide = places.target.join("release/ebbtide");
        let words = self.words(ebbtide.clone().into_os_string(), arguments);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(&places.root);
        if self.script.is_some() {
            if !wait(&mut places.command(&["cargo", "build", "--release"]))? {
                return Ok(false);
            }
            // Scripts run the program through this variable, wherever the target directory is.
            command.env("EBBTIDE", ebbtide);
        }
        wait(&mut command)
    }

    fn words(&self, ebbtide: OsString, arguments: &[&str]) -> Vec<OsString> {
        let own = self.argument.iter().map(OsString::from);
        let more = arguments.iter().map(OsString::from);
        match (&self.script, &self.package, &self.program) {
            (Some(script), ..) => {
                [OsString::from(script)].into_iter().chain(own).chain([ebbtide]).chain(more).collect()
            }
            (None, Some(package), Some(program)) => {
                let cargo = ["cargo", "bench", "--quiet", "--package", package, "--bench", program, "--"];
                cargo.iter().map(OsString::from).chain(own).chain(more).collect()
            }
            _ => unreachable!("the table was checked"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn benches() -> Vec<Bench> {
        parse(include_str!("../benches.toml")).unwrap()
    }

    fn words(name: &str) -> String {
        let bench = benches().into_iter().find(|bench| bench.name == name).unwrap();
        let words = bench.words("/t/release/ebbtide".into(), &["--quick"]);
        words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_bench_is_a_program_of_cargos_or_a_script_with_the_release_program() {
        let live = "cargo bench --quiet --package ebbtide-device --bench live -- overhead --quick";
        assert_eq!(words("overhead"), live);
        assert_eq!(words("lab-same"), "scripts/bench/lab.sh same /t/release/ebbtide --quick");
        assert_eq!(words("model"), "cargo bench --quiet --package ebbtide-volume --bench speed -- --quick");
    }

    #[test]
    fn each_script_of_the_table_exists_and_each_name_is_there_once() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let benches = benches();
        for script in benches.iter().filter_map(|bench| bench.script.as_ref()) {
            assert!(root.join(script).exists(), "{script}");
        }
        let mut names: Vec<_> = benches.iter().map(|bench| &bench.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), benches.len());
    }

    #[test]
    fn a_bench_with_neither_program_nor_script_is_refused() {
        let refused = parse("[[bench]]\nname = \"x\"\nshows = \"y\"\npackage = \"p\"").unwrap_err();
        assert!(refused.to_string().contains("the bench x has a package and a program, or a script"));
    }

    #[test]
    fn the_list_has_a_line_for_each_bench() {
        let list = list(&benches());
        assert!(list.starts_with("model        I/Os a second that the model takes on one core\n"), "{list}");
    }
}
