//! How long something took, in processor time: other programs on the machine are no fault of what is measured.

use std::fs;
use std::time::Instant;

/// A moment, in real time and in this thread's processor time.
#[derive(Debug)]
pub struct Time {
    real: Instant,
    processor_ns: Option<u64>,
}

impl Time {
    /// This moment.
    #[must_use]
    pub fn now() -> Self {
        let schedule = fs::read_to_string("/proc/thread-self/schedstat").ok();
        let processor_ns = schedule.and_then(|text| text.split(' ').next()?.parse().ok());
        Self { real: Instant::now(), processor_ns }
    }

    /// Seconds of processor time since then, or of real time where the system does not report.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        let now = Self::now();
        match (now.processor_ns, self.processor_ns) {
            (Some(now), Some(then)) => (now - then) as f64 / 1e9,
            _ => self.real.elapsed().as_secs_f64(),
        }
    }
}
