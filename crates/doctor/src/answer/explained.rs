//! The checks themselves as text: one for `--explain`, all as Markdown for docs/generated/checks.md.

use std::fmt::Write as _;

use ebbtide_advisor::{AREAS, Check, Words};
use ebbtide_catalog::Catalog;
use ebbtide_observe::metric::{Maker, Servers};

/// One check.
#[must_use]
pub fn check_text(check: &Check, catalog: &Catalog) -> String {
    let words = check.words(catalog);
    let mut text = format!("{}  {}\n\n", check.code, check.title);
    let rows = [
        ("Finding", &*words.condition),
        ("Why", &*words.reason),
        ("Servers", &servers(check)),
        ("Severity", check.severity.name()),
        ("Gain", &*words.gain),
        ("Risk", &*words.risk),
        ("Cost", &*words.cost),
    ];
    for (name, value) in rows {
        let _ = writeln!(text, "{name:<9} {value}");
    }
    let _ = writeln!(text, "Sources");
    for source in check.sources {
        let _ = writeln!(text, "  {}\n    {}", source.says, source.url);
    }
    text
}

/// All checks, as Markdown.
#[must_use]
pub fn all_checks(catalog: &Catalog) -> String {
    let number = ebbtide_advisor::checks().count();
    let mut text = format!(
        "# The checks of `ebbtide doctor`\n\n\
         `ebbtide doctor --explain all` prints this page; a test holds the two together. {number} checks, made of the table in\n\
         `crates/advisor/src/checks`. How to run them: [doctor.md](../doctor.md).\n\n\
         A severity is what a finding has at least or usually; the condition says where it is another. A check that reads\n\
         counters takes their growth over the interval, never since the server's start.\n"
    );
    for area in AREAS {
        let _ = write!(
            text,
            "\n## {}\n\n| Code | What it looks at | Finding | Severity | Servers |\n|---|---|---|---|---|\n",
            area.name
        );
        for check in area.checks {
            let _ = writeln!(
                text,
                "| [{}](#{}) | {} | {} | {} | {} |",
                check.code,
                check.code.to_lowercase(),
                check.title,
                check.words(catalog).condition,
                check.severity.name(),
                servers(check)
            );
        }
        for check in area.checks {
            let Words { reason, gain, risk, cost, .. } = check.words(catalog);
            let _ = write!(
                text,
                "\n### {}\n\n{}. Why: {reason}.\n\n- Gain: {gain}.\n- Risk: {risk}.\n- Cost: {cost}.\n",
                check.code, check.title
            );
            for source in check.sources {
                // The page is in docs/generated, a folder below those that it links.
                let place = match source.url.strip_prefix("docs/") {
                    Some(page) => format!("[{}](../{page})", source.url),
                    None => format!("<{}>", source.url),
                };
                let _ = writeln!(text, "- Source: {} ({place}).", source.says);
            }
        }
    }
    text
}

/// The servers of a check.
pub(super) fn servers(check: &Check) -> String {
    let one = |servers: &Servers| {
        let maker = match servers.maker {
            None => return "all".to_owned(),
            Some(Maker::MariaDb) => "MariaDB",
            Some(Maker::MySql) => "MySQL, Percona Server",
        };
        let number = |(major, minor, patch): (u32, u32, u32)| format!("{major}.{minor}.{patch}");
        let since = servers.since.filter(|since| *since > (10, 0, 0) || servers.maker == Some(Maker::MySql));
        let since = since.map(|since| format!(" from {}", number(since))).unwrap_or_default();
        let until = servers.until.map(|until| format!(" before {}", number(until))).unwrap_or_default();
        format!("{maker}{since}{until}")
    };
    let all = check.servers.iter().map(one).collect::<Vec<_>>().join("; ");
    if ebbtide_advisor::is_of_aurora(check.code) { all } else { format!("{all}; not Aurora") }
}

#[cfg(test)]
mod tests {
    use ebbtide_lab::experiment::{self, Overrides};

    use super::*;

    /// The words of each `ebbtide run` that a source names.
    fn runs() -> Vec<(&'static str, Vec<&'static str>)> {
        let checks = AREAS.iter().flat_map(|area| area.checks);
        let says = checks.flat_map(|check| check.sources.iter().map(|source| (check.code, source.says)));
        let commands =
            says.flat_map(|(code, says)| says.split('`').skip(1).step_by(2).map(move |one| (code, one)));
        commands
            .filter_map(|(code, command)| {
                Some((code, command.strip_prefix("ebbtide run ")?.split(' ').collect()))
            })
            .collect()
    }

    #[test]
    fn the_runs_that_sources_name_are_experiments_of_the_lab() {
        let runs = runs();
        for (code, words) in &runs {
            let mut overrides = Overrides { seed: Some(7), ..Overrides::default() };
            let [name, options @ ..] = &words[..] else { panic!("{code} names no experiment") };
            for option in options.chunks(2) {
                let [option, value] = option else { panic!("{code}: {option:?} has no value") };
                match *option {
                    "--arms" => overrides.arms = value.split(',').map(str::to_owned).collect(),
                    "--set" => {
                        let (key, value) = value.split_once('=').unwrap();
                        overrides.set.push((key.to_owned(), value.to_owned()));
                    }
                    other => panic!("{code}: {other}"),
                }
            }
            let planned =
                experiment::load(name, &overrides).unwrap_or_else(|error| panic!("{code}: {error}"));
            assert_eq!(planned.arms.len(), 2, "{code}: one arm is held against another");
        }
        let codes: Vec<_> = runs.iter().map(|(code, _)| *code).collect();
        for code in ["F02", "C05", "C09"] {
            assert!(codes.contains(&code), "{codes:?}");
        }
    }
}
