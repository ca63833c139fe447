//! Harm where none may be: its images are kept, and the failure names the damage, the file and the command that judges it
//! again.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use ebbtide_crash::harm;
use ebbtide_crash::page::replay;
use ebbtide_crash::record::{CrashRun, Cut, VerdictKind};

use crate::support::Bench;

/// The cuts of an arm, of which each must have recovered with no other verdict than the `allowed` ones.
pub(crate) fn unharmed<'a>(
    bench: &Bench,
    run: &'a CrashRun,
    arm: &str,
    allowed: &[VerdictKind],
) -> Vec<&'a Cut> {
    let cuts: Vec<_> = run.cuts.iter().filter(|cut| cut.arm == arm).collect();
    if let Some(Harm { text, .. }) = find(bench, &cuts, allowed) {
        panic!("{text}");
    }
    cuts
}

/// Harm that was found.
pub(crate) struct Harm {
    /// The home with the images, where no later run overwrites them.
    pub(crate) home: PathBuf,
    /// Every bad cut, with its damage and the command that judges its image again.
    pub(crate) text: String,
}

/// The cuts with another verdict than the `allowed` ones, if any.
pub(crate) fn find(bench: &Bench, cuts: &[&Cut], allowed: &[VerdictKind]) -> Option<Harm> {
    let is_whole =
        |cut: &Cut| cut.recovery.is_some() && cut.kinds().iter().all(|kind| allowed.contains(kind));
    let bad: Vec<_> = cuts.iter().filter(|cut| !is_whole(cut)).collect();
    if bad.is_empty() {
        return None;
    }
    let home = set_aside(bench);
    let mut text = format!("{} of {} cuts did harm where none may be\n", bad.len(), cuts.len());
    for cut in bad {
        for line in harm(cut) {
            let _ = writeln!(text, "  {line}");
        }
        let again = if cut.kept {
            replay(home.to_str().unwrap(), cut.seed)
        } else {
            "its image was not kept".to_owned()
        };
        let _ = writeln!(text, "judge it again: {again}");
    }
    Some(Harm { home, text })
}

/// Moves the home of a test to where no other test writes, with all that it keeps: its new place.
fn set_aside(bench: &Bench) -> PathBuf {
    let out = bench.out();
    let name = out.parent().and_then(Path::file_name).and_then(|name| name.to_str()).unwrap();
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("kept-{}", name.trim_start_matches('.')));
    std::fs::rename(bench.home(), &place).unwrap();
    place
}
