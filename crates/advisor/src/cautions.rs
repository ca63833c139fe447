//! What lowers the worth of everything that was seen: rules of evidence that every report prints.

use ebbtide_observe::Observation;
use ebbtide_text::{rough, whole};
use serde::Serialize;

use crate::finding::Confidence;

/// A reason to trust an observation less.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Caution {
    /// Its name, such as `Q01`.
    pub code: &'static str,
    /// What it is, in sentences.
    pub text: String,
    /// The most that a finding of rates can be sure of.
    pub at_most: Confidence,
}

/// A server that runs for less has cold caches, and its load may not be the usual one, s.
const SHORTEST_UPTIME_S: f64 = 3_600.0;
/// A load below this share of its mean since the start is not the typical one.
const TYPICAL: f64 = 0.5;
/// A mean below this is no load to compare with: the statements of the look itself are as many, a second.
const LEAST_MEAN: f64 = 1.0;

/// The reasons that hold for an observation.
#[must_use]
pub fn cautions(seen: &Observation) -> Vec<Caution> {
    [young(seen), quiet(seen), changed(seen)].into_iter().flatten().collect()
}

/// The most that a finding of rates can be sure of: by the length of the interval, and by each caution.
pub(crate) fn cap(seen: &Observation) -> Confidence {
    cautions(seen).iter().map(|caution| caution.at_most).fold(Confidence::cap(seen), Ord::min)
}

fn last(seen: &Observation, name: &str) -> Option<f64> {
    seen.status.as_ref()?.last.get(name)?.parse().ok()
}

fn young(seen: &Observation) -> Option<Caution> {
    let uptime = last(seen, "uptime").filter(|uptime| *uptime < SHORTEST_UPTIME_S)?;
    seen.span?;
    Some(Caution {
        code: "Q01",
        text: format!(
            "The server was started {} ago: its caches are cold, and its load may not be the usual one.",
            rough(uptime)
        ),
        at_most: Confidence::Medium,
    })
}

fn quiet(seen: &Observation) -> Option<Caution> {
    let uptime = last(seen, "uptime").filter(|uptime| *uptime > 0.0)?;
    let mean = Some(last(seen, "questions")? / uptime).filter(|mean| *mean >= LEAST_MEAN)?;
    let now = *seen.status.as_ref()?.growth_per_s.get("questions")?;
    (now < TYPICAL * mean).then(|| Caution {
        code: "Q02",
        text: format!(
            "The load is below what is typical: {} statements a second, and {} in the mean since the start. Look again in a busy hour.",
            whole(now),
            whole(mean)
        ),
        at_most: Confidence::Medium,
    })
}

fn changed(seen: &Observation) -> Option<Caution> {
    let (first, more) = seen.changed.split_first()?;
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    Some(Caution {
        code: "Q05",
        text: format!(
            "Settings were changed within the interval ({first}{more}): its rates are of both. Look again."
        ),
        at_most: Confidence::Low,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ebbtide_observe::{Origin, Span, StatusVariables, Variables};

    use super::*;

    fn seen(uptime: &str, questions: &str, now: f64) -> Observation {
        let last = Variables::from_iter([("uptime", uptime), ("questions", questions)]);
        let growth_per_s = BTreeMap::from([("questions".to_owned(), now)]);
        Observation {
            span: Some(Span { began_unix_s: None, seconds: 900.0, restarted: false }),
            status: Some(StatusVariables { last, growth_per_s }),
            ..Observation::of(Origin::Server { at: "/s".into() })
        }
    }

    fn codes(seen: &Observation) -> Vec<&'static str> {
        cautions(seen).iter().map(|caution| caution.code).collect()
    }

    #[test]
    fn a_young_server_a_quiet_one_and_one_whose_settings_were_changed_are_trusted_less() {
        assert_eq!(codes(&seen("3599", "1180472", 0.0)), ["Q01", "Q02"], "328 a second, and now none");
        assert_eq!(codes(&seen("3599", "3598", 0.0)), ["Q01"], "too few statements to compare with");
        assert_eq!(codes(&seen("0", "10", 0.0)), ["Q01"]);
        assert_eq!(codes(&seen("3600", "360000", 49.0)), ["Q02"]);
        assert!(codes(&seen("3600", "360000", 50.0)).is_empty());
        let mut changed = seen("3600", "360000", 50.0);
        assert_eq!(cap(&changed), Confidence::High);
        changed.changed = vec!["sync_binlog".into(), "innodb_io_capacity".into()];
        assert_eq!(codes(&changed), ["Q05"]);
        assert!(cautions(&changed)[0].text.contains("sync_binlog and 1 more"));
        let caps = [seen("3599", "0", 0.0), seen("3600", "360000", 49.0), changed].map(|seen| cap(&seen));
        assert_eq!(caps, [Confidence::Medium, Confidence::Medium, Confidence::Low]);
    }
}
