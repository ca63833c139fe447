//! How often refused connections are logged: a client that connects in a loop must not fill the disk.

use ebbtide_volume::Nanos;

/// Shortest time between two lines.
pub(super) const EVERY: Nanos = Nanos::from_secs(10);

/// Counts refused connections, and returns when a line is due.
#[derive(Debug, Default)]
pub(super) struct RefusedLog {
    last: Option<Nanos>,
    unlogged: u64,
}

impl RefusedLog {
    /// Counts one refused connection. Where a line is due, gives how many were refused since the
    /// line before, this one included.
    pub(super) fn count(&mut self, now: Nanos) -> Option<u64> {
        self.unlogged += 1;
        if self.last.is_some_and(|last| now.since(last) < EVERY) {
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.unlogged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_refusals_gives_a_line_in_ten_seconds_and_each_is_counted_once() {
        let mut log = RefusedLog::default();
        let (mut lines, mut counted) = (0, 0);
        // A thousand a second for an hour.
        for millisecond in 0..3_600_000 {
            if let Some(refused) = log.count(Nanos(millisecond * 1_000_000)) {
                (lines, counted) = (lines + 1, counted + refused);
            }
        }
        assert_eq!(lines, 360);
        assert_eq!(counted + log.unlogged, 3_600_000);
    }

    #[test]
    fn a_refusal_after_a_quiet_time_is_logged_at_once() {
        let mut log = RefusedLog::default();
        assert_eq!(log.count(Nanos::from_secs(5)), Some(1));
        assert_eq!(log.count(Nanos::from_secs(14)), None);
        assert_eq!(log.count(Nanos::from_secs(15)), Some(2));
        assert_eq!(log.count(Nanos::from_secs(900)), Some(1));
    }
}
