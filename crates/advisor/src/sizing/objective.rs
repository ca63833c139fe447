//! What a configuration has to do.

use ebbtide_volume::Nanos;

use super::carry::Carried;

/// What a configuration has to do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Objective {
    /// Usable size, bytes.
    pub size_bytes: u64,
    /// Share of the time (0 to 1) in which no I/O may wait for a limit.
    pub carried: f64,
    /// 99 of 100 I/Os take at most this; None: whatever they take.
    pub p99: Option<Nanos>,
}

impl Objective {
    /// Whether a load that is carried like this meets it; the size apart.
    #[must_use]
    pub fn met_by(&self, carried: &Carried) -> bool {
        !carried.overloaded
            && carried.waiting <= 1.0 - self.carried + 1e-12
            && self.p99.is_none_or(|most| carried.slower_than(most) <= 0.01)
    }
}
