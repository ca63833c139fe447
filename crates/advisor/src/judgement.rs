//! The answers of all checks, in the order of what they are worth.

use ebbtide_catalog::Catalog;
use ebbtide_observe::Observation;

use crate::{Assessment, Finding, checks};

/// The answers of all checks: what was found first, in the order of what it is worth.
#[must_use]
pub fn judge(observation: &Observation, catalog: &Catalog) -> Vec<Finding> {
    let mut findings: Vec<Finding> = checks().map(|check| check.run(observation, catalog)).collect();
    in_order(&mut findings);
    findings
}

/// Puts findings into the order of what they are worth: severity, then what the fix gains, then how sure that is. The sort is
/// stable: checks of one worth stay in the order of the table.
pub fn in_order(findings: &mut [Finding]) {
    let gain =
        |finding: &Finding| if finding.verdict == Assessment::Found { finding.gain_factor() } else { 0.0 };
    findings.sort_by(|one, other| {
        let by_gain = || gain(other).total_cmp(&gain(one));
        other.severity.cmp(&one.severity).then_with(by_gain).then(other.confidence.cmp(&one.confidence))
    });
}

#[cfg(test)]
mod tests {
    use ebbtide_observe::Origin;

    use super::*;
    use crate::{Benefit, Confidence, MeasuredGain, Severity, check};

    #[test]
    fn findings_come_in_the_order_of_severity_then_gain_then_confidence() {
        let nothing = Observation::of(Origin::Capture { path: "/c".into() });
        let any = check("D01").unwrap().run(&nothing, &Catalog::builtin());
        let found = |code, severity, confidence, gain: Option<f64>| Finding {
            code,
            verdict: Assessment::Found,
            severity: Some(severity),
            confidence,
            at_most: gain.map(|at_most| Benefit { at_most, of: "transactions" }),
            ..any.clone()
        };
        let measured = |times, difference| {
            let gain =
                MeasuredGain { times, low: None, high: None, of: "transactions", trials: 3, difference };
            Finding { measured: Some(gain), ..found("E", Severity::High, Confidence::Low, None) }
        };
        let mut all = vec![
            found("A", Severity::Low, Confidence::High, Some(9.0)),
            found("B", Severity::High, Confidence::High, None),
            found("C", Severity::High, Confidence::Low, Some(1.5)),
            found("D", Severity::High, Confidence::Low, None),
            measured(2.0, true),
            Finding { code: "F", ..measured(5.0, false) },
            any.clone(),
        ];
        in_order(&mut all);
        let codes: Vec<_> = all.iter().map(|finding| finding.code).collect();
        assert_eq!(codes, ["E", "C", "B", "D", "F", "A", "D01"]);
    }
}
