//! The terminal view of `ebbtide watch`: wires `ebbtide_watch::terminal`, which draws and takes keys, to a real terminal and the clock.

mod guard;

use std::io::{self, BufWriter, IsTerminal as _, Stdout};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ebbtide_load::Cancel;
use ebbtide_watch::terminal::{Action, GraphCache, Key, KeyDecoder, TerminalState, draw};
use ebbtide_watch::view::ViewSource;
use ratatui::Terminal;
use ratatui::backend::{Backend as _, CrosstermBackend};
use ratatui::crossterm::style::force_color_output;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use self::guard::TerminalGuard;
use crate::document::{ColorWhen, text_options};

/// Views are drawn anew so often, and at each key.
const INTERVAL: Duration = Duration::from_secs(1);

/// How long a key is waited for before signals and the terminal's size are looked at again, ns. It also parts the key Escape from the
/// begin of a sequence.
const PATIENCE_NS: i64 = 100_000_000;

/// Whether there is a terminal to draw on and to read keys from.
pub(crate) fn is_possible() -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|name| name == "dumb");
    io::stdin().is_terminal() && io::stdout().is_terminal() && !dumb
}

/// Shows views until a key, a signal or the end of the terminal ends it. The terminal is restored on every way out.
///
/// It must run on the main thread: Ctrl-Z stops the process within the call that sends the signal there.
///
/// # Errors
/// There is no terminal ([`is_possible`]), or it takes no output.
pub(crate) fn run(source: Arc<dyn ViewSource>, color: ColorWhen, stop: &Cancel) -> io::Result<()> {
    if !is_possible() {
        let message = "standard input and output are no terminal, or TERM is dumb or not set: give --once";
        return Err(io::Error::new(io::ErrorKind::Unsupported, message));
    }
    // Colours are decided here: with NO_COLOR crossterm would leave out those that --color always asks for.
    force_color_output(true);
    let mut session = Session::open(source, text_options(color, false).color)?;
    match session.show(stop) {
        // A terminal that was closed: its signal says so, too.
        Err(_) if stop.is_cancelled() => Ok(()),
        result => result,
    }
}

/// A terminal on which views are shown.
struct Session {
    source: Arc<dyn ViewSource>,
    state: TerminalState,
    cache: GraphCache,
    keys: KeyDecoder,
    // Dropped in this order: the output is flushed before the terminal is restored.
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
    guard: TerminalGuard,
}

/// What came from the terminal.
enum Input {
    /// These keys, or none in the time.
    Keys(Vec<Key>),
    /// Its end.
    Closed,
}

impl Session {
    fn open(source: Arc<dyn ViewSource>, color: bool) -> io::Result<Self> {
        let guard = TerminalGuard::open()?;
        Ok(Self {
            source,
            state: TerminalState::new(color),
            cache: GraphCache::default(),
            keys: KeyDecoder::default(),
            terminal: cleared()?,
            guard,
        })
    }

    fn show(&mut self, stop: &Cancel) -> io::Result<()> {
        let mut drawn: Option<Instant> = None;
        let mut size = None;
        while !stop.is_cancelled() {
            if self.guard.was_disturbed() {
                self.guard.reopen()?;
                self.terminal = cleared()?;
                drawn = None;
            }
            let now_size =
                rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| (size.ws_col, size.ws_row));
            if drawn.is_none_or(|drawn| drawn.elapsed() >= INTERVAL) || now_size != size {
                self.draw()?;
                drawn = Some(Instant::now());
                size = now_size;
            }
            let keys = match self.input()? {
                Input::Closed => return Ok(()),
                Input::Keys(keys) => keys,
            };
            for key in keys {
                drawn = None;
                match self.press(key)? {
                    Action::Quit => return Ok(()),
                    Action::Draw | Action::DrawAnew | Action::Suspend => {}
                }
            }
        }
        Ok(())
    }

    /// Takes a key, and does what it asks for but quitting.
    fn press(&mut self, key: Key) -> io::Result<Action> {
        let action = self.state.press(key, &self.source.view());
        match action {
            Action::Draw | Action::Quit => {}
            Action::DrawAnew => self.terminal = cleared()?,
            Action::Suspend => {
                self.guard.suspend()?;
                self.terminal = cleared()?;
            }
        }
        Ok(action)
    }

    fn draw(&mut self) -> io::Result<()> {
        let view = self.source.view();
        let columns = self.terminal.size()?.width;
        let graphs = self.cache.graphs(self.state.wanted(&view, columns), self.source.as_ref());
        let state = &self.state;
        self.terminal.draw(|frame| draw(frame, &view, graphs, state))?;
        Ok(())
    }

    /// Waits for keys.
    ///
    /// crossterm's reader is not used: at the end of a terminal that was closed it reads without an end.
    fn input(&mut self) -> io::Result<Input> {
        let stdin = io::stdin();
        let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: PATIENCE_NS })) {
            Ok(0) => return Ok(Input::Keys(self.keys.idle().into_iter().collect())),
            Ok(_) => {}
            // A signal: the loop looks at what it was.
            Err(rustix::io::Errno::INTR) => return Ok(Input::Keys(Vec::new())),
            Err(error) => return Err(error.into()),
        }
        if polled[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            return Ok(Input::Closed);
        }
        let mut bytes = [0; 256];
        match rustix::io::read(&stdin, &mut bytes) {
            Ok(0) | Err(rustix::io::Errno::IO) => Ok(Input::Closed),
            Ok(count) => Ok(Input::Keys(self.keys.push(&bytes[..count]))),
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => Ok(Input::Keys(Vec::new())),
            Err(error) => Err(error.into()),
        }
    }
}

/// An empty screen. `Terminal::clear` would ask the terminal where the cursor is, and wait for the answer.
fn cleared() -> io::Result<Terminal<CrosstermBackend<BufWriter<Stdout>>>> {
    let mut backend = CrosstermBackend::new(BufWriter::new(io::stdout()));
    backend.clear()?;
    Terminal::new(backend)
}
