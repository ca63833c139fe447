//! What a run of either lab stands on before its first trial or cut: arms that this server can have, an open
//! lab with room for them, a server that takes their settings, and a host whose figures are known.

use std::path::Path;

use ebbtide_catalog::Catalog;
use ebbtide_load::Cancel;
use ebbtide_mysql::Binary;

use super::error::RunError;
use super::event::{Event, Teller};
use super::home::Lab;
use super::rehearse::{self, Scene};
use super::{Plan, plan, prepared, proc, require};
use crate::experiment::{self, Arm, Checked, Experiment};
use crate::record::HostFacts;

/// What a run asks of the machine.
pub(crate) struct Wishes<'a> {
    pub(crate) home: &'a Path,
    pub(crate) server: &'a Binary,
    pub(crate) catalog: &'a Catalog,
    /// Run although the host is slower than a volume.
    pub(crate) over_limit: bool,
    /// Room on the host's disk besides the data and the largest trial, bytes.
    pub(crate) room: u64,
    /// The arms whose volumes the host must be faster than.
    pub(crate) counts: fn(&Arm) -> bool,
}

/// The ground of a run.
pub(crate) struct Ground {
    pub(crate) lab: Lab,
    /// What is run of the experiment.
    pub(crate) experiment: Experiment,
    pub(crate) checked: Checked,
    pub(crate) host: HostFacts,
    /// What every trial should carry.
    pub(crate) notes: Vec<String>,
}

/// Refuses what cannot run, leaves out what is optional, and measures the host.
pub(crate) fn lay(
    experiment: Experiment,
    wishes: &Wishes<'_>,
    cancel: &Cancel,
    teller: Teller<'_>,
) -> Result<Ground, RunError> {
    let told = |left_out: Vec<String>| {
        left_out.into_iter().for_each(|text| teller.tell(Event::Noted { text }));
    };
    let Plan { mut experiment, mut checked, left_out } = plan(experiment, wishes.catalog, wishes.server)?;
    told(left_out);
    require::equipment(&experiment).map_err(RunError::Missing)?;
    require::memory(&experiment)?;
    let lab = Lab::open(wishes.home, cancel, teller)?;
    require::space(&lab, &experiment, &checked, &prepared::needs(&checked.arms), wishes.room)?;
    let scene = Scene { lab: &lab, binary: wishes.server, cancel, teller };
    let left_out = rehearse::hold(scene, &mut experiment)?;
    if !left_out.is_empty() {
        told(left_out);
        checked = experiment::check(&experiment, wishes.catalog, wishes.server)?;
    }
    let arms = experiment.arms.iter().zip(&checked.arms);
    let counting = arms.filter(|(arm, _)| (wishes.counts)(arm)).map(|(_, checked)| checked.clone());
    let counting = Checked { arms: counting.collect() };
    let compared = require::host(&lab, &counting, wishes.over_limit, cancel, teller)?;
    let home = std::path::absolute(wishes.home).unwrap_or_else(|_| wishes.home.to_owned());
    let host =
        HostFacts { calibration: compared.figures, home: home.display().to_string(), ..proc::host_facts() };
    Ok(Ground { lab, experiment, checked, host, notes: compared.notes })
}
