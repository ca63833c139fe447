//! How much a test repeats what it does.

use std::env;

/// How often a test repeats something: as often as `all` with `EBBTIDE_TEST_ALL=1` in the environment (`./dev test --all`), else as
/// often as `usual`. For what holds each time: more repeats find what is rarer, and nothing else.
#[must_use]
pub fn repeats(usual: u32, all: u32) -> u32 {
    if env::var("EBBTIDE_TEST_ALL").is_ok_and(|value| !matches!(value.as_str(), "" | "0")) {
        all
    } else {
        usual
    }
}
