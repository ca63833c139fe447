//! What an event loop needs of the kernel: to be woken by an answer, by the clock, by a new connection.

use std::os::fd::{AsFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use crate::error::LoadError;

/// Who rang.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadySource {
    /// The timer; nothing to do but look at the clock.
    Timer,
    /// A connection was made.
    Connector,
    /// The client at this place has something to read, or room to write.
    Client(usize),
}

const TIMER: u64 = u64::MAX;
const CONNECTOR: u64 = u64::MAX - 1;
/// Answers taken from the kernel at a time.
const EVENTS: usize = 256;

/// An epoll instance with a timer.
pub(super) struct Kernel {
    epoll: OwnedFd,
    /// A timer of its own, because the sleep of a wait is rounded to milliseconds and padded by the
    /// thread's slack.
    timer: OwnedFd,
    events: Vec<epoll::Event>,
}

impl Kernel {
    pub(super) fn new() -> Result<Self, LoadError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(LoadError::system("epoll"))?;
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags).map_err(LoadError::system("a timer"))?;
        let kernel = Self { epoll, timer, events: Vec::with_capacity(EVENTS) };
        kernel.add(&kernel.timer, TIMER)?;
        Ok(kernel)
    }

    fn add(&self, source: impl AsFd, token: u64) -> Result<(), LoadError> {
        // Edge-triggered: each answer rings once, and nothing is asked again.
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&self.epoll, source, epoll::EventData::new_u64(token), flags)
            .map_err(LoadError::system("to watch a descriptor"))
    }

    pub(super) fn watch_connector(&self, connector: impl AsFd) -> Result<(), LoadError> {
        self.add(connector, CONNECTOR)
    }

    /// Watches a client's answers.
    pub(super) fn watch(&self, client: usize, source: impl AsFd) -> Result<(), LoadError> {
        self.add(source, token(client))
    }

    /// Also watches for room to write, or stops to.
    pub(super) fn watch_room(&self, client: usize, source: impl AsFd, on: bool) -> Result<(), LoadError> {
        let mut flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        flags.set(epoll::EventFlags::OUT, on);
        epoll::modify(&self.epoll, source, epoll::EventData::new_u64(token(client)), flags)
            .map_err(LoadError::system("to watch a socket"))
    }

    /// Forgets a client's socket before it is closed.
    pub(super) fn forget(&self, source: impl AsFd) {
        // A socket that is not watched is forgotten already.
        let _ = epoll::delete(&self.epoll, source);
    }

    /// Rings the timer in `nanos`.
    pub(super) fn set_timer(&self, in_ns: u64) -> Result<(), LoadError> {
        let it_value = timespec(in_ns.max(1));
        let spec = Itimerspec { it_interval: timespec(0), it_value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &spec)
            .map(drop)
            .map_err(LoadError::system("to set a timer"))
    }

    /// Sleeps until something rings, `limit_ns` at most.
    pub(super) fn wait(&mut self, limit_ns: u64) -> Result<(), LoadError> {
        self.events.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), Some(&timespec(limit_ns))) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(LoadError::system("to wait for answers")(errno)),
        }
    }

    /// How many rang in the last wait.
    pub(super) fn rang(&self) -> usize {
        self.events.len()
    }

    /// Who rang, by its place in the last wait.
    pub(super) fn ready_source(&self, at: usize) -> ReadySource {
        match self.events[at].data.u64() {
            TIMER => ReadySource::Timer,
            CONNECTOR => ReadySource::Connector,
            token => ReadySource::Client(usize::try_from(token).expect("a token of ours")),
        }
    }
}

fn token(client: usize) -> u64 {
    u64::try_from(client).expect("a place fits")
}

fn timespec(nanos: u64) -> Timespec {
    let signed = |value: u64| i64::try_from(value).expect("seconds and nanoseconds fit");
    Timespec { tv_sec: signed(nanos / 1_000_000_000), tv_nsec: signed(nanos % 1_000_000_000) }
}
