//! What volumes count of a load: operations and bytes of each step, as whole numbers.
//!
//! They depend on the unit and on the stripes, not on the rates. A search that varies the rates counts once.

use ebbtide_volume::Accounting;

use super::demand::{Demand, Rounding, Side, Step, whole};
use super::setup::Setup;

/// Bytes that a request begins at a multiple of: a page of InnoDB.
const PAGE: f64 = 16_384.0;

/// What decides how much volumes count of a load.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Counting {
    accounting: Accounting,
    members: u16,
    chunk_bytes: u64,
}

/// What volumes count of a load.
#[derive(Debug, Clone)]
pub(super) struct Charges {
    counting: Counting,
    pub(super) steps: Vec<Charge>,
}

/// What they count of a step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Charge {
    /// Its length, ns.
    pub(super) nanos: u64,
    /// Operations of all volumes together.
    pub(super) operations: u64,
    /// Bytes of all together.
    pub(super) bytes: u64,
    /// Operations of one of them.
    pub(super) member_operations: u64,
    /// Bytes of one of them.
    pub(super) member_bytes: u64,
}

impl Counting {
    fn of(setup: &Setup<'_>) -> Self {
        Self { accounting: setup.limits.accounting, members: setup.members, chunk_bytes: setup.chunk_bytes }
    }

    /// Requests are split at the volume's unit and at the ends of chunks. How sequential the load is, is not known: nothing is
    /// merged, and a disk charges whole units.
    fn charge(&self, step: &Step, rounding: Rounding) -> Charge {
        let unit = f64::from(self.accounting.unit_bytes);
        let split = |side| if self.members > 1 { self.split(side, rounding) } else { 0.0 };
        let count = |side| rounding.operations(side, unit) + split(side);
        let (mut operations, mut bytes) = (count(step.reads), step.reads.bytes);
        if !self.accounting.free_writes {
            operations += count(step.writes);
            bytes += step.writes.bytes;
        }
        if self.accounting.whole_units {
            bytes = operations * unit;
        }
        let members = f64::from(self.members);
        Charge {
            nanos: step.nanos,
            operations: whole(operations),
            bytes: whole(bytes),
            member_operations: whole(operations / members),
            member_bytes: whole(bytes / members),
        }
    }

    /// Operations that the ends of chunks add to requests that begin at any page.
    ///
    /// A request of `k` whole units and `r` bytes more needs one more operation where a chunk ends within it, unless the part
    /// before that end fills as many units. Of the places that it may begin at, that is `(k + 1) * (r - PAGE) / chunk`, and no
    /// more than `(r - PAGE) / unit` of one that is longer than a chunk.
    fn split(&self, side: Side, rounding: Rounding) -> f64 {
        if side.ios <= 0.0 {
            return 0.0;
        }
        let (size, unit, chunk) =
            (side.bytes / side.ios, f64::from(self.accounting.unit_bytes), self.chunk_bytes as f64);
        if !self.chunk_bytes.is_multiple_of(u64::from(self.accounting.unit_bytes)) {
            // No part is longer than a chunk: each part is an operation of a longer unit.
            let parts = side.ios * (1.0 + (size - PAGE).max(0.0) / chunk);
            return if chunk < unit { parts - rounding.operations(side, unit) } else { parts - side.ios };
        }
        let units = rounding.units(size, unit);
        let rest = (size - (units - 1.0) * unit).clamp(0.0, unit);
        side.ios * units.min(chunk / unit) * (rest - PAGE).max(0.0) / chunk
    }
}

impl Charges {
    /// What the volumes of a setup count of a load.
    pub(super) fn of(demand: &Demand, setup: &Setup<'_>) -> Self {
        let counting = Counting::of(setup);
        let steps = demand.steps.iter().map(|step| counting.charge(step, demand.rounding)).collect();
        Self { counting, steps }
    }

    /// Whether the volumes of a setup count the same.
    pub(super) fn are_of(&self, setup: &Setup<'_>) -> bool {
        self.counting == Counting::of(setup)
    }
}
