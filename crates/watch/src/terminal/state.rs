//! Which screen is shown, what is selected, and what keys change.

use super::keys::Key;
use crate::view::{Range, ServerView, StorageView, Subject, View};

/// The spans of time that the history shows, seconds, and the one that it begins with: a longer one is empty after the start.
const SPANS_S: [i64; 9] = [300, 900, 3_600, 14_400, 43_200, 86_400, 259_200, 604_800, 1_296_000];
const FIRST_SPAN: usize = 1;

/// A screen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Screen {
    /// Servers, storage, alarms and the own cost.
    #[default]
    Overview,
    /// One server.
    Server,
    /// Volumes and devices, and one of them.
    Storage,
    /// The replication channels of all servers.
    Replication,
    /// Graphs of a server or a volume.
    History,
    /// Alarms, and what is not seen.
    Alarms,
}

impl Screen {
    /// All screens, in the order of their keys 1 to 6.
    pub const ALL: [Self; 6] =
        [Self::Overview, Self::Server, Self::Storage, Self::Replication, Self::History, Self::Alarms];

    /// Its name, and what is left of it where there is little room.
    #[must_use]
    pub const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Overview => ("overview", "over"),
            Self::Server => ("server", "serv"),
            Self::Storage => ("storage", "stor"),
            Self::Replication => ("replication", "repl"),
            Self::History => ("history", "hist"),
            Self::Alarms => ("alarms", "alrm"),
        }
    }

    fn of_key(key: char) -> Option<Self> {
        let place = key.to_digit(10).and_then(|digit| usize::try_from(digit).ok()?.checked_sub(1));
        let letter = |screen: &Self| screen.names().0.starts_with(key);
        // `s` is the server: storage begins with the same letter, and has `v` of volume.
        match (place, key) {
            (Some(place), _) => Self::ALL.get(place).copied(),
            (None, 'v') => Some(Self::Storage),
            (None, _) => Self::ALL.into_iter().find(letter),
        }
    }
}

/// What the program does because of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Draw.
    Draw,
    /// Draw everything anew: something else has written on the terminal.
    DrawAnew,
    /// Stop until the shell continues the program.
    Suspend,
    /// End.
    Quit,
}

/// What is shown and selected. What is selected is kept by its name: it stays where servers come and go.
#[derive(Debug, Clone)]
pub struct TerminalState {
    color: bool,
    screen: Screen,
    help: bool,
    server: Option<String>,
    storage: Option<String>,
    subject: Option<Subject>,
    /// The alarm or the channel by its place.
    place: usize,
    /// The first graph that is shown.
    graph: usize,
    span: usize,
    /// How far before now the history ends, seconds.
    back_s: i64,
}

impl TerminalState {
    /// The overview, with or without colours.
    #[must_use]
    pub fn new(color: bool) -> Self {
        Self {
            color,
            screen: Screen::Overview,
            help: false,
            server: None,
            storage: None,
            subject: None,
            place: 0,
            graph: 0,
            span: FIRST_SPAN,
            back_s: 0,
        }
    }

    /// Whether there are colours.
    #[must_use]
    pub const fn has_color(&self) -> bool {
        self.color
    }

    /// The screen that is shown, below the help where that is.
    #[must_use]
    pub const fn screen(&self) -> Screen {
        self.screen
    }

    /// Whether the help is shown.
    #[must_use]
    pub const fn shows_help(&self) -> bool {
        self.help
    }

    /// The selected server; the first one before any is selected.
    pub(super) fn server<'a>(&self, view: &'a View) -> Option<(usize, &'a ServerView)> {
        let place = place_of(view.servers.iter().map(|server| &server.name), self.server.as_ref());
        view.servers.get(place).map(|server| (place, server))
    }

    /// The selected volume or device; the first one before any is selected.
    pub(super) fn storage<'a>(&self, view: &'a View) -> Option<(usize, &'a StorageView)> {
        let place = place_of(view.storage.iter().map(|storage| &storage.name), self.storage.as_ref());
        view.storage.get(place).map(|storage| (place, storage))
    }

    /// The server or volume that is selected where both can be; the first one before any is.
    pub(super) fn subject(&self, view: &View) -> Option<Subject> {
        let subjects = subjects(view);
        let place = place_of(subjects.iter(), self.subject.as_ref());
        subjects.into_iter().nth(place)
    }

    /// The selected one of `count` alarms or channels.
    pub(super) fn place(&self, count: usize) -> usize {
        self.place.min(count.saturating_sub(1))
    }

    /// The first one of `count` graphs that is shown.
    pub(super) fn graph(&self, count: usize) -> usize {
        self.graph.min(count.saturating_sub(1))
    }

    /// The span of time that the history shows, seconds.
    pub(super) fn span_s(&self) -> i64 {
        SPANS_S[self.span.min(SPANS_S.len() - 1)]
    }

    /// Whether the history ends now.
    pub(super) const fn is_now(&self) -> bool {
        self.back_s == 0
    }

    /// The graphs that this screen shows on a terminal of so many columns.
    #[must_use]
    pub fn wanted(&self, view: &View, columns: u16) -> Option<(Subject, Range)> {
        let subject = match self.screen {
            _ if self.help => None,
            Screen::Server => self.server(view).map(|(_, server)| Subject::Server(server.name.clone())),
            Screen::Storage => self.storage(view).map(|(_, storage)| Subject::Storage(storage.name.clone())),
            Screen::History => self.subject(view),
            Screen::Overview | Screen::Replication | Screen::Alarms => None,
        }?;
        // Only the history goes back: the other screens show what is, and how it came.
        let back_s = if self.screen == Screen::History { self.back_s } else { 0 };
        let to_s = view.unix_s.saturating_sub(back_s);
        // A cell has two dots beside each other.
        let most_points = usize::from(columns).saturating_mul(2).max(2);
        Some((subject, Range { from_s: to_s.saturating_sub(self.span_s()), to_s, most_points }))
    }

    /// Takes a key.
    pub fn press(&mut self, key: Key, view: &View) -> Action {
        match key {
            Key::Interrupt | Key::Char('q' | 'Q') => return Action::Quit,
            Key::Suspend => return Action::Suspend,
            Key::Redraw => return Action::DrawAnew,
            Key::Char('?') => self.help = !self.help,
            _ if self.help => self.help = false,
            Key::Escape => self.show(Screen::Overview),
            Key::Up | Key::BackTab | Key::Char('k') => self.step(view, false),
            Key::Down | Key::Tab | Key::Char('j') => self.step(view, true),
            Key::Left => self.go_back(1),
            Key::Right => self.go_back(-1),
            Key::PageUp | Key::Char('p') => self.graph = self.graph.saturating_sub(1),
            // The last graph that there is, is found where it is drawn.
            Key::PageDown | Key::Char('n') => self.graph = (self.graph + 1).min(64),
            Key::Char('+' | '=') => self.span = self.span.saturating_sub(1),
            Key::Char('-' | '_') => self.span = (self.span + 1).min(SPANS_S.len() - 1),
            Key::Char('.') => self.back_s = 0,
            Key::Enter => self.open(view),
            Key::Char(key) => {
                if let Some(screen) = Screen::of_key(key) {
                    self.show(screen);
                }
            }
        }
        Action::Draw
    }

    fn show(&mut self, screen: Screen) {
        if self.screen != screen {
            self.screen = screen;
            self.place = 0;
            self.graph = 0;
        }
    }

    /// Moves the history by half of its span, back where `halves` is positive, and never behind now.
    fn go_back(&mut self, halves: i64) {
        if self.screen == Screen::History {
            let farthest = SPANS_S[SPANS_S.len() - 1].saturating_mul(48);
            self.back_s = (self.back_s + halves * self.span_s() / 2).clamp(0, farthest);
        }
    }

    /// Opens the screen of what is selected.
    fn open(&mut self, view: &View) {
        match (self.screen, self.subject(view)) {
            (Screen::Overview, Some(Subject::Server(name))) => {
                self.server = Some(name);
                self.show(Screen::Server);
            }
            (Screen::Overview, Some(Subject::Storage(name))) => {
                self.storage = Some(name);
                self.show(Screen::Storage);
            }
            (Screen::Server | Screen::Storage, _) => {
                // Its graphs, also where nothing was selected yet.
                self.subject = self.wanted(view, 0).map(|(subject, _)| subject);
                self.show(Screen::History);
            }
            _ => {}
        }
    }

    /// Selects the next one or the one before.
    fn step(&mut self, view: &View, forward: bool) {
        match self.screen {
            Screen::Overview | Screen::History => {
                let subjects = subjects(view);
                let place = place_of(subjects.iter(), self.subject.as_ref());
                let next = stepped(place, subjects.len(), forward);
                self.select(subjects.into_iter().nth(next));
            }
            Screen::Server => {
                let place = self.server(view).map_or(0, |(place, _)| place);
                let server = view.servers.get(stepped(place, view.servers.len(), forward));
                self.select(server.map(|server| Subject::Server(server.name.clone())));
            }
            Screen::Storage => {
                let place = self.storage(view).map_or(0, |(place, _)| place);
                let storage = view.storage.get(stepped(place, view.storage.len(), forward));
                self.select(storage.map(|storage| Subject::Storage(storage.name.clone())));
            }
            Screen::Replication => {
                let count: usize = view.servers.iter().map(|server| server.replicas.len()).sum();
                self.place = stepped(self.place(count), count, forward);
            }
            Screen::Alarms => {
                self.place = stepped(self.place(view.alarms.len()), view.alarms.len(), forward);
            }
        }
    }

    fn select(&mut self, subject: Option<Subject>) {
        match &subject {
            Some(Subject::Server(name)) => self.server = Some(name.clone()),
            Some(Subject::Storage(name)) => self.storage = Some(name.clone()),
            None => return,
        }
        self.subject = subject;
    }
}

/// All that can have graphs, servers first.
fn subjects(view: &View) -> Vec<Subject> {
    let servers = view.servers.iter().map(|server| Subject::Server(server.name.clone()));
    let storage = view.storage.iter().map(|storage| Subject::Storage(storage.name.clone()));
    servers.chain(storage).collect()
}

/// The place of what is selected; the first one where that is not there.
fn place_of<T: PartialEq>(mut names: impl Iterator<Item = T>, selected: Option<T>) -> usize {
    selected.and_then(|selected| names.position(|name| name == selected)).unwrap_or(0)
}

/// The place after or before one, round the end.
fn stepped(place: usize, count: usize, forward: bool) -> usize {
    match (count, forward) {
        (0, _) => 0,
        (_, true) => (place + 1) % count,
        (_, false) => (place + count - 1) % count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view() -> View {
        let server = |name: &str| ServerView { name: name.to_owned(), ..ServerView::default() };
        let storage = |name: &str| StorageView { name: name.to_owned(), ..StorageView::default() };
        View {
            unix_s: 1_000_000,
            servers: vec![server("a"), server("b")],
            storage: vec![storage("data")],
            ..View::default()
        }
    }

    #[test]
    fn digits_and_letters_open_screens_and_q_quits() {
        let mut state = TerminalState::new(false);
        for (keys, screen) in [
            (['1', 'o'], Screen::Overview),
            (['2', 's'], Screen::Server),
            (['3', 'v'], Screen::Storage),
            (['4', 'r'], Screen::Replication),
            (['5', 'h'], Screen::History),
            (['6', 'a'], Screen::Alarms),
        ] {
            for key in keys {
                state.press(Key::Char('?'), &view());
                state.press(Key::Escape, &view());
                assert_eq!(state.press(Key::Char(key), &view()), Action::Draw);
                assert_eq!((state.screen(), state.shows_help()), (screen, false), "{key}");
            }
        }
        for key in ['0', '7', 'x'] {
            state.press(Key::Char(key), &view());
            assert_eq!(state.screen(), Screen::Alarms, "{key}");
        }
        assert_eq!(state.press(Key::Char('q'), &view()), Action::Quit);
        assert_eq!(state.press(Key::Interrupt, &view()), Action::Quit);
        assert_eq!(state.press(Key::Suspend, &view()), Action::Suspend);
    }

    #[test]
    fn the_selection_goes_round_and_stays_with_its_name() {
        let mut state = TerminalState::new(false);
        let mut view = view();
        state.press(Key::Down, &view);
        assert_eq!(state.subject(&view), Some(Subject::Server("b".into())));
        view.servers.remove(0);
        assert_eq!(state.subject(&view), Some(Subject::Server("b".into())));
        state.press(Key::Tab, &view);
        state.press(Key::Enter, &view);
        assert_eq!(state.screen(), Screen::Storage);
        state.press(Key::Enter, &view);
        assert_eq!(
            (state.screen(), state.subject(&view)),
            (Screen::History, Some(Subject::Storage("data".into())))
        );
        state.press(Key::Down, &view);
        assert_eq!(state.subject(&view), Some(Subject::Server("b".into())));
        view.servers.clear();
        view.storage.clear();
        state.press(Key::Up, &view);
        assert_eq!(state.wanted(&view, 80), None);
    }

    #[test]
    fn the_history_zooms_and_goes_back_but_not_behind_now() {
        let (mut state, view) = (TerminalState::new(false), view());
        state.press(Key::Char('5'), &view);
        let range = |state: &TerminalState| state.wanted(&view, 80).unwrap().1;
        assert_eq!(range(&state), Range { from_s: 999_100, to_s: 1_000_000, most_points: 160 });
        state.press(Key::Right, &view);
        assert_eq!(range(&state).to_s, 1_000_000);
        state.press(Key::Left, &view);
        assert_eq!(range(&state).to_s, 999_550);
        for _ in 0..20 {
            state.press(Key::Char('-'), &view);
        }
        assert_eq!(range(&state).to_s - range(&state).from_s, 1_296_000);
        for _ in 0..20 {
            state.press(Key::Char('+'), &view);
        }
        state.press(Key::Char('.'), &view);
        assert_eq!(range(&state), Range { from_s: 999_700, to_s: 1_000_000, most_points: 160 });
    }

    #[test]
    fn no_key_panics_on_an_empty_view() {
        let (mut state, view) = (TerminalState::new(false), View::default());
        let keys = (' '..='~').filter(|key| *key != 'q').map(Key::Char);
        for screen in '1'..='6' {
            for key in
                keys.clone().chain([Key::Up, Key::Down, Key::Left, Key::Right, Key::Enter, Key::PageDown])
            {
                state.press(Key::Char(screen), &view);
                state.press(key, &view);
                let _ = state.wanted(&view, 0);
            }
        }
    }
}
