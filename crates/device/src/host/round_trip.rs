//! What a local round trip costs: the time from a message to the answer of a thread that sleeps until it comes.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use ebbtide_volume::Nanos;

use crate::clock::Clock;

/// Round trips of a measurement: about 0.2 s with the pauses, and a median that a few disturbed ones do not move.
const ROUNDS: u32 = 300;
/// What comes before each: about as long as a read of a gp3 volume takes. Both processors are idle by then, as they are while
/// a server waits for one.
const PAUSE: Duration = Duration::from_micros(500);
/// Bytes of a message: those of a prepared statement with one parameter, about.
const MESSAGE: usize = 32;
/// After this an answer does not come any more.
const LONGEST: Duration = Duration::from_secs(1);

/// The median time of a round trip between two threads of this host over a Unix socket: the system calls of both ends, and
/// the two wake-ups of idle processors. `clock` measures it, within about 0.2 s.
///
/// # Errors
/// The kernel gives no socket pair or no thread, or no answer comes within a second.
pub fn local_round_trip(clock: &dyn Clock) -> io::Result<Nanos> {
    median_of(clock, ROUNDS, PAUSE)
}

fn median_of(clock: &dyn Clock, rounds: u32, pause: Duration) -> io::Result<Nanos> {
    let (near, far) = UnixStream::pair()?;
    near.set_read_timeout(Some(LONGEST))?;
    let mut times = thread::scope(|scope| {
        thread::Builder::new().name("round-trip".into()).spawn_scoped(scope, move || answer(far))?;
        // Its end closes the socket, and with that ends the other thread.
        exchange(near, clock, rounds, pause)
    })?;
    times.sort_unstable();
    Ok(times[times.len() / 2])
}

/// Times of round trips, each after a pause.
fn exchange(mut near: UnixStream, clock: &dyn Clock, rounds: u32, pause: Duration) -> io::Result<Vec<Nanos>> {
    let mut message = [0; MESSAGE];
    let round = |_| -> io::Result<Nanos> {
        thread::sleep(pause);
        let sent = clock.now();
        near.write_all(&message)?;
        near.read_exact(&mut message)?;
        Ok(clock.now().since(sent))
    };
    (0..rounds).map(round).collect()
}

/// Sends back what comes, until the other end is closed.
fn answer(mut far: UnixStream) {
    let mut message = [0; MESSAGE];
    while far.read_exact(&mut message).is_ok() && far.write_all(&message).is_ok() {}
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::clock::MonotonicClock;

    /// A clock that reads the next of these at each look.
    #[derive(Debug)]
    struct Script(Vec<u64>, AtomicUsize);

    impl Clock for Script {
        fn now(&self) -> Nanos {
            Nanos(self.0[self.1.fetch_add(1, Ordering::Relaxed)])
        }

        fn to_monotonic(&self, _at: Nanos) -> Option<Nanos> {
            None
        }
    }

    #[test]
    fn the_median_of_the_times_between_a_message_and_its_answer_is_taken() {
        // Of 40, 90, 30, 5,000 and 35 us.
        let looks = [100, 140, 200, 290, 300, 330, 1_000, 6_000, 7_000, 7_035];
        let clock = Script(looks.map(|us| us * 1_000).into(), AtomicUsize::new(0));
        assert_eq!(median_of(&clock, 5, Duration::ZERO).unwrap(), Nanos::from_us(40));
        assert_eq!(clock.1.into_inner(), looks.len(), "the pauses are not in it");
    }

    #[test]
    fn a_round_trip_of_this_host_takes_microseconds() {
        let clock = MonotonicClock::new();
        let began = clock.now();
        let took = local_round_trip(&clock).unwrap();
        let all = clock.now().since(began);
        println!("{took:?} of {all:?}");
        // Half of the round trips took as long, or longer.
        assert!(Nanos(500) < took && took.0 * u64::from(ROUNDS / 2) < all.0, "{took:?} of {all:?}");
    }
}
