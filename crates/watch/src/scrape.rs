//! What a scrape answers with: all families.

use std::time::Duration;

use ebbtide_control::ObservedVolume;
use ebbtide_proc::process::OwnUsage;

use crate::exposition::{Exposition, Number};
use crate::names::{BUILD_INFO, SCRAPE_DURATION};
use crate::{process, volumes};

/// Which program answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Build<'a> {
    /// Its version.
    pub version: &'a str,
    /// The commit that it was built from; empty where it was built without git.
    pub commit: &'a str,
}

/// What was read for a scrape.
#[derive(Debug, Clone, Copy)]
pub struct Scrape<'a> {
    /// All volumes, by name.
    pub volumes: &'a [ObservedVolume],
    /// What the process takes; none where the kernel does not report it.
    pub process: Option<OwnUsage>,
    /// The program.
    pub build: Build<'a>,
}

/// The text of a scrape, as [`CONTENT_TYPE`](crate::CONTENT_TYPE) says. `took` is asked once, at the end: for how long the scrape
/// has gone on by then.
#[must_use]
pub fn scrape_text(scrape: &Scrape<'_>, took: impl FnOnce() -> Duration) -> String {
    let Scrape { volumes, process, build: Build { version, commit } } = *scrape;
    let mut text = Exposition::default();
    text.add(&BUILD_INFO, &[("version", version), ("commit", commit)], Number::Whole(1));
    volumes::add(&mut text, volumes);
    if let Some(usage) = process {
        process::add(&mut text, &usage);
    }
    text.add(&SCRAPE_DURATION, &[], Number::Time(took().into()));
    text.into_text()
}
