//! One volume, or several striped as RAID 0: what an export or a simulation drives.

use alloc::vec::Vec;
use core::{cmp::Ordering, ops::Range};

use rand_core::Rng;

use crate::{
    AtomicUnit, Credits, Durability, Grant, Instance, Io, Limits, LimitsError, LoadProgress, LoadState,
    Loader, Modification, Nanos, Op, RateLimit, Stats, Volume,
};

/// Members that cannot be striped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArrayError {
    /// An array of nothing.
    #[error("an array needs at least one volume")]
    NoMembers,
    /// A chunk that is no multiple of 4 KiB.
    #[error("the RAID 0 chunk is {0} bytes; it must be a multiple of 4096")]
    Chunk(u64),
    /// What was kept of the loading belongs to another array.
    #[error("the state of loading is that of {states} volumes; the array has {members}")]
    LoadStates {
        /// States that were given.
        states: usize,
        /// Members of the array.
        members: usize,
    },
    /// One member's limits are wrong.
    #[error(transparent)]
    Limits(#[from] LimitsError),
}

/// Volumes striped as RAID 0; with one member, that volume.
#[derive(Debug, Clone)]
pub struct Array {
    members: Vec<Volume>,
    chunk_bytes: u64,
    /// Bytes of each member that whole stripes use.
    member_bytes: u64,
}

impl Array {
    /// A single volume.
    ///
    /// # Errors
    /// Where the limits contradict themselves.
    pub fn single(limits: Limits, now: Nanos) -> Result<Self, ArrayError> {
        Self::striped([limits].into(), 4096, now)
    }

    /// Volumes striped with a chunk in bytes. As with Linux md RAID 0 of equal members, every
    /// member gives the size of the smallest one, rounded down to whole chunks.
    ///
    /// # Errors
    /// No members, a chunk that is no multiple of 4 KiB, or limits that contradict themselves.
    pub fn striped(members: Vec<Limits>, chunk_bytes: u64, now: Nanos) -> Result<Self, ArrayError> {
        if chunk_bytes == 0 || !chunk_bytes.is_multiple_of(4096) {
            return Err(ArrayError::Chunk(chunk_bytes));
        }
        let smallest = members.iter().map(|limits| limits.size_bytes).min().ok_or(ArrayError::NoMembers)?;
        let members: Vec<_> =
            members.into_iter().map(|limits| Volume::new(limits, now)).collect::<Result<_, _>>()?;
        let member_bytes = if members.len() == 1 { smallest } else { smallest / chunk_bytes * chunk_bytes };
        Ok(Self { members, chunk_bytes, member_bytes })
    }

    /// Usable size in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.member_bytes * self.members.len() as u64
    }

    /// The members, in stripe order.
    #[must_use]
    pub fn members(&self) -> &[Volume] {
        &self.members
    }

    /// What a power cut leaves: the weakest of the members' promises, with the caches of all. A unit
    /// that the chunks do not keep on one member is not kept whole either.
    #[must_use]
    pub fn durability(&self) -> Durability {
        let all = self.members.iter().map(|member| member.limits().durability);
        let weakest = all
            .reduce(|a, b| Durability {
                atomic_unit: a.atomic_unit.min(b.atomic_unit),
                volatile_cache_bytes: a.volatile_cache_bytes + b.volatile_cache_bytes,
            })
            .expect("an array has at least one member");
        let splits = self.members.len() > 1 && !self.chunk_bytes.is_multiple_of(weakest.atomic_unit.bytes());
        // A chunk is a multiple of 4 KiB.
        if splits { Durability { atomic_unit: AtomicUnit::FourKib, ..weakest } } else { weakest }
    }

    /// Submits an I/O at `now`. It completes when its last part does. The chunks of it that are on one member follow each
    /// other there, and are one part (the block layer of Linux merges what it was given at one time).
    pub fn submit(
        &mut self,
        io: Io,
        now: Nanos,
        rng: &mut impl Rng,
        mut instance: Option<&mut Instance>,
    ) -> Grant {
        if let [single] = &mut self.members[..] {
            return single.submit(io, now, rng, instance);
        }
        let mut whole = Grant { completes: now, unthrottled: now, operations: 0, bytes: 0 };
        let mut add = |part: Grant| {
            whole = Grant {
                completes: whole.completes.max(part.completes),
                unthrottled: whole.unthrottled.max(part.unthrottled),
                operations: whole.operations + part.operations,
                bytes: whole.bytes + part.bytes,
            }
        };
        if io.op == Op::Flush {
            for member in &mut self.members {
                add(member.submit(io, now, rng, instance.as_deref_mut()));
            }
            return whole;
        }
        if io.len == 0 {
            return whole;
        }
        let end = io.offset + u64::from(io.len);
        let (first, last) = (io.offset / self.chunk_bytes, (end - 1) / self.chunk_bytes);
        let width = self.members.len() as u64;
        for chunk in first..=last.min(first + width - 1) {
            let member = usize::try_from(chunk % width).expect("a member's number fits in memory");
            let (from, to) = (self.on_member(member, io.offset), self.on_member(member, end));
            let len = u32::try_from(to - from).expect("a part is no longer than its I/O");
            let part = Io { op: io.op, offset: from, len };
            add(self.members[member].submit(part, now, rng, instance.as_deref_mut()));
        }
        whole
    }

    /// How many bytes of the first `upto` of the array are on a member: they are the first ones there.
    fn on_member(&self, member: usize, upto: u64) -> u64 {
        let (chunk, within) = (upto / self.chunk_bytes, upto % self.chunk_bytes);
        let width = self.members.len() as u64;
        let of_row = match (chunk % width).cmp(&(member as u64)) {
            Ordering::Greater => self.chunk_bytes,
            Ordering::Equal => within,
            Ordering::Less => 0,
        };
        chunk / width * self.chunk_bytes + of_row
    }

    /// The loading, not begun, of a volume that is made from a snapshot with data in these ranges of bytes: a state for
    /// each member, since each would be made from a snapshot of its own.
    #[must_use]
    pub fn new_load_states(&self, data: &[Range<u64>], since: Nanos) -> Vec<LoadState> {
        let of_member = |member| {
            let part =
                |range: &Range<u64>| self.on_member(member, range.start)..self.on_member(member, range.end);
            LoadState::new(data.iter().map(part), since)
        };
        (0..self.members.len()).map(of_member).collect()
    }

    /// Has everything that the states call missing loaded from now on, before it can be used; each member loads by itself.
    ///
    /// # Errors
    /// [`ArrayError::LoadStates`] unless there is one state for each member.
    pub fn begin_loading(&mut self, loader: &Loader, states: Vec<LoadState>) -> Result<(), ArrayError> {
        let members = self.members.len();
        if states.len() != members {
            return Err(ArrayError::LoadStates { states: states.len(), members });
        }
        for (member, state) in self.members.iter_mut().zip(states) {
            member.begin_loading(loader.clone(), state);
        }
        Ok(())
    }

    /// What is to be kept of the loading, a state for each member; empty where there is none.
    #[must_use]
    pub fn load_states(&self, now: Nanos) -> Vec<LoadState> {
        self.members.iter().filter_map(|member| member.load_state(now)).collect()
    }

    /// How far the loading of all members together is; none where there is none.
    #[must_use]
    pub fn load_progress(&self, now: Nanos) -> Option<LoadProgress> {
        let all = self.members.iter().filter_map(|member| member.load_progress(now));
        all.reduce(LoadProgress::combined)
    }

    /// Counts everything that has completed by `now`.
    pub fn advance(&mut self, now: Nanos) {
        for member in &mut self.members {
            member.advance(now);
        }
    }

    /// The counters of all members together at `now`. In an array an I/O that spans members counts
    /// once on each.
    pub fn stats(&mut self, now: Nanos) -> Stats {
        let all = self.members.iter_mut().map(|member| member.stats(now));
        all.reduce(|a, b| a.combined(&b)).expect("an array has at least one member")
    }

    /// The lowest share of burst credits among the members, 0 to 1; none without credits.
    #[must_use]
    pub fn credit_share(&self, now: Nanos) -> Option<f64> {
        self.members.iter().filter_map(|member| member.credit_share(now)).reduce(f64::min)
    }

    /// The burst credits of all members together; none without credits.
    #[must_use]
    pub fn credits(&self, now: Nanos) -> Option<Credits> {
        self.members.iter().filter_map(|member| member.credits(now)).reduce(Credits::combined)
    }

    /// The limit of operations of all members together; none where a member has none.
    #[must_use]
    pub fn iops_limit(&self) -> Option<RateLimit> {
        self.limits_together(|limits| limits.iops)
    }

    /// The limit of bytes of all members together; none where a member has none.
    #[must_use]
    pub fn throughput_limit(&self) -> Option<RateLimit> {
        self.limits_together(|limits| limits.throughput)
    }

    fn limits_together(&self, select: impl Fn(&Limits) -> Option<RateLimit>) -> Option<RateLimit> {
        let none = RateLimit { rate: 0, ceiling: 0, allowance: 0, credits: 0 };
        self.members.iter().try_fold(none, |sum, member| {
            let limit = select(member.limits())?;
            Some(RateLimit {
                rate: sum.rate + limit.rate,
                ceiling: sum.ceiling + limit.ceiling,
                allowance: sum.allowance + limit.allowance,
                credits: sum.credits + limit.credits,
            })
        })
    }

    /// Sets every member's credits to a share (0 to 1) of their capacity.
    pub fn set_credit_share(&mut self, share: f64, now: Nanos) {
        for member in &mut self.members {
            member.set_credit_share(share, now);
        }
    }

    /// Begins a modification of every member; the sizes follow when it is optimizing.
    ///
    /// # Errors
    /// Where the target limits contradict themselves; nothing has changed then.
    pub fn modify(
        &mut self,
        target: &Limits,
        started: Nanos,
        optimizing: Nanos,
        completes: Nanos,
    ) -> Result<(), LimitsError> {
        target.check()?;
        for member in &mut self.members {
            let source = member.limits().clone();
            member.modify(Modification { source, target: target.clone(), started, optimizing, completes });
        }
        let whole = if self.members.len() == 1 { 1 } else { self.chunk_bytes };
        self.member_bytes = target.size_bytes / whole * whole;
        Ok(())
    }
}
