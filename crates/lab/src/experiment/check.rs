//! Holds an experiment against the catalogue and a server before anything runs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ebbtide_catalog::{Catalog, InstanceType, Resolved, Spec};
use ebbtide_mysql::{Binary, NamedServers, SettingError, Settings};
use ebbtide_observe::switch;
use ebbtide_volume::{MIB, parse_size};

use super::arm_error::{ArmError, chain, with_hint};
use super::programs::Programs;
use super::{
    Arm, BackedUp, BackupMethod, BackupPlan, DataPlan, Experiment, ExperimentError, LeftOut, LoadKind, Role,
};

/// The seed of the rows. It is not the run's: prepared data would else never serve a second run.
pub const DATA_SEED: u64 = 1;

/// What a data directory takes without tables: system and undo tablespaces, temporary files, bytes.
const SYSTEM_BYTES: u64 = 256 * MIB;

/// The redo log where no setting changes it: MySQL's and MariaDB's default, bytes.
const DEFAULT_REDO_BYTES: u64 = 100 * MIB;

/// The buffer pool where no setting changes it: every server's default, bytes.
const DEFAULT_POOL_BYTES: u64 = 128 * MIB;

/// What a server needs besides its buffer pool, bytes.
const SERVER_BYTES: u64 = 128 * MIB;

/// Smallest volume that a file system is made on: `mkfs.xfs` refuses less than 300 MiB.
const SMALLEST_VOLUME: u64 = 300 * MIB;

/// An arm that can run, and what it resolves to. Limits are divided by [`super::InstancePlan::divided_by`] already: the
/// arrays of the volumes and the limits of the instance are attached as they are here.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedArm {
    /// The arm.
    pub arm: Arm,
    /// The program of its server.
    pub server: Binary,
    /// The source of a replica whose power is cut, planned as an arm with a single server; none where the replica's own program
    /// and data serve.
    pub source: Option<Box<PlannedArm>>,
    /// The volumes.
    pub volumes: BTreeMap<Role, Resolved>,
    /// The EC2 instance, where one is named.
    pub instance: Option<InstanceType>,
    /// The option lines that the server will be started with for the arm's settings.
    pub options: Vec<String>,
    /// What the tables take, bytes (an estimate).
    pub data_bytes: u64,
    /// Which prepared data it starts from: [`prepare_key`]. Those of a replica of another version than its source are
    /// its own.
    pub prepare_key: String,
    /// The collation of the database in these data; none: the server's default. A replica has its source's.
    pub collation: Option<String>,
    /// A replica of it, planned as an arm with a single server; all of its replicas are alike. None where it has none.
    pub replica: Option<Box<PlannedArm>>,
}

impl PlannedArm {
    /// It, its source, and its replica, which stands for all of them: every server that it needs, once.
    pub fn servers(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(self.source.as_deref()).chain(self.replica.as_deref())
    }
}

/// Holds an experiment against the catalogue and a server. Answers with its arms, in their order. Of the server programs that
/// it names only trusted ones are taken ([`NamedServers`]).
///
/// # Errors
/// The first volume that AWS would refuse or that is too small, setting that the server lacks, unknown
/// instance, server that is named and not there, or plan that contradicts itself.
pub fn check(
    experiment: &Experiment,
    catalog: &Catalog,
    binary: &Binary,
) -> Result<Vec<PlannedArm>, ExperimentError> {
    check_with(experiment, catalog, binary, &NamedServers::default())
}

/// [`check()`] with the server programs that it may name.
///
/// # Errors
/// As [`check()`].
pub fn check_with(
    experiment: &Experiment,
    catalog: &Catalog,
    binary: &Binary,
    servers: &NamedServers,
) -> Result<Vec<PlannedArm>, ExperimentError> {
    check_on(experiment, catalog, &Programs::find(experiment, binary, servers))
}

/// Holds an experiment against the catalogue alone: what needs the version of a server is not looked at.
///
/// # Errors
/// The first volume that AWS would refuse or that is too small, unknown instance, or plan that contradicts itself.
pub fn check_without_server(experiment: &Experiment, catalog: &Catalog) -> Result<(), ExperimentError> {
    check_region(experiment, catalog)?;
    experiment.arms.iter().try_for_each(|arm| {
        let of_replica = |replica: &Arm| {
            resolve(experiment, replica, catalog).map_err(|why| ArmError::OfReplica { why: Box::new(why) })
        };
        let checked = resolve(experiment, arm, catalog)
            .and_then(|_| check_backup(arm))
            .and_then(|()| arm.replica().as_ref().map(of_replica).transpose());
        checked.map(drop).map_err(|why| ExperimentError::of_arm(&arm.name, why))
    })
}

/// [`check`] with programs that were found before.
pub(crate) fn check_on(
    experiment: &Experiment,
    catalog: &Catalog,
    programs: &Programs<'_>,
) -> Result<Vec<PlannedArm>, ExperimentError> {
    check_region(experiment, catalog)?;
    let arms = experiment.arms.iter().map(|arm| {
        check_arm(experiment, arm, catalog, programs).map_err(|why| ExperimentError::of_arm(&arm.name, why))
    });
    arms.collect()
}

fn check_region(experiment: &Experiment, catalog: &Catalog) -> Result<(), ExperimentError> {
    if experiment.arms.is_empty() {
        return Err(ExperimentError::NoArms);
    }
    let priced = catalog.prices(experiment.region.as_deref());
    priced.map(drop).map_err(|error| ExperimentError::Wrong {
        place: experiment.name.clone(),
        message: with_hint(&error),
    })
}

fn check_arm(
    experiment: &Experiment,
    arm: &Arm,
    catalog: &Catalog,
    programs: &Programs<'_>,
) -> Result<PlannedArm, ArmError> {
    let of_arm = programs.of(arm)?;
    if arm.crash.is_some() && (arm.server.is_some() || !arm.topology.is_single()) {
        return Err(ArmError::CutTopology);
    }
    let own = check_server(experiment, arm, catalog, of_arm.own(arm))?;
    if arm.volumes.contains_key(&Role::Relay) {
        return Err(ArmError::RelayOfSource);
    }
    check_backup(arm)?;
    if arm.cut_replicas_source().is_some() && own.server != *of_arm.source {
        return with_source(own, experiment, catalog, programs, of_arm.source);
    }
    let (Some(replica), Some(program)) = (arm.replica(), of_arm.replica) else { return Ok(own) };
    if !logs(arm) {
        return Err(ArmError::SourceWithoutBinlog);
    }
    if arm.topology.promote && !arm.load.workload.leaves_marks(&arm.load.mix) {
        return Err(ArmError::PromotionWithoutMarks);
    }
    let mut replica = check_server(experiment, &replica, catalog, program)
        .map_err(|why| ArmError::OfReplica { why: Box::new(why) })?;
    collate_as(of_arm.source, &mut replica, programs)?;
    Ok(PlannedArm { replica: Some(Box::new(replica)), ..own })
}

/// Has the database of a replica's data the collation of its source.
fn collate_as(source: &Binary, replica: &mut PlannedArm, programs: &Programs<'_>) -> Result<(), ArmError> {
    replica.collation = programs.replica_collation(source, &replica.server)?;
    if let Some(collation) = &replica.collation {
        let _ = write!(replica.prepare_key, " collation={collation}");
    }
    Ok(())
}

/// A replica whose power is cut, with its source of another program. Its settings are not the source's own: that has those
/// that its version knows. It runs on a data volume alone.
fn with_source(
    mut replica: PlannedArm,
    experiment: &Experiment,
    catalog: &Catalog,
    programs: &Programs<'_>,
    program: &Binary,
) -> Result<PlannedArm, ArmError> {
    let mut settings = Settings::new();
    for (name, value) in replica.arm.settings.iter() {
        let mut one = Settings::new();
        one.set(name, value).expect("the arm has it");
        match one.options_for(program) {
            Ok(_) => settings.merge(&one),
            Err(SettingError::NotHere { .. } | SettingError::Value { .. }) => {}
            Err(error) => return Err(of_source(ArmError::Setting(error))),
        }
    }
    let mut arm = Arm { settings, ..replica.arm.clone() };
    arm.volumes.retain(|role, _| *role == Role::Data);
    let source = check_server(experiment, &arm, catalog, program).map_err(of_source)?;
    collate_as(program, &mut replica, programs)?;
    Ok(PlannedArm { source: Some(Box::new(source)), ..replica })
}

fn of_source(why: ArmError) -> ArmError {
    ArmError::OfSource { why: Box::new(why) }
}

/// A server of an arm, with what it resolves to.
fn check_server(
    experiment: &Experiment,
    arm: &Arm,
    catalog: &Catalog,
    binary: &Binary,
) -> Result<PlannedArm, ArmError> {
    let options = arm.settings.options_for(binary).map_err(ArmError::Setting);
    let ResolvedArm { volumes, instance, data_bytes } = resolve(experiment, arm, catalog)?;
    Ok(PlannedArm {
        arm: arm.clone(),
        server: binary.clone(),
        source: None,
        instance,
        volumes,
        options: options?,
        data_bytes,
        prepare_key: prepare_key(experiment, arm, binary),
        collation: None,
        replica: None,
    })
}

/// What an arm resolves to without its server.
struct ResolvedArm {
    volumes: BTreeMap<Role, Resolved>,
    instance: Option<InstanceType>,
    data_bytes: u64,
}

fn resolve(experiment: &Experiment, arm: &Arm, catalog: &Catalog) -> Result<ResolvedArm, ArmError> {
    let by = arm.instance.divided_by;
    let mut volumes = BTreeMap::new();
    for (role, text) in &arm.volumes {
        let role_name = role.key();
        let spec = Spec::parse(text).map_err(|error| ArmError::Spec {
            role: role_name,
            spec: text.clone(),
            error,
        })?;
        let resolved = catalog.resolve(&spec).map_err(|error| ArmError::Volume {
            role: role_name,
            spec: text.clone(),
            error,
        })?;
        volumes.insert(*role, resolved.divided(by));
    }
    check_roles(arm)?;
    check_memory(arm)?;
    let data_bytes = arm.tables(experiment.data).data_bytes();
    for (role, volume) in &volumes {
        check_room(arm, *role, volume, data_bytes)?;
    }
    let instance = check_instance(arm, &volumes, catalog)?;
    Ok(ResolvedArm { volumes, instance, data_bytes })
}

/// Whether its server writes a binary log.
fn logs(arm: &Arm) -> bool {
    arm.settings.get("log_bin").is_some_and(|value| switch(value) != Some(false))
}

fn check_roles(arm: &Arm) -> Result<(), ArmError> {
    if logs(arm) {
        return Ok(());
    }
    let has = |role| arm.volumes.contains_key(&role);
    match (has(Role::Binlog), has(Role::Logs)) {
        (true, _) => Err(ArmError::NoBinlog),
        (false, true) => Err(ArmError::LogsWithoutBinlog),
        (false, false) => Ok(()),
    }
}

/// Refuses a backup that cannot be made, and volumes for one that is not made.
fn check_backup(arm: &Arm) -> Result<(), ArmError> {
    let is_there = |backup: &BackupPlan, of: BackedUp| backup.of == of;
    for (of, volumes) in [
        (BackedUp::Source, Some(&arm.volumes)),
        (BackedUp::Replica, (!arm.topology.is_single()).then_some(&arm.topology.replica.volumes)),
    ] {
        let backup = arm.backup.as_ref().filter(|backup| is_there(backup, of));
        let Some(volumes) = volumes else {
            if backup.is_some() {
                return Err(ArmError::NoReplica);
            }
            continue;
        };
        let needs = backup.is_some_and(|backup| backup.method.has_target());
        match (needs, volumes.contains_key(&Role::Backup)) {
            (true, false) => return Err(ArmError::NoTarget { of: of.name() }),
            (false, true) => return Err(ArmError::TargetWithoutBackup { of: of.name() }),
            _ => {}
        }
        let recovered = [Role::Redo, Role::Binlog, Role::Logs, Role::Undo];
        let apart = recovered.into_iter().find(|role| volumes.contains_key(role));
        if let (Some(backup), Some(role)) = (backup, apart)
            && backup.method == BackupMethod::Snapshot
        {
            // TOML needs quotes for the `+`.
            let key = if role == Role::Logs { "\"redo+binlog\"" } else { role.key() };
            return Err(ArmError::SnapshotOfPart { role: role.holds(), key });
        }
    }
    match &arm.backup {
        Some(_) if arm.topology.promote => Err(ArmError::BackupAndPromotion),
        Some(_) if arm.crash.is_some() => Err(ArmError::CutBackup),
        _ => Ok(()),
    }
}

fn check_memory(arm: &Arm) -> Result<(), ArmError> {
    let pool = setting_bytes(arm, "buffer_pool_size", DEFAULT_POOL_BYTES);
    let memory = arm.instance.memory_bytes;
    if pool.saturating_add(SERVER_BYTES) <= memory {
        return Ok(());
    }
    Err(ArmError::Memory { pool, besides: SERVER_BYTES, memory })
}

/// A setting's size; the default where it is not set or no size (the servers judge it then).
fn setting_bytes(arm: &Arm, name: &str, default: u64) -> u64 {
    arm.settings.get(name).and_then(|text| parse_size(text).ok()).unwrap_or(default)
}

/// Refuses a volume that is smaller than what will be on it.
fn check_room(arm: &Arm, role: Role, volume: &Resolved, data_bytes: u64) -> Result<(), ArmError> {
    let redo = setting_bytes(arm, "redo_capacity", DEFAULT_REDO_BYTES);
    let is_apart = [Role::Redo, Role::Logs].iter().any(|role| arm.volumes.contains_key(role));
    let redo_here = if is_apart { 0 } else { redo };
    let size = volume.size_bytes();
    let name = role.key();
    let spec = &arm.volumes[&role];
    let (needed, why) = match role {
        // Rows that are updated and inserted out of order leave their pages half full: a quarter more.
        Role::Data => (
            data_bytes / 4 * 5 + SYSTEM_BYTES + redo_here,
            format!(
                "the tables take about {} MiB and grow by a quarter, the server's own files {} MiB and the redo \
                 log {} MiB",
                data_bytes / MIB,
                SYSTEM_BYTES / MIB,
                redo_here / MIB,
            ),
        ),
        Role::Redo | Role::Logs => (redo + 64 * MIB, format!("the redo log takes {} MiB", redo / MIB)),
        Role::Backup => (
            data_bytes / 4 * 5 + SYSTEM_BYTES,
            format!(
                "a copy of the tables takes about {} MiB and a quarter more, and the server's own files {} MiB",
                data_bytes / MIB,
                SYSTEM_BYTES / MIB
            ),
        ),
        Role::Binlog | Role::Undo | Role::Tmp | Role::Relay => (0, String::new()),
    };
    let volume = match arm.instance.divided_by {
        1 => format!("{name} volume"),
        by => format!("{name} volume (1/{by} of {spec})"),
    };
    if size < needed {
        let or = match (role, arm.load.workload) {
            (Role::Data | Role::Backup, LoadKind::Tpcc) => "fewer warehouses",
            (Role::Data | Role::Backup, LoadKind::Sysbench(_)) => "fewer rows",
            _ => "a smaller redo_capacity",
        };
        return Err(ArmError::Room { volume, size, needed, why, or });
    }
    if size < SMALLEST_VOLUME {
        return Err(ArmError::Small { volume, size, least: SMALLEST_VOLUME });
    }
    Ok(())
}

fn check_instance(
    arm: &Arm,
    volumes: &BTreeMap<Role, Resolved>,
    catalog: &Catalog,
) -> Result<Option<InstanceType>, ArmError> {
    let Some(kind) = &arm.instance.kind else { return Ok(None) };
    let instance = catalog.instance(kind).map_err(ArmError::Instance)?;
    let attached: u32 = volumes.values().map(|volume| u32::from(volume.spec.members())).sum();
    if attached > instance.ebs_slots {
        let (instance, slots) = (instance.name, instance.ebs_slots);
        return Err(ArmError::Slots { volumes: attached, instance, slots });
    }
    let instance = if arm.instance.burst { instance } else { instance.without_burst() };
    Ok(Some(instance.divided(arm.instance.divided_by)))
}

/// Leaves out the arms that need a setting which their server lacks, as [`leave_out`]. Of optional arms those whose servers
/// are not there or do not go together, and those with a value that they do not take, too; of others that is an error of
/// the experiment. Answers with a sentence for each of them.
pub fn fit(experiment: &mut Experiment, binary: &Binary) -> Vec<String> {
    let programs = Programs::find(experiment, binary, &NamedServers::default());
    fit_on(experiment, &programs)
}

/// [`fit`] with programs that were found before.
pub(crate) fn fit_on(experiment: &mut Experiment, programs: &Programs<'_>) -> Vec<String> {
    let lacks = |arm: &Arm| {
        let of_arm = match programs.of(arm) {
            Ok(of_arm) => of_arm,
            Err(why) => return arm.optional.then(|| chain(&why)),
        };
        let is_lack = |error: &SettingError| arm.optional || matches!(error, SettingError::NotHere { .. });
        let of_one = |settings: &Settings, binary| settings.options_for(binary).err().filter(is_lack);
        let of_replica = || of_one(&arm.topology.replica.settings, of_arm.replica?);
        let why = of_one(&arm.settings, of_arm.own(arm)).or_else(of_replica)?;
        Some(chain(&why))
    };
    leave_out(experiment, lacks)
}

/// Leaves out the arms whose files do not fit their volumes, as [`leave_out`]. Answers with a sentence for each of them.
pub(crate) fn fit_volumes(
    experiment: &mut Experiment,
    catalog: &Catalog,
    programs: &Programs<'_>,
) -> Vec<String> {
    let whole = experiment.clone();
    leave_out(experiment, |arm| {
        let why = check_arm(&whole, arm, catalog, programs).err()?;
        let of_server = match &why {
            ArmError::OfReplica { why } | ArmError::OfSource { why } => why,
            why => why,
        };
        matches!(of_server, ArmError::Room { .. } | ArmError::Small { .. }).then(|| chain(&why))
    })
}

/// Leaves out the arms that cannot run: those that are optional, and the others if some of what is left can still be
/// compared. Returns a sentence for each of them, and keeps them in the experiment.
pub fn leave_out(experiment: &mut Experiment, against: impl Fn(&Arm) -> Option<String>) -> Vec<String> {
    let left_out =
        |arm: &Arm| Some(LeftOut { arm: arm.name.clone(), why: against(arm)?, optional: arm.optional });
    let mut missing: Vec<Option<LeftOut>> = experiment.arms.iter().map(left_out).collect();
    if !can_be_compared(experiment, &missing) {
        missing.iter_mut().for_each(|one| *one = one.take().filter(|one| one.optional));
    }
    let place = |arm: usize| missing[arm].is_none().then(|| missing[..arm].iter().flatten().count());
    experiment.comparisons.retain_mut(|comparison| {
        let (Some(arm), Some(baseline)) = (place(comparison.arm), place(comparison.baseline)) else {
            return false;
        };
        comparison.arm -= arm;
        comparison.baseline -= baseline;
        true
    });
    let mut at = 0..;
    experiment.arms.retain(|_| at.next().is_some_and(|arm| missing[arm].is_none()));
    let missing: Vec<LeftOut> = missing.into_iter().flatten().collect();
    let sentences = missing.iter().map(LeftOut::words).collect();
    experiment.left_out.extend(missing);
    sentences
}

/// Whether what is left without these arms can be compared; where nothing was to be compared, whether any arm is left.
fn can_be_compared(experiment: &Experiment, missing: &[Option<LeftOut>]) -> bool {
    let is_there = |arm: usize| missing[arm].is_none();
    if experiment.comparisons.is_empty() {
        return (0..missing.len()).any(is_there);
    }
    experiment.comparisons.iter().any(|both| is_there(both.arm) && is_there(both.baseline))
}

/// Names the data that an arm starts from: arms, runs and experiments with equal keys share prepared
/// data. It consists of everything that made them: the server, the tables, the seed of the rows, the
/// file system, and the settings that a data directory is made with.
#[must_use]
pub fn prepare_key(experiment: &Experiment, arm: &Arm, binary: &Binary) -> String {
    let DataPlan { tables, rows, aged, warehouses, lengths } = experiment.data;
    let form = arm.tables(experiment.data).form;
    let tables_of = if form.is_empty() { form } else { format!(" tables-of={form}") };
    let sizes = match warehouses {
        Some(warehouses) => format!("warehouses={warehouses}"),
        None => format!("tables={tables} rows={rows} aged={aged}"),
    };
    let columns = lengths.map(|lengths| format!(" c={} pad={}", lengths.c, lengths.pad)).unwrap_or_default();
    format!(
        "layout=1 server={:?}-{} {sizes}{columns} seed={DATA_SEED} fs={} init={}{tables_of}",
        binary.flavour,
        binary.version,
        arm.instance.fs,
        arm.settings.init_key(binary),
    )
}
