//! Errors of the server by code, and times in which no client got an answer.

use ebbtide_report::{Cell, Section, Table, Tone};

use super::{Block, PageContext, text};
use crate::summary::AnswerFigures;

const LEAD: &str = "The longest time in which no transaction of any client was finished, of the measured seconds: median of \
    the trials, with their range. Errors are those of the server by their code, all trials together. Most of them have their \
    transaction done again: 1213 is a deadlock, 1205 a lock that was waited for in vain (innodb_lock_wait_timeout), 1020 a row that \
    has changed meanwhile.";

/// A time without an answer that is worth a table, s.
const WORTH_S: f64 = 2.0;

/// None where every arm was answered, and without errors.
pub(super) fn section(page: &PageContext) -> Option<Section> {
    let arms = page.arms.iter().enumerate();
    let all: Vec<(usize, &str, &AnswerFigures)> = arms
        .filter_map(|(group, view)| Some((group, view.name.as_str(), view.summary?.answers.as_ref()?)))
        .collect();
    if all.iter().all(|(.., answers)| answers.errors.is_empty() && answers.silent_s.max < WORTH_S) {
        return None;
    }
    let row = |(group, name, answers): &(usize, &str, &AnswerFigures)| {
        let silent = answers.silent_s;
        let seconds = |value: f64| if value > 0.0 { text::latency(value * 1e6) } else { "0".to_owned() };
        let range = if silent.min < silent.max {
            format!("{} to {}", seconds(silent.min), seconds(silent.max))
        } else {
            String::new()
        };
        let tone = if silent.max < WORTH_S { Tone::Plain } else { Tone::Bad };
        let errors = answers.errors.iter().map(|error| {
            format!("{}: {} times ({})", error.code, text::whole(error.count as f64), error.message)
        });
        let errors: Vec<String> = errors.collect();
        vec![
            Cell { text: (*name).to_owned(), group: Some(*group), ..Cell::default() },
            Cell { tone, ..Cell::value(seconds(silent.median), silent.median, range) },
            Cell::from(if errors.is_empty() { "none".to_owned() } else { errors.join("; ") }),
        ]
    };
    let table = Table {
        columns: ["Arm", "Longest time without an answer", "Errors by code"].map(str::to_owned).into(),
        rows: all.iter().map(row).collect(),
        words: true,
        ..Table::default()
    };
    Some(Section::new("Errors, and times without an answer", vec![Block::Table(table)]).lead(LEAD))
}
