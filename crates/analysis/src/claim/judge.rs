//! The verdict about a claim.

use ebbtide_text::{figure, list};

use super::reason::{Side, reason};
use super::{
    Claim, ClaimArm, ClaimPhase, ClaimTest, ClaimVerdict, Evidence, JudgedClaim, NoReading, Reading,
};

/// Why nothing can be held against the range of a claim.
#[derive(Debug, thiserror::Error)]
enum NoFigure {
    /// Arms without a figure.
    #[error("{}", missing(.0))]
    Arms(Vec<(String, NoReading)>),
    /// The arm of which a multiple is claimed has the figure 0.
    #[error("'{over}' shows 0, and nothing is a multiple of that")]
    OverZero { over: String },
}

fn missing(arms: &[(String, NoReading)]) -> String {
    list(&arms.iter().map(|(arm, why)| format!("'{arm}' {why}")).collect::<Vec<_>>())
}

/// Holds a claim against what was measured.
#[must_use]
pub fn judge(claim: &Claim, evidence: &dyn Evidence) -> JudgedClaim {
    let mut judged = JudgedClaim {
        claim: claim.clone(),
        verdict: ClaimVerdict::NotTestable { why: claim.untestable.clone().unwrap_or_default() },
        theirs: claim.test.as_ref().and_then(|test| test.theirs(&claim.figures)),
        ours: None,
        arms: Vec::new(),
    };
    if let (Some(test), None) = (&claim.test, &claim.untestable) {
        let (arms, ours) = measured(test, evidence);
        judged.verdict = match &ours {
            Err(error) => ClaimVerdict::NotMeasured { why: error.to_string() },
            Ok(ours) => verdict(test, *ours, &because(test, &arms, evidence)),
        };
        (judged.arms, judged.ours) = (arms, ours.ok());
    }
    if let Some(why) = &claim.contradicted {
        judged.verdict = ClaimVerdict::Contradicted { why: why.clone() };
    }
    judged
}

/// The arms of a claim, and the figure or ratio that is held against its range.
fn measured(test: &ClaimTest, evidence: &dyn Evidence) -> (Vec<ClaimArm>, Result<Reading, NoFigure>) {
    let (own, own_arm) = side(&test.arm, &test.during, test, evidence);
    let Some(over) = &test.over else {
        return (vec![own_arm], own.map_err(|why| NoFigure::Arms(vec![(test.arm.clone(), why)])));
    };
    let (other, other_arm) = side(over, &test.over_during, test, evidence);
    let ours = match (own, other) {
        (Ok(own), Ok(other)) => {
            let ratio = evidence.ratio(test, over).or_else(|| own.over(&other));
            ratio.ok_or_else(|| NoFigure::OverZero { over: over.clone() })
        }
        (own, other) => {
            let missing = [(&test.arm, own.err()), (over, other.err())];
            let missing = missing.into_iter().filter_map(|(arm, why)| Some((arm.clone(), why?)));
            let mut missing: Vec<(String, NoReading)> = missing.collect();
            // An arm that is held against itself is missing once.
            missing.dedup();
            Err(NoFigure::Arms(missing))
        }
    };
    (vec![own_arm, other_arm], ours)
}

/// One arm of a claim under its conditions.
fn side(
    arm: &str,
    during: &[ClaimPhase],
    test: &ClaimTest,
    evidence: &dyn Evidence,
) -> (Result<Reading, NoReading>, ClaimArm) {
    let reading = evidence.reading(arm, test.metric, during);
    let arm = ClaimArm {
        arm: arm.to_owned(),
        during: during.to_vec(),
        ours: reading.as_ref().ok().copied(),
        io: evidence.io(arm, during).words(),
    };
    (reading, arm)
}

/// What the I/O of the arms says about their figures, to follow a sentence; empty where nothing is known.
fn because(test: &ClaimTest, arms: &[ClaimArm], evidence: &dyn Evidence) -> String {
    let sides = arms.iter().map(|arm| Side {
        arm: &arm.arm,
        during: arm.during.iter().map(|phase| phase.name()).collect(),
        io: evidence.io(&arm.arm, &arm.during),
    });
    reason(test.metric, &sides.collect::<Vec<_>>())
}

/// The verdict, each with the measured figure, the range and the reason.
fn verdict(test: &ClaimTest, ours: Reading, because: &str) -> ClaimVerdict {
    let said = format!("measured {}, claimed {}", in_words(test, ours), range(test));
    let with = |more: &str| format!("{said}{more}{because}");
    let Some((low, high)) = ours.low.zip(ours.high) else {
        return ClaimVerdict::Undecided { why: with(": one trial shows no interval") };
    };
    let outside =
        test.at_least.is_some_and(|least| high < least) || test.at_most.is_some_and(|most| low > most);
    if test.allows(low) && test.allows(high) {
        ClaimVerdict::Reproduced { why: with("") }
    } else if outside {
        ClaimVerdict::NotReproduced { why: with("") }
    } else {
        ClaimVerdict::Undecided { why: with(": the interval reaches over the bound") }
    }
}

/// `2.10 times (1.90 to 2.30)`, `12.3 ms (11.0 to 13.9)`.
fn in_words(test: &ClaimTest, ours: Reading) -> String {
    let unit = if test.over.is_some() { "times" } else { test.metric.unit() };
    let interval = ours.low.zip(ours.high);
    let interval = interval.map(|(low, high)| format!(" ({} to {})", figure(low), figure(high)));
    format!("{} {unit}{}", figure(ours.mid), interval.unwrap_or_default())
}

/// `1.5 to 3.9`, `6.40 at least`, `0.90 at most`.
fn range(test: &ClaimTest) -> String {
    match (test.at_least, test.at_most) {
        (Some(least), Some(most)) => format!("{} to {}", figure(least), figure(most)),
        (Some(least), None) => format!("{} at least", figure(least)),
        (None, Some(most)) => format!("{} at most", figure(most)),
        (None, None) => "anything".to_owned(),
    }
}
