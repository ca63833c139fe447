//! Families that other exporters have, too.

use crate::exposition::Label;
use crate::family::{Family, FamilyKind};

/// A family of another exporter.
pub(super) const fn family(
    name: &'static str,
    kind: FamilyKind,
    unit: &'static str,
    labels: &'static [&'static str],
    (help, source): (&'static str, &'static str),
) -> Family {
    Family { name, kind, unit, labels, help, source }
}

/// Own labels with those that all values share.
pub(super) fn with_shared<'a>(own: &[Label<'a>], shared: &[Label<'a>]) -> Vec<Label<'a>> {
    [own, shared].concat()
}
