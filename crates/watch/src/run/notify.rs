//! Alarms go to a command and a webhook, on a thread of their own: neither delays what is watched.

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use ebbtide_load::Cancel;
use rustix::process::{Pid, Signal, kill_process_group};

use super::faults::Faults;
use super::webhook::WebhookUrl;
use super::worker::have_ended;
use crate::alarm::Event;
use crate::live::{Complaints, SourceFault};

/// Events that wait for a command that takes long. Beyond, the newest are left out, and that is said.
const MOST_WAITING: usize = 256;
/// How long a command may run.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often it is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(50);
/// How long the alarms that wait are sent when the program ends, and how long a command is given that is ended then.
const DRAIN: Duration = Duration::from_secs(5);
const LAST_LOOK: Duration = Duration::from_millis(500);
/// Under this subject alarms are shown that were left out.
const QUEUE: &str = "alarms that wait";
/// Secrets that the program may have been given, and that a command which is told of alarms does not need.
const SECRETS: [&str; 2] = ["EBBTIDE_MYSQL_PASSWORD", "MYSQL_PWD"];

/// Who is told of alarms.
#[derive(Debug, Clone, Default)]
pub struct Recipients {
    /// A command that is run with `sh`, with the event as JSON on its standard input.
    pub command: Option<String>,
    /// Where the event is sent as JSON.
    pub webhook: Option<WebhookUrl>,
}

/// Sends events. What waits is sent before it is gone, as far as that takes no more than 5 s.
#[derive(Debug)]
pub(super) struct Notifier {
    events: Option<SyncSender<Event>>,
    thread: Option<thread::JoinHandle<()>>,
    faults: Faults,
    /// Ends the command that runs, and leaves out what waits.
    give_up: Cancel,
}

impl Notifier {
    /// One that tells `say` what went wrong, once for each trouble, and has it among the faults while it lasts.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub(super) fn start(
        recipients: Recipients,
        faults: Faults,
        say: impl Fn(&str) + Send + 'static,
    ) -> io::Result<Self> {
        let give_up = Cancel::default();
        if recipients.command.is_none() && recipients.webhook.is_none() {
            return Ok(Self { events: None, thread: None, faults, give_up });
        }
        let (events, waiting) = sync_channel(MOST_WAITING);
        let (shown, ended) = (faults.clone(), give_up.clone());
        let work = move || send_all(&recipients, &waiting, &shown, &ended, say);
        let thread = thread::Builder::new().name("alarms".to_owned()).spawn(work)?;
        Ok(Self { events: Some(events), thread: Some(thread), faults, give_up })
    }

    /// Sends an event that is news. Returns why it was left out; None where it was not.
    pub(super) fn send(&self, event: &Event) -> Option<String> {
        let events = self.events.as_ref().filter(|_| event.is_news())?;
        let is_left_out = events.try_send(event.clone()).is_err();
        let reason = is_left_out.then(|| {
            format!(
                "{MOST_WAITING} alarms wait for the alarm command or the webhook: {} was left out",
                event.rule
            )
        });
        self.faults.set(QUEUE, reason.clone().map(|reason| fault(QUEUE, reason)));
        reason
    }

    /// Waits until what waits is sent, for so long at most; then the command that runs is ended, and the rest is left out.
    fn drain(&mut self, patience: Duration) {
        self.events = None;
        let Some(thread) = self.thread.take() else { return };
        let threads = [thread];
        if !have_ended(&threads, patience) {
            self.give_up.cancel();
            // A webhook that does not answer is left: the end of the program ends it.
            have_ended(&threads, LAST_LOOK);
        }
    }
}

impl Drop for Notifier {
    fn drop(&mut self) {
        self.drain(DRAIN);
    }
}

fn send_all(
    recipients: &Recipients,
    waiting: &Receiver<Event>,
    faults: &Faults,
    give_up: &Cancel,
    say: impl Fn(&str),
) {
    let mut complaints = Complaints::default();
    let mut note = |subject: &str, outcome: Result<(), String>| {
        faults.set(subject, outcome.as_ref().err().map(|reason| fault(subject, reason.clone())));
        complaints.take(subject, outcome).iter().for_each(|line| say(line));
    };
    let mut left_out = 0_u32;
    while let Ok(event) = waiting.recv() {
        if give_up.is_cancelled() {
            left_out += 1;
            continue;
        }
        let json = serde_json::to_string(&event).expect("an event is plain data");
        if let Some(command) = &recipients.command {
            let outcome = run(command, &event, &json, give_up).map_err(|error| error.to_string());
            note("the alarm command", outcome);
        }
        if let Some(webhook) = &recipients.webhook {
            let outcome = webhook.send(&json).map_err(|error| error.to_string());
            note(&format!("the webhook {webhook}"), outcome);
        }
    }
    if left_out > 0 {
        note(QUEUE, Err(format!("{left_out} of the alarms were not sent before the end")));
    }
}

/// That alarms do not arrive.
fn fault(subject: &str, reason: String) -> SourceFault {
    SourceFault {
        subject: subject.to_owned(),
        figure: "whether somebody is told of alarms".to_owned(),
        reason,
        remedy: "try it by hand with an event as JSON, as docs/watch.md has it".to_owned(),
    }
}

/// The command line of the user's, in a group of its own: what it starts is ended with it, and Ctrl-C on the terminal does not end it.
fn shell(command: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).process_group(0);
    for secret in SECRETS {
        shell.env_remove(secret);
    }
    shell
}

/// Runs the command with the event on its standard input, and ends it where it takes too long, or with `give_up`.
fn run(command: &str, event: &Event, json: &str, give_up: &Cancel) -> io::Result<()> {
    let mut child = shell(command)
        .env("EBBTIDE_ALARM_RULE", event.rule)
        .env("EBBTIDE_ALARM_STATE", event.to.name())
        // A name with a NUL would be no variable.
        .env("EBBTIDE_ALARM_SUBJECT", event.subject.name.replace('\0', ""))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // A command that does not read it closes the pipe; an event is shorter than what a pipe holds.
        let _ = input.write_all(json.as_bytes());
    }
    wait(&mut child, PATIENCE, give_up)
}

fn wait(child: &mut Child, patience: Duration, give_up: &Cancel) -> io::Result<()> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            let message = || io::Error::other(format!("it ended with {status}"));
            return if status.success() { Ok(()) } else { Err(message()) };
        }
        let took = began.elapsed();
        if took >= patience || give_up.is_cancelled() {
            kill_process_group(Pid::from_child(child), Signal::KILL)?;
            child.wait()?;
            return Err(io::Error::other(format!("it was ended after {} s", took.as_secs())));
        }
        thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::alarm::{AlarmSeverity, AlarmState, EventCause, Subject, SubjectKind};

    fn event() -> Event {
        Event {
            rule: "server_down",
            subject: Subject::new(SubjectKind::Server, "shop"),
            cause: EventCause::Change,
            from: AlarmState::Ok,
            to: AlarmState::Alarm,
            severity: AlarmSeverity::Critical,
            unix_s: 0,
            value: None,
            reason: String::new(),
            in_s: None,
            check: None,
            fix: String::new(),
            silenced: false,
        }
    }

    fn until(condition: impl Fn() -> bool) {
        let give_up = Instant::now() + Duration::from_secs(60);
        while !condition() {
            assert!(Instant::now() < give_up, "it has not come to pass");
            thread::sleep(LOOK);
        }
    }

    /// Whether a process runs: one that has ended may wait for its parent.
    fn runs(pid: &str) -> bool {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['Z', 'X']))
    }

    /// A command that starts another one, writes its number into a file, and waits for it.
    fn endless(file: &Path) -> String {
        format!("sleep 600 & echo $! > {0}.new && mv {0}.new {0}; wait", file.display())
    }

    #[test]
    fn a_command_has_no_secret_of_the_program_in_its_environment() {
        let shell = shell("true");
        for secret in SECRETS {
            let value = shell.get_envs().find(|(name, _)| *name == secret);
            assert!(matches!(value, Some((_, None))), "{secret}: {value:?}");
        }
    }

    #[test]
    fn a_command_that_takes_too_long_is_ended_with_what_it_has_started() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let mut child = shell(&endless(&file)).spawn().unwrap();
        until(|| file.exists());
        let pid = fs::read_to_string(&file).unwrap().trim().to_owned();
        assert!(runs(&pid));
        let error = wait(&mut child, Duration::from_millis(1), &Cancel::default()).unwrap_err().to_string();
        assert!(error.contains("it was ended after 0 s"), "{error}");
        until(|| !runs(&pid));
    }

    #[test]
    fn at_the_end_a_command_that_runs_is_ended_and_what_waits_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let recipients = Recipients { command: Some(endless(&file)), webhook: None };
        let faults = Faults::default();
        let mut notifier = Notifier::start(recipients, faults.clone(), |_| {}).unwrap();
        assert_eq!((notifier.send(&event()), notifier.send(&event())), (None, None));
        until(|| file.exists());
        let pid = fs::read_to_string(&file).unwrap().trim().to_owned();
        notifier.drain(Duration::from_millis(100));
        until(|| !runs(&pid));
        until(|| faults.all().iter().any(|fault| fault.reason.contains("1 of the alarms")));
    }

    #[test]
    fn a_command_that_fails_is_a_fault_until_it_succeeds() {
        let dir = tempfile::tempdir().unwrap();
        let works = dir.path().join("works");
        let command = format!("test -e {}", works.display());
        let recipients = Recipients { command: Some(command), webhook: None };
        let faults = Faults::default();
        let notifier = Notifier::start(recipients, faults.clone(), |_| {}).unwrap();
        assert_eq!(notifier.send(&event()), None);
        until(|| faults.all().iter().any(|fault| fault.subject == "the alarm command"));
        fs::write(works, "").unwrap();
        assert_eq!(notifier.send(&event()), None);
        until(|| faults.all().is_empty());
    }
}
