//! `ebbtide watch --replay`: the history in place of what is, second by second.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use ebbtide_load::Cancel;
use ebbtide_watch::live::ReplaySource;
use ebbtide_watch::screen::document;
use ebbtide_watch::view::ViewSource;

use super::args::{TimeSpan, WatchArgs};
use super::sources::machine_name;
use super::worker::{unix_ms, wait_until};
use super::{history, listen, terminal};
use crate::document::{ColorWhen, print, text_options};
use crate::exit::{Exit, Refusal};
use crate::text::note;

/// An interval of the history is shown for so long.
const STEP: Duration = Duration::from_secs(1);

/// Plays a span of the history on the terminal and the pages; without either, prints its last moment.
///
/// # Errors
/// A history that cannot be read: exit code 3.
pub(super) fn run(
    args: &WatchArgs,
    span: TimeSpan,
    directory: &Path,
    color: ColorWhen,
    stop: &Cancel,
) -> Result<Exit> {
    if !directory.join(ebbtide_history::FILE).is_file() {
        let refusal = Refusal::environment(format!("there is no history in {}", directory.display()));
        return Err(refusal.hint("ebbtide watch records one; --history DIR names another place").into());
    }
    let samples = history::open(directory)?;
    let unreadable =
        || Refusal::environment(format!("the history in {} cannot be read", directory.display()));
    let source = ReplaySource::new(samples, machine_name(), &(span.from_ms..span.to_ms), unix_ms());
    let source = Arc::new(source.with_context(unreadable)?);
    let shown: Arc<dyn ViewSource> = Arc::<ReplaySource>::clone(&source);
    let is_drawn = terminal::is_possible();
    if !is_drawn && args.listen.is_none() {
        while source.advance().with_context(unreadable)? && !stop.is_cancelled() {}
        print(&document(&source.view()), text_options(color, args.details), "")?;
        return Ok(Exit::Clean);
    }
    let server = args.listen.map(|address| listen::start_replay(address, &shown)).transpose()?;
    let player = play(Arc::clone(&source), stop.clone())?;
    if is_drawn {
        terminal::run(shown, color, stop).context("the terminal cannot be used")?;
    } else {
        server.iter().for_each(|server| note(&format!("serving http://{}/", server.address())));
        while !stop.is_cancelled() {
            wait_until(Instant::now() + STEP, stop);
        }
    }
    stop.cancel();
    player.join().map_err(|_| Refusal::invariant("the thread that plays ended by a panic"))?;
    Ok(Exit::Clean)
}

/// Moves the replay on until its end, which stays shown.
fn play(source: Arc<ReplaySource>, stop: Cancel) -> Result<std::thread::JoinHandle<()>> {
    let run = move || {
        while !stop.is_cancelled() {
            wait_until(Instant::now() + STEP, &stop);
            match source.advance() {
                Ok(true) => {}
                // The view says of which time it is.
                Ok(false) | Err(_) => return,
            }
        }
    };
    Ok(std::thread::Builder::new().name("replay".to_owned()).spawn(run)?)
}
