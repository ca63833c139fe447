//! Which tests measure time and run one at a time, and which run beside them: `xtask/tests.toml`, applied to the tests that there are.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use serde::Deserialize;

use crate::programs::Built;

/// The file with the rules.
pub(super) const RULES: &str = "xtask/tests.toml";

/// The shape of `xtask/tests.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rules {
    /// How many programs run at the same time at a low priority.
    pub(super) lanes: usize,
    /// What runs one at a time although `beside` names it.
    #[serde(default)]
    pub(super) measuring: Vec<Group>,
    /// What runs in the lanes, in the order in which it begins.
    pub(super) beside: Vec<Group>,
    /// What runs only when files changed.
    #[serde(default)]
    pub(super) when_changed: Vec<Conditional>,
}

/// Tests of a program.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Group {
    pub(super) program: String,
    /// How their names begin; all names where none is given.
    #[serde(default)]
    pub(super) tests: Vec<String>,
}

impl Group {
    fn has(&self, program: &str, test: &str) -> bool {
        self.program == program
            && (self.tests.is_empty() || self.tests.iter().any(|start| test.starts_with(start.as_str())))
    }
}

/// Tests that run only when files changed since the last commit that landed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Conditional {
    program: String,
    tests: Vec<String>,
    /// How the paths of these files begin.
    paths: Vec<String>,
}

impl Conditional {
    fn group(&self) -> Group {
        Group { program: self.program.clone(), tests: self.tests.clone() }
    }
}

/// A test program and its tests, those that are ignored too.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) program: Built,
    pub(super) tests: Vec<String>,
}

/// Tests of one program, in one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) program: Built,
    /// Their names; all tests of the program where this is `None`.
    pub(super) tests: Option<Vec<String>>,
    /// What chose them, for the log.
    pub(super) chosen: String,
}

/// All tests, each in exactly one place.
#[derive(Debug, Default)]
pub(super) struct Division {
    /// One at a time: they measure time.
    pub(super) measuring: Vec<Job>,
    /// Beside them, in this order.
    pub(super) beside: Vec<Job>,
    /// Program and names of the tests that do not run.
    pub(super) left_out: Vec<(String, Vec<String>)>,
}

/// Divides the tests. `unchanged` says of the paths of a rule that no file of theirs changed.
///
/// # Errors
/// Where a rule names no test that there is: its tests would run in the wrong place, and nobody would see it.
pub(super) fn divide(
    listed: &[Listed],
    rules: &Rules,
    deterministic: &BTreeSet<String>,
    unchanged: impl Fn(&[String]) -> bool,
) -> Result<Division> {
    let conditional: Vec<Group> = rules.when_changed.iter().map(Conditional::group).collect();
    for group in rules.measuring.iter().chain(&rules.beside).chain(&conditional) {
        check_names(group, listed)?;
    }
    let idle = rules.when_changed.iter().filter(|rule| unchanged(&rule.paths)).map(Conditional::group);
    let idle: Vec<Group> = idle.collect();
    let mut division = Division::default();
    let mut beside: Vec<(usize, Job)> = Vec::new();
    for Listed { program, tests } in listed {
        let place = |test: &String| {
            if idle.iter().any(|group| group.has(&program.name, test)) {
                return Place::LeftOut;
            }
            if rules.measuring.iter().any(|group| group.has(&program.name, test)) {
                return Place::Measuring;
            }
            let group = rules.beside.iter().position(|group| group.has(&program.name, test));
            // Programs that only compute come after all that may take long.
            let computing = deterministic.contains(&program.name).then_some(rules.beside.len());
            group.or(computing).map_or(Place::Measuring, Place::Beside)
        };
        let places: BTreeSet<Place> = tests.iter().map(place).collect();
        let divided = places.len() > 1;
        for spot in places {
            let names: Vec<String> = tests.iter().filter(|test| place(test) == spot).cloned().collect();
            let chosen = match spot {
                Place::Beside(number) if divided => {
                    rules.beside.get(number).map(|group| group.tests.join(" ")).unwrap_or_default()
                }
                _ if divided => "the rest".to_owned(),
                _ => String::new(),
            };
            let job = Job { program: program.clone(), tests: divided.then_some(names.clone()), chosen };
            match spot {
                Place::Measuring => division.measuring.push(job),
                Place::Beside(number) => beside.push((number, job)),
                Place::LeftOut => division.left_out.push((program.name.clone(), names)),
            }
        }
    }
    beside.sort_by_key(|(number, _)| *number);
    division.beside = beside.into_iter().map(|(_, job)| job).collect();
    Ok(division)
}

/// Where a test runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Measuring,
    /// By which group.
    Beside(usize),
    LeftOut,
}

fn check_names(group: &Group, listed: &[Listed]) -> Result<()> {
    let Some(listed) = listed.iter().find(|listed| listed.program.name == group.program) else {
        bail!("{RULES} names the program `{}`, and there is none", group.program);
    };
    for start in &group.tests {
        if !listed.tests.iter().any(|test| test.starts_with(start.as_str())) {
            bail!("{RULES} names tests of `{}` that begin with `{start}`, and there are none", group.program);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn listed(name: &str, tests: &[&str]) -> Listed {
        let program = Built { name: name.into(), path: PathBuf::from("/t").join(name), dir: "/".into() };
        Listed { program, tests: tests.iter().map(ToString::to_string).collect() }
    }

    fn rules(text: &str) -> Rules {
        toml::from_str(text).unwrap()
    }

    const RULES_OF_TESTS: &str = r#"
        lanes = 2
        measuring = [{ program = "cli", tests = ["doctor::prove::"] }]
        beside = [
            { program = "cli", tests = ["doctor::", "aws::"] },
            { program = "crash" },
            { program = "cli", tests = ["run::"] },
        ]
        when_changed = [{ program = "cli", tests = ["aws::"], paths = ["crates/cloud"] }]
    "#;

    fn programs() -> Vec<Listed> {
        vec![
            listed("cli", &["aws::a", "doctor::b", "doctor::prove::h", "help::doctor::c", "run::d"]),
            listed("crash", &["cuts::e"]),
            listed("live", &["f"]),
            listed("model", &["g"]),
        ]
    }

    fn shown(jobs: &[Job]) -> Vec<String> {
        let show = |job: &Job| {
            let tests = job.tests.as_ref().map_or("*".to_owned(), |tests| tests.join(" "));
            format!("{}: {tests}", job.program.name)
        };
        jobs.iter().map(show).collect()
    }

    fn divided(unchanged: bool) -> Division {
        let deterministic = BTreeSet::from(["model".to_owned()]);
        divide(&programs(), &rules(RULES_OF_TESTS), &deterministic, |_| unchanged).unwrap()
    }

    #[test]
    fn every_test_is_in_one_place_and_what_no_rule_names_measures() {
        let division = divided(false);
        assert_eq!(shown(&division.measuring), ["cli: doctor::prove::h help::doctor::c", "live: *"]);
        let beside = ["cli: aws::a doctor::b", "crash: *", "cli: run::d", "model: *"];
        assert_eq!(shown(&division.beside), beside, "in the order of the rules, and what only computes last");
        assert_eq!(division.left_out, []);
    }

    #[test]
    fn tests_whose_files_did_not_change_are_left_out_and_named() {
        let division = divided(true);
        assert_eq!(division.left_out, [("cli".to_owned(), vec!["aws::a".to_owned()])]);
        assert_eq!(shown(&division.beside)[0], "cli: doctor::b");
    }

    #[test]
    fn a_rule_that_names_no_test_is_refused() {
        for (good, stale, error) in
            [("run::", "runs::", "begin with `runs::`"), ("\"crash", "\"crush", "the program `crush`")]
        {
            let text = RULES_OF_TESTS.replacen(good, stale, 1);
            let refused = divide(&programs(), &rules(&text), &BTreeSet::new(), |_| false).unwrap_err();
            assert!(refused.to_string().contains(error), "{refused}");
        }
    }

    #[test]
    fn the_rules_of_the_repository_are_read() {
        let text = include_str!("../../tests.toml");
        assert!(rules(text).lanes > 0);
    }
}
