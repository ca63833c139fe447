//! From a request to what is sized, refusing what cannot be.

use ebbtide_advisor::sizing::{
    Demand, Inputs, InstanceNeeds, LoadOrigin, Objective, PricedInstance, SSD_UNIT, examine,
};
use ebbtide_catalog::{Catalog, InstanceType, Prices, Resolved, Spec};
use ebbtide_volume::{GIB, Nanos};

use super::error::{SizeOrigin, SizingError};
use super::modelled::{self, JudgedRate};
use super::prices::PriceListRead;
use super::request::{MOST_MEMBERS, Processors, SizingRequest};
use super::source::Source;
use crate::stored::Stored;
use crate::volumes::VolumesError;

/// Volumes in an array that is shown beside the answer where none was asked for, at most.
const DEFAULT_MEMBERS: u16 = 4;
/// Share of a volume that is left free where the size follows from the data.
const FREE: f64 = 0.2;

/// What is sized.
#[derive(Debug)]
pub struct SizingPlan<'a> {
    /// The catalogue.
    pub catalog: &'a Catalog,
    /// The load.
    pub source: Source,
    /// What its figures say of themselves.
    pub inputs: Inputs,
    /// The load as it was recorded.
    pub now: Demand,
    /// It with more transactions, growth and headroom.
    pub planned: Demand,
    /// The same with what throttled intervals may have needed.
    pub implied: Option<Demand>,
    /// What is asked for.
    pub objective: Objective,
    /// The volume of today.
    pub today: Option<Resolved>,
    /// The instance type of today; of a profile its own where none was named.
    pub instance: Option<InstanceType>,
    /// Volumes in an array, at most.
    pub most_members: u16,
    /// Whether arrays were asked for, so that the answer may be one.
    pub arrays_asked: bool,
    /// The region whose prices hold.
    pub region: String,
    /// Price lists that were read, for people.
    pub lists: Vec<String>,
    /// More transactions than were measured: so many times.
    pub more: f64,
    /// Growth until the horizon: so many times.
    pub growth: f64,
    /// Headroom: so many times.
    pub headroom: f64,
    /// Months until when it has to be enough.
    pub horizon: u32,
    /// 99 of 100 transactions are to take at most this; of a profile alone.
    pub transaction_p99: Option<Nanos>,
    /// Transactions a second that a profile's server is to carry, with growth.
    pub tps: Option<f64>,
    /// What the choices for a profile's server are judged at; None of a load that was recorded.
    pub judged: Option<JudgedRate>,
    /// Decides every draw of the model.
    pub seed: u64,
    /// Where the size comes from.
    pub size_origin: SizeOrigin,
    needs: Option<InstanceNeeds>,
    /// Whether an architecture was named, so that its processors may be any maker's.
    any_maker: bool,
}

impl<'a> SizingPlan<'a> {
    /// The plans of the volumes whose loads the request names: one, or those that metrics tell of in the order of their names.
    /// `lists` are the price lists that the catalogue took.
    ///
    /// # Errors
    /// A file that tells no load; a volume, instance, region or objective that cannot be.
    pub fn read(
        request: &SizingRequest,
        catalog: &'a Catalog,
        lists: &[PriceListRead],
    ) -> Result<Vec<Self>, SizingError> {
        let region = region(request, catalog, lists)?;
        let today = request.volume.as_deref().map(|text| volume(catalog, text)).transpose()?;
        let instance = request.instance.as_deref().map(|name| instance(catalog, name)).transpose()?;
        let sources = Source::read(request, catalog, instance.as_ref())?;
        let plan = |source| {
            Self::of(source, request, catalog, lists, (region.clone(), today.clone(), instance.clone()))
        };
        sources.into_iter().map(plan).collect()
    }

    /// The plan of a load, with the region, today's volume and today's instance.
    fn of(
        mut source: Source,
        request: &SizingRequest,
        catalog: &'a Catalog,
        lists: &[PriceListRead],
        (region, today, instance): (String, Option<Resolved>, Option<InstanceType>),
    ) -> Result<Self, SizingError> {
        let instance = instance.or_else(|| source.server.as_ref().and_then(|server| server.instance.clone()));
        let growth = (1.0 + request.yearly_growth).powf(f64::from(request.horizon_months) / 12.0);
        let (mut objective, size_origin) = objective(request, &source, today.as_ref(), growth)?;
        let tps = tps(request, &source, growth)?;
        let transaction_p99 = objective.p99.filter(|_| source.server.is_some());
        if source.server.is_some() {
            objective.p99 = None;
        }
        let load = |tps| {
            modelled::load(&mut source, catalog, objective.size_bytes, tps, instance.as_ref(), request.seed)
        };
        let judged = tps.map(load).transpose()?;
        // A profile's load is that of the planned transactions already.
        let (more, in_load) = match tps {
            Some(_) => (1.0, growth),
            None => (measured_factor(request)?, 1.0),
        };
        let inputs = inputs(&source, today.as_ref(), instance.as_ref())?;
        let all = more * growth / in_load * request.headroom;
        let demand = |factor| Demand::from_origin(&source.load, source.origin, factor);
        let (now, planned) = (demand(1.0 / in_load), demand(all));
        let implied = inputs.throttled.as_ref().and_then(|throttled| throttled.implied(&source.load, all));
        let needs = instance
            .as_ref()
            .filter(|_| !request.keep_instance)
            .map(|today| needs(today, request.processors));
        Ok(Self {
            catalog,
            planned,
            implied,
            now,
            inputs,
            objective,
            today,
            instance,
            most_members: members(request.most_members.unwrap_or(DEFAULT_MEMBERS))?,
            arrays_asked: request.most_members.is_some_and(|members| members > 1),
            region,
            lists: lists.iter().map(|list| list.words.clone()).collect(),
            more,
            growth,
            headroom: request.headroom,
            horizon: request.horizon_months,
            transaction_p99,
            tps,
            judged,
            seed: request.seed,
            size_origin,
            needs,
            any_maker: request.processors.is_some(),
            source,
        })
    }

    /// The prices of the region.
    ///
    /// # Panics
    /// Never: the region was found when the plan was read.
    #[must_use]
    pub fn prices(&self) -> Prices<'a> {
        self.catalog
            .prices(Some(&self.region))
            .expect("the region's prices were found when the plan was read")
    }

    /// Today's instance type, where others were to be looked for and it has no price in the region: then none is.
    #[must_use]
    pub fn unpriced_instance(&self) -> Option<&InstanceType> {
        let today = self.instance.as_ref().filter(|_| self.needs.is_some())?;
        self.prices().instance(&today.name).is_none().then_some(today)
    }

    /// The instances to choose from, today's first; empty where none is looked for.
    #[must_use]
    pub fn instances(&self) -> Vec<PricedInstance<'a>> {
        let (Some(needs), Some(today)) = (self.needs, &self.instance) else { return Vec::new() };
        let prices = self.catalog.prices(Some(&self.region));
        let Ok(prices) = prices else { return Vec::new() };
        let priced = |instance: &'a InstanceType| {
            Some(PricedInstance { instance, price: prices.instance(&instance.name)? })
        };
        // So many processors of another maker do not do as much: they are for those who name an architecture.
        let same_kind = |one: &InstanceType| self.any_maker || one.has_processors_of(today);
        let fits = |one: &&InstanceType| {
            (needs.met_by(one) && one.is_ebs_optimized() && same_kind(one)) || one.name == today.name
        };
        let mut all: Vec<PricedInstance<'a>> =
            self.catalog.instances().iter().filter(fits).filter_map(priced).collect();
        // Without a price of its own today's cannot be held against others.
        if !all.iter().any(|one| one.instance.name == today.name) {
            return Vec::new();
        }
        all.sort_by_key(|one| one.instance.name != today.name);
        all
    }

    /// The load as it will be, without headroom: what is charged by use.
    #[must_use]
    pub fn grown(&self) -> Demand {
        self.planned.times(1.0 / self.headroom)
    }

    /// By how much the planned load is more than the recorded one.
    #[must_use]
    pub fn factor(&self) -> f64 {
        self.more * self.growth * self.headroom
    }

    /// The largest request that counts as one operation, bytes: of today's volume, or of an SSD volume.
    #[must_use]
    pub fn unit(&self) -> u64 {
        self.today.as_ref().map_or(SSD_UNIT, |today| today.members[0].accounting.unit_bytes.into())
    }

    /// The longest interval, s.
    #[must_use]
    pub fn longest_interval(&self) -> f64 {
        self.source.load.intervals.iter().map(|interval| interval.seconds).fold(0.0, f64::max)
    }

    /// Times the operations that were counted, at most, where sizes are means; None elsewhere.
    #[must_use]
    pub fn most_mixed(&self) -> Option<f64> {
        let means = matches!(self.source.origin, LoadOrigin::Host | LoadOrigin::HostTogether);
        means.then(|| self.now.most_mixed(self.unit()))
    }
}

/// The region whose prices hold: the one that was named, or that of the first price list.
fn region(
    request: &SizingRequest,
    catalog: &Catalog,
    lists: &[PriceListRead],
) -> Result<String, SizingError> {
    let of_lists = lists.first().map(|list| list.region.as_str());
    let prices = catalog.prices(request.region.as_deref().or(of_lists)).map_err(SizingError::Region)?;
    Ok(prices.region().to_owned())
}

fn instance(catalog: &Catalog, name: &str) -> Result<InstanceType, SizingError> {
    catalog
        .instance(name)
        .map_err(|cause| SizingError::Instance { name: name.to_owned(), cause: cause.into() })
}

/// What the figures of the load say of themselves; figures that cannot be true, and a load of nothing, are refused.
fn inputs(
    source: &Source,
    today: Option<&Resolved>,
    instance: Option<&InstanceType>,
) -> Result<Inputs, SizingError> {
    let source_words = || source.what.clone();
    if !source.load.intervals.iter().any(|one| one.ios() > 0.0) {
        return Err(SizingError::NoOperation { source_words: source_words() });
    }
    examine(&source.load, source.origin, today, instance)
        .map_err(|cause| SizingError::Contradiction { source_words: source_words(), cause })
}

/// The volume of today.
fn volume(catalog: &Catalog, text: &str) -> Result<Resolved, SizingError> {
    let read = || Ok::<_, VolumesError>(catalog.resolve(&Spec::parse(text)?)?);
    read().map_err(|cause| SizingError::Today { spec: text.to_owned(), cause: cause.into() })
}

fn members(members: u16) -> Result<u16, SizingError> {
    if (1..=MOST_MEMBERS).contains(&members) { Ok(members) } else { Err(SizingError::Members { members }) }
}

/// The objective, and where its size comes from.
fn objective(
    request: &SizingRequest,
    source: &Source,
    today: Option<&Resolved>,
    growth: f64,
) -> Result<(Objective, SizeOrigin), SizingError> {
    let (bytes, origin) = needed_size(request, source, today)?;
    let grown = bytes as f64 * growth / GIB as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "float casts saturate")]
    let gib = (grown - 1e-6).ceil().max(1.0) as u64;
    let size_bytes = gib.saturating_mul(GIB);
    Ok((Objective { size_bytes, carried: request.carried, p99: request.p99 }, origin))
}

fn needed_size(
    request: &SizingRequest,
    source: &Source,
    today: Option<&Resolved>,
) -> Result<(u64, SizeOrigin), SizingError> {
    let asked = request.size_bytes.map(|bytes| (bytes, SizeOrigin::Asked));
    if let Some((bytes, origin)) = asked.or(today.map(|today| (today.size_bytes(), SizeOrigin::Today))) {
        holds(source, origin, bytes)?;
        return Ok((bytes, origin));
    }
    let known = source.server.as_ref().filter(|server| server.profile.workload.data_size.is_some());
    let server = known.ok_or(SizingError::SizeUnknown)?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "float casts saturate")]
    let with_room = (Stored::of(&server.planned).together() as f64 / (1.0 - FREE)) as u64;
    Ok((with_room, SizeOrigin::Profile))
}

/// Refuses a size below what must lie on a profile's volume.
fn holds(source: &Source, origin: SizeOrigin, given_bytes: u64) -> Result<(), SizingError> {
    let Some(server) = &source.server else { return Ok(()) };
    let stored = Stored::of(&server.planned);
    let least_bytes = stored.together();
    if given_bytes >= least_bytes {
        return Ok(());
    }
    Err(SizingError::SizeTooSmall { origin, given_bytes, least_bytes, stored: stored.words() })
}

/// The transactions a second that a profile's server has to carry; None of a load that was recorded.
fn tps(request: &SizingRequest, source: &Source, growth: f64) -> Result<Option<f64>, SizingError> {
    if let Some(tps) = request.tps.filter(|tps| !(tps.is_finite() && *tps > 0.0 && *tps <= 1e6)) {
        return Err(SizingError::Tps { tps });
    }
    let Some(server) = &source.server else {
        return match (request.tps, request.tps_measured) {
            (Some(_), None) => Err(SizingError::TpsNotRecorded),
            _ => Ok(None),
        };
    };
    let measured = server.planned.points.first().map(|point| point.load.rate.unwrap_or(point.tps));
    let tps = request.tps.or(measured).ok_or(SizingError::TpsNotInProfile)?;
    Ok(Some(tps * growth))
}

/// More transactions than were measured, of a load that was recorded.
fn measured_factor(request: &SizingRequest) -> Result<f64, SizingError> {
    match (request.tps, request.tps_measured) {
        (Some(tps), Some(measured)) if measured.is_finite() && measured > 0.0 => Ok(tps / measured),
        (_, Some(measured)) => Err(SizingError::TpsMeasured { tps: measured }),
        _ => Ok(1.0),
    }
}

fn needs(today: &InstanceType, processors: Option<Processors>) -> InstanceNeeds {
    let arm = match processors {
        None => Some(today.is_arm()),
        Some(Processors::X86) => Some(false),
        Some(Processors::Arm) => Some(true),
        Some(Processors::Any) => None,
    };
    InstanceNeeds { arm, ..InstanceNeeds::of(today) }
}
