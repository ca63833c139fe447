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
    /// Claims that only the full form decides: their arms would not fit in the hour, or two short trials cannot tell
    /// figures apart that are this close.
    full_only: &'static [&'static str],
}

/// Two trials of each arm: the fewest that have an interval.
const TWICE: (&str, &str) = ("trial.repeats", "2");

/// An experiment with the arms and the claims of its own short form.
const SHORT: DocumentRun = DocumentRun { name: "", arms: &[], set: &[TWICE], full_only: &[] };

/// The set, in the order in which it runs: what belongs to one document is together.
const SET: [DocumentRun; 16] = [
    DocumentRun { name: "tuned-vs-default", full_only: &["tuned-mixed"], ..SHORT },
    DocumentRun {
        name: "volume-types",
        arms: &["gp2-after-burst", "gp3", "io2"],
        set: &[TWICE, ("trial.measure", "16s"), ("warmup.lead_in", "6s")],
        full_only: &["io1-is-gp3"],
    },
    DocumentRun {
        name: "flush-settings",
        arms: &["base", "redo-small", "pool-small"],
        set: &[TWICE, ("trial.measure", "12s"), ("warmup.lead_in", "6s")],
        full_only: &["flush-method", "flush-neighbors"],
    },
    DocumentRun {
        name: "instance-cap",
        arms: &["one / r5.2xlarge", "one / r5.12xlarge", "two-whole / r5.12xlarge"],
        set: &[TWICE, ("trial.measure", "12s"), ("warmup.settle", "4s")],
        ..SHORT
    },
    DocumentRun {
        name: "replicas",
        arms: &["one-thread", "four-threads", "relay-volume", "one-thread-gp2-spent"],
        set: &[TWICE, ("trial.measure", "13s")],
        full_only: &["replica-raid0", "relay-log-sync", "dump-threads"],
    },
    DocumentRun {
        name: "backup-load",
        arms: &["source / physical-gp3", "source / snapshot", "replica / physical-gp3"],
        set: &[TWICE, ("trial.measure", "40s"), ("source / snapshot.trial.measure", "28s")],
        full_only: &["to-st1"],
    },
    DocumentRun {
        name: "migration",
        arms: &["binlog-unsynced / gp3"],
        set: &[("crash.cuts", "20")],
        ..SHORT
    },
    DocumentRun {
        name: "gp2-burst",
        set: &[
            TWICE,
            ("batch.start", "15s"),
            ("gp2.trial.measure", "70s"),
            ("gp3.trial.measure", "30s"),
            ("warmup.settle", "5s"),
        ],
        ..SHORT
    },
    DocumentRun {
        name: "optimized-writes-gain",
        arms: &[
            "gp3-iops / no-binlog / 64 / on",
            "gp3-iops / no-binlog / 64 / off",
            "gp3-mib / no-binlog / 64 / on",
            "gp3-mib / no-binlog / 64 / off",
        ],
        set: &[TWICE, ("trial.measure", "10s")],
        full_only: &["one-thread", "many-threads"],
    },
    DocumentRun {
        name: "optimized-writes",
        arms: &["off / units-4k", "off / units-16k"],
        set: &[("crash.cuts", "24"), ("trial.repeats", "1"), ("trial.measure", "10s")],
        ..SHORT
    },
    DocumentRun {
        name: "file-systems",
        arms: &["bigalloc / direct / doublewrite-off"],
        set: &[("crash.cuts", "24")],
        ..SHORT
    },
    DocumentRun {
        name: "binlog",
        arms: &["off", "mixed-0"],
        set: &[TWICE, ("trial.measure", "15s")],
        ..SHORT
    },
    DocumentRun {
        name: "aurora-binlog",
        arms: &["off", "classic-mixed", "classic-row", "enhanced-row"],
        set: &[TWICE, ("trial.measure", "13s")],
        ..SHORT
    },
    DocumentRun { name: "binlog-recovery", set: &[], ..SHORT },
    DocumentRun {
        name: "ssd-configs",
        arms: &[
            "sata / initial",
            "sata / suboptimal",
            "sata / optimal",
            "nvme / initial",
            "nvme / suboptimal",
        ],
        set: &[TWICE, ("trial.measure", "10s"), ("warmup.lead_in", "3s"), ("warmup.settle", "3s")],
        full_only: &[
            "o-direct-on-sata-250",
            "o-direct-on-nvme-250",
            "nvme-over-sata-buffered-250",
            "nvme-over-sata-direct-250",
            "hdd-cannot-run",
        ],
    },
    DocumentRun {
        name: "ssd-tiers",
        arms: &["hdd / 50", "sata / 50", "sas / 50", "nvme / 50"],
        set: &[TWICE, ("trial.measure", "10s"), ("warmup.lead_in", "3s"), ("warmup.settle", "3s")],
        full_only: &["nvme-over-sata-200", "hdd-timeouts", "hdd-stops"],
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

    use ebbtide_analysis::claim::{Claim, ClaimVerdict, Document};
    use ebbtide_mysql::Binary;

    use super::*;
    use ebbtide_analysis::claim::NoReading;

    use crate::documents::unmeasured;
    use crate::experiment::{Known, estimate, estimate_after, shipped};

    /// Whether a form has all arms of a claim; None for a claim that no run decides.
    fn decides(experiment: &Experiment, claim: &Claim) -> Option<bool> {
        let is_there = |name: &String| experiment.arms.iter().any(|arm| arm.name == *name);
        let test = claim.test.as_ref().filter(|_| claim.contradicted.is_none());
        test.map(|test| is_there(&test.arm) && test.over.iter().all(is_there))
    }

    #[test]
    fn every_claim_is_decided_by_the_short_set_or_refers_to_the_full_form() {
        for run in SET {
            let (short, full) = (run.load(true, 0).unwrap(), run.load(false, 0).unwrap());
            for judged in unmeasured(&short, &NoReading::NotRunYet) {
                let id = format!("{} of {}", judged.claim.id, run.name);
                let Some(decided) = decides(&short, &judged.claim) else { continue };
                assert!(decides(&full, &judged.claim).unwrap(), "{id}: not even the full form has its arms");
                let listed = run.full_only.contains(&judged.claim.id.as_str());
                assert_ne!(
                    decided, listed,
                    "{id}: decided by the short set: {decided}; listed as full_only: {listed}"
                );
                match &judged.verdict {
                    ClaimVerdict::OnlyInFull { why } => {
                        assert!(
                            listed && why.starts_with("run ebbtide ") && why.contains(run.name),
                            "{id}: {why}"
                        );
                    }
                    other => assert!(!listed, "{id}: {other:?}"),
                }
            }
            for id in run.full_only {
                assert!(short.claims.iter().any(|claim| claim.id == *id), "{} has no claim {id}", run.name);
            }
        }
    }

    #[test]
    fn every_shipped_experiment_with_claims_is_in_the_set() {
        for one in shipped() {
            let overrides = Overrides { seed: Some(0), ..Overrides::default() };
            let has_claims = !load(one.name, &overrides).unwrap().claims.is_empty();
            let is_there = SET.iter().any(|run| run.name == one.name);
            assert_eq!(has_claims, is_there, "{}", one.name);
        }
    }

    #[test]
    fn data_that_an_experiment_before_has_made_take_no_time_again() {
        let version = ebbtide_mysql::Version { major: 10, minor: 11, patch: 19 };
        let text = "mariadbd  Ver 10.11.19-MariaDB".to_owned();
        let flavour = ebbtide_mysql::Flavour::MariaDb;
        let server = Binary { path: "/usr/sbin/mariadbd".into(), flavour, version, text };
        let mut known = Known::default();
        let mut of = |name: &str| {
            let run = SET.iter().find(|run| run.name == name).unwrap();
            let experiment = run.load(true, 0).unwrap();
            (estimate(&experiment), estimate_after(&experiment, &server, &mut known))
        };
        let (alone, first) = of("ssd-configs");
        assert_eq!(alone, first, "the first one makes the data");
        let (alone, second) = of("ssd-tiers");
        assert!(
            (alone - second).as_secs() >= 60,
            "ten million rows are not loaded again: {alone:?} {second:?}"
        );
        let (alone, other) = of("binlog");
        // The host was looked at by the first one.
        assert!((alone - other).as_secs() < 10, "other data: {alone:?} {other:?}");
    }

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
