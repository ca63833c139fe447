//! The files of others that every report contains are those that were fetched.
#![allow(clippy::unwrap_used)] // in a test a failed step is a failed test

use std::fmt::Write as _;
use std::path::Path;

use ring::digest::{SHA256, digest};

#[test]
fn vendored_files_have_the_digests_of_their_provenance() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/uplot");
    let provenance = std::fs::read_to_string(folder.join("PROVENANCE.md")).unwrap();
    let mut names: Vec<_> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.retain(|name| name != "PROVENANCE.md");
    assert_eq!(names.len(), 3, "{names:?}");
    for name in names {
        let bytes = std::fs::read(folder.join(&name)).unwrap();
        let hex = digest(&SHA256, &bytes).as_ref().iter().fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").unwrap();
            hex
        });
        let row = format!("| `{}` | `{hex}` |", name.display());
        assert!(provenance.contains(&row), "PROVENANCE.md does not have {row}");
    }
}
