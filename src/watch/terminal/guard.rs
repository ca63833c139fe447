//! A terminal in raw mode and on its other screen, which is restored whatever happens.

use std::io;
use std::panic::{self, PanicHookInfo};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::queue;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use rustix::process::{Signal, kill_current_process_group};
use signal_hook::SigId;

type PanicHook = dyn Fn(&PanicHookInfo<'_>) + Send + Sync + 'static;

/// What the panic hook and the handler of SIGCONT share with the guard.
#[derive(Debug, Default)]
struct Shared {
    /// Whether the terminal is ours: it is restored once, as a second time would move the cursor over what was printed since.
    open: AtomicBool,
    /// Whether somebody else has used the terminal.
    disturbed: Arc<AtomicBool>,
}

impl Shared {
    fn open(&self) -> io::Result<()> {
        enable_raw_mode()?;
        self.open.store(true, Ordering::SeqCst);
        let mut bytes = Vec::new();
        queue!(bytes, EnterAlternateScreen, Hide)?;
        send(&bytes)
    }

    /// Restores the terminal. One that is gone needs no restoring.
    fn leave(&self) {
        if self.open.swap(false, Ordering::SeqCst) {
            let mut bytes = Vec::new();
            let _ = queue!(bytes, Show, LeaveAlternateScreen).and_then(|()| send(&bytes));
            let _ = disable_raw_mode();
        }
    }
}

/// Writes past the lock of standard output: a thread that panics may hold it.
fn send(mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(io::stdout(), bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// The terminal, until this is dropped. A panic of any thread restores it before its message is printed.
pub(super) struct TerminalGuard {
    shared: Arc<Shared>,
    previous: Arc<PanicHook>,
    signal: SigId,
}

impl TerminalGuard {
    /// Takes the terminal.
    pub(super) fn open() -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        // After a stop by somebody else the shell has set its own mode.
        let signal =
            signal_hook::flag::register(signal_hook::consts::SIGCONT, Arc::clone(&shared.disturbed))?;
        let previous: Arc<PanicHook> = Arc::from(panic::take_hook());
        let (hook_shared, hook) = (Arc::clone(&shared), Arc::clone(&previous));
        panic::set_hook(Box::new(move |info| {
            hook_shared.leave();
            hook_shared.disturbed.store(true, Ordering::SeqCst);
            hook(info);
        }));
        // From here on its end restores the terminal.
        let guard = Self { shared, previous, signal };
        guard.shared.open()?;
        Ok(guard)
    }

    /// Whether somebody else has used the terminal since the last call.
    pub(super) fn was_disturbed(&self) -> bool {
        self.shared.disturbed.swap(false, Ordering::SeqCst)
    }

    /// Takes the terminal again.
    pub(super) fn reopen(&self) -> io::Result<()> {
        self.shared.leave();
        self.shared.open()
    }

    /// Restores the terminal, stops all processes of the command line as the terminal's own Ctrl-Z would, and takes the terminal again
    /// once the shell continues them.
    pub(super) fn suspend(&self) -> io::Result<()> {
        self.shared.leave();
        kill_current_process_group(Signal::TSTP)?;
        self.shared.disturbed.store(false, Ordering::SeqCst);
        self.shared.open()
    }
}

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        self.shared.leave();
        signal_hook::low_level::unregister(self.signal);
        // A thread that panics may not change the hook.
        if !std::thread::panicking() {
            let previous = Arc::clone(&self.previous);
            panic::set_hook(Box::new(move |info| previous(info)));
        }
    }
}
