//! Alarms, what to do about the selected one, and what is not seen.

use super::answer::Answer;
use super::drawing::Drawing;
use super::figures::day_and_minute;
use super::label::{clean, wrapped};
use super::overview::{alarm_rows, alarms_now};
use super::panel::Panel;
use super::theme::Level;
use crate::view::{AlarmView, NotSeenView};

/// How many alarms there are, and the worst severity.
pub(super) fn answer(drawing: &Drawing<'_>) -> Answer {
    let view = drawing.view;
    let now: Vec<&AlarmView> = view.alarms.iter().filter(|alarm| alarms_now(alarm, view.unix_s)).collect();
    let others = view.alarms.len() - now.len();
    let more = if others == 0 { String::new() } else { format!("; {others} silenced or without data") };
    match now.first() {
        Some(worst) => {
            let count = ebbtide_text::count(now.len(), "alarm");
            let text = format!(
                "{count}, the worst is {}: {} of {}{more}",
                worst.severity, worst.rule, worst.subject
            );
            Answer::new(Level::from_severity(&worst.severity), text)
        }
        None => {
            let begun = view.just_begun_s().map_or_else(String::new, |watched_s| {
                format!(" yet: watched for {}", ebbtide_text::rough(watched_s))
            });
            Answer::new(Level::Good, format!("nothing alarms{begun}{more}"))
        }
    }
}

/// The alarms in half of the lines, the selected one in words, then what is not seen.
pub(super) fn body(drawing: &Drawing<'_>, panel: &mut Panel<'_>) {
    let view = drawing.view;
    let cells = panel.columns();
    let selected = drawing.state.place(view.alarms.len());
    if let Some(alarm) = view.alarms.get(selected) {
        let lines = view.alarms.len().min((panel.rows() / 2).saturating_sub(1).max(1));
        panel.lines(alarm_rows(drawing, lines, cells, Some(selected)));
        panel.blank();
        for text in in_words(alarm, view.utc_offset_s) {
            for line in wrapped(&text, cells, 3) {
                panel.text(&line, drawing.theme.style(Level::Plain));
            }
        }
        panel.blank();
    }
    if view.not_seen.is_empty() {
        return;
    }
    let head = format!("NOT SEEN: {}", ebbtide_text::count(view.not_seen.len(), "figure"));
    panel.text(&head, drawing.theme.style(Level::Head));
    for figure in &view.not_seen {
        let lines = panel.rows();
        for line in wrapped(&not_seen(figure), cells, lines.min(2)) {
            panel.text(&line, drawing.theme.style(Level::Plain));
        }
    }
}

fn in_words(alarm: &AlarmView, utc_offset_s: i64) -> Vec<String> {
    let time = |unix_s: i64| day_and_minute(unix_s, utc_offset_s);
    let silenced = alarm
        .silenced_until_s
        .map_or_else(String::new, |until_s| format!(", silenced until {}", time(until_s)));
    let mut texts = vec![
        format!(
            "{} of {}: {} since {}{silenced}",
            alarm.rule,
            alarm.subject,
            alarm.state,
            time(alarm.since_s)
        ),
        format!("why: {}", alarm.reason),
    ];
    if !alarm.fix.is_empty() {
        texts.push(format!("to do: {}", alarm.fix));
    }
    texts
}

fn not_seen(figure: &NotSeenView) -> String {
    let remedy =
        if figure.remedy.is_empty() { String::new() } else { format!("; to see it: {}", figure.remedy) };
    clean(&format!("{}: {}: {}{remedy}", figure.subject, figure.figure, figure.reason))
}
