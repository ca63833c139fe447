//! The experiments of the public documents as one set, in forms that together end within an hour.

use super::{Experiment, ExperimentError, Overrides, load};

/// An experiment of the set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocumentRun {
    /// The shipped experiment.
    pub name: &'static str,
    /// The arms of the short form; empty: those of the experiment's own.
    arms: &'static [&'static str],
    /// What the short form changes besides.
    set: &'static [(&'static str, &'static str)],
}

/// Two trials of each arm: the fewest that have an interval.
const TWICE: (&str, &str) = ("trial.repeats", "2");

/// The set, in the order in which it runs: what belongs to one document is together.
const SET: [DocumentRun; 14] = [
    DocumentRun { name: "tuned-vs-default", arms: &[], set: &[TWICE] },
    DocumentRun {
        name: "volume-types",
        arms: &["gp2-after-burst", "gp3", "io2"],
        set: &[TWICE, ("trial.measure", "20s")],
    },
    DocumentRun {
        name: "instance-cap",
        arms: &["one / r5.2xlarge", "one / r5.12xlarge", "two-whole / r5.12xlarge"],
        set: &[TWICE],
    },
    DocumentRun { name: "replicas", arms: &["one-thread", "relay-volume"], set: &[TWICE] },
    DocumentRun {
        name: "backup-load",
        arms: &["source / physical-gp3", "source / snapshot", "replica / physical-gp3"],
        set: &[TWICE, ("trial.measure", "45s")],
    },
    DocumentRun { name: "migration", arms: &["binlog-unsynced / gp3"], set: &[("crash.cuts", "20")] },
    DocumentRun { name: "gp2-burst", arms: &["gp2"], set: &[TWICE, ("trial.measure", "85s")] },
    DocumentRun {
        name: "optimized-writes-gain",
        arms: &["gp3-iops", "gp3-mib", "no-binlog", "64"],
        set: &[TWICE],
    },
    DocumentRun {
        name: "optimized-writes",
        arms: &["off / units-4k", "off / units-16k"],
        set: &[("crash.cuts", "24"), ("trial.repeats", "1")],
    },
    DocumentRun { name: "binlog", arms: &["off", "mixed-0"], set: &[TWICE] },
    DocumentRun { name: "aurora-binlog", arms: &["off", "classic-mixed", "enhanced-row"], set: &[TWICE] },
    DocumentRun { name: "binlog-recovery", arms: &[], set: &[] },
    DocumentRun { name: "ssd-configs", arms: &[], set: &[TWICE, ("trial.measure", "12s")] },
    DocumentRun {
        name: "ssd-tiers",
        arms: &["hdd / 50", "sata / 50", "nvme / 50"],
        set: &[TWICE, ("trial.measure", "12s")],
    },
];

/// The experiments of the documents, in the order in which they run.
#[must_use]
pub const fn documents() -> &'static [DocumentRun] {
    &SET
}

impl DocumentRun {
    /// What its form changes in the experiment.
    #[must_use]
    pub fn overrides(&self, quick: bool, seed: u64) -> Overrides {
        let texts = |(path, value): &(&str, &str)| ((*path).to_owned(), (*value).to_owned());
        let (arms, set) = if quick { (self.arms, self.set) } else { Default::default() };
        Overrides {
            quick,
            seed: Some(seed),
            arms: arms.iter().map(|arm| (*arm).to_owned()).collect(),
            set: set.iter().map(texts).collect(),
            ..Overrides::default()
        }
    }

    /// The experiment in its form.
    ///
    /// # Errors
    /// As [`load`].
    pub fn load(&self, quick: bool, seed: u64) -> Result<Experiment, ExperimentError> {
        load(self.name, &self.overrides(quick, seed))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ebbtide_analysis::claim::Document;

    use super::*;
    use crate::experiment::shipped;

    #[test]
    fn every_document_has_a_claim_that_its_short_forms_can_decide() {
        for document in Document::ALL {
            let decidable = SET.iter().any(|run| {
                let experiment = run.load(true, 0).unwrap();
                let is_there = |name: &String| experiment.arms.iter().any(|arm| arm.name == *name);
                let own = experiment.claims.iter().filter(|claim| claim.document == document);
                own.filter_map(|claim| claim.test.as_ref())
                    .any(|test| is_there(&test.arm) && test.over.iter().all(is_there))
            });
            assert!(decidable, "{}", document.key());
        }
    }

    #[test]
    fn every_experiment_of_the_set_is_there_once_and_has_claims() {
        let names: BTreeSet<&str> = SET.iter().map(|run| run.name).collect();
        assert_eq!(names.len(), SET.len());
        for run in SET {
            assert!(shipped().iter().any(|one| one.name == run.name), "{}", run.name);
            assert!(!run.load(false, 0).unwrap().claims.is_empty(), "{} has no claim", run.name);
        }
    }
}
