//! What a volume may do, as data. The catalogue fills it in; the physics only reads it.

use crate::{AtomicUnit, Durability, LimitsError, RateLimit, ServiceTimes};

/// How sequential small I/O is merged before it is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Merge {
    /// Every I/O counts by itself.
    Never,
    /// An I/O that continues one whose unit still waits for a limit joins that unit (SSD volumes:
    /// requests can only be merged while both wait). Where nothing waits, nothing is merged.
    Waiting,
    /// An I/O that continues one which is still in flight joins its unit, whether that waits for a
    /// limit or is being served (records of a log that are sent at the same time).
    InFlight,
    /// An I/O that continues the last one of its stream joins its unit, however long ago that
    /// was (HDD volumes: the head is still there).
    Contiguous,
}

/// How I/O is turned into the operations and bytes that the limits count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Accounting {
    /// Largest I/O that counts as one operation, in bytes (EBS: 256 KiB on SSD, 1 MiB on HDD).
    pub unit_bytes: u32,
    /// When a contiguous I/O joins the unit before it.
    pub merge: Merge,
    /// Whether an I/O that continues no stream costs whole units of throughput however little of them it
    /// uses (st1, sc1). What continues it uses the rest of them, and then costs its own bytes.
    pub whole_units: bool,
    /// Whether writes cost nothing and are not counted (pages that a storage makes of the log by itself).
    pub free_writes: bool,
}

impl Accounting {
    /// Each I/O is one operation, up to 256 KiB.
    #[must_use]
    pub const fn per_io() -> Self {
        Self { unit_bytes: 256 << 10, merge: Merge::Never, whole_units: false, free_writes: false }
    }
}

/// Everything that the physics needs to know of a volume.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Limits {
    /// Size of the volume in bytes.
    pub size_bytes: u64,
    /// Operations a second, counted as `accounting` defines; none: unlimited.
    pub iops: Option<RateLimit>,
    /// Bytes a second; none: unlimited.
    pub throughput: Option<RateLimit>,
    /// How I/O is counted.
    pub accounting: Accounting,
    /// How long an I/O takes when nothing throttles it.
    pub service: ServiceTimes,
    /// What survives a power cut.
    pub durability: Durability,
}

impl Limits {
    /// A volume of a size in bytes that nothing limits, that answers at once, without a volatile cache.
    #[must_use]
    pub fn unlimited(size_bytes: u64) -> Self {
        Self {
            size_bytes,
            iops: None,
            throughput: None,
            accounting: Accounting::per_io(),
            service: ServiceTimes::instant(),
            durability: Durability { atomic_unit: AtomicUnit::FourKib, volatile_cache_bytes: 0 },
        }
    }

    /// Checks what a catalogue entry or an override file may have got wrong.
    ///
    /// # Errors
    /// The first contradiction found.
    pub fn check(&self) -> Result<(), LimitsError> {
        for rate in self.iops.iter().chain(&self.throughput) {
            rate.check()?;
        }
        if self.accounting.unit_bytes == 0 {
            return Err(LimitsError::ZeroUnit);
        }
        if self.size_bytes == 0 {
            return Err(LimitsError::ZeroSize);
        }
        self.service.check()
    }
}
