//! The whole answer: what there is today, the cheapest, what comes next, and what more safety costs.

use ebbtide_catalog::{Catalog, InstancePrice, InstanceType, MonthlyCost, Prices, Resolved, Usd};
use ebbtide_volume::{InstanceLimits, Limits, Nanos, RateLimit};

use super::carry::{Carried, Limit};
use super::demand::Demand;
use super::objective::Objective;
use super::recorded::{RecordedLatency, RecordedPast};
use super::search::{Candidate, PricedInstance, Space};
use super::setup::Setup;
use super::too_little::TooLittle;

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'q, 'a> {
    /// The types and instances.
    pub catalog: &'a Catalog,
    /// Their prices.
    pub prices: Prices<'a>,
    /// The load as it is now.
    pub now: &'q Demand,
    /// The load that has to be carried: with growth and headroom.
    pub planned: &'q Demand,
    /// The same with what throttled intervals may have needed; None where that is not known.
    pub implied: Option<&'q Demand>,
    /// What has to be met.
    pub objective: Objective,
    /// Volumes in an array, at most.
    pub most_members: u16,
    /// Whether arrays were asked for: then the answer is the cheapest of all, and may be one. Otherwise an array is the answer
    /// only where no single volume meets what is asked.
    pub arrays_asked: bool,
    /// The volumes of today.
    pub today: Option<&'q Resolved>,
    /// What the record of the load says of them; None of a modelled load.
    pub past: Option<&'q RecordedPast>,
    /// The instance of today.
    pub instance: Option<&'a InstanceType>,
    /// The instances to choose from, today's first; empty where none is looked for.
    pub instances: &'q [PricedInstance<'a>],
}

impl<'q> Asked<'q, '_> {
    /// What the record shows to be too little, with the latency that it has of today's volume; None where nothing was recorded of
    /// it.
    #[must_use]
    pub fn too_little<'l>(&self, latency: Option<&'l RecordedLatency>) -> Option<TooLittle<'l>>
    where
        'q: 'l,
    {
        let (volume, past) = self.today.zip(self.past)?;
        let instance = self.instance.filter(|_| !self.instances.is_empty());
        Some(TooLittle { volume, instance, past, latency })
    }
}

/// The answer.
#[derive(Debug, Clone)]
pub struct Sizing<'a> {
    /// What there is; None where it was not named.
    pub today: Option<Today>,
    /// The cheapest of each type that meets the objective, on the chosen instance. The first is the answer: the cheapest
    /// single volume, or an array where no single volume meets it. The others follow by cost. Empty where nothing meets it.
    pub choices: Vec<Choice>,
    /// The instance that the choices are attached to; None where the limits of none are looked at.
    pub instance: Option<&'a InstanceType>,
    /// Other instances that carry the cheapest volumes, by cost.
    pub instances: Vec<InstanceChoice<'a>>,
    /// What other degrees of safety cost.
    pub safer: Vec<Safer<'a>>,
    /// What would do in place of the answer if the second was counted in which an idle gp3 gives twice its rate; None where
    /// that saves nothing. The answer does not count on it: it was measured, and AWS does not promise it.
    pub counting_allowance: Option<Candidate>,
}

/// What there is today.
#[derive(Debug, Clone)]
pub struct Today {
    /// How it carries the load as it is now, by the model, with what an idle gp3 gives beyond its rate.
    pub now: Carried,
    /// What the record says of it; None of a modelled load.
    pub past: Option<RecordedPast>,
    /// How long the I/O took by the record; None where the record does not have it.
    pub latency: Option<RecordedLatency>,
    /// Whether that meets the objective, the size apart. Where the record was throttled for longer than the objective allows, it
    /// does not, whatever the model says.
    pub meets_now: bool,
    /// Whether it has the size, and carries the planned load.
    pub meets_planned: bool,
    /// It as a choice, with the planned load.
    pub choice: Choice,
}

impl Today {
    /// 99 of 100 I/Os took at most this: by the record, or by the model where the record does not have it.
    #[must_use]
    pub fn latency(&self, quantile: f64) -> Nanos {
        self.latency.as_ref().map_or_else(|| self.now.latency(quantile), |latency| latency.at(quantile))
    }
}

/// Volumes, with what they cost and how they carry the load.
#[derive(Debug, Clone)]
pub struct Choice {
    /// The volumes.
    pub volumes: Resolved,
    /// What they cost.
    pub storage: Option<MonthlyCost>,
    /// What the instance costs a month; None where none is looked at, or it has no price.
    pub instance_usd: Option<Usd>,
    /// How they carry the planned load.
    pub carried: Carried,
    /// The largest multiple of the planned load that they carry, from 1 to [`MOST_ROOM`]; None where they do not carry it.
    pub room: Option<f64>,
    /// What stops more; None where nothing does up to [`MOST_ROOM`].
    pub limited_by: Option<Limit>,
    /// Whether they carry the planned load only while burst credits of the volumes or the instance last.
    pub needs_burst: bool,
}

/// An instance type with the cheapest volumes on it.
#[derive(Debug, Clone, Copy)]
pub struct InstanceChoice<'a> {
    /// The type.
    pub instance: &'a InstanceType,
    /// Its price.
    pub price: &'a InstancePrice,
    /// Whether it is today's.
    pub is_today: bool,
}

/// The cheapest for another degree of safety.
#[derive(Debug, Clone)]
pub struct Safer<'a> {
    /// Which.
    pub what: Safety,
    /// The cheapest; None where nothing meets it.
    pub candidate: Option<Candidate>,
    /// The instance that it is attached to; None where none is looked at.
    pub instance: Option<&'a InstanceType>,
    /// Whether it is enough only while burst credits last.
    pub needs_burst: bool,
}

/// A degree of safety.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Safety {
    /// So large a share of the time (0 to 1) is carried.
    Carried(f64),
    /// So many times the planned load, as much of the time as the objective says.
    Load(f64),
    /// The load that throttled intervals may have had without their limit.
    Implied,
}

/// An array that costs less than the answer.
#[derive(Debug, Clone, Copy)]
pub struct CheaperArray<'s> {
    /// Its place in the choices.
    pub place: usize,
    /// It.
    pub choice: &'s Choice,
    /// Its volumes. All data are lost with any of them: that is so many times as likely as the loss of one volume.
    pub members: u16,
    /// What it costs less a month.
    pub saves: Usd,
}

/// What an array asks of those who run it, beside a single volume.
pub const ARRAY_OPERATION: [&str; 3] = [
    "snapshots of all volumes have to be of one instant (create-snapshots), and are restored together",
    "each change of size, IOPS or throughput is made to all volumes, and the slowest of them sets the pace",
    "the stripe is set up and grown with mdadm or LVM on the host",
];

impl Sizing<'_> {
    /// The cheapest array, where it costs less than the answer.
    #[must_use]
    pub fn cheaper_array(&self) -> Option<CheaperArray<'_>> {
        let best = self.choices.first().filter(|best| best.volumes.spec.members() == 1)?;
        let arrays = self.choices.iter().enumerate().filter(|(_, choice)| choice.volumes.spec.members() > 1);
        let (place, choice) =
            arrays.min_by_key(|(_, choice)| choice.storage.as_ref().map(|cost| cost.usd))?;
        let (array, single) = (choice.storage.as_ref()?.usd, best.storage.as_ref()?.usd);
        let members = choice.volumes.spec.members();
        (array < single).then(|| CheaperArray { place, choice, members, saves: single.less(array) })
    }
}

/// The place of the answer among choices by cost: the first single volume, or the first of all where there is none or arrays
/// were asked for.
#[must_use]
pub fn place_of_answer<'c>(mut choices: impl Iterator<Item = &'c Choice>, arrays_asked: bool) -> usize {
    choices.position(|choice| arrays_asked || choice.volumes.spec.members() == 1).unwrap_or(0)
}

impl Choice {
    /// Volumes and instance together, a month.
    #[must_use]
    pub fn usd(&self) -> Option<Usd> {
        let storage = self.storage.as_ref()?.usd;
        Some(self.instance_usd.map_or(storage, |instance| instance + storage))
    }
}

/// Multiples of the load that are tried, at most.
pub const MOST_ROOM: f64 = 4.0;
/// Instances that are named beside the chosen one.
const OTHER_INSTANCES: usize = 4;
/// The degrees of safety that are priced.
const CARRIED: [f64; 4] = [0.95, 0.99, 0.999, 1.0];
const MORE_LOAD: f64 = 1.2;

/// The answer to what is asked for.
#[must_use]
pub fn size<'a>(asked: &Asked<'_, 'a>) -> Sizing<'a> {
    let latency = asked.past.zip(asked.today).and_then(|(past, volumes)| past.latency(asked.now, volumes));
    let too_little = asked.too_little(latency.as_ref());
    let space = Space {
        catalog: asked.catalog,
        prices: asked.prices,
        demand: asked.planned,
        objective: asked.objective,
        most_members: asked.most_members,
        instance: asked.instance,
        counts_allowance: false,
        too_little,
    };
    let today = asked.today.map(|volumes| today(asked, space, volumes));
    let chosen = if asked.instances.is_empty() {
        asked.instance
    } else {
        first_of(asked, space, |space| cheapest_with(asked, space)).map(|(instance, _)| instance)
    };
    let found = asked.instances.is_empty() || chosen.is_some();
    let space = Space { instance: chosen, ..space };
    let mut candidates = if found { space.cheapest_of_each() } else { Vec::new() };
    let mut choices: Vec<Choice> =
        candidates.iter().map(|candidate| choice(space, &candidate.resolved)).collect();
    let answer = place_of_answer(choices.iter(), asked.arrays_asked);
    if answer > 0 {
        choices[..=answer].rotate_right(1);
        candidates[..=answer].rotate_right(1);
    }
    Sizing {
        today,
        instances: others(asked, space, candidates.first()),
        safer: if found { safer(asked, space, chosen, candidates.first()) } else { Vec::new() },
        counting_allowance: candidates.first().and_then(|best| counting_allowance(space, best)),
        choices,
        instance: chosen,
    }
}

/// The cheapest of the answer's type and number of members that would do with what idle volumes give beyond their rate; None
/// where that is no cheaper.
fn counting_allowance(space: Space<'_>, best: &Candidate) -> Option<Candidate> {
    let limits = &best.resolved.members[0];
    let allowance = |limit: Option<RateLimit>| limit.is_some_and(|limit| limit.allowance > 0);
    if !allowance(limits.iops) && !allowance(limits.throughput) {
        return None;
    }
    let spec = &best.resolved.spec;
    Space { counts_allowance: true, ..space }.cheapest_of(&spec.volume.kind, spec.members(), Some(best.usd))
}

/// What is found among single volumes, or else among arrays too; among both where arrays were asked for.
fn first_of<'s, T>(
    asked: &Asked<'_, '_>,
    space: Space<'s>,
    find: impl Fn(Space<'s>) -> Option<T>,
) -> Option<T> {
    let single = (!asked.arrays_asked).then(|| find(Space { most_members: 1, ..space })).flatten();
    single.or_else(|| find(space))
}

fn today(asked: &Asked<'_, '_>, space: Space<'_>, volumes: &Resolved) -> Today {
    let now = Space { demand: asked.now, counts_allowance: true, ..space }.carried(volumes);
    // A load that a limit held back fits the limit: the model of it has nothing to wait for.
    let enough = space.too_little.is_none_or(|shown| !shown.is_shown(&asked.objective));
    let choice = choice(space, volumes);
    Today {
        meets_now: enough && asked.objective.met_by(&now),
        meets_planned: enough && space.meets(volumes),
        choice: Choice { room: choice.room.filter(|_| enough), ..choice },
        past: asked.past.cloned(),
        latency: space.too_little.and_then(|shown| shown.latency.cloned()),
        now,
    }
}

impl Space<'_> {
    /// Volumes as a choice: with their cost, how they carry the load, and how much more they would.
    #[must_use]
    pub fn choice(&self, volumes: &Resolved) -> Choice {
        choice(*self, volumes)
    }
}

fn choice(space: Space<'_>, volumes: &Resolved) -> Choice {
    let room = space.meets(volumes).then(|| room(space, volumes));
    let limited_by = match room {
        Some(room) if room >= MOST_ROOM => None,
        // A little above what they carry, the limit shows.
        Some(room) => {
            let more = space.demand.times(room * 1.1);
            Space { demand: &more, ..space }.carried(volumes).limited_by()
        }
        None => space.carried(volumes).limited_by(),
    };
    Choice {
        storage: space.prices.monthly_cost(volumes),
        instance_usd: space
            .instance
            .and_then(|instance| space.prices.instance(&instance.name))
            .map(InstancePrice::month),
        carried: space.carried(volumes),
        needs_burst: needs_burst(space, volumes),
        room,
        limited_by,
        volumes: volumes.clone(),
    }
}

/// Whether volumes meet the objective only while burst credits of theirs or of the instance last.
fn needs_burst(space: Space<'_>, volumes: &Resolved) -> bool {
    let lasting = |limit: RateLimit| RateLimit { ceiling: limit.rate, credits: 0, ..limit };
    let has = |limit: Option<RateLimit>| limit.is_some_and(|limit| limit.has_credits());
    let own = &volumes.members[0];
    let instance = space.instance.map(|instance| instance.limits);
    if ![
        own.iops,
        own.throughput,
        instance.map(|limits| limits.iops),
        instance.map(|limits| limits.throughput),
    ]
    .into_iter()
    .any(has)
    {
        return false;
    }
    let limits =
        Limits { iops: own.iops.map(lasting), throughput: own.throughput.map(lasting), ..own.clone() };
    let instance = instance
        .map(|limits| InstanceLimits { iops: lasting(limits.iops), throughput: lasting(limits.throughput) });
    let setup = Setup { limits: &limits, instance: instance.as_ref(), ..space.setup(volumes) };
    let allowed = 1.0 - space.objective.carried + 1e-12;
    let met = |setup: &Setup<'_>| {
        let carried = space.demand.carried_within(setup, allowed);
        carried.is_some_and(|carried| space.objective.met_by(&carried))
    };
    !met(&setup) && met(&space.setup(volumes))
}

/// The largest multiple of the load that volumes carry, to a hundredth.
fn room(space: Space<'_>, volumes: &Resolved) -> f64 {
    let carries = |factor: f64| {
        let demand = space.demand.times(factor);
        Space { demand: &demand, ..space }.meets(volumes)
    };
    if carries(MOST_ROOM) {
        return MOST_ROOM;
    }
    let (mut low, mut high) = (1.0, MOST_ROOM);
    while high - low > 0.01 {
        let middle = f64::midpoint(low, high);
        if carries(middle) { low = middle } else { high = middle }
    }
    low
}

/// The other instances that carry the cheapest volumes, by price.
fn others<'a>(asked: &Asked<'_, 'a>, space: Space<'_>, best: Option<&Candidate>) -> Vec<InstanceChoice<'a>> {
    let Some(best) = best else { return Vec::new() };
    let mut by_price: Vec<&PricedInstance<'a>> = asked.instances.iter().collect();
    by_price.sort_by_key(|priced| priced.price.month());
    let carries = |priced: &&&PricedInstance<'a>| {
        let is_chosen = space.instance.is_some_and(|chosen| chosen.name == priced.instance.name);
        !is_chosen && Space { instance: Some(priced.instance), ..space }.meets(&best.resolved)
    };
    let is_today =
        |priced: &PricedInstance<'a>| asked.instance.is_some_and(|today| today.name == priced.instance.name);
    by_price
        .iter()
        .filter(carries)
        .take(OTHER_INSTANCES)
        .map(|priced| InstanceChoice {
            instance: priced.instance,
            price: priced.price,
            is_today: is_today(priced),
        })
        .collect()
}

/// The cheapest instance of those to choose from, with its volumes.
fn cheapest_with<'a>(asked: &Asked<'_, 'a>, space: Space<'_>) -> Option<(&'a InstanceType, Candidate)> {
    let (instance, volumes) = space.cheapest_with(asked.instances)?;
    let of_asked = asked.instances.iter().find(|priced| priced.instance.name == instance.instance.name)?;
    Some((of_asked.instance, volumes))
}

fn safer<'a>(
    asked: &Asked<'_, 'a>,
    space: Space<'_>,
    chosen: Option<&'a InstanceType>,
    best: Option<&Candidate>,
) -> Vec<Safer<'a>> {
    let cheapest = |what: Safety, space: Space<'_>| {
        // What is known to be the cheapest for less stays so where it meets more.
        let known = best.filter(|best| space.meets(&best.resolved));
        let (instance, candidate) = match known {
            Some(known) if !matches!(what, Safety::Carried(share) if share < asked.objective.carried) => {
                (chosen, Some(known.clone()))
            }
            _ if asked.instances.is_empty() => (chosen, first_of(asked, space, |space| space.cheapest(None))),
            _ => first_of(asked, space, |space| cheapest_with(asked, space))
                .map_or((None, None), |(instance, volumes)| (Some(instance), Some(volumes))),
        };
        let space = Space { instance, ..space };
        let needs_burst = candidate.as_ref().is_some_and(|candidate| needs_burst(space, &candidate.resolved));
        Safer { what, candidate, instance, needs_burst }
    };
    let mut degrees: Vec<Safer<'a>> = Vec::new();
    for carried in CARRIED {
        let objective = Objective { carried, ..asked.objective };
        degrees.push(cheapest(Safety::Carried(carried), Space { objective, ..space }));
    }
    let more = asked.planned.times(MORE_LOAD);
    degrees.push(cheapest(Safety::Load(MORE_LOAD), Space { demand: &more, ..space }));
    if let Some(implied) = asked.implied {
        degrees.push(cheapest(Safety::Implied, Space { demand: implied, ..space }));
    }
    degrees
}
