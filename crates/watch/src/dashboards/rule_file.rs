//! The rule file of Prometheus.

use std::fmt::Write as _;

use crate::alarm::{RULES, Rule, SubjectKind};

/// The groups of the file, by what alarms are about.
const GROUPS: [(SubjectKind, &str); 6] = [
    (SubjectKind::Volume, "ebbtide-volumes"),
    (SubjectKind::Instance, "ebbtide-instances"),
    (SubjectKind::Server, "ebbtide-servers"),
    (SubjectKind::Replica, "ebbtide-replicas"),
    (SubjectKind::FileSystem, "ebbtide-file-systems"),
    (SubjectKind::Check, "ebbtide-checks"),
];

/// The name of a rule's alert: `EbbtideLogWaits` of `log_waits`.
#[must_use]
pub fn alert_name(rule: &Rule) -> String {
    let words = rule.name.split('_').map(|word| {
        let (first, rest) = word.split_at(word.len().min(1));
        format!("{}{rest}", first.to_ascii_uppercase())
    });
    format!("Ebbtide{}", words.collect::<String>())
}

/// The rule file, in YAML. Texts are quoted as in JSON, of which YAML takes all.
#[must_use]
pub fn rule_file() -> String {
    let mut file = String::from(
        "# Made of the rules of ebbtide watch. Needs Prometheus 2.42 or later (keep_firing_for).\ngroups:\n",
    );
    for (kind, group) in GROUPS {
        add(&mut file, format_args!("  - name: {group}\n    rules:\n"));
        for rule in RULES.iter().filter(|rule| rule.subject == kind) {
            add_rule(&mut file, rule);
        }
    }
    file
}

fn add_rule(file: &mut String, rule: &Rule) {
    add(file, format_args!("      - alert: {}\n", alert_name(rule)));
    add(file, format_args!("        expr: {}\n", quoted(&rule.expression())));
    add(file, format_args!("        for: {}s\n", rule.alarm_after_s));
    if rule.ok_after_s > 0 {
        add(file, format_args!("        keep_firing_for: {}s\n", rule.ok_after_s));
    }
    let severity = rule.severity.name();
    add(
        file,
        format_args!("        labels:\n          severity: {severity}\n          rule: {}\n", rule.name),
    );
    if let Some(check) = rule.check {
        add(file, format_args!("          check: {check}\n"));
    }
    let summary = format!("{} of {}: {{{{ $value | humanize }}}}", rule.name, subject(rule));
    let because = if rule.condition.is_empty() { String::new() } else { format!(" ({})", rule.condition) };
    let description = format!("It watches {}{because}. Why: {}.", rule.watches, rule.reason);
    add(file, format_args!("        annotations:\n"));
    for (name, text) in [
        ("summary", summary.as_str()),
        ("description", description.as_str()),
        ("fix", rule.advice),
        ("source", rule.source),
    ] {
        add(file, format_args!("          {name}: {}\n", quoted(text)));
    }
}

/// The label that names the subject, as a template of Prometheus.
fn subject(rule: &Rule) -> String {
    match rule.query.labels {
        [only] => format!("{{{{ $labels.{only} }}}}"),
        several => {
            let labels: Vec<String> = several.iter().map(|label| format!("$labels.{label}")).collect();
            format!("{{{{ or {} }}}}", labels.join(" "))
        }
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn add(file: &mut String, added: std::fmt::Arguments<'_>) {
    file.write_fmt(added).expect("a text takes whatever is written to it");
}

#[cfg(test)]
mod tests {
    use crate::alarm::{RuleId, rule};

    use super::*;

    #[test]
    fn an_alert_has_its_times_its_labels_and_its_texts() {
        assert_eq!(alert_name(rule(RuleId::CreditsEndYesterday)), "EbbtideCreditsEndYesterday");
        let mut file = String::new();
        add_rule(&mut file, rule(RuleId::LogWaits));
        let start = "      - alert: EbbtideLogWaits\n        expr: \"(rate(mysql_global_status_innodb_log_waits[1m])) >= 1\"\n        \
                     for: 30s\n        keep_firing_for: 120s\n        labels:\n          severity: warning\n          rule: log_waits\n          \
                     check: R03\n        annotations:\n          summary: \"log_waits of {{ $labels.instance }}: {{ $value | humanize }}\"\n";
        assert!(file.starts_with(start), "{file}");
        let throttled = subject(rule(RuleId::ThrottledVolumeIops));
        assert_eq!(throttled, "{{ or $labels.volume $labels.device }}");
    }

    #[test]
    fn each_rule_is_in_the_file_once_and_nothing_is_indented_by_tabs() {
        let file = rule_file();
        for rule in RULES {
            assert_eq!(file.matches(&format!("          rule: {}\n", rule.name)).count(), 1, "{}", rule.name);
        }
        assert!(!file.contains('\t') && file.lines().all(|line| !line.ends_with(' ')), "{file}");
    }
}
