//! From sections to the plans of an experiment.

use std::collections::BTreeMap;

use ebbtide_load::{Arrival, Distribution, Mix, RunOptions, Workload};
use ebbtide_mysql::Settings;
use ebbtide_volume::{MIB, TIB};

use super::crash::{End, Fault, Moment, Replication, ServerRole};
use super::error::closest;
use super::section::{GAIN, ROLES, Section};
use super::tree::{Table, Value};
use super::{Batch, CrashPlan, DataPlan, ExperimentError, InstancePlan, LoadPlan, Role, WarmupPlan};

/// The shortest measurement, s: less has no steady part to speak of.
pub(super) const SHORTEST_MEASURE_S: u32 = 10;
const LONGEST_MEASURE_S: u32 = 24 * 3600;
const LONGEST_WARMUP_S: u32 = 3600;
/// Most power cuts of an arm: at one a second they take eleven days, and more is a slip.
const MOST_CUTS: u32 = 1_000_000;
/// Most images of bad cuts that are kept of a kind.
const MOST_KEPT: u32 = 10_000;
/// The data volume where the file names none: gp3 as AWS gives it, large enough for most.
const DEFAULT_VOLUME: &str = "gp3:size=100GiB";

/// Everything in which arms may differ.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ArmPlan {
    pub(super) volumes: BTreeMap<Role, String>,
    pub(super) settings: Settings,
    pub(super) instance: InstancePlan,
    pub(super) load: LoadPlan,
    pub(super) batch: Option<Batch>,
    pub(super) measure_s: u32,
    pub(super) warmup: WarmupPlan,
    pub(super) crash: Option<CrashPlan>,
}

pub(super) fn data(root: &Table) -> Result<DataPlan, ExperimentError> {
    let section = Section::of(root, "data")?;
    Ok(DataPlan {
        tables: section.whole("tables", 1, 1..=10_000)?,
        rows: section.whole("rows", 1_000_000, 1..=2_147_483_647)?,
        aged: section.switch("aged", false)?,
    })
}

pub(super) fn repeats(root: &Table) -> Result<u32, ExperimentError> {
    Section::of(root, "trial")?.whole("repeats", 5, 1..=100)
}

fn measure_s(root: &Table) -> Result<u32, ExperimentError> {
    Section::of(root, "trial")?.duration("measure", 60, SHORTEST_MEASURE_S..=LONGEST_MEASURE_S)
}

fn warmup(root: &Table) -> Result<WarmupPlan, ExperimentError> {
    let section = Section::of(root, "warmup")?;
    Ok(WarmupPlan {
        read_tables: section.switch("read_tables", true)?,
        lead_in_s: section.duration("lead_in", 10, 0..=LONGEST_WARMUP_S)?,
        lead_in_speed: section.whole("lead_in_speed", 4, 1..=100)?,
        settle_s: section.duration("settle", 5, 0..=LONGEST_WARMUP_S)?,
    })
}

pub(super) fn arm(root: &Table, data: DataPlan) -> Result<ArmPlan, ExperimentError> {
    let measure_s = measure_s(root)?;
    Ok(ArmPlan {
        volumes: volumes(root)?,
        settings: settings(root)?,
        instance: instance(root)?,
        load: load(root)?,
        batch: batch(root, data, measure_s)?,
        measure_s,
        warmup: warmup(root)?,
        crash: crash(root)?,
    })
}

fn instance(root: &Table) -> Result<InstancePlan, ExperimentError> {
    let section = Section::of(root, "instance")?;
    let default = InstancePlan::default();
    let fs = section.text("fs")?.unwrap_or(&default.fs);
    if !matches!(fs, "xfs" | "ext4" | "ext4-bigalloc") {
        return Err(section.wrong("fs", "the file systems are xfs, ext4 and ext4-bigalloc"));
    }
    Ok(InstancePlan {
        memory_bytes: section.size("memory", default.memory_bytes, 256 * MIB..=64 * TIB)?,
        kind: section.text("type")?.filter(|kind| *kind != NONE).map(str::to_owned),
        fs: fs.to_owned(),
        divided_by: section.whole("divided_by", 1, 1..=1000)?,
        rotational: section.switch("rotational", default.rotational)?,
        burst: section.switch("burst", default.burst)?,
    })
}

/// What a patch says to take away what the base has.
const NONE: &str = "none";

fn volumes(root: &Table) -> Result<BTreeMap<Role, String>, ExperimentError> {
    let section = Section::of(root, "volumes")?;
    let mut volumes = BTreeMap::from([(Role::Data, DEFAULT_VOLUME.to_owned())]);
    for (key, role) in ROLES {
        match section.text(key)? {
            Some(NONE) if role == Role::Data => {
                return Err(section.wrong(key, "there must be a data volume"));
            }
            Some(NONE) | None => {}
            Some(spec) => {
                ebbtide_catalog::Spec::parse(spec).map_err(|error| section.wrong(key, error))?;
                volumes.insert(role, spec.to_owned());
            }
        }
    }
    Ok(volumes)
}

/// The value that stands for the server's own default, so that a patch can take a setting back.
const SERVER_DEFAULT: &str = "default";

fn settings(root: &Table) -> Result<Settings, ExperimentError> {
    let mut settings = Settings::new();
    let Some(node) = root.get("settings") else { return Ok(settings) };
    for (name, node) in node.table("settings")?.iter() {
        let text = setting_text(&node.value);
        if text.as_deref() == Some(SERVER_DEFAULT) {
            continue;
        }
        let text = text.ok_or_else(|| {
            node.place.wrong(format!("settings.{name} = {}: a setting has one value", node.value))
        })?;
        settings.set(name, &text).map_err(|error| node.place.wrong(error.to_string()))?;
    }
    Ok(settings)
}

/// A setting's value as a server's option file would have it; none for lists and tables.
pub(super) fn setting_text(value: &Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(text.trim().to_owned()),
        Value::Whole(number) => Some(number.to_string()),
        Value::Real(number) => Some(number.to_string()),
        Value::Switch(on) => Some(if *on { "on" } else { "off" }.to_owned()),
        Value::List(_) | Value::Table(_) => None,
    }
}

fn load(root: &Table) -> Result<LoadPlan, ExperimentError> {
    let section = Section::of(root, "load")?;
    let workload = match section.text("workload")? {
        None => Workload::ReadWrite,
        Some(name) => name.parse().map_err(|_| section.wrong("workload", no_workload(name)))?,
    };
    let plan = LoadPlan {
        workload,
        connections: section.whole("connections", 16, 1..=100_000)?,
        arrival: arrival(&section)?,
        distribution: distribution(&section)?,
        mix: mix(&section)?,
    };
    let options = RunOptions {
        connections: plan.connections,
        arrival: plan.arrival,
        distribution: plan.distribution,
        mix: plan.mix.clone(),
        ..RunOptions::new(workload)
    };
    options.check().map_err(|error| section.wrong("workload", error))?;
    Ok(plan)
}

fn no_workload(name: &str) -> String {
    let names = Workload::names();
    let nearest = closest(name, names.split(", "));
    format!("there is no such workload{}; use one of {names}", super::error::did_you_mean(nearest.as_deref()))
}

fn arrival(section: &Section<'_>) -> Result<Arrival, ExperimentError> {
    let rate = section.real("rate")?.unwrap_or(0.0);
    if !(0.0..=1e7).contains(&rate) {
        let range = "it must be 0 (as fast as it goes) to 10000000 transactions a second";
        return Err(section.wrong("rate", range));
    }
    match section.text("arrival")? {
        None if rate > 0.0 => Ok(Arrival::Poisson { per_second: rate }),
        None | Some("closed") if rate == 0.0 => Ok(Arrival::Closed),
        Some("closed") => Err(section.wrong("arrival", "a closed loop has no rate: set rate = 0 with it")),
        Some("fixed" | "poisson") if rate == 0.0 => Err(section.wrong("arrival", "it needs a rate above 0")),
        Some("fixed") => Ok(Arrival::Fixed { per_second: rate }),
        Some("poisson") => Ok(Arrival::Poisson { per_second: rate }),
        _ => Err(section.wrong("arrival", "the arrivals are closed, fixed and poisson")),
    }
}

fn distribution(section: &Section<'_>) -> Result<Distribution, ExperimentError> {
    let name = section.text("distribution")?.unwrap_or("uniform");
    let iterations = section.whole("rand_spec_iter", 12, 1..=10_000)?;
    let distribution = match name {
        "uniform" => Distribution::Uniform,
        "special" => Distribution::Special {
            iterations,
            pct: section.whole("rand_spec_pct", 1, 1..=100)?,
            res: section.whole("rand_spec_res", 75, 0..=99)?,
        },
        "gaussian" => Distribution::Gaussian { iterations },
        "pareto" => Distribution::Pareto { h: section.real("rand_pareto_h")?.unwrap_or(0.2) },
        "zipfian" => Distribution::Zipfian { exponent: section.real("rand_zipfian_exp")?.unwrap_or(0.8) },
        _ => {
            let names = "the distributions are uniform, special, gaussian, pareto and zipfian";
            return Err(section.wrong("distribution", names));
        }
    };
    distribution.check().map_err(|error| section.wrong("distribution", error))?;
    Ok(distribution)
}

fn mix(section: &Section<'_>) -> Result<Mix, ExperimentError> {
    let default = Mix::default();
    let count = |key, default| section.whole(key, default, 0..=10_000);
    Ok(Mix {
        point_selects: count("point_selects", default.point_selects)?,
        simple_ranges: count("simple_ranges", default.simple_ranges)?,
        sum_ranges: count("sum_ranges", default.sum_ranges)?,
        order_ranges: count("order_ranges", default.order_ranges)?,
        distinct_ranges: count("distinct_ranges", default.distinct_ranges)?,
        range_size: section.whole("range_size", default.range_size, 1..=2_147_483_647)?,
        range_selects: section.switch("range_selects", default.range_selects)?,
        index_updates: count("index_updates", default.index_updates)?,
        non_index_updates: count("non_index_updates", default.non_index_updates)?,
        delete_inserts: count("delete_inserts", default.delete_inserts)?,
        skip_trx: section.switch("skip_trx", default.skip_trx)?,
    })
}

fn batch(root: &Table, data: DataPlan, measure_s: u32) -> Result<Option<Batch>, ExperimentError> {
    let section = Section::of(root, "batch")?;
    let connections = section.whole("connections", 1, 0..=1000)?;
    if !section.is_there() || connections == 0 {
        return Ok(None);
    }
    let sql = section.text("sql")?.unwrap_or_default();
    if sql.is_empty() {
        return Err(section.wrong("sql", "a batch job needs its statement, like sql = \"SELECT ...\""));
    }
    let start_s = section.duration("start", 0, 0..=LONGEST_MEASURE_S)?;
    let end_s = section.maybe_duration("end", 0..=LONGEST_MEASURE_S)?;
    if start_s >= measure_s {
        return Err(section.wrong("start", format!("the measurement is over after {measure_s}s")));
    }
    if end_s.is_some_and(|end| end <= start_s) {
        return Err(section.wrong("end", format!("it must be after its start, {start_s}s")));
    }
    let sql = sql.replace("{rows}", &data.rows.to_string());
    Ok(Some(Batch { start_s, end_s, connections, sql }))
}

/// The experiment of the lab that says what the risk buys; it is looked up by [`super::load_gain`].
pub(super) fn gain(root: &Table) -> Result<Option<String>, ExperimentError> {
    let text = Section::of(root, "crash")?.text(GAIN)?;
    Ok(text.filter(|text| *text != NONE && !text.is_empty()).map(str::to_owned))
}

fn crash(root: &Table) -> Result<Option<CrashPlan>, ExperimentError> {
    let section = Section::of(root, "crash")?;
    if !section.is_there() {
        return Ok(None);
    }
    let default = CrashPlan::default();
    let word = |key: &'static str, text: &str, names: String| {
        let nearest = closest(text, names.split(", "));
        section.wrong(
            key,
            format!("'{text}' is none of {names}{}", super::error::did_you_mean(nearest.as_deref())),
        )
    };
    let role = match section.text("role")? {
        None => default.role,
        Some(text) => ServerRole::parse(text).ok_or_else(|| word("role", text, ServerRole::names()))?,
    };
    let replication = match section.text("replication")? {
        None => default.replication,
        Some(text) => {
            Replication::parse(text).ok_or_else(|| word("replication", text, Replication::names()))?
        }
    };
    let end = match section.text("end")? {
        None => default.end,
        Some(text) => End::parse(text).ok_or_else(|| word("end", text, End::names()))?,
    };
    let fault = match section.text("fault")? {
        None | Some(NONE) => None,
        Some(text) => {
            let names = || format!("{NONE}, {}", Fault::names());
            Some(Fault::parse(text).ok_or_else(|| word("fault", text, names()))?)
        }
    };
    if (role, end) == (ServerRole::Replica, End::Kill) {
        let only = "a replica's power is cut, and nothing else: leave it out, or say \"power-cut\"";
        return Err(section.wrong("end", only));
    }
    // A statement of ours would die with a killed server, and a replica is written by its source alone.
    let of_others =
        |moment: &Moment| !matches!(moment, Moment::Ddl | Moment::Extension | Moment::BinlogRotation);
    let of_all = (role, end) == (ServerRole::Primary, End::PowerCut);
    let moments = match section.texts("moments")? {
        None if !of_all => default.moments.into_iter().filter(of_others).collect(),
        None => default.moments,
        Some(texts) if texts.is_empty() => return Err(section.wrong("moments", "name one at least")),
        Some(texts) => {
            let moment = |text| Moment::parse(text).ok_or_else(|| word("moments", text, Moment::names()));
            texts.into_iter().map(moment).collect::<Result<Vec<_>, _>>()?
        }
    };
    if let (false, Some(moment)) = (of_all, moments.iter().find(|moment| !of_others(moment))) {
        let why = match end {
            End::Kill => "a kill of the server ends",
            End::PowerCut => "nobody gives to a replica",
        };
        let only = format!("'{}' needs a statement, which {why}: leave it out", moment.name());
        return Err(section.wrong("moments", only));
    }
    Ok(Some(CrashPlan {
        role,
        replication,
        cuts: section.whole("cuts", default.cuts, 1..=MOST_CUTS)?,
        end,
        fault,
        moments,
        keep: section.whole("keep", default.keep, 0..=MOST_KEPT)?,
        canary: None,
    }))
}
