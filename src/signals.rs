//! Ending what lasts long in order.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context as _;
use ebbtide_load::Cancel;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// The signals that end in order what lasts long. SIGHUP is none of them where this process was started to outlive its terminal, as
/// `nohup` does.
pub(crate) fn signals() -> impl Iterator<Item = c_int> {
    let hangup = !ebbtide_proc::process::ignores(SIGHUP.unsigned_abs());
    [SIGINT, SIGTERM].into_iter().chain(hangup.then_some(SIGHUP))
}

/// Is cancelled by the first of these signals; the second one ends the program.
pub(crate) fn cancel_on(signals: impl IntoIterator<Item = c_int>) -> anyhow::Result<Cancel> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in signals {
        let die = signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&flag));
        die.and_then(|_| signal_hook::flag::register(signal, Arc::clone(&flag)))
            .context("cannot watch for signals")?;
    }
    Ok(Cancel::from(flag))
}
