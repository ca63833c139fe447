//! The table against what real servers print: each server that is there prints all of its
//! variables and their defaults.

use std::collections::BTreeMap;
use std::process::Command;

use super::super::table::{Here, Row, table};
use super::super::value::Value;
use super::servers;
use crate::Binary;

/// Variables and their defaults, from the table at the end of `--verbose --help`.
fn variables(binary: &Binary) -> BTreeMap<String, String> {
    let output = Command::new(&binary.path).args(["--no-defaults", "--verbose", "--help"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let table = text.lines().skip_while(|line| !line.starts_with("Variables (--variable-name=value)"));
    let rows = table.skip(1).filter(|line| !line.starts_with('-')).skip_while(|line| line.is_empty());
    let pairs = rows.take_while(|line| !line.is_empty()).map(|line| match line.split_once(' ') {
        Some((name, value)) => (name.replace('-', "_"), value.trim().to_owned()),
        None => (line.replace('-', "_"), String::new()),
    });
    pairs.collect()
}

/// What is wrong with a row, against one server's variables.
fn objection(row: &Row, binary: &Binary, variables: &BTreeMap<String, String>) -> Option<String> {
    match row.here(binary) {
        // The help has no options of plugins that are not loaded.
        Ok(here) if here.span.plugin.is_some() => None,
        Ok(here) => match variables.get(here.own()) {
            None => Some(format!("{} is not there", here.own())),
            Some(printed) => default_objection(&here, printed),
        },
        Err(absent) if variables.contains_key(&absent.own) != absent.listed => {
            Some(format!("{} should be {}, and is {:?}", absent.own, absent.why, variables.get(&absent.own)))
        }
        Err(_) => None,
    }
}

fn default_objection(here: &Here<'_>, printed: &str) -> Option<String> {
    let shape = here.row.shape();
    let expected = match here.span.help.as_deref() {
        Some("skip") => return None,
        Some(help) => shape.read(help),
        None => here.default(),
    };
    let found = shape.read(printed);
    let same = match (&expected, &found) {
        (Some(Value::Percent(a)), Some(Value::Percent(b))) => (a - b).abs() < 1e-9,
        (expected, found) => expected == found,
    };
    (!same).then(|| format!("{} is {printed} by default, the table says {expected:?}", here.own()))
}

#[test]
fn every_server_that_is_there_has_the_rows_of_the_table_with_their_defaults_and_no_removed_one() {
    let servers = servers();
    let mut objections = Vec::new();
    for binary in &servers {
        let variables = variables(binary);
        println!("{} {}: {} variables", binary.path.display(), binary.version, variables.len());
        assert!(variables.len() > 300, "{}: its help is not understood", binary.path.display());
        let found = table().rows.values().filter_map(|row| objection(row, binary, &variables));
        objections.extend(found.map(|why| format!("{}: {why}", binary.text)));
    }
    assert!(objections.is_empty(), "{}", objections.join("\n"));
}

#[test]
fn a_row_that_does_not_fit_the_server_is_objected_to() {
    let mariadb = super::mariadb(10, 11, 19);
    let with = |own: &str, value: &str| BTreeMap::from([(own.to_owned(), value.to_owned())]);
    let row = |name: &str| table().find(name).unwrap();
    assert_eq!(objection(row("io_capacity"), &mariadb, &with("innodb_io_capacity", "200")), None);
    assert!(objection(row("io_capacity"), &mariadb, &with("innodb_io_capacity", "300")).is_some());
    assert!(objection(row("io_capacity"), &mariadb, &BTreeMap::new()).is_some());
    assert_eq!(objection(row("page_cleaners"), &mariadb, &BTreeMap::new()), None);
    assert!(objection(row("page_cleaners"), &mariadb, &with("innodb_page_cleaners", "4")).is_some());
}
