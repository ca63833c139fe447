//! A report of pt-mysql-summary. Its sizes are rounded and are left out; its rates are rounded to two figures.

use std::path::Path;

use ebbtide_observe::{Flavour, Observation, Span, StatusVariables, Variables};

use crate::growth::rates_of_growth;
use crate::option_file::OptionFile;

/// What a report holds.
#[derive(Debug, Default)]
pub(super) struct Summary {
    /// Settings that it prints as they are.
    pub(super) variables: Variables,
    /// Growth a second of status variables between its two looks.
    growth: Vec<(String, u64)>,
    /// Seconds between them, as the heading of the last column has them (`--sleep`).
    seconds: Option<f64>,
    /// The option file that it quotes.
    pub(super) options: OptionFile,
}

/// Names of the report that are no names of variables, by section.
const ROWS: [(&str, &str, &str); 8] = [
    ("Report On Port", "Version", "version"),
    ("Report On Port", "Datadir", "datadir"),
    ("InnoDB", "File Per Table", "innodb_file_per_table"),
    ("InnoDB", "Flush Method", "innodb_flush_method"),
    ("InnoDB", "Flush Log At Commit", "innodb_flush_log_at_trx_commit"),
    ("InnoDB", "Doublewrite", "innodb_doublewrite"),
    ("InnoDB", "I/O Capacity", "innodb_io_capacity"),
    ("InnoDB", "Adaptive Flushing", "innodb_adaptive_flushing"),
];
/// Rows that have the variable's name.
const NAMED: [&str; 4] = ["binlog_format", "expire_logs_days", "sync_binlog", "log_slave_updates"];
impl Summary {
    /// Sets the rates of an observation.
    pub(super) fn set_rates(&self, seen: &mut Observation, flavour: Flavour) {
        let Some(seconds) = self.seconds.filter(|seconds| *seconds > 0.0 && !self.growth.is_empty()) else {
            return;
        };
        seen.span = Some(Span { began_unix_s: None, seconds, restarted: false });
        seen.rates = Some(rates_of_growth(&self.growth, flavour));
        let growth = self.growth.iter().map(|(name, value)| (name.clone(), *value as f64)).collect();
        seen.status = Some(StatusVariables { last: Variables::default(), growth_per_s: growth });
    }
}

/// Sections by which a report is known: those that have rows which are read.
const SECTIONS: [&str; 6] = [
    "Percona Toolkit MySQL Summary",
    "Report On Port",
    "Status Counters",
    "InnoDB",
    "Binary Logging",
    "Configuration File",
];

/// The section that a line begins.
fn section_of(line: &str) -> Option<&str> {
    let name = line.trim_end().strip_prefix("# ").filter(|name| name.ends_with("####"))?;
    Some(name.trim_end_matches('#').trim())
}

/// Reads a report, also one that was pasted without its beginning; None in another text.
pub(super) fn read(text: &str) -> Option<Summary> {
    let known = |name: &str| SECTIONS.iter().any(|section| name.starts_with(section));
    if !text.lines().filter_map(section_of).any(known) {
        return None;
    }
    let (mut variables, mut growth, mut file) = (Vec::new(), Vec::new(), String::new());
    let (mut section, mut last_column, mut seconds) = ("", None, None);
    for line in text.lines() {
        if let Some(name) = section_of(line) {
            section = name;
            continue;
        }
        if section.starts_with("Status Counters") {
            if line.starts_with("Variable") {
                last_column = line.rfind("Per second").map(|at| at + "Per second".len());
                let heading = last_column.and_then(|at| line.get(at..));
                seconds = heading.and_then(|text| text.trim().strip_suffix(" secs")?.trim().parse().ok());
            } else if let Some(one) = last_column.and_then(|at| grown(line, at)) {
                growth.push(one);
            }
        } else if section == "Configuration File" && !line.contains(" | ") {
            file.push_str(line);
            file.push('\n');
        } else if let Some((name, value)) = line.split_once('|') {
            setting(section, name.trim(), value.trim(), &mut variables);
        }
    }
    let options = OptionFile::of_text(Path::new("the report's option file"), &file);
    Some(Summary { variables: variables.into_iter().collect(), growth, seconds, options })
}

/// The figure of the last column, where there is one.
fn grown(line: &str, from: usize) -> Option<(String, u64)> {
    let value = line.get(from..)?.trim().parse().ok()?;
    Some((line.split_whitespace().next()?.to_ascii_lowercase(), value))
}

fn setting(section: &str, name: &str, value: &str, all: &mut Vec<(String, String)>) {
    let mut add = |name: &str, value: &str| {
        if !value.is_empty() && !all.iter().any(|(known, _)| known == name) {
            all.push((name.to_owned(), value.to_owned()));
        }
    };
    if NAMED.contains(&name) {
        // Days are printed with six decimals.
        let whole = value.parse::<f64>().ok().filter(|number| number.fract() == 0.0);
        add(name, &whole.map_or(value.to_owned(), |number| format!("{number:.0}")));
    } else if (section, name) == ("Binary Logging", "Binlogs") {
        add("log_bin", "ON");
    } else if (section, name) == ("InnoDB", "R/W I/O Threads") {
        if let Some((read, write)) = value.split_once(' ') {
            add("innodb_read_io_threads", read);
            add("innodb_write_io_threads", write.trim());
        }
    } else if let Some((.., variable)) =
        ROWS.iter().find(|(of, row, _)| section.starts_with(of) && *row == name)
    {
        // The comment of the version follows it.
        let value = if *variable == "version" { value.split(' ').next().unwrap_or(value) } else { value };
        add(variable, value);
    }
}
