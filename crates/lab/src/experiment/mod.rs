//! What is compared: the experiment file and the plan that follows from it.
//!
//! [`load`] reads a shipped experiment or a user's file, applies the command line's [`Overrides`], and
//! spells out every arm. [`check()`] then holds the result against the catalogue and a server before
//! anything runs.

mod arm_error;
mod arm_workload;
mod backup;
mod check;
mod claims;
mod crash;
mod documents;
mod error;
mod estimate;
mod expand;
mod file;
mod model;
mod named;
mod programs;
mod quick;
mod read;
mod section;
mod set_option;
mod shipped;
mod topology;
mod tree;
mod workload;

use std::path::{Path, PathBuf};

pub use ebbtide_workload::LoadKind;

pub use arm_error::ArmError;
pub use backup::{BackedUp, BackupMethod, BackupPlan};
pub use check::{
    DATA_SEED, PlannedArm, check, check_with, check_without_server, fit, leave_out, prepare_key,
};
pub(crate) use check::{check_on, fit_on, fit_volumes};
pub use crash::{Canary, CrashPlan, End, Fault, Moment};
pub use documents::{DocumentRun, documents};
pub use error::ExperimentError;
pub use estimate::{
    Known, Pace, Paces, Part, cut_pace, estimate, estimate_after, estimate_anew, estimate_on, keys_of,
    stint_pace,
};
pub(crate) use estimate::{check_pace, prepare_pace, trial_estimate, trial_pace, trials_estimate};
pub use model::{
    Arm, Batch, Comparison, DataPlan, Experiment, InstancePlan, LeftOut, LoadPlan, Role, TrialPlan,
    WarmupPlan,
};
pub(crate) use programs::{ArmPrograms, Programs};
pub use shipped::{Shipped, shipped};
pub use topology::{Replication, ServerRole, ServerSpec, Topology};

use file::File;

/// What the command line changes in an experiment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `PATH` and `VALUE` of every `--set PATH=VALUE`, in order.
    pub set: Vec<(String, String)>,
    /// The short form: as the file's `[quick]` specifies, else fewer and shorter trials of the same arms.
    pub quick: bool,
    /// The data volume of all arms, as a volume spec.
    pub volume: Option<String>,
    /// The seed; none: a fresh one is drawn.
    pub seed: Option<u64>,
    /// Trials of each arm.
    pub repeats: Option<u32>,
    /// Seconds measured in each trial.
    pub measure_s: Option<u32>,
    /// Which arms to keep: options of the axes (`gp2`), or whole names (`gp2 / tuned`); empty: all.
    pub arms: Vec<String>,
    /// The AWS region whose prices the report shows.
    pub region: Option<String>,
}

/// Reads an experiment: the name of a shipped one, or the path of a file (with a `/` or ending in `.toml`).
///
/// # Errors
/// A name that nothing has, a file that cannot be read, and everything that is wrong in the file or in
/// the overrides, with its line or its option.
pub fn load(name_or_path: &str, overrides: &Overrides) -> Result<Experiment, ExperimentError> {
    if let Some(known) = shipped().iter().find(|known| known.name == name_or_path) {
        return parse(known.name, known.name, known.text, overrides);
    }
    if !is_path(name_or_path) {
        let names = || shipped().iter().map(|known| known.name);
        return Err(ExperimentError::Unknown {
            name: name_or_path.to_owned(),
            nearest: ebbtide_text::closest(name_or_path, names()).map(str::to_owned),
            known: names().collect::<Vec<_>>().join(", "),
        });
    }
    let path = Path::new(name_or_path);
    let text = read_file(name_or_path)?;
    let name = path.file_stem().map_or_else(|| name_or_path.into(), |stem| stem.to_string_lossy());
    let mut experiment = parse(&name, name_or_path, &text, overrides)?;
    for arm in &mut experiment.arms {
        let followed = arm.crash.as_mut().map(|crash| &mut crash.source);
        for server in [&mut arm.server, &mut arm.topology.replica.server].into_iter().chain(followed) {
            *server = server.take().map(|server| program_of(path, server));
        }
    }
    Ok(Experiment { gain: experiment.gain.map(|gain| relative_to(path, gain)), ..experiment })
}

/// The server programs that the command line names (`--set topology.replica.server=VALUE` and the like), in the words that
/// [`load`] gives them.
#[must_use]
pub fn servers_set(name_or_path: &str, overrides: &Overrides) -> Vec<String> {
    let is_server = |path: &str| matches!(path.rsplit('.').next(), Some("server" | "source"));
    let is_file = shipped().iter().all(|known| known.name != name_or_path);
    let words = |value: &String| {
        if is_file { program_of(Path::new(name_or_path), value.clone()) } else { value.clone() }
    };
    overrides.set.iter().filter(|(path, _)| is_server(path)).map(|(_, value)| words(value)).collect()
}

/// A server program that a file names: a path counts from the file's directory, and is found from everywhere then.
fn program_of(file: &Path, server: String) -> String {
    if !server.contains('/') {
        return server;
    }
    let path = file.parent().unwrap_or(Path::new("")).join(server);
    std::path::absolute(&path).unwrap_or(path).display().to_string()
}

/// A path in a file counts from the file's directory; the name of a shipped experiment stays.
fn relative_to(file: &Path, gain: String) -> String {
    if !is_path(&gain) || Path::new(&gain).is_absolute() {
        return gain;
    }
    let gain: PathBuf = file.parent().unwrap_or(Path::new("")).join(&gain).components().collect();
    let gain = gain.display().to_string();
    if is_path(&gain) { gain } else { format!("./{gain}") }
}

/// Whether it is the path of a file and no name.
fn is_path(name_or_path: &str) -> bool {
    name_or_path.contains('/') || name_or_path.ends_with(".toml")
}

/// Reads the experiment of the lab that measures what a crash experiment's risk buys, in the same form and with the
/// same seed; none where it names none.
///
/// # Errors
/// As [`load`], with the place that names it.
pub fn load_gain(experiment: &Experiment, quick: bool) -> Result<Option<Experiment>, ExperimentError> {
    let Some(gain) = &experiment.gain else { return Ok(None) };
    let region = experiment.region.clone();
    let overrides = Overrides { quick, seed: Some(experiment.seed), region, ..Overrides::default() };
    let refused = |message: String| ExperimentError::Wrong {
        place: experiment.name.clone(),
        message: format!("crash.gain = \"{gain}\": {message}"),
    };
    let found = load(gain, &overrides).map_err(|error| match &error {
        ExperimentError::Unreadable { source, .. } => refused(format!("{error}: {source}")),
        _ => refused(error.to_string()),
    })?;
    if found.is_cut() {
        return Err(refused("its power is cut: name an experiment that 'ebbtide run' measures".to_owned()));
    }
    Ok(Some(found))
}

/// What `--quick` changes in an experiment whose file does not specify it, a few words for each change; None
/// where the file has a `[quick]`, and without `--quick`.
///
/// # Errors
/// As [`load`].
pub fn generic_quick(
    name_or_path: &str,
    overrides: &Overrides,
) -> Result<Option<Vec<String>>, ExperimentError> {
    if shipped().iter().any(|known| known.name == name_or_path) || !overrides.quick {
        return Ok(None);
    }
    let text = read_file(name_or_path)?;
    let file = File::parse(name_or_path, &text)?;
    if file.has_quick() {
        return Ok(None);
    }
    let of = |quick| expand::expand(name_or_path, &file, &Overrides { quick, ..overrides.clone() }, 0);
    Ok(Some(quick::differences(&of(false)?, &of(true)?)))
}

fn read_file(path: &str) -> Result<String, ExperimentError> {
    std::fs::read_to_string(path)
        .map_err(|source| ExperimentError::Unreadable { path: path.to_owned(), source })
}

/// Reads an experiment from a text; `place` represents it in errors.
///
/// # Errors
/// As [`load`].
pub fn parse(
    name: &str,
    place: &str,
    text: &str,
    overrides: &Overrides,
) -> Result<Experiment, ExperimentError> {
    let file = File::parse(place, text)?;
    let seed = overrides.seed.unwrap_or_else(ebbtide_text::seed::fresh);
    // The other form is read too, so that a mistake in it is not found on the day it is needed.
    let other = Overrides { quick: !overrides.quick, ..Overrides::default() };
    expand::expand(name, &file, &other, seed)?;
    expand::expand(name, &file, overrides, seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_the_command_line_have_the_words_that_the_experiment_has_for_them() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("mine.toml");
        std::fs::write(
            &file,
            "title = \"t\"\n[settings]\nlog_bin = true\n[topology]\nreplicas = 1\n[topology.source]\nserver = \"./theirs\"\n[arms.a]\n",
        )
        .unwrap();
        let name = file.to_str().unwrap();
        let set = vec![
            ("topology.replica.server".to_owned(), "./ours".to_owned()),
            ("settings.io_capacity".to_owned(), "300".to_owned()),
        ];
        let overrides = Overrides { set, ..Overrides::default() };
        let (ours, theirs) = (["ours", "theirs"].map(|name| dir.path().join("./").join(name))).into();
        let of = |path: &Path| std::path::absolute(path).unwrap().display().to_string();
        assert_eq!(servers_set(name, &overrides), [of(&ours)]);
        let named = load(name, &overrides).unwrap().named_servers();
        assert_eq!(named, [of(&ours), of(&theirs)].into());
    }

    #[test]
    fn a_path_counts_from_the_file_that_has_it_and_stays_a_path() {
        let of = |file: &str, gain: &str| relative_to(Path::new(file), gain.to_owned());
        assert_eq!(of("./mine.toml", "./gain.toml"), "./gain.toml");
        assert_eq!(of("mine.toml", "gain.toml"), "gain.toml");
        assert_eq!(of("a/mine.toml", "../b/gain"), "a/../b/gain");
        assert_eq!(of("mine.toml", "./gain"), "./gain", "without its dot it would be a name");
        assert_eq!(of("a/mine.toml", "/b/gain.toml"), "/b/gain.toml");
        assert_eq!(of("a/mine.toml", "same-twice"), "same-twice", "a name is no path");
    }
}
