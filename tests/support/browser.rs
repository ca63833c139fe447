//! A page in a real browser, for the tests of every crate that makes pages.

#![allow(clippy::unwrap_used, reason = "a test panics where something is missing")]

use std::process::Command;

/// What a browser makes of a page: its elements after the scripts have run, and its complaints. None
/// where there is no browser. It has no network.
pub(crate) fn browse(html: &str) -> Option<(String, String)> {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("report.html");
    std::fs::write(&page, html).unwrap();
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr", "--v=0"])
        .arg(format!("--user-data-dir={}", directory.path().join("profile").display()))
        .arg("--dump-dom")
        .arg(format!("file://{}", page.display()))
        .output();
    let Ok(output) = output else {
        println!("SKIPPED: chromium is missing");
        return None;
    };
    let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "chromium: {complaints}");
    let console = complaints.lines().filter(|line| line.contains("CONSOLE")).collect::<Vec<_>>().join("\n");
    Some((String::from_utf8_lossy(&output.stdout).into_owned(), console))
}
