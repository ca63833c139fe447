//! The settings of all fixes as a fragment of my.cnf, and its inverse.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use ebbtide_advisor::Finding;
use ebbtide_observe::{Observation, switch};

/// The fragment. A variable that several findings set is that of the finding which is worth most.
#[must_use]
pub fn fragment(observation: &Observation, findings: &[Finding]) -> String {
    let mut text = format!(
        "# Fixes of `ebbtide doctor` for {}.\n# Read each finding first: ebbtide doctor --explain CODE. Take out what you do not want.\n[mysqld]\n",
        super::document::server(observation)
    );
    let mut before = String::new();
    let mut done = BTreeSet::new();
    for finding in findings {
        let Some(fix) = &finding.fix else { continue };
        let severity = finding.severity.map_or("", |severity| severity.name());
        let set: Vec<_> = fix.set.iter().filter(|change| done.insert(change.variable)).collect();
        if set.is_empty() {
            continue;
        }
        let _ = writeln!(text, "\n# {} ({severity}): {}", finding.code, one_line(&finding.why));
        for change in set {
            let _ = writeln!(text, "{} = {}", change.variable, change.value);
            let old = observation.variables.as_ref().and_then(|all| all.get(change.variable));
            if let Some(old) = old {
                let _ = writeln!(before, "# {}", line(change.variable, old));
            }
        }
    }
    if before.is_empty() {
        return text + "\n# No finding is about a setting.\n";
    }
    let _ = write!(text, "\n# What holds now, to go back:\n{before}");
    text
}

/// The line that gives a variable its value. The option `log_bin` takes a name of files: with `OFF` it would be on.
fn line(variable: &str, value: &str) -> String {
    match (variable, switch(value)) {
        ("log_bin", Some(false)) => "skip_log_bin".to_owned(),
        _ => format!("{variable} = {}", one_line(value)),
    }
}

/// A text that cannot begin a line of its own in the file.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_held_before_is_written_so_that_it_holds_again() {
        assert_eq!(line("log_bin", "OFF"), "skip_log_bin");
        assert_eq!(line("innodb_doublewrite", "OFF"), "innodb_doublewrite = OFF");
        assert_eq!(line("innodb_flush_method", "fsync\nx = 1"), "innodb_flush_method = fsync x = 1");
    }
}
