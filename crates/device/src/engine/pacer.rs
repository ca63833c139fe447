//! The pacer: threads that sleep until the model's completion times.

use std::{
    sync::Arc,
    thread::{Builder, JoinHandle},
};

use super::core::{Core, Step};
use crate::sys::{Role, enter_data_path};

/// Threads of one volume's pacer. One sleeps until the next completion; the other takes over that
/// duty while the first is busy with a completion, so that a slow write on the host delays no other.
pub(super) const THREADS: usize = 2;

/// Starts the threads. They end when the engine stops.
pub(super) fn spawn(core: &Arc<Core>) -> std::io::Result<Vec<JoinHandle<()>>> {
    (0..THREADS)
        .map(|number| {
            let core = Arc::clone(core);
            Builder::new().name(format!("pacer-{number}")).spawn(move || run(&core))
        })
        .collect()
}

fn run(core: &Core) {
    *core.lateness.scheduling.lock() = enter_data_path(Role::Pacer);
    loop {
        match core.next_step() {
            Step::Perform(pending) => core.perform_due(pending),
            Step::Follow(listened) => {
                core.followers.sleep(listened, None);
                core.stop_following();
            }
            Step::Lead(listened, until) => {
                core.leader.sleep(listened, core.clock.to_monotonic(until));
                core.stop_leading();
            }
            Step::End => return,
        }
    }
}
