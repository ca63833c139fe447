//! How many servers recover at the same time.

use parking_lot::{Condvar, Mutex};

/// Lets a number of servers recover side by side. More checkers than that use the time in which others wait for a disk or for
/// a server's end; more recoveries would make each other slower, and their times are results.
#[derive(Debug)]
pub(super) struct RecoveryGate {
    free: Mutex<usize>,
    freed: Condvar,
}

impl RecoveryGate {
    /// For so many servers, one at least.
    pub(super) fn new(servers: usize) -> Self {
        Self { free: Mutex::new(servers.max(1)), freed: Condvar::new() }
    }

    /// Waits until one more server may recover. It may until the answer is dropped.
    pub(super) fn enter(&self) -> Recovering<'_> {
        let mut free = self.free.lock();
        while *free == 0 {
            self.freed.wait(&mut free);
        }
        *free -= 1;
        Recovering { gate: self }
    }
}

/// A server that recovers.
#[derive(Debug)]
pub(super) struct Recovering<'a> {
    gate: &'a RecoveryGate,
}

impl Drop for Recovering<'_> {
    fn drop(&mut self) {
        *self.gate.free.lock() += 1;
        self.gate.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    #[test]
    fn no_more_servers_recover_than_the_gate_is_for_and_all_get_their_turn() {
        for (servers, most) in [(0, 1), (1, 1), (2, 2)] {
            let gate = RecoveryGate::new(servers);
            let [inside, highest, done] = [const { AtomicUsize::new(0) }; 3];
            std::thread::scope(|scope| {
                for _ in 0..6 {
                    scope.spawn(|| {
                        let recovering = gate.enter();
                        highest.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        std::thread::sleep(Duration::from_millis(20));
                        inside.fetch_sub(1, Ordering::SeqCst);
                        drop(recovering);
                        done.fetch_add(1, Ordering::SeqCst);
                    });
                }
            });
            assert!(highest.into_inner() <= most, "{servers}");
            assert_eq!(done.into_inner(), 6, "{servers}");
        }
    }

    #[test]
    fn two_servers_recover_side_by_side_where_there_is_room_for_two() {
        let gate = RecoveryGate::new(2);
        let both = [gate.enter(), gate.enter()];
        assert_eq!(*gate.free.lock(), 0);
        drop(both);
        assert_eq!(*gate.free.lock(), 2);
    }
}
