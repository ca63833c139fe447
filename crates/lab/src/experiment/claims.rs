//! What documents claim about an experiment: the sections `[[claim]]`.

use std::collections::BTreeMap;

use ebbtide_analysis::claim::{Claim, ClaimMetric, ClaimPhase, ClaimTest, Document, Of};
use ebbtide_text::{closest, did_you_mean};

use super::ExperimentError;
use super::file::no_such;
use super::section::Section;
use super::tree::{Node, Value};

/// The keys of a claim.
const KEYS: [&str; 15] = [
    "id",
    "document",
    "place",
    "says",
    "printed",
    "figures",
    "metric",
    "arm",
    "over",
    "during",
    "over_during",
    "at_least",
    "at_most",
    "contradicted",
    "untestable",
];

/// The keys of its condition.
const TEST: [&str; 7] = ["metric", "arm", "over", "during", "over_during", "at_least", "at_most"];

/// What claims are held against: the arms of a file, and what they have.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClaimScope<'a> {
    /// The names of all arms, those included that the short form leaves out.
    pub(super) arms: &'a [String],
    /// Whether the power of the arms is cut.
    pub(super) crash: bool,
    /// Whether an arm has a batch job.
    pub(super) batch: bool,
    /// Whether an arm has a backup.
    pub(super) backup: bool,
}

/// Reads the claims of a file.
pub(super) fn read(nodes: &[Node], scope: ClaimScope<'_>) -> Result<Vec<Claim>, ExperimentError> {
    let mut claims: Vec<Claim> = Vec::new();
    for node in nodes {
        let claim = Reader { section: Section::of_table("claim", node, &KEYS)?, scope }.claim()?;
        if claims.iter().any(|other| other.id == claim.id) {
            return Err(node
                .place
                .wrong(format!("two claims have the id '{}': give each its own", claim.id)));
        }
        claims.push(claim);
    }
    Ok(claims)
}

/// A claim being read.
struct Reader<'a> {
    section: Section<'a>,
    scope: ClaimScope<'a>,
}

impl Reader<'_> {
    fn claim(&self) -> Result<Claim, ExperimentError> {
        let id = self.needed("id")?;
        let document = self.needed("document")?;
        let named = Document::parse(&document);
        let document = named.ok_or_else(|| {
            let keys = Document::ALL.map(Document::key);
            self.section.wrong("document", no_such("document", &document, keys))
        })?;
        let claim = Claim {
            id,
            document,
            place: self.needed("place")?,
            says: self.needed("says")?,
            printed: self.text("printed")?.unwrap_or_default(),
            figures: self.figures()?,
            test: self.test()?,
            contradicted: self.text("contradicted")?,
            untestable: self.text("untestable")?,
        };
        self.check(&claim)?;
        Ok(claim)
    }

    /// A text over several lines is one paragraph.
    fn text(&self, key: &str) -> Result<Option<String>, ExperimentError> {
        let text = self.section.text(key)?;
        Ok(text.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ")))
    }

    fn needed(&self, key: &str) -> Result<String, ExperimentError> {
        let text = self.text(key)?.filter(|text| !text.is_empty());
        text.ok_or_else(|| self.section.wrong(key, "a claim needs it, as a text in quotes"))
    }

    fn figures(&self) -> Result<BTreeMap<String, f64>, ExperimentError> {
        let Some(table) = self.section.table("figures")? else { return Ok(BTreeMap::new()) };
        let figure = |(arm, node): (&str, &Node)| {
            let figure = match node.value {
                Value::Whole(number) => Some(number as f64),
                Value::Real(number) => Some(number),
                _ => None,
            };
            let figure = figure.filter(|figure| *figure >= 0.0);
            let figure = figure.ok_or_else(|| {
                node.place.wrong(format!("figures.{arm} = {}: a figure is a number from 0 on", node.value))
            })?;
            self.check_arm(arm, |message| node.place.wrong(message))?;
            Ok((arm.to_owned(), figure))
        };
        table.iter().map(figure).collect()
    }

    /// Refuses a name that no arm has; `wrong` puts the place before the message.
    fn check_arm(
        &self,
        arm: &str,
        wrong: impl FnOnce(String) -> ExperimentError,
    ) -> Result<(), ExperimentError> {
        if self.scope.arms.iter().any(|name| name == arm) {
            return Ok(());
        }
        let names = || self.scope.arms.iter().map(String::as_str);
        if self.scope.arms.len() <= 12 {
            return Err(wrong(no_such("arm", arm, names())));
        }
        Err(wrong(format!("there is no arm '{arm}'{}", did_you_mean(closest(arm, names())))))
    }

    fn arm(&self, key: &str) -> Result<Option<String>, ExperimentError> {
        let Some(arm) = self.section.text(key)? else { return Ok(None) };
        self.check_arm(arm, |message| self.section.wrong(key, message))?;
        Ok(Some(arm.to_owned()))
    }

    /// The condition; none where the claim has none of its keys.
    fn test(&self) -> Result<Option<ClaimTest>, ExperimentError> {
        if !TEST.iter().any(|key| self.section.keys().any(|there| there == *key)) {
            return Ok(None);
        }
        let metric = self.needed("metric")?;
        let names = || ClaimMetric::ALL.iter().map(|(_, name, ..)| *name);
        let metric = ClaimMetric::parse(&metric).ok_or_else(|| {
            self.section.wrong("metric", no_such("metric", &metric, names().collect::<Vec<_>>()))
        })?;
        let lab = if self.scope.crash { Of::Crash } else { Of::Run };
        if metric.of() != Of::Both && metric.of() != lab {
            let other = if self.scope.crash { "ebbtide run" } else { "ebbtide crash" };
            return Err(self.section.wrong("metric", format!("only '{other}' measures it")));
        }
        let arm = self.arm("arm")?.ok_or_else(|| self.section.wrong("arm", "the condition needs an arm"))?;
        let during = self.phases("during")?;
        let test = ClaimTest {
            metric,
            arm,
            over: self.arm("over")?,
            over_during: match self.section.keys().any(|key| key == "over_during") {
                true => self.phases("over_during")?,
                false => during.clone(),
            },
            during,
            at_least: self.section.real("at_least")?,
            at_most: self.section.real("at_most")?,
        };
        self.check_test(&test)?;
        Ok(Some(test))
    }

    fn phases(&self, key: &'static str) -> Result<Vec<ClaimPhase>, ExperimentError> {
        let phase = |name: &str| {
            let known = || ClaimPhase::ALL.iter().map(|(_, name)| *name);
            let phase = ClaimPhase::parse(name).ok_or_else(|| {
                self.section.wrong(key, no_such("phase", name, known().collect::<Vec<_>>()))
            })?;
            let lacks = match phase {
                ClaimPhase::Batch | ClaimPhase::NoBatch => (!self.scope.batch).then_some("a batch job"),
                ClaimPhase::BeforeBackup | ClaimPhase::DuringBackup | ClaimPhase::AfterBackup => {
                    (!self.scope.backup).then_some("a backup")
                }
                ClaimPhase::CreditsLeft | ClaimPhase::CreditsGone => None,
            };
            match lacks {
                Some(what) => Err(self.section.wrong(key, format!("'{name}': no arm has {what}"))),
                None if self.scope.crash => {
                    Err(self.section.wrong(key, "cuts have no phases: leave it out".to_owned()))
                }
                None => Ok(phase),
            }
        };
        self.section.texts(key)?.unwrap_or_default().into_iter().map(phase).collect()
    }

    fn check_test(&self, test: &ClaimTest) -> Result<(), ExperimentError> {
        let wrong = |key: &str, message: &str| Err(self.section.wrong(key, message));
        match (test.at_least, test.at_most) {
            (None, None) => wrong("at_least", "the condition needs a bound: at_least, at_most or both"),
            (Some(least), Some(most)) if least > most => {
                wrong("at_most", "it must not be less than at_least")
            }
            (least, most) if least.into_iter().chain(most).any(|bound| !bound.is_finite() || bound < 0.0) => {
                wrong("at_least", "bounds are numbers from 0 on")
            }
            _ if test.over.is_none() && !test.over_during.is_empty() && test.over_during != test.during => {
                wrong("over_during", "it belongs to the arm of 'over', which is not given")
            }
            _ if test.over.as_ref() == Some(&test.arm) && test.over_during == test.during => {
                wrong("over", "it is the same arm in the same phase: name another, or another over_during")
            }
            _ => Ok(()),
        }
    }

    /// What the whole of a claim does not allow.
    fn check(&self, claim: &Claim) -> Result<(), ExperimentError> {
        let Some(test) = &claim.test else {
            if claim.untestable.is_none() && claim.contradicted.is_none() {
                let message = "a claim has a condition (metric, arm and a bound), or says why it has none in \
                               'untestable' or 'contradicted'";
                return Err(self.section.wrong("metric", message));
            }
            return Ok(());
        };
        if claim.untestable.is_some() {
            let message = "a claim that cannot be tested has no condition: leave out one of them";
            return Err(self.section.wrong("untestable", message));
        }
        match test.theirs(&claim.figures) {
            Some(theirs) if !test.allows(theirs) && claim.contradicted.is_none() => {
                let message = format!(
                    "the document's own figures give {}, which is outside of the condition: change the bounds, or say \
                     in 'contradicted' how its tables contradict it",
                    ebbtide_text::figure(theirs)
                );
                Err(self.section.wrong("figures", message))
            }
            _ => Ok(()),
        }
    }
}
