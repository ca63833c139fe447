//! An observation of a live server and its machine, or of a capture, as the options ask for it.

use std::path::PathBuf;
use std::time::Duration;

use ebbtide_captured::Hints;
use ebbtide_catalog::Catalog;
use ebbtide_control::VolumeView;
use ebbtide_control::protocol::Request;
use ebbtide_device::host::Home;
use ebbtide_doctor::LookOptions;
use ebbtide_doctor::probe::Probe;
use ebbtide_doctor::storage::{NamedStorage, OwnVolume, name_own_volumes};
use ebbtide_observe::{FileSystem, Observation};

use super::args::LookArgs;
use super::refusal::refuse;
use crate::bundle;
use crate::control::ask_if_there;
use crate::home::HomePath;
use crate::password::password;
use crate::signals::{cancel_on, signals};
use crate::status_line::StatusLine;
use crate::text::note;

/// How long the server of the home may take to name its volumes.
const PATIENCE: Duration = Duration::from_secs(1);

/// The catalogue of the home, if there is one.
///
/// # Errors
/// Overrides that cannot be read (exit code 2).
pub(super) fn catalog(place: Option<&HomePath>) -> anyhow::Result<Catalog> {
    let home = place.map_or(Ok(None), HomePath::existing)?;
    ebbtide_control::catalog(home.as_ref()).map_err(crate::refusal::refuse)
}

/// What is seen of the server, with what the user gives of its storage; and the catalogue of the home.
///
/// # Errors
/// Volumes and files that there are not (exit code 2); a server that does not answer (exit code 3).
pub(super) fn observation(
    look: &LookArgs,
    from: Option<(&[PathBuf], &Hints)>,
    place: Option<&HomePath>,
) -> anyhow::Result<(Observation, Catalog)> {
    let home = place.map_or(Ok(None), HomePath::existing)?;
    let catalog = catalog(place)?;
    let storage = named(look);
    storage.check(&catalog).map_err(refuse)?;
    let probe = look.probe.as_deref().map(Probe::open).transpose().map_err(refuse)?;
    let mut seen = match from {
        None => {
            let mut seen = live(look)?;
            name_own_volumes(&mut seen, || home.as_ref().and_then(own_volumes).unwrap_or_default());
            seen
        }
        Some((paths, hints)) => bundle::read(paths, hints)?,
    };
    storage.name_volumes(&mut seen).map_err(refuse)?;
    // After the interval, so that its counters are those of the server alone.
    if let Some(why) = probe.and_then(|probe| probe.add_to(&mut seen)) {
        note(&format!("warning: {why}"));
    }
    storage.name_machine(&mut seen);
    Ok((seen, catalog))
}

/// What the options name of the server's storage.
fn named(look: &LookArgs) -> NamedStorage {
    let file_system =
        look.fs.map(|fs| FileSystem { name: fs.name().to_owned(), aligned_bytes: fs.aligned_bytes() });
    NamedStorage { volumes: look.volume.clone(), instance: look.instance.clone(), file_system }
}

fn live(look: &LookArgs) -> anyhow::Result<Observation> {
    let password = password(look.ask_password, look.mysql_password_file.as_deref())?;
    let target = look.server.client_target(password)?;
    let options = LookOptions { target, interval: look.interval.unwrap_or(LookOptions::INTERVAL) };
    let cancel = cancel_on(signals())?;
    let mut status = StatusLine::new();
    let looked = ebbtide_doctor::look(&options, &cancel, |left| {
        status.show(&format!("watching the server's counters: {:.0} s left", left.as_secs_f64().ceil()));
    });
    drop(status);
    let looked = looked.map_err(refuse)?;
    if let Some(why) = &looked.lost {
        note(&format!("warning: {why}"));
    }
    Ok(looked.seen)
}

/// The volumes that the server of the home has attached; None where none runs.
fn own_volumes(home: &Home) -> Option<Vec<OwnVolume>> {
    let value = ask_if_there(home, &Request::VolumeList { region: None }, PATIENCE)?;
    let volumes: Vec<VolumeView> = serde_json::from_value(value).ok()?;
    let attached = volumes.into_iter().filter_map(|volume| {
        let device = volume.attachment?.device?;
        Some(OwnVolume { device, spec: volume.spec, credit_percent: volume.credit_pct })
    });
    Some(attached.collect())
}
