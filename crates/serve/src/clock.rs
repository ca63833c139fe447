//! The clock of this machine, for the AWS endpoint and for samples.

use std::time::{SystemTime, UNIX_EPOCH};

use ebbtide_cloud::front::Clock;

/// The clock of this machine.
#[derive(Debug)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or_default()
    }
}
