//! The whole answer: what there is today, the cheapest, what comes next, and what more safety costs.

use ebbtide_catalog::{Catalog, InstancePrice, InstanceType, MonthlyCost, Prices, Resolved, Usd};

use super::carry::{Carried, Limit};
use super::demand::Demand;
use super::search::{Candidate, Objective, PricedInstance, Space};

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
    /// The instance of today.
    pub instance: Option<&'a InstanceType>,
    /// The instances to choose from, today's first; empty where none is looked for.
    pub instances: &'q [PricedInstance<'a>],
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
}

/// What there is today.
#[derive(Debug, Clone)]
pub struct Today {
    /// How it carries the load as it is now.
    pub now: Carried,
    /// Whether that meets the objective, the size apart.
    pub meets_now: bool,
    /// Whether it has the size, and carries the planned load.
    pub meets_planned: bool,
    /// It as a choice, with the planned load.
    pub choice: Choice,
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
        let arrays = self.choices.iter().enumerate().filter(|(_, one)| one.volumes.spec.members() > 1);
        let (place, choice) = arrays.min_by_key(|(_, one)| one.storage.as_ref().map(|cost| cost.usd))?;
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
    let space = Space {
        catalog: asked.catalog,
        prices: asked.prices,
        demand: asked.planned,
        objective: asked.objective,
        most_members: asked.most_members,
        instance: asked.instance,
    };
    let today = asked.today.map(|volumes| today(asked, space, volumes));
    let chosen = if asked.instances.is_empty() {
        asked.instance
    } else {
        first_of(asked, space, |space| cheapest_with(asked, space)).map(|(one, _)| one)
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
        choices,
        instance: chosen,
    }
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
    let now = Space { demand: asked.now, ..space }.carried(volumes);
    Today {
        meets_now: asked.objective.met_by(&now),
        meets_planned: space.meets(volumes),
        choice: choice(space, volumes),
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
            .and_then(|one| space.prices.instance(&one.name))
            .map(InstancePrice::month),
        carried: space.carried(volumes),
        room,
        limited_by,
        volumes: volumes.clone(),
    }
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
    by_price.sort_by_key(|one| one.price.month());
    let carries = |one: &&&PricedInstance<'a>| {
        let is_chosen = space.instance.is_some_and(|chosen| chosen.name == one.instance.name);
        !is_chosen && Space { instance: Some(one.instance), ..space }.meets(&best.resolved)
    };
    let is_today =
        |one: &PricedInstance<'a>| asked.instance.is_some_and(|today| today.name == one.instance.name);
    by_price
        .iter()
        .filter(carries)
        .take(OTHER_INSTANCES)
        .map(|one| InstanceChoice { instance: one.instance, price: one.price, is_today: is_today(one) })
        .collect()
}

/// The cheapest instance of those to choose from, with its volumes.
fn cheapest_with<'a>(asked: &Asked<'_, 'a>, space: Space<'_>) -> Option<(&'a InstanceType, Candidate)> {
    let (instance, volumes) = space.cheapest_with(asked.instances)?;
    let of_asked = asked.instances.iter().find(|one| one.instance.name == instance.instance.name)?;
    Some((of_asked.instance, volumes))
}

fn safer<'a>(
    asked: &Asked<'_, 'a>,
    space: Space<'_>,
    chosen: Option<&'a InstanceType>,
    best: Option<&Candidate>,
) -> Vec<Safer<'a>> {
    let one = |what: Safety, with: Space<'_>| {
        // What is known to be the cheapest for less stays so where it meets more.
        let known = best.filter(|best| with.meets(&best.resolved));
        let (instance, candidate) = match known {
            Some(known) if !matches!(what, Safety::Carried(share) if share < asked.objective.carried) => {
                (chosen, Some(known.clone()))
            }
            _ if asked.instances.is_empty() => (chosen, first_of(asked, with, |with| with.cheapest(None))),
            _ => first_of(asked, with, |with| cheapest_with(asked, with))
                .map_or((None, None), |(one, volumes)| (Some(one), Some(volumes))),
        };
        Safer { what, candidate, instance }
    };
    let mut all: Vec<Safer<'a>> = Vec::new();
    for carried in CARRIED {
        let objective = Objective { carried, ..asked.objective };
        all.push(one(Safety::Carried(carried), Space { objective, ..space }));
    }
    let more = asked.planned.times(MORE_LOAD);
    all.push(one(Safety::Load(MORE_LOAD), Space { demand: &more, ..space }));
    if let Some(implied) = asked.implied {
        all.push(one(Safety::Implied, Space { demand: implied, ..space }));
    }
    all
}
