//! `ebbtide serve`: hosts the volumes of a home and takes control on its socket.

mod aws;
mod change;
mod log;
mod status;

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::Scope;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use ebbtide_control::protocol::Request;
use ebbtide_control::{ControlPlane as _, LiveControl};
use ebbtide_device::host::{Home, HomeError, HomeLock, Host, HostOptions, release_dying};
use ebbtide_serve::{
    AttachedList, Build, DiskWatch, MetricsTarget, RunningServer, Service, endpoint_url, report_ready,
    report_stopping,
};
use ebbtide_text::shell_words::quoted;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::answers::{self, Serving};
use crate::control::{self, Listener};
use crate::exit::{Exit, Refusal};
use crate::refusal::{refuse, refuse_serve};
use crate::text;
use aws::AwsArgs;
use change::Changes;
use log::{LogFormat, LogLevel};

/// How long a detached server may take until it answers: it opens the store first.
const START: Duration = Duration::from_secs(30);
/// The same where it attaches volumes first: each is measured and mounted.
const RESTORE: Duration = Duration::from_secs(600);
/// How often the disk of the home is looked at.
const DISK: Duration = Duration::from_secs(10);

/// `serve`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  ebbtide serve &\n  ebbtide serve --home /srv/ebb --detach\n  \
    ebbtide serve --home /srv/ebb --aws 4599 &\n  \
    ebbtide serve --home /srv/ebb --change --log debug --aws 4599\n  \
    ebbtide serve --home /srv/ebb --change --metrics 9421\n  \
    ebbtide serve --home /srv/ebb --status\n  ebbtide serve --home /srv/ebb --stop\n  ebbtide serve --home /srv/ebb --stop --force\n\n\
    SIGTERM, SIGINT and SIGHUP do what --stop --force does. A unit of systemd: ebbtide docs service")]
pub(crate) struct ServeArgs {
    /// Return once the server answers, and leave it running; its log goes to serve.log in the home
    #[arg(long, conflicts_with_all = ["stop", "status"])]
    detach: bool,
    /// Attach again what commands had attached when the last server of this home ended, in the order of the mounts
    #[arg(long, conflicts_with_all = ["stop", "status"])]
    restore: bool,
    /// Change the running server of this home: what --log logs, with --aws that it begins to answer AWS's APIs, and with --metrics
    /// where it serves metrics
    #[arg(long, conflicts_with_all = ["detach", "restore", "stop", "status", "host_sync", "log_format"])]
    pub(crate) change: bool,
    /// Which events are logged: a level, or levels by module (info,ebbtide_device=debug) [default: EBBTIDE_LOG, else info]
    #[arg(long, value_name = "FILTER", conflicts_with_all = ["stop", "status"])]
    log: Option<String>,
    /// Print what the server of this home was asked: its requests and failures by operation, and how long they took
    #[arg(long, conflicts_with = "stop")]
    pub(crate) status: bool,
    /// Stop the server of this home and wait until it has ended; refused while a volume is in use
    #[arg(long)]
    pub(crate) stop: bool,
    /// Stop although a process uses a volume or I/O is stalled: what was written before is flushed to the
    /// volume, I/O after that fails; a stall is ended first
    #[arg(long, requires = "stop")]
    force: bool,
    /// Let flushes reach the host's disk, so that answered writes survive the host's own crash
    #[arg(long, conflicts_with_all = ["stop", "status"])]
    host_sync: bool,
    /// How lines of the log are written
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT", conflicts_with_all = ["stop", "status"])]
    log_format: LogFormat,
    #[command(flatten)]
    aws: AwsArgs,
    /// Serve metrics for Prometheus at http://127.0.0.1:PORT/metrics, for this machine alone; 0 takes a free port, and off with
    /// --change ends it
    #[arg(long, value_name = "PORT", conflicts_with_all = ["stop", "status"])]
    metrics: Option<MetricsTarget>,
    /// This process is the one that stays behind after --detach.
    #[arg(long, hide = true)]
    background: bool,
}

/// Runs `serve` in one of its forms.
///
/// # Errors
/// Another server of this home, or an environment that does not let it start.
pub(crate) fn run(args: &ServeArgs, home: &Home, json: bool) -> anyhow::Result<Exit> {
    if args.stop {
        return stop(home, args.force, json);
    }
    if args.status {
        return status::show(home, json);
    }
    if args.change {
        return change::ask(home, args.log.as_deref(), &args.aws, args.metrics, json);
    }
    args.aws.check()?;
    if args.detach {
        return detach(args, home, json);
    }
    if args.background {
        // It fails only where this process leads a session already, which is what is wanted.
        let _ = rustix::process::setsid();
    }
    let level = log::start(args.log_format, log::filter(args.log.as_deref())?);
    serve(lock(home, change_command(args, home))?, args, level)
}

/// How long a server may take to report that it is there.
const ANSWER: Duration = Duration::from_secs(5);

/// How long a command that clears what a killed server left may hold the home.
const CLEARING: Duration = Duration::from_secs(20);

/// Takes the home, after a command that is clearing it, but not from a server that answers. One that was
/// killed while it waited for a volume of its own is helped to its end. `change` is the command that a server that is there
/// takes in place of a restart.
fn lock(home: &Home, change: Option<String>) -> anyhow::Result<HomeLock> {
    let give_up = Instant::now() + CLEARING;
    let lock = loop {
        match home.lock() {
            Err(HomeError::Served { .. }) if Instant::now() < give_up && !is_served(home)? => {
                std::thread::sleep(Duration::from_millis(20));
            }
            other => break other,
        }
    };
    lock.map_err(|error| {
        let hint = match &error {
            HomeError::Served { .. } => {
                let change = change.map(|command| format!("change it with '{command}', "));
                let stop = "stop it with 'ebbtide serve --stop', or choose another --home";
                format!("{}{stop}", change.unwrap_or_default())
            }
            HomeError::Io { .. } | HomeError::Unsafe { .. } => {
                "choose another --home, or run as its owner".to_owned()
            }
        };
        let refusal = Refusal::environment("cannot serve this home").hint(hint);
        anyhow::Error::new(error).context(refusal)
    })
}

/// The command that changes a running server as these arguments ask for; None where they ask for nothing that `--change` takes,
/// or for more.
fn change_command(args: &ServeArgs, home: &Home) -> Option<String> {
    let takes_it = !args.restore && !args.host_sync && args.log_format == LogFormat::default();
    let aws = args.aws.words().ok()?;
    let nothing = args.log.is_none() && aws.is_empty() && args.metrics.is_none();
    // An endpoint that is there has its options until the server ends.
    if nothing || !takes_it || (!aws.is_empty() && endpoint_url(home).is_some()) {
        return None;
    }
    let mut words: Vec<String> = ["ebbtide", "serve", "--change"].map(str::to_owned).to_vec();
    words.extend(args.log.iter().flat_map(|filter| ["--log".to_owned(), quoted(filter)]));
    words.extend(aws.iter().map(|word| quoted(&word.to_string_lossy())));
    words.extend(args.metrics.iter().flat_map(|target| ["--metrics".to_owned(), target.to_string()]));
    words.extend(["--home".to_owned(), quoted(&home.root().display().to_string())]);
    Some(words.join(" "))
}

/// Whether the holder of a home's lock is a server that answers, or may do so yet.
fn is_served(home: &Home) -> anyhow::Result<bool> {
    let is_dying = release_dying(home).context("cannot look at a server that was killed")?;
    Ok(!is_dying && control::answers(home, ANSWER))
}

/// Serves until a signal or a request to stop arrives.
fn serve(lock: HomeLock, args: &ServeArgs, level: LogLevel) -> anyhow::Result<Exit> {
    let home = lock.home().clone();
    control::clear(&lock, &|left: &str| args.log_format.print(left))?;
    let options = HostOptions { host_sync: args.host_sync };
    let plane = Arc::new(LiveControl::new(Host::open(lock, options).map_err(|error| refuse(error.into()))?));
    let (stop, stopped) = mpsc::channel();
    let ended = AtomicBool::new(false);
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP]).context("cannot watch for signals")?;
    // Before the socket, at which a command sees that the server is there.
    let build = Build { version: env!("CARGO_PKG_VERSION"), commit: env!("EBBTIDE_COMMIT") };
    let endpoint = args.aws.endpoint();
    let running =
        RunningServer::start(&plane, &home, build, endpoint.as_ref(), args.metrics).map_err(refuse_serve)?;
    let listener = control::listen(&home)?;
    // After what can refuse to start: without --restore this empties the list of the last server.
    let attached = AttachedList::begin(&home, args.restore).map_err(refuse_serve)?;
    let changes = Changes { running: &running, home: &home, log: level };
    let service = Service::new(&*plane, &home, &running, &attached, &changes);
    tracing::info!(home = %home.root().display(), host_sync = args.host_sync, "serving");
    std::thread::scope(|scope| {
        let handle = signals.handle();
        let stop = &stop;
        scope.spawn(move || {
            for signal in signals.forever() {
                let name = signal_hook::low_level::signal_name(signal).unwrap_or("a signal");
                // The receiver is gone only while the server ends anyway.
                let _ = stop.send(name);
            }
        });
        scope.spawn(|| {
            // Commands that connect meanwhile wait: they are to find the volumes.
            let status = if args.restore { service.restore() } else { "serving".to_owned() };
            report_ready(&status);
            accept(scope, &listener, &service, &ended, stop);
        });
        let why = wait(&stopped, &home, &plane);
        tracing::info!("stopping on {why}");
        report_stopping();
        running.stop();
        plane.end();
        ended.store(true, Ordering::Relaxed);
        // The acceptor wakes and sees that the server stops. The scope ends when every client has its
        // answer.
        listener.close();
        handle.close();
    });
    tracing::info!("stopped");
    Ok(Exit::Clean)
}

/// Why the server is to stop.
type Reason = &'static str;

/// Waits until the server is to stop, and looks at the disk of the home meanwhile.
fn wait(stopped: &mpsc::Receiver<Reason>, home: &Home, plane: &LiveControl) -> Reason {
    let mut disk = DiskWatch::default();
    loop {
        let may_be_taken = || {
            let volumes = plane.volumes(None).unwrap_or_default();
            let attached = volumes.iter().filter(|volume| volume.attachment.is_some());
            attached.map(|volume| volume.size_bytes.saturating_sub(volume.data_bytes)).sum()
        };
        if let Some(warning) = disk.look(home, may_be_taken) {
            tracing::warn!("{warning}");
        }
        match stopped.recv_timeout(DISK) {
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            ended => return ended.unwrap_or_default(),
        }
    }
}

fn accept<'scope>(
    scope: &'scope Scope<'scope, '_>,
    listener: &Listener,
    service: &'scope Service<'_>,
    ended: &AtomicBool,
    stop: &'scope mpsc::Sender<Reason>,
) {
    loop {
        let client = listener.accept();
        if ended.load(Ordering::Relaxed) {
            return;
        }
        match client {
            Ok(client) => {
                let serve = move || {
                    control::serve_client(&client, |request, replies| {
                        service.handle(request, replies).map_err(refuse_serve)
                    });
                    if service.is_asked_to_stop() {
                        let _ = stop.send("a request to stop");
                    }
                };
                // `Scope::spawn` panics where there is no thread left: a crowd of clients would end the server.
                if let Err(error) = std::thread::Builder::new().spawn_scoped(scope, serve) {
                    tracing::warn!("cannot serve a client: {error}");
                }
            }
            Err(error) => {
                tracing::warn!("cannot accept a client: {error}");
                // Out of file descriptors, most likely: others must close theirs first.
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }
}

/// Starts a server in the background and returns once it answers.
fn detach(args: &ServeArgs, home: &Home, json: bool) -> anyhow::Result<Exit> {
    // Before another process is started, whose refusals are in its log.
    log::filter(args.log.as_deref())?;
    drop(lock(home, change_command(args, home))?);
    let log = home.log_file();
    let out = home.open_log().map_err(|error| {
        anyhow::Error::new(error).context(Refusal::environment("the server can write no log"))
    })?;
    let from = out.metadata()?.len();
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut command = Command::new(program);
    command.args(["serve", "--background", "--home"]).arg(home.root());
    if args.host_sync {
        command.arg("--host-sync");
    }
    if args.restore {
        command.arg("--restore");
    }
    command.args(args.log.iter().flat_map(|filter| ["--log", filter]));
    // Its own start is waited for here, and not by systemd.
    command.env_remove("NOTIFY_SOCKET");
    command.args(["--log-format", args.log_format.name()]).args(args.aws.words()?);
    command.args(args.metrics.iter().flat_map(|target| ["--metrics".to_owned(), target.to_string()]));
    let mut child = command
        .stdin(Stdio::null())
        .stdout(out.try_clone()?)
        .stderr(out)
        .current_dir("/")
        .process_group(0)
        .spawn()
        .context("cannot start the server")?;
    let give_up = Instant::now() + if args.restore { RESTORE } else { START };
    while !control::answers(home, ANSWER) {
        if let Some(status) = child.try_wait()? {
            let code = status.code().unwrap_or_default();
            let exit = if code == 4 { Refusal::invariant } else { Refusal::environment };
            let last = last_lines(&log, from);
            return Err(exit(format!("the server ended at once: {last}"))
                .hint(format!("its log is {}", log.display()))
                .into());
        }
        if Instant::now() > give_up {
            return Err(Refusal::environment("the server does not answer")
                .hint(format!("its log is {}; 'ebbtide serve --stop' ends it", log.display()))
                .into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    report_serving(args, home, child.id(), json);
    Ok(Exit::Clean)
}

/// Prints where a server in the background is, and what it serves.
fn report_serving(args: &ServeArgs, home: &Home, pid: u32, json: bool) {
    let (socket, log, aws) = (home.socket(), home.log_file(), endpoint_url(home));
    // The port may be one that the server has chosen.
    let status = args.metrics.and_then(|_| control::ask_if_there(home, &Request::Status, ANSWER));
    let metrics = status.as_ref().and_then(|status| status["metrics"].as_str());
    if json {
        let (home, socket, log) = (home.root(), socket.as_path(), log.as_path());
        answers::print(&Serving { pid, home, socket, log, aws: aws.as_deref(), metrics });
    } else {
        text::line(&format!("serving {} as process {pid}", home.root().display()));
        aws.iter().for_each(|url| text::line(&format!("AWS endpoint: {url}")));
        metrics.iter().for_each(|url| text::line(&format!("metrics: {url}")));
    }
    if args.aws.is_open() {
        text::note("warning: authorization of the AWS endpoint is off");
    }
}

/// What the log has since `from`, its errors above all.
fn last_lines(log: &std::path::Path, from: u64) -> String {
    let read = || -> std::io::Result<Vec<String>> {
        let mut file = std::fs::File::open(log)?;
        std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(from))?;
        BufReader::new(file).lines().collect()
    };
    let lines = read().unwrap_or_default();
    let errors: Vec<_> = lines.iter().filter_map(|line| line.strip_prefix("error: ")).collect();
    match errors.last() {
        Some(error) => (*error).to_owned(),
        None => lines.last().cloned().unwrap_or_else(|| "it left no message".to_owned()),
    }
}

fn stop(home: &Home, force: bool, json: bool) -> anyhow::Result<Exit> {
    let answer = control::ask(home, &Request::Stop { force })?;
    // Everything is detached by now; the process ends when its clients have their answers.
    let lock = loop {
        match home.lock() {
            Ok(lock) => break lock,
            Err(HomeError::Served { .. }) => std::thread::sleep(Duration::from_millis(20)),
            Err(error) => {
                let refusal =
                    Refusal::environment("the server has stopped, and its home cannot be looked at");
                return Err(anyhow::Error::new(error).context(refusal));
            }
        }
    };
    control::clear(&lock, &text::note)?;
    if json {
        text::print_json(&answer.value);
    } else {
        text::line(&format!("stopped serving {}", home.root().display()));
    }
    for detached in answer.value["detached"].as_array().into_iter().flatten() {
        let volume = detached["volume"].as_str().unwrap_or_default();
        if let Some(why) = detached["forced"].as_str() {
            text::note(&format!("warning: volume '{volume}' was detached by force: {why}"));
        }
        crate::volume::warn_of_loss(volume, detached);
    }
    Ok(answer.exit)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::Path;

    use ebbtide_device::host::{AttachRequest, Export, FsType, HostMatch, MountRequest};

    use super::*;

    #[test]
    fn a_server_that_was_killed_and_is_not_quite_gone_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(dir.path()).unwrap();
        let dying = home.lock().unwrap();
        let socket = std::os::unix::net::UnixListener::bind(home.socket()).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                std::thread::sleep(Duration::from_millis(300));
                drop((socket, dying));
            });
            lock(&home, None).unwrap();
        });
    }

    #[test]
    fn a_second_server_names_the_change_that_the_first_one_takes() {
        use clap::Parser as _;

        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(dir.path()).unwrap();
        let change = |words: &str| {
            let words = ["ebbtide", "serve"].into_iter().chain(words.split_whitespace());
            let crate::cli::Command::Serve(args) = crate::cli::Cli::try_parse_from(words).unwrap().command
            else {
                panic!("serve")
            };
            change_command(&args, &home)
        };
        let root = home.root().display();
        assert_eq!(
            change("--detach --aws 4599 --instant").unwrap(),
            format!("ebbtide serve --change --aws 4599 --instant --home {root}")
        );
        assert_eq!(
            change("--log debug").unwrap(),
            format!("ebbtide serve --change --log debug --home {root}")
        );
        assert_eq!(
            change("--metrics 9421").unwrap(),
            format!("ebbtide serve --change --metrics 127.0.0.1:9421 --home {root}")
        );
        for other in ["", "--detach", "--aws 4599 --host-sync", "--log debug --restore"] {
            assert_eq!(change(other), None, "{other}");
        }
    }

    #[test]
    fn a_server_that_was_killed_while_it_waited_for_its_own_volume_is_taken_over_from() {
        const VICTIM: &str = "EBBTIDE_TEST_SERVE_VICTIM";
        const NAME: &str =
            "serve::tests::a_server_that_was_killed_while_it_waited_for_its_own_volume_is_taken_over_from";
        let lacks = |file: &&&str| File::options().read(true).write(true).open(file).is_err();
        if let Some(missing) = ["/dev/fuse", "/dev/loop-control"].iter().find(lacks) {
            println!("SKIPPED: root, and {missing}");
            return;
        }
        if let Some(home) = std::env::var_os(VICTIM) {
            wait_for_own_volume(Path::new(&home));
        }
        let dir = tempfile::tempdir().unwrap();
        let mut victim = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", NAME, "--nocapture"])
            .env(VICTIM, dir.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
        lines.map(Result::unwrap).find(|line| line.contains("waiting")).unwrap();
        // Until it does wait.
        std::thread::sleep(Duration::from_millis(300));
        victim.kill().unwrap();
        let home = Home::open(dir.path()).unwrap();
        let taken = lock(&home, None);
        // Whatever came of it, nothing is to be left attached.
        release_dying(&home).unwrap();
        victim.wait().unwrap();
        let (lock, refused) = match taken {
            Ok(lock) => (lock, None),
            Err(error) => (home.lock().unwrap(), Some(format!("{error:#}"))),
        };
        ebbtide_device::host::clear_leftovers(&lock).unwrap();
        assert_eq!(refused, None);
    }

    /// Serves a volume, stalls it, and writes to it.
    fn wait_for_own_volume(home: &Path) -> ! {
        let home = Home::open(home).unwrap();
        let host = Host::open(home.lock().unwrap(), HostOptions::default()).unwrap();
        let ideal =
            ebbtide_catalog::Catalog::builtin().resolve(&"ideal:size=64MiB".parse().unwrap()).unwrap();
        host.store().create_volume("db", ideal.size_bytes(), serde_json::json!({})).unwrap();
        let dir = home.root().join("mnt");
        let mount =
            MountRequest { dir: dir.clone(), fs: FsType::Ext4, destroy: false, grow: false, noexec: false };
        let request = AttachRequest {
            volume: "db".into(),
            meta: host.store().meta("db").unwrap(),
            array: ideal.array(host.now()),
            seed: 1,
            block_bytes: 512,
            instance: None,
            export: Export::Block { mount: Some(mount) },
            host_match: HostMatch::default(),
        };
        let attachment = host.attach(request, &|_| ()).unwrap();
        let stalled = ebbtide_device::faults::Faults { stalled: true, ..Default::default() };
        attachment.live().set_faults(stalled).unwrap();
        println!("waiting");
        let mut file = File::create(dir.join("file")).unwrap();
        std::io::Write::write_all(&mut file, &[1; 4096]).unwrap();
        file.sync_all().unwrap();
        panic!("the volume is stalled");
    }
}
