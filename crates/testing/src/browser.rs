//! A page in a real browser, for the tests of every crate that makes pages.

use std::process::Command;

/// What a browser makes of a page: its elements after the scripts have run, and its complaints. None
/// where there is no browser. It has no network.
#[must_use]
pub fn browse(html: &str) -> Option<(String, String)> {
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

/// A page as a browser has it in which JavaScript is switched off, and the text that its reader sees: every element of
/// the page's own markup, without its scripts and styles.
#[must_use]
pub fn without_scripts(html: &str) -> (String, String) {
    let mut page = html.to_owned();
    for name in ["script", "style"] {
        let (open, close) = (format!("<{name}"), format!("</{name}>"));
        while let Some(start) = page.find(&open) {
            let end = page[start..].find(&close).unwrap() + start + close.len();
            page.replace_range(start..end, "");
        }
    }
    let body = page.split_once("<body>").unwrap().1;
    let pieces = body.split('<').map(|piece| piece.split_once('>').map_or(piece, |(_, text)| text));
    let text = pieces.collect::<Vec<_>>().join(" ");
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&");
    (page, text.split_whitespace().collect::<Vec<_>>().join(" "))
}
