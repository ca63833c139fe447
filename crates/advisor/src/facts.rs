//! Facts of the catalogue in the sentences of checks: a text names a fact in braces, and the catalogue at hand gives it.
//!
//! So a sentence cannot say something else than the model does, and a user's overrides hold in it too.

use ebbtide_catalog::{Catalog, Resolved, Spec};
use ebbtide_text::{latency, whole};

use crate::check::Check;

/// A fact: its name in a text, and its words. None where the catalogue does not have it.
type Fact = (&'static str, fn(&Catalog) -> Option<String>);

/// All facts that a text may name.
const FACTS: &[Fact] = &[
    ("modifications", |catalog| Some(modifications(catalog))),
    ("gp2.credits", |catalog| whole_of(volume(catalog, "gp2")?.members[0].iops?.credits)),
    ("gp2.month", |catalog| month(catalog, "gp2")),
    ("gp3.month", |catalog| month(catalog, "gp3")),
    ("gp3.iops", |catalog| whole_of(catalog.provisioning("gp3")?.iops?.min)),
    ("gp3.iops_per_gib", |catalog| whole_of(catalog.provisioning("gp3")?.iops?.per_gib)),
    ("gp3.mib_s_per_iops", |catalog| Some(catalog.provisioning("gp3")?.throughput?.per_iops.to_string())),
    ("io2.iops_per_gib", |catalog| whole_of(catalog.provisioning("io2")?.iops?.per_gib)),
    ("gp3.read", |catalog| Some(median(catalog, "gp3", |limits| limits.service.read.quantile(HALF).0))),
    ("gp3.write", |catalog| Some(median(catalog, "gp3", |limits| limits.service.write.quantile(HALF).0))),
    ("io2.write", |catalog| Some(median(catalog, "io2", |limits| limits.service.write.quantile(HALF).0))),
    ("io1.failures", |catalog| failures(catalog, "io1")),
    ("io2.failures", |catalog| failures(catalog, "io2")),
];

/// The quantile of the median, parts in a million.
const HALF: u32 = 500_000;

/// What the catalogue does not have.
const NOT_KNOWN: &str = "(not in the catalogue)";

/// How often a volume may be modified, as a clause.
pub(crate) fn modifications(catalog: &Catalog) -> String {
    format!(
        "a volume takes up to {} modifications in 24 hours, each once the one before is completed",
        catalog.modification_rate().per_day
    )
}

/// A volume of a type of 100 GiB, with what the type has by default.
fn volume(catalog: &Catalog, kind: &str) -> Option<Resolved> {
    catalog.resolve(&Spec::parse(&format!("{kind}:size=100GiB")).ok()?).ok()
}

fn whole_of(number: u64) -> Option<String> {
    Some(whole(number as f64))
}

fn median(catalog: &Catalog, kind: &str, of: fn(&ebbtide_volume::Limits) -> u64) -> String {
    // io2 has no IOPS by default.
    let iops = if kind == "io2" { ",iops=3000" } else { "" };
    let spec = Spec::parse(&format!("{kind}:size=100GiB{iops}")).ok();
    let resolved = spec.and_then(|spec| catalog.resolve(&spec).ok());
    resolved.map_or_else(|| NOT_KNOWN.to_owned(), |volume| latency(of(&volume.members[0]) as f64 / 1e3))
}

/// What 100 GiB of a type cost a month.
fn month(catalog: &Catalog, kind: &str) -> Option<String> {
    let cost = catalog.prices(None).ok()?.monthly_cost(&volume(catalog, kind)?)?;
    Some(format!("{} ({}, {})", cost.usd, cost.region, cost.as_of))
}

/// The share of volumes of a type that fail in a year.
fn failures(catalog: &Catalog, kind: &str) -> Option<String> {
    let info = catalog.types().iter().find(|info| info.name == kind)?;
    Some(format!("{}%", info.annual_failure_percent.as_ref()?.replace('-', "% to ")))
}

/// A text with its facts.
///
/// # Panics
/// A text names a fact that there is not, or leaves a brace open; a test reads all texts.
pub(crate) fn with_facts(text: &str, catalog: &Catalog) -> String {
    let (mut words, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').expect("a brace that opens is closed");
        let (_, fact) = FACTS.iter().find(|(own, _)| *own == name).expect("a text names facts of the table");
        words += before;
        words += &fact(catalog).unwrap_or_else(|| NOT_KNOWN.to_owned());
        rest = after;
    }
    words + rest
}

/// What is true of every answer of a check, with the facts of a catalogue in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words {
    /// When it is a finding, with the threshold.
    pub condition: String,
    /// Why the threshold is what it is.
    pub reason: String,
    /// What the fix gains.
    pub gain: String,
    /// What can go wrong with the fix.
    pub risk: String,
    /// What the fix costs: money, memory or speed.
    pub cost: String,
}

impl Check {
    /// The check's sentences, with the facts of a catalogue.
    #[must_use]
    pub fn words(&self, catalog: &Catalog) -> Words {
        let [condition, reason, gain, risk, cost] =
            [self.condition, self.reason, self.gain, self.risk, self.cost]
                .map(|text| with_facts(text, catalog));
        Words { condition, reason, gain, risk, cost }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_of_every_check_names_facts_that_the_catalogue_has() {
        for check in crate::checks() {
            let Words { condition, reason, gain, risk, cost } = check.words(&Catalog::builtin());
            for text in [condition, reason, gain, risk, cost] {
                assert!(!text.contains(['{', '}']) && !text.contains(NOT_KNOWN), "{}: {text}", check.code);
            }
            let fixed = check.sources.iter().map(|source| source.says).chain([check.title]);
            assert!(fixed.into_iter().all(|text| !text.contains('{')), "{} has no facts there", check.code);
        }
    }

    #[test]
    fn every_fact_is_named_by_a_text_and_no_text_has_a_fact_of_its_own() {
        let texts =
            |check: &Check| [check.condition, check.reason, check.gain, check.risk, check.cost].join("\n");
        let all: String = crate::checks().map(texts).collect();
        for (name, _) in FACTS {
            assert!(all.contains(&format!("{{{name}}}")), "no text names {name}");
        }
        for stale in ["6 hours", "3,000", "5.4 million", "500 IOPS", "99.999%", "1 ms on"] {
            assert!(!all.contains(stale), "{stale} is the catalogue's");
        }
    }

    #[test]
    fn a_volume_takes_as_many_modifications_as_the_model_allows() {
        let catalog = Catalog::builtin();
        let says = modifications(&catalog);
        assert!(says.starts_with("a volume takes up to 4 modifications in 24 hours"), "{says}");
        for (code, text) in [("E01", "risk"), ("E06", "risk"), ("O09", "reason")] {
            let words = crate::check(code).unwrap().words(&catalog);
            let found = if text == "risk" { words.risk } else { words.reason };
            assert!(found.contains(&says), "{code}: {found}");
        }
    }

    #[test]
    fn a_users_figures_hold_in_the_sentences_too() {
        let own = "[[override]]\ntype = \"gp3\"\nreason = \"r\"\nsource = \"s\"\ndate = \"2026-11-20\"\n\
                   set = { iops = { per_gib = 300 } }\n";
        let catalog = Catalog::with_overrides_text("test", own).unwrap();
        let reason = |catalog| crate::check("E07").unwrap().words(catalog).reason;
        assert!(reason(&catalog).contains("gp3 has at most 300 IOPS a GiB"), "{}", reason(&catalog));
        assert!(reason(&Catalog::builtin()).contains("gp3 has at most 500 IOPS a GiB"));
    }
}
