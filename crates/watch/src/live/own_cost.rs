//! What watching costs: of this machine, and of the servers.

use std::collections::VecDeque;

use ebbtide_proc::process::OwnUsage;
use ebbtide_volume::Nanos;

use crate::view::OwnCost;

/// Shares are of this time.
const MINUTE: Nanos = Nanos::from_secs(60);

/// What was spent so far, at one moment.
#[derive(Debug, Clone, Copy)]
struct Spent {
    time: Nanos,
    processor_s: Option<f64>,
    server_s: f64,
}

/// What was spent in the last minute.
#[derive(Debug, Default)]
pub(super) struct CostMeter {
    minute: VecDeque<Spent>,
    resident_bytes: Option<u64>,
}

impl CostMeter {
    /// Takes what was spent so far: by this process, and by servers on our statements.
    pub(super) fn take(&mut self, time: Nanos, process: Option<&OwnUsage>, server_s: f64) {
        let processor_s = process.map(|usage| usage.cpu.as_secs_f64());
        self.resident_bytes = process.map(|usage| usage.resident_bytes);
        self.minute.push_back(Spent { time, processor_s, server_s });
        // The oldest one stays until the next is a minute old.
        while self.minute.get(1).is_some_and(|next| time.since(next.time) >= MINUTE) {
            self.minute.pop_front();
        }
    }

    /// The shares; None before two looks.
    pub(super) fn cost(&self, skipped: u64) -> OwnCost {
        let unknown = OwnCost { resident_bytes: self.resident_bytes, skipped, ..OwnCost::default() };
        let (Some(first), Some(last)) = (self.minute.front(), self.minute.back()) else { return unknown };
        let seconds = last.time.since(first.time).as_secs_f64();
        if seconds <= 0.0 {
            return unknown;
        }
        let spent = first.processor_s.zip(last.processor_s).map(|(first, last)| last - first);
        OwnCost {
            processor_share: spent.map(|spent| spent.max(0.0) / seconds),
            server_share: Some((last.server_s - first.server_s).max(0.0) / seconds),
            ..unknown
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_share_is_that_of_the_last_minute() {
        let mut meter = CostMeter::default();
        assert_eq!(meter.cost(0).processor_share, None);
        for second in 0..600_u64 {
            // 10% at first, then 1%.
            let ms = if second < 300 { second * 100 } else { 30_000 + (second - 300) * 10 };
            let cpu = Duration::from_millis(ms);
            let usage = OwnUsage { cpu, resident_bytes: 7, started_unix_s: 0.0, open_files: 1 };
            meter.take(Nanos::from_secs(second), Some(&usage), 0.002 * second as f64);
        }
        let cost = meter.cost(3);
        assert!((cost.processor_share.unwrap() - 0.01).abs() < 1e-9, "{cost:?}");
        assert!((cost.server_share.unwrap() - 0.002).abs() < 1e-9, "{cost:?}");
        assert_eq!((cost.resident_bytes, cost.skipped), (Some(7), 3));
    }
}
