//! From arguments to what is sized, refusing what cannot be.

use std::fs::File;

use ebbtide_advisor::sizing::{Demand, Inputs, InstanceNeeds, Objective, PricedInstance, examine};
use ebbtide_catalog::price_list::PriceList;
use ebbtide_catalog::{Catalog, InstanceType, Prices, Resolved, Spec};
use ebbtide_twin::fio;
use ebbtide_volume::{GIB, Nanos, TIB, format_size, parse_size};

use super::args::{Architecture, SizeArgs};
use super::modelled::{self, JudgedRate};
use super::source::Source;
use crate::exit::Refusal;
use crate::packed::unpacked;
use crate::predict::stored::Stored;

/// Volumes in an array, at most: more share one failure, and AWS's own databases stripe over four.
const MOST_MEMBERS: u16 = 16;
/// Volumes in an array that is shown beside the answer where none was asked for, at most.
const DEFAULT_MEMBERS: u16 = 4;
/// Largest growth in a year, and share of headroom, percent.
const MOST_PERCENT: f64 = 1_000.0;
/// Months that are looked ahead, at most.
const MOST_MONTHS: u32 = 120;
/// The largest size that is asked for: the largest array of the largest volumes.
const MOST_SIZE: u64 = MOST_MEMBERS as u64 * 64 * TIB;
/// Share of a volume that is left free where the size follows from the data.
const FREE: f64 = 0.2;

/// What is sized.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) source: Source,
    pub(super) inputs: Inputs,
    /// The load as it was recorded.
    pub(super) now: Demand,
    /// It with more transactions, growth and headroom.
    pub(super) planned: Demand,
    /// The same with what throttled intervals may have needed.
    pub(super) implied: Option<Demand>,
    pub(super) objective: Objective,
    pub(super) today: Option<Resolved>,
    pub(super) instance: Option<InstanceType>,
    pub(super) most_members: u16,
    /// Whether arrays were asked for, so that the answer may be one.
    pub(super) arrays_asked: bool,
    pub(super) region: String,
    /// Price lists that were read, for people.
    pub(super) lists: Vec<String>,
    /// More transactions than were measured: so many times.
    pub(super) more: f64,
    /// Growth until the horizon: so many times.
    pub(super) growth: f64,
    /// Headroom: so many times.
    pub(super) headroom: f64,
    pub(super) horizon: u32,
    /// 99 of 100 transactions are to take at most this; of a profile alone.
    pub(super) transaction_p99: Option<Nanos>,
    /// Transactions a second that a profile's server is to carry, with growth.
    pub(super) tps: Option<f64>,
    /// What the choices for a profile's server are judged at; None of a load that was recorded.
    pub(super) judged: Option<JudgedRate>,
    pub(super) seed: u64,
    /// Where the size comes from, for people.
    pub(super) size_from: String,
    needs: Option<InstanceNeeds>,
    /// Whether an architecture was named, so that its processors may be any maker's.
    any_maker: bool,
}

/// Reads AWS's price lists into the catalogue; what was read, for people.
pub(super) fn take_prices(catalog: &mut Catalog, args: &SizeArgs) -> anyhow::Result<Vec<(String, String)>> {
    let mut all = Vec::new();
    for path in &args.prices {
        let unreadable =
            |error: std::io::Error| Refusal::usage(format!("--prices {}: {error}", path.display()));
        let input = File::open(path).and_then(unpacked).map_err(unreadable)?;
        let list = PriceList::read(&path.display().to_string(), input)
            .map_err(|error| Refusal::usage(format!("--prices: {error}")).hint(HOW_TO_GET_PRICES))?;
        catalog
            .take_prices(&list)
            .map_err(|error| Refusal::usage(format!("--prices: {error}")).hint(HOW_TO_GET_PRICES))?;
        let what = format!(
            "{}: {} prices of {}, published {}",
            path.display(),
            list.prices(),
            list.region(),
            list.as_of()
        );
        all.push((list.region().to_owned(), what));
    }
    Ok(all)
}

const HOW_TO_GET_PRICES: &str = "a list is at https://pricing.us-east-1.amazonaws.com/offers/v1.0/aws/AmazonEC2/current/REGION/index.csv, and the same with \
                                 AmazonRDS";

impl<'a> Plan<'a> {
    /// The plans of the volumes whose loads the arguments name: one, or those that metrics tell of in the order of their names.
    pub(super) fn read(
        args: &SizeArgs,
        catalog: &'a Catalog,
        lists: &[(String, String)],
    ) -> anyhow::Result<Vec<Self>> {
        let region = region(args, catalog, lists)?;
        let today = args.volume.as_deref().map(|text| volume(catalog, text)).transpose()?;
        let instance = args.instance.as_deref().map(|name| instance(catalog, name)).transpose()?;
        let sources = Source::read(args, catalog, instance.as_ref())?;
        let plan = |source| {
            Self::of(source, args, catalog, lists, (region.clone(), today.clone(), instance.clone()))
        };
        sources.into_iter().map(plan).collect()
    }

    /// The plan of a load, with the region, today's volume and today's instance.
    fn of(
        mut source: Source,
        args: &SizeArgs,
        catalog: &'a Catalog,
        lists: &[(String, String)],
        (region, today, instance): (String, Option<Resolved>, Option<InstanceType>),
    ) -> anyhow::Result<Self> {
        let instance = instance.or_else(|| source.server.as_ref().and_then(|server| server.instance.clone()));
        let headroom = 1.0 + percent("--headroom", &args.headroom, MOST_PERCENT)? / 100.0;
        let growth = growth(args)?;
        let (mut objective, size_from) = objective(args, &source, today.as_ref(), growth)?;
        let tps = tps(args, &source, growth)?;
        let transaction_p99 = objective.p99.filter(|_| source.server.is_some());
        if source.server.is_some() {
            objective.p99 = None;
        }
        let load = |tps| {
            modelled::load(&mut source, catalog, objective.size_bytes, tps, instance.as_ref(), args.seed)
        };
        let judged = tps.map(load).transpose()?;
        // A profile's load is that of the planned transactions already.
        let (more, in_load) = match tps {
            Some(_) => (1.0, growth),
            None => (measured_factor(args)?, 1.0),
        };
        let inputs = inputs(&source, today.as_ref(), instance.as_ref())?;
        let all = more * growth / in_load * headroom;
        let demand = |factor| Demand::from_origin(&source.load, source.origin, factor);
        let (now, planned) = (demand(1.0 / in_load), demand(all));
        let implied = inputs.throttled.as_ref().and_then(|throttled| throttled.implied(&source.load, all));
        let needs =
            instance.as_ref().filter(|_| !args.keep_instance).map(|today| needs(today, args.architecture));
        Ok(Self {
            catalog,
            planned,
            implied,
            now,
            inputs,
            objective,
            today,
            instance,
            most_members: members(args.raid0.unwrap_or(DEFAULT_MEMBERS))?,
            arrays_asked: args.raid0.is_some_and(|members| members > 1),
            region,
            lists: lists.iter().map(|(_, what)| what.clone()).collect(),
            more,
            growth,
            headroom,
            horizon: args.horizon,
            transaction_p99,
            tps,
            judged,
            seed: args.seed,
            size_from,
            needs,
            any_maker: args.architecture.is_some(),
            source,
        })
    }

    /// The prices of the region.
    pub(super) fn prices(&self) -> Prices<'a> {
        self.catalog
            .prices(Some(&self.region))
            .expect("the region's prices were found when the plan was read")
    }

    /// Why no other instance is looked for, for people; None where others are.
    pub(super) fn instances_skipped(&self) -> Option<String> {
        let today = self.instance.as_ref().filter(|_| self.needs.is_some())?;
        self.prices().instance(&today.name).is_none().then(|| {
            format!(
                "no other instance was looked for: the catalogue has no price of {} in {}. Give AWS's list of the region with --prices",
                today.name, self.region
            )
        })
    }

    /// The instances to choose from, today's first; empty where none is looked for.
    pub(super) fn instances(&self) -> Vec<PricedInstance<'a>> {
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
    pub(super) fn grown(&self) -> Demand {
        self.planned.times(1.0 / self.headroom)
    }

    /// By how much the planned load is more than the recorded one.
    pub(super) fn factor(&self) -> f64 {
        self.more * self.growth * self.headroom
    }
}

/// The region whose prices hold: the one that was named, or that of the first price list.
fn region(args: &SizeArgs, catalog: &Catalog, lists: &[(String, String)]) -> anyhow::Result<String> {
    let of_lists = lists.first().map(|(region, _)| region.as_str());
    let prices = catalog
        .prices(args.region.as_deref().or(of_lists))
        .map_err(|error| Refusal { hint: error.hint(), ..Refusal::usage(format!("--region: {error}")) })?;
    Ok(prices.region().to_owned())
}

fn instance(catalog: &Catalog, name: &str) -> anyhow::Result<InstanceType> {
    Ok(catalog.instance(name).map_err(|error| Refusal::usage(format!("--instance {name}: {error}")))?)
}

/// What the figures of the load say of themselves; figures that cannot be true, and a load of nothing, are refused.
fn inputs(
    source: &Source,
    today: Option<&Resolved>,
    instance: Option<&InstanceType>,
) -> anyhow::Result<Inputs> {
    if !source.load.intervals.iter().any(|one| one.ios() > 0.0) {
        let message = format!("{}: no operation was recorded", source.what);
        return Err(Refusal::usage(message)
            .hint("record the load while the server works, a day or more")
            .into());
    }
    Ok(examine(&source.load, source.origin, today, instance).map_err(|error| {
        Refusal::usage(format!("{}: {error}", source.what))
            .hint("leave the interval out of the file, or record the load again; sums and means may have been mixed up")
    })?)
}

fn volume(catalog: &Catalog, text: &str) -> anyhow::Result<Resolved> {
    let refuse = |error: &dyn std::error::Error| {
        Refusal::usage(format!("--volume {text}: {error}")).hint(
            "a volume is TYPE:KEY=VALUE,... such as gp3:size=500GiB,iops=6000 or raid0(2x gp2:size=100GiB)",
        )
    };
    let spec = Spec::parse(text).map_err(|error| refuse(&error))?;
    Ok(catalog.resolve(&spec).map_err(|error| refuse(&error))?)
}

/// A percentage such as `20%` or `20`, from zero on.
fn percent(option: &str, text: &str, most: f64) -> anyhow::Result<f64> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>();
    match number {
        Ok(percent) if (0.0..=most).contains(&percent) => Ok(percent),
        _ => Err(Refusal::usage(format!("{option} {text}: expected a percentage from 0% to {most}%")).into()),
    }
}

fn members(number: u16) -> anyhow::Result<u16> {
    if (1..=MOST_MEMBERS).contains(&number) {
        return Ok(number);
    }
    Err(Refusal::usage(format!("--raid0 {number} is out of range: expected 1 to {MOST_MEMBERS} volumes"))
        .into())
}

fn growth(args: &SizeArgs) -> anyhow::Result<f64> {
    let yearly = percent("--growth", &args.growth, MOST_PERCENT)?;
    if !(1..=MOST_MONTHS).contains(&args.horizon) {
        let message =
            format!("--horizon {} is out of range: expected 1 to {MOST_MONTHS} months", args.horizon);
        return Err(Refusal::usage(message).into());
    }
    Ok((1.0 + yearly / 100.0).powf(f64::from(args.horizon) / 12.0))
}

/// The objective, and where its size comes from.
fn objective(
    args: &SizeArgs,
    source: &Source,
    today: Option<&Resolved>,
    growth: f64,
) -> anyhow::Result<(Objective, String)> {
    let carried = percent("--carry", &args.carry, 100.0)?;
    if carried < 50.0 {
        let message = format!("--carry {}: expected 50% to 100% of the time", args.carry);
        return Err(Refusal::usage(message).into());
    }
    let p99 = args.p99.as_deref().map(|text| fio::parse_time("--p99", text));
    let p99 = p99.transpose().map_err(|error| Refusal::usage(error.to_string()))?;
    let (bytes, from) = needed_size(args, source, today)?;
    let grown = bytes as f64 * growth / GIB as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "float casts saturate")]
    let gib = (grown - 1e-6).ceil().max(1.0) as u64;
    Ok((Objective { size_bytes: gib.saturating_mul(GIB), carried: carried / 100.0, p99 }, from))
}

fn needed_size(args: &SizeArgs, source: &Source, today: Option<&Resolved>) -> anyhow::Result<(u64, String)> {
    if let Some(text) = &args.size {
        let bytes = asked_size(text)?;
        holds(source, "--size", bytes)?;
        return Ok((bytes, "--size".into()));
    }
    if let Some(today) = today {
        holds(source, "--volume", today.size_bytes())?;
        return Ok((today.size_bytes(), "today's volume".into()));
    }
    let known = source.server.as_ref().filter(|server| server.profile.workload.data_size.is_some());
    if let Some(server) = known {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "float casts saturate")]
        let with_room = (Stored::of(&server.planned).together() as f64 / (1.0 - FREE)) as u64;
        return Ok((with_room, "the profile's data and redo log, with a fifth of the volume free".into()));
    }
    Err(Refusal::usage("the size that is needed is not known")
        .hint("give today's volume with --volume gp2:size=500GiB, or the size with --size 500GiB")
        .into())
}

/// The value of `--size`. A number without a unit is refused: bytes are not meant.
fn asked_size(text: &str) -> anyhow::Result<u64> {
    let has_unit = !text.bytes().all(|byte| byte.is_ascii_digit());
    match parse_size(text) {
        Ok(bytes) if has_unit && (GIB..=MOST_SIZE).contains(&bytes) => Ok(bytes),
        _ => {
            let message = format!(
                "--size {text}: expected a whole number with its unit from 1GiB to {}, like 500GiB",
                format_size(MOST_SIZE)
            );
            Err(Refusal::usage(message).into())
        }
    }
}

/// Refuses a size below what must lie on a profile's volume.
fn holds(source: &Source, option: &str, bytes: u64) -> anyhow::Result<()> {
    let Some(server) = &source.server else { return Ok(()) };
    let stored = Stored::of(&server.planned);
    if bytes >= stored.together() {
        return Ok(());
    }
    let (least, given) = (ebbtide_text::size(stored.together()), ebbtide_text::size(bytes));
    let message =
        format!("{option}: {given} do not hold what lies on the volume, {least}: {}", stored.words());
    Err(Refusal::usage(message).hint(format!("give {least} or more")).into())
}

/// The transactions a second that a profile's server has to carry; None of a load that was recorded.
fn tps(args: &SizeArgs, source: &Source, growth: f64) -> anyhow::Result<Option<f64>> {
    if let Some(tps) = args.tps.filter(|tps| !(tps.is_finite() && *tps > 0.0 && *tps <= 1e6)) {
        let message = format!(
            "--tps {tps} is out of range: expected more than 0, at most 1000000 transactions a second"
        );
        return Err(Refusal::usage(message).into());
    }
    let Some(server) = &source.server else {
        if args.tps.is_some() && args.tps_measured.is_none() {
            return Err(Refusal::usage(
                "--tps: the recorded load does not say how many transactions it was of",
            )
            .hint("give them with --tps-measured, or size for a profile (docs/predict.md)")
            .into());
        }
        return Ok(None);
    };
    let measured = server.planned.points.first().map(|point| point.load.rate.unwrap_or(point.tps));
    match args.tps.or(measured) {
        Some(tps) => Ok(Some(tps * growth)),
        None => Err(Refusal::usage("the profile has no [[point]] that says how many transactions there are")
            .hint("give --tps, or a point: the difference of Com_commit over a measurement, by its seconds")
            .into()),
    }
}

/// More transactions than were measured, of a load that was recorded.
fn measured_factor(args: &SizeArgs) -> anyhow::Result<f64> {
    match (args.tps, args.tps_measured) {
        (Some(tps), Some(measured)) if measured.is_finite() && measured > 0.0 => Ok(tps / measured),
        (_, Some(measured)) => {
            let message = format!("--tps-measured {measured} is out of range: expected more than 0");
            Err(Refusal::usage(message).into())
        }
        _ => Ok(1.0),
    }
}

fn needs(today: &InstanceType, architecture: Option<Architecture>) -> InstanceNeeds {
    let arm = match architecture {
        None => Some(today.is_arm()),
        Some(Architecture::X86) => Some(false),
        Some(Architecture::Arm) => Some(true),
        Some(Architecture::Any) => None,
    };
    InstanceNeeds { arm, ..InstanceNeeds::of(today) }
}
