//! `ebbtide watch`: servers and their storage, live.
//!
//! [`ebbtide_watch`] decides what is shown and when it alarms. Here are the threads, the clock and the sockets: [`sources`] reads,
//! [`ticker`] hands what was read to the watcher second by second, [`history`] writes, [`notify`] tells a command or a
//! [`webhook`] of alarms, and [`listen`] serves pages and metrics. [`args`] says what is asked, [`servers`] makes connections of it;
//! [`replay`] shows the history in place of what is, and [`files`] writes dashboards and rules for others.

mod args;
mod files;
mod history;
mod listen;
mod notify;
mod replay;
mod servers;
mod sources;
mod terminal;
mod ticker;
mod webhook;
mod worker;

use std::ffi::c_int;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use ebbtide_device::host::Home;
use ebbtide_history::Samples;
use ebbtide_load::Cancel;
use ebbtide_watch::alarm::Silence;
use ebbtide_watch::live::{LiveSource, WatchOptions, Watcher};
use ebbtide_watch::screen::{document, has_alarm};
use ebbtide_watch::view::{View, ViewSource};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

pub(crate) use args::WatchArgs;
use args::{HistoryPlace, SilenceEnd, SilenceWish, WatchCommand};
use notify::{Notifier, Recipients};
use servers::ServerPlan;
use sources::{SourceOptions, Sources, machine_name};
use ticker::{Ticker, Voice};
use worker::{Clock, unix_s, wait_until};

use crate::answers;
use crate::document::{ColorWhen, print, text_options};
use crate::exit::{Exit, Refusal};
use crate::refusal::refuse;
use crate::signals::cancel_on;
use crate::text::note;

/// How long a single look waits for a source besides the interval: a server may not be there, or hang.
const PATIENCE: Duration = Duration::from_secs(7);
/// How often it is looked whether the sources are there.
const LOOK: Duration = Duration::from_millis(20);

/// Watches servers and storage, shows the history, or writes files for others. `home` is the home where it is there already;
/// `directory` is where it is, or would be.
///
/// # Errors
/// Options that contradict each other, servers and volumes that there are not (exit code 2); an address or a history that cannot be
/// used (exit code 3).
pub(crate) fn run(
    args: &WatchArgs,
    home: Option<&Home>,
    directory: Option<&Path>,
    color: ColorWhen,
    json: bool,
) -> Result<Exit> {
    match &args.command {
        Some(WatchCommand::Dashboards(out)) => return files::write(&out.out, files::Kind::Dashboards, json),
        Some(WatchCommand::Rules(out)) => return files::write(&out.out, files::Kind::Rules, json),
        None => {}
    }
    let ends_with_screen = args.once || args.run_for.is_some();
    if json && !ends_with_screen {
        return Err(Refusal::usage("--json needs an end: --once, or --for TIME").into());
    }
    let stop = cancel_on(signals())?;
    let history = args.history.as_ref();
    if let Some(span) = &args.replay {
        return replay::run(args, *span, history_directory(history, directory)?, color, &stop);
    }
    let catalog = ebbtide_control::catalog(home).map_err(refuse)?;
    let plan = ServerPlan::read(args, &catalog)?;
    let recorded = match history {
        // A look has two samples, which say nothing of a time.
        None if args.once => None,
        Some(HistoryPlace::Off) => None,
        _ => {
            let place = history_directory(history, directory)?;
            if history.is_none() {
                // A home has permissions of its own.
                Home::open(place).context(Refusal::environment("this home cannot be used"))?;
            }
            Some(history::open(place)?)
        }
    };
    let clock = Clock::start();
    let options = SourceOptions { interval: args.interval, clock, stop: &stop };
    let sources = Arc::new(Sources::start(&plan.servers, home, catalog, &options)?);
    let watcher = watcher(args, plan, recorded.clone(), clock);
    if args.once {
        return once(args, watcher, &sources, clock, &stop, color, json);
    }
    watch(args, watcher, &sources, recorded, clock, &stop, color, json)
}

/// The signals that end it in order; one that this process was started to outlive, as `nohup` does, is none of them.
fn signals() -> impl Iterator<Item = c_int> {
    let hangup = !ebbtide_proc::process::ignores(SIGHUP.unsigned_abs());
    [SIGINT, SIGTERM].into_iter().chain(hangup.then_some(SIGHUP))
}

/// Where the history is: the directory of the option, or the home.
fn history_directory<'a>(place: Option<&'a HistoryPlace>, home: Option<&'a Path>) -> Result<&'a Path> {
    match place {
        Some(HistoryPlace::In(directory)) => Ok(directory.as_path()),
        Some(HistoryPlace::Off) => {
            Err(Refusal::usage("--replay needs the history that --history off has not").into())
        }
        None => home.ok_or_else(|| {
            Refusal::environment("there is no home to keep the history in")
                .hint("name a directory with --history DIR, or --history off")
                .into()
        }),
    }
}

fn watcher(args: &WatchArgs, plan: ServerPlan, recorded: Option<Arc<Samples>>, clock: Clock) -> Watcher {
    let options = WatchOptions {
        machine: machine_name(),
        node_name: args.node_name.clone(),
        has_service_name: args.node_name.is_some() || plan.servers.len() > 1,
        volumes: plan.volumes,
        build: [env!("CARGO_PKG_VERSION"), env!("EBBTIDE_COMMIT")],
    };
    let mut watcher = Watcher::new(options, recorded);
    for wish in &args.silence {
        watcher.silence(silence(wish, clock));
    }
    watcher
}

fn silence(wish: &SilenceWish, clock: Clock) -> Silence {
    let lasts = match wish.end {
        SilenceEnd::After(time) => time,
        SilenceEnd::UnixTime(end) => {
            Duration::from_secs(u64::try_from(end.saturating_sub(unix_s())).unwrap_or(0))
        }
    };
    Silence {
        rule: wish.rule.clone(),
        subject: wish.subject.clone(),
        until: clock.elapsed().saturating_add(lasts).into(),
        comment: "--silence".to_owned(),
    }
}

/// Looks twice, and prints what was seen.
fn once(
    args: &WatchArgs,
    mut watcher: Watcher,
    sources: &Sources,
    clock: Clock,
    stop: &Cancel,
    color: ColorWhen,
    json: bool,
) -> Result<Exit> {
    let give_up = Instant::now() + PATIENCE;
    while !sources.are_known() && Instant::now() < give_up && !stop.is_cancelled() {
        std::thread::sleep(LOOK);
    }
    watcher.tick(clock.moment(), sources.looks());
    // The sources read on their own time: a second reading is there soon after an interval.
    wait_until(Instant::now() + args.interval + args.interval.min(PATIENCE) / 2, stop);
    if stop.is_cancelled() {
        return Err(Refusal::cancelled("ended before the second look").into());
    }
    watcher.tick(clock.moment(), sources.looks());
    show(&watcher.source().single_look(), args, color, json)
}

/// Prints a view, and says how the program ends by it.
fn show(view: &View, args: &WatchArgs, color: ColorWhen, json: bool) -> Result<Exit> {
    if json {
        answers::print(view);
    } else {
        let rest = if args.details { "" } else { "more: --details" };
        print(&document(view), text_options(color, args.details), rest)?;
    }
    Ok(if has_alarm(view) { Exit::Finding } else { Exit::Clean })
}

/// Watches until it is ended.
#[expect(clippy::too_many_arguments, reason = "what the command line asks for, and what was made of it")]
fn watch(
    args: &WatchArgs,
    watcher: Watcher,
    sources: &Arc<Sources>,
    recorded: Option<Arc<Samples>>,
    clock: Clock,
    stop: &Cancel,
    color: ColorWhen,
    json: bool,
) -> Result<Exit> {
    let source = watcher.source();
    let is_drawn = args.run_for.is_none() && terminal::is_possible();
    let voice = match (is_drawn, json) {
        // What is drawn has alarms and troubles itself.
        (true, _) => Voice::Silent,
        (false, true) => Voice::Notes,
        (false, false) => Voice::Lines,
    };
    let recipients = Recipients { command: args.alarm_command.clone(), webhook: args.webhook.clone() };
    let notifier = Notifier::start(recipients, move |line| voice.note(line))?;
    let writer =
        history::HistoryWriter::start(recorded, sources.faults.clone(), move |line| voice.note(line))?;
    let server = args.listen.map(|address| listen::start(address, &source)).transpose()?;
    if let Some(server) = &server
        && !is_drawn
    {
        note(&format!("serving http://{}/ and its /metrics", server.address()));
    }
    let ticker = Ticker { watcher, sources: Arc::clone(sources), notifier, writer, voice };
    let ticking = ticker.start(args.interval, clock, stop)?;
    let ended = until_end(args, &source, is_drawn, color, stop);
    stop.cancel();
    // The last samples and alarms are handed over in order.
    ticking.join().map_err(|_| Refusal::invariant("the thread that watches ended by a panic"))?;
    ended?;
    if args.run_for.is_none() {
        return Ok(Exit::Clean);
    }
    show(&source.view(), args, color, json)
}

/// Shows the terminal's views, or waits: for a signal, or the time of `--for`.
fn until_end(
    args: &WatchArgs,
    source: &Arc<LiveSource>,
    is_drawn: bool,
    color: ColorWhen,
    stop: &Cancel,
) -> Result<()> {
    if is_drawn {
        let shown = Arc::<LiveSource>::clone(source);
        return terminal::run(shown, color, stop).context("the terminal cannot be used");
    }
    match args.run_for {
        Some(time) => wait_until(Instant::now() + time, stop),
        None => {
            while !stop.is_cancelled() {
                wait_until(Instant::now() + Duration::from_secs(3_600), stop);
            }
        }
    }
    Ok(())
}
