//! Alarms go to a command and a webhook, on a thread of their own: neither delays what is watched.

use std::io::{self, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use super::webhook::WebhookUrl;
use crate::alarm::Event;
use crate::live::Complaints;

/// Events that wait for a command that takes long. Beyond, the newest are left out, and that is said.
const MOST_WAITING: usize = 256;
/// How long a command may run.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often it is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(50);

/// Who is told of alarms.
#[derive(Debug, Clone, Default)]
pub struct Recipients {
    /// A command that is run with `sh`, with the event as JSON on its standard input.
    pub command: Option<String>,
    /// Where the event is sent as JSON.
    pub webhook: Option<WebhookUrl>,
}

/// Sends events. What waits is sent before it is gone.
#[derive(Debug)]
pub(super) struct Notifier {
    events: Option<SyncSender<Event>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Notifier {
    /// One that tells `say` what went wrong, once for each trouble.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub(super) fn start(recipients: Recipients, say: impl Fn(&str) + Send + 'static) -> io::Result<Self> {
        if recipients.command.is_none() && recipients.webhook.is_none() {
            return Ok(Self { events: None, thread: None });
        }
        let (events, waiting) = sync_channel(MOST_WAITING);
        let work = move || send_all(&recipients, &waiting, say);
        let thread = thread::Builder::new().name("alarms".to_owned()).spawn(work)?;
        Ok(Self { events: Some(events), thread: Some(thread) })
    }

    /// Sends an event that is news. Returns why it was left out; None where it was not.
    pub(super) fn send(&self, event: &Event) -> Option<String> {
        let events = self.events.as_ref().filter(|_| event.is_news())?;
        events.try_send(event.clone()).err().map(|_| {
            format!(
                "{MOST_WAITING} alarms wait for the alarm command or the webhook: {} was left out",
                event.rule
            )
        })
    }
}

impl Drop for Notifier {
    fn drop(&mut self) {
        self.events = None;
        if let Some(thread) = self.thread.take() {
            // A panic there was printed there.
            let _ = thread.join();
        }
    }
}

fn send_all(recipients: &Recipients, waiting: &Receiver<Event>, say: impl Fn(&str)) {
    let mut complaints = Complaints::default();
    while let Ok(event) = waiting.recv() {
        let json = serde_json::to_string(&event).expect("an event is plain data");
        if let Some(command) = &recipients.command {
            let outcome = run(command, &event, &json).map_err(|error| error.to_string());
            complaints.take("the alarm command", outcome).iter().for_each(|line| say(line));
        }
        if let Some(webhook) = &recipients.webhook {
            let outcome = webhook.send(&json).map_err(|error| error.to_string());
            complaints.take(&format!("the webhook {webhook}"), outcome).iter().for_each(|line| say(line));
        }
    }
}

/// Runs the command with the event on its standard input, and ends it where it takes too long.
fn run(command: &str, event: &Event, json: &str) -> io::Result<()> {
    let mut child = Command::new("sh")
        .args(["-c", command])
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
    wait(&mut child)
}

fn wait(child: &mut Child) -> io::Result<()> {
    let give_up = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait()? {
            let message = || io::Error::other(format!("it ended with {status}"));
            return if status.success() { Ok(()) } else { Err(message()) };
        }
        if Instant::now() >= give_up {
            child.kill()?;
            child.wait()?;
            return Err(io::Error::other(format!("it was ended after {} s", PATIENCE.as_secs())));
        }
        thread::sleep(LOOK);
    }
}
