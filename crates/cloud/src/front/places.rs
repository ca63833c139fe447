//! Which connections hold the places of the endpoint, and which of them gives its place up when all are taken.
//!
//! A client needs no key to connect. So a place is not held by waiting alone: when a client comes and finds no place, the
//! connection goes that has waited longest for a request to be complete. One whose request is carried out never goes.
//! Times come from the caller.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep};

/// What a connection waits for. Those that are listed first give their place up first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// The handshake and the head of its first request.
    Head,
    /// The next request after one that was answered.
    Idle,
    /// The rest of a request whose head is there.
    Body,
    /// That the client takes an answer.
    Answer,
    /// A call.
    Call,
}

impl Phase {
    /// How long a connection is left alone in a phase before its place can be taken; none where it always is. Clients that
    /// are slow on a busy machine must not lose theirs: 256 that connect at once need less than a second for their heads,
    /// and a body of 1 MiB in 2 s is 4 Mbit/s. An answer of 1 MiB in 10 s is 1 Mbit/s.
    const fn grace(self) -> Option<Duration> {
        match self {
            Self::Head | Self::Idle => Some(Duration::from_secs(1)),
            Self::Body => Some(Duration::from_secs(2)),
            Self::Answer => Some(Duration::from_secs(10)),
            Self::Call => None,
        }
    }
}

/// A connection.
#[derive(Debug)]
struct Held {
    peer: IpAddr,
    phase: Phase,
    since: Instant,
    /// Ends it.
    end: oneshot::Sender<()>,
}

/// All connections.
#[derive(Debug, Default)]
struct Connections {
    /// The number of the next one.
    next: u64,
    held: BTreeMap<u64, Held>,
}

/// The connections that hold places.
#[derive(Debug, Clone, Default)]
pub(super) struct Places(Arc<Mutex<Connections>>);

impl Places {
    /// Takes in a connection that waits for its first head. The receiver is answered when it has to end.
    pub(super) fn enter(&self, peer: IpAddr, now: Instant) -> (Arc<Place>, oneshot::Receiver<()>) {
        let (end, ended) = oneshot::channel();
        let mut connections = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = connections.next;
        connections.next += 1;
        connections.held.insert(number, Held { peer, phase: Phase::Head, since: now, end });
        (Arc::new(Place { number, places: self.clone() }), ended)
    }

    /// How many places a peer has.
    pub(super) fn count(&self, peer: IpAddr) -> usize {
        let connections = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        connections.held.values().filter(|held| held.peer == peer).count()
    }

    /// Ends the connection that has the least claim to its place, of one peer or of all; returns its phase. None where all
    /// have to be left alone.
    pub(super) fn end_one(&self, peer: Option<IpAddr>, now: Instant) -> Option<Phase> {
        let mut connections = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let has_no_head = |held: &Held| held.phase <= Phase::Idle;
        let is_of_peer = |held: &Held| peer.is_none_or(|peer| held.peer == peer);
        let waits_for_head = connections.held.values().any(|held| is_of_peer(held) && has_no_head(held));
        let is_over = |held: &Held| {
            is_of_peer(held)
                && held.phase.grace().is_some_and(|grace| now - held.since >= grace)
                // A request that is on its way stays while a connection without one soon goes.
                && (has_no_head(held) || !waits_for_head)
        };
        let (number, _) = (connections.held.iter().filter(|(_, held)| is_over(held)))
            .min_by_key(|(_, held)| (held.phase, held.since))?;
        let number = *number;
        let held = connections.held.remove(&number)?;
        // One whose task has ended meanwhile gives its place up itself.
        let _ = held.end.send(());
        Some(held.phase)
    }
}

/// The place of a connection, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    number: u64,
    places: Places,
}

impl Place {
    /// The connection is in a phase from now on. False where it has to end: nothing may be carried out for it any more.
    pub(super) fn is_now(&self, phase: Phase, now: Instant) -> bool {
        let mut connections = self.places.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(held) = connections.held.get_mut(&self.number) else { return false };
        (held.phase, held.since) = (phase, now);
        true
    }

    /// The client has taken all that was written: an answer ends with it.
    fn is_flushed(&self, now: Instant) {
        let mut connections = self.places.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = connections.held.get_mut(&self.number).filter(|held| held.phase == Phase::Answer)
        {
            (held.phase, held.since) = (Phase::Idle, now);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.0.lock().unwrap_or_else(PoisonError::into_inner).held.remove(&self.number);
    }
}

/// Serves a connection until it has ended, or has to; true where it has to. What is left of it is dropped.
pub(super) async fn ends_before(ended: oneshot::Receiver<()>, served: impl Future<Output = ()>) -> bool {
    let (mut ended, mut served) = (Some(ended), pin!(served));
    poll_fn(|context| {
        match ended.as_mut().map(|ended| Pin::new(ended).poll(context)) {
            Some(Poll::Ready(Ok(()))) => return Poll::Ready(true),
            // Its place is gone already: nobody ends it any more, and a channel is not asked again.
            Some(Poll::Ready(Err(_))) => ended = None,
            _ => {}
        }
        served.as_mut().poll(context).map(|()| false)
    })
    .await
}

/// The stream of a connection, which notes when an answer was written whole: HTTP/1 flushes after that. It ends where the
/// client takes nothing of an answer for too long.
#[derive(Debug)]
pub(super) struct Watched<S> {
    stream: S,
    place: Arc<Place>,
    timeout: Duration,
    /// Runs while the client takes nothing.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<S> Watched<S> {
    pub(super) const fn new(stream: S, place: Arc<Place>, timeout: Duration) -> Self {
        Self { stream, place, timeout, deadline: None }
    }

    /// What a write has come to: one that waits for the client for too long has failed.
    fn in_time<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.deadline = None;
            return written;
        }
        let timeout = self.timeout;
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        match deadline.as_mut().poll(context) {
            Poll::Ready(()) => {
                let why = "the client took nothing of an answer in time";
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, why)))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.in_time(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        let flushed = self.in_time(context, flushed);
        if matches!(flushed, Poll::Ready(Ok(()))) {
            self.place.is_flushed(Instant::now());
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(context);
        self.in_time(context, shut)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.in_time(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn an_unfinished_head_goes_before_an_idle_connection_a_body_and_an_answer_and_a_call_never() {
        let (places, begun) = (Places::default(), Instant::now());
        let at = |seconds: f64| begun + Duration::from_secs_f64(seconds);
        let phases = [Phase::Call, Phase::Answer, Phase::Body, Phase::Idle, Phase::Head, Phase::Head];
        let mut held: Vec<_> = (0_u8..)
            .zip(phases)
            .map(|(number, phase)| {
                let now = at(f64::from(number) / 10.0);
                let (place, ended) = places.enter(PEER, now);
                assert!(place.is_now(phase, now));
                (place, ended)
            })
            .collect();
        // Each is left alone for a while.
        assert_eq!(places.end_one(None, at(0.9)), None);
        let (young, mut is_ended) = places.enter(PEER, at(19.5));
        for expected in [4, 5, 3, 2, 1] {
            assert_eq!(places.end_one(None, at(20.0)), Some(phases[expected]));
            assert_eq!(held[expected].1.try_recv(), Ok(()), "the one that has waited longest");
            assert!(!held[expected].0.is_now(Phase::Call, at(20.0)), "nothing is carried out any more");
            if expected == 3 {
                // A body stays while a head has its second.
                assert_eq!((places.end_one(None, at(20.4)), is_ended.try_recv().is_err()), (None, true));
                assert_eq!(places.end_one(None, at(20.5)), Some(Phase::Head));
                assert_eq!(is_ended.try_recv(), Ok(()));
            }
        }
        drop(young);
        assert_eq!(places.end_one(None, at(1e6)), None);
        assert!(held[0].0.is_now(Phase::Answer, at(20.0)));
        held[0].0.is_flushed(at(21.0));
        assert_eq!(
            (places.end_one(None, at(21.9)), places.end_one(None, at(22.0))),
            (None, Some(Phase::Idle))
        );
        held.clear();
    }

    #[test]
    fn a_connection_that_has_ended_leaves_nothing_behind() {
        let (places, begun) = (Places::default(), Instant::now());
        let (place, _ended) = places.enter(PEER, begun);
        drop(place);
        assert_eq!(places.end_one(None, begun + Duration::from_secs(60)), None);
        assert_eq!(places.0.lock().unwrap().held.len(), 0);
    }
}
