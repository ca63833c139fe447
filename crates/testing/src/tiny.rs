//! Tiny runs of benches: a second of work, to see that a bench starts and ends. All benches share it.

use std::env;

/// Whether everything is to be done on a small scale and nothing judged: with `BENCH_TINY=1` in the
/// environment (`./dev bench --tiny`), and where `cargo test` runs the bench, which passes no `--bench`.
#[must_use]
pub fn tiny() -> bool {
    let asked = env::var("BENCH_TINY").is_ok_and(|value| !matches!(value.as_str(), "" | "0"));
    asked || !env::args().any(|word| word == "--bench")
}
