//! A run before and while it lasts, in words: what would run and for how long ([`plan`]), and what goes on ([`progress`]). What it
//! found is a document of [`crate::page`].

pub mod plan;
pub mod progress;

/// A span for people who wait: from two minutes on, in whole minutes and rounded up.
#[must_use]
pub fn span(seconds: f64) -> String {
    let minutes = (seconds / 60.0).ceil();
    ebbtide_text::seconds(if seconds < 120.0 { seconds } else { 60.0 * minutes })
}
