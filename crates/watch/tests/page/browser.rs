//! The page in a real browser, at the width of a telephone and of a screen, light and dark.
//!
//! With EBBTIDE_SCREENSHOTS=DIRECTORY, pictures of all cases are written there, for people to look at:
//! `EBBTIDE_SCREENSHOTS=/tmp/pictures cargo test -p ebbtide-watch --test page browser`.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use ebbtide_http::{Page, Rendered, Server, Site, Unavailable};
use ebbtide_testing::browser::{browse_url, picture};
use ebbtide_watch::page::pages;
use serde_json::Value;

use crate::source::{HOSTILE, MadeUp, volume};

/// A page of the test with the page under test in a frame, which can be narrower than a window.
const FRAME: &str = include_str!("frame.html");
const HEIGHT: u32 = 2_400;
/// How long the page may take for all that the frame does with it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whether the frame has looked at everything.
type Finished = Arc<(Mutex<bool>, Condvar)>;

#[derive(Debug)]
struct FramePage(String);

impl Page for FramePage {
    fn render(&self) -> Result<Rendered, Unavailable> {
        Ok(Rendered { content_type: "text/html; charset=utf-8", body: self.0.clone() })
    }
}

/// An image that comes when the frame has looked at everything: the browser waits for it.
#[derive(Debug)]
struct WaitPage(Finished);

impl Page for WaitPage {
    fn render(&self) -> Result<Rendered, Unavailable> {
        let (finished, changed) = &*self.0;
        let locked = finished.lock().unwrap();
        let (mut locked, _) = changed.wait_timeout_while(locked, PATIENCE, |finished| !*finished).unwrap();
        *locked = false;
        let body = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1\" height=\"1\"/>".to_owned();
        Ok(Rendered { content_type: "image/svg+xml", body })
    }
}

#[derive(Debug)]
struct FinishedPage(Finished);

impl Page for FinishedPage {
    fn render(&self) -> Result<Rendered, Unavailable> {
        let (finished, changed) = &*self.0;
        *finished.lock().unwrap() = true;
        changed.notify_all();
        Ok(Rendered { content_type: "text/plain", body: String::new() })
    }
}

/// A page under test.
#[derive(Debug, Clone, Copy)]
struct Case<'a> {
    name: &'a str,
    path: &'a str,
    servers: usize,
    width: u32,
    dark: bool,
}

/// What the frame has found; None where there is no browser.
fn look(case: Case<'_>) -> Option<Value> {
    let Case { name, path, servers, width, dark } = case;
    let scheme = if dark { "dark" } else { "light" };
    let frame = FRAME
        .replace("PATH", path)
        .replace("WIDTH", &width.to_string())
        .replace("HEIGHT", &HEIGHT.to_string())
        .replace("SCHEME", scheme);
    let finished = Finished::default();
    let site = Site::default()
        .with("/frame", FramePage(frame))
        .with("/wait", WaitPage(Arc::clone(&finished)))
        .with("/finished", FinishedPage(finished));
    let server = Server::start("0".parse().unwrap(), pages(site, &MadeUp::with_servers(servers))).unwrap();
    let url = format!("http://{}/frame", server.address());
    let setting = format!("--blink-settings=preferredColorScheme={}", if dark { 0 } else { 1 });
    let (dom, console) = browse_url(&url, &[setting.as_str()])?;
    assert_eq!(console, "", "{case:?}");
    if let Ok(directory) = std::env::var("EBBTIDE_SCREENSHOTS") {
        let file = Path::new(&directory).join(format!("{name}-{width}-{scheme}.png"));
        picture(&url, &[setting.as_str()], (width.max(500), HEIGHT), &file);
    }
    let found = dom.split_once("<pre id=\"found\">").unwrap().1.split_once("</pre>").unwrap().0;
    let found = found.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    Some(serde_json::from_str(&found).unwrap_or_else(|error| panic!("{case:?}: {error}: {found}")))
}

fn encoded_volume() -> String {
    let name = volume(HOSTILE);
    name.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[test]
fn graphs_are_drawn_at_each_width_light_and_dark_and_nothing_is_cut() {
    let hostile = format!("/volume/{}", encoded_volume());
    for (name, path, servers) in [
        ("overview", "/", 3),
        ("server", "/server/db1", 3),
        ("volume", hostile.as_str(), 3),
        ("week", "/?range=7d", 20),
    ] {
        for (width, dark) in [(360, false), (1_280, true)] {
            let case = Case { name, path, servers, width, dark };
            let Some(found) = look(case) else { return };
            assert_eq!(found["error"], "", "{case:?}");
            assert_eq!(found["drawn"], "6", "{case:?}");
            assert_eq!(found["inked"], 6, "each graph has something in it: {case:?}");
            assert_eq!(found["width"], width, "{case:?}");
            assert!(
                found["scroll_width"].as_u64() <= found["width"].as_u64(),
                "the page is wider than its window: {found} {case:?}"
            );
            assert_eq!(found["dark"], dark, "the browser did not take the scheme: {case:?}");
            assert_eq!(found["dark_page"], dark, "{case:?}");
            assert_eq!(found["connection"], "The figures follow each sample.", "{case:?}");
            println!("{case:?}: drawn {} ms after the page began", found["drawn_ms"]);
        }
    }
}

#[test]
fn a_view_changes_the_figures_and_keys_read_zoom_and_go_back() {
    let case = Case { name: "keys", path: "/server/db1", servers: 3, width: 1_280, dark: false };
    let Some(found) = look(case) else { return };
    let spoken = found["spoken"].as_str().unwrap();
    assert!(spoken.contains("reads ") && spoken.contains("/s, writes "), "{found}");
    assert!(found["cursors_in_step"].as_bool().unwrap(), "{found}");
    let zoomed = found["zoomed"].as_str().unwrap();
    assert!(zoomed.contains("from=") && zoomed.contains("&to="), "the link has the span: {found}");
    assert_eq!(found["back"], "", "n goes back to now: {found}");
    assert!(found["moment_changed"].as_bool().unwrap(), "the figures follow the views: {found}");
    assert_eq!(found["unnamed"], 0, "each button, link and table has a name: {found}");
}
