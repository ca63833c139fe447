//! The page of the alarms, and their table on other pages.

use super::figures::local_time;
use super::layout::{Sheet, no_alarm, severity_tone, subject_cell};
use super::markup::{Cell, Table};
use crate::view::{AlarmView, View};

/// The page.
pub(super) fn sheet(view: &View) -> Sheet {
    let mut sheet = Sheet::new("Alarms", "/alarms".to_owned());
    sheet.table("alarms", &table(view, |_| true), no_alarm(view));
    sheet
}

/// The table of some alarms.
pub(super) fn table(view: &View, wanted: impl Fn(&AlarmView) -> bool) -> Table<'static> {
    Table {
        caption: "Alarms",
        columns: &["Rule", "Severity", "State", "Subject", "Since", "Why", "What to do", "Silenced until"],
        rows: view.alarms.iter().filter(|alarm| wanted(alarm)).map(|alarm| row(view, alarm)).collect(),
    }
}

fn row(view: &View, alarm: &AlarmView) -> Vec<Cell> {
    let time = |unix_s| local_time(unix_s, view.utc_offset_s);
    vec![
        Cell::from(alarm.rule.clone()),
        Cell::from(alarm.severity.clone()).toned(severity_tone(&alarm.severity)),
        Cell::from(alarm.state.clone()),
        subject_cell(view, &alarm.subject),
        Cell::from(time(alarm.since_s)),
        Cell::words(&alarm.reason),
        Cell::words(&alarm.fix),
        Cell::from(alarm.silenced_until_s.map(time).unwrap_or_default()),
    ]
}
