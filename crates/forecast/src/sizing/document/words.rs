//! Words that several parts of the answer share.

use crate::sizing::SizingPlan;
use ebbtide_advisor::sizing::MOST_ROOM;
use ebbtide_catalog::MonthlyCost;
use ebbtide_text::{figure, latency};
use ebbtide_volume::Nanos;

/// A multiple of the planned load as one of the recorded load.
pub(super) fn room_words(plan: &SizingPlan<'_>, room: f64) -> String {
    let more = if room >= MOST_ROOM { " and more" } else { "" };
    format!("{}x the load as it is{more}", figure(room * plan.factor()))
}

/// What volumes cost a month, with its parts.
pub(super) fn cost_words(cost: Option<&MonthlyCost>) -> String {
    cost.map_or_else(|| "no price here".to_owned(), |cost| format!("{} a month: {}", cost.usd, cost.parts()))
}

/// A time of an I/O or of a transaction.
pub(super) fn time(time: Nanos) -> String {
    latency(time.0 as f64 / 1e3)
}

/// Why no other instance was looked for; None where others were, and where none was named.
pub(in crate::sizing) fn instances_skipped(plan: &SizingPlan<'_>) -> Option<String> {
    let today = plan.unpriced_instance()?;
    Some(format!(
        "no other instance was looked for: the catalogue has no price of {} in {}. Give AWS's list of the region with --prices",
        today.name, plan.region
    ))
}

/// A share near all of something, with its decimals: `99.9%`.
pub(super) fn share(share: f64) -> String {
    let digits = ebbtide_text::fixed(share * 100.0, 3);
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    format!("{digits}%")
}
