//! `ebbtide volume check`: reads the metadata of a store that no server has open. What the data files
//! hold is not looked at, for there is nothing to compare it to.

use ebbtide_device::host::HomeError;
use ebbtide_device::store::{self, CheckReport, StoreError};

use super::args::CheckArgs;
use crate::answers::{self, Checked, DamageFound};
use crate::exit::{Exit, Refusal};
use crate::home::HomePath;
use crate::text;

/// Checks one volume, or everything. Nothing in the home is changed, which may be on a disk that cannot be written.
///
/// # Errors
/// A home that is being served, or a store that cannot be read at all.
pub(crate) fn run(args: &CheckArgs, place: &HomePath, json: bool) -> anyhow::Result<Exit> {
    let Some(home) = place.existing()? else { return Err(no_store(place).into()) };
    let _lock = home.lock_to_read().map_err(|error| {
        let refusal = match &error {
            HomeError::Served { .. } => {
                Refusal::environment("only a store that nobody serves can be checked")
                    .hint("run 'ebbtide serve --stop' first")
            }
            HomeError::Io { .. } | HomeError::Unsafe { .. } => {
                Refusal::environment("the store cannot be checked")
                    .hint("run the command as the owner of the home")
            }
        };
        anyhow::Error::new(error).context(refusal)
    })?;
    let dir = home.store_dir();
    if !dir.exists() {
        return Err(no_store(place).into());
    }
    let report = store::check(&dir, args.name.as_deref()).map_err(|error| match error {
        StoreError::NotFound { .. } => Refusal::usage(error.to_string()).into(),
        other => anyhow::Error::new(other).context(Refusal::environment("the store cannot be checked")),
    })?;
    if json {
        answers::print(&answer(&report));
    } else {
        print(&report);
    }
    Ok(if report.is_clean() { Exit::Clean } else { Exit::Finding })
}

fn no_store(place: &HomePath) -> Refusal {
    Refusal::usage(format!("there is no store in {}", place.path().display()))
        .hint("'ebbtide volume create' makes one; --home names another place")
}

fn answer(report: &CheckReport) -> Checked<'_> {
    let damages = report.damages.iter();
    let damages = damages.map(|one| DamageFound { file: &one.file, offset: one.offset, what: &one.what });
    Checked {
        clean: report.is_clean(),
        volumes: report.volumes,
        snapshots: report.snapshots,
        layers: report.layers,
        records: report.records,
        unsealed_records: report.unsealed,
        blocks: report.blocks,
        damages: damages.collect(),
        notes: &report.notes,
    }
}

fn print(report: &CheckReport) {
    text::line(&format!(
        "checked {} volumes, {} snapshots, {} layers: {} journal records, {} of data",
        report.volumes,
        report.snapshots,
        report.layers,
        report.records,
        text::size(report.blocks * store::BLOCK_BYTES),
    ));
    for note in &report.notes {
        text::line(&format!("note: {note}"));
    }
    for damage in &report.damages {
        text::line(&format!("damage: {damage}"));
    }
    let found = match (report.is_clean(), report.unsealed) {
        (true, 0) => "metadata clean".to_owned(),
        (true, unsealed) => format!("metadata clean, {unsealed} journal records not sealed"),
        (false, _) => "metadata damaged".to_owned(),
    };
    text::line(&format!("{found}; data carry no checksums"));
}
