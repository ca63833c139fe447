//! What the figures of the load count, for people: requests as they were submitted, and operations as EBS counts them.

use crate::sizing::SizingPlan;
use ebbtide_advisor::sizing::{LoadOrigin, Spread};
use ebbtide_text::{bytes, figure, percent, size};

/// Shares of more operations below this are not named.
const LITTLE_MORE: f64 = 1.005;

/// What share reads, how large reads and writes are, and what they are counted as.
pub(super) fn sizes_words(plan: &SizingPlan<'_>) -> String {
    let now = &plan.now;
    let reads = now.read_share().unwrap_or(0.0);
    let sizes = match (now.read_bytes(), now.write_bytes()) {
        (Some(read), Some(write)) => {
            format!("{} reads of {}, writes of {}", percent(reads), bytes(read), bytes(write))
        }
        (Some(read), None) => format!("reads alone, of {}", bytes(read)),
        (None, Some(write)) => format!("writes alone, of {}", bytes(write)),
        (None, None) => "no operation".to_owned(),
    };
    let counts = match &plan.today {
        Some(today) => format!("{} counts", today.spec.volume.kind),
        None => "an SSD volume of EBS counts".to_owned(),
    };
    let unit = plan.unit();
    let mean = |spread: Option<Spread>| spread.map_or(0.0, |spread| spread.mean);
    let (requests, operations) = (mean(now.requests()), mean(now.operations(unit)));
    let of_requests = if operations > requests * LITTLE_MORE {
        let of_disks = plan.source.origin == LoadOrigin::EbsMetrics && plan.today.is_none();
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
pub(super) fn mix_words(plan: &SizingPlan<'_>) -> Option<String> {
    let more = plan.most_mixed()?;
    let means = match plan.source.origin {
        LoadOrigin::HostTogether => {
            "sizes are one mean of reads and writes: small ones beside large ones are"
        }
        LoadOrigin::Host | LoadOrigin::EbsMetrics | LoadOrigin::Trace | LoadOrigin::Model => {
            "sizes are means of reads and of writes: a mix of sizes inside one of them is"
        }
    };
    Some(format!("{means} not seen, and may come to {} more IOPS at most", percent(more - 1.0)))
}
