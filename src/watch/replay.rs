//! `ebbtide watch --replay`: the history in place of what is.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use ebbtide_load::Cancel;
use ebbtide_watch::run::{Replay, wait_until};
use ebbtide_watch::screen::document;

use super::args::{TimeSpan, WatchArgs};
use super::terminal;
use crate::document::{ColorWhen, print, text_options};
use crate::exit::Exit;
use crate::refusal::refused;
use crate::text::note;

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
    let replay = Replay::open(directory, &(span.from_ms..span.to_ms)).map_err(refused)?;
    let is_drawn = terminal::is_possible();
    if !is_drawn && args.listen.is_none() {
        let view = replay.last_moment().map_err(refused)?;
        print(&document(&view), text_options(color, args.details), "")?;
        return Ok(Exit::Clean);
    }
    let server = args.listen.map(|address| replay.listen(address)).transpose().map_err(refused)?;
    let player = replay.play(stop).map_err(refused)?;
    if is_drawn {
        terminal::run(replay.source(), color, stop).context("the terminal cannot be used")?;
    } else {
        server.iter().for_each(|server| note(&format!("serving http://{}/", server.address())));
        while !stop.is_cancelled() {
            wait_until(Instant::now() + Duration::from_secs(3_600), stop);
        }
    }
    stop.cancel();
    player.end().map_err(refused)?;
    Ok(Exit::Clean)
}
