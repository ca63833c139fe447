//! What changed since a diagnosis of before.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ebbtide_advisor::{Assessment, Finding, Seen, Severity};
use ebbtide_captured::bundle::{BundleError, contents};
use serde::{Deserialize, Serialize};

/// A diagnosis of before that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BaselineError {
    /// Its file is no text that can be read.
    #[error(transparent)]
    Read(#[from] BundleError),
    /// Its file has something else.
    #[error("{} is no diagnosis: {error}", .file.display())]
    Foreign {
        /// The file.
        file: PathBuf,
        /// Why it is none.
        error: serde_json::Error,
    },
}

/// A diagnosis of before, and its file.
#[derive(Debug)]
pub struct Baseline {
    file: PathBuf,
    before: Before,
}

impl Baseline {
    /// Reads a file of `doctor --json`.
    ///
    /// # Errors
    /// The file cannot be read, or is something else.
    pub fn read(file: &Path) -> Result<Self, BaselineError> {
        let text = contents(file)?;
        let before = serde_json::from_str(&text)
            .map_err(|error| BaselineError::Foreign { file: file.to_owned(), error })?;
        Ok(Self { file: file.to_owned(), before })
    }
}

/// What an earlier diagnosis found, as far as it is compared.
#[derive(Debug, Deserialize)]
struct Before {
    findings: Vec<FoundBefore>,
}

/// A finding of before.
#[derive(Debug, Deserialize)]
struct FoundBefore {
    code: String,
    title: String,
    severity: String,
    #[serde(default)]
    why: String,
    evidence: Vec<EvidenceBefore>,
}

/// A value of before.
#[derive(Debug, Deserialize)]
struct EvidenceBefore {
    name: String,
    #[serde(default)]
    of: Option<String>,
    value: serde_json::Value,
}

/// The findings of now, held against those of before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// The file of before.
    file: PathBuf,
    /// Codes that were not found before.
    pub new: Vec<&'static str>,
    /// Codes that were found before, and of which nothing is found now.
    pub gone: Vec<Gone>,
    /// Found before and now, with another severity or other settings.
    pub changed: Vec<Changed>,
    /// Codes that were found before and now have no answer: they are not gone.
    pub not_checked: Vec<&'static str>,
    /// Codes that were found before just as now.
    pub same: Vec<&'static str>,
}

/// A finding that is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gone {
    /// Its code.
    pub code: String,
    /// What the check looks at.
    pub title: String,
    /// How bad it was.
    pub severity: String,
    /// What was found, in sentences; empty where the file of before does not say.
    #[serde(skip)]
    pub found: String,
}

/// A finding that is another one now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Changed {
    /// Its code.
    pub code: &'static str,
    /// Whether it is worse than before.
    pub worse: bool,
    /// What is different, such as `severity: low, now high`.
    pub what: Vec<String>,
}

impl Comparison {
    /// Holds findings against those of before.
    #[must_use]
    pub fn of(baseline: &Baseline, findings: &[Finding]) -> Self {
        Self { file: baseline.file.clone(), ..Self::between(&baseline.before, findings) }
    }

    fn between(before: &Before, findings: &[Finding]) -> Self {
        let known: BTreeMap<&str, &FoundBefore> =
            before.findings.iter().map(|found| (found.code.as_str(), found)).collect();
        let mut all = Self::default();
        for finding in findings {
            match (finding.verdict, known.get(finding.code)) {
                (Assessment::Found, None) => all.new.push(finding.code),
                (Assessment::Found, Some(before)) => match changed(before, finding) {
                    Some(change) => all.changed.push(change),
                    None => all.same.push(finding.code),
                },
                (Assessment::Unknown, Some(_)) => all.not_checked.push(finding.code),
                _ => {}
            }
        }
        let now = |code: &str| {
            let found = findings.iter().find(|finding| finding.code == code)?;
            Some(found.verdict)
        };
        let is_gone =
            |found: &&FoundBefore| !matches!(now(&found.code), Some(Assessment::Found | Assessment::Unknown));
        all.gone = before
            .findings
            .iter()
            .filter(is_gone)
            .map(|found| Gone {
                code: found.code.clone(),
                title: found.title.clone(),
                severity: found.severity.clone(),
                found: found.why.clone(),
            })
            .collect();
        all
    }

    /// Whether a finding is new, or worse than before.
    #[must_use]
    pub fn counts(&self, finding: &Finding) -> bool {
        self.new.contains(&finding.code)
            || self.changed.iter().any(|change| change.worse && change.code == finding.code)
    }

    /// Whether a finding is new, or another one than before.
    #[must_use]
    pub fn shows(&self, finding: &Finding) -> bool {
        self.new.contains(&finding.code) || self.change(finding.code).is_some()
    }

    /// How a finding changed; None where it did not.
    #[must_use]
    pub fn change(&self, code: &str) -> Option<&Changed> {
        self.changed.iter().find(|change| change.code == code)
    }
}

/// How a finding differs from before. Numbers of an interval always do and are not compared.
fn changed(before: &FoundBefore, now: &Finding) -> Option<Changed> {
    let mut what = Vec::new();
    let severity = now.severity.map_or("", Severity::name);
    if before.severity != severity {
        what.push(format!("severity: {}, now {severity}", before.severity));
    }
    for evidence in &now.evidence {
        let old =
            before.evidence.iter().find(|old| old.name == evidence.name && old.of.as_deref() == evidence.of);
        if let (Some(old), Seen::Text(value)) = (old.and_then(|old| old.value.as_str()), &evidence.value)
            && old != value
        {
            what.push(format!("{}: {old}, now {value}", evidence.name));
        }
    }
    let rank = |name: &str| Severity::ALL.into_iter().find(|severity| severity.name() == name);
    let worse = now.severity > rank(&before.severity);
    (!what.is_empty()).then_some(Changed { code: now.code, worse, what })
}

#[cfg(test)]
mod tests {
    use ebbtide_advisor::judge;
    use ebbtide_catalog::Catalog;
    use ebbtide_observe::{Facts, Observation, Origin, Variables};

    use super::*;

    fn findings(variables: &[(&str, &str)]) -> Vec<Finding> {
        let variables: Variables =
            [("version", "8.0.36"), ("log_bin", "ON")].iter().chain(variables).copied().collect();
        let seen = Observation {
            facts: Some(Facts::of(&variables)),
            variables: Some(variables),
            ..Observation::of(Origin::Server { at: "/s".into() })
        };
        judge(&seen, &Catalog::builtin())
    }

    fn before(variables: &[(&str, &str)]) -> Before {
        let all = findings(variables);
        let found: Vec<_> = all.iter().filter(|finding| finding.verdict == Assessment::Found).collect();
        serde_json::from_value(serde_json::json!({ "findings": found })).unwrap()
    }

    const BOTH: [(&str, &str); 2] = [("sync_binlog", "0"), ("innodb_stats_on_metadata", "ON")];

    #[test]
    fn what_is_new_gone_and_as_before_is_distinguished() {
        let same = Comparison::between(&before(&BOTH), &findings(&BOTH));
        assert_eq!((same.new.len(), same.gone.len(), same.changed.len()), (0, 0, 0), "{same:?}");
        assert_eq!(same.same, ["D03", "C06"]);
        let now = findings(&[
            ("sync_binlog", "0"),
            ("innodb_stats_on_metadata", "OFF"),
            ("innodb_file_per_table", "OFF"),
        ]);
        let other = Comparison::between(&before(&BOTH), &now);
        assert_eq!(other.new, ["C07"]);
        assert_eq!(other.gone.iter().map(|gone| &*gone.code).collect::<Vec<_>>(), ["C06"]);
        assert_eq!(other.gone[0].found, "Each look at metadata reads pages.", "what was found, not the rule");
        assert!(now.iter().filter(|finding| other.counts(finding)).all(|finding| finding.code == "C07"));
    }

    #[test]
    fn another_setting_and_another_severity_are_changes_and_worse_counts() {
        let now = findings(&[("sync_binlog", "1000"), BOTH[1]]);
        let mut old = before(&BOTH);
        let comparison = Comparison::between(&old, &now);
        assert_eq!(comparison.changed[0].what, ["sync_binlog: 0, now 1000"]);
        assert!(!comparison.changed[0].worse);
        old.findings.iter_mut().for_each(|found| found.severity = "low".into());
        let worse = Comparison::between(&old, &now);
        let d03 = now.iter().find(|finding| finding.code == "D03").unwrap();
        assert!(worse.changed[0].worse && worse.counts(d03) && worse.shows(d03));
    }

    #[test]
    fn what_has_no_answer_now_is_not_gone() {
        let now = findings(&[]);
        let without: Vec<Finding> = now
            .into_iter()
            .map(|finding| {
                if finding.code == "D03" {
                    Finding { verdict: Assessment::Unknown, ..finding }
                } else {
                    finding
                }
            })
            .collect();
        let comparison = Comparison::between(&before(&BOTH), &without);
        assert_eq!(comparison.not_checked, ["D03"]);
        assert!(comparison.gone.iter().all(|gone| gone.code != "D03"));
    }
}
