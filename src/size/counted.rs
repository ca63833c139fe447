//! What the figures of the load count: requests as they were submitted, and operations as EBS counts them.

use ebbtide_advisor::sizing::{LoadOrigin, SSD_UNIT};
use ebbtide_text::{bytes, figure, percent, size};

use super::plan::Plan;

/// Shares of more operations below this are not named.
const LITTLE_MORE: f64 = 1.005;

impl Plan<'_> {
    /// The largest request that counts as one operation, bytes: of today's volume, or of an SSD volume.
    pub(super) fn unit(&self) -> u64 {
        self.today.as_ref().map_or(SSD_UNIT, |today| today.members[0].accounting.unit_bytes.into())
    }

    /// The longest interval, s.
    pub(super) fn longest_interval(&self) -> f64 {
        self.source.load.intervals.iter().map(|interval| interval.seconds).fold(0.0, f64::max)
    }

    /// What share reads, how large reads and writes are, and what they are counted as.
    pub(super) fn sizes_words(&self) -> String {
        let now = &self.now;
        let reads = now.read_share().unwrap_or(0.0);
        let sizes = match (now.read_bytes(), now.write_bytes()) {
            (Some(read), Some(write)) => {
                format!("{} reads of {}, writes of {}", percent(reads), bytes(read), bytes(write))
            }
            (Some(read), None) => format!("reads alone, of {}", bytes(read)),
            (None, Some(write)) => format!("writes alone, of {}", bytes(write)),
            (None, None) => "no operation".to_owned(),
        };
        let counts = match &self.today {
            Some(today) => format!("{} counts", today.spec.volume.kind),
            None => "an SSD volume of EBS counts".to_owned(),
        };
        let unit = self.unit();
        let mean = |spread: Option<ebbtide_advisor::sizing::Spread>| spread.map_or(0.0, |spread| spread.mean);
        let (requests, operations) = (mean(now.requests()), mean(now.operations(unit)));
        let of_requests = if operations > requests * LITTLE_MORE {
            let of_disks = self.source.origin == LoadOrigin::EbsMetrics && self.today.is_none();
            let counted = if of_disks {
                "operations of up to 1 MiB a second, as st1 and sc1 count"
            } else {
                "requests a second"
            };
            format!(", from {} {counted}", figure(requests))
        } else {
            String::new()
        };
        format!("{sizes}; IOPS are as {counts} them, one for up to {}{of_requests}", size(unit))
    }

    /// That sizes which differ inside a direction are not seen, and what they may come to; None where each request was counted
    /// by its own size.
    pub(super) fn mix_words(&self) -> Option<String> {
        let more = self.most_mixed()?;
        let means = match self.source.origin {
            LoadOrigin::HostTogether => {
                "sizes are one mean of reads and writes: small ones beside large ones are"
            }
            LoadOrigin::Host | LoadOrigin::EbsMetrics | LoadOrigin::Trace | LoadOrigin::Model => {
                "sizes are means of reads and of writes: a mix of sizes inside one of them is"
            }
        };
        Some(format!("{means} not seen, and may come to {} more IOPS at most", percent(more - 1.0)))
    }

    /// Times the operations that were counted, at most, where sizes are means; None elsewhere.
    pub(super) fn most_mixed(&self) -> Option<f64> {
        let means = matches!(self.source.origin, LoadOrigin::Host | LoadOrigin::HostTogether);
        means.then(|| self.now.most_mixed(self.unit()))
    }
}
