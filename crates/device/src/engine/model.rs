//! The physics in force, and what the physics before it counted.

use std::sync::Arc;

use ebbtide_volume::{Array, Grant, Instance, InstanceLimits, Io, Nanos, Stats};
use parking_lot::Mutex;
use rand_xoshiro::Xoshiro256PlusPlus;

/// The model that charges requests, and those that it has replaced.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) array: Array,
    /// Shared with the other volumes of the same instance.
    instance: Option<Arc<Mutex<Instance>>>,
    replaced: Vec<Replaced>,
}

/// A model that charges nothing any more. It is kept, since what it let in flight completes, and
/// counts, as it decided.
#[derive(Debug)]
struct Replaced {
    array: Array,
    /// Its idle time goes on no more: from then on the next model counts it.
    idle_time: Nanos,
}

impl Model {
    pub(super) const fn new(array: Array, instance: Option<Arc<Mutex<Instance>>>) -> Self {
        Self { array, instance, replaced: Vec::new() }
    }

    pub(super) fn submit(&mut self, io: Io, now: Nanos, rng: &mut Xoshiro256PlusPlus) -> Grant {
        match &self.instance {
            Some(shared) => self.array.submit(io, now, rng, Some(&mut shared.lock())),
            None => self.array.submit(io, now, rng, None),
        }
    }

    /// Shares of the burst credits that the instance has left, 0 to 1: of operations and of bytes.
    pub(super) fn instance_balances(&self, now: Nanos) -> Option<(Option<f64>, Option<f64>)> {
        let instance = self.instance.as_ref()?.lock();
        Some((instance.io_balance(now), instance.byte_balance(now)))
    }

    /// The limits of the instance; none without one.
    pub(super) fn instance_limits(&self) -> Option<InstanceLimits> {
        Some(self.instance.as_ref()?.lock().limits())
    }

    /// Charges everything from now on to another model.
    pub(super) fn replace(&mut self, array: Array, instance: Option<Arc<Mutex<Instance>>>, now: Nanos) {
        let mut old = std::mem::replace(&mut self.array, array);
        self.instance = instance;
        let idle_time = old.stats(now).idle_time;
        self.replaced.push(Replaced { array: old, idle_time });
    }

    /// The counters of all models one after the other, and the gauges of the present one.
    pub(super) fn stats(&mut self, now: Nanos) -> Stats {
        let present = self.array.stats(now);
        self.replaced.iter_mut().fold(present, |sum, replaced| {
            let earlier = Stats { idle_time: replaced.idle_time, ..replaced.array.stats(now) };
            Stats {
                idle_time: sum.idle_time + earlier.idle_time,
                volume_iops_exceeded: sum.volume_iops_exceeded + earlier.volume_iops_exceeded,
                volume_throughput_exceeded: sum.volume_throughput_exceeded
                    + earlier.volume_throughput_exceeded,
                instance_iops_exceeded: sum.instance_iops_exceeded + earlier.instance_iops_exceeded,
                instance_throughput_exceeded: sum.instance_throughput_exceeded
                    + earlier.instance_throughput_exceeded,
                credit_share: present.credit_share,
                iops_rate: present.iops_rate,
                ..sum.combined(&earlier)
            }
        })
    }
}
