//! The page with charts, in a real browser.

use std::path::Path;
use std::process::Command;

use crate::support::text;

/// The page's elements after its scripts have run; none where there is no browser.
fn rendered(page: &Path, profile: &Path) -> Option<String> {
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg("--dump-dom")
        .arg(format!("file://{}", page.display()))
        .output();
    match output {
        Ok(output) if output.status.success() => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(output) => panic!("chromium: {}", String::from_utf8_lossy(&output.stderr)),
        Err(_) => None,
    }
}

#[test]
fn the_page_draws_its_charts_without_a_network() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("run.html");
    let printed = text(&[
        "--volume",
        "gp2:size=100GiB,credits=1%",
        "--volume",
        "gp3:size=100GiB",
        "--job",
        "rw=randread,bs=16k,iodepth=16,runtime=60",
        "--seed",
        "11",
        "--html",
        page.to_str().unwrap(),
    ]);
    assert!(printed.contains(&format!("charts: {}", page.display())), "{printed}");
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.len() < 200_000, "{} bytes", html.len());
    let Some(rendered) = rendered(&page, &directory.path().join("profile")) else {
        println!("SKIPPED: chromium is missing");
        return;
    };
    for title in ["Operations", "Throughput", "Latency", "Queue", "Burst credits of the volume"] {
        assert!(rendered.contains(&format!("<figcaption>{title}")), "no chart '{title}'");
    }
    assert_eq!(rendered.matches("<canvas").count(), 5, "a canvas for every chart");
    assert!(rendered.contains("Credits ended after 20 s; from then on 300 IOPS"), "the findings");
    assert!(rendered.contains("--seed 11") && rendered.contains("<dd>11</dd>"), "the seed and the command");
}
