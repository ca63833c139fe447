//! What an event loop counts, one second at a time.

use std::collections::BTreeMap;

use crate::latency::{self, Nanos};
use crate::report::{ErrorCount, Totals};
use crate::schedule::ArrivalCounts;

/// The counts of one interval, of one loop or of all.
#[derive(Debug, Clone)]
pub(super) struct Interval {
    pub(super) totals: Totals,
    pub(super) response: Nanos,
    /// Open loop only: in a closed one it equals the response time.
    pub(super) service: Option<Nanos>,
    pub(super) lag: Nanos,
    /// How long after its end the loop reported it, ns.
    pub(super) told_late: u64,
    /// Transactions that started over a millisecond after they were due.
    pub(super) late: u64,
    pub(super) arrivals: ArrivalCounts,
    pub(super) commits: u64,
    /// On purpose.
    pub(super) rolled_back: u64,
    pub(super) errors: BTreeMap<u16, ErrorCount>,
    /// At the interval's end.
    pub(super) backlog: u64,
    /// At the interval's end.
    pub(super) in_flight: u64,
}

impl Interval {
    pub(super) fn new(open_loop: bool) -> Self {
        Self {
            totals: Totals::default(),
            response: latency::fine(),
            service: open_loop.then(latency::fine),
            lag: latency::fine(),
            told_late: 0,
            late: 0,
            arrivals: ArrivalCounts::default(),
            commits: 0,
            rolled_back: 0,
            errors: BTreeMap::new(),
            backlog: 0,
            in_flight: 0,
        }
    }

    pub(super) fn error(&mut self, code: u16, message: &str, retried: bool) {
        let count = self.errors.entry(code).or_insert_with(|| ErrorCount {
            code,
            count: 0,
            retried: 0,
            message: message.to_owned(),
        });
        count.count += 1;
        count.retried += u64::from(retried);
    }

    /// Adds the counts; backlog and transactions in flight add up too, as those of several loops do.
    pub(super) fn merge(&mut self, more: &Self) {
        self.totals.add(&more.totals);
        self.told_late = self.told_late.max(more.told_late);
        latency::merge(&mut self.response, &more.response);
        if let (Some(service), Some(more)) = (&mut self.service, &more.service) {
            latency::merge(service, more);
        }
        latency::merge(&mut self.lag, &more.lag);
        self.late += more.late;
        self.arrivals.due += more.arrivals.due;
        self.arrivals.shed += more.arrivals.shed;
        self.arrivals.longest = self.arrivals.longest.max(more.arrivals.longest);
        self.commits += more.commits;
        self.rolled_back += more.rolled_back;
        for (code, error) in &more.errors {
            let count = self.errors.entry(*code).or_insert_with(|| ErrorCount {
                count: 0,
                retried: 0,
                ..error.clone()
            });
            count.count += error.count;
            count.retried += error.retried;
        }
        self.backlog += more.backlog;
        self.in_flight += more.in_flight;
    }
}
