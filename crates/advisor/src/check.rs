//! What a check is.

use ebbtide_catalog::Catalog;
use ebbtide_observe::Observation;
use ebbtide_observe::metric::Servers;

use crate::aurora::is_of_aurora;
use crate::finding::{Assessment, Confidence, Finding, Gap, Judged, Severity, Source};
use crate::view::{View, does_not_apply};

/// A question that an observation answers, with what is true of every answer.
///
/// Its sentences but the title and the sources name facts of the catalogue in braces: [`Check::words`] has them filled in.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    /// Its name, the same for ever.
    pub code: &'static str,
    /// What it looks at, without a full stop.
    pub title: &'static str,
    /// When it is a finding, with the threshold.
    pub(crate) condition: &'static str,
    /// Why the threshold is what it is.
    pub(crate) reason: &'static str,
    /// Servers that it applies to.
    pub servers: &'static [Servers],
    /// How bad a finding is, unless the answer has another.
    pub severity: Severity,
    /// What the fix gains.
    pub(crate) gain: &'static str,
    /// What can go wrong with the fix.
    pub(crate) risk: &'static str,
    /// What the fix costs: money, memory or speed.
    pub(crate) cost: &'static str,
    /// Where the facts come from. Where they disagree, both are listed.
    pub sources: &'static [Source],
    /// Answers it. A pure function: the same observation and catalogue give the same answer.
    pub judge: fn(&View<'_>) -> Judged,
}

impl Check {
    /// Answers the question.
    #[must_use]
    pub fn run(&self, observation: &Observation, catalog: &Catalog) -> Finding {
        let view = View::new(observation, catalog);
        let judged = if view.is_aurora() && !is_of_aurora(self.code) {
            does_not_apply("Aurora's storage takes no pages and keeps no files of InnoDB")
        } else {
            view.applies(self.servers).and_then(|()| (self.judge)(&view))
        };
        let confidence = view.confidence();
        let words = self.words(catalog);
        let nothing = Finding {
            code: self.code,
            title: self.title,
            verdict: Assessment::Fine,
            severity: None,
            confidence,
            why: String::new(),
            evidence: view.into_evidence(),
            missing: Vec::new(),
            fix: None,
            gain: words.gain,
            at_most: None,
            measured: None,
            risk: words.risk,
            cost: words.cost,
            sources: self.sources,
        };
        match judged {
            Ok(None) => nothing,
            Ok(Some(found)) => found.finding(self.severity, nothing),
            Err(Gap::DoesNotApply(why)) => Finding { verdict: Assessment::DoesNotApply, why, ..nothing },
            Err(Gap::Missing(missing)) => {
                let why = format!("{} was not observed.", missing.what);
                let missing = vec![missing];
                Finding { verdict: Assessment::Unknown, confidence: Confidence::Low, why, missing, ..nothing }
            }
            Err(Gap::Undecided(why)) => {
                Finding { verdict: Assessment::Unknown, confidence: Confidence::Low, why, ..nothing }
            }
        }
    }
}
