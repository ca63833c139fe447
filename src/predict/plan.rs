//! From arguments and profile to what is predicted, refusing what cannot be.

use std::path::PathBuf;

use anyhow::Context as _;
use ebbtide_catalog::{Catalog, InstanceType, Resolved, Spec};
use ebbtide_twin::fio;
use ebbtide_twin::innodb::{BinlogVolume, Calibration, ModelLoad, Settings, VolumeRole, Volumes};
use ebbtide_twin::profile::{Planned, Profile};
use ebbtide_volume::{GIB, Nanos};

use super::PredictArgs;
use super::server::{ModelledServer, Runs, instance_of, move_to, read_profile};
use super::stored::Stored;
use super::volumes::{parse, refuse_idle, resolved, text, usage};
use crate::exit::Refusal;

/// Volumes of a sweep, at most.
const MOST_VOLUMES: usize = 200;
/// Longest span that is predicted.
const LONGEST: Nanos = Nanos::from_secs(30 * 86_400);
const SHORTEST: Nanos = Nanos::from_secs(30);
/// Connections where neither the command nor the profile names any.
const CLIENTS: u32 = 16;
/// Connections that an open loop may use.
const OPEN_CLIENTS: u32 = 256;

/// What is predicted.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) path: PathBuf,
    pub(super) profile: Profile,
    pub(super) planned: Planned,
    pub(super) calibration: Calibration,
    pub(super) volumes: Vec<PlannedVolume>,
    pub(super) instance: Option<InstanceType>,
    /// Volumes and instance are one share of so many.
    pub(super) divided_by: u32,
    /// What is predicted with other values than the profile's.
    pub(super) set: Vec<String>,
    pub(super) loads: Vec<ModelLoad>,
    pub(super) span: Nanos,
    pub(super) seed: u64,
    /// The key that a sweep varies.
    pub(super) swept: Option<String>,
}

/// A volume, or those of each role, with the spec as it was given, or as the sweep makes it.
#[derive(Debug)]
pub(super) struct PlannedVolume {
    pub(super) spec: String,
    pub(super) resolved: Volumes<Resolved>,
    /// What the sweep gives its key.
    pub(super) swept: Option<u64>,
}

impl Plan {
    pub(super) fn read(args: &PredictArgs, catalog: &Catalog) -> anyhow::Result<Self> {
        let path = args.profile.clone().expect("clap asks for a profile where none is made");
        let profile = with_time(read_profile(&path)?, &args.set)?;
        let changed = changed(&profile, &args.set)?;
        let runs = Runs { seed: args.seed, asked: Some(span(&args.span)?) };
        let instance = instance_of(&changed, args.instance.as_deref(), args.divided_by, catalog)?;
        let ModelledServer { profile, planned: measured, mut calibration, known, .. } =
            ModelledServer::of(profile, &path, catalog, instance.as_ref(), runs)?;
        let mut planned =
            changed.plan(known, args.seed).with_context(|| Refusal::usage("--set gives no profile"))?;
        planned.points = measured.points;
        // What was found follows from the profile's own processor time: another one is as much more or less of it.
        calibration.costs.cpu_us *= planned.costs.cpu_us / measured.costs.cpu_us;
        let divided_by = args.divided_by.or(changed.machine.divided_by).unwrap_or(1);
        if let Some(instance) = instance.as_ref().filter(|_| args.instance.is_some()) {
            let given = planned.machine;
            let is_set = |key: &str| args.set.iter().any(|(set, _)| set == key);
            move_to(&mut planned.machine, instance, divided_by);
            if is_set("machine.memory") {
                planned.machine.memory = given.memory;
            }
            if is_set("machine.vcpus") {
                planned.machine.vcpus = given.vcpus;
            }
        }
        let loads = loads(args, &planned)?;
        let sweep = args.sweep.as_deref().map(sweep).transpose()?;
        let volumes = volumes(&args.volume, sweep.as_ref(), divided_by, &planned.settings, catalog)?;
        let stored = Stored::of(&planned);
        volumes.iter().try_for_each(|volume| stored.fit(&volume.spec, &volume.resolved))?;
        Ok(Self {
            path,
            volumes,
            swept: sweep.map(|(key, _)| key),
            profile,
            planned,
            calibration,
            instance,
            divided_by,
            set: args.set.iter().map(|(key, value)| format!("{key} = {value}")).collect(),
            loads,
            span: span(&args.span)?,
            seed: args.seed,
        })
    }
}

impl Plan {
    /// Bytes of data files that the page cache holds; None where they do not go through it, or its size is not known.
    pub(super) fn page_cache_bytes(&self) -> Option<f64> {
        self.planned.page_cache_bytes()
    }

    /// What the server does on one of the volumes and the model does not, for people.
    pub(super) fn not_modelled(&self) -> Option<String> {
        // The types whose kernel devices report that they rotate are the tiers of disks.
        let rotating =
            self.volumes.iter().any(|volume| volume.resolved.data.spec.volume.kind.contains("hdd"));
        self.planned.not_modelled(rotating)
    }
}

/// The key of the processor time of a transaction.
const PROCESSOR_TIME: &str = "workload.cpu_us";

/// The profile with the processor time of `--set`, where it has none itself.
///
/// # Errors
/// Where points have `cpu_pct`: the processor time follows from it, and another one would have no effect.
fn with_time(mut profile: Profile, changes: &[(String, String)]) -> anyhow::Result<Profile> {
    let times: Vec<_> = changes.iter().filter(|(key, _)| key == PROCESSOR_TIME).cloned().collect();
    if times.is_empty() {
        return Ok(profile);
    }
    if let Some(place) = profile.points.iter().position(|point| point.cpu_pct.is_some()) {
        let message = format!(
            "--set {PROCESSOR_TIME}: the processor time of a transaction follows from cpu_pct of the points (point {} has it)",
            place + 1
        );
        return Err(Refusal::usage(message)
            .hint("remove cpu_pct from the points of the profile's file")
            .into());
    }
    if profile.workload.cpu_us.is_none() {
        set(&mut profile, &times)?;
    }
    Ok(profile)
}

/// The profile that is predicted: with other values, and without points, which are of the profile as it is.
fn changed(profile: &Profile, changes: &[(String, String)]) -> anyhow::Result<Profile> {
    if let Some((key, _)) = changes.iter().find(|(key, _)| key.starts_with("point.")) {
        let message =
            format!("--set {key}: points are what was measured, and cannot be predicted with another value");
        return Err(Refusal::usage(message).hint("change the profile's file").into());
    }
    let mut changed = Profile { points: Vec::new(), ..profile.clone() };
    set(&mut changed, changes)?;
    Ok(changed)
}

/// Sets the keys of `--set`.
///
/// # Errors
/// A key that no profile has, and a value that it does not take.
pub(super) fn set(profile: &mut Profile, changes: &[(String, String)]) -> anyhow::Result<()> {
    for (key, value) in changes {
        profile.set(key, value).map_err(|error| {
            Refusal::usage(format!("--set {error}")).hint("docs/predict.md has every key")
        })?;
    }
    Ok(())
}

fn loads(args: &PredictArgs, planned: &Planned) -> anyhow::Result<Vec<ModelLoad>> {
    if let Some(rate) = args.rate.iter().find(|rate| !(rate.is_finite() && **rate > 0.0 && **rate <= 1e6)) {
        let message = format!(
            "--rate {rate} is out of range: expected more than 0, at most 1000000 transactions a second"
        );
        return Err(Refusal::usage(message).into());
    }
    if let Some(clients) = args.clients.iter().find(|clients| !(1..=10_000).contains(*clients)) {
        return Err(
            Refusal::usage(format!("--clients {clients} is out of range: expected 1 to 10000")).into()
        );
    }
    if !args.rate.is_empty() {
        return Ok(args
            .rate
            .iter()
            .map(|rate| ModelLoad { clients: OPEN_CLIENTS, rate: Some(*rate) })
            .collect());
    }
    if args.clients.is_empty() {
        let first = planned.points.first().map(|point| point.load);
        return Ok(vec![first.unwrap_or(ModelLoad { clients: CLIENTS, rate: None })]);
    }
    Ok(args.clients.iter().map(|clients| ModelLoad { clients: *clients, rate: None }).collect())
}

fn span(text: &str) -> anyhow::Result<Nanos> {
    let span = fio::parse_time("--for", text).map_err(usage)?;
    if (SHORTEST..=LONGEST).contains(&span) {
        return Ok(span);
    }
    Err(Refusal::usage(format!("--for {text} is out of range: expected 30s to 30 days"))
        .hint("for a day give 24h")
        .into())
}

fn volumes(
    specs: &[String],
    sweep: Option<&(String, Vec<u64>)>,
    divided_by: u32,
    server: &Settings,
    catalog: &Catalog,
) -> anyhow::Result<Vec<PlannedVolume>> {
    let mut volumes = Vec::new();
    for given in specs {
        let specs = parse(given)?;
        refuse_idle(&specs, server)?;
        let Some((key, values)) = sweep else {
            let resolved = resolved(catalog, &specs, divided_by)?;
            volumes.push(PlannedVolume { spec: given.clone(), resolved, swept: None });
            continue;
        };
        for value in values {
            let specs = swept(&specs, key, *value)?;
            let resolved = resolved(catalog, &specs, divided_by)?;
            volumes.push(PlannedVolume { spec: text(&specs), resolved, swept: Some(*value) });
        }
    }
    if volumes.len() > MOST_VOLUMES {
        let message =
            format!("{} volumes are too many: at most {MOST_VOLUMES} are predicted at a time", volumes.len());
        return Err(Refusal::usage(message).hint("give --sweep a larger step").into());
    }
    Ok(volumes)
}

/// A sweep's key and values.
fn sweep(text: &str) -> anyhow::Result<(String, Vec<u64>)> {
    let bad = || {
        Refusal::usage(format!(
            "--sweep {text} is no sweep: expected iops, throughput or size, and FROM..TO:STEP"
        ))
        .hint("like iops=1000..30000:1000, or redo.iops=1000..5000:500; sizes are in GiB")
    };
    let parse = || {
        let (key, range) = text.split_once('=')?;
        let (from, rest) = range.split_once("..")?;
        let (to, step) = rest.split_once(':')?;
        let number = |text: &str| text.trim().parse::<u64>().ok();
        Some((key.trim().to_owned(), number(from)?, number(to)?, number(step)?))
    };
    let (key, from, to, step) = parse().ok_or_else(bad)?;
    let (role, of_spec) = key.split_once('.').unwrap_or(("data", &key));
    if !VolumeRole::ALL.iter().any(|known| known.name() == role)
        || !["iops", "throughput", "size"].contains(&of_spec)
        || step == 0
        || from > to
        || from == 0
    {
        return Err(bad().into());
    }
    let values: Vec<u64> =
        (from..=to).step_by(usize::try_from(step).unwrap_or(usize::MAX)).take(MOST_VOLUMES + 1).collect();
    Ok((key, values))
}

/// The specs with another value of a key of [`sweep`], which may name a role.
///
/// # Errors
/// A role without a volume of its own.
fn swept(specs: &Volumes<Spec>, key: &str, value: u64) -> anyhow::Result<Volumes<Spec>> {
    let mut specs = specs.clone();
    let (role, key) = key.split_once('.').unwrap_or(("data", key));
    let one = match (role, &mut specs.binlog) {
        ("data", _) => Some(&mut specs.data),
        ("redo", _) | ("binlog" | "redo+binlog", BinlogVolume::Redo) => specs.redo.as_mut(),
        ("binlog", BinlogVolume::Own(volume)) => Some(volume),
        _ => None,
    };
    let one = one.ok_or_else(|| {
        Refusal::usage(format!("--sweep {role}.{key}: --volume has no volume for {role}"))
            .hint(format!("as in --volume data=gp3:size=500GiB,{role}=gp3:size=50GiB"))
    })?;
    *one = with_key(one, key, value);
    Ok(specs)
}

/// A spec with another value of a key of [`sweep`]. With RAID 0 each member has it.
fn with_key(spec: &Spec, key: &str, value: u64) -> Spec {
    let mut spec = spec.clone();
    let volume = &mut spec.volume;
    match key {
        "iops" => volume.iops = Some(value),
        "throughput" => volume.throughput_mib_s = Some(value),
        _ => volume.size_bytes = Some(value.saturating_mul(GIB)),
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_has_both_its_ends_and_replaces_its_key() {
        let (key, values) = sweep("iops=1000..3000:1000").unwrap();
        assert_eq!((key.as_str(), values), ("iops", vec![1_000, 2_000, 3_000]));
        let both = parse("data=gp3:size=1TiB,redo=gp3:size=20GiB").unwrap();
        let of_redo = swept(&both, "redo.iops", 4_000).unwrap();
        assert_eq!(text(&of_redo), "data=gp3:size=1TiB,redo=gp3:size=20GiB,iops=4000");
        let logs = parse("data=gp3:size=1TiB,redo+binlog=gp3:size=20GiB").unwrap();
        for key in ["redo.iops", "binlog.iops", "redo+binlog.iops"] {
            let shown = text(&swept(&logs, key, 4_000).unwrap());
            assert_eq!(shown, "data=gp3:size=1TiB,redo+binlog=gp3:size=20GiB,iops=4000", "{key}");
        }
        assert!(swept(&both, "redo+binlog.iops", 5).is_err());
        let error = swept(&both, "binlog.size", 5).unwrap_err().to_string();
        assert!(error.contains("no volume for binlog"), "{error}");
        let with = |spec: &str, key, value| with_key(&Spec::parse(spec).unwrap(), key, value).to_string();
        assert_eq!(with("gp3:size=1TiB,iops=5000", "iops", 4_000), "gp3:size=1TiB,iops=4000");
        assert_eq!(with("gp2:size=1TiB", "size", 300), "gp2:size=300GiB");
        assert_eq!(with("raid0(2x gp3:size=1TiB)", "iops", 4_000), "raid0(2x gp3:size=1TiB,iops=4000)");
    }

    #[test]
    fn what_is_no_sweep_is_refused_with_an_example() {
        for text in [
            "iops",
            "iops=1..2",
            "iops=5..1:1",
            "iops=1..5:0",
            "colour=1..5:1",
            "iops=a..5:1",
            "tmp.iops=1..5:1",
        ] {
            let error = sweep(text).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }
}
