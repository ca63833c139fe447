//! The server of a profile: its model, calibrated on the profile's points.

use std::io;
use std::path::{Path, PathBuf};

use ebbtide_catalog::{Catalog, CatalogError, InstanceType, Resolved};
use ebbtide_observe::Volumes;
use ebbtide_twin::accuracy::{self, Basis, Figure, Interval, Uncertainty};
use ebbtide_twin::innodb::{
    CalibrateError, Calibrating, Calibration, Costs, Machine, MeasuredPoint, Memory, ModelLoad, ModelOutcome,
    ModelSetup, Trials, calibrate, run,
};
use ebbtide_twin::profile::{MachineFacts, Planned, Profile, ProfileError};
use ebbtide_volume::{Instance, Nanos};

use crate::volumes::{VolumesError, parse, refuse_idle, resolved};

/// A server that cannot be modelled.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The profile's file cannot be read.
    #[error("cannot read the profile {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The profile cannot be used.
    #[error("{} is no profile", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: ProfileFault,
    },
    /// The instance type is in no catalogue.
    #[error(transparent)]
    Instance(CatalogError),
}

/// Why a profile cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProfileFault {
    /// It says too little, or what cannot be.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// A point was measured on volumes that a server cannot have.
    #[error(transparent)]
    Volumes(#[from] VolumesError),
    /// The model cannot be calibrated on its points.
    #[error(transparent)]
    Calibration(#[from] CalibrateError),
}

/// What is left out at the start of each run: dirty pages are brought to their balance, every four seconds anew.
pub const SETTLE: Nanos = Nanos::from_secs(40);

/// A server as its profile has it.
#[derive(Debug)]
pub struct ModelledServer {
    /// The profile.
    pub profile: Profile,
    /// The profile, checked and with its defaults.
    pub planned: Planned,
    /// What its points say of the model.
    pub calibration: Calibration,
    /// The instance that the profile names.
    pub instance: Option<InstanceType>,
    /// The machine of that instance, or of the other one.
    pub known: MachineFacts,
}

impl ModelledServer {
    /// Reads a profile and calibrates the model on its points. Where the profile names no instance and no processors, they are
    /// those of `other`.
    ///
    /// # Errors
    /// A file that cannot be read, or a profile that cannot be used.
    pub fn read(
        path: &Path,
        catalog: &Catalog,
        other: Option<&InstanceType>,
        seed: u64,
    ) -> Result<Self, ServerError> {
        Self::of(read_profile(path)?, path, catalog, other, Runs { seed, asked: None })
    }

    /// Calibrates the model on the points of the profile that was read of `path`, for runs as long as are asked for.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(crate) fn of(
        profile: Profile,
        path: &Path,
        catalog: &Catalog,
        other: Option<&InstanceType>,
        runs: Runs,
    ) -> Result<Self, ServerError> {
        let instance = instance_of(&profile, None, None, catalog).map_err(ServerError::Instance)?;
        let divided_by = profile.machine.divided_by.unwrap_or(1);
        // The points were measured on a machine with other memory than the one that is asked about.
        let lent = || other.map(|other| MachineFacts { vcpus: Some(other.vcpus), memory_bytes: None });
        let own = instance.as_ref().map(|instance| facts(instance, divided_by));
        let known = own.or_else(lent).unwrap_or_default();
        let calibrated = || {
            let planned = profile.plan(known, runs.seed)?;
            let points = calibration_points(&profile, &planned, catalog, instance.as_ref())?;
            let calibration = calibrate(&points, &calibrating(&planned, runs))?;
            Ok((planned, calibration))
        };
        let (planned, calibration) =
            calibrated().map_err(|source| ServerError::Unusable { path: path.to_owned(), source })?;
        Ok(Self { profile, planned, calibration, instance, known })
    }

    /// How sure the model is of a load.
    #[must_use]
    pub fn uncertainty(&self, load: ModelLoad) -> Uncertainty {
        uncertainty(&self.planned, &self.calibration, load, true)
    }

    /// Runs the model.
    #[must_use]
    pub fn run(&self, setting: &Setting<'_>) -> ModelOutcome {
        modelled(&self.planned, &self.calibration, setting)
    }
}

/// The runs that a calibration is for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Runs {
    pub(crate) seed: u64,
    /// Virtual time of the predictions; None where there are none.
    pub(crate) asked: Option<Nanos>,
}

/// What the points of a profile are calibrated by. A point determines the pages where a factor of 2 or 0.5 on them moves its
/// throughput by more than the interval of a prediction at that point.
pub(crate) fn calibrating(planned: &Planned, runs: Runs) -> Calibrating {
    let interval = planned.points.first().map(|point| {
        let calibrated = Calibration { residuals: vec![1.0], ..Calibration::default() };
        let Interval { low, high, .. } =
            uncertainty(planned, &calibrated, point.load, !point.volumes.contains("data=")).of(Figure::Tps);
        (low, high)
    });
    Calibrating {
        trials: trials(planned, runs),
        given: planned.costs,
        cpu_given: planned.cpu_given,
        interval: interval.unwrap_or((1.0, 1.0)),
    }
}

/// The runs of a calibration.
pub(crate) const fn trials(planned: &Planned, runs: Runs) -> Trials {
    Trials { machine: planned.machine, seed: runs.seed, settle: SETTLE, asked: runs.asked }
}

/// What an instance type says of a machine. Processors are those of the whole type where the machine is a share of so many;
/// what memory a share has is not known.
pub(crate) fn facts(instance: &InstanceType, divided_by: u32) -> MachineFacts {
    let memory = ebbtide_volume::parse_size(&format!("{:.0}MiB", instance.memory_gib * 1024.0)).ok();
    MachineFacts { vcpus: Some(instance.vcpus), memory_bytes: memory.filter(|_| divided_by == 1) }
}

/// The machine of another instance type. A share keeps its memory, or has none that is known.
pub(crate) fn move_to(machine: &mut Machine, instance: &InstanceType, divided_by: u32) {
    let facts = facts(instance, divided_by);
    machine.vcpus = instance.vcpus;
    if let Some(bytes) = facts.memory_bytes {
        let other_bytes = machine.memory.map_or(Memory::OTHER_BYTES, |memory| memory.other_bytes);
        machine.memory = Some(Memory { bytes, other_bytes });
    }
}

/// The intervals of what a calibrated model says of a load.
pub(crate) fn uncertainty(
    planned: &Planned,
    calibration: &Calibration,
    load: ModelLoad,
    one_volume: bool,
) -> Uncertainty {
    accuracy::uncertainty(&Basis {
        flavour: planned.settings.flavour.name(),
        workload: &planned.workload,
        observed: planned.observed,
        clients: load.rate.is_none().then_some(load.clients),
        pool: planned.pool_of_data,
        separate_volumes: !one_volume,
        page_cache: planned.page_cache_bytes().is_some_and(|bytes| bytes > 0.0),
        residuals: &calibration.residuals,
    })
}

/// What a server is run on, and with which load.
#[derive(Debug)]
pub struct Setting<'a> {
    /// The load.
    pub load: ModelLoad,
    /// The volumes.
    pub volumes: Volumes<&'a Resolved>,
    /// The instance whose limits hold; none: nothing but the volume limits.
    pub instance: Option<&'a InstanceType>,
    /// Virtual time that is measured, after the model settled.
    pub span: Nanos,
    /// Decides every draw.
    pub seed: u64,
}

/// Runs the model of a server. Round trips and waits of clients are stated, and not found by the calibration: those of the
/// plan hold, which a request may have changed.
pub(crate) fn modelled(planned: &Planned, calibration: &Calibration, setting: &Setting<'_>) -> ModelOutcome {
    let Costs { round_trip_us, think_us, .. } = planned.costs;
    run(ModelSetup {
        settings: planned.settings.clone(),
        shape: planned.shape.clone(),
        machine: planned.machine,
        costs: Costs { round_trip_us, think_us, ..calibration.costs },
        load: setting.load,
        volumes: setting.volumes.map(|volume| volume.array(Nanos::ZERO)),
        instance: setting.instance.map(|instance| Instance::new(instance.limits)),
        seed: setting.seed,
        duration: setting.span + SETTLE,
        settle: SETTLE,
        cold: false,
    })
}

/// Reads a profile's file.
///
/// # Errors
/// A file that cannot be read, or is no profile.
pub fn read_profile(path: &Path) -> Result<Profile, ServerError> {
    let text = ebbtide_captured::packed::text_of(path)
        .map_err(|source| ServerError::Read { path: path.to_owned(), source })?;
    Profile::parse(&text)
        .map_err(|error| ServerError::Unusable { path: path.to_owned(), source: error.into() })
}

/// The instance whose limits hold: that of the profile, or the one that is named in its place; `none` for none. Its limits
/// are divided as the profile's are, or by `divided_by`.
///
/// # Errors
/// An instance type that there is not.
pub(crate) fn instance_of(
    profile: &Profile,
    named: Option<&str>,
    divided_by: Option<u32>,
    catalog: &Catalog,
) -> Result<Option<InstanceType>, CatalogError> {
    let name = match named {
        Some("none") => None,
        Some(name) => Some(name),
        None => profile.machine.instance.as_deref(),
    };
    let Some(name) = name else { return Ok(None) };
    let instance = catalog.instance(name)?;
    let burst = named.is_some() || profile.machine.burst.unwrap_or(true);
    let instance = if burst { instance } else { instance.without_burst() };
    // What is wrong with the profile's number is said when the profile is checked.
    let by = divided_by.or(profile.machine.divided_by).unwrap_or(1).max(1);
    Ok(Some(instance.divided(by)))
}

/// The points of a profile, on its own instance and on shares of volumes where its machine is one.
///
/// # Errors
/// A volume that there is not.
pub(crate) fn calibration_points(
    profile: &Profile,
    planned: &Planned,
    catalog: &Catalog,
    instance: Option<&InstanceType>,
) -> Result<Vec<MeasuredPoint>, VolumesError> {
    let divided_by = profile.machine.divided_by.unwrap_or(1);
    let measured = |point: &ebbtide_twin::profile::PlannedPoint| {
        let specs = parse(&point.volumes)?;
        refuse_idle(&specs, &point.settings)?;
        let volumes = resolved(catalog, &specs, divided_by)?;
        let instance = instance.map(|instance| Instance::new(instance.limits));
        Ok(point.clone().on(volumes.map(|volume| volume.array(Nanos::ZERO)), instance))
    };
    planned.points.iter().map(measured).collect()
}
