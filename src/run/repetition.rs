//! Runs of one experiment held against each other: a new one against earlier ones, or earlier ones alone.

use std::path::{Path, PathBuf};

use ebbtide_lab::page::runs_compared;
use ebbtide_lab::record::LabRun;
use ebbtide_lab::results::{Earlier, ResultsError};
use ebbtide_lab::run::{self as lab, Plan};
use ebbtide_lab::summary::{Repetition, repetition};

use ebbtide_report::TextOptions;

use super::refuse_results;
use crate::exit::{Exit, Refusal};
use crate::{answers, text};

/// Reads the runs that a new one into `out` is to be held against.
pub(super) fn earlier(dirs: &[PathBuf], out: Option<&Path>) -> anyhow::Result<Vec<Earlier>> {
    let own = out.and_then(|out| out.canonicalize().ok());
    let is_own = |dir: &&PathBuf| own.is_some() && dir.canonicalize().ok() == own;
    if let Some(dir) = dirs.iter().find(is_own) {
        let text = format!("--against {} is where this run's own results go", dir.display());
        return Err(Refusal::usage(text).hint("name the directories of earlier runs").into());
    }
    read(dirs)
}

/// Refuses earlier runs of something else, before anything runs.
pub(super) fn refuse_others(plan: &Plan, earlier: &[Earlier]) -> anyhow::Result<()> {
    lab::refuse_others(plan, earlier).map_err(refuse_results)
}

/// The run that has just ended, among the earlier ones; none where there are none.
pub(super) fn held(earlier: &[Earlier], out: &Path, record: &LabRun) -> Option<Repetition> {
    if earlier.is_empty() {
        return None;
    }
    let out = shown(out);
    let dirs: Vec<String> = earlier.iter().map(|one| shown(&one.dir)).collect();
    let mut runs: Vec<(&str, &LabRun)> =
        dirs.iter().zip(earlier).map(|(dir, one)| (dir.as_str(), &one.run)).collect();
    runs.push((out.as_str(), record));
    Some(repetition(&runs))
}

/// `ebbtide run --compare`: holds finished runs against each other and writes nothing. The exit code shows
/// whether they agree.
pub(super) fn compare(dirs: &[PathBuf], options: TextOptions, json: bool) -> anyhow::Result<Exit> {
    if dirs.len() < 2 {
        return Err(Refusal::usage("--compare: two runs at least are needed")
            .hint("name another one")
            .into());
    }
    let runs = read(dirs)?;
    let (first, others) = runs.split_first().expect("two at least were read");
    others
        .iter()
        .try_for_each(|one| one.refuse_other(&first.run.experiment, &first.run.server))
        .map_err(refuse_results)?;
    let dirs: Vec<String> = runs.iter().map(|one| shown(&one.dir)).collect();
    let pairs: Vec<(&str, &LabRun)> =
        dirs.iter().zip(&runs).map(|(dir, one)| (dir.as_str(), &one.run)).collect();
    let repetition = repetition(&pairs);
    if json {
        answers::print(&repetition);
    } else {
        text::write(&runs_compared(&first.run.experiment, &repetition).to_text(options))?;
    }
    Ok(if agrees(&repetition) { Exit::Clean } else { Exit::Finding })
}

/// Whether the intervals of all comparisons overlap.
pub(super) fn agrees(repetition: &Repetition) -> bool {
    repetition.overlap == Some(true)
}

fn read(dirs: &[PathBuf]) -> anyhow::Result<Vec<Earlier>> {
    let runs: Result<Vec<Earlier>, _> = dirs.iter().map(|dir| Earlier::read(dir)).collect();
    let runs = runs.map_err(|error| match error {
        ResultsError::Missing { .. } => Refusal::usage(error.to_string())
            .hint("name the directory that 'ebbtide run' wrote: results.json is in it")
            .into(),
        error => refuse_results(error),
    })?;
    Earlier::refuse_repeated(&runs).map_err(refuse_results)?;
    Ok(runs)
}

fn shown(dir: &Path) -> String {
    std::path::absolute(dir).as_deref().unwrap_or(dir).display().to_string()
}
