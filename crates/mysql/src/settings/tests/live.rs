//! The table against what running servers report of their variables: what they range over, and whether they
//! can change.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;

use super::super::table::{Form, Here, table};
use super::super::value::ValueKind;
use super::servers;
use crate::{Binary, Flavour, Layout, Server, ServerPlan, WorkPaths, initialize};

/// What a server reports of a variable.
struct ServerOption {
    min: f64,
    max: f64,
    dynamic: Option<bool>,
    words: Vec<String>,
}

const MARIADB: &str = "SELECT VARIABLE_NAME, NUMERIC_MIN_VALUE, NUMERIC_MAX_VALUE, READ_ONLY, ENUM_VALUE_LIST \
     FROM information_schema.SYSTEM_VARIABLES";
const MYSQL: &str = "SELECT VARIABLE_NAME, MIN_VALUE, MAX_VALUE FROM performance_schema.variables_info";

fn reported(binary: &Binary) -> BTreeMap<String, ServerOption> {
    let dir = tempfile::Builder::new().prefix("ebbtide-settings-").tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let work = WorkPaths { dir: dir.path().join("w"), records: dir.path().join("records") };
    let plan = ServerPlan::new(binary.clone(), Layout::single(dir.path().join("data")), work);
    initialize(&plan, &|_| {}).unwrap();
    let server = Server::start(&plan, &|_| {}).unwrap();
    let sql = if binary.flavour == Flavour::MariaDb { MARIADB } else { MYSQL };
    let rows = server.session().unwrap().rows(sql).unwrap();
    server.kill().unwrap();
    let number = |row: &[Option<String>], column: usize| row[column].as_ref()?.parse::<f64>().ok();
    let read = |row: Vec<Option<String>>| {
        let reported = ServerOption {
            min: number(&row, 1).unwrap_or(0.0),
            max: number(&row, 2).unwrap_or(0.0),
            dynamic: row.get(3).map(|read_only| read_only.as_deref() == Some("NO")),
            words: row.get(4).cloned().flatten().into_iter().flat_map(split).collect(),
        };
        (row[0].clone().unwrap_or_default().to_ascii_lowercase(), reported)
    };
    rows.into_iter().map(read).collect()
}

fn split(list: String) -> Vec<String> {
    list.split(',').map(str::to_owned).collect()
}

fn objections(here: &Here<'_>, reported: &ServerOption) -> Vec<String> {
    let name = &here.row.name;
    let mut found = Vec::new();
    let numeric = matches!(
        here.row.kind,
        ValueKind::Bytes | ValueKind::Count | ValueKind::Percent | ValueKind::Duration
    );
    if numeric && reported.max > 0.0 {
        let (min, max) = (here.min() as f64, here.max() as f64);
        if min < reported.min || max > reported.max.ceil() {
            found.push(format!(
                "{name}: {min} to {max}, the server says {} to {}",
                reported.min, reported.max
            ));
        }
    }
    if reported.dynamic.is_some_and(|dynamic| dynamic != here.span.dynamic) {
        found.push(format!("{name}: dynamic should be {:?}", reported.dynamic));
    }
    let lacks = |word: &&String| !reported.words.iter().any(|reported| reported.eq_ignore_ascii_case(word));
    if here.row.kind == ValueKind::Word && !reported.words.is_empty() {
        found.extend(here.words().iter().filter(lacks).map(|word| format!("{name}: there is no {word}")));
    }
    found
}

#[test]
fn running_servers_allow_at_least_what_the_table_does_and_change_what_it_lists() {
    let mut found = Vec::new();
    for binary in servers() {
        let reported = reported(&binary);
        let mut seen = 0;
        for row in table().rows.values() {
            let Ok(here) = row.here(&binary) else { continue };
            if here.span.plugin.is_some() {
                continue;
            }
            let variable = here.span.variable.as_deref().unwrap_or(here.own());
            let Some(reported) = reported.get(variable) else {
                found.push(format!("{}: no variable {variable}", binary.text));
                continue;
            };
            seen += 1;
            // Half of the redo log is one file's.
            if here.span.form != Some(Form::TwoFiles) {
                found.extend(
                    objections(&here, reported).into_iter().map(|why| format!("{}: {why}", binary.text)),
                );
            }
        }
        println!("{}: {seen} variables", binary.text);
        assert!(seen > 60, "{}: {seen}", binary.text);
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
