//! `ebbtide volume record`: waits while the server records.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use ebbtide_control::document::so_far;
use ebbtide_control::protocol::Request;
use ebbtide_control::{RecordingView, VolumeDetail};
use ebbtide_device::host::Home;
use ebbtide_load::Cancel;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::absolute_path;
use super::args::RecordArgs;
use crate::control::{self, Answer};
use crate::exit::Exit;
use crate::home::HomePath;
use crate::signals::cancel_on;
use crate::text;

/// How often a signal and the end are looked for.
const LOOK: Duration = Duration::from_millis(50);
/// How often the server is asked how far it is.
const ASK: Duration = Duration::from_secs(1);

/// Runs the command.
///
/// # Errors
/// No server; a volume that is not attached, or recorded already; a file that cannot be made.
pub(super) fn run(args: &RecordArgs, place: &HomePath, json: bool) -> anyhow::Result<Exit> {
    let home = place.served()?;
    if let Some(file) = &args.file {
        let cancel = cancel_on([SIGINT, SIGTERM, SIGHUP])?;
        let begin = Request::VolumeRecord { name: args.name.clone(), file: absolute_path(file)? };
        control::ask(&home, &begin)?;
        if !wait(args, &home, &cancel)? {
            let name = &args.name;
            text::note(&format!("the recording ended: volume '{name}' was detached, or somebody ended it"));
            return Ok(Exit::Clean);
        }
    }
    let answer = control::ask(&home, &Request::VolumeRecordEnd { name: args.name.clone() })?;
    let view: RecordingView = serde_json::from_value(answer.value.clone())?;
    if json {
        text::print_json(&answer.value);
    } else {
        text::line(&format!("recorded {} to {}", so_far(&view), view.path));
        text::line(&format!("replay it: ebbtide simulate --volume SPEC --trace {}", view.path));
    }
    let whole = view.failed.is_none() && view.lost == 0;
    Ok(if whole { answer.exit } else { Exit::Finding })
}

/// Waits for a signal, the end of the time, or a failure of the recording; false where the recording is gone.
fn wait(args: &RecordArgs, home: &Home, cancel: &Cancel) -> anyhow::Result<bool> {
    let ends = args.duration.map(|duration| Instant::now() + duration);
    let terminal = std::io::stderr().is_terminal();
    let mut asked = Instant::now();
    while !cancel.is_cancelled() && ends.is_none_or(|end| Instant::now() < end) {
        std::thread::sleep(LOOK);
        if asked.elapsed() < ASK {
            continue;
        }
        asked = Instant::now();
        let show = Request::VolumeShow { name: args.name.clone(), region: None };
        let Some(view) = recording(control::ask(home, &show)?)? else { return Ok(false) };
        if terminal {
            text::status(&format!("recording {}: {}", args.name, so_far(&view)));
        }
        if view.failed.is_some() {
            break;
        }
    }
    if terminal {
        text::status("");
    }
    Ok(true)
}

fn recording(shown: Answer) -> anyhow::Result<Option<RecordingView>> {
    let detail: VolumeDetail = serde_json::from_value(shown.value)?;
    Ok(detail.live.and_then(|live| live.recording))
}
