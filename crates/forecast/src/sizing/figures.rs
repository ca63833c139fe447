//! The answer as figures for programs; `docs/json/size.schema.json` is the contract.

use crate::sizing::{Answer, SizingPlan, Verified};
use ebbtide_advisor::sizing::change::{self, ChangePlan};
use ebbtide_advisor::sizing::managed::{CONDITIONS, Platform, PlatformCondition};
use ebbtide_advisor::sizing::{
    ARRAY_OPERATION, Carried, Choice, Inputs, Limit, QueueRule, RecordedLatency, RecordedPast, Safety,
    Spread, Today,
};
use ebbtide_catalog::{MonthlyCost, Usd};
use ebbtide_volume::{GIB, MIB, Nanos};
use serde::Serialize;

use super::document::instances_skipped;

/// What `size` prints.
#[derive(Serialize)]
pub struct SizingFigures<'a> {
    /// The load.
    load: LoadFigures<'a>,
    /// What its figures say of themselves.
    inputs: &'a Inputs,
    /// What is asked for.
    asked: AskedFigures,
    /// Whose prices these are.
    region: &'a str,
    /// What there is today; null where it was not named.
    today: Option<TodayFigures>,
    /// The cheapest single volume that meets what is asked, or the cheapest array where no single volume does; null where
    /// nothing does.
    answer: Option<ChoiceFigures>,
    /// A cheaper array of volumes in RAID 0, with what it costs in risk and operation; null without one.
    array: Option<ArrayFigures>,
    /// The answer, then the cheapest of each other type by cost, as one volume and as an array where that costs less.
    choices: Vec<ChoiceFigures>,
    /// The instance type of the choices; null where none is looked at.
    instance: Option<&'a str>,
    /// Other instance types that carry the answer, by cost.
    instances: Vec<InstanceFigures<'a>>,
    /// Why no other instance types were looked for. For people; the wording may change. Null where they were, and where none was
    /// named.
    instances_skipped: Option<String>,
    /// What other degrees of safety cost.
    safer: Vec<SaferFigures<'a>>,
    /// What would do in place of the answer if the second was counted on in which an idle gp3 gives twice its rate, which AWS does
    /// not promise; null where that saves nothing.
    counting_allowance: Option<AllowanceFigures>,
    /// The rules of the queue length; null where the queue is not known.
    queue_rule: Option<QueueRule>,
    /// How to make the answer so; null without one.
    change: Option<ChangePlan>,
    /// The same load on EC2, RDS and Aurora; empty without an answer.
    platforms: &'a [Platform],
    /// What has to be true for the platforms.
    conditions: [PlatformCondition; 8],
}

/// The load as it was recorded.
#[derive(Serialize)]
struct LoadFigures<'a> {
    /// Files and tool. For people; the wording may change.
    source: &'a str,
    /// What has to be known of the figures. For people; the wording may change.
    notes: &'a [String],
    /// Seconds that were recorded.
    seconds: f64,
    /// Number of intervals.
    intervals: usize,
    /// Operations a second as today's volume counts them, or an SSD volume of EBS where none was named: reads and writes each by
    /// their own mean size.
    iops: Option<Spread>,
    /// The largest request that counts as one of these operations, bytes.
    unit_bytes: u64,
    /// Requests a second, as they were submitted; of CloudWatch's metrics and of traces, as EBS counts them.
    requests: Option<Spread>,
    /// MiB (2^20 bytes) a second.
    mib_s: Option<Spread>,
    /// Percent of the requests that read; null without one.
    read_pct: Option<f64>,
    /// Bytes of a request; null without one.
    io_bytes: Option<f64>,
    /// Bytes of a read; null without one.
    read_bytes: Option<f64>,
    /// Bytes of a write; null without one.
    write_bytes: Option<f64>,
    /// Percent that sizes which differ inside one direction may add to `iops`, at most; null where each request was counted by its
    /// own size.
    most_mixed_pct: Option<f64>,
}

/// What is asked for.
#[derive(Serialize)]
struct AskedFigures {
    /// Usable size, GiB.
    size_gib: u64,
    /// Percent of the time without a wait for a limit.
    carried_pct: f64,
    /// 99 of 100 I/Os take at most this, us; null: whatever they take.
    p99_us: Option<f64>,
    /// 99 of 100 transactions take at most this, us; null: whatever they take, and without a profile.
    transaction_p99_us: Option<f64>,
    /// Transactions a second; null without a profile.
    tps: Option<f64>,
    /// Times the load for more transactions.
    more: f64,
    /// Times the load for growth.
    growth: f64,
    /// Times the load for headroom.
    headroom: f64,
}

/// What there is today.
#[derive(Serialize)]
struct TodayFigures {
    /// How it carries the load as it is: by the record where it has the latency (the longest wait is then the highest mean that
    /// shows one), and else by the model. Credits are those of the record where it has them.
    now: CarriedFigures,
    /// What the record says of it; null of a profile.
    recorded: Option<RecordedFigures>,
    /// Whether that meets what is asked, the size apart. Where the record was throttled for longer than is asked, it does not.
    meets_now: bool,
    /// Whether it meets what is asked with the planned load.
    meets: bool,
    /// It with the planned load.
    choice: ChoiceFigures,
}

/// What the record says of today's volume.
#[derive(Serialize)]
struct RecordedFigures {
    /// Percent of the time that was throttled, as far as can be known.
    throttled_pct: f64,
    /// Whether the latencies of `now` are those of the record: the means of its intervals where they show a wait, and the
    /// service times of the model elsewhere.
    has_latency: bool,
    /// The highest mean of an interval that shows a wait, us; null where none does.
    longest_mean_us: Option<f64>,
    /// The lowest burst credits, percent; null where they were not recorded.
    lowest_credits_pct: Option<f64>,
    /// Percent of the time without burst credits; null where they were not recorded.
    credits_at_zero_pct: Option<f64>,
    /// When they were at zero for the first time, s since the start of the load; null where they lasted, or were not recorded.
    credits_zero_after_s: Option<f64>,
}

/// Volumes, with what they cost and how they carry the planned load.
#[derive(Serialize)]
struct ChoiceFigures {
    /// The volumes, as a spec.
    volumes: String,
    /// What they cost; null without a price.
    storage: Option<MonthlyCost>,
    /// What the instance costs a month, US dollars; null without one, or without a price.
    instance_usd: Option<Usd>,
    /// Both together a month, US dollars; null without a price of the volumes.
    usd: Option<Usd>,
    /// How they carry the planned load, by the model.
    carried: CarriedFigures,
    /// The largest multiple of the planned load that they carry, from 1 to 4; null where they do not carry it.
    room: Option<f64>,
    /// What stops more; null where nothing does up to four times the planned load.
    limited_by: Option<Limit>,
    /// Whether they carry the planned load only while burst credits of the volumes or the instance last.
    needs_burst: bool,
    /// What the model of a profile's server says of them; null without a profile.
    model: Option<ModelFigures>,
}

/// An array that costs less than the answer.
#[derive(Serialize)]
struct ArrayFigures {
    /// It.
    choice: ChoiceFigures,
    /// Volumes in it.
    members: u16,
    /// What its volumes cost less a month, US dollars.
    saves_usd: Usd,
    /// How many times as likely as with one volume all data are lost: with any of its volumes.
    loss_factor: u16,
    /// What it asks of those who run it. For people; the wording may change.
    operation: [&'static str; 3],
}

/// What the model of a server says.
#[derive(Serialize)]
struct ModelFigures {
    /// Transactions a second that are carried, at most those that are asked for.
    tps: f64,
    /// The least of them to expect: judged at a higher rate where the server carries one.
    tps_low: f64,
    /// 99th percentile of a transaction, us; null without one.
    p99_us: Option<f64>,
    /// The most to expect of it, us; null without one.
    p99_high_us: Option<f64>,
    /// What limits most of the time. For people; the wording may change.
    limiter: &'static str,
    /// Whether what is asked is met by `tps_low` and `p99_high_us`.
    meets: bool,
}

/// How a load is carried.
#[derive(Serialize)]
struct CarriedFigures {
    /// Percent of the time in which I/O waits for a limit for over 1 ms.
    waiting_pct: f64,
    /// The same for each limit.
    by_limit: Vec<LimitFigures>,
    /// The longest wait, us.
    longest_us: f64,
    /// Whether what waits grows with each repetition of the load.
    overloaded: bool,
    /// The lowest burst credits, percent; null without credits.
    lowest_credits_pct: Option<f64>,
    /// When full credits end for the first time, s; null where they last.
    credits_end_s: Option<f64>,
    /// Median time of an I/O, us.
    p50_us: f64,
    /// 95th percentile, us.
    p95_us: f64,
    /// 99th percentile, us.
    p99_us: f64,
    /// 99.9th percentile, us.
    p999_us: f64,
}

/// Waiting for a limit.
#[derive(Serialize)]
struct LimitFigures {
    /// The limit.
    limit: Limit,
    /// Percent of the time.
    waiting_pct: f64,
}

/// An instance type.
#[derive(Serialize)]
struct InstanceFigures<'a> {
    /// Its name.
    name: &'a str,
    /// What it costs a month, US dollars.
    usd: Usd,
    /// Whether it is today's.
    today: bool,
}

/// The cheapest for another degree of safety.
#[derive(Serialize)]
struct SaferFigures<'a> {
    /// `carried`, `load` or `implied`.
    kind: &'static str,
    /// Percent of the time that is carried, or percent of load on top; null for `implied`.
    pct: Option<f64>,
    /// The volumes, as a spec; null where nothing meets it.
    volumes: Option<String>,
    /// What they cost a month, US dollars; null as above.
    usd: Option<Usd>,
    /// The instance type that they are attached to; null where none is looked at.
    instance: Option<&'a str>,
    /// Whether they are enough only while burst credits last.
    needs_burst: bool,
}

/// The cheapest that counts on what an idle volume gives beyond its rate.
#[derive(Serialize)]
struct AllowanceFigures {
    /// The volumes, as a spec.
    volumes: String,
    /// What they cost a month, US dollars.
    usd: Usd,
}

/// The answer as an object.
pub fn sized<'a>(plan: &'a SizingPlan<'_>, answer: &'a Answer<'_>) -> SizingFigures<'a> {
    let sizing = &answer.sizing;
    let checked = |place: usize| answer.verified.get(place);
    SizingFigures {
        load: load(plan),
        inputs: &plan.inputs,
        asked: asked(plan),
        region: &plan.region,
        today: sizing.today.as_ref().map(|today| TodayFigures {
            now: now(today),
            recorded: today.past.as_ref().map(|past| recorded(past, today)),
            meets_now: today.meets_now,
            meets: today.meets_planned,
            choice: choice(&today.choice, None),
        }),
        answer: sizing.choices.first().map(|best| choice(best, checked(0))),
        array: sizing.cheaper_array().map(|array| ArrayFigures {
            choice: choice(array.choice, checked(array.place)),
            members: array.members,
            saves_usd: array.saves,
            loss_factor: array.members,
            operation: ARRAY_OPERATION,
        }),
        choices: sizing.choices.iter().enumerate().map(|(n, one)| choice(one, checked(n))).collect(),
        instance: sizing.instance.map(|one| one.name.as_str()),
        instances: sizing
            .instances
            .iter()
            .map(|one| InstanceFigures {
                name: &one.instance.name,
                usd: one.price.month(),
                today: one.is_today,
            })
            .collect(),
        instances_skipped: instances_skipped(plan),
        safer: sizing
            .safer
            .iter()
            .map(|one| {
                let (kind, pct) = match one.what {
                    Safety::Carried(share) => ("carried", Some(short(share * 100.0))),
                    Safety::Load(factor) => ("load", Some(short((factor - 1.0) * 100.0))),
                    Safety::Implied => ("implied", None),
                };
                let candidate = one.candidate.as_ref();
                SaferFigures {
                    kind,
                    pct,
                    volumes: candidate.map(|of| change::short(&of.resolved.spec).to_string()),
                    usd: candidate.map(|of| of.usd),
                    instance: one.instance.map(|one| one.name.as_str()),
                    needs_burst: one.needs_burst,
                }
            })
            .collect(),
        counting_allowance: sizing.counting_allowance.as_ref().map(|candidate| AllowanceFigures {
            volumes: change::short(&candidate.resolved.spec).to_string(),
            usd: candidate.usd,
        }),
        queue_rule: answer.queue_rule,
        change: answer.change(plan),
        platforms: &answer.platforms,
        conditions: CONDITIONS,
    }
}

fn load<'a>(plan: &'a SizingPlan<'_>) -> LoadFigures<'a> {
    let mib = |spread: Spread| {
        let of = |bytes: f64| short(bytes / MIB as f64);
        Spread {
            mean: of(spread.mean),
            p50: of(spread.p50),
            p95: of(spread.p95),
            p99: of(spread.p99),
            p999: of(spread.p999),
            max: of(spread.max),
        }
    };
    LoadFigures {
        source: &plan.source.what,
        notes: &plan.source.notes,
        seconds: short(plan.now.seconds()),
        intervals: plan.source.load.intervals.len(),
        iops: plan.now.operations(plan.unit()),
        unit_bytes: plan.unit(),
        requests: plan.now.requests(),
        mib_s: plan.now.throughput().map(mib),
        read_pct: plan.now.read_share().map(|share| short(share * 100.0)),
        io_bytes: plan.now.io_bytes().map(short),
        read_bytes: plan.now.read_bytes().map(short),
        write_bytes: plan.now.write_bytes().map(short),
        most_mixed_pct: plan.most_mixed().map(|times| short((times - 1.0) * 100.0)),
    }
}

fn asked(plan: &SizingPlan<'_>) -> AskedFigures {
    let objective = &plan.objective;
    AskedFigures {
        size_gib: objective.size_bytes.div_ceil(GIB),
        carried_pct: short(objective.carried * 100.0),
        p99_us: objective.p99.map(us),
        transaction_p99_us: plan.transaction_p99.map(us),
        tps: plan.tps,
        more: short(plan.more),
        growth: short(plan.growth),
        headroom: short(plan.headroom),
    }
}

fn choice(of: &Choice, check: Option<&Verified>) -> ChoiceFigures {
    ChoiceFigures {
        volumes: change::short(&of.volumes.spec).to_string(),
        storage: of.storage.clone().map(MonthlyCost::to_cents),
        instance_usd: of.instance_usd,
        usd: of.usd(),
        carried: carried(&of.carried),
        room: of.room.map(short),
        limited_by: of.limited_by,
        needs_burst: of.needs_burst,
        model: check.map(|check| ModelFigures {
            tps: short(check.tps),
            tps_low: short(check.tps_low),
            p99_us: check.p99.map(us),
            p99_high_us: check.p99_high.map(us),
            limiter: check.limiter,
            meets: check.meets,
        }),
    }
}

/// Waiting for each limit, of shares in the order of [`Limit::ALL`].
fn by_limit(shares: [f64; 6]) -> Vec<LimitFigures> {
    let limits = Limit::ALL.into_iter().zip(shares).filter(|(_, share)| *share > 0.0);
    limits.map(|(limit, share)| LimitFigures { limit, waiting_pct: short(share * 100.0) }).collect()
}

fn carried(of: &Carried) -> CarriedFigures {
    CarriedFigures {
        waiting_pct: short(of.waiting * 100.0),
        by_limit: by_limit(of.by),
        longest_us: us(of.longest),
        overloaded: of.overloaded,
        lowest_credits_pct: of.lowest_credits.map(|share| short(share * 100.0)),
        credits_end_s: of.credits_end.map(Nanos::as_secs_f64),
        p50_us: us(of.latency(0.5)),
        p95_us: us(of.latency(0.95)),
        p99_us: us(of.latency(0.99)),
        p999_us: us(of.latency(0.999)),
    }
}

/// Today's volume with the load as it is: what is in the record wins over the model.
fn now(today: &Today) -> CarriedFigures {
    let past = today.past.as_ref();
    let credits = past.and_then(|past| past.credits);
    let model = carried(&today.now);
    let lasting = CarriedFigures {
        lowest_credits_pct: credits
            .map_or(model.lowest_credits_pct, |credits| Some(short(credits.lowest * 100.0))),
        credits_end_s: match credits {
            Some(credits) if credits.first_zero_s.is_some() => credits.zero_after_s,
            _ => model.credits_end_s,
        },
        ..model
    };
    let Some((latency, past)) = today.latency.as_ref().zip(past) else { return lasting };
    CarriedFigures {
        waiting_pct: short(past.throttled.max(latency.slow_time()) * 100.0),
        by_limit: by_limit(past.by),
        longest_us: latency.longest_mean().map_or(0.0, us),
        p50_us: us(today.latency(0.5)),
        p95_us: us(today.latency(0.95)),
        p99_us: us(today.latency(0.99)),
        p999_us: us(today.latency(0.999)),
        ..lasting
    }
}

fn recorded(past: &RecordedPast, today: &Today) -> RecordedFigures {
    let latency = today.latency.as_ref();
    RecordedFigures {
        throttled_pct: short(past.throttled * 100.0),
        has_latency: latency.is_some(),
        longest_mean_us: latency.and_then(RecordedLatency::longest_mean).map(us),
        lowest_credits_pct: past.credits.map(|credits| short(credits.lowest * 100.0)),
        credits_at_zero_pct: past.credits.map(|credits| short(credits.at_zero * 100.0)),
        credits_zero_after_s: past.credits.and_then(|credits| credits.zero_after_s),
    }
}

fn us(time: Nanos) -> f64 {
    time.0 as f64 / 1e3
}

/// Three decimals.
fn short(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
