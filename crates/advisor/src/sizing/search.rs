//! The cheapest volumes, and the cheapest instance, that meet an objective.
//!
//! More size, IOPS, throughput or members never carry less, and never cost less. So the least that carries the load is found
//! by halving, and what cannot be cheaper than the best one so far is passed over: the answer is that of trying everything on
//! the same steps of IOPS and throughput.

use std::cell::OnceCell;

use ebbtide_catalog::{
    Catalog, InstancePrice, InstanceType, IopsRange, Prices, Raid0, Resolved, Spec, ThroughputRange, Usd,
    VolumeSpec,
};
use ebbtide_volume::{Accounting, GIB, Limits};

use super::carry::Carried;
use super::charge::Charges;
use super::demand::Demand;
use super::inconsistent::LARGEST_UNIT;
use super::objective::Objective;
use super::setup::Setup;
use super::too_little::TooLittle;

/// IOPS are provisioned in steps of this.
pub const IOPS_STEP: u64 = 100;
/// Throughput is provisioned in steps of this, MiB/s.
pub const THROUGHPUT_STEP: u64 = 5;
/// The types that are searched. `standard` is left out: AWS states no limit that it keeps.
pub const KINDS: [&str; 6] = ["gp3", "gp2", "io2", "io1", "st1", "sc1"];

/// What is searched.
#[derive(Debug, Clone, Copy)]
pub struct Space<'a> {
    /// The types and instances.
    pub catalog: &'a Catalog,
    /// Their prices.
    pub prices: Prices<'a>,
    /// The load that has to be carried.
    pub demand: &'a Demand,
    /// What has to be met.
    pub objective: Objective,
    /// Volumes in an array, at most; 1 for none.
    pub most_members: u16,
    /// The instance that the volumes are attached to; None where its limits are not looked at.
    pub instance: Option<&'a InstanceType>,
    /// Whether what an idle gp3 gives beyond its rate counts: see [`Setup::counts_allowance`].
    pub counts_allowance: bool,
    /// What the record of the load shows to be too little; None where nothing was recorded of today's volume.
    pub too_little: Option<TooLittle<'a>>,
}

/// A configuration of volumes, with its price.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The volumes.
    pub resolved: Resolved,
    /// What they cost a month, US dollars.
    pub usd: Usd,
}

/// An instance type with its price.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PricedInstance<'a> {
    /// The type.
    pub instance: &'a InstanceType,
    /// Its price.
    pub price: &'a InstancePrice,
}

impl<'a> Space<'a> {
    /// Whether volumes carry the load and meet the objective.
    #[must_use]
    pub fn meets(&self, volumes: &Resolved) -> bool {
        self.meets_counted(volumes, &Charges::of(self.demand, &self.setup(volumes)))
    }

    /// The same, where it is known already what the volumes count of the load.
    fn meets_counted(&self, volumes: &Resolved, charges: &Charges) -> bool {
        let too_little = self.too_little.is_some_and(|shown| shown.rules_out(&self.objective, volumes));
        if volumes.size_bytes() < self.objective.size_bytes || too_little || self.instance_is_too_little() {
            return false;
        }
        let allowed = 1.0 - self.objective.carried + 1e-12;
        let carried = self.demand.carried_as(charges, &self.setup(volumes), allowed);
        carried.is_some_and(|carried| self.objective.met_by(&carried))
    }

    /// Whether the record shows that the instance is not enough.
    fn instance_is_too_little(&self) -> bool {
        self.too_little
            .zip(self.instance)
            .is_some_and(|(shown, instance)| shown.rules_out_instance(&self.objective, instance))
    }

    /// How volumes carry the load.
    #[must_use]
    pub fn carried(&self, volumes: &Resolved) -> Carried {
        self.demand.carried_by(&self.setup(volumes))
    }

    /// What a configuration of volumes is for [`Demand::carried_by`].
    pub(super) fn setup<'v>(&self, volumes: &'v Resolved) -> Setup<'v>
    where
        'a: 'v,
    {
        Setup { counts_allowance: self.counts_allowance, ..setup(volumes, self.instance) }
    }

    /// The cheapest of all types and numbers of members; cheaper than `below`, where that is given.
    #[must_use]
    pub fn cheapest(&self, below: Option<Usd>) -> Option<Candidate> {
        let mut best: Option<Candidate> = None;
        for members in 1..=self.most_members {
            for kind in KINDS {
                let bound = best.as_ref().map(|best| best.usd).or(below);
                best = self.cheapest_of(kind, members, bound).or(best);
            }
        }
        best
    }

    /// The cheapest of each type as one volume, and as an array where that costs less, by cost.
    #[must_use]
    pub fn cheapest_of_each(&self) -> Vec<Candidate> {
        let mut all = Vec::new();
        for kind in KINDS {
            let single = self.cheapest_of(kind, 1, None);
            let mut array: Option<Candidate> = None;
            for members in 2..=self.most_members {
                let bound = array.as_ref().or(single.as_ref()).map(|best| best.usd);
                array = self.cheapest_of(kind, members, bound).or(array);
            }
            all.extend(single.into_iter().chain(array));
        }
        all.sort_by_key(|candidate| (candidate.usd, candidate.resolved.spec.members()));
        all
    }

    /// The cheapest volumes of a type, so many striped; None where none meets the objective, or none costs less than `below`.
    #[must_use]
    pub fn cheapest_of(&self, kind: &str, members: u16, below: Option<Usd>) -> Option<Candidate> {
        let range = self.catalog.provisioning(kind)?;
        let [least, most] = range.size_gib;
        let need = self.objective.size_bytes.div_ceil(GIB).div_ceil(u64::from(members)).max(least);
        if need > most {
            return None;
        }
        let family = Family { space: self, kind, members, below, need, most, charges: OnceCell::new() };
        match (range.iops, range.throughput) {
            (Some(iops), Some(throughput)) => family.by_both(iops, throughput),
            (Some(iops), None) => family.by_iops(iops),
            _ => family.by_size(),
        }
    }
}

/// Volumes on an instance, without what idle ones give beyond their rate.
pub(super) fn setup<'a>(volumes: &'a Resolved, instance: Option<&'a InstanceType>) -> Setup<'a> {
    Setup {
        limits: &volumes.members[0],
        members: volumes.spec.members(),
        chunk_bytes: volumes.chunk_bytes,
        instance: instance.map(|instance| &instance.limits),
        counts_allowance: false,
    }
}

/// Volumes of one type, so many striped.
struct Family<'a, 'b> {
    space: &'a Space<'b>,
    kind: &'a str,
    members: u16,
    below: Option<Usd>,
    /// The least size of each, GiB.
    need: u64,
    /// The largest.
    most: u64,
    /// What they count of the load: the same whatever their size and rates.
    charges: OnceCell<Charges>,
}

impl Family<'_, '_> {
    /// Volumes of a size, with what is provisioned; None where AWS makes none such, or they have no price.
    fn candidate(&self, gib: u64, iops: Option<u64>, throughput: Option<u64>) -> Option<Candidate> {
        let volume = VolumeSpec {
            kind: self.kind.to_owned(),
            size_bytes: Some(gib * GIB),
            iops,
            throughput_mib_s: throughput,
            ..VolumeSpec::default()
        };
        let raid0 = (self.members > 1).then_some(Raid0 { members: self.members, chunk_bytes: None });
        let resolved = self.space.catalog.resolve(&Spec { volume, raid0 }).ok()?;
        let usd = self.space.prices.monthly_cost(&resolved)?.usd;
        Some(Candidate { resolved, usd })
    }

    /// Whether it costs less than what is known already.
    fn affordable(&self, candidate: &Candidate) -> bool {
        self.below.is_none_or(|below| candidate.usd < below)
    }

    fn meets(&self, candidate: &Candidate) -> bool {
        let setup = self.space.setup(&candidate.resolved);
        let charges = self.charges.get_or_init(|| Charges::of(self.space.demand, &setup));
        self.space.meets_counted(&candidate.resolved, charges)
    }

    /// gp2, st1, sc1: the size decides.
    fn by_size(&self) -> Option<Candidate> {
        let at = |gib| self.candidate(gib, None, None);
        let most = last(self.need, self.most, 1, |gib| at(gib).is_some_and(|one| self.affordable(&one)))?;
        let meets = |gib| at(gib).is_some_and(|one| self.meets(&one));
        at(first(self.need, most, 1, meets)?)
    }

    /// io1, io2: the IOPS decide, and the size follows.
    fn by_iops(&self, range: IopsRange) -> Option<Candidate> {
        let at = |iops| self.candidate(self.gib(range, iops), Some(iops), None);
        let most =
            last(range.min, range.max, IOPS_STEP, |iops| at(iops).is_some_and(|one| self.affordable(&one)))?;
        let meets = |iops| at(iops).is_some_and(|one| self.meets(&one));
        at(first(range.min, most, IOPS_STEP, meets)?)
    }

    /// The size for so many IOPS, GiB.
    fn gib(&self, range: IopsRange, iops: u64) -> u64 {
        self.need.max(range.least_gib(iops))
    }

    /// gp3: IOPS and throughput, which may stand in for each other only as far as a load waits for either.
    fn by_both(&self, range: IopsRange, throughput: ThroughputRange) -> Option<Candidate> {
        let least = throughput.min;
        let at = |iops, mib_s| self.candidate(self.gib(range, iops), Some(iops), Some(mib_s));
        let affordable = |iops, mib_s| at(iops, mib_s).is_some_and(|one| self.affordable(&one));
        let meets = |iops, mib_s| at(iops, mib_s).is_some_and(|one| self.meets(&one));
        let most = last(range.min, range.max, IOPS_STEP, |iops| affordable(iops, least))?;
        // The least IOPS, whatever the throughput.
        let least_iops = first(range.min, most, IOPS_STEP, |iops| meets(iops, throughput.most(iops)))?;
        let mut ceiling =
            last(least, throughput.most(least_iops), THROUGHPUT_STEP, |mib_s| affordable(least_iops, mib_s))?;
        // No affordable volume has more of either.
        if !meets(most, ceiling) {
            return None;
        }
        let mut best: Option<Candidate> = None;
        for iops in (least_iops..=most).step_by(usize::try_from(IOPS_STEP).unwrap_or(usize::MAX)) {
            let cheaper = |mib_s| {
                at(iops, mib_s).is_some_and(|one| match &best {
                    Some(best) => one.usd < best.usd,
                    None => self.affordable(&one),
                })
            };
            // More IOPS are worth it only with less throughput.
            let Some(most_mib_s) = last(least, ceiling, THROUGHPUT_STEP, cheaper) else { break };
            if meets(iops, most_mib_s) {
                ceiling = first(least, most_mib_s, THROUGHPUT_STEP, |mib_s| meets(iops, mib_s))?;
                best = at(iops, ceiling);
            }
        }
        best
    }
}

/// A volume without limits whose operations are the largest that any type counts: no type charges the instance less.
fn endless() -> Limits {
    let accounting = Accounting { unit_bytes: LARGEST_UNIT, ..Accounting::per_io() };
    Limits { accounting, ..Limits::unlimited(GIB) }
}

/// One volume on an instance.
fn on_instance<'v>(limits: &'v Limits, instance: Option<&'v InstanceType>) -> Setup<'v> {
    let instance = instance.map(|instance| &instance.limits);
    Setup { limits, members: 1, chunk_bytes: GIB, instance, counts_allowance: false }
}

/// The values from `low` to `high` by steps, the last one `high` itself.
const fn value(low: u64, high: u64, step: u64, at: u64) -> u64 {
    let value = low + at * step;
    if value > high { high } else { value }
}

/// The first value that holds; from it on all hold. None where none does.
pub(super) fn first(low: u64, high: u64, step: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
    if low > high {
        return None;
    }
    let (mut from, mut to) = (0, (high - low).div_ceil(step));
    if !holds(value(low, high, step, to)) {
        return None;
    }
    while from < to {
        let middle = from + (to - from) / 2;
        if holds(value(low, high, step, middle)) { to = middle } else { from = middle + 1 }
    }
    Some(value(low, high, step, to))
}

/// The last value that holds; up to it all hold. None where none does.
fn last(low: u64, high: u64, step: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
    if low > high || !holds(low) {
        return None;
    }
    let (mut from, mut to) = (0, (high - low).div_ceil(step));
    while from < to {
        let middle = (from + to).div_ceil(2);
        if holds(value(low, high, step, middle)) { from = middle } else { to = middle - 1 }
    }
    Some(value(low, high, step, from))
}

/// What an instance has to have, beside its EBS limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InstanceNeeds {
    /// Virtual CPUs.
    pub vcpus: u32,
    /// Memory, GiB.
    pub memory_gib: f64,
    /// Whether arm64 programs run; None: either architecture.
    pub arm: Option<bool>,
    /// Whether types with CPU credits (t3, t4g) are taken.
    pub burstable: bool,
}

impl InstanceNeeds {
    /// What an instance type has.
    #[must_use]
    pub fn of(instance: &InstanceType) -> Self {
        Self {
            vcpus: instance.vcpus,
            memory_gib: instance.memory_gib,
            arm: Some(instance.is_arm()),
            burstable: is_burstable(&instance.name),
        }
    }

    /// Whether a type has it.
    #[must_use]
    pub fn met_by(&self, instance: &InstanceType) -> bool {
        instance.vcpus >= self.vcpus
            && instance.memory_gib >= self.memory_gib
            && self.arm.is_none_or(|arm| arm == instance.is_arm())
            && (self.burstable || !is_burstable(&instance.name))
    }
}

fn is_burstable(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next() == Some('t') && letters.next().is_some_and(|c| c.is_ascii_digit())
}

impl<'a> Space<'a> {
    /// Whether an instance alone carries the load, whatever the volumes. `endless` charges it least of all.
    fn carried_by_instance(&self, instance: &InstanceType, endless: &Limits, charges: &Charges) -> bool {
        let objective = Objective { p99: None, ..self.objective };
        let setup = on_instance(endless, Some(instance));
        let carried = self.demand.carried_as(charges, &setup, 1.0 - objective.carried + 1e-12);
        carried.is_some_and(|carried| objective.met_by(&carried))
    }

    /// The cheapest instance with the cheapest volumes on it; the types that cannot be part of it are passed over. On equal
    /// cost the type comes first that stands first in `instances`.
    #[must_use]
    pub fn cheapest_with(&self, instances: &[PricedInstance<'a>]) -> Option<(PricedInstance<'a>, Candidate)> {
        // Without an instance's limits volumes cost no more.
        let alone = Space { instance: None, ..*self }.cheapest(None)?;
        let endless = endless();
        let charges = Charges::of(self.demand, &on_instance(&endless, None));
        let mut by_price: Vec<PricedInstance<'a>> = instances.to_vec();
        by_price.sort_by_key(|one| one.price.month());
        let mut best: Option<(PricedInstance<'a>, Candidate, Usd)> = None;
        for one in by_price {
            let below = best.as_ref().map(|(_, _, total)| *total);
            if below.is_some_and(|below| one.price.month() + alone.usd >= below) {
                break;
            }
            let with = Space { instance: Some(one.instance), ..*self };
            if with.instance_is_too_little() || !self.carried_by_instance(one.instance, &endless, &charges) {
                continue;
            }
            let volumes = if with.meets(&alone.resolved) {
                Some(alone.clone())
            } else {
                let left = below.map(|below| below.less(one.price.month()));
                with.cheapest(left)
            };
            if let Some(volumes) = volumes {
                let total = one.price.month() + volumes.usd;
                if below.is_none_or(|below| total < below) {
                    best = Some((one, volumes, total));
                }
            }
        }
        best.map(|(instance, volumes, _)| (instance, volumes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_what_holds_are_found_with_values_that_are_no_whole_steps() {
        for limit in 0..40_u64 {
            let (low, high, step) = (3, 32, 5);
            let values: Vec<u64> = vec![3, 8, 13, 18, 23, 28, 32];
            assert_eq!(first(low, high, step, |v| v >= limit), values.iter().copied().find(|v| *v >= limit));
            assert_eq!(last(low, high, step, |v| v <= limit), values.iter().copied().rfind(|v| *v <= limit));
        }
        assert_eq!((first(5, 4, 1, |_| true), last(5, 4, 1, |_| true)), (None, None));
    }

    #[test]
    fn burstable_types_are_those_of_the_families_t() {
        assert!(is_burstable("t3.micro") && is_burstable("t4g.large") && !is_burstable("trn1.2xlarge"));
    }
}
