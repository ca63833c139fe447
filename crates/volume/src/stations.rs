//! Where I/O waits to be served: stations that serve one I/O each, or the arm of a disk.

use alloc::{vec, vec::Vec};

use rand_core::Rng;

use crate::{
    Io, Nanos, Op, ServiceTimes,
    disk::{Access, Arm},
};

/// The stations of one volume.
#[derive(Debug, Clone)]
pub(crate) struct Stations {
    /// When each is free; empty where all I/O is served at once.
    all: Vec<Nanos>,
    /// The same for writes, where they have stations of their own.
    writes: Vec<Nanos>,
    arm: Option<Arm>,
}

impl Stations {
    pub(crate) fn new(service: &ServiceTimes) -> Self {
        let stations = |number: Option<u16>| vec![Nanos::ZERO; number.map_or(0, usize::from)];
        Self {
            all: stations(service.parallelism),
            writes: stations(service.write_parallelism),
            arm: service.mechanics.map(|mechanics| Arm::new(mechanics, service.transfer_ps_per_byte)),
        }
    }

    /// As many stations as other service times have; the arm stays where it is.
    pub(crate) fn change(&mut self, service: &ServiceTimes, now: Nanos) {
        self.all.resize(service.parallelism.map_or(0, usize::from), now);
        self.writes.resize(service.write_parallelism.map_or(0, usize::from), now);
        let arm = service.mechanics.map(|mechanics| match self.arm.take() {
            Some(arm) => arm.with(mechanics, service.transfer_ps_per_byte),
            None => Arm::new(mechanics, service.transfer_ps_per_byte),
        });
        self.arm = arm;
    }

    /// When a read or a write has been served, limits apart.
    #[inline]
    pub(crate) fn serve(
        &mut self,
        io: Io,
        continues: bool,
        service: &ServiceTimes,
        now: Nanos,
        rng: &mut impl Rng,
    ) -> Nanos {
        let read_ahead = continues && (io.op == Op::Read || self.arm.is_none());
        let curve = match (&service.sequential, io.op) {
            (Some(sequential), _) if read_ahead => sequential,
            (_, Op::Read) => &service.read,
            _ => &service.write,
        };
        let drawn = curve.draw(rng);
        if let Some(arm) = &mut self.arm {
            let access = Access { offset: io.offset, len: io.len, overhead: drawn, read_ahead };
            return arm.serve(access, now);
        }
        let transfer = u64::from(io.len) * u64::from(service.transfer_ps_per_byte) / 1_000;
        let time = drawn + Nanos(transfer);
        let own = io.op == Op::Write && !self.writes.is_empty();
        let stations = if own { &mut self.writes } else { &mut self.all };
        match stations.iter_mut().min() {
            Some(station) => {
                *station = now.max(*station) + time;
                *station
            }
            None => now + time,
        }
    }

    /// When a flush that takes `time` has been served.
    pub(crate) fn flush(&mut self, time: Nanos, alone: bool, now: Nanos) -> Nanos {
        if !alone {
            return now + time;
        }
        let free = self.all.iter().chain(&self.writes).fold(now, |free, station| free.max(*station));
        let done = free + time;
        for station in self.all.iter_mut().chain(&mut self.writes) {
            *station = done;
        }
        done
    }
}
