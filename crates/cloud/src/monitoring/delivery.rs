//! Delivery of events to a command or a webhook, on a thread of its own: no call waits for it.

use std::error::Error;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::{Duration, Instant};
use std::{io, thread};

use parking_lot::Mutex;
use serde_json::Value;

use super::events::EventSink;
use super::webhook::{PostError, Webhook};
use crate::service::with_causes;

/// Events that wait for delivery. More are lost.
const QUEUE: usize = 1_000;

/// How long a command may take for one event. Then it is killed.
const COMMAND_TIME: Duration = Duration::from_secs(30);

/// How often it is looked whether a command has ended.
const COMMAND_POLL: Duration = Duration::from_millis(10);

/// Bytes that an empty pipe takes on Linux without a reader (`pipe(7)`). A command gets no larger event, so that one that
/// does not read cannot hold up the others.
const PIPE_BYTES: usize = 65_536;

/// At most one line of the log about lost events in this time.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// How long the end of the process waits for events that are still in the queue.
const LAST_EVENTS: Duration = Duration::from_secs(5);

/// Where events go.
#[derive(Debug)]
enum Target {
    Command(String),
    Webhook(Webhook),
}

impl Target {
    fn deliver(&self, event: &str) -> Result<(), DeliveryError> {
        match self {
            Self::Command(command) => run(command, event),
            Self::Webhook(webhook) => Ok(webhook.post(event)?),
        }
    }
}

/// Why an event is lost.
#[derive(Debug, thiserror::Error)]
enum DeliveryError {
    /// An event that the pipe of a command does not take at once.
    #[error("an event of {bytes} bytes; a command gets less than {max}", max = PIPE_BYTES)]
    TooLarge { bytes: usize },
    /// There is no shell, or no process.
    #[error("it cannot be started")]
    Start(#[source] io::Error),
    /// The command reports a failure, or a signal ended it.
    #[error("the command ends with {0}")]
    Failed(ExitStatus),
    /// The command was killed after [`COMMAND_TIME`].
    #[error("the command takes more than {} s", COMMAND_TIME.as_secs())]
    TooLong,
    /// The system does not report the end of the command.
    #[error("the command cannot be waited for")]
    Wait(#[source] io::Error),
    /// The webhook does not take it.
    #[error(transparent)]
    Webhook(#[from] PostError),
    /// The target is too slow.
    #[error("{max} events wait already", max = QUEUE)]
    QueueFull,
    /// Events were still in the queue.
    #[error("the server ends")]
    ServerEnds,
}

/// Delivers events to a command or a webhook, one after the other. What cannot be delivered is lost: the log says so, at
/// most once a minute.
#[derive(Debug)]
pub struct Delivery {
    queue: Option<SyncSender<String>>,
    /// Gets a word when the thread ends.
    ended: Mutex<Receiver<()>>,
    losses: Arc<Losses>,
}

impl Delivery {
    /// Runs a command of the shell for each event, which it reads as a line of JSON from its standard input.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn to_command(command: String) -> io::Result<Self> {
        let name = format!("exec:{command}");
        Self::start(name, Target::Command(command))
    }

    /// Posts each event to a webhook.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn to_webhook(webhook: Webhook) -> io::Result<Self> {
        Self::start(webhook.to_string(), Target::Webhook(webhook))
    }

    fn start(name: String, target: Target) -> io::Result<Self> {
        let (queue, events) = mpsc::sync_channel::<String>(QUEUE);
        let (end, ended) = mpsc::channel();
        let losses = Arc::new(Losses { to: name, state: Mutex::default() });
        let noted = Arc::clone(&losses);
        thread::Builder::new().name("events".to_owned()).spawn(move || {
            for event in events {
                if let Err(why) = target.deliver(&event) {
                    noted.note(&why);
                }
            }
            // Nobody may wait any more.
            let _ = end.send(());
        })?;
        Ok(Self { queue: Some(queue), ended: Mutex::new(ended), losses })
    }

    /// Events that were lost so far.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.losses.state.lock().all
    }
}

impl EventSink for Delivery {
    fn publish(&self, event: &Value) {
        let Some(queue) = &self.queue else { return };
        if queue.try_send(event.to_string()).is_err() {
            self.losses.note(&DeliveryError::QueueFull);
        }
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        self.queue = None;
        // A target that takes longer loses the rest.
        if self.ended.lock().recv_timeout(LAST_EVENTS).is_err() {
            self.losses.note(&DeliveryError::ServerEnds);
        }
    }
}

/// What was lost, and what the log has of it.
#[derive(Debug)]
struct Losses {
    to: String,
    state: Mutex<Lost>,
}

#[derive(Debug, Default)]
struct Lost {
    all: u64,
    /// Since the latest line.
    unsaid: u64,
    latest_line: Option<Instant>,
}

impl Losses {
    fn note(&self, why: &dyn Error) {
        let mut state = self.state.lock();
        state.all += 1;
        state.unsaid += 1;
        if state.latest_line.is_some_and(|at| at.elapsed() < LOG_EVERY) {
            return;
        }
        state.latest_line = Some(Instant::now());
        let events = std::mem::take(&mut state.unsaid);
        tracing::warn!(to = self.to, why = %with_causes(why), events, "events are lost");
    }
}

/// Runs a command with an event as a line of its standard input.
fn run(command: &str, event: &str) -> Result<(), DeliveryError> {
    if event.len() >= PIPE_BYTES {
        return Err(DeliveryError::TooLarge { bytes: event.len() });
    }
    let mut child = Command::new("/bin/sh")
        .args(["-c", command])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(DeliveryError::Start)?;
    if let Some(mut input) = child.stdin.take() {
        // A command need not read.
        let _ = io::Write::write_all(&mut input, format!("{event}\n").as_bytes());
    }
    let begun = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(DeliveryError::Failed(status)),
            Ok(None) if begun.elapsed() < COMMAND_TIME => thread::sleep(COMMAND_POLL),
            Ok(None) => {
                // It may just have ended.
                let _ = child.kill();
                let _ = child.wait();
                return Err(DeliveryError::TooLong);
            }
            Err(error) => return Err(DeliveryError::Wait(error)),
        }
    }
}

/// Several sinks as one.
#[derive(Debug)]
pub struct Sinks(pub Vec<Arc<dyn EventSink>>);

impl EventSink for Sinks {
    fn publish(&self, event: &Value) {
        self.0.iter().for_each(|sink| sink.publish(event));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_command_reads_each_event_as_a_line() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("got");
        let delivery = Delivery::to_command(format!("cat >> '{}'", file.display())).unwrap();
        for number in 0..3 {
            delivery.publish(&json!({"number": number}));
        }
        drop(delivery);
        assert_eq!(
            std::fs::read_to_string(file).unwrap(),
            "{\"number\":0}\n{\"number\":1}\n{\"number\":2}\n"
        );
    }

    #[test]
    fn a_command_that_fails_or_does_not_read_loses_its_event_alone() {
        let delivery = Delivery::to_command("exit 3".to_owned()).unwrap();
        delivery.publish(&json!({"text": "x".repeat(60_000)}));
        delivery.publish(&json!({"text": "x".repeat(70_000)}));
        let losses = Arc::clone(&delivery.losses);
        drop(delivery);
        let state = losses.state.lock();
        assert_eq!((state.all, state.unsaid), (2, 1), "one line of the log for both");
    }

    #[test]
    fn why_an_event_is_lost_is_known_and_logged_in_these_words() {
        let failed = run("exit 3", "{}").unwrap_err();
        assert_eq!(with_causes(&failed), "the command ends with exit status: 3");
        let too_large = run("cat", &"x".repeat(70_000)).unwrap_err();
        assert_eq!(with_causes(&too_large), "an event of 70000 bytes; a command gets less than 65536");
        let webhook = DeliveryError::from(PostError::Status(404));
        assert_eq!(with_causes(&webhook), "the answer is status 404");
        let no_connection = DeliveryError::from(PostError::Connect(io::ErrorKind::TimedOut.into()));
        assert_eq!(with_causes(&no_connection), "no connection: timed out");
    }

    #[test]
    fn a_full_queue_loses_events_and_does_not_wait() {
        // It ends with this process, or after its 30 s.
        let delivery = Delivery::to_command("exec tail --pid=$PPID -f /dev/null".to_owned()).unwrap();
        for number in 0..QUEUE + 50 {
            delivery.publish(&json!({"number": number}));
        }
        // One may be with the command already. Had a call waited for the command, more would have had room.
        assert!((49..=50).contains(&delivery.lost()), "{}", delivery.lost());
        // Its queue would take hours: nothing waits for it.
        let _: &mut Delivery = Box::leak(Box::new(delivery));
    }
}
