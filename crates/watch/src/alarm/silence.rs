//! Silences: alarms that are not announced for a while.

use ebbtide_volume::Nanos;

use crate::alarm::event::Subject;

/// Alarms that are not announced until a time. Their states go on, and are shown as silenced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Silence {
    /// The name of the rule; None: all rules.
    pub rule: Option<String>,
    /// The name of the subject; None: all subjects.
    pub subject: Option<String>,
    /// Its end, by the clock of [`Moment::elapsed`](crate::reading::Moment::elapsed). A silence without an end is not possible: it would be forgotten.
    pub until: Nanos,
    /// Why, for those who read the list.
    pub comment: String,
}

impl Silence {
    /// Whether it is for an alarm, as long as it lasts.
    #[must_use]
    pub fn covers(&self, rule: &str, subject: &Subject, now: Nanos) -> bool {
        now < self.until
            && self.rule.as_ref().is_none_or(|name| name == rule)
            && self.subject.as_ref().is_none_or(|name| *name == subject.name)
    }
}

/// When the last silence that covers an alarm ends; None: it is not silenced.
pub(crate) fn silenced_until(
    silences: &[Silence],
    rule: &str,
    subject: &Subject,
    now: Nanos,
) -> Option<Nanos> {
    silences.iter().filter(|silence| silence.covers(rule, subject, now)).map(|silence| silence.until).max()
}
