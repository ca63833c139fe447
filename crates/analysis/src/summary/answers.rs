//! What clients got no answer to: errors of the server by code, and the longest time without any finished transaction.

use std::collections::BTreeMap;

use ebbtide_text::whole;

use super::group::Parted;
use super::model::{Across, AnswerFigures, ErrorFigures};
use crate::record::{Second, TrialRecord};

/// The server's code for "Lock wait timeout exceeded".
const LOCK_WAIT_TIMEOUT: u16 = 1205;

/// A time without an answer is worth a sentence from this on, s. The slowest transactions of a saturated disk take some
/// seconds each; no other second is without an answer while they go on.
const NOTED_S: f64 = 5.0;

/// Sums up the trials that count; none where none does.
pub(super) fn figures(arm: &Parted<'_>) -> Option<AnswerFigures> {
    let trials: Vec<&TrialRecord<'_>> = arm.looked.iter().map(|looked| looked.trial).collect();
    if trials.is_empty() {
        return None;
    }
    let timeouts = |trial: &&TrialRecord<'_>| {
        let own = trial.errors.iter().filter(|error| error.code == LOCK_WAIT_TIMEOUT);
        own.map(|error| error.count as f64).sum()
    };
    let mut errors: BTreeMap<u16, ErrorFigures> = BTreeMap::new();
    for error in trials.iter().flat_map(|trial| &trial.errors) {
        let of_code = errors.entry(error.code).or_insert_with(|| ErrorFigures {
            code: error.code,
            count: 0,
            message: error.message.to_owned(),
        });
        of_code.count += error.count;
    }
    Some(AnswerFigures {
        silent_s: Across::of(trials.iter().map(|trial| longest_gap(trial.seconds).0).collect()),
        lock_timeouts: Across::of(trials.iter().map(timeouts).collect()),
        errors: errors.into_values().collect(),
    })
}

/// The longest run of seconds in which no transaction was finished: how long it is and when it began, s of the
/// measurement.
fn longest_gap(seconds: &[Second]) -> (f64, f64) {
    let mut longest = (0.0, 0.0);
    let mut began = 0.0;
    for second in seconds {
        if second.load.tps > 0.0 {
            began = second.t_s;
        } else if second.t_s - began > longest.0 {
            longest = (second.t_s - began, began);
        }
    }
    longest
}

/// What must be known of a trial whose clients got no answer for a while; none where they did.
pub(super) fn note(trial: &TrialRecord<'_>) -> Option<String> {
    let (gap_s, began_s) = longest_gap(trial.seconds);
    if gap_s < NOTED_S {
        return None;
    }
    let errors = trial
        .errors
        .iter()
        .map(|error| format!("{} times error {} ({})", whole(error.count as f64), error.code, error.message));
    let errors: Vec<String> = errors.collect();
    let errors = if errors.is_empty() {
        "The server reported no error".to_owned()
    } else {
        format!("In the whole trial the server reported {}", errors.join(", "))
    };
    Some(format!(
        "no client got an answer for {} s, from second {} of the measurement on. {errors}.",
        whole(gap_s),
        whole(began_s)
    ))
}

/// The finding about an arm whose clients got no answer for a while; none where they did.
pub(super) fn finding(name: &str, answers: &AnswerFigures) -> Option<String> {
    if answers.silent_s.max < NOTED_S {
        return None;
    }
    let timeouts = answers.lock_timeouts.max;
    let timeouts = if timeouts > 0.0 {
        format!("; up to {} transactions of a trial ended with a lock wait timeout", whole(timeouts))
    } else {
        String::new()
    };
    Some(format!(
        "{name}: responses stop. No client got an answer for up to {} s{timeouts}.",
        whole(answers.silent_s.max)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{ErrorRecord, LoadSecond, Outcome};

    fn seconds(tps: &[f64]) -> Vec<Second> {
        let second = |(place, tps): (u32, &f64)| Second {
            t_s: f64::from(place),
            load: LoadSecond { tps: *tps, ..LoadSecond::default() },
            ..Second::default()
        };
        (1..).zip(tps).map(second).collect()
    }

    #[test]
    fn the_longest_gap_is_that_between_two_seconds_with_an_answer_or_at_an_end() {
        assert_eq!(longest_gap(&seconds(&[1.0, 1.0])), (0.0, 0.0));
        assert_eq!(longest_gap(&seconds(&[1.0, 0.0, 0.0, 2.0, 0.0, 1.0])), (2.0, 1.0));
        assert_eq!(longest_gap(&seconds(&[0.0, 0.0, 0.0, 2.0, 0.0])), (3.0, 0.0), "from the begin on");
        assert_eq!(longest_gap(&seconds(&[3.0, 0.0, 0.0])), (2.0, 1.0), "to the end");
        assert_eq!(longest_gap(&[]), (0.0, 0.0));
    }

    #[test]
    fn a_long_gap_is_noted_with_the_errors_of_its_trial_and_a_short_one_is_not() {
        let trial = |seconds: &'static [Second]| TrialRecord {
            arm: "hdd",
            repeat: 0,
            outcome: &Outcome::Measured,
            seconds,
            response: None,
            errors: vec![ErrorRecord { code: 1205, count: 34, message: "Lock wait timeout exceeded" }],
            arrivals: None,
            tpcc: None,
            backup: None,
            notes: &[],
        };
        let stopped = Box::leak(seconds(&[9.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]).into_boxed_slice());
        let text = note(&trial(stopped)).unwrap();
        assert_eq!(
            text,
            "no client got an answer for 6 s, from second 1 of the measurement on. In the whole trial the server \
             reported 34 times error 1205 (Lock wait timeout exceeded)."
        );
        let short = Box::leak(seconds(&[9.0, 0.0, 0.0, 0.0, 1.0]).into_boxed_slice());
        assert_eq!(note(&trial(short)), None);
        let answers = AnswerFigures {
            silent_s: Across { median: 6.0, min: 1.0, max: 6.0 },
            lock_timeouts: Across { median: 34.0, min: 34.0, max: 34.0 },
            errors: Vec::new(),
        };
        assert_eq!(
            finding("hdd", &answers).unwrap(),
            "hdd: responses stop. No client got an answer for up to 6 s; up to 34 transactions of a trial ended with a \
             lock wait timeout."
        );
        assert_eq!(finding("nvme", &AnswerFigures::default()), None);
    }
}
