//! The objects that commands print with `--json` around the types of the crates. `cargo xtask schemas`
//! makes the schemas in docs/json of them.

use std::collections::BTreeMap;
use std::path::Path;

use ebbtide_advisor::doublewrite::{Candidate, PageWriteSettings, Storage, Workload};
use ebbtide_crash::record::Cut;
use ebbtide_crash::summary::Summary as CrashSummary;
use ebbtide_device::host::Detached;
use ebbtide_lab::documents::DocumentResults;
use ebbtide_lab::experiment::Experiment;
use ebbtide_lab::record::ProgramFacts;
use ebbtide_lab::summary::Summary;
use ebbtide_load::Prepared;
use ebbtide_mysql::Binary;
use ebbtide_mysql::status::Facts;
use serde::Serialize;

use crate::text;

/// Prints an answer.
pub(crate) fn print(answer: &impl Serialize) {
    text::print_json(&value(answer));
}

/// An answer as a JSON value.
pub(crate) fn value(answer: &impl Serialize) -> serde_json::Value {
    serde_json::to_value(answer).expect("an answer is plain data with texts for keys")
}

/// What a command prints that deletes one thing.
#[derive(Debug, Serialize)]
pub(crate) struct Deleted<'a> {
    /// Name of what was deleted.
    pub(crate) deleted: &'a str,
}

/// What a command prints that deletes several things.
#[derive(Debug, Serialize)]
pub(crate) struct DeletedAll {
    /// Names of what was deleted; of kept images their seeds, 16 hexadecimal digits.
    pub(crate) deleted: Vec<String>,
}

/// What `serve --detach` prints.
#[derive(Debug, Serialize)]
pub(crate) struct Serving<'a> {
    /// Process number of the server.
    pub(crate) pid: u32,
    /// The home that it serves.
    pub(crate) home: &'a Path,
    /// Its control socket.
    pub(crate) socket: &'a Path,
    /// Its log file.
    pub(crate) log: &'a Path,
    /// URL of its AWS endpoint; null without `--aws`.
    pub(crate) aws: Option<&'a str>,
    /// URL of its metrics; null without `--metrics`.
    pub(crate) metrics: Option<&'a str>,
}

/// A user of the AWS endpoint, as `user list` prints it.
#[derive(Debug, Serialize)]
pub(crate) struct UserListed<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// Its ARN.
    pub(crate) arn: String,
    /// Its unique id.
    pub(crate) user_id: &'a str,
    /// Its access key.
    pub(crate) access_key_id: &'a str,
    /// When it was created.
    pub(crate) created: &'a str,
    /// Whether it has a policy; without one it may do everything.
    pub(crate) has_policy: bool,
}

/// What `user create` prints.
#[derive(Debug, Serialize)]
pub(crate) struct UserCreated<'a> {
    /// The user.
    #[serde(flatten)]
    pub(crate) user: UserListed<'a>,
    /// Its secret access key, which is not shown again.
    pub(crate) secret_access_key: &'a str,
}

/// A role of the AWS endpoint, as `role create` and `role list` print it.
#[derive(Debug, Serialize)]
pub(crate) struct RoleListed<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// Its ARN.
    pub(crate) arn: String,
    /// Its unique id.
    pub(crate) role_id: &'a str,
    /// When it was created.
    pub(crate) created: &'a str,
    /// How long its sessions may last, seconds.
    pub(crate) max_session_s: u32,
    /// Whether it has a policy; without one its sessions may do everything.
    pub(crate) has_policy: bool,
}

/// What `serve --stop` prints.
#[derive(Debug, Serialize)]
pub(crate) struct Stopped<'a> {
    /// The home that was served.
    pub(crate) stopped: &'a Path,
    /// One entry for each volume that was attached.
    pub(crate) detached: Vec<Detached>,
}

/// What `volume check` prints.
#[derive(Debug, Serialize)]
pub(crate) struct Checked<'a> {
    /// Whether manifest, journals and sizes of data files are valid. Data carry no checksums and are not read.
    pub(crate) clean: bool,
    /// Volumes looked at.
    pub(crate) volumes: usize,
    /// Snapshots looked at.
    pub(crate) snapshots: usize,
    /// Layers looked at.
    pub(crate) layers: usize,
    /// Journal records read.
    pub(crate) records: u64,
    /// Those of them that are not sealed: more may have followed them, as after a kill.
    pub(crate) unsealed_records: u64,
    /// Blocks of 4 KiB that the layers hold.
    pub(crate) blocks: u64,
    /// What is damaged.
    pub(crate) damages: Vec<DamageFound<'a>>,
    /// What is no damage, but worth knowing.
    pub(crate) notes: &'a [String],
}

/// A damage in the store.
#[derive(Debug, Serialize)]
pub(crate) struct DamageFound<'a> {
    /// The damaged file.
    pub(crate) file: &'a Path,
    /// Where in it, bytes from its beginning.
    pub(crate) offset: u64,
    /// What is wrong there.
    pub(crate) what: &'a str,
}

/// What `volume calibrate --fio` prints. A curve is a list of (percent of the I/Os, microseconds) points.
#[derive(Debug, Serialize)]
pub(crate) struct FittedFromFio<'a> {
    /// The type that was given.
    #[serde(rename = "type")]
    pub(crate) kind: &'a str,
    /// Service times of reads, percent and us; null where the run had not enough.
    pub(crate) read: &'a Option<Vec<(f64, f64)>>,
    /// Service times of writes, percent and us; null where the run had not enough.
    pub(crate) write: &'a Option<Vec<(f64, f64)>>,
    /// Service times of flushes, percent and us; null where the run had not enough.
    pub(crate) flush: &'a Option<Vec<(f64, f64)>>,
    /// What to be careful about.
    pub(crate) warnings: &'a [String],
    /// The overrides file that has the new entry.
    pub(crate) overrides: &'a Path,
}

/// What `load prepare` prints.
#[derive(Debug, Serialize)]
pub(crate) struct TablesPrepared {
    /// What was made.
    pub(crate) prepared: Prepared,
    /// Seed of the rows.
    pub(crate) seed: u64,
}

/// What `load cleanup` prints.
#[derive(Debug, Serialize)]
pub(crate) struct CleanedUp<'a> {
    /// The database.
    pub(crate) database: &'a str,
    /// Names of the tables.
    pub(crate) tables: Vec<String>,
    /// Whether they were dropped; false without `--execute`.
    pub(crate) dropped: bool,
}

/// An experiment, as `run --list` and `crash --list` print it.
#[derive(Debug, Serialize)]
pub(crate) struct Listed<'a> {
    /// Its name, as the command line takes it.
    pub(crate) name: &'a str,
    /// Its heading.
    pub(crate) title: &'a str,
    /// What it asks, in a sentence or two.
    pub(crate) question: &'a str,
}

/// What `run --check` prints.
#[derive(Debug, Serialize)]
pub(crate) struct RunPlan<'a> {
    /// The experiment with every default filled in.
    pub(crate) experiment: &'a Experiment,
    /// The server program; null where the version of a program is not known without starting it.
    pub(crate) server: Option<&'a Binary>,
    /// The programs whose version is not known without starting them. Options and arms that are left out depend on it: they are
    /// empty where this is not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) not_started: Vec<String>,
    /// The servers of the load that are another program than this one, by arm name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) sources: BTreeMap<String, ProgramFacts>,
    /// The replicas that are another program than this one, by arm name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) replicas: BTreeMap<String, ProgramFacts>,
    /// The option lines that each arm's server would be started with, by arm name.
    pub(crate) options: BTreeMap<&'a str, &'a [String]>,
    /// Arms that this server cannot run, and why.
    pub(crate) left_out: &'a [String],
    /// How long it would take, s.
    pub(crate) estimate_s: u64,
    /// What this machine or user lacks to run it; the exit code is 3 where it is not empty.
    pub(crate) missing: &'a [String],
}

/// What `crash --check` prints.
#[derive(Debug, Serialize)]
pub(crate) struct CrashPlanned<'a> {
    /// What would run for the cuts.
    #[serde(flatten)]
    pub(crate) plan: RunPlan<'a>,
    /// What would be measured after the cuts; null without such an experiment.
    pub(crate) gain: Option<GainPlan<'a>>,
}

/// An experiment of the lab that would run after the cuts.
#[derive(Debug, Serialize)]
pub(crate) struct GainPlan<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// Names of its arms.
    pub(crate) arms: Vec<&'a str>,
    /// How long it would take, s; this comes on top.
    pub(crate) estimate_s: u64,
}

/// What `run` prints when it has ended.
#[derive(Debug, Serialize)]
pub(crate) struct RunEnded<'a> {
    /// Directory of the results.
    pub(crate) directory: &'a Path,
    /// The report, a HTML file.
    pub(crate) report: &'a Path,
    /// The file results.json.
    pub(crate) results: &'a Path,
    /// The file results.sqlite.
    pub(crate) database: &'a Path,
    /// Seed of the order, the load and the volumes' draws.
    pub(crate) seed: u64,
    /// What was found.
    pub(crate) summary: &'a Summary,
}

/// What `run --documents` prints when it has ended.
#[derive(Debug, Serialize)]
pub(crate) struct DocumentsEnded<'a> {
    /// Directory of the results.
    pub(crate) directory: &'a Path,
    /// The page in front of those of the documents, a HTML file.
    pub(crate) report: &'a Path,
    /// The file documents.json.
    pub(crate) results: &'a Path,
    /// What it holds.
    pub(crate) documents: &'a DocumentResults,
}

/// What `run --documents --check` prints.
#[derive(Debug, Serialize)]
pub(crate) struct DocumentsPlan<'a> {
    /// The experiments, in the order in which they would run.
    pub(crate) experiments: Vec<PlannedExperiment>,
    /// How long all of them take, s, estimated for two processors.
    pub(crate) estimate_s: u64,
    /// What this machine or user lacks to run them.
    pub(crate) missing: &'a [String],
    /// The programs whose version is not known without starting them; arms that a server would lack are in the plan then.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) not_started: Vec<String>,
}

/// An experiment of the documents' set before it runs.
#[derive(Debug, Serialize)]
pub(crate) struct PlannedExperiment {
    /// Its name.
    pub(crate) name: &'static str,
    /// Its arms in this form.
    pub(crate) arms: Vec<String>,
    /// How many claims it has.
    pub(crate) claims: usize,
    /// How long it takes, s, estimated for two processors.
    pub(crate) estimate_s: u64,
}

/// What `crash` prints when it has ended.
#[derive(Debug, Serialize)]
pub(crate) struct CrashEnded<'a> {
    /// Directory of the results.
    pub(crate) directory: &'a Path,
    /// The report, a HTML file.
    pub(crate) report: &'a Path,
    /// The file results.json.
    pub(crate) results: &'a Path,
    /// The file results.sqlite.
    pub(crate) database: &'a Path,
    /// Seed of the moments, of what tears, and of the load.
    pub(crate) seed: u64,
    /// What was found.
    pub(crate) summary: &'a CrashSummary,
    /// What the risk buys; null where it was not asked.
    pub(crate) gain: Option<GainEnded<'a>>,
}

/// The measurement of what the risk buys.
#[derive(Debug, Serialize)]
pub(crate) struct GainEnded<'a> {
    /// Directory of its results.
    pub(crate) directory: &'a Path,
    /// Why not all of its trials count; null where they do.
    pub(crate) failed: Option<&'a str>,
    /// What was found; null where nothing was measured.
    pub(crate) summary: Option<&'a Summary>,
}

/// What `crash --replay` prints.
#[derive(Debug, Serialize)]
pub(crate) struct Replayed<'a> {
    /// The cut as it was judged in its run.
    pub(crate) then: &'a Cut,
    /// The cut as it is judged now.
    pub(crate) now: &'a Cut,
    /// Whether a recovery ran now: the server came up on the image, or tried to and refused.
    pub(crate) recovered: bool,
    /// Whether both have the same kinds of verdict; null where no recovery ran.
    pub(crate) same: Option<bool>,
    /// The server that was started on the image.
    pub(crate) server: &'a Binary,
}

/// What `crash --candidate` prints. Rates are a second, over the time between the two looks.
#[derive(Debug, Serialize)]
pub(crate) struct Judged<'a> {
    /// The server.
    pub(crate) server: &'a Facts,
    /// Where it was reached: socket, or host and port.
    pub(crate) at: String,
    /// Its settings, as they were judged.
    pub(crate) settings: &'a PageWriteSettings,
    /// The volume of `--volume`; null without one.
    pub(crate) volume: Option<&'a Storage>,
    /// What the server did between the two looks.
    pub(crate) workload: &'a Workload,
    /// What would change without the doublewrite buffer.
    pub(crate) judgement: &'a Candidate,
}
