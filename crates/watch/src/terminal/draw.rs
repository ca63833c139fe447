//! The screen: the answer in the first line, the body, and the keys in the last two lines.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::answer::Answer;
use super::drawing::Drawing;
use super::figures::time_of_day;
use super::label::{padded, width};
use super::panel::Panel;
use super::state::{Screen, TerminalState};
use super::theme::{Level, Theme};
use super::{alarms, help, history, overview, replication, server, storage};
use crate::view::{Graph, View};

/// What is needed to show anything, cells and lines.
const LEAST: (u16, u16) = (30, 8);
/// From this width on the keys have the whole names of screens.
const WIDE: u16 = 78;

/// Draws a view on the whole frame. `graphs` are those that [`TerminalState::wanted`] asks for; without them, or without a value, the
/// screens say so.
pub fn draw(frame: &mut Frame<'_>, view: &View, graphs: &[Graph], state: &TerminalState) {
    let area = frame.area();
    let buffer = frame.buffer_mut();
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let text = format!("{}x{}: too small, 60x20 is good", area.width, area.height);
        Panel::new(buffer, area).line(&Line::from(text));
        return;
    }
    let theme = Theme::new(state.has_color());
    let drawing = Drawing { view, graphs, state, theme };
    let row = |y: u16, height: u16| Rect { y: area.y + y, height, ..area };
    let answer = answer(&drawing);
    Panel::new(buffer, row(0, 1)).line(&first_line(&answer, &drawing, usize::from(area.width)));
    body(&drawing, &mut Panel::new(buffer, row(1, area.height - 3)));
    let mut keys = Panel::new(buffer, row(area.height - 2, 2));
    keys.text(own_keys(state), theme.style(Level::Dim));
    keys.line(&screen_keys(state, theme, area.width));
}

fn answer(drawing: &Drawing<'_>) -> Answer {
    match drawing.state.screen() {
        _ if drawing.state.shows_help() => help::answer(drawing),
        Screen::Overview => overview::answer(drawing),
        Screen::Server => server::answer(drawing),
        Screen::Storage => storage::answer(drawing),
        Screen::Replication => replication::answer(drawing),
        Screen::History => history::answer(drawing),
        Screen::Alarms => alarms::answer(drawing),
    }
}

fn body(drawing: &Drawing<'_>, panel: &mut Panel<'_>) {
    match drawing.state.screen() {
        _ if drawing.state.shows_help() => help::body(drawing, panel),
        Screen::Overview => overview::body(drawing, panel),
        Screen::Server => server::body(drawing, panel),
        Screen::Storage => storage::body(drawing, panel),
        Screen::Replication => replication::body(drawing, panel),
        Screen::History => history::body(drawing, panel),
        Screen::Alarms => alarms::body(drawing, panel),
    }
}

/// The answer, and the time of the view at the right.
fn first_line(answer: &Answer, drawing: &Drawing<'_>, cells: usize) -> Line<'static> {
    let time = time_of_day(drawing.view.unix_s, drawing.view.utc_offset_s);
    let left = cells.saturating_sub(width(&time) + 1);
    let style = drawing.theme.style(answer.level);
    Line::from(vec![
        Span::styled(padded(&answer.text, left, false), style),
        Span::styled(format!(" {time}"), drawing.theme.style(Level::Dim)),
    ])
}

/// The keys of the screen that is shown.
const fn own_keys(state: &TerminalState) -> &'static str {
    if state.shows_help() {
        return "any key: back";
    }
    match state.screen() {
        Screen::Overview => "arrows: select   Enter: open",
        Screen::Server => "arrows: server   + -: zoom   n p: graphs   Enter: history",
        Screen::Storage => "arrows: volume   + -: zoom   n p: graphs   Enter: history",
        Screen::Replication => "arrows: channel",
        Screen::History => "up down: subject  left right .: time  + -: zoom  n p: graphs",
        Screen::Alarms => "arrows: alarm",
    }
}

/// The keys of all screens. The one that is shown has brackets: not every terminal has a reversed style.
fn screen_keys(state: &TerminalState, theme: Theme, columns: u16) -> Line<'static> {
    let mut spans = Vec::new();
    for (place, screen) in Screen::ALL.into_iter().enumerate() {
        let (long, short) = screen.names();
        let name = if columns >= WIDE { long } else { short };
        let key = place + 1;
        if screen == state.screen() && !state.shows_help() {
            spans.push(Span::styled(format!("[{key} {name}]"), theme.shown()));
        } else {
            spans.push(Span::styled(format!("{key} {name}"), theme.style(Level::Dim)));
        }
        spans.push(Span::raw(" "));
    }
    spans.push(Span::styled("? help q quit", theme.style(Level::Dim)));
    Line::from(spans)
}
