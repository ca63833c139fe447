//! When each COMMIT was sent and when its OK was read: what a cut at any instant may have lost.
//!
//! The time of sending is taken before the COMMIT goes out, and the time of the acknowledgement after
//! the OK was read, each under the lock under which it is written down. So what [`Journal::at`] returns
//! about an instant that is past never changes: a commit that was acknowledged before it is in the
//! answer, even where the client has not come to anything else since.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Not acknowledged: under way, or the connection was lost.
const NEVER: u64 = u64::MAX;

/// What a server that was cut off at an instant must have of a client, and what it may have at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// The client, from 0.
    pub client: u32,
    /// The last commit whose OK the client had read before the instant; 0 where there is none.
    pub acknowledged: u64,
    /// When it had read it. None where that was before the journal's start.
    pub acknowledged_at: Option<Instant>,
    /// The last commit that the client had sent: never less than `acknowledged`, at most one more.
    pub sent: u64,
}

/// Why the journal does not know what was acknowledged at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// The instant is before the load's start.
    #[error("the instant is before the start of the load: take it after `start` has returned")]
    BeforeStart,
    /// The instant is not over yet.
    #[error("the instant is in the future: ask after it")]
    Future,
    /// The journal has let go of that time.
    #[error(
        "the journal no longer knows what client {client} had committed then: it keeps {kept} commits of \
         each client; ask sooner, or raise `journal_commits`"
    )]
    Forgotten {
        /// The client.
        client: u32,
        /// How many commits of each client are kept.
        kept: usize,
    },
}

/// The journal of a load. Clones are the same journal.
#[derive(Debug, Clone)]
pub struct Journal(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    start: Instant,
    /// Commits kept of each client.
    kept: usize,
    clients: Vec<Mutex<Tail>>,
}

/// The last commits of a client, without a gap.
#[derive(Debug)]
struct Tail {
    /// The client's last commit before the journal began.
    base: u64,
    /// The number of the first entry.
    first: u64,
    entries: VecDeque<Entry>,
}

/// Times in ns since the journal's start.
#[derive(Debug, Clone, Copy)]
struct Entry {
    sent: u64,
    acknowledged: u64,
}

impl Tail {
    fn entry(&self, seq: u64) -> Option<Entry> {
        let at = usize::try_from(seq.checked_sub(self.first)?).ok()?;
        self.entries.get(at).copied()
    }
}

impl Journal {
    /// An empty journal of clients whose last commits are `base`. Keeps up to `commits` of all clients
    /// together, at 16 bytes each, and at least two of each.
    pub(super) fn new(base: &[u64], commits: usize) -> Self {
        let tail = |&base| Tail { base, first: base + 1, entries: VecDeque::new() };
        let clients = base.iter().map(|base| Mutex::new(tail(base))).collect();
        Self(Arc::new(Inner { start: Instant::now(), kept: (commits / base.len().max(1)).max(2), clients }))
    }

    /// Notes that the COMMIT numbered `seq` is about to be sent. Must come before it goes out.
    pub(super) fn sent(&self, client: u32, seq: u64) {
        let mut tail = self.tail(client);
        let next = tail.first + u64::try_from(tail.entries.len()).expect("fewer entries than 2^64");
        assert_eq!(seq, next, "a client sends its commits one after the other");
        if tail.entries.len() == self.0.kept {
            tail.entries.pop_front();
            tail.first += 1;
        }
        tail.entries.push_back(Entry { sent: self.now(), acknowledged: NEVER });
    }

    /// Notes that the OK to the COMMIT sent last was read.
    pub(super) fn acknowledged(&self, client: u32) {
        let mut tail = self.tail(client);
        let now = self.now();
        tail.entries.back_mut().expect("an acknowledgement follows a commit").acknowledged = now;
    }

    /// When the load began.
    #[must_use]
    pub fn start(&self) -> Instant {
        self.0.start
    }

    /// What each client had sent, and what was acknowledged to it, at an instant that is past.
    ///
    /// # Errors
    /// [`JournalError`]: the instant is not one that the journal covers.
    pub fn at(&self, at: Instant) -> Result<Vec<Expected>, JournalError> {
        let since = at.checked_duration_since(self.0.start).ok_or(JournalError::BeforeStart)?;
        if at > Instant::now() {
            return Err(JournalError::Future);
        }
        let since = nanos(since);
        (0..self.clients()).map(|client| self.of_client(client, since)).collect()
    }

    fn of_client(&self, client: u32, since: u64) -> Result<Expected, JournalError> {
        let tail = self.tail(client);
        let count = |of: &dyn Fn(&Entry) -> bool| {
            u64::try_from(tail.entries.partition_point(of)).expect("fewer entries than 2^64")
        };
        // At the very instant: sent counts, acknowledged does not, so that neither can accuse falsely.
        let sent = tail.first - 1 + count(&|entry| entry.sent <= since);
        let acknowledged = tail.first - 1 + count(&|entry| entry.acknowledged < since);
        if acknowledged < tail.first && tail.first > tail.base + 1 {
            return Err(JournalError::Forgotten { client, kept: self.0.kept });
        }
        let acknowledged_at = tail.entry(acknowledged).map(|entry| self.instant(entry.acknowledged));
        Ok(Expected { client, acknowledged, acknowledged_at, sent })
    }

    /// When the OK to a commit was read. None where it never was, or the journal no longer knows.
    #[must_use]
    pub fn acknowledged_at(&self, client: u32, seq: u64) -> Option<Instant> {
        let mutex = self.0.clients.get(usize::try_from(client).ok()?)?;
        let entry = lock(mutex).entry(seq)?;
        (entry.acknowledged != NEVER).then(|| self.instant(entry.acknowledged))
    }

    /// The commits of a client from `first` to `last` that were acknowledged, with their times, as far as
    /// the journal still knows them.
    #[must_use]
    pub fn acknowledgements(&self, client: u32, first: u64, last: u64) -> Vec<(u64, Instant)> {
        let Some(mutex) = usize::try_from(client).ok().and_then(|at| self.0.clients.get(at)) else {
            return Vec::new();
        };
        let tail = lock(mutex);
        let acknowledged =
            |entry: &Entry| (entry.acknowledged != NEVER).then(|| self.instant(entry.acknowledged));
        (tail.first..)
            .zip(&tail.entries)
            .filter(|(seq, _)| (first..=last).contains(seq))
            .filter_map(|(seq, entry)| Some((seq, acknowledged(entry)?)))
            .collect()
    }

    /// Number of clients.
    #[must_use]
    pub fn clients(&self) -> u32 {
        u32::try_from(self.0.clients.len()).expect("64 clients at most")
    }

    fn tail(&self, client: u32) -> MutexGuard<'_, Tail> {
        lock(&self.0.clients[usize::try_from(client).expect("64 clients at most")])
    }

    fn now(&self) -> u64 {
        nanos(self.0.start.elapsed())
    }

    fn instant(&self, since: u64) -> Instant {
        self.0.start + Duration::from_nanos(since)
    }
}

/// A client that panicked has left whole entries behind.
fn lock(mutex: &Mutex<Tail>) -> MutexGuard<'_, Tail> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).expect("a load ends within 584 years")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A later instant than every one before, even on a coarse clock.
    fn tick() -> Instant {
        let before = Instant::now();
        loop {
            let now = Instant::now();
            if now > before {
                return now;
            }
        }
    }

    /// Past `at` for sure, as `Journal::at` demands.
    fn ask(journal: &Journal, at: Instant) -> Vec<Expected> {
        tick();
        journal.at(at).unwrap()
    }

    #[test]
    fn an_instant_between_sending_and_the_answer_has_one_more_sent_than_acknowledged() {
        let journal = Journal::new(&[0, 7], 100);
        let idle = tick();
        journal.sent(1, 8);
        let sent = tick();
        journal.acknowledged(1);
        let done = tick();
        let seen = |at| ask(&journal, at).iter().map(|e| (e.acknowledged, e.sent)).collect::<Vec<_>>();
        assert_eq!(seen(idle), [(0, 0), (7, 7)]);
        assert_eq!(seen(sent), [(0, 0), (7, 8)]);
        assert_eq!(seen(done), [(0, 0), (8, 8)]);
        let last = ask(&journal, done)[1].acknowledged_at.unwrap();
        assert!(sent < last && last < done);
        assert_eq!(ask(&journal, sent)[1].acknowledged_at, None, "acknowledged before the journal");
    }

    #[test]
    fn a_commit_without_an_answer_stays_unacknowledged_for_ever() {
        let journal = Journal::new(&[0], 100);
        journal.sent(0, 1);
        let at = tick();
        assert_eq!((ask(&journal, at)[0].acknowledged, ask(&journal, at)[0].sent), (0, 1));
        assert_eq!(journal.acknowledged_at(0, 1), None);
    }

    #[test]
    fn a_journal_that_has_let_go_of_an_instant_reports_it_and_never_guesses() {
        let journal = Journal::new(&[0], 4);
        let mut instants = Vec::new();
        for seq in 1..=10 {
            journal.sent(0, seq);
            journal.acknowledged(0);
            instants.push(tick());
        }
        for (at, instant) in instants.iter().enumerate() {
            let seq = u64::try_from(at).unwrap() + 1;
            match journal.at(*instant) {
                Ok(expected) => assert_eq!((expected[0].acknowledged, expected[0].sent), (seq, seq)),
                Err(error) => {
                    assert_eq!(error, JournalError::Forgotten { client: 0, kept: 4 });
                    assert!(seq <= 6, "{seq} is still kept");
                }
            }
        }
        assert!(journal.at(instants[6]).is_ok() && journal.at(instants[5]).is_err());
        let known = journal.acknowledgements(0, 1, u64::MAX);
        assert_eq!(known.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(), [7, 8, 9, 10]);
        assert_eq!(journal.acknowledgements(0, 8, 8), known[1..2]);
        assert_eq!(journal.acknowledged_at(0, 8), Some(known[1].1));
    }

    #[test]
    fn an_instant_before_the_start_and_one_to_come_are_refused() {
        let before = Instant::now();
        tick();
        let journal = Journal::new(&[0], 4);
        assert_eq!(journal.at(before), Err(JournalError::BeforeStart));
        assert_eq!(journal.at(Instant::now() + Duration::from_secs(60)), Err(JournalError::Future));
    }

    #[test]
    fn an_answer_about_a_past_instant_never_changes() {
        let journal = Journal::new(&[0; 4], 1 << 20);
        std::thread::scope(|scope| {
            for client in 0..4 {
                let journal = &journal;
                scope.spawn(move || {
                    for seq in 1..=20_000 {
                        journal.sent(client, seq);
                        journal.acknowledged(client);
                    }
                });
            }
            let mut asked = Vec::new();
            for _ in 0..2_000 {
                let at = tick();
                asked.push((at, ask(&journal, at)));
            }
            for (at, answer) in asked {
                assert_eq!(journal.at(at).unwrap(), answer);
            }
        });
    }
}
