//! The table of rules as a page for people, in Markdown.

use ebbtide_text::{figure, percent, rough};

use crate::alarm::{RULES, Rule, Side, ValueUnit, fed_with};

/// The page docs/generated/alarms.md.
#[must_use]
pub fn alarms_page() -> String {
    let mut page = format!(
        "# The alarms of `ebbtide watch`\n\n\
         Made of the table in `crates/watch/src/alarm/table.rs`; a test holds the two together. There are {} rules. How to use them:\n\
         [watch.md](../watch.md). A rule that is not fed yet never alarms.\n\n\
         | Rule | Watches | ALARM | OK | Severity | Check | Why | Fed by `watch` with |\n|---|---|---|---|---|---|---|---|\n",
        RULES.len()
    );
    RULES.iter().for_each(|rule| page.push_str(&row(rule)));
    page
}

fn row(rule: &Rule) -> String {
    let threshold = &rule.threshold;
    let (raised, cleared) = match threshold.side {
        Side::Above => ("at least", "below"),
        Side::Below => ("at most", "above"),
    };
    // What a forecast was about has come: the rule may wait for a shorter time.
    let at_zero = Some(rule.seconds_to_alarm(Some(0.0))).filter(|seconds| *seconds != rule.alarm_after_s);
    let after = |seconds: u32| {
        if seconds == 0 { "at once".to_owned() } else { format!("for {}", rough(f64::from(seconds))) }
    };
    let (raise, clear) = match rule.unit {
        ValueUnit::Truth => ("true".to_owned(), "false".to_owned()),
        unit => (
            format!("{raised} {}", value(unit, threshold.raise)),
            format!("{cleared} {}", value(unit, threshold.clear)),
        ),
    };
    let sooner = at_zero.map_or_else(String::new, |seconds| format!("; 0 s, {}", after(seconds)));
    format!(
        "| `{}` | {} | {raise}, {}{sooner} | {clear}, {} | {} | {} | {} | {} |\n",
        rule.name,
        cell(rule.watches),
        after(rule.alarm_after_s),
        after(rule.ok_after_s),
        rule.severity.name(),
        rule.check.unwrap_or("-"),
        cell(rule.reason),
        fed_with(rule.id),
    )
}

/// A text in a cell, where a bar would end it.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn value(unit: ValueUnit, value: f64) -> String {
    match unit {
        ValueUnit::Seconds => rough(value),
        ValueUnit::Share => percent(value),
        ValueUnit::Times => format!("{} times", figure(value)),
        ValueUnit::PerSecond => format!("{}/s", figure(value)),
        ValueUnit::Truth => figure(value),
    }
}
