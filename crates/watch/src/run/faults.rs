//! Troubles of those who are told of what is watched, such as of the history: they are shown beside those of the sources.

use super::worker::Slot;
use crate::live::SourceFault;

/// The troubles that last, of each subject one. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Faults(Slot<Vec<SourceFault>>);

impl Faults {
    /// Notes the trouble of a subject, or that it has none any more.
    pub(super) fn set(&self, subject: &str, fault: Option<SourceFault>) {
        let mut faults = self.0.lock();
        faults.retain(|known| known.subject != subject);
        faults.extend(fault);
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<SourceFault> {
        self.0.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_has_one_trouble_until_it_has_none() {
        let fault = |subject: &str, reason: &str| SourceFault {
            subject: subject.to_owned(),
            figure: String::new(),
            reason: reason.to_owned(),
            remedy: String::new(),
        };
        let faults = Faults::default();
        faults.set("history", Some(fault("history", "full")));
        faults.set("webhook", Some(fault("webhook", "refused")));
        faults.set("history", Some(fault("history", "gone")));
        let reasons: Vec<String> = faults.all().into_iter().map(|fault| fault.reason).collect();
        assert_eq!(reasons, ["refused", "gone"]);
        faults.set("webhook", None);
        assert_eq!(faults.all().len(), 1);
    }
}
