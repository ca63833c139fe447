//! A page in a real browser, for the tests of every crate that makes pages.

use std::path::Path;
use std::process::Command;

/// Names that lead nowhere.
const NO_NETWORK: &str = "MAP * ~NOTFOUND";
/// The same, but for a server of this machine by its number.
const THIS_MACHINE: &str = "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1";

/// What a browser makes of a page: its elements after the scripts have run, and its complaints. None
/// where there is no browser. It has no network.
#[must_use]
pub fn browse(html: &str) -> Option<(String, String)> {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("report.html");
    std::fs::write(&page, html).unwrap();
    dump(directory.path(), NO_NETWORK, &[], &format!("file://{}", page.display()))
}

/// The same of a page that a server has at 127.0.0.1, with more options of the browser. It is looked at when it is loaded: a page that
/// wants to do more first has an image that comes later.
#[must_use]
pub fn browse_url(url: &str, options: &[&str]) -> Option<(String, String)> {
    let directory = tempfile::tempdir().unwrap();
    dump(directory.path(), THIS_MACHINE, options, url)
}

/// Writes a picture of such a page into a file, so many pixels wide and high. Without a browser there is none.
pub fn picture(url: &str, options: &[&str], (width, height): (u32, u32), file: &Path) {
    let directory = tempfile::tempdir().unwrap();
    let output = chromium(directory.path(), THIS_MACHINE)
        .args(options)
        .args(["--hide-scrollbars", "--force-device-scale-factor=1"])
        .arg(format!("--window-size={width},{height}"))
        .arg(format!("--screenshot={}", file.display()))
        .arg(url)
        .output();
    let Ok(output) = output else {
        println!("SKIPPED: chromium is missing");
        return;
    };
    assert!(output.status.success(), "chromium: {}", String::from_utf8_lossy(&output.stderr));
}

/// A browser with an empty profile in a directory.
fn chromium(directory: &Path, resolver_rules: &str) -> Command {
    let mut command = Command::new("chromium");
    command
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--enable-logging=stderr", "--v=0"])
        .arg(format!("--host-resolver-rules={resolver_rules}"))
        .arg(format!("--user-data-dir={}", directory.join("profile").display()));
    command
}

fn dump(directory: &Path, resolver_rules: &str, options: &[&str], url: &str) -> Option<(String, String)> {
    let output = chromium(directory, resolver_rules).args(options).arg("--dump-dom").arg(url).output();
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
