//! From a request and its profile to what is predicted, refusing what cannot be.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use ebbtide_catalog::{Catalog, InstanceType, Resolved};
use ebbtide_observe::Volumes;
use ebbtide_twin::innodb::{Calibration, ModelLoad, Settings};
use ebbtide_twin::profile::{Planned, Profile};
use ebbtide_volume::Nanos;

use super::error::{MOST_VOLUMES, PredictionError};
use super::sweep::Sweep;
use crate::profile::MadeProfile;
use crate::server::{ModelledServer, Runs, instance_of, move_to, read_profile};
use crate::stored::Stored;
use crate::volumes::{parse, refuse_idle, resolved};

/// Spans that are predicted.
pub const SPANS: RangeInclusive<Nanos> = Nanos::from_secs(30)..=Nanos::from_secs(30 * 86_400);
/// Connections where neither the request nor the profile names any.
const CLIENTS: u32 = 16;
/// Connections that an open loop may use.
const OPEN_CLIENTS: u32 = 256;

/// What is to be predicted.
#[derive(Debug, Clone)]
pub struct PredictionRequest {
    /// The profile's file, or the first of those that `made` is of.
    pub profile: PathBuf,
    /// The profile that was made of what was measured; None: it is read of its file.
    pub made: Option<MadeProfile>,
    /// Volumes, each as text: a spec, or the specs by role.
    pub volumes: Vec<String>,
    /// Connections that send one transaction after the other, a prediction for each; empty: those of the profile's first
    /// point. Not read where there are rates.
    pub clients: Vec<u32>,
    /// Transactions a second that arrive whatever happens, a prediction for each.
    pub rates: Vec<f64>,
    /// Virtual time that is predicted, of [`SPANS`].
    pub span: Nanos,
    /// The instance type whose limits hold, or `none`; None: that of the profile.
    pub instance: Option<String>,
    /// A key of the volumes that takes several values.
    pub sweep: Option<Sweep>,
    /// Decides every draw.
    pub seed: u64,
    /// Volumes and instance are one share of so many; None: as the profile has it.
    pub divided_by: Option<u32>,
    /// Other values of keys of the profile.
    pub set: Vec<(String, String)>,
}

/// What is predicted.
#[derive(Debug)]
pub struct PredictionPlan {
    /// The profile's file.
    pub path: PathBuf,
    /// The profile as its file has it, or as it was made.
    pub profile: Profile,
    /// What has to be known of a profile that was made, in sentences; empty of one that was read.
    pub notes: Vec<String>,
    /// The profile with other values, checked. Its points are as measured.
    pub planned: Planned,
    /// What the points say of the model.
    pub calibration: Calibration,
    /// The volumes, in the order given; of a sweep by its values.
    pub volumes: Vec<PlannedVolume>,
    /// The instance whose limits hold.
    pub instance: Option<InstanceType>,
    /// Volumes and instance are one share of so many.
    pub divided_by: u32,
    /// What is predicted with other values than the profile's, as `KEY = VALUE`.
    pub set: Vec<String>,
    /// The loads, in the order given.
    pub loads: Vec<ModelLoad>,
    /// Virtual time that each point is the mean of.
    pub span: Nanos,
    /// Decides every draw.
    pub seed: u64,
    /// The key that a sweep varies.
    pub swept: Option<String>,
}

/// A volume, or those of each role, with the spec as it was given, or as the sweep makes it.
#[derive(Debug)]
pub struct PlannedVolume {
    /// The spec, or those of each role.
    pub spec: String,
    /// The volumes.
    pub resolved: Volumes<Resolved>,
    /// What the sweep gives its key.
    pub swept: Option<u64>,
}

impl PredictionPlan {
    /// Reads the profile, calibrates the model and checks the request.
    ///
    /// # Errors
    /// A profile, volume, instance or load that cannot be predicted.
    pub fn read(request: &PredictionRequest, catalog: &Catalog) -> Result<Self, PredictionError> {
        let path = request.profile.clone();
        let (profile, notes) = match &request.made {
            Some(made) => (made.profile.clone(), [&made.notes[..], &made.contradicting].concat()),
            None => (read_profile(&path)?, Vec::new()),
        };
        let profile = with_time(profile, &request.set)?;
        let changed = changed(&profile, &request.set)?;
        let runs = Runs { seed: request.seed, asked: Some(request.span) };
        let instance = instance_of(&changed, request.instance.as_deref(), request.divided_by, catalog)
            .map_err(PredictionError::Instance)?;
        let ModelledServer { profile, planned: measured, mut calibration, known, .. } =
            ModelledServer::of(profile, &path, catalog, instance.as_ref(), runs)?;
        let mut planned = changed.plan(known, request.seed).map_err(PredictionError::Changed)?;
        planned.points = measured.points;
        // What was found follows from the profile's own processor time: another one is as much more or less of it.
        calibration.costs.cpu_us *= planned.costs.cpu_us / measured.costs.cpu_us;
        let divided_by = request.divided_by.or(changed.machine.divided_by).unwrap_or(1);
        if let Some(instance) = instance.as_ref().filter(|_| request.instance.is_some()) {
            let given = planned.machine;
            let is_set = |key: &str| request.set.iter().any(|(set, _)| set == key);
            move_to(&mut planned.machine, instance, divided_by);
            if is_set("machine.memory") {
                planned.machine.memory = given.memory;
            }
            if is_set("machine.vcpus") {
                planned.machine.vcpus = given.vcpus;
            }
        }
        let loads = loads(request, &planned)?;
        let sweep = request.sweep.as_ref();
        let volumes = volumes(&request.volumes, sweep, divided_by, &planned.settings, catalog)?;
        let stored = Stored::of(&planned);
        volumes.iter().try_for_each(|volume| stored.fit(&volume.spec, &volume.resolved))?;
        Ok(Self {
            path,
            notes,
            volumes,
            swept: sweep.map(|sweep| sweep.key().to_owned()),
            profile,
            planned,
            calibration,
            instance,
            divided_by,
            set: request.set.iter().map(|(key, value)| format!("{key} = {value}")).collect(),
            loads,
            span: request.span,
            seed: request.seed,
        })
    }

    /// Bytes of data files that the page cache holds; None where they do not go through it, or its size is not known.
    #[must_use]
    pub fn page_cache_bytes(&self) -> Option<f64> {
        self.planned.page_cache_bytes()
    }

    /// What the server does on one of the volumes and the model does not, for people.
    #[must_use]
    pub fn not_modelled(&self) -> Option<String> {
        // The types whose kernel devices report that they rotate are the tiers of disks.
        let rotating =
            self.volumes.iter().any(|volume| volume.resolved.data.spec.volume.kind.contains("hdd"));
        self.planned.not_modelled(rotating)
    }
}

/// The key of the processor time of a transaction.
pub const PROCESSOR_TIME: &str = "workload.cpu_us";

/// The profile with the processor time that is asked for, where it has none itself.
///
/// # Errors
/// Where points have `cpu_pct`: the processor time follows from it, and another one would have no effect.
fn with_time(mut profile: Profile, changes: &[(String, String)]) -> Result<Profile, PredictionError> {
    let times: Vec<_> = changes.iter().filter(|(key, _)| key == PROCESSOR_TIME).cloned().collect();
    if times.is_empty() {
        return Ok(profile);
    }
    if let Some(place) = profile.points.iter().position(|point| point.cpu_pct.is_some()) {
        return Err(PredictionError::ProcessorTimeMeasured { point: place + 1 });
    }
    if profile.workload.cpu_us.is_none() {
        set(&mut profile, &times)?;
    }
    Ok(profile)
}

/// The profile that is predicted: with other values, and without points, which are of the profile as it is.
fn changed(profile: &Profile, changes: &[(String, String)]) -> Result<Profile, PredictionError> {
    if let Some((key, _)) = changes.iter().find(|(key, _)| key.starts_with("point.")) {
        return Err(PredictionError::PointChanged { key: key.clone() });
    }
    let mut changed = Profile { points: Vec::new(), ..profile.clone() };
    set(&mut changed, changes)?;
    Ok(changed)
}

fn set(profile: &mut Profile, changes: &[(String, String)]) -> Result<(), PredictionError> {
    changes.iter().try_for_each(|(key, value)| profile.set(key, value)).map_err(PredictionError::Key)
}

fn loads(request: &PredictionRequest, planned: &Planned) -> Result<Vec<ModelLoad>, PredictionError> {
    let is_rate = |rate: f64| rate.is_finite() && rate > 0.0 && rate <= 1e6;
    if let Some(rate) = request.rates.iter().find(|rate| !is_rate(**rate)) {
        return Err(PredictionError::Rate { rate: *rate });
    }
    if let Some(clients) = request.clients.iter().find(|clients| !(1..=10_000).contains(*clients)) {
        return Err(PredictionError::Clients { clients: *clients });
    }
    if !request.rates.is_empty() {
        let open = |rate: &f64| ModelLoad { clients: OPEN_CLIENTS, rate: Some(*rate) };
        return Ok(request.rates.iter().map(open).collect());
    }
    if request.clients.is_empty() {
        let first = planned.points.first().map(|point| point.load);
        return Ok(vec![first.unwrap_or(ModelLoad { clients: CLIENTS, rate: None })]);
    }
    Ok(request.clients.iter().map(|clients| ModelLoad { clients: *clients, rate: None }).collect())
}

fn volumes(
    specs: &[String],
    sweep: Option<&Sweep>,
    divided_by: u32,
    server: &Settings,
    catalog: &Catalog,
) -> Result<Vec<PlannedVolume>, PredictionError> {
    let mut volumes = Vec::new();
    for given in specs {
        let specs = parse(given)?;
        refuse_idle(&specs, server)?;
        let Some(sweep) = sweep else {
            let resolved = resolved(catalog, &specs, divided_by)?;
            volumes.push(PlannedVolume { spec: given.clone(), resolved, swept: None });
            continue;
        };
        for (value, specs) in sweep.of(&specs)? {
            let resolved = resolved(catalog, &specs, divided_by)?;
            volumes.push(PlannedVolume { spec: specs.to_string(), resolved, swept: Some(value) });
        }
    }
    if volumes.len() > MOST_VOLUMES {
        return Err(PredictionError::TooManyVolumes { number: volumes.len() });
    }
    Ok(volumes)
}
