//! Why a figure is what it is: a sentence that is made of the measured I/O of the arms.

use ebbtide_text::figure;

use super::{ArmIo, ClaimMetric};

/// From this ratio on, and from its inverse down, two figures are told apart.
const APART: f64 = 1.15;

/// An arm of a claim with its I/O.
pub(super) struct Side<'a> {
    pub(super) arm: &'a str,
    /// The parts of its trials that are looked at; empty: all of them.
    pub(super) during: Vec<&'static str>,
    pub(super) io: ArmIo,
}

impl Side<'_> {
    fn name(&self) -> String {
        if self.during.is_empty() {
            format!("'{}'", self.arm)
        } else {
            format!("'{}' ({})", self.arm, self.during.join(", "))
        }
    }
}

/// The reason, from `. ` on; empty where nothing is known of any arm.
pub(super) fn reason(metric: ClaimMetric, sides: &[Side<'_>]) -> String {
    let known: Vec<&Side<'_>> = sides.iter().filter(|side| side.io != ArmIo::default()).collect();
    let mut sentences: Vec<String> = match known.as_slice() {
        [] => return String::new(),
        [one, other] if one.io.waits == other.io.waits => vec![alike(one, other)],
        _ => known.iter().map(|side| alone(side)).collect(),
    };
    if let [one, other] = known.as_slice() {
        sentences.extend(shared_out(metric, one, other));
    }
    sentences.extend(
        known
            .iter()
            .filter(|side| !side.io.figures.is_empty())
            .map(|side| format!("{}: {}", side.name(), side.io.figures)),
    );
    format!(". {}", sentences.join(". "))
}

fn alone(side: &Side<'_>) -> String {
    match side.io.waits.as_str() {
        "" => format!("Nothing that was measured holds {} back", side.name()),
        waits => format!("{} {waits}", side.name()),
    }
}

fn alike(one: &Side<'_>, other: &Side<'_>) -> String {
    match one.io.waits.as_str() {
        "" => format!("Nothing that was measured holds {} or {} back", one.name(), other.name()),
        waits => format!("{} {waits}, and so does {}", one.name(), other.name()),
    }
}

/// A ratio of rates by its two parts: transactions a second are I/Os a second, divided by I/Os a transaction.
fn shared_out(metric: ClaimMetric, one: &Side<'_>, other: &Side<'_>) -> Option<String> {
    if !matches!(metric, ClaimMetric::Tps | ClaimMetric::Tpmc) {
        return None;
    }
    let ratio = |of: fn(&ArmIo) -> Option<f64>| {
        let (own, other) = (of(&one.io)?, of(&other.io)?);
        (own > 0.0 && other > 0.0).then(|| own / other)
    };
    let speed = ratio(|io| io.iops)?;
    let need = ratio(|io| io.ios_per_transaction)?;
    let is_apart = |ratio: f64| !(1.0 / APART..APART).contains(&ratio);
    let (name, base) = (one.name(), other.name());
    Some(match (is_apart(speed), is_apart(need)) {
        (false, false) => format!("{name} has as many I/Os a second and a transaction as {base}"),
        (true, false) => {
            format!(
                "{name} has {} times the I/Os a second of {base}, and as many a transaction",
                figure(speed)
            )
        }
        (false, true) => {
            format!(
                "A transaction of {name} takes {} times the I/Os of {base}, of as many a second",
                figure(need)
            )
        }
        (true, true) => format!(
            "{name} has {} times the I/Os a second of {base}, and a transaction of it takes {} times the I/Os",
            figure(speed),
            figure(need)
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(arm: &'static str, waits: &str, iops: f64, ios: f64) -> Side<'static> {
        let io = ArmIo {
            waits: waits.to_owned(),
            figures: String::new(),
            ios_per_transaction: Some(ios),
            iops: Some(iops),
        };
        Side { arm, during: Vec::new(), io }
    }

    #[test]
    fn a_ratio_is_shared_out_between_the_speed_of_the_volume_and_the_need_of_a_transaction() {
        let limit = "waits for the volume's IOPS limit";
        let of = |speed: f64, need: f64, metric| {
            reason(metric, &[side("a", limit, 100.0 * speed, need), side("b", limit, 100.0, 1.0)])
        };
        let rate = |speed, need| of(speed, need, ClaimMetric::Tps);
        assert_eq!(
            rate(1.0, 0.2),
            ". 'a' waits for the volume's IOPS limit, and so does 'b'. A transaction of 'a' takes 0.20 times the I/Os of \
             'b', of as many a second"
        );
        assert!(
            rate(3.0, 1.0)
                .ends_with("'a' has 3.00 times the I/Os a second of 'b', and as many a transaction")
        );
        assert!(rate(3.0, 2.0).ends_with("and a transaction of it takes 2.00 times the I/Os"));
        assert!(rate(1.05, 0.95).ends_with("'a' has as many I/Os a second and a transaction as 'b'"));
        assert!(of(3.0, 1.0, ClaimMetric::P95Ms).ends_with("so does 'b'"), "no identity for a latency");
    }

    #[test]
    fn what_is_not_known_is_left_out_and_what_holds_nothing_back_is_said() {
        assert_eq!(reason(ClaimMetric::Tps, &[]), "");
        let nothing = Side { arm: "a", during: Vec::new(), io: ArmIo::default() };
        assert_eq!(reason(ClaimMetric::Tps, &[nothing]), "");
        let free =
            Side { arm: "a", during: vec!["batch"], io: ArmIo { iops: Some(1.0), ..ArmIo::default() } };
        assert_eq!(reason(ClaimMetric::Tps, &[free]), ". Nothing that was measured holds 'a' (batch) back");
    }
}
