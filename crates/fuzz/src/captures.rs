//! What other programs printed of a server and of its devices, captures, and option files.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use ebbtide_captured::configuration::configured;
use ebbtide_captured::option_file::OptionFile;
use ebbtide_captured::{Hints, Input, is_known, observation, recorded};
use ebbtide_catalog::Catalog;
use ebbtide_observe::{Files, Observation};

use crate::text;

/// A file that is not there: includes and files beside it are not read.
const NOWHERE: &str = "/nonexistent/ebbtide-fuzz/x";

static CATALOG: LazyLock<Catalog> = LazyLock::new(Catalog::builtin);

fn input(text: &str) -> Input {
    Input { path: PathBuf::from(NOWHERE), text: text.to_owned() }
}

fn judge(observation: &Observation) {
    drop(ebbtide_advisor::judge(observation, &CATALOG));
}

/// What the doctor reads.
pub(super) fn captured(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let input = input(text);
    if !is_known(&input) {
        return;
    }
    let hints = Hints { version: Some("8.0.36".into()), devices: vec![(Files::Data, "vda".into())] };
    if let Ok(mut seen) = observation("/c", std::slice::from_ref(&input), &hints) {
        seen.volume = Some("gp2:size=500GiB".into());
        judge(&seen);
    }
}

/// The observation in a file of `ebbtide doctor capture`.
pub(super) fn capture(bytes: &[u8]) {
    if let Ok(observation) = serde_json::from_slice::<Observation>(bytes) {
        judge(&observation);
    }
}

/// What is sized.
pub(super) fn load(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    for interval_s in [None, Some(60.0)] {
        let Ok(read) = recorded(&[input(text)], interval_s) else { continue };
        for interval in read.loads.values().flat_map(|load| &load.intervals) {
            assert!(interval.seconds > 0.0 && interval.seconds.is_finite(), "{interval:?}");
            assert!(interval.start_s.is_finite() && interval.ios() >= 0.0, "{interval:?}");
        }
    }
}

/// `my.cnf`.
pub(super) fn option_file(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let file = OptionFile::of_text(Path::new(NOWHERE), text);
    drop(configured(&file, None, None, &mut Vec::new()));
}
