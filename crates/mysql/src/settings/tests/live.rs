//! The table against what running servers say of their variables: what they range over, and whether they
//! can change.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;

use super::super::table::{Form, Here, table};
use super::super::value::Kind;
use super::servers;
use crate::{Binary, Flavour, Layout, Server, ServerPlan, initialize};

/// What a server says of a variable.
struct Told {
    min: f64,
    max: f64,
    dynamic: Option<bool>,
    words: Vec<String>,
}

const MARIADB: &str = "SELECT VARIABLE_NAME, NUMERIC_MIN_VALUE, NUMERIC_MAX_VALUE, READ_ONLY, ENUM_VALUE_LIST \
     FROM information_schema.SYSTEM_VARIABLES";
const MYSQL: &str = "SELECT VARIABLE_NAME, MIN_VALUE, MAX_VALUE FROM performance_schema.variables_info";

fn told(binary: &Binary) -> BTreeMap<String, Told> {
    let dir = tempfile::Builder::new().prefix("ebbtide-settings-").tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let plan = ServerPlan::new(binary.clone(), Layout::single(dir.path().join("data")), dir.path().join("w"));
    initialize(&plan, &|_| {}).unwrap();
    let server = Server::start(&plan, &|_| {}).unwrap();
    let sql = if binary.flavour == Flavour::MariaDb { MARIADB } else { MYSQL };
    let rows = server.session().unwrap().rows(sql).unwrap();
    server.kill().unwrap();
    let number = |row: &[Option<String>], column: usize| row[column].as_ref()?.parse::<f64>().ok();
    let read = |row: Vec<Option<String>>| {
        let told = Told {
            min: number(&row, 1).unwrap_or(0.0),
            max: number(&row, 2).unwrap_or(0.0),
            dynamic: row.get(3).map(|read_only| read_only.as_deref() == Some("NO")),
            words: row.get(4).cloned().flatten().into_iter().flat_map(split).collect(),
        };
        (row[0].clone().unwrap_or_default().to_ascii_lowercase(), told)
    };
    rows.into_iter().map(read).collect()
}

fn split(list: String) -> Vec<String> {
    list.split(',').map(str::to_owned).collect()
}

fn objections(here: &Here<'_>, told: &Told) -> Vec<String> {
    let name = &here.row.name;
    let mut found = Vec::new();
    let numeric = matches!(here.row.kind, Kind::Bytes | Kind::Count | Kind::Percent | Kind::Duration);
    if numeric && told.max > 0.0 {
        let (min, max) = (here.min() as f64, here.max() as f64);
        if min < told.min || max > told.max.ceil() {
            found.push(format!("{name}: {min} to {max}, the server says {} to {}", told.min, told.max));
        }
    }
    if told.dynamic.is_some_and(|dynamic| dynamic != here.span.dynamic) {
        found.push(format!("{name}: dynamic should be {:?}", told.dynamic));
    }
    let lacks = |word: &&String| !told.words.iter().any(|told| told.eq_ignore_ascii_case(word));
    if here.row.kind == Kind::Word && !told.words.is_empty() {
        found.extend(here.words().iter().filter(lacks).map(|word| format!("{name}: there is no {word}")));
    }
    found
}

#[test]
fn running_servers_allow_at_least_what_the_table_does_and_change_what_it_says_they_do() {
    let mut found = Vec::new();
    for binary in servers() {
        let told = told(&binary);
        let mut seen = 0;
        for row in table().rows.values() {
            let Ok(here) = row.here(&binary) else { continue };
            let variable = here.span.variable.as_deref().unwrap_or(here.own());
            let Some(told) = told.get(variable) else {
                found.push(format!("{}: no variable {variable}", binary.text));
                continue;
            };
            seen += 1;
            // Half of the redo log is one file's.
            if here.span.form != Some(Form::TwoFiles) {
                found
                    .extend(objections(&here, told).into_iter().map(|why| format!("{}: {why}", binary.text)));
            }
        }
        println!("{}: {seen} variables", binary.text);
        assert!(seen > 60, "{}: {seen}", binary.text);
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
