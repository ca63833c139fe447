//! Ending what lasts long in order.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context as _;
use ebbtide_load::Cancel;

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
