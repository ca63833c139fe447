//! Runs the program.

use std::process::{Command, Output};

use serde_json::Value;

use ebbtide_testing::schema::assert_documented;

/// Runs `ebbtide simulate` with these arguments.
pub(crate) fn simulate(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ebbtide"))
        .env("EBBTIDE_HOME", "/nonexistent/home")
        // Sentences stay in one line.
        .env("COLUMNS", "2000")
        .arg("simulate")
        .args(arguments)
        .output()
        .expect("the program that was just built runs")
}

/// Runs it with a home of these catalogue overrides.
pub(crate) fn simulate_with_overrides(overrides: &str, arguments: &[&str]) -> Output {
    let home = tempfile::tempdir().expect("a temporary directory can be made");
    std::fs::write(home.path().join("catalog.toml"), overrides).expect("the overrides can be written");
    let home = home.path().to_str().expect("a temporary path is text");
    simulate(&[&["--home", home], arguments].concat())
}

/// What it prints, where it must succeed.
pub(crate) fn text(arguments: &[&str]) -> String {
    let output = simulate(arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {error}");
    assert_eq!(error, "", "nothing to say where standard error is no terminal");
    String::from_utf8(output.stdout).expect("the output is text")
}

/// The JSON object that it prints.
pub(crate) fn json(arguments: &[&str]) -> Value {
    let text = text(&[arguments, &["--json"]].concat());
    let value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_documented(&["simulate"], &value);
    value
}

/// Asserts a figure within a share of what a formula gives.
pub(crate) fn assert_near(what: &str, figure: &Value, formula: f64, tolerance: f64) {
    let figure = figure.as_f64().unwrap_or_else(|| panic!("{what} is {figure}"));
    assert!((figure - formula).abs() <= formula * tolerance, "{what}: {figure} instead of {formula}");
}
