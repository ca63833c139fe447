//! Prepared data: the bytes that every trial of an arm starts from, made once and kept as a snapshot.
//!
//! A snapshot is taken as the very last step, so one that is there is complete. What made it is
//! in its metadata; one whose metadata this version does not read, or that is damaged, is made again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use ebbtide_catalog::Resolved;
use ebbtide_device::host::{FsType, HostError};
use ebbtide_device::store::SnapshotInfo;
use ebbtide_dir::Dir;
use ebbtide_load::{Cancel, DATABASE, Loading};
use ebbtide_mysql::{Binary, Layout, Server, ServerPlan, Settings};
use ebbtide_text::seed::fnv1a;
use ebbtide_volume::{GIB, MIB};
use ebbtide_workload::Description;
use serde::{Deserialize, Serialize};

use super::error::{RunError, StepError};
use super::event::{Event, EventSink};
use super::home::{self, Lab};
use super::pace;
use super::proc;
use super::statements;
use super::volume::{LabVolume, VolumeOrigin, VolumeRequest, ideal};
use crate::experiment::{DATA_SEED, Experiment, Known, PlannedArm, Role, prepare_pace};

/// Version of what this module makes. Data made otherwise are made again.
const VERSION: u32 = 2;
/// Key of [`PreparedMeta`] in a snapshot's metadata.
const META: &str = "lab";
/// The volume that data are prepared on has at most this size, unless they need more; clones are
/// grown from it. Growing XFS by more than a hundred times would leave it with thousands of
/// allocation groups.
const USUAL_BYTES: u64 = 16 * GIB;
/// How long a server may take to write back and purge everything.
const SHUTDOWN: Duration = Duration::from_secs(600);

/// What made a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct PreparedMeta {
    version: u32,
    key: String,
    server: String,
    tables: u32,
    rows: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    warehouses: Option<u32>,
    fs: FsType,
    took_s: f64,
}

/// Prepared data that are kept.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prepared {
    /// The snapshot's name.
    pub name: String,
    /// What made it; see [`crate::experiment::prepare_key`].
    pub key: String,
    /// The server that made it, in its own words.
    pub server: String,
    /// Number of tables.
    pub tables: u32,
    /// Rows per table; 0 for TPC-C's tables.
    pub rows: u32,
    /// Warehouses of TPC-C; none for other tables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warehouses: Option<u32>,
    /// The file system.
    pub fs: String,
    /// Size of the volume, bytes.
    pub size_bytes: u64,
    /// What it takes on the host's disk, bytes.
    pub allocated_bytes: u64,
    /// When it was made, seconds since 1970.
    pub created_unix_s: u64,
    /// How long that took, s.
    pub took_s: f64,
    /// What is wrong with it, where something is: it will be made again.
    pub damage: Option<String>,
}

impl Prepared {
    fn read(info: SnapshotInfo) -> Self {
        let meta = PreparedMeta::deserialize(&info.meta[META]);
        let unread = meta.as_ref().err().map(|_| "another version of this program made it".to_owned());
        let meta = meta.unwrap_or(PreparedMeta {
            version: 0,
            key: String::new(),
            server: String::new(),
            tables: 0,
            rows: 0,
            warehouses: None,
            fs: FsType::Xfs,
            took_s: 0.0,
        });
        let old = (meta.version != VERSION).then(|| "another version of this program made it".to_owned());
        Self {
            name: info.name,
            key: meta.key,
            server: meta.server,
            tables: meta.tables,
            rows: meta.rows,
            warehouses: meta.warehouses,
            fs: meta.fs.to_string(),
            size_bytes: info.size_bytes,
            allocated_bytes: info.allocated_bytes,
            created_unix_s: info.created_unix_s,
            took_s: meta.took_s,
            damage: info.damage.map(|damage| damage.to_string()).or(unread).or(old),
        }
    }
}

/// The prepared data of a home. A run that is under way there goes on.
///
/// # Errors
/// A store that cannot be read.
pub fn list(home: &Path) -> Result<Vec<Prepared>, RunError> {
    Ok(read(home::snapshots(home)?))
}

/// Whose data a home has that can be used; none where it cannot be read.
pub(super) fn keys_of_home(home: &Path) -> BTreeSet<String> {
    keys_among(home::listed(home).map(read).unwrap_or_default())
}

/// The same of a lab that is held.
pub(super) fn keys(lab: &Lab) -> BTreeSet<String> {
    keys_among(all(lab))
}

fn keys_among(all: Vec<Prepared>) -> BTreeSet<String> {
    all.into_iter().filter(|kept| kept.damage.is_none()).map(|kept| kept.key).collect()
}

/// What a home knows before a run; nothing where there is none, or this user may not read it. A run that is under way there goes on.
#[must_use]
pub fn known(home: &Path) -> Known {
    Known { paces: pace::read(&home::lab_dir(home)), prepared: keys_of_home(home) }
}

/// The same of a lab that is held.
pub(crate) fn known_in(lab: &Lab) -> Known {
    Known { paces: pace::read(lab.host.home().root()), prepared: keys(lab) }
}

/// Deletes prepared data by the snapshot's name; what takes space is free then.
///
/// # Errors
/// [`RunError::Busy`] while a run has them, and where there are none of that name.
pub fn delete(home: &Path, name: &str) -> Result<(), RunError> {
    let lab = Lab::open(home, &Cancel::default(), EventSink::new(&|_| ()))?;
    lab.host.store().delete_snapshot(name).map_err(HostError::from)?;
    lab.host.store().settle();
    Ok(())
}

fn all(lab: &Lab) -> Vec<Prepared> {
    read(lab.host.store().snapshots())
}

fn read(snapshots: Vec<SnapshotInfo>) -> Vec<Prepared> {
    // Whoever else keeps snapshots in this store names them by a key of their own.
    let is_others = |info: &SnapshotInfo| {
        info.meta.as_object().is_some_and(|meta| !meta.is_empty() && !meta.contains_key(META))
    };
    snapshots.into_iter().filter(|info| !is_others(info)).map(Prepared::read).collect()
}

/// The data that some servers of arms start from.
#[derive(Debug, Clone)]
pub struct Need<'a> {
    /// One of these servers: its program, its settings and its file system make the data.
    planned: &'a PlannedArm,
    /// The smallest data volume among them.
    smallest: &'a Resolved,
}

impl Need<'_> {
    /// The size of the volume that the data are prepared on.
    fn size_bytes(&self) -> u64 {
        let usual = USUAL_BYTES.max((self.planned.data_bytes * 2).next_multiple_of(GIB));
        usual.min(self.smallest.size_bytes())
    }

    fn key(&self) -> &str {
        &self.planned.prepare_key
    }
}

/// What the arms and their replicas start from, each once.
pub fn needs(arms: &[PlannedArm]) -> Vec<Need<'_>> {
    let mut needs: BTreeMap<&str, Need<'_>> = BTreeMap::new();
    for planned in arms.iter().flat_map(PlannedArm::servers) {
        let volume = &planned.volumes[&Role::Data];
        let need = needs.entry(&planned.prepare_key).or_insert(Need { planned, smallest: volume });
        if volume.size_bytes() < need.smallest.size_bytes() {
            need.smallest = volume;
        }
    }
    needs.into_values().collect()
}

/// The kept data that serve a need.
fn find(lab: &Lab, need: &Need<'_>) -> Option<Prepared> {
    let fits = |kept: &Prepared| {
        kept.damage.is_none() && kept.key == need.key() && kept.size_bytes <= need.smallest.size_bytes()
    };
    all(lab).into_iter().find(fits)
}

/// Bytes of the host's disk that preparing what is missing will take.
pub fn missing_bytes(lab: &Lab, needs: &[Need<'_>]) -> u64 {
    let missing = needs.iter().filter(|need| find(lab, need).is_none());
    // The redo log of the load and the tables, which a merge of layers may hold twice for a moment.
    let bytes = missing.map(|need| need.planned.data_bytes);
    bytes.map(|bytes| bytes * 2 + load_redo_bytes(bytes)).sum()
}

/// Everything that making data takes.
#[derive(Debug)]
pub struct Maker<'a> {
    /// Where they are kept.
    pub lab: &'a Lab,
    /// What they are for.
    pub experiment: &'a Experiment,
    /// Ends the making.
    pub cancel: &'a Cancel,
    /// Who hears of it.
    pub events: EventSink<'a>,
}

impl Maker<'_> {
    /// The snapshots that the needs are served from, by key; those that are missing are made.
    pub fn provide(&self, needs: &[Need<'_>]) -> Result<BTreeMap<String, String>, RunError> {
        let mut snapshots = BTreeMap::new();
        for need in needs {
            let name = match find(self.lab, need) {
                Some(kept) => kept.name,
                // What fails when the run was ended fails because of that.
                None => self.make(need).map_err(|error| match self.cancel.is_cancelled() {
                    true => RunError::Cancelled { done: 0, of: 0 },
                    false => RunError::Prepare(Box::new(error)),
                })?,
            };
            snapshots.insert(need.key().to_owned(), name);
        }
        Ok(snapshots)
    }

    fn make(&self, need: &Need<'_>) -> Result<String, StepError> {
        let began = Instant::now();
        let PlannedArm { arm, server: binary, .. } = need.planned;
        let size = need.size_bytes();
        let name = format!("prep-{:016x}", fnv1a(format!("{} {size}", need.key()).into_bytes()));
        self.delete_useless(&name)?;
        let fs = fs_type(&arm.instance.fs);
        let report = |text: &str| self.events.preparing(format!("making the data: {text}"));
        let request = VolumeRequest {
            name: name.clone(),
            origin: VolumeOrigin::Blank,
            unlimited: ideal(size, self.lab.host.now()),
            fs,
            rotational: false,
            seed: DATA_SEED,
            cancel: self.cancel,
        };
        let volume = LabVolume::make(self.lab, request, &report)?;
        let kept = made_with(&arm.settings, binary);
        self.fill(need.planned, &kept, volume.dir(), &report)?;
        let meta = PreparedMeta {
            version: VERSION,
            key: need.key().to_owned(),
            server: binary.text.clone(),
            tables: self.experiment.data.tables,
            rows: self.experiment.data.rows,
            warehouses: self.experiment.data.warehouses,
            fs,
            took_s: began.elapsed().as_secs_f64(),
        };
        volume.keep(&name, serde_json::json!({ META: meta }), &report)?;
        pace::note(self.lab, prepare_pace(self.experiment.data, began.elapsed().as_secs_f64()));
        Ok(name)
    }

    /// A snapshot of that name that [`find`] has passed over is of no use.
    fn delete_useless(&self, name: &str) -> Result<(), StepError> {
        let store = self.lab.host.store();
        if store.snapshots().iter().any(|snapshot| snapshot.name == name) {
            self.events.preparing(format!("deleting {name}, which cannot be used any more"));
            store.delete_snapshot(name)?;
        }
        Ok(())
    }

    /// Makes the server's own tables and ours.
    fn fill(
        &self,
        planned: &PlannedArm,
        kept: &Settings,
        dir: &Path,
        report: &(dyn Fn(&str) + Sync),
    ) -> Result<(), StepError> {
        let PlannedArm { arm, server: binary, data_bytes, .. } = planned;
        let plan = ServerPlan {
            settings: kept.clone(),
            cancel: self.cancel.clone(),
            ..ServerPlan::new(binary.clone(), Layout::single(dir.join("data")), self.lab.work("prepare"))
        };
        self.proceed()?;
        ebbtide_mysql::initialize(&plan, &report)?;
        self.proceed()?;
        let loading = loading(kept, binary, *data_bytes);
        let server = Server::start(&ServerPlan { settings: loading, ..plan.clone() }, &report)?;
        if let Some(collation) = &planned.collation {
            let sql = format!("CREATE DATABASE {DATABASE} COLLATE {collation}");
            server.session()?.execute(&sql).map_err(StepError::from)?;
        }
        let data = self.experiment.data;
        let tables = arm.tables(data);
        self.load(&server, &tables)?;
        let server = self.answer(server, &arm.ageing(data), "ageing the tables")?;
        report("writing them back");
        server.stop(SHUTDOWN)?;
        self.proceed()?;
        // Once more as the arms will have it: redo log and doublewrite area of the usual kind.
        let finishing = finishing(kept, binary, *data_bytes);
        let server = Server::start(&ServerPlan { settings: finishing, ..plan }, &report)?;
        let server = self.answer(server, &tables.analysis(), "analysing the tables")?;
        // The first start of a trial is to find no work left over.
        server.session()?.execute("SET GLOBAL innodb_fast_shutdown = 0").map_err(StepError::from)?;
        report("purging and writing back");
        server.stop(SHUTDOWN)?;
        forget_pages(&dir.join("data"))
    }

    fn load(&self, server: &Server, tables: &Description) -> Result<(), StepError> {
        let loading = Loading { seed: DATA_SEED, connections: proc::cpus().clamp(2, 8) };
        let on_progress = |progress: &ebbtide_load::Progress| {
            let share = progress.rows as f64 / progress.rows_total.max(1) as f64;
            let what = format!("making the data: {} of {} rows", progress.rows, progress.rows_total);
            self.events.send(Event::Preparing { what, share: Some(share) });
        };
        ebbtide_load::load(&server.target(), tables, loading, self.cancel, &mut { on_progress })?;
        self.proceed()
    }

    /// Has a server answer statements; it is killed where the user ends the run meanwhile.
    fn answer(&self, server: Server, statements: &[String], what: &str) -> Result<Server, StepError> {
        if !statements.is_empty() {
            self.events.preparing(format!("making the data: {what}"));
        }
        let target = server.target();
        let mut running = Some(server);
        statements::answer_all(&target, statements, self.cancel, || drop(running.take()))?;
        running.ok_or(StepError::Cancelled)
    }

    fn proceed(&self) -> Result<(), StepError> {
        if self.cancel.is_cancelled() { Err(StepError::Cancelled) } else { Ok(()) }
    }
}

/// The list of the pages that a server had: those of trials would read them when they start, each as
/// many as its pool takes.
fn forget_pages(data: &Path) -> Result<(), StepError> {
    let list = "ib_buffer_pool";
    let removed = Dir::open_entry(data).and_then(|dir| dir.remove_all(list));
    let action = || format!("remove {}", data.join(list).display());
    removed.map_err(|source| StepError::Io { action: action(), source })
}

/// A file system by the name that a checked experiment has for it.
pub fn fs_type(name: &str) -> FsType {
    name.parse().expect("a checked experiment names a file system that can be made")
}

/// Those settings that a data directory is made with and keeps.
pub(super) fn made_with(settings: &Settings, binary: &Binary) -> Settings {
    let none = Settings::new().init_key(binary);
    let mut kept = Settings::new();
    for (name, value) in settings.iter() {
        let mut alone = Settings::new();
        let set = alone.set(name, value);
        if set.is_ok() && alone.init_key(binary) != none {
            kept.merge(&alone);
        }
    }
    kept
}

/// Adds a setting where this server has it.
fn add(settings: &mut Settings, binary: &Binary, name: &str, value: &str) {
    let mut alone = Settings::new();
    if alone.set(name, value).is_ok() && alone.options_for(binary).is_ok() {
        settings.merge(&alone);
    }
}

/// A buffer pool that takes the data, where the machine has the memory.
fn pool(data_bytes: u64) -> String {
    let most = proc::available_memory().map_or(GIB, |bytes| bytes / 2);
    let wanted = (data_bytes + data_bytes / 4 + 64 * MIB).min(most).max(64 * MIB);
    format!("{}MiB", wanted.div_ceil(MIB))
}

fn load_redo_bytes(data_bytes: u64) -> u64 {
    data_bytes.clamp(128 * MIB, GIB)
}

/// Settings for loading quickly: a kill meanwhile costs nothing but the beginning anew.
fn loading(kept: &Settings, binary: &Binary, data_bytes: u64) -> Settings {
    let mut settings = kept.clone();
    let redo = format!("{}MiB", load_redo_bytes(data_bytes).div_ceil(MIB));
    for (name, value) in [
        ("buffer_pool_size", pool(data_bytes).as_str()),
        ("redo_capacity", redo.as_str()),
        ("flush_log_at_trx_commit", "0"),
        ("doublewrite", "OFF"),
        ("log_bin", "OFF"),
        ("sync_binlog", "0"),
        ("io_capacity", "10000"),
        ("io_capacity_max", "20000"),
    ] {
        add(&mut settings, binary, name, value);
    }
    settings
}

/// The server's own settings, but for the binary log, which would be in every clone.
fn finishing(kept: &Settings, binary: &Binary, data_bytes: u64) -> Settings {
    let mut settings = kept.clone();
    add(&mut settings, binary, "buffer_pool_size", &pool(data_bytes));
    add(&mut settings, binary, "log_bin", "OFF");
    settings
}
