//! `ebbtide watch`: servers and their storage, live.
//!
//! [`ebbtide_watch`] decides what is shown and when it alarms, and [`ebbtide_watch::run`] has the threads, the clock and the sockets.
//! [`args`] says what is asked, [`servers`] makes servers and volumes of it, [`voice`] and [`terminal`] show what is watched; [`replay`]
//! shows the history in place of what is, and [`files`] writes dashboards and rules for others.

mod args;
mod files;
mod replay;
mod servers;
mod terminal;
mod voice;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use ebbtide_device::host::Home;
use ebbtide_history::Samples;
use ebbtide_load::Cancel;
use ebbtide_watch::alarm::Silence;
use ebbtide_watch::live::{LiveSource, WatchOptions, Watcher};
use ebbtide_watch::run::{
    Audience, Clock, Recipients, SourceOptions, Sources, Watching, look_twice, machine_name, open_history,
    unix_s, wait_until,
};
use ebbtide_watch::screen::{document, has_alarm};
use ebbtide_watch::view::{View, ViewSource};

pub(crate) use args::WatchArgs;
use args::{HistoryPlace, SilenceEnd, SilenceWish, Switch, WatchCommand};
use servers::ServerPlan;
use voice::Said;

use crate::answers;
use crate::document::{ColorWhen, print, text_options};
use crate::exit::{Exit, Refusal};
use crate::refusal::{refuse, refused};
use crate::signals::{cancel_on, signals};
use crate::text::note;

/// The longest interval of a watch that goes on: rules count seconds, and what happened between two looks is not known.
const LONGEST_INTERVAL: Duration = Duration::from_secs(60);

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
    check(args, json)?;
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
            Some(open_history(place).map_err(refused)?)
        }
    };
    let clock = Clock::start();
    let has_ebs_pages = args.ebs_statistics == Switch::On;
    let options = SourceOptions { interval: args.interval, clock, has_ebs_pages, stop: &stop };
    let sources = Sources::start(&plan.servers, home, catalog, &options).map_err(refused)?;
    let watcher = watcher(args, plan, recorded.clone(), clock);
    if args.once {
        let view = look_twice(watcher, &sources, args.interval, &stop);
        let view = view.ok_or_else(|| Refusal::cancelled("ended before the second look"))?;
        return show(&view, args, color, json);
    }
    watch(args, watcher, &Arc::new(sources), recorded, &stop, color, json)
}

/// Refuses options that contradict each other.
fn check(args: &WatchArgs, json: bool) -> Result<()> {
    let ends_with_screen = args.once || args.run_for.is_some();
    if json && !ends_with_screen {
        return Err(Refusal::usage("--json needs an end: --once, or --for TIME").into());
    }
    if args.interval > LONGEST_INTERVAL && !args.once {
        let interval = ebbtide_text::rough(args.interval.as_secs_f64());
        let message =
            format!("--interval of {interval} is too long for a watch that goes on: give 1s to 60s");
        return Err(Refusal::usage(message).hint("--once takes up to 24h").into());
    }
    Ok(())
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
        interval: args.interval.into(),
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
fn watch(
    args: &WatchArgs,
    watcher: Watcher,
    sources: &Arc<Sources>,
    recorded: Option<Arc<Samples>>,
    stop: &Cancel,
    color: ColorWhen,
    json: bool,
) -> Result<Exit> {
    let is_drawn = args.run_for.is_none() && terminal::is_possible();
    let said = match (is_drawn, json) {
        // What is drawn has alarms and troubles itself.
        (true, _) => Said::Nowhere,
        (false, true) => Said::Notes,
        (false, false) => Said::Lines,
    };
    let audience = Audience {
        recipients: Recipients { command: args.alarm_command.clone(), webhook: args.webhook.clone() },
        voice: Arc::new(said),
        history: recorded,
        listen: args.listen,
    };
    let watching = Watching::start(watcher, sources, audience, args.interval, stop).map_err(refused)?;
    if let Some(address) = watching.address().filter(|_| !is_drawn) {
        note(&format!("serving http://{address}/ and its /metrics"));
    }
    let source = Arc::clone(watching.source());
    let ended = until_end(args, &source, is_drawn, color, stop);
    stop.cancel();
    watching.end().map_err(refused)?;
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
