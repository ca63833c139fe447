//! The limits of the redo log: from which age on pages are written sooner, and transactions wait.

use ebbtide_volume::{KIB, MIB};

use super::flavour::{Flavour, Settings};

/// Ages of the oldest change that is not in the data files, bytes of redo.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RedoLimits {
    /// The age that adaptive flushing measures against.
    pub asynchronous: f64,
    /// From here on the page cleaner writes as fast as it can.
    pub synchronous: f64,
    /// Transactions that would exceed it wait for a checkpoint (`log_free_check`).
    pub full: f64,
}

impl RedoLimits {
    /// The limits of a server.
    ///
    /// MySQL: `log0files_capacity.cc` and `log0chkp.cc` of 8.0.30 and later; 5.7 has the same shares of the capacity
    /// of its files. MariaDB: `log_t::set_capacity` in `log0log.cc` of 10.5 to 11.
    #[must_use]
    pub fn of(settings: &Settings) -> Self {
        match settings.flavour {
            Flavour::MySql57 | Flavour::MySql80 | Flavour::MySql84 => Self::mysql(settings),
            Flavour::MariaDb105 | Flavour::MariaDb11 => Self::mariadb(settings),
        }
    }

    fn mysql(settings: &Settings) -> Self {
        let physical = settings.redo_capacity_bytes as f64;
        let file = physical / 32.0;
        let hard = physical * 30.0 / 32.0 - (31 * 2 * KIB + 2 * 64 * KIB) as f64 - file / 10.0;
        let soft = 0.95 * hard;
        let threads = f64::from(settings.thread_concurrency) + 10.0;
        let margin = threads * 4.0 * f64::from(settings.page_bytes) + 4.0 * KIB as f64 + 0.05 * soft;
        let margin = margin.min(0.55 * soft);
        let asynchronous = soft * 7.0 / 8.0 - margin;
        let synchronous = soft * 15.0 / 16.0 - margin;
        Self { asynchronous: asynchronous.max(1.0), synchronous: synchronous.max(2.0), full: soft - margin }
    }

    fn mariadb(settings: &Settings) -> Self {
        let capacity = 0.9 * (settings.redo_capacity_bytes as f64 - 12.0 * KIB as f64);
        let margin = 0.9 * (capacity - 48.0 * f64::from(settings.page_bytes));
        Self { asynchronous: margin * 7.0 / 8.0, synchronous: margin * 7.0 / 8.0, full: margin }
    }
}

/// The smallest redo log that the model takes, bytes: below it the margins leave nothing.
pub const LEAST_REDO_BYTES: u64 = 8 * MIB;

#[cfg(test)]
mod tests {
    use super::*;

    fn mib(bytes: f64) -> f64 {
        bytes / MIB as f64
    }

    #[test]
    fn a_redo_log_of_100_mib_on_mysql_80_has_the_limits_of_its_source() {
        let limits = RedoLimits::of(&Settings::of(Flavour::MySql80, 1 << 30));
        // hard 93.2, soft 88.6, margin 5.1 MiB; asynchronous 7/8, synchronous 15/16 of soft.
        assert!((mib(limits.full) - 83.5).abs() < 0.5, "{}", mib(limits.full));
        assert!((mib(limits.asynchronous) - 72.4).abs() < 0.5, "{}", mib(limits.asynchronous));
        assert!(limits.asynchronous < limits.synchronous && limits.synchronous < limits.full);
    }

    #[test]
    fn mariadb_lets_transactions_wait_at_four_fifths_of_the_file() {
        let settings = Settings::of(Flavour::MariaDb105, 1 << 30);
        let limits = RedoLimits::of(&settings);
        let share = limits.full / settings.redo_capacity_bytes as f64;
        assert!((share - 0.80).abs() < 0.01, "{share}");
        assert!((limits.asynchronous / limits.full - 0.875).abs() < 1e-9);
    }
}
