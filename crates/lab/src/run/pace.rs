//! What a home remembers of how long parts of runs took, for the estimates of later ones.

use std::path::Path;

use ebbtide_dir::Dir;

use super::home::Lab;
use crate::experiment::{Pace, Paces};

/// The file, in the lab's directory of a home.
const FILE: &str = "paces.json";
/// Root alone reads and changes it.
const MODE: u32 = 0o600;

/// What was kept of them; nothing where there is none, or this user may not read it.
pub(super) fn read(lab: &Path) -> Paces {
    let bytes = std::fs::read(lab.join(FILE)).unwrap_or_default();
    // Estimates can do without a file that is missing or of another version.
    serde_json::from_slice(&bytes).unwrap_or_default()
}

/// Keeps how long a part of a run took. A run goes on without.
pub fn note(lab: &Lab, pace: Pace) {
    let root = lab.host.home().root();
    let mut paces = read(root);
    paces.add(pace);
    let bytes = serde_json::to_vec(&paces).expect("paces are plain data");
    let written = Dir::open(root).and_then(|dir| dir.replace(FILE, &bytes, MODE, None));
    if let Err(error) = written {
        tracing::warn!(%error, "how long a part of the run took is not kept");
    }
}
