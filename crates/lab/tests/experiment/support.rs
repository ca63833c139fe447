//! What the tests of this directory share.

use std::path::PathBuf;

use ebbtide_catalog::Catalog;
use ebbtide_lab::experiment::{self, Experiment, ExperimentError, Overrides, PlannedArm};
use ebbtide_mysql::{Binary, Flavour, Version};

/// An experiment from a text, called `mine`, from line 1 of `mine.toml`.
pub(crate) fn read(text: &str) -> Result<Experiment, ExperimentError> {
    read_with(text, &Overrides::default())
}

pub(crate) fn read_with(text: &str, overrides: &Overrides) -> Result<Experiment, ExperimentError> {
    experiment::parse("mine", "mine.toml", text, &Overrides { seed: Some(7), ..overrides.clone() })
}

/// What reading a text refuses, in words.
pub(crate) fn refused(text: &str) -> String {
    read(text).expect_err("it must be refused").to_string()
}

/// What the check of a text refuses, on MariaDB 10.11.
pub(crate) fn check_refused(text: &str) -> String {
    check(&read(text).expect("it must be read"), &mariadb()).expect_err("it must be refused").to_string()
}

pub(crate) fn check(experiment: &Experiment, binary: &Binary) -> Result<Vec<PlannedArm>, ExperimentError> {
    experiment::check(experiment, &Catalog::builtin(), binary)
}

pub(crate) fn set(path: &str, value: &str) -> Overrides {
    Overrides { set: vec![(path.to_owned(), value.to_owned())], ..Overrides::default() }
}

pub(crate) fn names(experiment: &Experiment) -> Vec<&str> {
    experiment.arms.iter().map(|arm| arm.name.as_str()).collect()
}

pub(crate) fn mariadb() -> Binary {
    binary(Flavour::MariaDb, 10, 11, 14)
}

/// The servers that shipped experiments must run on.
pub(crate) fn servers() -> Vec<Binary> {
    vec![
        mariadb(),
        binary(Flavour::MariaDb, 11, 8, 3),
        binary(Flavour::MySql, 9, 7, 0),
        binary(Flavour::MySql, 8, 0, 15),
    ]
}

fn binary(flavour: Flavour, major: u32, minor: u32, patch: u32) -> Binary {
    let version = Version { major, minor, patch };
    Binary { path: PathBuf::from("/usr/sbin/mysqld"), flavour, version, text: format!("Ver {version}") }
}
