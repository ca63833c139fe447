//! From sections to the plans of an experiment.

use std::collections::BTreeMap;

use ebbtide_load::tpcc::TpccOptions;
use ebbtide_load::{Arrival, ClientOptions, Distribution, LONGEST_ROUND_TRIP, Mix, RunOptions, Workload};
use ebbtide_mysql::Settings;
use ebbtide_text::closest;
use ebbtide_volume::{MIB, TIB};
use ebbtide_workload::sysbench::RowLengths;
use ebbtide_workload::tpcc::{MAX_WAREHOUSES, TABLES};

use super::backup::{BackedUp, BackupMethod, BackupPlan};
use super::crash::{End, Fault, Moment};
use super::section::{GAIN, OF_SERVERS, REPLICA, SERVER, SOURCE, Section, unknown_key};
use super::topology::{Replication, ServerRole, ServerSpec, Topology};
use super::tree::{TomlTable, Value};
use super::{
    Batch, CrashPlan, DataPlan, ExperimentError, InstancePlan, LoadKind, LoadPlan, Role, WarmupPlan, workload,
};

/// The shortest measurement, s: less has no steady part to speak of.
pub(super) const SHORTEST_MEASURE_S: u32 = 10;
const LONGEST_MEASURE_S: u32 = 24 * 3600;
const LONGEST_WARMUP_S: u32 = 3600;
/// Most power cuts of an arm: at one a second they take eleven days, and more is a slip.
const MOST_CUTS: u32 = 1_000_000;
/// Most images of bad cuts that are kept of a kind.
const MOST_KEPT: u32 = 10_000;
/// Most replicas of an arm: all of them run on this machine.
const MOST_REPLICAS: u32 = 8;
/// The data volume where the file names none: gp3 as AWS gives it, large enough for most.
const DEFAULT_VOLUME: &str = "gp3:size=100GiB";

/// Everything in which arms may differ.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ArmPlan {
    pub(super) volumes: BTreeMap<Role, String>,
    pub(super) settings: Settings,
    pub(super) server: Option<String>,
    pub(super) topology: Topology,
    pub(super) instance: InstancePlan,
    pub(super) load: LoadPlan,
    pub(super) batch: Option<Batch>,
    pub(super) backup: Option<BackupPlan>,
    pub(super) measure_s: u32,
    pub(super) warmup: WarmupPlan,
    pub(super) crash: Option<CrashPlan>,
}

/// The key of `[data]` that makes the tables TPC-C's.
const WAREHOUSES: &str = "warehouses";

pub(super) fn data(root: &TomlTable) -> Result<DataPlan, ExperimentError> {
    let section = Section::of(root, "data")?;
    if section.keys().any(|key| key == WAREHOUSES) {
        let warehouses = section.whole(WAREHOUSES, 1, 1..=MAX_WAREHOUSES)?;
        if let Some(key) = section.keys().find(|key| *key != WAREHOUSES) {
            let why = "it belongs to sysbench's tables, and [data] has warehouses: leave one of them out";
            return Err(section.wrong(key, why));
        }
        let tables = u32::try_from(TABLES.len()).expect("nine");
        return Ok(DataPlan { tables, rows: 0, aged: false, warehouses: Some(warehouses), lengths: None });
    }
    Ok(DataPlan {
        tables: section.whole("tables", 1, 1..=10_000)?,
        rows: section.whole("rows", 1_000_000, 1..=2_147_483_647)?,
        aged: section.switch("aged", false)?,
        warehouses: None,
        lengths: lengths(&section)?,
    })
}

/// The lengths of the text columns; none where they are sysbench's.
fn lengths(section: &Section<'_>) -> Result<Option<RowLengths>, ExperimentError> {
    let usual = RowLengths::SYSBENCH;
    let lengths = RowLengths {
        c: section.whole("c_length", usual.c, 1..=RowLengths::MOST)?,
        pad: section.whole("pad_length", usual.pad, 1..=RowLengths::MOST)?,
    };
    Ok((lengths != usual).then_some(lengths))
}

pub(super) fn repeats(root: &TomlTable) -> Result<u32, ExperimentError> {
    Section::of(root, "trial")?.whole("repeats", 5, 1..=100)
}

fn measure_s(root: &TomlTable) -> Result<u32, ExperimentError> {
    Section::of(root, "trial")?.duration("measure", 60, SHORTEST_MEASURE_S..=LONGEST_MEASURE_S)
}

fn warmup(root: &TomlTable) -> Result<WarmupPlan, ExperimentError> {
    let section = Section::of(root, "warmup")?;
    Ok(WarmupPlan {
        read_tables: section.switch("read_tables", true)?,
        lead_in_s: section.duration("lead_in", 10, 0..=LONGEST_WARMUP_S)?,
        lead_in_speed: section.whole("lead_in_speed", 4, 1..=100)?,
        settle_s: section.duration("settle", 5, 0..=LONGEST_WARMUP_S)?,
    })
}

pub(super) fn arm(root: &TomlTable, data: DataPlan) -> Result<ArmPlan, ExperimentError> {
    let measure_s = measure_s(root)?;
    let ServerSpec { volumes, settings, server } = server(root, SOURCE)?;
    Ok(ArmPlan {
        volumes,
        settings,
        server,
        topology: topology(root)?,
        instance: instance(root)?,
        load: load(root, data)?,
        batch: batch(root, data, measure_s)?,
        backup: backup(root, measure_s)?,
        measure_s,
        warmup: warmup(root)?,
        crash: crash(root)?,
    })
}

fn instance(root: &TomlTable) -> Result<InstancePlan, ExperimentError> {
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

fn topology(root: &TomlTable) -> Result<Topology, ExperimentError> {
    let section = Section::of(root, "topology")?;
    let replica = server(root, REPLICA)?;
    let by = named(&section, "by", Replication::parse, Replication::names())?.unwrap_or_default();
    let promote = section.switch("promote", false)?;
    match section.whole("replicas", 0, 0..=MOST_REPLICAS)? {
        0 => Ok(Topology::default()),
        replicas => Ok(Topology { replicas, by, promote, replica }),
    }
}

/// What the servers of a role are: `[settings]` and `[volumes]`, and over them what `[topology]` has for the role.
fn server(root: &TomlTable, role: &'static str) -> Result<ServerSpec, ExperimentError> {
    let own = root.get("topology").map(|node| node.table("topology")).transpose()?;
    let own = own.and_then(|topology| topology.get(role)).map(|node| node.table(role)).transpose()?;
    let spec = |root: &TomlTable, server| -> Result<ServerSpec, ExperimentError> {
        Ok(ServerSpec { volumes: volumes(root)?, settings: settings(root)?, server })
    };
    let Some(own) = own else { return spec(root, None) };
    if let Some((section, node)) = own.iter().find(|(section, _)| !OF_SERVERS.contains(section)) {
        return Err(unknown_key(&node.place, section, &format!("[topology.{role}]"), &OF_SERVERS));
    }
    let mut root = root.clone();
    root.merge(own);
    spec(&root, program(own, role)?)
}

/// The server program that a role names; none where it has none of its own.
fn program(own: &TomlTable, role: &str) -> Result<Option<String>, ExperimentError> {
    let Some(node) = own.get(SERVER) else { return Ok(None) };
    let Value::Text(text) = &node.value else {
        return Err(node.place.wrong(format!("topology.{role}.{SERVER} = {}: {A_PROGRAM}", node.value)));
    };
    named_program(text)
        .map_err(|why| node.place.wrong(format!("topology.{role}.{SERVER} = {}: {why}", node.value)))
}

const A_PROGRAM: &str = "it must be a fetched server, like \"mariadb-11.8\", a program or its directory";

/// The server program that a text names; none where it asks for the default.
fn named_program(text: &str) -> Result<Option<String>, &'static str> {
    match text.trim() {
        "" => Err(A_PROGRAM),
        DEFAULT => Ok(None),
        program => Ok(Some(program.to_owned())),
    }
}

/// The program of the source of a replica whose power is cut.
fn source_of_cut_replica(section: &Section<'_>, role: ServerRole) -> Result<Option<String>, ExperimentError> {
    let text = section.text(SOURCE)?.unwrap_or(DEFAULT);
    let source = named_program(text).map_err(|why| section.wrong(SOURCE, why))?;
    if source.is_some() && role == ServerRole::Primary {
        return Err(
            section.wrong(SOURCE, "a primary has no source: say \"default\", or set role = \"replica\"")
        );
    }
    Ok(source)
}

/// The value that a key names; none where it is not there.
fn named<T>(
    section: &Section<'_>,
    key: &'static str,
    parse: impl Fn(&str) -> Option<T>,
    names: String,
) -> Result<Option<T>, ExperimentError> {
    let Some(text) = section.text(key)? else { return Ok(None) };
    parse(text).map(Some).ok_or_else(|| {
        let nearest = closest(text, names.split(", "));
        let hint = ebbtide_text::did_you_mean(nearest);
        section.wrong(key, format!("'{text}' is none of {names}{hint}"))
    })
}

/// What a patch has to take away what the base has.
const NONE: &str = "none";

fn volumes(root: &TomlTable) -> Result<BTreeMap<Role, String>, ExperimentError> {
    let section = Section::of(root, "volumes")?;
    let mut volumes = BTreeMap::from([(Role::Data, DEFAULT_VOLUME.to_owned())]);
    for role in Role::ALL {
        let key = role.key();
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
    let own = [Role::Redo, Role::Binlog].into_iter().find(|role| volumes.contains_key(role));
    if let (Some(own), true) = (own, volumes.contains_key(&Role::Logs)) {
        let own = own.key();
        let why = format!(
            "it is the volume of both logs, and volumes.{own} is another one: set {own} = \"none\", or leave one of them \
             out"
        );
        return Err(section.wrong(Role::Logs.key(), why));
    }
    Ok(volumes)
}

/// The value that represents the server's own default, so that a patch can take a setting back; and of a program, that
/// there is none of its own.
const DEFAULT: &str = "default";

fn settings(root: &TomlTable) -> Result<Settings, ExperimentError> {
    let mut settings = Settings::new();
    let Some(node) = root.get("settings") else { return Ok(settings) };
    for (name, node) in node.table("settings")?.iter() {
        let text = setting_text(&node.value);
        if text.as_deref() == Some(DEFAULT) {
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

fn load(root: &TomlTable, data: DataPlan) -> Result<LoadPlan, ExperimentError> {
    let section = Section::of(root, "load")?;
    let workload = match section.text("workload")? {
        // With warehouses, there is one workload that the tables are for.
        None if data.warehouses.is_some() => LoadKind::Tpcc,
        None => LoadKind::Sysbench(Workload::ReadWrite),
        Some(name) => name.parse().map_err(|_| section.wrong("workload", no_workload(name)))?,
    };
    workload::check(&section, workload, data.warehouses)?;
    let (isolation, wait, statements) = workload::tpcc(&section)?;
    let plan = LoadPlan {
        workload,
        connections: section.whole("connections", 16, 1..=100_000)?,
        round_trip_us: section.short_duration("round_trip", LONGEST_ROUND_TRIP)?,
        arrival: arrival(&section)?,
        distribution: distribution(&section)?,
        mix: mix(&section)?,
        isolation,
        wait,
        statements,
    };
    let clients =
        ClientOptions { connections: plan.connections, arrival: plan.arrival, ..ClientOptions::default() };
    let checked = match workload {
        LoadKind::Tpcc => {
            let warehouses = data.warehouses.unwrap_or(1);
            TpccOptions { warehouses, isolation, wait, clients, ..TpccOptions::default() }.check()
        }
        LoadKind::Sysbench(workload) => RunOptions {
            clients,
            distribution: plan.distribution,
            mix: plan.mix.clone(),
            ..RunOptions::new(workload)
        }
        .check(),
    };
    checked.map_err(|error| section.wrong("workload", error))?;
    Ok(plan)
}

fn no_workload(name: &str) -> String {
    let names = LoadKind::names();
    let nearest = closest(name, names.split(", "));
    format!("there is no such workload{}; use one of {names}", ebbtide_text::did_you_mean(nearest))
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
        gets_pct: section.whole("gets_pct", default.gets_pct, 0..=100)?,
    })
}

fn batch(root: &TomlTable, data: DataPlan, measure_s: u32) -> Result<Option<Batch>, ExperimentError> {
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
    if data.warehouses.is_some() && sql.contains("{rows}") {
        return Err(section.wrong("sql", "TPC-C's tables have no common number of rows: leave {rows} out"));
    }
    let sql = sql.replace("{rows}", &data.rows.to_string());
    Ok(Some(Batch { start_s, end_s, connections, sql }))
}

fn backup(root: &TomlTable, measure_s: u32) -> Result<Option<BackupPlan>, ExperimentError> {
    let section = Section::of(root, "backup")?;
    if !section.is_there() || section.text("method")? == Some(NONE) {
        return Ok(None);
    }
    let method = named(&section, "method", BackupMethod::parse, BackupMethod::names())?;
    let method = method.ok_or_else(|| {
        section.wrong("method", format!("a backup needs its method: {}", BackupMethod::names()))
    })?;
    let start_s = section.duration("start", 0, 0..=LONGEST_MEASURE_S)?;
    if start_s >= measure_s {
        return Err(section.wrong("start", format!("the measurement is over after {measure_s}s")));
    }
    Ok(Some(BackupPlan {
        method,
        of: named(&section, "of", BackedUp::parse, BackedUp::names())?.unwrap_or_default(),
        start_s,
        damage: section.switch("damage", false)?,
    }))
}

/// The experiment of the lab that measures what the risk buys; it is looked up by [`super::load_gain`].
pub(super) fn gain(root: &TomlTable) -> Result<Option<String>, ExperimentError> {
    let text = Section::of(root, "crash")?.text(GAIN)?;
    Ok(text.filter(|text| *text != NONE && !text.is_empty()).map(str::to_owned))
}

fn crash(root: &TomlTable) -> Result<Option<CrashPlan>, ExperimentError> {
    let section = Section::of(root, "crash")?;
    if !section.is_there() {
        return Ok(None);
    }
    let default = CrashPlan::default();
    let word = |key: &'static str, text: &str, names: String| {
        let nearest = closest(text, names.split(", "));
        section.wrong(key, format!("'{text}' is none of {names}{}", ebbtide_text::did_you_mean(nearest)))
    };
    let role = named(&section, "role", ServerRole::parse, ServerRole::names())?.unwrap_or(default.role);
    let replication = named(&section, "replication", Replication::parse, Replication::names())?
        .unwrap_or(default.replication);
    let source = source_of_cut_replica(&section, role)?;
    let end = named(&section, "end", End::parse, End::names())?.unwrap_or(default.end);
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
        source,
        cuts: section.whole("cuts", default.cuts, 1..=MOST_CUTS)?,
        end,
        fault,
        moments,
        keep: section.whole("keep", default.keep, 0..=MOST_KEPT)?,
        canary: None,
    }))
}
