//! When burst credits end and are back, in sentences.

use std::time::Duration;

use ebbtide_twin::innodb::RoleOutcome;
use ebbtide_twin::{Balance, BalanceChange};

use super::words;
use crate::prediction::{PredictedPoint, PredictedVolume, PredictionPlan};

/// Changes of burst credits that are told of a point: the first ones show the pattern.
const CREDIT_CHANGES: usize = 3;

/// The sentences of all points. What is the same at every load of a volume is said once, without the load.
pub(super) fn notes(plan: &PredictionPlan, predicted: &[PredictedVolume<'_>]) -> Vec<String> {
    let of_volume = |volume: &PredictedVolume<'_>| {
        let said = volume.points.iter().map(|point| (words::load(point.load), of_point(point))).collect();
        let spec = if plan.volumes.len() > 1 { volume.volume.spec.as_str() } else { "" };
        named(spec, plan.loads.len() > 1, said)
    };
    predicted.iter().flat_map(of_volume).collect()
}

/// The sentences of a volume by load, each behind what tells it from the others.
fn named(spec: &str, several_loads: bool, said: Vec<(String, Vec<String>)>) -> Vec<String> {
    let name = |parts: &[&str]| {
        let parts: Vec<&str> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
        if parts.is_empty() { String::new() } else { format!("{}: ", parts.join(", ")) }
    };
    let is_shared =
        |sentence: &String| !several_loads || said.iter().all(|(_, sentences)| sentences.contains(sentence));
    let first = said.first().map(|(_, sentences)| sentences.as_slice()).unwrap_or_default();
    let shared = first.iter().filter(|sentence| is_shared(sentence));
    let mut notes: Vec<String> = shared.map(|sentence| format!("{}{sentence}", name(&[spec]))).collect();
    for (load, sentences) in &said {
        let own = sentences.iter().filter(|sentence| !is_shared(sentence));
        notes.extend(own.map(|sentence| format!("{}{sentence}", name(&[spec, load]))));
    }
    notes
}

/// The sentences of a point.
fn of_point(point: &PredictedPoint) -> Vec<String> {
    let several = point.outcome.volumes.len() > 1;
    let changes = |volume: &'_ RoleOutcome| {
        let role = volume.role.key();
        volume.changes.iter().take(CREDIT_CHANGES).map(move |change| (role, *change)).collect::<Vec<_>>()
    };
    let sentence = |(role, change): (&str, BalanceChange)| {
        let owner = match change.balance {
            Balance::InstanceIo | Balance::InstanceBytes => " of the instance".to_owned(),
            Balance::Volume if several => format!(" of the {role} volume"),
            Balance::Volume => String::new(),
        };
        let verb = if change.ended { "end" } else { "are back" };
        let seconds = change.at.as_secs_f64();
        let in_units = match Duration::from_secs(change.at.0 / 1_000_000_000) {
            short if short < Duration::from_secs(60) => String::new(),
            long => format!(" ({})", ebbtide_text::span(long)),
        };
        if change.ended && seconds < 1.0 {
            format!("burst credits{owner} are at 0 from the beginning")
        } else {
            format!("burst credits{owner} {verb} after {seconds:.0} s{in_units}")
        }
    };
    point.outcome.volumes.iter().flat_map(changes).map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_the_same_at_every_load_is_said_once_of_the_volume() {
        let (zero, end) = ("burst credits are at 0 from the beginning", "burst credits end after 40 s");
        let said = |sentences: &[&[&str]]| -> Vec<(String, Vec<String>)> {
            let loads = ["1 client", "4 clients", "16 clients"];
            let owned =
                |sentences: &[&str]| sentences.iter().map(|sentence| (*sentence).to_owned()).collect();
            loads.into_iter().zip(sentences).map(|(load, all)| (load.to_owned(), owned(all))).collect()
        };
        assert_eq!(named("", true, said(&[&[zero], &[zero], &[zero]])), [zero]);
        assert_eq!(
            named("gp2:size=600GiB", true, said(&[&[zero], &[zero], &[zero, end]])),
            [format!("gp2:size=600GiB: {zero}"), format!("gp2:size=600GiB, 16 clients: {end}")]
        );
        assert_eq!(
            named("", true, said(&[&[], &[end], &[end]])),
            [format!("4 clients: {end}"), format!("16 clients: {end}")]
        );
        assert_eq!(named("gp2:size=600GiB", false, said(&[&[zero]])), [format!("gp2:size=600GiB: {zero}")]);
    }
}
