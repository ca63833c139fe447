//! What load to run.

use std::time::Duration;

use ebbtide_workload::OptionError;
use ebbtide_workload::invariant::{Schema, check_clients};

use crate::options::Target;

/// Commits that the journal keeps by default: 32 MB, a quarter of an hour at 2,000 a second.
pub(crate) const JOURNAL_COMMITS: usize = 2_000_000;

/// A load with invariants.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The server, whose database was prepared.
    pub target: Target,
    /// The tables, as they were prepared.
    pub schema: Schema,
    /// Connections: 1 to 64, and no more than the tables were prepared for.
    pub clients: u32,
    /// Seed of everything random. The transaction of a client and a sequence number is the same in
    /// every run with one seed.
    pub seed: u64,
    /// One transaction in so many is preceded by one that is rolled back on purpose; 0 for none.
    pub abort_every: u32,
    /// Transactions a second of all clients together. None: each client begins its next one when the
    /// last one is answered.
    pub rate: Option<f64>,
    /// Commits that the journal keeps, of all clients together, at 16 bytes each.
    pub journal_commits: usize,
    /// How long [`super::Running::stop`] waits for transactions in flight before it closes their
    /// connections.
    pub grace: Duration,
}

impl Options {
    /// A closed loop with seed 1, one in 16 transactions preceded by one that is rolled back, a journal of
    /// 2 million commits, and 5 s of grace.
    #[must_use]
    pub fn new(target: Target, schema: Schema, clients: u32) -> Self {
        Self {
            target,
            schema,
            clients,
            seed: 1,
            abort_every: 16,
            rate: None,
            journal_commits: JOURNAL_COMMITS,
            grace: Duration::from_secs(5),
        }
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// The first option that is wrong.
    pub fn check(&self) -> Result<(), OptionError> {
        self.schema.check()?;
        check_clients(self.clients)?;
        if let Some(rate) = self.rate
            && !(0.001..=1e6).contains(&rate)
        {
            let allowed = "0.001 to 1000000 transactions a second";
            return Err(OptionError::OutOfRange { option: "rate", value: rate.to_string(), allowed });
        }
        if self.target.endpoints.is_empty() {
            return Err(OptionError::Contradiction("no server is named"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_out_of_range_are_refused() {
        let target = Target {
            endpoints: vec![crate::Endpoint::Unix("/s".into())],
            user: "root".into(),
            password: String::new(),
            database: "d".into(),
            tls: None,
        };
        let good = Options::new(target, Schema::default(), 4);
        assert_eq!(good.check(), Ok(()));
        for rate in [0.0, 1e-9, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Options { rate: Some(rate), ..good.clone() }.check().is_err(), "{rate}");
        }
        assert!(Options { clients: 0, ..good.clone() }.check().is_err());
        let mut nowhere = good;
        nowhere.target.endpoints.clear();
        assert!(nowhere.check().is_err());
    }
}
