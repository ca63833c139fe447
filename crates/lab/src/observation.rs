//! A trial as an observation, so that it can be judged like a live server.

use ebbtide_device::host::FsType;
use ebbtide_observe::{Facts, FileSystem, Observation, Origin, Rates, Span, Variables, Volumes};

use crate::experiment::{Arm, Role};
use crate::record::{LabRun, Trial};

impl LabRun {
    /// What a trial shows of its server: the settings that the server was started with (its defaults are not known), the
    /// means of its rates over the measured seconds, its volume and its file system.
    #[must_use]
    pub fn observation(&self, trial: &Trial) -> Observation {
        let arm = self.experiment.arms.iter().find(|arm| arm.name == trial.arm);
        let variables = self.variables(&trial.arm);
        let seconds = trial.seconds.iter().filter_map(|second| second.server.as_ref());
        let span = Span {
            began_unix_s: Some(trial.started_ns / 1_000_000_000),
            seconds: trial.seconds.len() as f64,
            restarted: false,
        };
        Observation {
            span: (!trial.seconds.is_empty()).then_some(span),
            facts: Some(Facts::of(&variables)),
            variables: Some(variables),
            rates: trial.seconds.iter().any(|second| second.server.is_some()).then(|| Rates::mean(seconds)),
            volumes: Volumes::new(arm.and_then(data_volume)),
            file_system: arm.and_then(file_system),
            ..Observation::of(Origin::Trial { arm: trial.arm.clone(), repeat: trial.repeat })
        }
    }

    /// The options that an arm's server was started with, and its version.
    fn variables(&self, arm: &str) -> Variables {
        let options = self.server.options.get(arm).into_iter().flatten();
        let pair = |line: &String| {
            let line = line.trim_start_matches("--");
            // What a binary log that is off is written as has no value.
            if line.replace('-', "_") == "skip_log_bin" {
                return Some(("log_bin".to_owned(), "OFF".to_owned()));
            }
            let (name, value) = line.split_once('=')?;
            Some((name.trim().replace('-', "_"), value.trim().to_owned()))
        };
        // `mariadbd  Ver 10.11.19-MariaDB for Linux`: the text names the maker, the word after Ver is the version.
        let own = self.server.sources.get(arm);
        let text = own.map_or(&self.server.version, |own| &own.version);
        let version = text.split_whitespace().skip_while(|word| *word != "Ver").nth(1).unwrap_or(text);
        let known = [("version", version), ("version_comment", text)];
        let known = known.map(|(name, value)| (name.to_owned(), value.to_owned()));
        options.filter_map(pair).chain(known).collect()
    }
}

/// The spec of an arm's data volume; None where the machine is divided, because the spec is then that of a larger one.
fn data_volume(arm: &Arm) -> Option<String> {
    arm.volumes.get(&Role::Data).filter(|_| arm.instance.divided_by == 1).cloned()
}

fn file_system(arm: &Arm) -> Option<FileSystem> {
    let fs: FsType = arm.instance.fs.parse().ok()?;
    Some(FileSystem { name: fs.name().to_owned(), aligned_bytes: fs.aligned_bytes() })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::record::ProgramFacts;
    use crate::summary::fixture;

    use super::*;

    #[test]
    fn a_trial_shows_its_settings_its_mean_rates_and_its_volume() {
        let mut run = fixture::run(&["one"]);
        run.server.version = "mariadbd  Ver 10.11.19-MariaDB for Linux on x86_64".to_owned();
        let options =
            ["innodb_doublewrite=OFF", "skip-name-resolve", "skip_log_bin"].map(str::to_owned).to_vec();
        run.server.options = BTreeMap::from([("one".to_owned(), options)]);
        let trial = fixture::trial("one", 2, &[100.0, 300.0]);
        let seen = run.observation(&trial);
        assert_eq!(seen.origin, Origin::Trial { arm: "one".into(), repeat: 2 });
        assert_eq!(seen.span.unwrap().seconds, 2.0);
        assert_eq!(seen.rates.unwrap().redo_bytes, Some(1e6));
        assert_eq!(seen.variables.as_ref().unwrap().get("log_bin"), Some("OFF"));
        let facts = seen.facts.unwrap();
        assert_eq!((facts.version.as_str(), facts.doublewrite.as_deref()), ("10.11.19-MariaDB", Some("OFF")));
        assert_eq!(facts.page_bytes, None, "a default is not known");
        assert_eq!(seen.volumes.data, run.experiment.arms[0].volumes.get(&Role::Data).cloned());
    }

    #[test]
    fn an_arm_with_a_server_of_its_own_shows_that_one() {
        let mut run = fixture::run(&["one", "two"]);
        run.server.version = "mariadbd  Ver 10.11.19-MariaDB for Linux on x86_64".to_owned();
        let own = ProgramFacts {
            path: "/x/mysqld".to_owned(),
            flavour: "mysql".to_owned(),
            version: "/x/mysqld  Ver 9.7.4 for Linux on x86_64 (MySQL Community Server - GPL)".to_owned(),
        };
        run.server.sources = BTreeMap::from([("two".to_owned(), own)]);
        let version = |arm| run.observation(&fixture::trial(arm, 0, &[1.0])).facts.unwrap().version;
        assert_eq!(["one", "two"].map(version), ["10.11.19-MariaDB", "9.7.4"]);
    }

    #[test]
    fn a_trial_without_seconds_has_no_rates() {
        let run = fixture::run(&["one"]);
        let seen = run.observation(&fixture::trial("one", 0, &[]));
        assert_eq!((seen.span, seen.rates), (None, None));
    }
}
