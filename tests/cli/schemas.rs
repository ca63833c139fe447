//! The schemas in docs/json are a contract: outputs that no other test asks for are held against them here,
//! and a field that they do not name is found. [`crate::harness::Ran::json`] does it for every other output.

use serde_json::Value;

use crate::harness::{Home, Need, can};
use ebbtide_testing::schema::{assert_documented, assert_unknown_fields_are_found, undocumented};

#[test]
fn a_field_that_no_schema_names_is_found_in_every_object() {
    let home = Home::served();
    home.run_line("volume create db gp2:size=1GiB").ok();
    let socket = format!("unix:{}", home.sibling("db.sock").display());
    home.run(&["volume", "attach", "db", "--nbd", &socket]).ok();
    home.run_line("volume fault db latency=1ms errors=5ppm error-range=1MiB+1MiB").ok();
    let shown = home.show("db");
    assert_eq!(shown["live"]["faults"]["errors"].as_array().map(Vec::len), Some(2), "{shown}");
    assert!(assert_unknown_fields_are_found(&["volume", "show"], &shown) > 12, "{shown}");
    let error = home.run_line("volume show none --json").refused(2, &[]).json();
    assert_eq!(assert_unknown_fields_are_found(&["volume", "show"], &error["error"]), 1, "no volume either");
}

#[test]
fn a_field_that_is_missing_or_of_another_type_is_found() {
    let home = Home::served();
    home.run_line("volume create db gp3:size=1GiB").ok();
    let shown = home.show("db");
    let refusal = |value: &Value| undocumented(&["volume", "show"], value).unwrap_err();
    let mut without = shown.clone();
    without.as_object_mut().unwrap().remove("size_bytes");
    let of_it = refusal(&without);
    for text in ["docs/json/volume.schema.json", "size_bytes", "cargo xtask schemas"] {
        assert!(of_it.contains(text), "'{text}' is not in: {of_it}");
    }
    for (field, wrong) in [
        ("/size_bytes", "1GiB".into()),
        ("/size_bytes", (-1).into()),
        ("/size_bytes", 1.5.into()),
        ("/state", "gone".into()),
        ("/host_too_slow", Value::Null),
        ("/host_too_slow", [1].as_slice().into()),
        ("/figures/iops", "3000".into()),
    ] {
        let mut other = shown.clone();
        *other.pointer_mut(field).unwrap() = wrong;
        assert!(refusal(&other).contains(field), "{field}: {}", refusal(&other));
    }
    assert!(undocumented(&["volume", "dance"], &shown).unwrap_err().contains("no output of docs/json"));
}

#[test]
fn what_the_commands_around_a_volume_print_is_documented() {
    let home = Home::served();
    home.run_line("volume create db gp3:size=1GiB --json").ok().json();
    let socket = format!("unix:{}", home.sibling("db.sock").display());
    home.run(&["volume", "attach", "db", "--nbd", &socket, "--json"]).ok().json();
    home.run_line("volume fault db power-cut --json").ok().json();
    home.run_line("volume crash-image db image --json").ok().json();
    home.run_line("snapshot create monday --volume db --json").ok().json();
    home.run_line("volume detach db --json").ok().json();
    home.run_line("snapshot delete monday --json").ok().json();
    home.run_line("volume delete image --json").ok().json();
    home.run_line("serve --stop --json").ok().json();
}

#[test]
fn what_needs_no_server_is_documented() {
    let home = Home::new();
    for words in ["run --prepared", "run --delete-prepared all", "crash --kept", "run --list", "crash --list"]
    {
        home.run_line(&format!("{words} --json")).ok().json();
    }
    let directory = home.sibling("man");
    home.run(&["man-pages", directory.to_str().unwrap(), "--json"]).ok().json();
    home.run_line("completions fish --json").ok().json();
    if can(&[Need::Tool("mariadbd")]) {
        home.run_line("run same-twice --check --json").ok().json();
    }
}

/// Asserts that a `results.json` is as its schema defines.
pub(crate) fn assert_results_are_documented(command: &str, directory: &std::path::Path) {
    let text = std::fs::read_to_string(directory.join("results.json")).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    let file = format!("<results.json of {command}>");
    assert_documented(&[&file], &value);
    assert!(assert_unknown_fields_are_found(&[&file], &value) > 20);
}
