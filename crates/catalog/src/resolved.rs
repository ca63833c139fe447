//! What a spec comes to.

use ebbtide_volume::{Array, GIB, Limits, Nanos};

use crate::Spec;

/// A spec with everything filled in, and what its volumes may do.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// The spec with every default written out; parsing its text gives this resolution again.
    pub spec: Spec,
    /// The limits of each member; one where nothing is striped.
    pub members: Vec<Limits>,
    /// Bytes that go to one member before the next one's turn.
    pub chunk_bytes: u64,
    /// Share of full burst credits at creation, 0 to 1, where the spec gives it.
    pub credit_share: Option<f64>,
    /// One line for people: type, size and what it may do.
    pub description: String,
    /// The figures of one member, for display.
    pub figures: VolumeFigures,
    /// Where the limits come from.
    pub provenance: Provenance,
    /// Where the service times come from.
    pub service_provenance: Provenance,
}

/// What one volume may do, for people.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct VolumeFigures {
    /// Operations a second that hold for ever (provisioned, or the baseline); none: no limit.
    pub iops: Option<u64>,
    /// Operations a second while burst credits last; none where nothing bursts.
    pub burst_iops: Option<u64>,
    /// MiB/s that hold for ever; none: no limit.
    pub throughput_mib_s: Option<f64>,
    /// MiB/s while burst credits last; none where nothing bursts.
    pub burst_throughput_mib_s: Option<f64>,
    /// Seconds that full credits last at the burst ceiling; none where nothing bursts.
    pub burst_seconds: Option<f64>,
    /// Seconds in which empty credits fill up on an idle volume; none where there are no credits.
    pub refill_seconds: Option<f64>,
}

/// Where a figure comes from.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Provenance {
    /// The page, the dataset or the measurement.
    pub source: String,
    /// When it was read or measured.
    pub date: String,
    /// Why an override replaced the built-in figure; none where none did.
    pub overridden: Option<String>,
}

impl Resolved {
    /// Usable size in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.array(Nanos::ZERO).size_bytes()
    }

    /// Fresh volumes whose life begins at `now`, with the credits that the spec gives.
    #[must_use]
    pub fn array(&self, now: Nanos) -> Array {
        let mut array = Array::striped(self.members.clone(), self.chunk_bytes, now)
            .expect("resolved limits were checked when they were resolved");
        if let Some(share) = self.credit_share {
            array.set_credit_share(share, now);
        }
        array
    }
}

/// The whole GiB of a size.
pub(crate) const fn gib(bytes: u64) -> u64 {
    bytes / GIB
}
