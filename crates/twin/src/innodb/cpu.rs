//! The processors: a queue of clients, and threads of a core that slow each other down.

use std::collections::VecDeque;

use ebbtide_volume::Nanos;

use super::memory::Memory;

/// The machine under the server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    /// Processors that the operating system sees.
    pub vcpus: u32,
    /// Threads of a core: 2 on most instance types, 1 on Graviton.
    pub threads_per_core: u32,
    /// Memory that the server and the page cache of its files share; None where it is not known.
    pub memory: Option<Memory>,
}

/// What a second busy thread adds to a core's throughput: a quarter. Gains of about this size are commonly reported for
/// server loads; the figure is assumed, not measured here.
const SECOND_THREAD: f64 = 0.25;

impl Machine {
    /// Work that is done at a time by so many busy processors, in units of one core to itself.
    #[must_use]
    pub fn capacity(&self, busy: f64) -> f64 {
        let cores = (f64::from(self.vcpus) / f64::from(self.threads_per_core.max(1))).max(1.0);
        busy.min(cores) + (busy - cores).max(0.0) * SECOND_THREAD
    }

    /// How much longer work takes with so many busy processors.
    #[must_use]
    pub fn slowdown(&self, busy: f64) -> f64 {
        if busy <= 1.0 { 1.0 } else { busy / self.capacity(busy) }
    }
}

/// The processors with those that wait for them.
#[derive(Debug)]
pub(crate) struct Processors {
    machine: Machine,
    busy: u32,
    waiting: VecDeque<(usize, f64)>,
    busy_time: f64,
    since: Nanos,
}

impl Processors {
    pub(crate) const fn new(machine: Machine) -> Self {
        Self { machine, busy: 0, waiting: VecDeque::new(), busy_time: 0.0, since: Nanos::ZERO }
    }

    /// A client needs a processor for so many nanoseconds of work; returns when it is done, where one is free.
    pub(crate) fn request(&mut self, client: usize, work: f64, now: Nanos) -> Option<Nanos> {
        if self.busy < self.machine.vcpus {
            return Some(self.start(work, now));
        }
        self.waiting.push_back((client, work));
        None
    }

    fn start(&mut self, work: f64, now: Nanos) -> Nanos {
        self.count(now);
        self.busy += 1;
        let time = work * self.machine.slowdown(f64::from(self.busy));
        now + Nanos(super::cleaner::whole(time))
    }

    /// A client is done; returns the next one that gets its processor, and until when.
    pub(crate) fn release(&mut self, now: Nanos) -> Option<(usize, Nanos)> {
        self.count(now);
        self.busy -= 1;
        let (client, work) = self.waiting.pop_front()?;
        Some((client, self.start(work, now)))
    }

    fn count(&mut self, now: Nanos) {
        self.busy_time += f64::from(self.busy) * now.since(self.since).as_secs_f64();
        self.since = now;
    }

    /// Seconds of all processors that were busy.
    pub(crate) fn busy_seconds(&mut self, now: Nanos) -> f64 {
        self.count(now);
        self.busy_time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_threads_of_a_core_do_a_quarter_more_than_one() {
        let machine = Machine { vcpus: 8, threads_per_core: 2, memory: None };
        assert_eq!((machine.capacity(4.0), machine.capacity(8.0)), (4.0, 5.0));
        assert_eq!((machine.slowdown(1.0), machine.slowdown(4.0), machine.slowdown(8.0)), (1.0, 1.0, 1.6));
    }

    #[test]
    fn a_client_beyond_the_last_processor_waits_for_one() {
        let mut processors = Processors::new(Machine { vcpus: 1, threads_per_core: 1, memory: None });
        assert_eq!(processors.request(0, 500.0, Nanos(0)), Some(Nanos(500)));
        assert_eq!(processors.request(1, 300.0, Nanos(100)), None);
        assert_eq!(processors.release(Nanos(500)), Some((1, Nanos(800))));
        assert_eq!(processors.release(Nanos(800)), None);
        assert!((processors.busy_seconds(Nanos(1_000)) - 800e-9).abs() < 1e-15);
    }
}
